"""Makes jpeg-q90.rgb and jpeg-q75.rgb: an image that OpenCV wrote and read again as JPEG.

Run in this folder with OpenCV 5 and NumPy: python jpeg.py
"""

import cv2
import numpy as np

WIDTH, HEIGHT = 65, 47

y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.int64)
# The same formula as `smooth` in jpeg.rs.
picture = np.dstack([(x * 3 + y) % 256, (x * x + y * y) // 24 % 256, 255 - (x + y * 4) % 256]).astype(np.uint8)

SAMPLING = {90: cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444, 75: cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420}
for quality, sampling in SAMPLING.items():
    wishes = [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling]
    done, written = cv2.imencode(".jpg", picture[:, :, ::-1].copy(), wishes)
    assert done
    read = cv2.imdecode(written, cv2.IMREAD_COLOR)[:, :, ::-1]
    read.tofile(f"jpeg-q{quality}.rgb")
    noise = np.mean((read.astype(float) - picture) ** 2)
    print(quality, len(written), "bytes", round(10 * np.log10(255**2 / noise), 2), "dB")
