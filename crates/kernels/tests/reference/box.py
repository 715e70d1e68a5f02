"""Writes the pictures that tests compare `boxblur` and `median` with.

Owns the references: both by OpenCV, and the mean once more in NumPy's whole numbers, written from its definition.
Does not share anything with the code under test.

Usage: python box.py FOLDER, with numpy and opencv-python-headless==5.0.0.93. The FOLDER is ../data/box; its README.md
says what is in it.
"""

import sys
from pathlib import Path

import cv2
import numpy as np

if cv2.__version__ != "5.0.0":
    sys.exit(f"OpenCV 5.0.0 is the reference, this is {cv2.__version__}")

folder = Path(sys.argv[1])
cases = []


def write(line, picture):
    """One case: its settings as words, and the picture that must come out."""
    name = f"{len(cases):03}.rgba"
    h, w, channels = picture.shape
    assert channels == 4 and picture.dtype == np.uint8
    (folder / name).write_bytes(picture.tobytes())
    cases.append(f"{name} {w}x{h} {line}")


def pcg(v):
    wrap = 2**32 - 1
    s = (v * 747796405 + 2891336453) & wrap
    t = (((s >> ((s >> 28) + 4)) ^ s) * 277803737) & wrap
    return (t >> 22) ^ t


# A source is made from its size alone, on both sides: noise, with a few flat and steep places in it.
def source(w, h):
    frame = pcg(pcg(w * 1000 + h))
    hashed = np.array([pcg((i + frame) & (2**32 - 1)) for i in range(w * h)], np.int64).reshape(h, w)
    picture = np.stack([hashed & 255, hashed >> 8 & 255, hashed >> 16 & 255, (hashed & 255) ^ 0x5A], 2).astype(np.uint8)
    picture[h // 3 : h // 2, w // 4 : w // 2] = (255, 0, 255, 255)
    picture[h // 2 :, w // 2 :] //= 8
    return picture


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

(folder / "cases.txt").write_text("\n".join(cases) + "\n")
