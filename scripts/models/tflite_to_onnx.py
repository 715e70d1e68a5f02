"""Converts a TensorFlow Lite model of float convolutions to ONNX.

usage: tflite_to_onnx.py IN.tflite OUT.onnx        needs: onnx numpy tflite

Knows the ops of MediaPipe's selfie segmentation and BlazeFace, and stops at others. TensorFlow Lite keeps channels
last, ONNX keeps them second: activations are transposed in the types only, weights in the file, and one Transpose
stands before each Reshape, whose order of values would differ otherwise. Names of tensors stay. Weights stored as f16
become f32.
"""

import struct
import sys

import numpy as np
import onnx
import tflite
from onnx import TensorProto, helper, numpy_helper

OPSET = 14
NUMPY_TYPES = {0: np.float32, 1: np.float16, 2: np.int32, 4: np.int64}
OP_NAMES = {value: name for name, value in vars(tflite.BuiltinOperator).items() if isinstance(value, int)}
SAME = 0


def main(source, target):
    with open(source, "rb") as file:
        network = Network(file.read())
    network.convert()
    onnx.save(network.model(), target)


class Network:
    def __init__(self, data):
        self.file = tflite.Model.GetRootAsModel(data, 0)
        self.graph = self.file.Subgraphs(0)
        self.nodes, self.weights, self.computed = [], {}, {}

    # ---- what the file has

    def name(self, index):
        return self.graph.Tensors(index).Name().decode()

    def shape(self, index):
        tensor = self.graph.Tensors(index)
        return [int(n) for n in tensor.ShapeAsNumpy()] if tensor.ShapeLength() else []

    def values(self, index):
        """The values of a constant, None for an activation."""
        if index in self.computed:
            return self.computed[index]
        tensor = self.graph.Tensors(index)
        buffer = self.file.Buffers(tensor.Buffer())
        if buffer.DataLength() == 0:
            return None
        values = np.frombuffer(buffer.DataAsNumpy().tobytes(), NUMPY_TYPES[tensor.Type()])
        return values.reshape(self.shape(index))

    # ---- what ONNX gets

    def weight(self, name, values):
        self.weights[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def convert(self):
        for at in range(self.graph.OperatorsLength()):
            operator = self.graph.Operators(at)
            code = self.file.OperatorCodes(operator.OpcodeIndex())
            name = OP_NAMES[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())]
            if name == "CUSTOM":
                name = code.CustomCode().decode()
            inputs = [int(index) for index in operator.InputsAsNumpy()]
            (output,) = (int(index) for index in operator.OutputsAsNumpy())
            if name not in CONVERTERS:
                sys.exit(f"tflite_to_onnx.py: the op {name} of `{self.name(output)}` is not known")
            CONVERTERS[name](self, operator, inputs, output)

    def model(self):
        sides = [
            [self.declared(int(index)) for index in side]
            for side in (self.graph.InputsAsNumpy(), self.graph.OutputsAsNumpy())
        ]
        graph = helper.make_graph(self.nodes, "main", *sides, list(self.weights.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        onnx.checker.check_model(model, full_check=True)
        return model

    def declared(self, index):
        shape = self.shape(index)
        shape = channels_second(shape) if len(shape) == 4 else shape
        return helper.make_tensor_value_info(self.name(index), TensorProto.FLOAT, shape)


def channels_second(shape):
    n, h, w, c = shape
    return [n, c, h, w]


def options(operator, kind):
    found = kind()
    table = operator.BuiltinOptions()
    found.Init(table.Bytes, table.Pos)
    fused = getattr(found, "FusedActivationFunction", lambda: 0)()
    if fused != 0:
        sys.exit(f"tflite_to_onnx.py: activation {fused} inside of another op is not known")
    return found


def pads(padding, before, after, kernel, stride):
    """Rows and columns that SAME adds, in ONNX's order: top, left, bottom, right."""
    if padding != SAME:
        return [0, 0, 0, 0]
    missing = [max((after[i] - 1) * stride[i] + kernel[i] - before[i], 0) for i in (0, 1)]
    return [missing[0] // 2, missing[1] // 2, missing[0] - missing[0] // 2, missing[1] - missing[1] // 2]


def dequantize(net, operator, inputs, output):
    net.computed[output] = net.values(inputs[0]).astype(np.float32)


def convolution(net, operator, inputs, output):
    convolve(net, options(operator, tflite.Conv2DOptions), inputs, output, (0, 3, 1, 2), 1)


def depthwise(net, operator, inputs, output):
    channels = net.shape(inputs[0])[3]
    convolve(net, options(operator, tflite.DepthwiseConv2DOptions), inputs, output, (3, 0, 1, 2), channels)


def convolve(net, given, inputs, output, order, group):
    weights = net.values(inputs[1]).transpose(order)
    kernel = list(weights.shape[2:])
    stride = [given.StrideH(), given.StrideW()]
    assert [given.DilationHFactor(), given.DilationWFactor()] == [1, 1]
    net.node(
        "Conv",
        [
            net.name(inputs[0]),
            net.weight(net.name(inputs[1]), weights),
            net.weight(net.name(inputs[2]), net.values(inputs[2])),
        ],
        net.name(output),
        kernel_shape=kernel,
        strides=stride,
        pads=pads(given.Padding(), net.shape(inputs[0])[1:3], net.shape(output)[1:3], kernel, stride),
        group=group,
    )


def transposed_convolution(net, operator, inputs, output):
    """MediaPipe's own op; its options are padding, stride of columns and stride of rows."""
    _, columns, rows = struct.unpack("<iii", operator.CustomOptionsAsNumpy().tobytes()[:12])
    weights = net.values(inputs[1]).transpose(3, 0, 1, 2)
    kernel, stride = list(weights.shape[2:]), [rows, columns]
    net.node(
        "ConvTranspose",
        [
            net.name(inputs[0]),
            net.weight(net.name(inputs[1]), weights),
            net.weight(net.name(inputs[2]), net.values(inputs[2])),
        ],
        net.name(output),
        kernel_shape=kernel,
        strides=stride,
        pads=pads(SAME, net.shape(output)[1:3], net.shape(inputs[0])[1:3], kernel, stride),
    )


def of_activations(op, kind=None):
    """An op on each value, whose inputs are activations of one layout."""

    def convert(net, operator, inputs, output):
        if kind:
            options(operator, kind)
        assert all(net.values(index) is None for index in inputs), net.name(output)
        net.node(op, [net.name(index) for index in inputs], net.name(output))

    return convert


def average_pool(net, operator, inputs, output):
    given = options(operator, tflite.Pool2DOptions)
    assert [given.FilterHeight(), given.FilterWidth()] == net.shape(inputs[0])[1:3], "only over whole pictures"
    net.node("GlobalAveragePool", [net.name(inputs[0])], net.name(output))


def max_pool(net, operator, inputs, output):
    given = options(operator, tflite.Pool2DOptions)
    kernel, stride = [given.FilterHeight(), given.FilterWidth()], [given.StrideH(), given.StrideW()]
    added = pads(given.Padding(), net.shape(inputs[0])[1:3], net.shape(output)[1:3], kernel, stride)
    net.node("MaxPool", [net.name(inputs[0])], net.name(output), kernel_shape=kernel, strides=stride, pads=added)


def resize(net, operator, inputs, output):
    given = options(operator, tflite.ResizeBilinearOptions)
    assert given.HalfPixelCenters() and not given.AlignCorners()
    sizes = net.weight(f"{net.name(output)}/sizes", np.array(channels_second(net.shape(output)), np.int64))
    net.node(
        "Resize",
        [net.name(inputs[0]), "", "", sizes],
        net.name(output),
        mode="linear",
        coordinate_transformation_mode="half_pixel",
    )


def pad(net, operator, inputs, output):
    around = net.values(inputs[1])[[0, 3, 1, 2]]
    added = net.weight(f"{net.name(output)}/pads", np.concatenate([around[:, 0], around[:, 1]]).astype(np.int64))
    net.node("Pad", [net.name(inputs[0]), added], net.name(output))


def reshape(net, operator, inputs, output):
    name = net.node("Transpose", [net.name(inputs[0])], f"{net.name(output)}/channels_last", perm=[0, 2, 3, 1])
    shape = net.weight(f"{net.name(output)}/shape", np.array(net.shape(output), np.int64))
    net.node("Reshape", [name, shape], net.name(output))


def concatenation(net, operator, inputs, output):
    axis = options(operator, tflite.ConcatenationOptions).Axis()
    assert len(net.shape(output)) == 3, "only after a Reshape, with axes as they are"
    net.node("Concat", [net.name(index) for index in inputs], net.name(output), axis=axis)


CONVERTERS = {
    "DEQUANTIZE": dequantize,
    "CONV_2D": convolution,
    "DEPTHWISE_CONV_2D": depthwise,
    "Convolution2DTransposeBias": transposed_convolution,
    "ADD": of_activations("Add", tflite.AddOptions),
    "MUL": of_activations("Mul", tflite.MulOptions),
    "RELU": of_activations("Relu"),
    "LOGISTIC": of_activations("Sigmoid"),
    "HARD_SWISH": of_activations("HardSwish"),
    "AVERAGE_POOL_2D": average_pool,
    "MAX_POOL_2D": max_pool,
    "RESIZE_BILINEAR": resize,
    "PAD": pad,
    "RESHAPE": reshape,
    "CONCATENATION": concatenation,
}

if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
