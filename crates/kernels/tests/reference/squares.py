"""Writes the reference images of `convolve`, of `sharpen` (a `convolve`), and of `edges`.

The references are NumPy in double precision, from the formulas. OpenCV must agree with each of them within a level,
otherwise nothing is written. It shares no code with the kernels.

Usage: python squares.py FOLDER, with numpy and opencv-python-headless==5.0.0.93. The FOLDER is ../data/squares; its
README.md describes the files.
"""

import cv2
import numpy as np

import golden
from golden import finish, pcg, rounded, source


def write(line, picture, by_opencv):
    """One case: its settings as words, and the expected image."""
    apart = np.abs(picture.astype(int) - by_opencv.astype(int))
    assert apart.max() <= 1, f"{line}: OpenCV is {apart.max()} levels away"
    golden.write(line, picture)


# ---- convolve


def convolve(picture, kernel, divisor, bias):
    side = int(len(kernel) ** 0.5)
    reach = side // 2
    h, w, _ = picture.shape
    rows = np.clip(np.arange(-reach, h + reach), 0, h - 1)
    columns = np.clip(np.arange(-reach, w + reach), 0, w - 1)
    wide = picture[rows][:, columns].astype(np.float64)
    total = np.full(picture.shape, float(bias))
    for at, weight in enumerate(kernel):
        y, x = divmod(at, side)
        total += weight / divisor * wide[y : y + h, x : x + w]
    made = rounded(total)
    made[..., 3] = picture[..., 3]
    return made


def by_filter2d(picture, kernel, divisor, bias):
    side = int(len(kernel) ** 0.5)
    weights = np.array(kernel, np.float64).reshape(side, side) / divisor
    made = cv2.filter2D(picture, -1, weights, delta=bias, borderType=cv2.BORDER_REPLICATE)
    made[..., 3] = picture[..., 3]
    return made


def sharpen(a):
    return [0, -a, 0, -a, 1 + 4 * a, -a, 0, -a, 0]


def bell(side, sigma):
    along = np.exp(-((np.arange(side) - side // 2) ** 2) / (2 * sigma**2))
    return [float(v) for v in np.outer(along, along).ravel()]


def mixed(side, most):
    """Weights of both signs, a few of them 0, in quarters."""
    return [(pcg(i + side) % (8 * most + 1) - 4 * most) / 4 if pcg(i) % 5 else 0 for i in range(side * side)]


# Kernel, divisor, bias, and the tolerance in levels: 0 if all numbers are binary fractions.
KERNELS = [
    ([-2, -1, 0, -1, 1, 1, 0, 1, 2], 1, 0, 0),
    ([1, 2, 1, 2, 4, 2, 1, 2, 1], 16, 0, 0),
    ([-1, 0, 1, -2, 0, 2, -1, 0, 1], 1, 128, 0),
    ([-1, -1, -1, -1, 8, -1, -1, -1, -1], -1, 0.5, 0),
    ([1] * 9, 9, 0, 1),
    ([0] * 9, 1, 77, 0),
    ([0, 0, 0, 0, 0, 1, 0, 0, 0], 1, 0, 0),
    ([100, -50, 3, 7, -61, 2, 0, 0, 1], 1, -3, 0),
    ([2000, 0, 0, 0, 0, 0, 0, 0, -50], 1, 0, 0),
    ([600.7, -600.7, 0, 0, 0.3, 0, 0, 210.1, -210.2], 1.3, -65536, 1),
    ([0, 0, 0, 0, 1.7, 0, 0, 0, 0], 1, 65536, 1),
    (sharpen(1), 1, 0, 0),
    (sharpen(0.5), 1, 0, 0),
    (sharpen(0.3), 1, 0, 1),
    (sharpen(-0.2), 1, 0, 1),
    (sharpen(0), 1, 0, 0),
    (sharpen(16), 1, 0, 0),
    (sharpen(-15.9), 1, 0, 1),
    (bell(5, 1.1), sum(bell(5, 1.1)), 0, 1),
    (mixed(5, 4), 1, 10, 0),
    (mixed(5, 4), 3.7, -20.3, 1),
    ([1] * 25, 25, 0, 1),
    (bell(7, 1.6), sum(bell(7, 1.6)), 0, 1),
    (mixed(7, 9), 1, 0, 0),
    (mixed(7, 9), -11.3, 99.9, 1),
    ([1] * 49, 49, 0, 1),
]
TINY = [(1, 1), (1, 7), (9, 1), (2, 2)]


def text(numbers):
    return ",".join(repr(float(v)) for v in numbers)


for at, (kernel, divisor, bias, off) in enumerate(KERNELS):
    for w, h in [(17, 13), (70, 9)] + (TINY if at in (0, 4, 22) else []):
        made = convolve(source(w, h), kernel, divisor, bias)
        opencv = by_filter2d(source(w, h), kernel, divisor, bias)
        write(f"convolve kernel={text(kernel)} divisor={divisor!r} bias={bias!r} off={off}", made, opencv)

# ---- edges


def gray_of(picture):
    r, g, b = (picture[..., i].astype(int) for i in range(3))
    return (9798 * r + 19235 * g + 3735 * b + 16384) >> 15


def mirrored(at, n):
    """Mirrors a position before the first or after the last."""
    return 0 if n == 1 else n - 1 - abs(n - 1 - abs(at))


def edges(picture):
    gray = gray_of(picture)
    h, w = gray.shape
    rows, columns = [mirrored(y, h) for y in range(-1, h + 1)], [mirrored(x, w) for x in range(-1, w + 1)]
    wide = gray[rows][:, columns]
    gx, gy = np.zeros((h, w), int), np.zeros((h, w), int)
    for y, down in enumerate([1, 2, 1]):
        for x, along in enumerate([1, 2, 1]):
            gx += (x - 1) * down * wide[y : y + h, x : x + w]
            gy += (y - 1) * along * wide[y : y + h, x : x + w]
    steep = rounded((np.minimum(255, abs(gx)) + np.minimum(255, abs(gy))) / 2)
    return np.stack([steep, steep, steep, picture[..., 3]], -1)


def by_sobel(picture):
    gray = cv2.cvtColor(picture, cv2.COLOR_RGBA2GRAY)
    assert (gray == gray_of(picture)).all()
    along = cv2.Sobel(gray, cv2.CV_16S, 1, 0, borderType=cv2.BORDER_REFLECT_101)
    down = cv2.Sobel(gray, cv2.CV_16S, 0, 1, borderType=cv2.BORDER_REFLECT_101)
    # OpenCV rounds halves to even here, which differs by at most one level.
    steep = cv2.addWeighted(cv2.convertScaleAbs(along), 0.5, cv2.convertScaleAbs(down), 0.5, 0)
    return np.stack([steep, steep, steep, picture[..., 3]], -1)


for w, h in TINY + [(2, 9), (3, 1), (17, 13), (64, 5), (70, 9), (131, 3)]:
    write("edges off=0", edges(source(w, h)), by_sobel(source(w, h)))

finish()
