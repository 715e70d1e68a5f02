"""Writes the reference images of colour tables, keys, crops, rotations and affine maps.

The references are NumPy in double precision, from the formulas, and OpenCV. It shares no code with the kernels.

Usage: python point.py FOLDER, with numpy and opencv-python-headless==5.0.0.93. The FOLDER is ../data/point; its
README.md describes the files.
"""

import cv2
import numpy as np

from golden import finish, pcg, rounded, source, write

SIZES = [(1, 1), (1, 7), (9, 1), (17, 13), (41, 35)]

# ---- crops and rotations

for (W, H), (x, y), (w, h) in [
    ((1, 1), (0, 0), (1, 1)),
    ((17, 13), (0, 0), (17, 13)),
    ((17, 13), (3, 2), (9, 10)),
    ((17, 13), (16, 12), (1, 1)),
    ((41, 35), (20, 0), (21, 35)),
]:
    write(f"crop from={W}x{H} x={x} y={y}", source(W, H)[y : y + h, x : x + w])
for W, H in SIZES:
    for degrees, code in [
        (90, cv2.ROTATE_90_CLOCKWISE),
        (180, cv2.ROTATE_180),
        (270, cv2.ROTATE_90_COUNTERCLOCKWISE),
    ]:
        write(f"rotate from={W}x{H} degrees={degrees}", cv2.rotate(source(W, H), code).reshape(
            (W, H, 4) if degrees != 180 else (H, W, 4)))

# ---- affine maps


def warp(picture, m):
    """Each pixel from the four source pixels around its position, in double precision; transparent beyond the source."""
    h, w = picture.shape[:2]
    back = np.linalg.inv(np.vstack([np.array(m, float).reshape(2, 3), [0, 0, 1]]))
    y, x = np.mgrid[0:h, 0:w].astype(float)
    u = back[0, 0] * x + back[0, 1] * y + back[0, 2]
    v = back[1, 0] * x + back[1, 1] * y + back[1, 2]
    u, v = np.clip(u, -9, w + 9), np.clip(v, -9, h + 9)
    i, j = np.floor(u).astype(int), np.floor(v).astype(int)
    padded = np.pad(picture.astype(float), ((12, 12), (12, 12), (0, 0)))
    tap = lambda dx, dy: padded[j + dy + 12, i + dx + 12]
    a, b = (u - i)[..., None], (v - j)[..., None]
    top = tap(0, 0) * (1 - a) + tap(1, 0) * a
    bottom = tap(0, 1) * (1 - a) + tap(1, 1) * a
    return rounded(top * (1 - b) + bottom * b)


MAPS = [
    [1, 0, 0, 0, 1, 0],
    [1, 0, 3, 0, 1, -2],
    [1, 0, 0.5, 0, 1, 0.25],
    [0.9, -0.2, 4, 0.2, 0.9, -2],
    [0.7, -0.7, 12, 0.7, 0.7, -5],
    [-1, 0, 16, 0, 1, 0],
    [0, 1, 0, 1, 0, 0],
    [3.7, 0.1, -10, -0.2, 2.9, -7],
    [0.13, 0, 5, 0.02, 0.17, 4],
    [1, 0.5, -4, 0, 1, 0],
    [1000, 0, -8000, 0, 1000, -6000],
    [1, 0, 1e6, 0, 1, 0],
]
for m in MAPS:
    numbers = ",".join(repr(v) for v in m)
    for W, H in [(1, 1), (17, 13), (41, 35)]:
        write(f"warp m={numbers}", warp(source(W, H), m))
    found = cv2.warpAffine(source(41, 35), np.array(m, float).reshape(2, 3), (41, 35), flags=cv2.INTER_LINEAR)
    write(f"warp m={numbers}", found)

# ---- keys


def chromakey(picture, key, similarity, smooth):
    def chroma(c):
        r, g, b = (c[..., i] / 255 for i in range(3))
        return -0.168736 * r - 0.331264 * g + 0.5 * b, 0.5 * r - 0.418688 * g - 0.081312 * b

    (b, r), (kb, kr) = chroma(picture[..., :3].astype(float)), chroma(np.array(key, float))
    d = np.sqrt((b - kb) ** 2 + (r - kr) ** 2)
    kept = np.clip((d - similarity) / smooth, 0, 1) if smooth else (d > similarity).astype(float)
    return np.dstack([picture[..., :3], rounded(picture[..., 3] * kept)])


for key, similarity, smooth in [
    ((0, 255, 0), 0.3, 0.1),
    ((0, 255, 0), 0.3, 0),
    ((0, 255, 0), 0.25, 0.5),
    ((255, 0, 255), 0, 0),
    ((255, 0, 255), 0, 1.5),
    ((10, 20, 250), 0.1, 0.001),
    ((128, 128, 128), 1.5, 0.2),
    ((31, 0, 31), 0.02, 0.05),
]:
    settings = f"key={key[0]},{key[1]},{key[2]} similarity={similarity} smooth={smooth}"
    for W, H in [(1, 1), (17, 13), (41, 35)]:
        write(f"chromakey {settings}", chromakey(source(W, H), key, similarity, smooth))

# ---- 3D colour tables, which follow from their size alone, here and in the tests


def cube(along, low, high):
    count = along**3
    hashed = np.array([[pcg((3 * i + c + 77 * along) & (2**32 - 1)) for c in range(3)] for i in range(count)], np.int64)
    return (low + (high - low) * ((hashed >> 8) / 2**24)).astype(np.float32).astype(float)


def tetrahedral(picture, entries, along, minimum, maximum):
    place = (picture[..., :3] / 255.0 - minimum) / (maximum - minimum)
    place = np.clip(place, 0, 1) * (along - 1)
    low = np.minimum(np.floor(place), along - 2).astype(int)
    f = place - low
    steps = np.array([1, along, along * along])
    order = np.argsort(-f, axis=-1, kind="stable")
    at = (low * steps).sum(-1)
    before, total = np.ones(f.shape[:2]), np.zeros(f.shape)
    for k in range(3):
        axis = order[..., k]
        here = np.take_along_axis(f, axis[..., None], -1)[..., 0]
        total += (before - here)[..., None] * entries[at]
        before, at = here, at + steps[axis]
    total += before[..., None] * entries[at]
    return np.dstack([rounded(255 * total), picture[..., 3]])


for along, low, high, minimum, maximum in [
    (2, 0, 1, 0, 1),
    (3, -0.25, 1.25, 0, 1),
    (17, 0, 1, 0, 1),
    (33, -0.1, 1.1, 0, 1),
    (5, 0, 1, 0.1, 0.8),
    (5, 0, 1, -1, 2),
    (4, -1, 2, 0, 1),
    (4, -5, 5, 0, 1),
    (4, -16, 16, 0, 1),
]:
    entries = cube(along, low, high)
    for W, H in [(1, 1), (17, 13), (41, 35)]:
        settings = f"along={along} low={low} high={high} min={minimum} max={maximum}"
        write(f"cube {settings}", tetrahedral(source(W, H), entries, along, minimum, maximum))

finish()
