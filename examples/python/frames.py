"""For people who come from OpenCV: frames of a file, a camera or a test picture, as numpy arrays.

    python examples/python/frames.py                       # a moving test picture
    python examples/python/frames.py "video clip.mp4"      # instead of cv2.VideoCapture("clip.mp4")
    python examples/python/frames.py "camera"              # instead of cv2.VideoCapture(0)

Filters that stand in the text run in vramp, on the GPU if that is faster. The array is the frame's own memory: nothing is
copied. It is read-only; `array.copy()` is yours to change. Channels are red, green, blue, alpha.
"""

import sys

import numpy as np

import vramp

source = sys.argv[1] if len(sys.argv) > 1 else "pattern size=320x240 frames=30"
brightest = 0.0
for frame in vramp.Pipeline(f"{source} ! blur sigma=2 ! app"):
    array = np.asarray(frame)
    brightest = max(brightest, float(array[..., :3].mean()))
print(f"{frame.number + 1} frames of {frame.size}, brightest mean {brightest:.1f}")
