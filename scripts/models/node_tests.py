"""Writes the node tests of the package `onnx` as fixtures for the tests of vramp-model.

usage: node_tests.py FOLDER        needs: pip install onnx==1.23.2

Takes the tests whose ops are all in OPS and whose inputs and outputs have a type in TYPES. FOLDER gets three files of
one format, each below the megabyte that a file of this repository may have:

    node_tests.bin        tests of a single op
    node_tests_large.bin  the two of them with over 100,000 values
    node_tests_more.bin   tests of several ops

A file is one zlib stream. Numbers in it are u32, little-endian; a text is its length and its UTF-8 bytes:

    file    count of tests, the tests, then all values
    test    name, model (length and bytes of the ModelProto), inputs, outputs, rtol, atol (both f32)
    inputs  count, then per tensor: name, ONNX type, rank, dims, first byte in the values, count of bytes
    outputs as inputs

Inputs and outputs are in the order of the model's graph. Values are little-endian, in the type's own size (bool: one
byte). Most tests draw the same random numbers, so tensors share their values; this is why these are kept apart.
"""

import struct
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

OPS = set(
    """
    Abs Add And ArgMax AveragePool BatchNormalization Cast Ceil Clip Concat Constant ConstantOfShape Conv ConvTranspose
    DepthToSpace Div Dropout Equal Erf Exp Expand Flatten Floor Gather GatherElements GatherND Gelu Gemm
    GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual HardSigmoid HardSwish Identity InstanceNormalization LRN
    LayerNormalization LeakyRelu Less LessOrEqual Log MatMul Max MaxPool Min Mul Neg NonMaxSuppression Not Or PRelu Pad
    Pow Range Reciprocal ReduceMax ReduceMean ReduceMin ReduceSum Relu Reshape Resize Shape Sigmoid Slice Softmax
    SpaceToDepth Split Sqrt Squeeze Sub Sum Tanh Tile TopK Transpose Unsqueeze Upsample Where
    """.split()
)
TYPES = {getattr(TensorProto, name) for name in ("FLOAT", "FLOAT16", "UINT8", "INT8", "INT32", "INT64", "BOOL")}
LARGE = 100_000
SINGLE, SEVERAL = 497, 125


def main(folder):
    if onnx.__version__ != "1.23.2":
        sys.exit(f"node_tests.py: expected onnx 1.23.2, found {onnx.__version__}")
    warnings.simplefilter("ignore")  # some tests overflow on purpose
    files = {"node_tests": [], "node_tests_large": [], "node_tests_more": []}
    for test in collect_testcases(None):
        if not fits(test.model):
            continue
        if len({node.op_type for node in test.model.graph.node}) > 1:
            files["node_tests_more"].append(test)
        else:
            values = sum(np.size(array(value)) for side in test.data_sets[0] for value in side)
            files["node_tests_large" if values > LARGE else "node_tests"].append(test)
    counts = {name: len(tests) for name, tests in files.items()}
    if (counts["node_tests"] + counts["node_tests_large"], counts["node_tests_more"]) != (SINGLE, SEVERAL):
        sys.exit(f"node_tests.py: expected {SINGLE} tests of one op and {SEVERAL} of several, found {counts}")
    for name, tests in files.items():
        path = Path(folder) / f"{name}.bin"
        path.write_bytes(zlib.compress(packed(tests), 9))
        print(f"{path.name}: {len(tests)} tests, {path.stat().st_size} bytes")


def fits(model):
    nodes = model.graph.node
    types = [value.type.tensor_type.elem_type for value in [*model.graph.input, *model.graph.output]]
    return all(node.op_type in OPS and node.domain in ("", "ai.onnx") for node in nodes) and TYPES.issuperset(types)


def array(value):
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def packed(tests):
    pool = Pool(array(value).tobytes() for test in tests for side in test.data_sets[0] for value in side)
    out = [number(len(tests))]
    for test in tests:
        assert len(test.data_sets) == 1, test.name
        graph = test.model.graph
        out += [text(test.name), counted(test.model.SerializeToString())]
        for declared, values in zip((graph.input, graph.output), test.data_sets[0]):
            assert len(declared) == len(values), test.name
            out.append(number(len(values)))
            out += [tensor(info, array(value), pool) for info, value in zip(declared, values)]
        out.append(struct.pack("<ff", test.rtol, test.atol))
    return b"".join([*out, pool.bytes])


def tensor(info, value, pool):
    kind = info.type.tensor_type.elem_type
    assert helper.np_dtype_to_tensor_dtype(value.dtype) == kind, info.name
    data = value.tobytes()
    numbers = [kind, value.ndim, *value.shape, pool.find(data), len(data)]
    return text(info.name) + b"".join(map(number, numbers))


class Pool:
    """Bytes of many tensors, where a tensor that is a part of another needs no room."""

    def __init__(self, parts):
        self.bytes = b""
        for part in sorted(set(parts), key=lambda part: (-len(part), part)):
            if self.bytes.find(part) < 0:
                self.bytes += part

    def find(self, part):
        return self.bytes.index(part)


def number(value):
    return struct.pack("<I", value)


def counted(data):
    return number(len(data)) + data


def text(words):
    return counted(words.encode())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
