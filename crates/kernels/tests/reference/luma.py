"""Writes the reference images of `luma`.

Brightness is computed by OpenCV, everything else in NumPy and plain integers, from the formula. It shares no code with
the kernels.

Usage: python luma.py FOLDER, with numpy and opencv-python-headless==5.0.0.93. The FOLDER is ../data/luma; its README.md
describes the files.
"""

import cv2
import numpy as np

from golden import finish, rnd, source, write


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


for w, h in [(1, 1), (5, 2), (9, 3), (9, 4), (4, 7), (17, 13), (64, 48), (33, 70), (3, 300)]:
    write("", luma(source(w, h)))
finish()
