"""The protocol of the peers that vramp's models are compared with.

A peer is a process that stays, so that the runs of several peers and of vramp can be interleaved. It reads lines
`MODEL SHAPE`, such as `target/models/ocr_det.onnx 1,3,480,640`, and answers each with one line:

    ms SMALLEST MEAN RUNS       CPU time of a run in a batch of about 0.2 seconds, all threads together
    error WORDS                 the model cannot be loaded or run

The first line of a model loads it and runs it three times before the batch.
"""

import sys
import time

import numpy as np

SECONDS = 0.2
LEAST_RUNS = 3


def serve(load):
    """Answers until the input ends. `load(path, shape)` returns a function that runs the model once."""
    loaded = {}
    for line in sys.stdin:
        try:
            path, shape = line.split()
            if (path, shape) not in loaded:
                loaded[path, shape] = load(path, [int(size) for size in shape.split(",")])
                for _ in range(3):
                    loaded[path, shape]()
            smallest, mean, runs = batch(loaded[path, shape])
            print(f"ms {smallest:.4f} {mean:.4f} {runs}", flush=True)
        except Exception as problem:  # any failure of a peer is an answer; the process goes on
            print("error", " ".join(str(problem).split())[:300], flush=True)


def batch(run):
    times, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(times) < LEAST_RUNS:
        start = time.process_time_ns()
        run()
        times.append((time.process_time_ns() - start) / 1e6)
    return min(times), sum(times) / len(times), len(times)


def values(shape):
    return np.random.default_rng(0).random(shape, dtype=np.float32)
