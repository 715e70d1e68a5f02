"""Compares peers on the same models, interleaved: each round asks every peer once per model.

usage: compare.py ROUNDS NAME=COMMAND...        run in the repository's root after `cargo xtask models`

A command starts a process that speaks the protocol of protocol.py. Prints a table of the smallest CPU time of a run in
milliseconds over all rounds. The first command is the reference of the ratios: above 1.00x, a peer is faster.

    python3 benches/model/compare.py 5 "ort=python3 benches/model/ort_cpu.py" \\
        "rten=benches/model/peers/target/release/vramp-model-peers rten"
"""

import shlex
import subprocess
import sys

MODELS = [
    ("selfie", "1,3,256,256"),
    ("blazeface", "1,3,128,128"),
    ("mobilenet_v1", "1,3,224,224"),
    ("efficientnet_lite0", "1,3,224,224"),
    ("orientation", "1,3,224,224"),
    ("ocr_det", "1,3,480,640"),
    ("yolox_text", "1,3,416,416"),
]


def main(rounds, peers):
    names = [peer.split("=", 1)[0] for peer in peers]
    processes = [start(peer.split("=", 1)[1]) for peer in peers]
    best = {}
    for _ in range(rounds):
        for model, shape in MODELS:
            for name, process in zip(names, processes):
                answer = ask(process, f"target/models/{model}.onnx {shape}")
                if answer[0] == "ms":
                    best[model, name] = min(float(answer[1]), best.get((model, name), float("inf")))
                elif (model, name) not in best:
                    best[model, name] = None
                    print(f"{name}: {model}: {' '.join(answer)}", file=sys.stderr)
    print(f"{'CPU ms':<20}" + "".join(f"{name:>20}" for name in names))
    for model, _ in MODELS:
        reference = best[model, names[0]]
        print(f"{model:<20}" + "".join(f"{cell(best[model, name], reference):>20}" for name in names))


def start(command):
    return subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(process, line):
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        sys.exit(f"compare.py: {shlex.join(process.args)} ended; its error is above")
    return answer.split()


def cell(ms, reference):
    if ms is None:
        return "refused"
    return f"{ms:.2f} {reference / ms:.2f}x" if reference else f"{ms:.2f}"


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(int(sys.argv[1]), sys.argv[2:])
