"""Writes the reference images of heads.

Patterns and `nearest` are NumPy and plain integers, from the formulas; blur and bilinear are computed by OpenCV. It
shares no code with the kernels.

Usage: python heads.py FOLDER, with numpy and opencv-python-headless==5.0.0.93. The FOLDER is ../data/heads; its
README.md describes the files.
"""

import cv2
import numpy as np

from golden import finish, folder, pcg, rnd, source, write

# ---- patterns


def opaque(r, g, b, w, h):
    picture = np.empty((h, w, 4), np.uint8)
    for channel, value in enumerate((r, g, b, 255)):
        picture[..., channel] = value
    return picture


def hsv(hue, s, v):
    i, f = divmod(hue, 30)
    p = rnd(v * (255 - s), 255)
    q = rnd(v * (7650 - s * f), 7650)
    t = rnd(v * (7650 - s * (30 - f)), 7650)
    return [(v, t, p), (q, v, p), (p, v, t), (p, q, v), (t, p, v), (v, p, q)][i]


def centre(side, speed, n, num, den):
    way = side - 80
    if way <= 0:
        return side // 2
    u = (way * num + speed * n * den) % (4 * way * num)
    return 40 + min(u, 4 * way * num - u) // (2 * num)


def ball_at(w, h, n, num, den):
    background = hsv((30 * n * den // num) % 180, 50, 80)
    disc = hsv((120 * n * den // num) % 180, 255, 255)
    return background, disc, centre(w, 800, n, num, den), centre(h, 600, n, num, den)


def with_disc(picture, w, h, n, num, den):
    _, color, cx, cy = ball_at(w, h, n, num, den)
    y, x = np.mgrid[0:h, 0:w]
    picture[(x - cx) ** 2 + (y - cy) ** 2 <= 1600, :3] = color
    return picture


def gradient(w, h, n):
    y, x = np.mgrid[0:h, 0:w]
    return opaque(rnd(255 * x, max(1, w - 1)), rnd(255 * y, max(1, h - 1)), n % 256, w, h)


def bars(w, h):
    white, yellow, cyan, green = (255, 255, 255), (255, 255, 0), (0, 255, 255), (0, 255, 0)
    magenta, red, blue, black = (255, 0, 255), (255, 0, 0), (0, 0, 255), (0, 0, 0)
    colors = np.array([white, yellow, cyan, green, magenta, red, blue, black])
    line = colors[8 * np.arange(w) // w]
    return opaque(line[:, 0], line[:, 1], line[:, 2], w, h)


def checker(w, h):
    y, x = np.mgrid[0:h, 0:w]
    level = np.where((x // 32 + y // 32) % 2 == 0, 255, 0)
    return opaque(level, level, level, w, h)


def noise(w, h, n, seed):
    frame = pcg((n + pcg(seed)) & (2**32 - 1))
    levels = [pcg((i + frame) & (2**32 - 1)) for i in range(w * h)]
    hashed = np.array(levels, np.int64).reshape(h, w)
    return opaque(hashed & 255, hashed >> 8 & 255, hashed >> 16 & 255, w, h)


for w, h in [(1, 1), (1, 7), (9, 1), (17, 13)]:
    write("solid color=10,200,30,255", opaque(10, 200, 30, w, h))
    write("bars", bars(w, h))
    for n in (0, 300):
        write(f"gradient n={n}", gradient(w, h, n))
        write(f"noise n={n} seed={n + 5}", noise(w, h, n, n + 5))
        write(f"ball n={n} fps=30/1", with_disc(opaque(*ball_at(w, h, n, 30, 1)[0], w, h), w, h, n, 30, 1))
        write(f"disc n={n} fps=30/1", with_disc(gradient(w, h, n), w, h, n, 30, 1))
write("bars", bars(64, 3))
write("gradient n=1", gradient(64, 48, 1))
write("noise n=4294967297 seed=4294967295", noise(17, 13, 2**32 + 1, 2**32 - 1))
for w, h in [(1, 1), (1, 70), (33, 1), (70, 40)]:
    write("checker", checker(w, h))
for w, h, n in [(97, 83, 0), (97, 83, 7), (120, 50, 1001), (60, 96, 31)]:
    num, den = 30000, 1001
    settings = f"n={n} fps={num}/{den}"
    write(f"ball {settings}", with_disc(opaque(*ball_at(w, h, n, num, den)[0], w, h), w, h, n, num, den))
    write(f"disc {settings}", with_disc(gradient(w, h, n), w, h, n, num, den))

# Position and colours of the ball, for many frames of sizes too large to store.
places = []
for w, h in [(640, 480), (1920, 1080), (81, 80), (80, 81), (79, 4000), (65536, 65536)]:
    for num, den in [(30, 1), (30000, 1001), (25, 1), (1, 3), (4294967295, 4294967291)]:
        for n in [0, 1, 2, 5, 29, 30, 31, 59, 60, 149, 1000, 12345, 10**6 + 7, 2**32, 2**64 - 1]:
            background, disc, cx, cy = ball_at(w, h, n, num, den)
            numbers = [w, h, num, den, n, cx, cy, *background, *disc]
            places.append(" ".join(str(int(number)) for number in numbers))
(folder / "ball.txt").write_text("\n".join(places) + "\n")

# ---- heads with a source

SIZES = [(1, 1), (1, 7), (9, 1), (17, 13)]
for sigma, size in [(0.8, 0), (2, 0), (5, 0), (1.5, 9), (0.01, 0), (0.3, 3), (50, 5), (3, 61)]:
    for w, h in SIZES:
        taps = size if size else int(np.floor(6 * sigma + 1 + 0.5)) | 1
        blurred = cv2.GaussianBlur(source(w, h), (taps, taps), sigma, borderType=cv2.BORDER_REPLICATE)
        write(f"blur sigma={sigma} size={size}", blurred)
for sigma, size in [(2, 0), (20, 0), (100, 0), (100, 1023)]:
    taps = size if size else int(np.floor(6 * sigma + 1 + 0.5)) | 1
    blurred = cv2.GaussianBlur(source(64, 48), (taps, taps), sigma, borderType=cv2.BORDER_REPLICATE)
    write(f"blur sigma={sigma} size={size}", blurred)

# Weights, read from the blur of a single bright pixel.
weights = []
for sigma, size in [(s / 10, 0) for s in range(1, 100, 3)] + [(33.3, 0), (77, 0), (100, 0), (100, 1023), (9, 1023)]:
    taps = size if size else int(np.floor(6 * sigma + 1 + 0.5)) | 1
    dot = np.zeros((1, 2 * taps + 1), np.uint8)
    # Blurred along one axis, the result is (255 w + 128) >> 8: w itself, from 0 to 128, and one less above.
    dot[0, taps] = 255
    line = cv2.GaussianBlur(dot, (taps, 1), sigma, borderType=cv2.BORDER_REPLICATE)[0].astype(int)
    half = taps // 2
    read = line[taps - half : taps + half + 1]
    read = [int(v + (v >= 128)) for v in read]
    weights.append(f"{sigma} {size} " + " ".join(str(v) for v in read))
(folder / "weights.txt").write_text("\n".join(weights) + "\n")

RESIZES = [((1, 1), (1, 1)), ((1, 1), (9, 5)), ((1, 7), (3, 4)), ((9, 1), (4, 2)), ((17, 13), (17, 13))]
RESIZES += [((17, 13), (34, 26)), ((17, 13), (8, 6)), ((17, 13), (40, 5)), ((17, 13), (3, 31)), ((17, 13), (1, 1))]
RESIZES += [((64, 48), (21, 16)), ((64, 48), (63, 47)), ((64, 48), (7, 48))]
for (W, H), (w, h) in RESIZES:
    picture = source(W, H)
    write(f"bilinear from={W}x{H}", cv2.resize(picture, (w, h), interpolation=cv2.INTER_LINEAR))
    columns = [x * W // w for x in range(w)]
    rows = [y * H // h for y in range(h)]
    write(f"nearest from={W}x{H}", picture[rows][:, columns])

finish()
