"""Writes special_values.bin: what ONNX Runtime makes of NaN, infinity, integers and odd settings.

usage: special_values.py FOLDER    needs: pip install onnx==1.23.2 onnxruntime==1.31.0

The file has the format of node_tests.py. Cases in which vramp differs on purpose are left out; docs/models.md lists them.
"""

import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from node_tests import packed

NAN, INF = np.nan, np.inf
ODD = np.array([NAN, -INF, INF, 1, -1, 0], np.float32)
TESTS = []


def floats(values, *shape):
    made = np.array(values, np.float32)
    return made.reshape(shape) if shape else made


def longs(*values):
    return np.array(values, np.int64)


def case(name, op, inputs, known=(), opset=17, outputs=None, nodes=None, **attributes):
    """A test. Inputs whose index is in `known` are weights."""
    arrays = {f"x{at}": np.asarray(value) for at, value in enumerate(inputs) if value is not None}
    names = [f"x{at}" if value is not None else "" for at, value in enumerate(inputs)]
    weights = {f"x{at}" for at in known}
    outputs = outputs or 1
    made = [f"y{at}" for at in range(outputs)]
    nodes = nodes or [helper.make_node(op, names, made, **attributes)]

    def info(name, value):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)

    def model(declared):
        graph = helper.make_graph(
            nodes,
            name,
            [info(key, value) for key, value in arrays.items() if key not in weights],
            declared,
            [numpy_helper.from_array(value, key) for key, value in arrays.items() if key in weights],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)

    unknown = [helper.make_empty_tensor_value_info(key) for key in made]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(model(unknown).SerializeToString(), options, ["CPUExecutionProvider"])
    given = {key: value for key, value in arrays.items() if key not in weights}
    results = session.run(None, given)
    declared = [info(key, value) for key, value in zip(made, results)]
    test = SimpleNamespace(name=name, model=model(declared), rtol=1e-5, atol=1e-6)
    test.data_sets = [(list(given.values()), results)]
    TESTS.append(test)


def all_cases():
    # Maxima of windows of one row, which are those of the processor's vectors. Where a NaN is in other windows, with pads
    # or with indices, the result depends on the loops of ONNX Runtime.
    picture = [NAN, 1, 2, NAN, 3, NAN, NAN, NAN, -INF, -INF, -INF, -INF, 1, -INF, NAN, 2]
    for kernel in (1, 2, 3, 4, 8):
        case(f"max_pool_{kernel}", "MaxPool", [floats(picture, 1, 1, 1, 16)], kernel_shape=[1, kernel])
    for channels in (1, 8):
        x = np.repeat(floats([-INF, -INF, 1, 2, -INF, -INF, INF, 3, 4], 1, 1, 3, 3), channels, 1)
        case(f"max_pool_{channels}_channels", "MaxPool", [x], kernel_shape=[2, 2])
    x = floats([-INF, -INF, -INF, 1], 1, 1, 1, 4)
    case("max_pool_of_infinity_with_indices", "MaxPool", [x], outputs=2, kernel_shape=[1, 2])
    case("average_pool", "AveragePool", [floats([NAN, 1, INF, -INF], 1, 1, 1, 4)], kernel_shape=[1, 2])
    case("global_max_pool", "GlobalMaxPool", [floats([NAN, 1, 2, NAN], 1, 1, 1, 4)])
    # Single values.
    for op in "Relu Sigmoid HardSwish LeakyRelu HardSigmoid Tanh Exp Log Sqrt Erf Abs Neg Floor Ceil Reciprocal".split():
        case(op.lower(), op, [ODD])
    case("gelu", "Gelu", [ODD], opset=20)
    case("prelu", "PRelu", [ODD, floats([0.5])])
    case("clip", "Clip", [ODD, np.float32(0), np.float32(1)])
    case("clip_with_crossed_bounds", "Clip", [ODD, np.float32(2), np.float32(1)])
    one, two = floats([NAN, 1, NAN, -INF, INF, NAN]), floats([1, NAN, NAN, NAN, NAN, 2])
    for op in ("Max", "Min", "Add", "Less", "Greater", "Equal", "LessOrEqual"):
        case(f"{op.lower()}_of_nan", op, [one, two])
    case("cast_to_bool", "Cast", [floats([NAN, INF, 0, -0.0, 0.5])], to=TensorProto.BOOL)
    case("where", "Where", [np.array([True, False]), floats([NAN, 1]), floats([1, INF])])
    # Rows.
    rows = floats([NAN, 1, 2, INF, 1, 2, -INF, 1, 2, -INF, -INF, -INF, INF, INF, 0], 5, 3)
    case("softmax", "Softmax", [rows], axis=1)
    rows = floats([NAN, 1, 2, -INF, -INF, -INF, INF, -INF, 0, NAN, NAN, NAN], 4, 3)
    for op in ("ReduceMax", "ReduceMin", "ReduceMean"):
        case(f"{op.lower()}_of_rows", op, [rows], axes=[1])
        case(f"{op.lower()}_of_columns", op, [rows.T.copy()], axes=[0])
    case("reduce_sum_of_rows", "ReduceSum", [rows, longs(1)], known=[1])
    ordered = floats([3, -INF, INF, 2, -INF, -INF, 1, 0], 2, 4)
    for largest in (0, 1):
        case(f"top_k_{largest}", "TopK", [ordered, longs(3)], known=[1], outputs=2, axis=1, largest=largest)
    case("arg_max", "ArgMax", [ordered], axis=1)
    # Integers.
    ints = lambda *values: np.array(values, np.int32)
    case("pow_of_whole_floats", "Pow", [ints(100, 101, 127), floats([3, 3, 3])], known=[1])
    case("pow_of_computed_floats", "Pow", [ints(100, 3, -3, 7, 0, 9, 4), floats([3, 19, 3, 0.5, 4, 0.5, 1.5])])
    case("pow_of_roots", "Pow", [ints(7, 9, 10, 2), floats([0.5, 0.5, 1.5, 2.5])], known=[1])
    case("pow_of_large_exponents", "Pow", [longs(0, 1, -1, -1, 2, 1, -1), longs(32, 100, 33, 64, 30, -2, -3)])
    case("pow_of_floats", "Pow", [floats([0, 2, -2, 1.5]), longs(32, 33, 3, -2)])
    case("mul_that_wraps", "Mul", [ints(1 << 20, 3, -5), ints(1 << 20, 3, 1 << 30)])
    case("min_with_the_largest", "Min", [longs(5, -7), longs(2**63 - 1)], known=[1])
    case("clip_with_the_largest", "Clip", [longs(5, -7), np.int64(0), np.int64(2**63 - 1)], known=[1, 2])
    case("cast_of_large_weights", "Cast", [longs(3 << 31, -1, 2**40)], known=[0], to=TensorProto.FLOAT)
    nodes = [helper.make_node("Mul", ["x1", "x1"], ["a"]), helper.make_node("Div", ["a", "x2"], ["b"])]
    nodes.append(helper.make_node("Add", ["x0", "b"], ["y0"]))
    case("known_integers_beyond_32_bits", None, [longs(1), longs(1 << 20), longs(1 << 30)], known=[1, 2], nodes=nodes)
    # Settings.
    for values, dtype in (
        ([0, 255, 255, 0], np.uint8),
        ([0, 1, 0, 3], np.uint8),
        ([-128, 127, 127, -128], np.int8),
        ([-1, 2, -3, 4], np.int8),
        ([-1, 2, -3, 4], np.int32),
    ):
        x = np.array(values, dtype).reshape(1, 1, 1, 4)
        name = f"resize_{dtype.__name__}_{values[1]}"
        case(name, "Resize", [x, None, floats([1, 1, 1, 2])], known=[2], mode="linear")
    for start, end, step in ((-5, -10, -1), (-5, -4, -1), (10, -10, -1), (-4, -10, -1), (5, -9, -2), (0, -9, -1)):
        numbers = [longs(start), longs(end), longs(0), longs(step)]
        case(f"slice_{start}_{end}_{step}", "Slice", [floats([1, 2, 3]), *numbers], known=[1, 2, 3, 4])
    x = floats([1, 2, 3, 5, 8, 9], 1, 3, 2)
    for shape in ([1, 1, 2], [1, 2], [1, 3, 2]):
        scale = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
        case(f"layer_norm_{len(shape)}_{shape[-2]}", "LayerNormalization", [x, scale, scale], known=[1])
    for pads in ([2, 2], [0, 1]):
        case(f"reflect_{pads[0]}", "Pad", [floats([1, 2, 3]), longs(*pads)], known=[1], mode="reflect")
    for pads in ([3, 3], [5, 0], [0, 4]):
        case(f"wrap_{pads[0]}_{pads[1]}", "Pad", [floats([1, 2, 3]), longs(*pads)], known=[1], mode="wrap", opset=19)


def main(folder):
    all_cases()
    path = Path(folder) / "special_values.bin"
    path.write_bytes(zlib.compress(packed(TESTS), 9))
    print(f"{path.name}: {len(TESTS)} tests, {path.stat().st_size} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
