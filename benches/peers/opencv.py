"""What OpenCV takes for the works of `vramp bench`, at 1920x1080 on one thread, in CPU time.

Needs `pip install opencv-python-headless numpy`. Prints one line a measurement: work, milliseconds of CPU time a frame.
Names of works may be given; all are measured otherwise. Run by `cargo bench --bench speed`, which sets both programs
side by side. Whatever a call needs is allocated beforehand, as a careful user would.
"""

import math
import sys
import time

import cv2
import numpy as np

WIDTH, HEIGHT = 1920, 1080
SECONDS = 0.2
WHITE, GREEN = (255, 255, 255, 255), (0, 255, 0, 255)
FONT = cv2.FONT_HERSHEY_SIMPLEX


def measure(work, frame):
    """CPU time of one call over a stretch of calls, the median of three stretches: as vramp measures itself."""
    for _ in range(3):
        frame()
    stretches = []
    for _ in range(3):
        calls, end, start = 0, time.perf_counter() + SECONDS, time.process_time_ns()
        while time.perf_counter() < end:
            frame()
            calls += 1
        stretches.append((time.process_time_ns() - start) / calls)
    print(f"{work} {sorted(stretches)[1] / 1e6:.4f}", flush=True)


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


def picture(seed):
    """A smooth gradient with a little noise and a green field, as `vramp bench` has it."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    grain = np.random.default_rng(seed).integers(0, 16, (HEIGHT, WIDTH))
    out = np.full((HEIGHT, WIDTH, 4), 255, np.uint8)
    out[..., 0] = x * 239 // WIDTH + grain
    out[..., 1] = y * 239 // HEIGHT + grain
    out[..., 2] = (x + y) * 239 // (WIDTH + HEIGHT) + grain
    out[HEIGHT // 4 : HEIGHT // 2, WIDTH // 4 : WIDTH // 2, :3] = (20, 220, 30)
    return out


def filters():
    """Every single filter that OpenCV has too, as (work, call)."""
    a, b = picture(0), picture(1)
    b[..., 3] = 128
    d, x1, x2, alpha = (np.empty_like(a) for _ in range(4))
    g, gx, gy = (np.empty((HEIGHT, WIDTH), np.uint8) for _ in range(3))
    s16 = np.empty((HEIGHT, WIDTH), np.int16)
    smaller = np.empty((720, 1280, 4), np.uint8)
    half = np.empty((HEIGHT // 2, WIDTH // 2, 4), np.uint8)
    turned = np.empty((WIDTH, HEIGHT, 4), np.uint8)
    yuv = np.empty((HEIGHT * 3 // 2, WIDTH), np.uint8)
    nv12 = cv2.cvtColor(a, cv2.COLOR_RGBA2YUV_I420)
    hsv = np.empty((HEIGHT, WIDTH, 3), np.uint8)
    repeat = cv2.BORDER_REPLICATE
    gamma = np.array([round(255 * (v / 255) ** (1 / 2.2)) for v in range(256)], np.uint8)
    matrix = np.eye(4, dtype=np.float32)
    matrix[:3, :3] = 0.3 * np.array([0.2126, 0.7152, 0.0722]) + 0.7 * np.eye(3)
    to_yiq = np.array([[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])
    sin, cos = math.sin(math.radians(40)), math.cos(math.radians(40))
    hue = np.eye(4, dtype=np.float32)
    hue[:3, :3] = np.linalg.inv(to_yiq) @ np.array([[1, 0, 0], [0, cos, sin], [0, -sin, cos]]) @ to_yiq
    sharper = np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], np.float32)
    emboss = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32)
    cells5 = np.array([[(i * 5 + j) % 7 - 2 for j in range(5)] for i in range(5)], np.float32) / 16
    cells7 = np.array([[(i * 7 + j) % 9 - 3 for j in range(7)] for i in range(7)], np.float32) / 32
    warp = np.array([[0.95, -0.2, 120], [0.2, 0.95, -80]])

    def over():
        cv2.mixChannels([b], [alpha], [3, 0, 3, 1, 3, 2, 3, 3])
        cv2.multiply(b, alpha, dst=x1, scale=1 / 255.0)
        cv2.bitwise_not(alpha, dst=alpha)
        cv2.multiply(a, alpha, dst=x2, scale=1 / 255.0)
        cv2.add(x1, x2, dst=d)

    def threshold():
        cv2.cvtColor(a, cv2.COLOR_RGBA2GRAY, dst=g)
        cv2.threshold(g, 127, 255, cv2.THRESH_BINARY, dst=g)

    def sobel():
        cv2.cvtColor(a, cv2.COLOR_RGBA2GRAY, dst=g)
        cv2.Sobel(g, cv2.CV_16S, 1, 0, dst=s16)
        cv2.convertScaleAbs(s16, dst=gx)
        cv2.Sobel(g, cv2.CV_16S, 0, 1, dst=s16)
        cv2.convertScaleAbs(s16, dst=gy)
        cv2.addWeighted(gx, 0.5, gy, 0.5, 0, dst=gx)

    def chroma_key():
        cv2.cvtColor(a, cv2.COLOR_RGB2HSV, dst=hsv)
        cv2.inRange(hsv, (40, 80, 60), (80, 255, 255), dst=g)
        np.copyto(d, a)
        cv2.copyTo(b, g, d)

    def luma():
        """In place, on a picture that is there."""
        cv2.cvtColor(d, cv2.COLOR_RGBA2GRAY, dst=g)
        means = np.rint(cv2.reduce(g, 0, cv2.REDUCE_AVG, dtype=cv2.CV_32F)[0]).astype(np.int32)
        low = HEIGHT - HEIGHT // 4
        cv2.convertScaleAbs(d[low:], dst=d[low:], alpha=0.5)
        rows = HEIGHT - 1 - means * (HEIGHT // 4 - 1) // 255
        columns = np.arange(WIDTH)
        d[rows, columns] = d[rows - 1, columns] = GREEN

    def four():
        for i in range(4):
            top, left = i // 2 * HEIGHT // 2, i % 2 * WIDTH // 2
            cv2.resize(a, (WIDTH // 2, HEIGHT // 2), dst=half, interpolation=cv2.INTER_LINEAR)
            d[top : top + HEIGHT // 2, left : left + WIDTH // 2] = half

    def scaled(filter):
        return lambda: cv2.resize(a, (1280, 720), dst=smaller, interpolation=filter)

    return {
        "brightness_contrast": lambda: cv2.convertScaleAbs(a, dst=d, alpha=1.2, beta=10),
        "gamma": lambda: cv2.LUT(a, gamma, dst=d),
        "invert": lambda: cv2.bitwise_not(a, dst=d),
        "gray": lambda: cv2.cvtColor(a, cv2.COLOR_RGBA2GRAY, dst=g),
        "gray_rgba": lambda: cv2.cvtColor(cv2.cvtColor(a, cv2.COLOR_RGBA2GRAY, dst=g), cv2.COLOR_GRAY2RGBA, dst=d),
        "threshold": threshold,
        "color_matrix": lambda: cv2.transform(a, matrix, dst=d),
        "hue": lambda: cv2.transform(a, hue, dst=d),
        "chroma_key": chroma_key,
        "gauss9_s2": lambda: cv2.GaussianBlur(a, (9, 9), 2, dst=d, borderType=repeat),
        "box9": lambda: cv2.blur(a, (9, 9), dst=d, borderType=repeat),
        "box3": lambda: cv2.blur(a, (3, 3), dst=d, borderType=repeat),
        "median3": lambda: cv2.medianBlur(a, 3, dst=d),
        "median5": lambda: cv2.medianBlur(a, 5, dst=d),
        "sharpen3x3": lambda: cv2.filter2D(a, -1, sharper, dst=d, borderType=repeat),
        "convolve3": lambda: cv2.filter2D(a, -1, emboss, dst=d, borderType=repeat),
        "convolve5": lambda: cv2.filter2D(a, -1, cells5, dst=d, borderType=repeat),
        "convolve7": lambda: cv2.filter2D(a, -1, cells7, dst=d, borderType=repeat),
        "sobel_rgba_to_mag8": sobel,
        "resize_nearest": scaled(cv2.INTER_NEAREST),
        "resize_bilinear": scaled(cv2.INTER_LINEAR),
        "resize_area": scaled(cv2.INTER_AREA),
        "resize_area_half": lambda: cv2.resize(a, (WIDTH // 2, HEIGHT // 2), dst=half, interpolation=cv2.INTER_AREA),
        "resize_lanczos": scaled(cv2.INTER_LANCZOS4),
        "crop": lambda: np.copyto(half, a[: HEIGHT // 2, : WIDTH // 2]),
        "flip_h": lambda: cv2.flip(a, 1, dst=d),
        "flip_v": lambda: cv2.flip(a, 0, dst=d),
        "rotate_90": lambda: cv2.rotate(a, cv2.ROTATE_90_CLOCKWISE, dst=turned),
        "rotate_180": lambda: cv2.rotate(a, cv2.ROTATE_180, dst=d),
        "warp": lambda: cv2.warpAffine(a, warp, (WIDTH, HEIGHT), dst=d, flags=cv2.INTER_LINEAR),
        "blend_const": lambda: cv2.addWeighted(a, 0.7, b, 0.3, 0, dst=d),
        "blend_over": over,
        "waveform_luma": luma,
        "compositor4": four,
        "rgba_to_i420": lambda: cv2.cvtColor(a, cv2.COLOR_RGBA2YUV_I420, dst=yuv),
        "nv12_to_rgba": lambda: cv2.cvtColor(nv12, cv2.COLOR_YUV2RGBA_NV12, dst=d),
    }


if __name__ == "__main__":
    cv2.setNumThreads(1)
    works = {"chain5": chain5(), "demo_copying": demo(True), "demo_in_place": demo(False), **filters()}
    for work, frame in works.items():
        if len(sys.argv) == 1 or work in sys.argv[1:]:
            measure(work, frame)
