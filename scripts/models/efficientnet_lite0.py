"""Converts the weights of EfficientNet-Lite0 in PyTorch's first file format to ONNX, without PyTorch.

usage: efficientnet_lite0.py IN.pth OUT.onnx        needs: onnx numpy

The input `image` is RGB with (x / 255 - 0.498) / 0.502, the output `probability` that of ImageNet's 1,000 classes.
The file holds pickles: magic number, version, sizes of the machine, the tensors' descriptions, the storages' keys; then
the storages, each its count of values and the values. The reader constructs nothing but descriptions from them.
"""

import collections
import pickle
import struct
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 13
EPSILON = 1e-3

# Per stage: blocks, kernel, stride of the first block, factor of the expansion, channels.
STAGES = [
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
]
STEM, CLASSES = 32, 1000


def main(source, target):
    with open(source, "rb") as file:
        net = Network(weights(file))
    onnx.save(net.model(), target)


class Descriptions(pickle.Unpickler):
    """Reads a pickle of tensors as (storage key, offset, shape, strides); refuses all that is not a tensor."""

    def find_class(self, module, name):
        if name == "_rebuild_tensor_v2":
            return lambda storage, offset, shape, strides, *_: (storage, offset, shape, strides)
        if name == "OrderedDict":
            return collections.OrderedDict
        if name in ("FloatStorage", "LongStorage"):
            return name
        raise pickle.UnpicklingError(f"{module}.{name} is not a part of tensors")

    def persistent_load(self, words):
        _, kind, key, *_ = words
        return kind, key


def weights(file):
    """The f32 tensors of the file by name."""
    for _ in ("magic number", "version", "sizes"):
        pickle.load(file)
    described = {name: found for name, found in Descriptions(file).load().items() if isinstance(found, tuple)}
    kinds = {key: kind for (kind, key), *_ in described.values()}
    storages = {}
    for key in pickle.load(file):
        (count,) = struct.unpack("<q", file.read(8))
        kind = np.dtype(np.float32 if kinds[key] == "FloatStorage" else np.int64)
        storages[key] = np.frombuffer(file.read(count * kind.itemsize), kind)
    found = {}
    for name, ((kind, key), offset, shape, strides) in described.items():
        if kind == "FloatStorage":
            values = storages[key][offset:]
            found[name] = np.lib.stride_tricks.as_strided(values, shape, [4 * step for step in strides]).copy()
    return found


class Network:
    def __init__(self, values):
        self.values, self.nodes, self.weights = values, [], []

    def weight(self, name, values=None):
        values = self.values[name] if values is None else values
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(values, np.float32), name))
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def convolution(self, x, name, norm, kernel, stride, group=1, activation=True):
        """A convolution, its batch norm and, mostly, ReLU6."""
        x = self.node(
            "Conv",
            [x, self.weight(f"{name}.weight")],
            name,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            auto_pad="SAME_UPPER",
            group=group,
        )
        parts = [self.weight(f"{norm}.{part}") for part in ("weight", "bias", "running_mean", "running_var")]
        x = self.node("BatchNormalization", [x, *parts], f"{name}.norm", epsilon=EPSILON)
        return self.node("Clip", [x, "zero", "six"], f"{name}.relu6") if activation else x

    def block(self, x, number, kernel, stride, expansion, before, after):
        name, y = f"_blocks.{number}", x
        if expansion > 1:
            y = self.convolution(y, f"{name}._expand_conv", f"{name}._bn0", 1, 1)
        y = self.convolution(
            y, f"{name}._depthwise_conv", f"{name}._bn1", kernel, stride, group=before * expansion
        )
        y = self.convolution(y, f"{name}._project_conv", f"{name}._bn2", 1, 1, activation=False)
        return self.node("Add", [y, x], f"{name}.add") if stride == 1 and before == after else y

    def model(self):
        self.weight("zero", np.array(0.0))
        self.weight("six", np.array(6.0))
        x, channels, number = self.convolution("image", "_conv_stem", "_bn0", 3, 2), STEM, 0
        for blocks, kernel, stride, expansion, after in STAGES:
            for block in range(blocks):
                x = self.block(x, number, kernel, 1 if block else stride, expansion, channels, after)
                channels, number = after, number + 1
        x = self.convolution(x, "_conv_head", "_bn1", 1, 1)
        x = self.node("GlobalAveragePool", [x], "pool")
        x = self.node("Flatten", [x], "flatten")
        x = self.node("Gemm", [x, self.weight("_fc.weight"), self.weight("_fc.bias")], "_fc", transB=1)
        self.node("Softmax", [x], "probability", axis=1)
        graph = helper.make_graph(
            self.nodes,
            "efficientnet_lite0",
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 224, 224])],
            [helper.make_tensor_value_info("probability", TensorProto.FLOAT, [1, CLASSES])],
            self.weights,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        onnx.checker.check_model(model, full_check=True)
        return model


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
