"""Writes the pictures that tests compare `resample` with.

Owns the references: areas by OpenCV where both sides shrink or both grow, otherwise in NumPy's doubles, side by side;
Lanczos in NumPy's doubles, written from its formula and not from the Rust code.
Does not share anything with the code under test.

Usage: python resample.py FOLDER, with numpy and opencv-python-headless==5.0.0.93. The FOLDER is ../data/resample; its
README.md says what is in it.
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


def source(w, h):
    """Noise, with a few flat and steep places in it, made from the size alone, on both sides."""
    frame = pcg(pcg(w * 1000 + h))
    hashed = np.array([pcg((i + frame) & (2**32 - 1)) for i in range(w * h)], np.int64).reshape(h, w)
    picture = np.stack([hashed & 255, hashed >> 8 & 255, hashed >> 16 & 255, (hashed & 255) ^ 0x5A], -1)
    picture = picture.astype(np.uint8)
    picture[h // 3 : h // 2, w // 4 : w // 2] = (255, 0, 255, 255)
    picture[h // 2 :, w // 2 :] //= 8
    return picture


def area_weights(source, made):
    """How much of each source pixel each new one covers, as parts of the new one."""
    edges = np.arange(made + 1) * (source / made)
    pixels = np.arange(source)
    covered = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    return np.maximum(covered, 0) * (made / source)


def lanczos_weights(source, made):
    """sinc(x) sinc(x/3) for |x| < 3, from centre to centre, wider where there are fewer; what is outside is left out."""
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

(folder / "cases.txt").write_text("\n".join(cases) + "\n")
