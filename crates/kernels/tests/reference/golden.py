"""Shared code of the reference scripts: sources, rounding, and the files of a folder of cases.

It knows no handler and shares no code with the kernels. It is a module, not a script, and needs numpy and opencv-
python-headless==5.0.0.93.
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
    """One case: its settings as words, and the expected image."""
    name = f"{len(cases):03}.rgba"
    h, w, channels = picture.shape
    assert channels == 4 and picture.dtype == np.uint8
    (folder / name).write_bytes(np.ascontiguousarray(picture).tobytes())
    cases.append(f"{name} {w}x{h} {line}".rstrip())


def finish():
    """The list of all cases."""
    (folder / "cases.txt").write_text("\n".join(cases) + "\n")


def rnd(a, b):
    """The nearest integer to a/b, half up."""
    return (2 * a + b) // (2 * b)


def rounded(v):
    """Levels, rounded half up and clamped to a byte."""
    return np.clip(np.floor(v + 0.5), 0, 255).astype(np.uint8)


def pcg(v):
    wrap = 2**32 - 1
    s = (v * 747796405 + 2891336453) & wrap
    t = (((s >> ((s >> 28) + 4)) ^ s) * 277803737) & wrap
    return (t >> 22) ^ t


def source(w, h):
    """Noise with a few flat and steep areas. It follows from the size alone, here and in the tests."""
    frame = pcg(pcg(w * 1000 + h & 2**32 - 1))
    hashed = np.array([pcg((i + frame) & (2**32 - 1)) for i in range(w * h)], np.int64).reshape(h, w)
    red = hashed & 255
    picture = np.stack([red, hashed >> 8 & 255, hashed >> 16 & 255, red ^ 0x5A], -1).astype(np.uint8)
    picture[h // 3 : h // 2, w // 4 : w // 2] = (255, 0, 255, 255)
    picture[h // 2 :, w // 2 :] //= 8
    return picture
