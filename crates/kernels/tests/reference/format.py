"""Writes the reference frames of conversions between formats.

The reference is NumPy in double precision, from the definitions of BT.601 and BT.709 in limited and full range. Chroma
is the mean of the area of the pixels it covers, moved to its siting, and is interpolated bilinearly on the way back.
Pixels beyond the border repeat the border. 4:2:0 is sited in the centre of its pixels (420jpeg), at their left
(420mpeg2), or at their left with Cr on the first line and Cb on the second (420paldv). It shares no code with the
kernels.

Usage: python format.py FOLDER, with numpy. The FOLDER is ../data/format; its README.md describes the files.
"""

import sys
from pathlib import Path

import numpy as np

folder = Path(sys.argv[1])
FORMATS = ["rgb8", "i444", "i422", "i420", "nv12", "gray8"]
WAYS = [("bt601", "limited"), ("bt601", "full"), ("bt709", "limited"), ("bt709", "full")]
SIZES = [(1, 1), (7, 5), (70, 6)]
# Position of chroma in luma samples from the first of two: horizontal, vertical for Cb, vertical for Cr.
SITINGS = {"centre": (0.5, 0.5, 0.5), "left": (0.0, 0.5, 0.5), "alternate": (0.0, 1.0, 0.0)}

lines, frames = [], []


def noise(count, seed):
    """Bytes that follow from their positions, as the tests compute them too."""
    with np.errstate(over="ignore"):
        at = np.arange(count, dtype=np.uint64) + np.uint64(77 * seed)
        return ((at * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(56)).astype(np.uint8)


def rounded(v):
    return np.floor(np.clip(v, 0, 255) + 0.5).astype(np.uint8)


def covers(fmt):
    return {"i420": (2, 2), "nv12": (2, 2), "i422": (2, 1)}.get(fmt, (1, 1))


def planes(fmt, w, h):
    """Width and height of each plane, in bytes."""
    across, down = covers(fmt)
    cw, ch = -(-w // across), -(-h // down)
    return {
        "rgba8": [(4 * w, h)],
        "rgb8": [(3 * w, h)],
        "gray8": [(w, h)],
        "nv12": [(w, h), (2 * cw, ch)],
    }.get(fmt, [(w, h), (cw, ch), (cw, ch)])


def constants(way):
    kr, kb = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722)}[way[0]]
    black, luma, chroma = (16, 219, 224) if way[1] == "limited" else (0, 255, 255)
    return kr, kb, black, luma, chroma


def axis(pixels, cover, offset):
    """The samples on both sides of a pixel, and the fraction towards the second."""
    place = np.arange(pixels) if cover == 1 else (np.arange(pixels) - offset) / cover
    place = np.clip(place, 0, -(-pixels // cover) - 1)
    first = np.floor(place).astype(int)
    return first, np.minimum(first + 1, -(-pixels // cover) - 1), place - first


def widened(plane, w, h, fmt, offsets):
    across, down = covers(fmt)
    x0, x1, fx = axis(w, across, offsets[0])
    y0, y1, fy = axis(h, down, offsets[1])
    plane = plane.astype(float)
    rows = plane[:, x0] * (1 - fx) + plane[:, x1] * fx
    return rows[y0] * (1 - fy)[:, None] + rows[y1] * fy[:, None]


def to_rgba(fmt, parts, w, h, way, siting):
    made = np.full((h, w, 4), 255, np.uint8)
    if fmt == "rgb8":
        made[..., :3] = parts[0].reshape(h, w, 3)
        return made
    kr, kb, black, luma, chroma = constants(way)
    bright = (parts[0].astype(float) - black) / luma
    if fmt == "gray8":
        pb = pr = np.zeros((h, w))
    else:
        u, v = (parts[1][:, 0::2], parts[1][:, 1::2]) if fmt == "nv12" else parts[1:]
        across, *down = SITINGS[siting]
        pb, pr = ((widened(plane, w, h, fmt, (across, at)) - 128) / chroma for plane, at in zip((u, v), down))
    red, blue = bright + 2 * (1 - kr) * pr, bright + 2 * (1 - kb) * pb
    green = (bright - kr * red - kb * blue) / (1 - kr - kb)
    for channel, level in enumerate((red, green, blue)):
        made[..., channel] = rounded(255 * level)
    return made


def area(pixels, cover, offset):
    """The weight of each pixel in each sample: its overlap with two pixels' length around the sample."""
    made = np.zeros((-(-pixels // cover), pixels))
    for k in range(made.shape[0]):
        if cover == 1:
            made[k, k] = 1
            continue
        centre = 2 * k + offset
        for at in range(2 * k - 1, 2 * k + 3):
            shared = min(at + 0.5, centre + 1) - max(at - 0.5, centre - 1)
            made[k, min(max(at, 0), pixels - 1)] += max(shared, 0) / 2
    return made


def mean(plane, fmt, offsets):
    across, down = covers(fmt)
    h, w = plane.shape
    return area(h, down, offsets[1]) @ plane @ area(w, across, offsets[0]).T


def from_rgba(fmt, pixels, way, siting):
    if fmt == "rgb8":
        return [pixels[..., :3].reshape(pixels.shape[0], -1)]
    kr, kb, black, luma, chroma = constants(way)
    r, g, b = (pixels[..., channel] / 255 for channel in range(3))
    bright = kr * r + (1 - kr - kb) * g + kb * b
    made = [rounded(black + luma * bright)]
    if fmt == "gray8":
        return made
    across, *down = SITINGS[siting]
    u = rounded(128 + chroma * mean((b - bright) / (2 * (1 - kb)), fmt, (across, down[0])))
    v = rounded(128 + chroma * mean((r - bright) / (2 * (1 - kr)), fmt, (across, down[1])))
    return made + ([np.stack([u, v], 2).reshape(u.shape[0], -1)] if fmt == "nv12" else [u, v])


def write(source, target, size, way, siting, parts):
    found = b"".join(part.tobytes() for part in parts)
    expected = sum(w * h for w, h in planes(target, *size))
    assert len(found) == expected
    lines.append(f"{source} {target} {size[0]}x{size[1]} {way[0]} {way[1]} {siting} {len(found)}")
    frames.append(found)


cases = [(fmt, way, "centre") for fmt in FORMATS for way in (WAYS[:1] if fmt == "rgb8" else WAYS)]
cases += [(fmt, WAYS[0], siting) for fmt in ("i420", "nv12") for siting in ("left", "alternate")]
cases += [("i420", WAYS[3], siting) for siting in ("left", "alternate")]
for fmt, way, siting in cases:
    for w, h in SIZES:
        parts, at = [], 0
        for width, height in planes(fmt, w, h):
            parts.append(noise(at + width * height, w)[at:].reshape(height, width))
            at += width * height
        write(fmt, "rgba8", (w, h), way, siting, [to_rgba(fmt, parts, w, h, way, siting)])
        pixels = noise(4 * w * h, w).reshape(h, w, 4)
        write("rgba8", fmt, (w, h), way, siting, from_rgba(fmt, pixels, way, siting))

(folder / "cases.txt").write_text("\n".join(lines) + "\n")
(folder / "frames.bin").write_bytes(b"".join(frames))
