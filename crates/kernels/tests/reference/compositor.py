"""Writes the reference images of `compositor`.

OpenCV scales each image into a slice of the whole. The slices are computed in plain integers from the definition of the
layouts. It shares no code with the kernels.

Usage: python compositor.py FOLDER, with numpy and opencv-python-headless==5.0.0.93. The FOLDER is ../data/compositor;
its README.md describes the files.
"""

from math import ceil, sqrt

import cv2
import numpy as np

from golden import finish, rnd, source, write


def slices(layout, count, w, h):
    """Left, top, right and bottom of each cell."""
    if layout == "pip":
        yield 0, 0, w, h
        across, down = max(1, w // 4), max(1, h // 4)
        in_a_row = min(4, w // across)
        for i in range(count - 1):
            right, bottom = w - i % in_a_row * across, h - i // in_a_row * down
            yield (right - across, bottom - down, right, bottom) if bottom >= down else (0, 0, 0, 0)
        return
    columns = {"grid": ceil(sqrt(count)), "row": count, "column": 1}[layout]
    rows = ceil(count / columns)
    for i in range(count):
        x, y = i % columns, i // columns
        yield rnd(x * w, columns), rnd(y * h, rows), rnd((x + 1) * w, columns), rnd((y + 1) * h, rows)


def composed(layout, sizes, w, h):
    whole = np.zeros((h, w, 4), np.uint8)
    whole[..., 3] = 255
    for (W, H), (left, top, right, bottom) in zip(sizes, slices(layout, len(sizes), w, h)):
        if left < right and top < bottom:
            place = (right - left, bottom - top)
            whole[top:bottom, left:right] = cv2.resize(source(W, H), place, interpolation=cv2.INTER_LINEAR)
    return whole


SOURCES = [(17, 13), (8, 6), (1, 1), (33, 5), (20, 30), (1, 9), (12, 1), (40, 24)]
for w, h in [(1, 1), (3, 7), (21, 16), (40, 24)]:
    for layout in ["grid", "row", "column", "pip"]:
        for count in range(1, 9):
            # Different images in different cells, including some that fill theirs or are twice as large.
            sizes = [SOURCES[(i + count + w) % 8] for i in range(count)]
            if (w, h) == (40, 24) and count % 2 == 0:
                sizes = [(40, 24), (20, 12)] * (count // 2)
            write(f"{layout} " + " ".join(f"{W}x{H}" for W, H in sizes), composed(layout, sizes, w, h))

finish()
