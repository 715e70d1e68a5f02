"""Generates reference cases for every op of tensors: small inputs, settings, expected results and tolerances.

It shares nothing with the code under test: NumPy computes expected values in float64, and they are rounded once.

Run: python ops.py ../data/ops (needs numpy; generated with 2.4.6). The folder's README.md describes its format.
"""

import sys
from pathlib import Path
from math import erf

import numpy as np

np.seterr(all="ignore")
folder = Path(sys.argv[1])
rng = np.random.default_rng(20240613)
blob = bytearray()
cases = []
places = {}
NAMES = {"float32": "f32", "float16": "f16", "int32": "i32", "uint32": "u32", "uint8": "u8", "int8": "i8"}


def stored(array):
    """Appends an array to the file of values. Returns its type, shape and offset."""
    array = np.asarray(array, order="C")
    content = array.tobytes()
    while len(blob) % 4:
        blob.append(0)
    at = places.setdefault(content, len(blob))
    if at == len(blob):
        blob.extend(content)
    return f"{NAMES[array.dtype.name]}[{','.join(map(str, array.shape))}]@{at}"


def case(op, inputs, expected, absolute=0.0, relative=0.0, **settings):
    """Adds a case. Values that are not finite must match exactly, whatever the tolerance."""
    if not isinstance(expected, tuple):
        expected = (expected,)
    words = " ".join(f"{k}={v}" for k, v in settings.items() if v is not None)
    cases.append(" | ".join([
        op, " ".join(stored(i) for i in inputs), words, " ".join(stored(e) for e in expected),
        f"abs={absolute:g} rel={relative:g}",
    ]))


def f32(shape, low=-1.0, high=1.0):
    return rng.uniform(low, high, shape).astype(np.float32)


def wide(array):
    return array.astype(np.float64)


def words(numbers):
    return ",".join(str(n) for n in numbers)


SPECIAL = {
    "nan": np.array([np.nan, 1.0, -np.nan, 0.5], np.float32),
    "inf": np.array([np.inf, -np.inf, 0.0, -0.0, 3.4e38, -3.4e38, 1.0], np.float32),
    "denormal": np.array([1e-45, -1e-45, 1e-40, -1e-40, 1.1754944e-38, -1.1754944e-38], np.float32),
}
TINY = 1.2e-38  # a device may flush subnormal values to 0


def binary():
    ops = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "minimum": np.minimum,
        "maximum": np.maximum, "pow": np.power,
    }
    shapes = [
        ((5,), (5,)), ((2, 3, 4), (4,)), ((2, 1, 4), (3, 1)), ((1,), (7,)), ((2, 3, 1, 5), (4, 1)), ((), (3, 3)),
        ((33, 1), (1, 31)), ((1, 1), (1, 1)), ((2, 5, 3), (2, 5, 3)),
    ]
    for name, op in ops.items():
        rel = {"pow": 4e-6, "div": 1e-6}.get(name, 2e-7)
        for one, two in shapes:
            a, b = (f32(one, 0.1, 4), f32(two, -3, 3)) if name == "pow" else (f32(one, -4, 4), f32(two, -4, 4))
            if name == "div":
                b = np.where(np.abs(b) < 0.1, np.float32(0.5), b)
            case(name, [a, b], op(wide(a), wide(b)).astype(np.float32), 1e-6, rel)
        if name != "pow":
            for kind, values in SPECIAL.items():
                a, b = np.meshgrid(values, np.array([1.0, -2.0, 0.0, np.inf, np.nan], np.float32))
                a, b = a.ravel(), b.ravel()
                case(name, [a, b], op(wide(a), wide(b)).astype(np.float32), TINY, 1e-6, special=kind)
        if name in ("add", "sub", "mul", "minimum", "maximum"):
            for one, two in shapes[:3]:
                a = rng.integers(-1000, 1000, one, dtype=np.int32)
                b = rng.integers(-1000, 1000, two, dtype=np.int32)
                case(name, [a, b], op(a, b))
                a = rng.integers(2000, 4000, one, dtype=np.uint32)
                b = rng.integers(0, 2000, two, dtype=np.uint32)
                case(name, [a, b], op(a, b))
    a = np.array([2**31 - 1, -(2**31), 65536, 3], np.int32)
    b = np.array([1, -1, 65536, -5], np.int32)
    for name in ("add", "sub", "mul"):
        case(name, [a, b], ops[name](a, b), wraps=1)


def unary():
    verf = np.vectorize(erf, otypes=[np.float64])
    ops = {
        "neg": (np.negative, 0), "abs": (np.abs, 0), "relu": (lambda x: np.maximum(x, 0), 0),
        "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 2e-6), "tanh": (np.tanh, 2e-6),
        "gelu": (lambda x: 0.5 * x * (1 + verf(x / np.sqrt(2))), 2e-6), "silu": (lambda x: x / (1 + np.exp(-x)), 2e-6),
        "exp": (np.exp, 2e-6), "log": (np.log, 2e-6), "sqrt": (np.sqrt, 1e-6), "square": (np.square, 3e-7),
    }
    shapes = [(1,), (7,), (3, 5), (2, 3, 4, 5), (129,), ()]
    for name, (op, rel) in ops.items():
        for shape in shapes:
            a = f32(shape, 0.01, 20) if name in ("log", "sqrt") else f32(shape, -6, 6)
            near = {"log": 1e-6, "gelu": 1e-6, "tanh": 1e-6}.get(name, 1e-7)
            case(name, [a], op(wide(a)).astype(np.float32), near, rel)
        for kind, values in SPECIAL.items():
            if name in ("gelu", "silu"):
                values = values[values != -np.inf]
            case(name, [values], op(wide(values)).astype(np.float32), TINY, 4e-6, special=kind)
    far = np.array([-200, -110, -104, -90, -87, -20, 20, 87, 88, 90, 104, 200], np.float32)
    for name in ("exp", "sigmoid", "tanh", "silu", "gelu"):
        case(name, [far], ops[name][0](wide(far)).astype(np.float32), 2e-6 if name == "gelu" else TINY * 100, 4e-6, special="far")
    for low, high in ((-1, 1), (0, 6), (0.5, 0.5)):
        a = f32((3, 11), -8, 8)
        case("clamp", [a], np.clip(a, np.float32(low), np.float32(high)), min=low, max=high)
    case("clamp", [SPECIAL["inf"]], np.clip(SPECIAL["inf"], -2, 3).astype(np.float32), special="inf", min=-2, max=3)


def casts():
    types = [np.float32, np.float16, np.int32, np.uint32, np.uint8, np.int8]
    floats = [0, -0.0, 0.4, 0.5, 0.9, 1.5, -0.9, -1.5, 2.5, 126.6, 127.5, 128, -128.9, -129, 254.9, 255.5, 256, 300, -300]
    beyond = [65504, 65520, 70000, -70000, 2147483520, 2147483648, -2147483648, 4294967040, 4294967296, 1e20, -1e20,
              np.inf, -np.inf, np.nan, 1e-8, 0.1, 1 / 3, 16777217]
    for one in types:
        if one is np.float32:
            a = np.array(floats + beyond, np.float32)
        elif one is np.float16:
            a = np.array(floats + [65504, -65504, np.inf, -np.inf, np.nan, 6e-8, 0.1], np.float16)
        else:
            limits = np.iinfo(one)
            a = np.array([0, 1, 2, 3, 100, limits.max, limits.max - 1, limits.min, limits.min + 1], one)
            a = np.concatenate([a, rng.integers(limits.min, limits.max, 12, dtype=one, endpoint=True)])
        for two in types:
            if one is two:
                expected = a
            elif np.dtype(two).kind == "f":
                expected = a.astype(np.float32).astype(two)
            elif np.dtype(one).kind == "f":
                limits = np.iinfo(two)
                expected = np.nan_to_num(np.trunc(wide(a)), nan=0.0, posinf=limits.max, neginf=limits.min)
                expected = np.clip(expected, limits.min, limits.max).astype(np.int64).astype(two)
            else:
                expected = a.astype(np.int64).astype(two)
            case("cast", [a], expected, to=NAMES[np.dtype(two).name])


def moves():
    arrays = [f32((3, 5)), f32((2, 3, 4)), f32((2, 3, 4, 5)), f32((17, 33)),
              rng.integers(0, 256, (5, 7, 3), dtype=np.uint8), rng.integers(-128, 128, (4, 9), dtype=np.int8),
              f32((3, 4, 2)).astype(np.float16), rng.integers(-9, 9, (2, 1, 5), dtype=np.int32)]
    orders = {2: [(1, 0)], 3: [(1, 0, 2), (2, 1, 0), (2, 0, 1), (0, 2, 1)], 4: [(0, 3, 1, 2), (3, 2, 1, 0), (0, 2, 3, 1), (1, 0, 3, 2)]}
    for a in arrays:
        for order in orders[a.ndim]:
            case("transpose", [a], np.ascontiguousarray(a.transpose(order)), axes=words(order))
    for a in arrays:
        start = [int(rng.integers(0, n)) for n in a.shape]
        end = [int(rng.integers(s + 1, n + 1)) for s, n in zip(start, a.shape)]
        box = tuple(slice(s, e) for s, e in zip(start, end))
        case("slice", [a], np.ascontiguousarray(a[box]), start=words(start), end=words(end))
    for axis, shapes in ((0, [(2, 3), (1, 3), (4, 3)]), (1, [(2, 3), (2, 5)]), (-1, [(2, 3, 1), (2, 3, 4)]), (0, [(3,), (1,), (0,)]),
                         (1, [(2, 1, 3, 2), (2, 4, 3, 2)])):
        for dtype in (np.float32, np.float16, np.uint8):
            parts = [(f32(s, 0, 200)).astype(dtype) for s in shapes]
            case("concat", parts, np.concatenate(parts, axis), axis=axis)
    for a in arrays:
        for axis in range(a.ndim):
            kind = np.int32 if axis % 2 == 0 else np.uint32
            indices = rng.integers(0, a.shape[axis], 5).astype(kind)
            case("gather", [a, indices], np.take(a, indices.astype(np.int64), axis), axis=axis)


def products():
    sizes = [((), 1, 1, 1), ((), 5, 7, 3), ((), 17, 33, 9), ((), 1, 65, 40), ((), 40, 1, 65), ((), 20, 35, 41), ((3,), 4, 5, 6), ((2, 2), 3, 9, 5)]
    for batch, m, n, k in sizes:
        for ta in (0, 1):
            for tb in (0, 1):
                a = f32((*batch, k, m) if ta else (*batch, m, k))
                b = f32((*batch, n, k) if tb else (*batch, k, n))
                turn = lambda x, t: np.swapaxes(x, -1, -2) if t else x
                expected = np.matmul(turn(wide(a), ta), turn(wide(b), tb)).astype(np.float32)
                case("matmul", [a, b], expected, 1e-5, 1e-5, transpose_a=ta, transpose_b=tb)
                if m * n < 1000:
                    a, b = a.astype(np.float16), b.astype(np.float16)
                    expected = np.matmul(turn(wide(a), ta), turn(wide(b), tb)).astype(np.float32)
                    case("matmul", [a, b], expected, 1e-5, 1e-5, transpose_a=ta, transpose_b=tb)
                a = rng.integers(-128, 128, a.shape, dtype=np.int8)
                b = rng.integers(-128, 128, b.shape, dtype=np.int8)
                one, two = f32((1,), 0.001, 0.02), f32((1,) if ta else (n,), 0.001, 0.02)
                sums = np.matmul(turn(a.astype(np.int64), ta), turn(b.astype(np.int64), tb))
                case("matmul_i8", [a, b, one, two], (sums * wide(one) * wide(two)).astype(np.float32), 1e-6, 1e-6,
                     transpose_a=ta, transpose_b=tb)
    a, b = f32((3, 4, 5)), f32((5, 2))
    case("matmul", [a, b], np.matmul(wide(a), wide(b)).astype(np.float32), 1e-5, 1e-5, transpose_a=0, transpose_b=0)


def reductions():
    shapes = [(1,), (7,), (65,), (3, 5), (1, 4), (2, 3, 4), (2, 3, 4, 5), (3, 70), (70, 3), (5, 1, 3)]
    ops = {
        "sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min,
        "mean_of_squares": lambda x, axis, keepdims=False: np.mean(np.square(x), axis=axis, keepdims=keepdims),
    }
    for shape in shapes:
        for axis in range(len(shape)):
            a = f32(shape, -3, 3)
            signed = axis - len(shape) if axis % 2 else axis
            for name, op in ops.items():
                keep = int(rng.integers(0, 2))
                expected = op(wide(a), axis=axis, keepdims=bool(keep)).astype(np.float32)
                near = 0 if name in ("max", "min") else 1e-6 * shape[axis] if name == "sum" else 1e-6
                case(name, [a], expected, near, near and 2e-6, axis=signed, keep=keep)
            levels = np.round(a).astype(np.float32)  # with ties
            case("argmax", [levels], np.argmax(levels, axis).astype(np.uint32), axis=signed)
            case("argmin", [levels], np.argmin(levels, axis).astype(np.uint32), axis=signed)
            for name in ("softmax", "log_softmax"):
                b = f32(shape, -10, 10)
                e = np.exp(wide(b) - wide(b).max(axis, keepdims=True))
                share = e / e.sum(axis, keepdims=True)
                expected = share if name == "softmax" else np.log(share)
                case(name, [b], expected.astype(np.float32), 1e-6 if name == "softmax" else 6e-6, 2e-6, axis=signed)
            for kind in (np.int32, np.uint32):
                whole = rng.integers(-99 if kind is np.int32 else 0, 99, shape).astype(kind)
                for name in ("sum", "max", "min"):
                    case(name, [whole], ops[name](whole, axis=axis).astype(kind), axis=signed, keep=0)
    bad = np.array([[1, np.nan, 3], [np.inf, 1, 2], [-np.inf, -np.inf, -np.inf], [0, -np.inf, 0], [1000, 0, -1000]], np.float32)
    e = np.exp(wide(bad) - wide(bad).max(1, keepdims=True))
    case("softmax", [bad], (e / e.sum(1, keepdims=True)).astype(np.float32), TINY, 1e-6, axis=1, special="nan")
    for name in ("sum", "max", "min"):
        case(name, [bad], ops[name](wide(bad), axis=1).astype(np.float32), axis=1, keep=0, special="nan")
    case("argmax", [bad], np.argmax(bad, 1).astype(np.uint32), axis=1, special="nan")
    case("argmin", [bad], np.argmin(bad, 1).astype(np.uint32), axis=1, special="nan")


def norms():
    for shape in ((1, 2), (3, 5), (2, 3, 64), (4, 129), (7,)):
        for scaled in (0, 1, 2):
            a = f32(shape, -2, 5)
            x = wide(a)
            y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
            inputs = [a]
            if scaled:
                gamma = f32(shape[-1:], 0.5, 2)
                y, inputs = y * wide(gamma), [a, gamma]
            if scaled == 2:
                beta = f32(shape[-1:])
                y, inputs = y + wide(beta), [*inputs, beta]
            case("layer_norm", inputs, y.astype(np.float32), 1e-5, 1e-5, eps="1e-5")


def quantised(a, axis):
    """Scales and integers, in float32 as the scheme defines them."""
    sizes = np.where(np.isfinite(a), np.abs(a), 0)
    most = sizes.max() if axis is None else sizes.max(tuple(i for i in range(a.ndim) if i != axis))
    scale = np.where(most == 0, np.float32(1), np.maximum(most / np.float32(127), np.finfo(np.float32).tiny)).astype(np.float32)
    scale = np.atleast_1d(scale)
    shape = [-1 if i == axis else 1 for i in range(a.ndim)] if axis is not None else [1] * a.ndim
    scaled = a / scale.reshape(shape)
    q = np.clip(np.rint(np.nan_to_num(scaled, nan=0, posinf=127, neginf=-127)), -127, 127).astype(np.int8)
    return q, scale, scaled


def quants():
    for shape in ((1,), (9,), (3, 5), (4, 3, 6), (130,)):
        for axis in (None, *range(len(shape))):
            a = f32(shape, -3, 3)
            while True:
                # Away from halves, because an extra rounding would change the result there.
                q, scale, scaled = quantised(a, axis)
                close = np.abs(np.abs(scaled - np.floor(scaled)) - 0.5) < 1e-2
                if not close.any():
                    break
                a = np.where(close, a * np.float32(0.93), a).astype(np.float32)
            case("quantize", [a], (q, scale), 0, 1e-6, axis=axis)
            back = q.astype(np.float64) * wide(scale).reshape([-1 if i == axis else 1 for i in range(a.ndim)] if axis is not None else [1])
            case("dequantize", [q, scale], back.astype(np.float32), 0, 2e-7, axis=axis)
    for kind, values in {
        "ties": [127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5], "zeros": [0, -0.0, 0], "nan": [np.nan, 254, -2],
        "inf": [np.inf, -np.inf, 254, -2], "denormal": [1e-40, -1e-40],
    }.items():
        a = np.array(values, np.float32)
        q, scale, _ = quantised(a, None)
        case("quantize", [a], (q, scale), 0, 1e-6, special=kind)


def pictures():
    def resized(image, oh, ow, how):
        h, w, _ = image.shape
        y, x = (np.arange(oh) + 0.5) * h / oh, (np.arange(ow) + 0.5) * w / ow
        if how == "nearest":
            return image[np.minimum(y.astype(int), h - 1)][:, np.minimum(x.astype(int), w - 1)].astype(np.float64)
        y, x = np.clip(y - 0.5, 0, h - 1), np.clip(x - 0.5, 0, w - 1)
        y0, x0 = y.astype(int), x.astype(int)
        y1, x1 = np.minimum(y0 + 1, h - 1), np.minimum(x0 + 1, w - 1)
        fy, fx = (y - y0)[:, None, None], (x - x0)[None, :, None]
        image = image.astype(np.float64)
        top = image[y0][:, x0] * (1 - fx) + image[y0][:, x1] * fx
        low = image[y1][:, x0] * (1 - fx) + image[y1][:, x1] * fx
        return top * (1 - fy) + low * fy

    order = {"rgb": [0, 1, 2], "bgr": [2, 1, 0], "rgba": [0, 1, 2, 3], "r": [0]}
    mean, std = [0.485, 0.456, 0.406, 0.5], [0.229, 0.224, 0.225, 0.25]
    for (h, w), (oh, ow) in (((4, 6), (4, 6)), ((5, 7), (8, 3)), ((9, 5), (4, 11)), ((1, 1), (3, 2)), ((16, 12), (7, 5))):
        image = rng.integers(0, 256, (h, w, 4), dtype=np.uint8)
        for how in ("bilinear", "nearest"):
            for channels, picks in order.items():
                for layout in ("nchw", "nhwc"):
                    normal = channels != "r"
                    m = np.array(mean[:len(picks)] if normal else [0.0])
                    s = np.array(std[:len(picks)] if normal else [1.0])
                    v = (resized(image, oh, ow, how)[:, :, picks] / 255 - m) / s
                    v = v.transpose(2, 0, 1)[None] if layout == "nchw" else v[None]
                    case("image_to_tensor", [image], np.ascontiguousarray(v).astype(np.float32), 1e-5, 1e-5, height=oh, width=ow,
                         resize=how, channels=channels, layout=layout, mean=words(m), std=words(s))
    for h, w in ((3, 5), (1, 1), (8, 6)):
        for channels, picks in order.items():
            for layout in ("nchw", "nhwc"):
                m, s = np.array(mean[:len(picks)]), np.array(std[:len(picks)])
                level = rng.integers(-20, 276, (h, w, len(picks)))
                v = ((level + rng.uniform(-0.4, 0.4, level.shape)) / 255 - m) / s
                byte = np.clip(level, 0, 255).astype(np.uint8)
                image = np.full((h, w, 4), 255, np.uint8)
                if channels == "r":
                    image[:, :, :3] = byte
                else:
                    image[:, :, picks] = byte
                v = v.transpose(2, 0, 1)[None] if layout == "nchw" else v[None]
                case("tensor_to_image", [np.ascontiguousarray(v).astype(np.float32)], image, channels=channels, layout=layout,
                     mean=words(m), std=words(s))
    odd = np.array([np.nan, -1, 2, np.inf, -np.inf, 0.5], np.float32).reshape(1, 1, 2, 3)
    grey = np.array([0, 0, 255, 255, 0, 128], np.uint8)
    image = np.stack([grey, grey, grey, np.full(6, 255, np.uint8)], -1).reshape(2, 3, 4)
    case("tensor_to_image", [odd], image, channels="r", layout="nchw", mean="0.0", std="1.0", special="nan")


for part in (binary, unary, casts, moves, products, reductions, norms, quants, pictures):
    part()
(folder / "cases.txt").write_text("\n".join(cases) + "\n")
(folder / "values.bin").write_bytes(bytes(blob))
