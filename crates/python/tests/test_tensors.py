"""Tensors, fusing, DLPack, models and stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vramp


def cpu(values: Any, dtype: str | None = None) -> vramp.Tensor:
    return vramp.tensor(values, dtype, device="cpu")


def test_values_come_back_in_every_type() -> None:
    for dtype in ("float32", "float16", "int32", "uint32", "uint8", "int8"):
        array = np.arange(12).reshape(3, 4).astype(dtype)
        tensor = cpu(array)
        assert np.asarray(tensor).dtype == array.dtype
        assert (np.asarray(tensor) == array).all()
        assert tensor.tolist() == array.tolist()
        assert tensor.tobytes() == array.tobytes()
    assert (cpu([[1, 2], [3, 4]]).dtype, cpu([1.5]).dtype, cpu(True).shape) == ("i32", "f32", ())
    assert cpu([1, 2], "f16").dtype == "f16"
    assert vramp.zeros((2, 3), "f16", device="cpu").numpy().tolist() == [[0, 0, 0], [0, 0, 0]]
    strided = np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::3]
    assert (np.asarray(cpu(strided)) == strided).all()


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "int16", "uint16", "bool", "complex64"])
def test_types_that_vramp_lacks_are_refused_by_name(dtype: str) -> None:
    with pytest.raises(vramp.DTypeError, match=f"no element type {dtype}.*astype"):
        cpu(np.zeros(3, dtype))
    with pytest.raises(vramp.DTypeError, match=f"no element type {dtype}"):
        vramp.zeros((1,), dtype, device="cpu")


def test_operators_are_those_of_numpy() -> None:
    a, b = np.array([[1.5, -2], [3, 4]], np.float32), np.array([[2, 3], [-1, 0.5]], np.float32)
    x, y = cpu(a), cpu(b)
    for ours, theirs in [
        (x + y, a + b),
        (x - y, a - b),
        (x * y, a * b),
        (x / y, a / b),
        (x @ y, a @ b),
        (x + 1, a + 1),
        (1 + x, 1 + a),
        (1 - x, 1 - a),
        (2 * x, 2 * a),
        (6 / x, 6 / a),
        (x**2, a**2),
        (-x, -a),
        (abs(x), abs(a)),
        (x + b, a + b),
        (x < y, (a < b).astype(np.float32)),
        (x > 0, (a > 0).astype(np.float32)),
        (x.T, a.T),
        (x[0], a[0]),
        (x[:, 1:], a[:, 1:]),
        (x[..., -1], a[..., -1]),
        (x.sum(), a.sum()),
        (x.sum(0), a.sum(0)),
        (x.mean(1, keepdims=True), a.mean(1, keepdims=True)),
        (x.max(), a.max()),
        (x.reshape(4), a.reshape(4)),
        (x.reshape(-1, 1), a.reshape(-1, 1)),
        (x.permute(1, 0), a.T),
        (x.relu(), np.maximum(a, 0)),
        (x.exp().log(), a),
    ]:
        assert np.asarray(ours).shape == np.asarray(theirs).shape
        assert np.allclose(np.asarray(ours), theirs, rtol=1e-5)
    assert int(x.argmax()) == 3
    assert float(x.sum()) == 6.5
    assert bool(x[0, 0] > 1)
    assert len(x) == 2
    assert hash(x) == hash(x)
    assert x.softmax().sum(-1).tolist() == pytest.approx([1, 1])
    with pytest.raises(TypeError):
        x + "text"  # type: ignore[operator]


def test_mistakes_of_ops_are_exceptions_with_a_kind() -> None:
    with pytest.raises(vramp.TensorError, match="do not broadcast") as caught:
        cpu([1.0, 2.0]) + cpu([1.0, 2.0, 3.0])
    assert caught.value.kind == "dimension"
    assert isinstance(caught.value, ValueError)
    with pytest.raises(vramp.TensorError, match="no axis 3"):
        cpu([1.0]).sum(3)
    with pytest.raises(IndexError):
        cpu([1.0])[4]
    with pytest.raises(ValueError, match="different lengths"):
        cpu([[1], [1, 2]])
    with pytest.raises(vramp.TensorError, match="300 does not fit u8"):
        cpu([300], "u8")
    with pytest.raises(TypeError, match="expected an array"):
        cpu("text")
    with pytest.raises(ValueError, match="`cpu` or `gpu`"):
        vramp.tensor([1.0], device="tpu")  # type: ignore[arg-type]


def test_an_array_of_a_tensor_is_read_only_and_outlives_it() -> None:
    array = np.asarray(cpu([1.0, 2.0]) * 2)
    assert not array.flags.writeable
    assert array.tolist() == [2, 4]


def test_a_block_of_ops_is_computed_together() -> None:
    x = cpu([1.0, -2.0, 3.0])
    with vramp.fuse():
        y = (x * 2 + 1).relu()
        assert "vramp.Tensor [3]" in repr(y)
        with pytest.raises(vramp.TensorError):
            y + cpu([1.0, 2.0])
    assert y.tolist() == [3, 0, 7]


def test_a_function_is_recorded_once_for_each_shape() -> None:
    runs: list[tuple[int, ...]] = []
    weight = cpu([2.0])

    @vramp.fuse
    def scaled(x: vramp.Tensor, by: float, more: dict[str, vramp.Tensor]) -> dict[str, Any]:
        runs.append(x.shape)
        return {"a": (x * by * weight).relu(), "b": [more["y"] - x, x]}

    for values in ([1.0, -1.0], [2.0, 3.0], [1.0, 2.0, 3.0], [4.0, 5.0]):
        x = cpu(values)
        out = scaled(x, 3, {"y": x * 10})
        assert out["a"].tolist() == [max(value * 6, 0) for value in values]
        assert out["b"][0].tolist() == [value * 9 for value in values]
        assert out["b"][1].tolist() == values
    assert runs == [(2,), (3,)]
    assert scaled(cpu([1.0]), 4, {"y": cpu([1.0])})["a"].tolist() == [8]
    assert len(runs) == 3


def test_a_recorded_function_cannot_read_values() -> None:
    @vramp.fuse
    def reads(x: vramp.Tensor) -> vramp.Tensor:
        return x * float(x.sum())

    with pytest.raises(ValueError, match="recorded once"):
        reads(cpu([1.0]))
    kept: list[vramp.Tensor] = []

    @vramp.fuse
    def leaks(x: vramp.Tensor) -> vramp.Tensor:
        kept.append(x)
        return x + 1

    assert leaks(cpu([1.0])).tolist() == [2]
    with pytest.raises(RuntimeError, match="after the function"):
        kept[0] + 1


def test_dlpack_shares_read_only_memory_of_the_host() -> None:
    x = cpu(np.arange(6, dtype=np.float32).reshape(2, 3))
    shared = np.from_dlpack(x)
    assert (shared == np.asarray(x)).all()
    assert not shared.flags.writeable
    assert shared.__array_interface__["data"][0] == np.asarray(x).__array_interface__["data"][0]
    copied = np.from_dlpack(x, copy=True)
    assert copied.flags.writeable
    copied[:] = 0
    assert x.tolist() != copied.tolist()
    assert np.from_dlpack(x, copy=False).shape == (2, 3)
    del x
    assert shared.sum() == 15
    assert cpu([1.0]).__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="read-only"):
        cpu([1.0]).__dlpack__(copy=False)
    with pytest.raises(BufferError, match="on the host"):
        cpu([1.0]).__dlpack__(max_version=(1, 0), dl_device=(2, 0))


def test_arrays_of_other_libraries_come_in_by_dlpack() -> None:
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert vramp.from_dlpack(array, device="cpu").tolist() == array.tolist()
    assert vramp.from_dlpack(array[::2, ::2], device="cpu").tolist() == array[::2, ::2].tolist()
    with pytest.raises(vramp.DTypeError, match="int64"):
        vramp.from_dlpack(np.zeros(2, np.int64), device="cpu")
    with pytest.raises(TypeError, match="no `__dlpack__`"):
        vramp.from_dlpack([1.0], device="cpu")


def test_frames_are_tensors() -> None:
    (frame,) = vramp.Pipeline("pattern kind=solid color=102030 label=false size=8x4 frames=1 ! app", gpu=False)
    tensor = cpu(frame)
    assert (tensor.shape, tensor.dtype) == ((4, 8, 4), "u8")
    assert tensor[0, 0].tolist() == [0x10, 0x20, 0x30, 255]
    shared = np.from_dlpack(frame)
    assert not shared.flags.writeable
    assert shared.__array_interface__["data"][0] == np.asarray(frame).__array_interface__["data"][0]


def test_the_gpu_gives_the_same_values_and_refuses_to_share_them() -> None:
    x = vramp.tensor(np.arange(64, dtype=np.float32), device="gpu")
    y = (x * 3 + 1).reshape(8, 8).sum(0)
    assert y.device == "gpu"
    with pytest.raises(BufferError, match="on the GPU"):
        y.__dlpack__(max_version=(1, 0), copy=False)
    z = cpu(np.arange(64, dtype=np.float32))
    assert y.tolist() == (z * 3 + 1).reshape(8, 8).sum(0).tolist()
    with pytest.raises(vramp.TensorError, match="different contexts"):
        x + z


def test_a_store_shares_named_tensors_and_keeps_them_in_files(tmp_path: Path) -> None:
    store = vramp.Store(folder=tmp_path, device="cpu")
    store.register("weights", np.ones((2, 2), np.float32), model="a", consumers=["b"])
    assert store.tensor("weights", model="b").tolist() == [[1, 1], [1, 1]]
    with pytest.raises(vramp.StoreError):
        store.tensor("weights", model="c")
    assert store.share("weights", model="a", to=["c"]) == 1
    assert store.tensor("weights", model="c").shape == (2, 2)
    assert "weights" in store and len(store) == 1
    store.persist("weights")
    store.unregister("weights", model="a")
    assert store.names == []
    store.load("weights", model="a")
    assert store.tensor("weights", model="a").tolist() == [[1, 1], [1, 1]]
    assert vramp.Store(folder=tmp_path, device="cpu").restore(model="z") == ["weights"]


def test_a_model_is_called_with_arrays(tmp_path: Path) -> None:
    path = tmp_path / "relu.onnx"
    path.write_bytes(relu_model())
    model = vramp.Model(path, device="cpu")
    assert model.inputs == [("x", "f32", [None, 3])]
    assert model.outputs == [("y", "f32", [None, 3])]
    assert model(np.array([[1, -2, 3]], np.float32)).tolist() == [[1, 0, 3]]
    assert model(x=cpu([[-1.0, 0.0, 5.0]])).tolist() == [[0, 0, 5]]
    with pytest.raises(vramp.ModelError, match="z"):
        model(z=cpu([[1.0, 2.0, 3.0]]))
    with pytest.raises(TypeError, match="1 inputs, got 2"):
        model(cpu([[1.0, 2.0, 3.0]]), cpu([1.0]))
    path.write_bytes(b"nonsense")
    with pytest.raises(vramp.ModelError):
        vramp.Model(path, device="cpu")


def relu_model() -> bytes:
    """An ONNX file with one Relu, written by hand."""

    def field(number: int, payload: bytes) -> bytes:
        return bytes([number << 3 | 2, len(payload)]) + payload

    def whole(number: int, value: int) -> bytes:
        return bytes([number << 3, value])

    def port(name: bytes) -> bytes:
        dims = field(1, field(2, b"n")) + field(1, whole(1, 3))
        return field(1, name) + field(2, field(1, whole(1, 1) + field(2, dims)))

    node = field(1, b"x") + field(2, b"y") + field(3, b"n0") + field(4, b"Relu")
    graph = field(1, node) + field(2, b"g") + field(11, port(b"x")) + field(12, port(b"y"))
    return whole(1, 8) + field(7, graph) + field(8, whole(2, 17))


def test_a_fused_function_may_call_another_one() -> None:
    @vramp.fuse
    def doubled(x: vramp.Tensor) -> vramp.Tensor:
        return x * 2

    @vramp.fuse
    def more(x: vramp.Tensor) -> vramp.Tensor:
        return doubled(x) + 1

    assert more(cpu([1.0, 2.0])).tolist() == [3, 5]
    assert doubled(cpu([1.0, 2.0])).tolist() == [2, 4]
    assert more(cpu([10.0, 20.0])).tolist() == [21, 41]


def test_arrays_that_no_memory_holds_are_exceptions() -> None:
    for make in (vramp.tensor, vramp.from_dlpack):
        with pytest.raises(MemoryError, match="do not fit into memory"):
            make(np.broadcast_to(np.float32(0), (1 << 45,)), device="cpu")
