"""Makes the images and clips beside it: python3 pictures.py, with Pillow 13 and NumPy 2.4.

A pixel at x, y of a picture is (20x, 25y, 7xy mod 256, 255 - 10x); tests compute the same. GIFs have flat colours,
laid over each other with each way of disposal. Sample i of plane p of frame n of a clip is (31n + 17p + i) mod 256.
"""

from pathlib import Path

import numpy
from PIL import Image

here = Path(__file__).parent
W, H = 13, 9


def rgba(w=W, h=H):
    y, x = numpy.mgrid[0:h, 0:w]
    return numpy.stack([20 * x, 25 * y, 7 * x * y % 256, 255 - 10 * x], axis=2).astype(numpy.uint8)


def picture(array):
    return Image.fromarray(array)


whole = rgba()
rgb = whole[:, :, :3].copy()
picture(whole).save(here / "rgba.png")
picture(rgb).save(here / "rgb.png")
picture(whole[:, :, 0].copy()).save(here / "gray.png")
Image.fromarray(whole[:, :, 0].astype(numpy.uint16) * 257).save(here / "deep.png")
picture(rgb).quantize(117).save(here / "palette.png")
picture(rgb).save(here / "rgb.jpg", quality=100, subsampling=0)
picture(whole).save(here / "rgba.webp", lossless=True, exact=True)
picture(rgb).save(here / "rgb.bmp")
picture(rgb).save(here / "rgb.tif", compression="tiff_lzw")

# Four frames on 8x6: red everywhere; green 4x3 at 2,1 that vanishes to what was before; blue 3x2 at 5,4 whose place is
# cleared; white 2x2 at 0,0.
def block(dispose, left, top, w, h, index):
    """One GIF frame of one colour, written out, since Pillow merges and crops frames as it likes."""
    control = bytes([0x21, 0xF9, 4, dispose << 2, 10, 0, 0, 0])
    place = b"\x2c" + b"".join(v.to_bytes(2, "little") for v in (left, top, w, h)) + b"\0"
    # Codes of 3 bits with a clear code before every pixel, so that their width never grows.
    codes = [c for _ in range(w * h) for c in (4, index)] + [5]
    bits = sum(code << (3 * at) for at, code in enumerate(codes))
    body = bits.to_bytes((3 * len(codes) + 7) // 8, "little")
    blocks = b"".join(bytes([len(body[at:at + 255])]) + body[at:at + 255] for at in range(0, len(body), 255))
    return control + place + b"\x02" + blocks + b"\0"


screen = b"GIF89a" + (8).to_bytes(2, "little") + (6).to_bytes(2, "little") + bytes([0x91, 0, 0])
colours = bytes([255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255])
frames = [(1, 0, 0, 8, 6, 0), (3, 2, 1, 4, 3, 1), (2, 5, 4, 3, 2, 2), (1, 0, 0, 2, 2, 3)]
gif = screen + colours + b"".join(block(*frame) for frame in frames) + b";"
(here / "four.gif").write_bytes(gif)
assert Image.open(here / "four.gif").n_frames == 4

for name, tag, planes in [
    ("i420", "420jpeg", [(5, 3), (3, 2), (3, 2)]),
    ("i422", "422", [(5, 3), (3, 3), (3, 3)]),
    ("i444", "444", [(5, 3)] * 3),
    ("gray8", "mono", [(5, 3)]),
]:
    clip = f"YUV4MPEG2 W5 H3 F30000:1001 Ip A1:1 C{tag} XYSCSS=420JPEG XCOLORRANGE=FULL\n".encode()
    for n in range(3):
        clip += b"FRAME\n" if n != 1 else b"FRAME Ip Xnote\n"
        for p, (w, h) in enumerate(planes):
            clip += ((31 * n + 17 * p + numpy.arange(w * h)) % 256).astype(numpy.uint8).tobytes()
    (here / f"{name}.y4m").write_bytes(clip)
