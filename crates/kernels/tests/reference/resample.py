"""Writes the reference images of `resample`.

Areas are computed by OpenCV if both sides shrink or both grow, otherwise in NumPy doubles, one axis at a time. Lanczos
is computed in NumPy doubles, from its formula. It shares no code with the kernels.

Usage: python resample.py FOLDER, with numpy and opencv-python-headless==5.0.0.93. The FOLDER is ../data/resample; its
README.md describes the files.
"""

import cv2
import numpy as np

from golden import finish, source, write


def area_weights(source, made):
    """The share of each source pixel in each new one."""
    edges = np.arange(made + 1) * (source / made)
    pixels = np.arange(source)
    covered = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    return np.maximum(covered, 0) * (made / source)


def lanczos_weights(source, made):
    """sinc(x) sinc(x/3) for |x| < 3, from centre to centre, wider if the image shrinks; taps outside are left out."""
    scale = source / made
    centres = (np.arange(made) + 0.5) * scale
    x = (np.arange(source) + 0.5 - centres[:, None]) / max(scale, 1)
    weights = np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)
    return weights / weights.sum(1, keepdims=True)


def summed(picture, w, h, weights):
    H, W, _ = picture.shape
    sums = np.einsum("yr,xc,rcn->yxn", weights(H, h), weights(W, w), picture.astype(np.float64), optimize=True)
    return np.clip(np.floor(sums + 0.5), 0, 255).astype(np.uint8)


RESIZES = [((1, 1), (1, 1)), ((1, 1), (9, 5)), ((1, 7), (3, 4)), ((9, 1), (4, 2)), ((17, 13), (17, 13)), ((2, 2), (37, 23))]
RESIZES += [((17, 13), (34, 26)), ((17, 13), (8, 6)), ((17, 13), (40, 5)), ((17, 13), (3, 31)), ((17, 13), (1, 1))]
RESIZES += [((64, 48), (32, 24)), ((64, 48), (21, 16)), ((64, 48), (63, 47)), ((64, 48), (7, 48)), ((64, 48), (43, 32))]
RESIZES += [((63, 48), (21, 16)), ((96, 60), (20, 12)), ((40, 30), (97, 61)), ((700, 90), (5, 7)), ((90, 700), (40, 2))]
for (W, H), (w, h) in RESIZES:
    picture = source(W, H)
    wanted = summed(picture, w, h, area_weights)
    if (W >= w) == (H >= h) or W == w or H == h:
        theirs = cv2.resize(picture, (w, h), interpolation=cv2.INTER_AREA)
        assert np.abs(theirs.astype(int) - wanted).max() <= 1, ((W, H), (w, h))
        wanted = theirs
    write(f"area from={W}x{H}", wanted)
    write(f"lanczos from={W}x{H}", summed(picture, w, h, lanczos_weights))

finish()
