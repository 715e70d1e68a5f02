"""Writes what ONNX Runtime computes of real models, as a fixture for the tests of vramp-model.

usage: references.py MODELS OUT.json        needs: pip install onnxruntime==1.31.0, and `cargo xtask models`

The inputs are the pictures of scenes.py. Of each output the fixture keeps the values at the flat indices 0, stride,
2 * stride, ..., about 2,000, the largest absolute value of all, and the five largest classes if it has classes.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime

from scenes import tensor

KEPT = 2000

# Model, shape of the input, scene, range of the values; classes are ranked.
CASES = [
    ("selfie", [1, 3, 256, 256], "portrait", 0, 1),
    ("blazeface", [1, 3, 128, 128], "portrait", -1, 1),
    ("efficientnet_lite0", [1, 3, 224, 224], "cells", -1, 1),
    ("ocr_det", [1, 3, 160, 160], "page", -1, 1),
    ("ocr_det", [1, 3, 96, 256], "page", -1, 1),
    ("ocr_det", [1, 3, 480, 640], "page", -1, 1),
    ("orientation", [1, 3, 224, 224], "page", -1, 1),
    ("yolox_text", [1, 3, 416, 416], "page", 0, 255),
    ("mobilenet_v1", [1, 3, 224, 224], "cells", 0, 1),
]


def main(models, target):
    if onnxruntime.__version__ != "1.31.0":
        sys.exit(f"references.py: expected onnxruntime 1.31.0, found {onnxruntime.__version__}")
    onnxruntime.set_default_logger_severity(3)
    cases = [case(Path(models), *words) for words in CASES]
    # One case per line: a change of one model changes one line.
    lines = ",\n".join(json.dumps(found, separators=(",", ":")) for found in cases)
    Path(target).write_text(f"[\n{lines}\n]\n")


def case(models, name, shape, scene, low, high):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(models / f"{name}.onnx", options, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    picture = tensor(scene, shape, low, high)
    found = session.run(None, {given.name: picture})
    outputs = [output(info.name, values) for info, values in zip(session.get_outputs(), found)]
    return {
        "model": f"{name}.onnx",
        "input": given.name,
        "shape": shape,
        "scene": scene,
        "low": low,
        "high": high,
        # Exact in f64: tells a wrong picture from a wrong model.
        "input_sum": float(picture.sum(dtype=np.float64)),
        "outputs": outputs,
    }


def output(name, values):
    assert values.dtype == np.float32 and np.isfinite(values).all(), name
    flat = values.ravel()
    # Odd, so that the kept values are not all of one column or channel.
    stride = flat.size // KEPT | 1
    found = {
        "name": name,
        "shape": list(values.shape),
        "largest": short(np.abs(flat).max()),
        "stride": stride,
        "values": [short(value) for value in flat[::stride]],
    }
    if values.ndim == 2:
        found["top5"] = [int(index) for index in np.argsort(-flat, kind="stable")[:5]]
    return found


def short(value):
    """The number with the fewest digits that is this f32."""
    return float(str(value))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
