"""What Python costs per frame, in CPU time of all threads, above the same pipeline into `null`; and an OpenCV loop beside it.

    pip install target/wheels/vramp-*.whl numpy opencv-python-headless
    python benches/python/frames.py [clip.mp4]

Every figure is the median of rounds in which all measurements take turns. Without a clip, one of 300 frames of 1920x1080 is
made with ffmpeg.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import vramp

ROUNDS = 7
SMALL = 20_000
LARGE = 1_000


def cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def seconds() -> float:
    return cpu(resource.RUSAGE_SELF) + cpu(resource.RUSAGE_CHILDREN)


@vramp.handler("bench-pass")
class Pass(vramp.Handler):
    def process(self, tick: vramp.Tick) -> vramp.Frame:
        return tick.input


@vramp.handler("bench-touch")
class Touch(vramp.Handler):
    def process(self, tick: vramp.Tick) -> vramp.Frame:
        frame = tick.take()
        np.asarray(frame)[0, 0, 0] = 7
        return frame


def solid(size: str, frames: int) -> str:
    return f"pattern kind=solid label=false size={size} frames={frames}"


def run(text: str, threads: int | None = 1) -> Callable[[], object]:
    return lambda: vramp.run(text, gpu=False, threads=threads)


def iterate(text: str, threads: int | None = 1, array: bool = True) -> Callable[[], object]:
    def loop() -> None:
        for frame in vramp.Pipeline(text, gpu=False, threads=threads):
            if array:
                np.asarray(frame)

    return loop


def deleting(text: str) -> Callable[[], object]:
    """Gives the frame back before the next one, so that the next one uses the same memory, which is in the cache."""

    def loop() -> None:
        for frame in vramp.Pipeline(text, gpu=False, threads=1):
            np.asarray(frame)
            del frame

    return loop


def interleaved(measured: dict[str, Callable[[], object]], frames: int) -> dict[str, float]:
    """Microseconds of CPU time per frame, by name."""
    times: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(ROUNDS):
        for name, act in measured.items():
            begun = seconds()
            act()
            times[name].append((seconds() - begun) / frames * 1e6)
    return {name: statistics.median(own) for name, own in times.items()}


def small() -> None:
    source = solid("64x48", SMALL)
    found = interleaved(
        {
            "null, 1 thread": run(f"{source} ! null"),
            "handler that passes on": run(f"{source} ! bench-pass ! null"),
            "handler that takes and writes": run(f"{source} ! bench-touch ! null"),
            "iterated, caller's thread": iterate(f"{source} ! app", array=False),
            "iterated as numpy, caller's thread": iterate(f"{source} ! app"),
            "null, all threads": run(f"{source} ! null", None),
            "iterated as numpy, across threads": iterate(f"{source} ! app", None),
        },
        SMALL,
    )
    print(f"64x48, {SMALL} frames, us of CPU time per frame")
    base = found["null, 1 thread"]
    for name, time in found.items():
        own = found["null, all threads"] if "across" in name else base
        print(f"  {name:38} {time:8.2f}   above null {time - own:6.2f}")


def large() -> None:
    source = solid("1920x1080", LARGE)
    print(f"1920x1080, {LARGE} frames, us of CPU time per frame")
    for chain in (source, f"{source} ! blur sigma=2"):
        found = interleaved(
            {
                "null": run(f"{chain} ! null"),
                "iterated": iterate(f"{chain} ! app"),
                "iterated with `del`": deleting(f"{chain} ! app"),
            },
            LARGE,
        )
        times = ", ".join(f"{name} {time:.0f} ({time / found['null']:.2f}x)" for name, time in found.items())
        print(f"  {'blurred' if 'blur' in chain else 'filled'}: {times}")
    pipeline = vramp.Pipeline(f"{source} ! app", gpu=False, threads=1)
    addresses = {np.asarray(frame).__array_interface__["data"][0] for frame in pipeline}
    report = pipeline.report
    assert report is not None
    print(f"  {report.counters['frame_copies']} copies, {len(addresses)} addresses, {report.frames_out} frames")


def beside_opencv(clip: str) -> None:
    import cv2

    cv2.setNumThreads(1)
    table = np.clip(np.arange(256) * 1.2 + 0.04 * 255, 0, 255).astype(np.uint8)

    def theirs(act: Callable[[np.ndarray], np.ndarray]) -> Callable[[], object]:
        def loop() -> int:
            capture = cv2.VideoCapture(clip, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
            count = 0
            while True:
                there, frame = capture.read()
                if not there:
                    return count
                act(frame)
                count += 1

        return loop

    def filters(frame: np.ndarray) -> np.ndarray:
        return cv2.bitwise_not(cv2.LUT(cv2.GaussianBlur(frame, (0, 0), 2), table))

    ours = f"video {clip} ! blur sigma=2 ! contrast 1.2 pivot=0 ! brightness 0.04 ! invert ! app"
    frames = sum(1 for _ in vramp.Pipeline(f"video {clip} ! app", gpu=False, threads=1))
    found = interleaved(
        {
            "vramp, read only": iterate(f"video {clip} ! app"),
            "OpenCV, read only": theirs(lambda frame: frame),
            "vramp, 3 filters": iterate(ours),
            "OpenCV, 3 filters": theirs(filters),
        },
        frames,
    )
    print(f"{Path(clip).name}, {frames} frames, us of CPU time per frame, decoding included")
    for name, time in found.items():
        print(f"  {name:20} {time:10.0f}")
    print(f"  read only {found['vramp, read only'] / found['OpenCV, read only']:.2f}x", end=", ")
    print(f"3 filters {found['vramp, 3 filters'] / found['OpenCV, 3 filters']:.2f}x")
    capture = cv2.VideoCapture(clip)
    differences = []
    for frame in vramp.Pipeline(ours, gpu=False, threads=1, frames=20):
        _, other = capture.read()
        wanted = cv2.cvtColor(filters(other), cv2.COLOR_BGR2RGB).astype(int)
        differences.append(np.abs(np.asarray(frame)[..., :3].astype(int) - wanted))
    every = np.stack(differences)
    print(f"  pixels differ by {every.mean():.2f} levels on average, {np.percentile(every, 99):.0f} at the 99th percentile")


def made_clip(folder: str) -> str:
    path = os.path.join(folder, "clip.mp4")
    words = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=1920x1080:rate=30:duration=10"]
    # OpenCV takes every clip for BT.601.
    words += ["-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-colorspace", "smpte170m"]
    words += ["-threads", "2", path]
    subprocess.run(words, check=True)
    return path


def main() -> None:
    small()
    large()
    with tempfile.TemporaryDirectory() as folder:
        beside_opencv(sys.argv[1] if len(sys.argv) > 1 else made_clip(folder))


if __name__ == "__main__":
    main()
