"""Makes an ONNX model with the shape of MobileNet-v1 and random weights, for speed comparisons.

usage: mobilenet_v1.py OUT.onnx        needs: onnx numpy
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from uniform_numbers import uniform

OPSET = 13
STEM, CLASSES = 32, 1000

# Channels and stride of each pair of a depthwise and a 1x1 convolution.
PAIRS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]


def main(target):
    net = Network()
    x, before = net.convolution("x", "stem", 3, STEM, 3, 2), STEM
    for number, (after, stride) in enumerate(PAIRS):
        x = net.convolution(x, f"pair{number}.depthwise", before, before, 3, stride, group=before)
        x = net.convolution(x, f"pair{number}.pointwise", before, after, 1, 1)
        before = after
    x = net.node("GlobalAveragePool", [x], "pool")
    x = net.node("Flatten", [x], "flatten")
    x = net.node("Gemm", [x, net.weight("dense.weight", before, CLASSES), net.bias("dense.bias", CLASSES)], "dense")
    net.node("Softmax", [x], "y", axis=1)
    graph = helper.make_graph(
        net.nodes,
        "mobilenet_v1",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 224, 224])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, CLASSES])],
        net.weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, target)


class Network:
    def __init__(self):
        self.nodes, self.weights = [], []

    def weight(self, name, *shape):
        """Uniform in +-sqrt(6 / inputs of a neuron), which keeps the size of activations from layer to layer."""
        inputs = shape[0] if len(shape) == 2 else np.prod(shape[1:])
        return self.random(name, shape, np.sqrt(6 / inputs))

    def bias(self, name, count):
        return self.random(name, (count,), 0.02)

    def random(self, name, shape, most):
        values = uniform(len(self.weights), int(np.prod(shape))).reshape(shape) * np.float32(2) - np.float32(1)
        self.weights.append(numpy_helper.from_array(values * np.float32(most), name))
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def convolution(self, x, name, before, after, kernel, stride, group=1):
        x = self.node(
            "Conv",
            [
                x,
                self.weight(f"{name}.weight", after, before // group, kernel, kernel),
                self.bias(f"{name}.bias", after),
            ],
            name,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[kernel // 2] * 4,
            group=group,
        )
        return self.node("Relu", [x], f"{name}.relu")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
