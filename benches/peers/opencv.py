"""What OpenCV takes for the work of benches/speed.rs, on one thread, in CPU time.

Needs `pip install opencv-python-headless numpy`. Prints one line a measurement: work, milliseconds of CPU time a frame.
Run by `cargo bench --bench speed`, which sets both programs side by side.
"""

import math
import time

import cv2
import numpy as np

WIDTH, HEIGHT = 1920, 1080
SECONDS = 1.5
WHITE, GREEN = (255, 255, 255, 255), (0, 255, 0, 255)
FONT = cv2.FONT_HERSHEY_SIMPLEX


def measure(work, frame):
    """CPU time of one call, the median of as many as fit."""
    for _ in range(3):
        frame()
    took, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(took) < 5:
        start = time.process_time_ns()
        frame()
        took.append(time.process_time_ns() - start)
    print(f"{work} {sorted(took)[len(took) // 2] / 1e6:.4f}", flush=True)


def chain5():
    """Contrast and brightness, gamma, saturation, inversion, a blend with a second picture."""
    random = np.random.default_rng(1)
    one = random.integers(0, 256, (HEIGHT, WIDTH, 4), np.uint8)
    other = random.integers(0, 256, (HEIGHT, WIDTH, 4), np.uint8)
    out = np.empty_like(one)
    gamma = np.array([round(255 * (v / 255) ** (1 / 2.2)) for v in range(256)], np.uint8)
    luma = np.array([0.2126, 0.7152, 0.0722])
    saturation = np.eye(4, dtype=np.float32)
    saturation[:3, :3] = 0.3 * luma + 0.7 * np.eye(3)

    def frame():
        cv2.convertScaleAbs(one, dst=out, alpha=1.2, beta=10)
        cv2.LUT(out, gamma, dst=out)
        cv2.transform(out, saturation, dst=out)
        cv2.bitwise_not(out, dst=out)
        cv2.addWeighted(out, 0.7, other, 0.3, 0, dst=out)

    return frame


def demo(copying):
    """A ball, markers, a waveform and text: with a copy in every handler, or in one buffer."""
    kept = np.empty((HEIGHT, WIDTH, 4), np.uint8)
    columns = np.arange(0, WIDTH, 4)
    curve = np.empty((len(columns), 1, 2), np.int32)
    curve[:, 0, 0] = columns
    count = 0

    def color(hue, s, v):
        pixel = cv2.cvtColor(np.uint8([[[int(hue) % 180, s, v]]]), cv2.COLOR_HSV2RGB)[0, 0]
        return tuple(int(c) for c in pixel) + (255,)

    def handed(picture):
        return picture.copy() if copying else picture

    def text(picture, words, y, scale, shade):
        cv2.putText(picture, words, (20, y), FONT, scale, shade, 2)

    def frame():
        nonlocal count
        count += 1
        t = count / 60
        if copying:
            picture = np.full((HEIGHT, WIDTH, 4), color(30 * t, 50, 80), np.uint8)
        else:
            picture = kept
            cv2.rectangle(picture, (0, 0), (WIDTH - 1, HEIGHT - 1), color(30 * t, 50, 80), -1)
        swing = lambda speed, side: int(40 + abs((speed * t) % (2 * (side - 80)) - (side - 80)))
        cv2.circle(picture, (swing(400, WIDTH), swing(300, HEIGHT)), 40, color(120 * t, 255, 255), -1)
        text(picture, f"Frame: {count}", HEIGHT - 30, 0.8, WHITE)

        picture = handed(picture)
        p = int(128 + 127 * math.sin(3 * t))
        for x in (0, WIDTH - 30):
            for y in (0, HEIGHT - 30):
                cv2.rectangle(picture, (x, y), (x + 30, y + 30), (255, p, 0, 255), -1)
        cv2.rectangle(picture, (0, 0), (WIDTH - 1, HEIGHT - 1), (128, 255 - p, p, 255), 5)

        picture = handed(picture)
        curve[:, 0, 1] = HEIGHT // 2 + 50 * np.sin((columns + 100 * t) * 0.02)
        cv2.polylines(picture, [curve], False, (255, 255, 0, 255), 3)

        picture = handed(picture)
        text(picture, f"FPS: {60 + math.sin(t):.1f}", 40, 1.2, GREEN)
        text(picture, f"dt: {1000 / 60:.1f}ms", 75, 0.6, WHITE)
        text(picture, "Pipeline: 5 Handlers", 105, 0.6, WHITE)
        text(picture, "Delta Time: Enabled", 135, 0.6, GREEN)

    return frame


if __name__ == "__main__":
    cv2.setNumThreads(1)
    measure("chain5", chain5())
    measure("demo_copying", demo(True))
    measure("demo_in_place", demo(False))
