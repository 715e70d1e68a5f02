"""A neural network from an ONNX file: called with arrays, and as a handler of a pipeline.

    python examples/python/model.py                        # the network that vramp brings along, on a test picture
    python examples/python/model.py net.onnx picture.npy   # your own network
"""

import sys
from pathlib import Path

import numpy as np

import vramp

folder = Path(__file__).resolve().parents[2] / "crates/model/models"
path = Path(sys.argv[1]) if len(sys.argv) > 1 else folder / "selfie.onnx"
model = vramp.Model(path)
for name, dtype, shape in model.inputs:
    print(f"input {name}: {dtype} {shape}")
if len(sys.argv) > 2:
    given = np.load(sys.argv[2])
else:
    given = np.zeros([length or 1 for length in model.inputs[0][2]], np.float32)
results = model(given)
for (name, dtype, _), result in zip(model.outputs, results if isinstance(results, tuple) else (results,), strict=True):
    print(f"output {name}: {dtype} {result.shape}")

if len(sys.argv) < 3:
    # The same network in a pipeline: its mask cuts a person out of the picture.
    text = f"pattern size=320x240 frames=3 name=p ! blur sigma=8 ! mix name=m mode=over amount=1 ! app p. ! model path={path} output=mask ! m.b"
    for frame in vramp.Pipeline(text):
        print(frame.number, frame.size)
