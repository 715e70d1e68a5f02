"""`vramp.fuse`: ops that are computed together, as a `with` block or as a decorator."""

from __future__ import annotations

from . import _vramp
from ._vramp import Recording, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, ParamSpec, TypeVar, overload

    _P = ParamSpec("_P")
    _R = TypeVar("_R")


# Recordings that a function keeps; the oldest one leaves.
_MOST_RECORDINGS = 64


class Fusing:
    """A block in which ops are written down. They are computed together when a result is read."""

    def __enter__(self) -> Fusing:
        _vramp.begin_fuse()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _vramp.end_fuse()


if TYPE_CHECKING:

    @overload
    def fuse(function: None = None, /) -> Fusing: ...
    @overload
    def fuse(function: Callable[_P, _R], /) -> Callable[_P, _R]: ...


def fuse(function: Callable[_P, _R] | None = None, /) -> Any:
    """Computes several ops as one.

    As a decorator, the function runs once for each combination of shapes, types and other arguments, to record its ops;
    later calls repeat the recording without running the function. It must compute with its tensors only. As a `with` block, ops are
    written down and computed when a result is read.

    >>> import vramp
    >>> @vramp.fuse
    ... def scaled(x, factor):
    ...     return (x * factor).relu().sum()
    >>> scaled(vramp.tensor([1.0, -2.0], device="cpu"), 3).item()
    3.0
    """
    if function is None:
        return Fusing()
    import functools

    recordings: dict[Any, tuple[Recording, Any]] = {}

    @functools.wraps(function)
    def fused(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if _vramp.is_recording():
            # Part of the function that is being recorded.
            return function(*args, **kwargs)
        tensors: list[Tensor] = []
        key = (_key(args, tensors), _key(kwargs, tensors))
        found = recordings.get(key)
        if found is None:
            shape: list[Any] = []

            def once(stand_ins: list[Tensor]) -> list[Tensor]:
                left = iter(stand_ins)
                result = function(*_filled(args, left), **_filled(kwargs, left))
                results: list[Tensor] = []
                shape.append(_key(result, results, keeps=True))
                return results

            recording = Recording(once, tensors)
            if len(recordings) >= _MOST_RECORDINGS:
                recordings.pop(next(iter(recordings)), None)
            found = recordings[key] = (recording, shape[0])
        recording, form = found
        rebuilt: _R = _rebuilt(form, iter(recording.run(tensors)))
        return rebuilt

    return fused


def _key(value: Any, tensors: list[Tensor], keeps: bool = False) -> Any:
    """The form of nested values, with their tensors collected."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return ("tensor",) if keeps else ("tensor", value.shape, value.dtype)
    if isinstance(value, (tuple, list)):
        return (type(value).__name__, tuple(_key(item, tensors, keeps) for item in value))
    if isinstance(value, dict):
        return ("dict", tuple((name, _key(item, tensors, keeps)) for name, item in value.items()))
    hash(value)
    return ("value", type(value), value)


def _filled(value: Any, left: Any) -> Any:
    """The value with other tensors, in the order of `_key`."""
    if isinstance(value, Tensor):
        return next(left)
    if isinstance(value, (tuple, list)):
        return type(value)([_filled(item, left) for item in value])
    if isinstance(value, dict):
        return {name: _filled(item, left) for name, item in value.items()}
    return value


def _rebuilt(form: Any, left: Any) -> Any:
    """The result of a form."""
    match form:
        case ("tensor",):
            return next(left)
        case ("tuple", items):
            return tuple(_rebuilt(item, left) for item in items)
        case ("list", items):
            return [_rebuilt(item, left) for item in items]
        case ("dict", items):
            return {name: _rebuilt(item, left) for name, item in items}
        case ("value", _, value):
            return value
        case _:
            raise TypeError("a fused function returns tensors, and tuples, lists and dicts of tensors")
