"""Makes the images beside it: python3 turned.py, with Pillow 13, NumPy 2.4 and OpenCV 5.0.0.93.

N.jpg, N.png, N.webp and N.tif hold the picture of ../pictures.py, 13x9, with orientation N. N.rgba is the same, upright,
as Pillow's exif_transpose makes it of N.png, and OpenCV's imdecode has to make the same of all four. Odd N are stored with
the low byte first. Odd PNGs have their eXIf chunk before the pixels, even ones after them.

Files with another name are what decoders store differently: gray, gray with alpha, 16 bits.
"""

import io
import struct
import zlib
from pathlib import Path

import cv2
import numpy
from PIL import Image, ImageOps

here = Path(__file__).parent
y, x = numpy.mgrid[0:9, 0:13]
whole = numpy.stack([20 * x, 25 * y, 7 * x * y % 256, 255 - 10 * x], axis=2).astype(numpy.uint8)


def exif(orientation, end):
    start = b"II*\0" if end == "<" else b"MM\0*"
    return start + struct.pack(end + "IHHHIHHI", 8, 1, 0x112, 3, 1, orientation, 0, 0)


def encoded(array, kind, **options):
    file = io.BytesIO()
    Image.fromarray(array).save(file, kind, **options)
    return file.getvalue()


def jpeg(orientation, end):
    plain = encoded(whole[:, :, :3].copy(), "JPEG", quality=100, subsampling=0)
    segment = b"Exif\0\0" + exif(orientation, end)
    # After the JFIF segment, as cameras write it.
    at = 4 + struct.unpack(">H", plain[4:6])[0]
    return plain[:at] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + plain[at:]


def png(array, orientation, end, before):
    plain = encoded(array, "PNG")
    chunk = b"eXIf" + exif(orientation, end)
    at = plain.index(b"IDAT" if before else b"IEND") - 4
    return plain[:at] + struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) + plain[at:]


def tiff(orientation, end):
    """By hand: Pillow writes in the order of the machine."""
    raw = whole[:, :, :3].tobytes()
    tags = [(0x100, 13), (0x101, 9), (0x102, 8), (0x103, 1), (0x106, 2), (0x111, 134), (0x112, orientation), (0x115, 3)]
    tags += [(0x116, 9), (0x117, len(raw))]
    start = (b"II*\0" if end == "<" else b"MM\0*") + struct.pack(end + "IH", 8, len(tags))
    return start + b"".join(struct.pack(end + "HHIHH", tag, 3, 1, v, 0) for tag, v in tags) + bytes(4) + raw


for n in range(1, 9):
    end, odd = ("<", True) if n % 2 else (">", False)
    files = {
        "jpg": jpeg(n, end),
        "png": png(whole, n, end, odd),
        "webp": encoded(whole, "WEBP", lossless=True, exact=True, exif=exif(n, end)),
        "tif": tiff(n, end),
    }
    upright = numpy.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(files["png"]))).convert("RGBA"))
    (here / f"{n}.rgba").write_bytes(upright.tobytes())
    for ending, file in files.items():
        path = here / f"{n}.{ending}"
        path.write_bytes(file)
        # Not imread, which follows the same rules but fails on a TIFF whose sides are swapped.
        read = cv2.cvtColor(cv2.imdecode(numpy.frombuffer(file, numpy.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
        assert read.shape == upright[:, :, :3].shape, path
        assert abs(read.astype(int) - upright[:, :, :3]).max() <= (6 if ending == "jpg" else 0), path

(here / "gray-6.png").write_bytes(png(whole[:, :, 0].copy(), 6, "<", True))
(here / "gray-alpha-8.png").write_bytes(png(whole[:, :, 2:].copy(), 8, "<", True))
(here / "deep-7.png").write_bytes(png(whole[:, :, 0].astype(numpy.uint16) * 257, 7, "<", True))
