"""Writes the reference images of `boxblur` and `median`.

Both are computed by OpenCV, and the mean a second time in NumPy integers, from its definition. It shares no code with
the kernels.

Usage: python box.py FOLDER, with numpy and opencv-python-headless==5.0.0.93. The FOLDER is ../data/box; its README.md
describes the files.
"""

import cv2
import numpy as np

from golden import finish, source, write


def mean(picture, size):
    """The mean of every square, rounded half up."""
    half = size // 2
    wide = np.pad(picture.astype(np.int64), ((half, half), (half, half), (0, 0)), mode="edge")
    sums = np.cumsum(np.cumsum(np.pad(wide, ((1, 0), (1, 0), (0, 0))), 0), 1)
    squares = sums[size:, size:] - sums[:-size, size:] - sums[size:, :-size] + sums[:-size, :-size]
    return ((2 * squares + size * size) // (2 * size * size)).astype(np.uint8)


SIZES = [(1, 1), (1, 7), (7, 1), (3, 3), (2, 5), (17, 13), (24, 10)]
for size in (1, 3, 5, 7, 9, 15, 17, 31, 127, 257, 259, 1023):
    for w, h in SIZES + [(64, 37), (41, 66)]:
        picture = source(w, h)
        exact = mean(picture, size)
        opencv = cv2.blur(picture, (size, size), borderType=cv2.BORDER_REPLICATE)
        # OpenCV multiplies by a rounded factor.
        off = np.abs(exact.astype(int) - opencv).max()
        assert off <= 1, f"{w}x{h}, {size}: {off}"
        if (w, h) in SIZES or size in (9, 31, 257, 259, 1023):
            write(f"boxblur size={size}", exact)
for size in (3, 5):
    for w, h in SIZES + [(300, 4), (64, 37), (301, 6)]:
        write(f"median size={size}", cv2.medianBlur(source(w, h), size))

finish()
