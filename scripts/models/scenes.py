"""Pictures for models, computed from nothing in whole numbers, so that a test in Rust can repeat them bit for bit.

A scene is a function from (channel, row, column, height, width) to a level in 0..=255. A tensor of a scene has, in
order of channel, row and column, the values

    value = (16 * level + noise) / 4096        noise = bits(1, place) >> 28, place = 0, 1, 2, ... over the tensor
    low + (high - low) * value

which are exact in f32 for the ranges 0..1, -1..1 and 0..255. `/` on the levels' side is a division of whole numbers
that rounds down.
"""

import numpy as np

from uniform_numbers import bits

# The digits 0 to 9 as 15 bits each: five rows of three, the upper left one first.
DIGITS = np.array([0o75557, 0o26227, 0o71747, 0o71717, 0o55711, 0o74717, 0o74757, 0o71111, 0o75757, 0o75717])


def cells(channel, row, column, height, width):
    """Cells of 8x8 in random colors."""
    return bits(2, (channel * 4096 + row // 8) * 4096 + column // 8) >> np.uint32(24)


def page(channel, row, column, height, width):
    """Lines of dark digits on light paper, each digit 12 columns wide in a cell of 16x32."""
    cell = bits(2, row // 32 * 4096 + column // 16).astype(np.int64)
    x, y = column % 16 // 4, (row % 32 + 2) // 4 - 2
    dot = DIGITS[cell % 10] >> np.clip(14 - 3 * y - x, 0, 14) & 1
    ink = (x < 3) & (y >= 0) & (y < 5) & (cell >> 28 > 2) & (dot == 1)
    return np.where(ink, 30, 230)


def portrait(channel, row, column, height, width):
    """An oval head over round shoulders, on a wall of gray squares."""
    x, y = 2 * column - width, 2 * row - height
    head = (16 * x) ** 2 + (13 * y + 3 * height) ** 2 < (6 * width) ** 2
    body = x**2 + (y - height) ** 2 < width * width // 2
    skin, shirt = np.array([200, 150, 125])[channel], np.array([40, 60, 120])[channel]
    wall = 90 + (bits(2, row // 32 * 4096 + column // 32) >> np.uint32(26)).astype(np.int64)
    return np.where(head, skin, np.where(body, shirt, wall))


SCENES = {"cells": cells, "page": page, "portrait": portrait}


def tensor(scene, shape, low, high):
    _, channels, height, width = shape
    channel, row, column = np.mgrid[0:channels, 0:height, 0:width]
    level = SCENES[scene](channel, row, column, height, width).astype(np.int64)
    noise = (bits(1, np.arange(level.size)) >> np.uint32(28)).reshape(level.shape)
    value = (16 * level + noise).astype(np.float32) / np.float32(4096)
    return (np.float32(low) + np.float32(high - low) * value).reshape(shape)
