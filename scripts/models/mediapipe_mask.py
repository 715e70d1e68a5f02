"""Writes the mask of a person as MediaPipe itself computes it, as a fixture for the tests of the handler `model`.

usage: mediapipe_mask.py PICTURE OUT.png

needs: pip install --no-deps mediapipe==0.10.21
       pip install absl-py attrs flatbuffers matplotlib "numpy<2" opencv-python-headless==4.11.0.86 "protobuf>=4.25.3,<5"
"""

import sys

import cv2
import mediapipe
import numpy as np


def main(picture, out):
    if mediapipe.__version__ != "0.10.21":
        sys.exit(f"mediapipe_mask.py: expected mediapipe 0.10.21, found {mediapipe.__version__}")
    pixels = cv2.cvtColor(cv2.imread(picture), cv2.COLOR_BGR2RGB)
    with mediapipe.solutions.selfie_segmentation.SelfieSegmentation(model_selection=0) as segmentation:
        confidence = segmentation.process(pixels).segmentation_mask
    cv2.imwrite(out, np.clip(confidence * 255 + 0.5, 0, 255).astype(np.uint8))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
