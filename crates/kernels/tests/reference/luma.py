"""Writes the pictures that tests compare `luma` with.

Owns the reference: brightness by OpenCV, everything else in NumPy and plain integers, written from the formula and not
from the Rust code.
Does not share anything with the code under test.

Usage: python luma.py FOLDER, with numpy and opencv-python-headless==5.0.0.93. The FOLDER is ../data/luma; its README.md
says what is in it.
"""

import sys
from pathlib import Path

import cv2
import numpy as np

if cv2.__version__ != "5.0.0":
    sys.exit(f"OpenCV 5.0.0 is the reference, this is {cv2.__version__}")

folder = Path(sys.argv[1])


def rnd(a, b):
    return (2 * a + b) // (2 * b)


def pcg(v):
    wrap = 2**32 - 1
    s = (v * 747796405 + 2891336453) & wrap
    t = (((s >> ((s >> 28) + 4)) ^ s) * 277803737) & wrap
    return (t >> 22) ^ t


def source(w, h):
    """Noise, with a few flat and steep places in it, made from the size alone, on both sides."""
    frame = pcg(pcg(w * 1000 + h))
    hashed = np.array([pcg((i + frame) & (2**32 - 1)) for i in range(w * h)], np.int64).reshape(h, w)
    picture = np.stack([hashed & 255, hashed >> 8 & 255, hashed >> 16 & 255, (hashed & 255) ^ 0x5A], -1)
    picture = picture.astype(np.uint8)
    picture[h // 3 : h // 2, w // 4 : w // 2] = (255, 0, 255, 255)
    picture[h // 2 :, w // 2 :] //= 8
    return picture


def luma(picture):
    h, w, _ = picture.shape
    sums = cv2.cvtColor(picture, cv2.COLOR_RGBA2GRAY).astype(np.int64).sum(0)
    made = picture.copy()
    made[h - h // 4 :, :, :3] //= 2
    for x in range(w):
        end = h - 1 - rnd(rnd(int(sums[x]), h) * (h // 4 - 1), 255)
        for y in (end - 1, end):
            if 0 <= y < h:
                made[y, x] = (0, 255, 0, 255)
    return made


cases = []
for w, h in [(1, 1), (5, 2), (9, 3), (9, 4), (4, 7), (17, 13), (64, 48), (33, 70), (3, 300)]:
    name = f"{len(cases):03}.rgba"
    (folder / name).write_bytes(luma(source(w, h)).tobytes())
    cases.append(f"{name} {w}x{h}")
(folder / "cases.txt").write_text("\n".join(cases) + "\n")
