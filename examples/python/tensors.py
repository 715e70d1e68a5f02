"""Tensors, and the exchange with PyTorch through DLPack. Without PyTorch, numpy takes its place."""

import numpy as np

import vramp

try:
    import torch as other
except ImportError:
    other = np


@vramp.fuse
def shades(picture: vramp.Tensor, weight: vramp.Tensor) -> vramp.Tensor:
    """Runs once to record its ops; later calls repeat the recording, on the GPU as one kernel."""
    return ((picture.cast("f32") / 255) * weight).sum(-1).clamp(0, 1)


weight = vramp.tensor([0.299, 0.587, 0.114, 0.0])
for frame in vramp.Pipeline("pattern size=320x240 frames=3 ! app"):
    gray = shades(vramp.tensor(frame), weight)  # the frame's values are copied once, to where the ops run
    array = other.from_dlpack(gray)  # shared, read-only
    print(frame.number, tuple(array.shape), f"{float(array.mean()):.4f}")

back = vramp.from_dlpack(other.ones((2, 3), dtype=other.float32))
print((back * 2).tolist())
