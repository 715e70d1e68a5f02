"""Writes the reference images of the pixel functions (usage: tests/data/pixels/README.md).

Everything follows the definitions in double precision, or is computed by OpenCV. It shares no code with the kernels.
"""

import pathlib

import cv2
import numpy as np

assert cv2.__version__.startswith("5.0.0"), "the definitions were checked against opencv-python-headless 5.0.0.93"

HERE = pathlib.Path(__file__).parent.parent / "data" / "pixels"
SIZES = [(1, 1), (1, 7), (17, 13)]
LARGE = (64, 48)
draw = np.random.default_rng(20)


def picture(width, height, opaque):
    p = draw.integers(0, 256, (height, width, 4), np.uint8)
    # Ends of the range and equal channels are rare in noise and common in real images.
    p[draw.random((height, width)) < 0.1] = [0, 0, 0, 0]
    p[draw.random((height, width)) < 0.1] = [255, 255, 255, 255]
    p[draw.random((height, width)) < 0.1] = [90, 90, 90, 90]
    if opaque:
        p[..., 3] = 255
    return p


PICTURES = [(w, h, opaque) for w, h in SIZES for opaque in (True, False)] + [(*LARGE, False)]
A = [picture(*p) for p in PICTURES]
B = [picture(w, h, False) for w, h, _ in PICTURES]
LOGO = picture(5, 4, False)
ATLAS = draw.integers(0, 256, 4 * 5 + 3 * 3, np.uint8)
ATLAS[draw.random(len(ATLAS)) < 0.3] = 0
ATLAS[draw.random(len(ATLAS)) < 0.3] = 255


def rounded(v):
    return np.clip(np.floor(v + 0.5), 0, 255).astype(np.uint8)


def keep_alpha(f):
    """A function of red, green and blue, as floats; alpha is kept."""
    return lambda a, b: np.dstack([rounded(f(a[..., :3].astype(float))), a[..., 3]])


def brightness(amount):
    return keep_alpha(lambda v: v + 255 * amount)


def contrast(amount, pivot):
    return keep_alpha(lambda v: (v - 255 * pivot) * amount + 255 * pivot)


def gamma(value):
    return keep_alpha(lambda v: 255 * (v / 255) ** (1 / value))


def saturation(amount):
    def f(v):
        luma = (v @ [0.2126, 0.7152, 0.0722])[..., None]
        return luma + amount * (v - luma)
    return keep_alpha(f)


def hue(degrees):
    t = np.array([[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    m = np.linalg.inv(t) @ np.array([[1, 0, 0], [0, c, s], [0, -s, c]]) @ t
    return keep_alpha(lambda v: v @ m.T)


def gray(a, b):
    g = cv2.cvtColor(a, cv2.COLOR_RGBA2GRAY).reshape(a.shape[:2])
    return np.dstack([g, g, g, a[..., 3]])


def threshold(level):
    def f(a, b):
        white = np.where(gray(a, b)[..., :3] > 255 * level, 255, 0).astype(np.uint8)
        return np.dstack([white, a[..., 3]])
    return f


COLORMATRIX = np.array([
    [0.5, 0.4, -0.3, 0.1, 0.05], [-1.25, 2.0, 0.2, 0.0, -0.1],
    [0.1, 0.2, 0.3, 0.4, 0.0], [0.3, -0.2, 0.1, 0.7, 0.02],
])


def colormatrix(a, b):
    return rounded(a.astype(float) @ COLORMATRIX[:, :4].T + 255 * COLORMATRIX[:, 4])


def colormatrix_opencv(a, b):
    m = COLORMATRIX.copy()
    m[:, 4] *= 255
    return cv2.transform(a, m)


def scaled_opencv(a, b):
    return np.dstack([cv2.convertScaleAbs(a[..., :3], alpha=1.2, beta=10).reshape(*a.shape[:2], 3), a[..., 3]])


def over(below, color, opacity):
    """Straight alpha: color (0..255) with opacity (0..1) over below."""
    cb, ab = below[..., :3].astype(float), below[..., 3] / 255.0
    ao = opacity + ab * (1 - opacity)
    mixed = color * opacity[..., None] + cb * (ab * (1 - opacity))[..., None]
    c = np.divide(mixed, ao[..., None], out=np.zeros_like(cb), where=ao[..., None] > 0)
    return np.dstack([rounded(c), rounded(255 * ao)])


def mix(mode, amount):
    def f(a, b):
        x, y = a.astype(float), b.astype(float)
        if mode == "mix":
            return rounded((1 - amount) * x + amount * y)
        if mode == "over":
            return over(a, y[..., :3], y[..., 3] / 255 * amount)
        full = {
            "add": x + y,
            "multiply": x * y / 255,
            "screen": 255 - (255 - x) * (255 - y) / 255,
            "difference": abs(x - y),
        }[mode]
        return np.dstack([rounded((1 - amount) * x + amount * full)[..., :3], a[..., 3]])
    return f


def mix_opencv(a, b):
    return cv2.addWeighted(a, 0.7, b, 0.3, 0)


def overlay(left, top, alpha):
    """left and top as functions of the frame's width and height."""
    def f(a, b):
        out = a.copy()
        h, w = a.shape[:2]
        x0, y0 = left(w), top(h)
        for y in range(4):
            for x in range(5):
                if 0 <= y0 + y < h and 0 <= x0 + x < w:
                    at = np.s_[y0 + y:y0 + y + 1, x0 + x:x0 + x + 1]
                    logo = LOGO[y:y + 1, x:x + 1].astype(float)
                    out[at] = over(a[at], logo[..., :3], logo[..., 3] / 255 * alpha)
        return out
    return f


def glyphs(a, b):
    """Two lines: masks of 4x5 and 3x3, overlapping, partly outside."""
    h, w = a.shape[:2]
    cover = np.zeros((h, w))
    first, second = [(-1, 0, 4, 5, 0), (2, 1, 3, 3, 20), (3, 2, 4, 5, 0)], [(11, 9, 4, 5, 0), (15, 8, 3, 3, 20)]
    for x0, y0, gw, gh, at in first + second:
        for y in range(gh):
            for x in range(gw):
                if 0 <= y0 + y < h and 0 <= x0 + x < w:
                    cover[y0 + y, x0 + x] = max(cover[y0 + y, x0 + x], ATLAS[at + y * gw + x])
    drawn = over(a, np.array([250.0, 120.0, 10.0]), cover / 255 * 200 / 255)
    return np.where(cover[..., None] > 0, drawn, a)


def chain5(a, b):
    steps = [contrast(1.2, 0), brightness(0.0392157), gamma(2.2), saturation(0.7), invert, mix("mix", 0.3)]
    for f in steps:
        a = f(a, b)
    return a


def invert(a, b):
    return np.dstack([255 - a[..., :3], a[..., 3]])


CASES = {
    "brightness_up": brightness(0.2), "brightness_down": brightness(-0.35),
    "contrast_pivot": contrast(1.7, 0.5), "contrast_negative": contrast(-1, 0.5),
    "contrast_brightness_opencv": scaled_opencv,
    "gamma_bright": gamma(2.2), "gamma_dark": gamma(0.45),
    "invert": invert,
    "saturation_less": saturation(0.7), "saturation_none": saturation(0), "saturation_more": saturation(2.5),
    "hue_37": hue(37), "hue_180": hue(180),
    "gray_opencv": gray, "threshold_half": threshold(0.5), "threshold_fifth": threshold(0.2),
    "colormatrix": colormatrix, "colormatrix_opencv": colormatrix_opencv,
    "mix": mix("mix", 0.3), "mix_opencv": mix_opencv,
    "over": mix("over", 0.6), "over_full": mix("over", 1), "add": mix("add", 0.3), "multiply": mix("multiply", 0.3),
    "screen": mix("screen", 0.3), "difference": mix("difference", 0.3), "difference_full": mix("difference", 1),
    "overlay": overlay(lambda w: 2, lambda h: 1, 0.7),
    "overlay_far_edges": overlay(lambda w: w - 5 - 3, lambda h: h - 4 - 1, 1),
    "glyphs": glyphs,
    "chain5": chain5,
}
# The others are compared on the small images only, to keep the repository small.
ALSO_LARGE = {"hue_37", "gray_opencv", "colormatrix", "mix_opencv", "over", "overlay_far_edges", "glyphs", "chain5"}


def save(name, pictures):
    (HERE / f"{name}.rgba").write_bytes(b"".join(np.ascontiguousarray(p).tobytes() for p in pictures))


save("a", A)
save("b", B)
save("logo", [LOGO])
save("atlas", [ATLAS])
for name, f in CASES.items():
    count = len(PICTURES) if name in ALSO_LARGE else len(PICTURES) - 1
    results = [f(a, b) for a, b in zip(A[:count], B[:count])]
    assert all(r.dtype == np.uint8 and r.size == a.size for r, a in zip(results, A)), name
    save(name, results)
