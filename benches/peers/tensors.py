"""What NumPy, PyTorch and ONNX Runtime take for the works of `vramp bench tensor`, on one thread, in CPU time.

Needs `pip install numpy`, and `torch`, `onnx` and `onnxruntime` as far as they are to be measured. Prints one line a
measurement: peer, work, milliseconds of CPU time a call. Names of works may be given; all are measured otherwise. Run by
`cargo bench --bench tensor`. Results are written into memory that is there already wherever a library can.
"""

import os
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import numpy as np

SECONDS = 0.5
ONLY = sys.argv[1:]
RANDOM = np.random.default_rng(1)


def noise(*shape):
    return (RANDOM.random(shape, dtype=np.float32) * 2 - 1).astype(np.float32)


def measure(peer, work, call):
    """CPU time of one call, the median of as many as fit."""
    if ONLY and work not in ONLY:
        return
    for _ in range(3):
        call()
    took, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(took) < 5:
        start = time.process_time_ns()
        call()
        took.append(time.process_time_ns() - start)
    print(f"{peer} {work} {sorted(took)[len(took) // 2] / 1e6:.4f}", flush=True)


A = {side: (noise(side, side), noise(side, side), np.empty((side, side), np.float32)) for side in (512, 1024)}
X = noise(1024, 1024)
BATCH = [noise(262144) for _ in range(10)]
SMALL = noise(16)


def numpy_works():
    for side, (a, b, out) in A.items():
        measure("numpy", f"matmul_f32_{side}", lambda: np.matmul(a, b, out=out))

    def softmax():
        e = np.exp(X - X.max(1, keepdims=True))
        e /= e.sum(1, keepdims=True)

    def chain():
        y = X * np.float32(1.2)
        y += np.float32(0.1)
        np.maximum(y, 0, out=y)
        y -= np.float32(0.3)
        np.tanh(y, out=y)
        y *= np.float32(0.5)
        np.negative(y, out=y)
        np.exp(y, out=y)
        y += 1
        np.reciprocal(y, out=y)
        np.square(y, out=y)

    measure("numpy", "softmax_1024x1024", softmax)
    measure("numpy", "elementwise8_1024x1024", chain)
    measure("numpy", "square_mean_10x1MB", lambda: [float(np.dot(x, x) / x.size) for x in BATCH])
    measure("numpy", "square_mean_10x1MB_upload", lambda: [float(np.dot(y, y) / y.size) for y in map(np.copy, BATCH)])
    measure("numpy", "transfer_10MB_roundtrip", lambda: np.copy(np.concatenate(BATCH)))
    measure("numpy", "op_dispatch_overhead_add16", lambda: SMALL + SMALL)


def torch_works():
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    of = torch.from_numpy
    for side, (a, b, out) in A.items():
        ta, tb, tout = of(a), of(b), of(out)
        measure("torch", f"matmul_f32_{side}", lambda: torch.mm(ta, tb, out=tout))
    x, batch, small = of(X), [of(one) for one in BATCH], of(SMALL)
    measure("torch", "softmax_1024x1024", lambda: torch.softmax(x, 1))

    def chain():
        y = x.mul(1.2).add_(0.1).relu_().sub_(0.3).tanh_().mul_(0.5).sigmoid_()
        return y.square_()

    measure("torch", "elementwise8_1024x1024", chain)
    measure("torch", "square_mean_10x1MB", lambda: [one.square().mean().item() for one in batch])
    measure("torch", "square_mean_10x1MB_upload", lambda: [one.clone().square().mean().item() for one in batch])
    measure("torch", "op_dispatch_overhead_add16", lambda: small + small)


def onnxruntime_works():
    try:
        import onnxruntime
        from onnx import TensorProto, helper
    except ImportError:
        return
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1

    def session(nodes, inputs, output):
        value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        graph = helper.make_graph(nodes, "g", [value(*one) for one in inputs], [value("y", output)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        model.ir_version = 8
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    for side, (a, b, _) in A.items():
        product = session([helper.make_node("MatMul", ["a", "b"], ["y"])], [("a", a.shape), ("b", b.shape)], a.shape)
        measure("onnxruntime", f"matmul_f32_{side}", lambda: product.run(None, {"a": a, "b": b}))
    shares = session([helper.make_node("Softmax", ["x"], ["y"], axis=1)], [("x", X.shape)], X.shape)
    measure("onnxruntime", "softmax_1024x1024", lambda: shares.run(None, {"x": X}))


numpy_works()
torch_works()
onnxruntime_works()
