"""Handlers in Python: the decorator, the base class, and declarations of settings."""

from __future__ import annotations

from . import _vramp
from .errors import HandlerError

# Not imported from `typing`, because importing that module takes longer than the rest of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from ._vramp import Context, Tick

    _C = TypeVar("_C", bound=type)

_MISSING: Any = object()


class Handler:
    """The base class of handlers in Python. Every method may also be `async def`.

    >>> import vramp
    >>> @vramp.handler("darker", amount=vramp.setting(float, default=0.5, least=0, most=1))
    ... class Darker(vramp.Handler):
    ...     amount: float
    ...     def process(self, tick):
    ...         frame = tick.take()
    ...         frame[..., :3] = frame[..., :3] * (1 - self.amount)
    ...         return frame
    >>> vramp.run("pattern size=64x48 frames=2 ! darker amount=0.8 ! null", gpu=False).frames
    2
    """

    inputs: dict[str, str] | Iterable[str] = ("video",)
    """The inputs: names, or names with what they carry: a format such as `rgba8`, `any`, `tensor` or `data`."""
    outputs: dict[str, str] | Iterable[str] = ("video",)
    spaces: Iterable[str] = ("cpu",)
    """Where the handler's frames are. A handler in Python runs on the CPU."""

    def start(self, ctx: Context) -> Any:
        """Called once before the first frame."""

    def process(self, tick: Tick) -> Any:
        """Called for every frame.

        Returns a frame, an array, a dictionary of outputs, or None to discard the frame.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method `process`")

    def stop(self) -> Any:
        """Called once after the last frame."""


class Setting:
    """The declaration of a setting; made by `vramp.setting`."""

    __slots__ = ("about", "choices", "default", "kind", "least", "live", "most", "optional")

    def __init__(
        self,
        kind: str,
        default: Any,
        least: float | None,
        most: float | None,
        choices: tuple[str, ...],
        live: bool,
        optional: bool,
        about: str,
    ) -> None:
        self.kind = kind
        self.default = default
        self.least = least
        self.most = most
        self.choices = choices
        self.live = live
        self.optional = optional
        self.about = about

    def __repr__(self) -> str:
        return f"<vramp.Setting {self.kind}>"


_KINDS = {int: "int", float: "float", bool: "bool", str: "str"}
_NAMED = ("size", "color", "path")


def setting(
    kind: type | str | Iterable[str],
    default: Any = _MISSING,
    *,
    least: float | None = None,
    most: float | None = None,
    live: bool = False,
    optional: bool = False,
    about: str = "",
) -> Setting:
    """Declares a setting of a handler.

    `kind` is `int`, `float`, `bool`, `str`, `"size"`, `"color"`, `"path"`, or a list of words to choose from. A setting
    without a default must be given, unless it is optional. A live setting may change while the pipeline runs.
    """
    choices: tuple[str, ...] = ()
    if isinstance(kind, type):
        word = _KINDS.get(kind)
        if word is None:
            raise HandlerError(f"a setting cannot be a {kind.__name__}; expected int, float, bool, str or words")
    elif isinstance(kind, str):
        word = kind
        if word not in _NAMED:
            raise HandlerError(f"`{word}` is not a type of a setting; expected one of {', '.join(_NAMED)}, or words")
    else:
        word, choices = "choice", tuple(kind)
    value = None if default is _MISSING else default
    return Setting(word, value, least, most, choices, live, optional, about)


def _declared(name: str, given: Any) -> dict[str, Any]:
    """A setting from its declaration, its type, or its default."""
    if isinstance(given, Setting):
        own = given
    elif isinstance(given, type):
        own = setting(given)
    elif type(given) in _KINDS:
        own = setting(type(given), given)
    else:
        raise HandlerError(f"{name}: expected a type, a default value or vramp.setting(...), got {given!r}")
    default = own.default
    if isinstance(default, bool):
        default = "true" if default else "false"
    elif isinstance(default, tuple) and len(default) == 2 and own.kind == "size":
        default = f"{default[0]}x{default[1]}"
    elif default is not None:
        default = str(default)
    return {
        "name": name.replace("_", "-"),
        "kind": own.kind,
        "default": default,
        "least": own.least,
        "most": own.most,
        "words": list(own.choices),
        "live": own.live,
        "optional": own.optional,
        "about": own.about,
    }


def _ports(declared: dict[str, str] | Iterable[str], what: str) -> list[tuple[str, str]]:
    if isinstance(declared, str):
        raise HandlerError(f"{what}: expected names such as ('video',), got the text {declared!r}")
    if isinstance(declared, dict):
        return [(str(name), str(media)) for name, media in declared.items()]
    return [(str(name), "rgba8") for name in declared]


def handler(
    name: str, /, *, about: str | None = None, bare: str | None = None, blocking: bool = False, **settings: Any
) -> Callable[[_C], _C]:
    """Registers a class as a kind of handler of this process. Registering a name again replaces the class.

    Settings are types (`fade=int`: must be given), defaults (`fade=8`), or `vramp.setting(...)`. They are attributes of
    the instance before `start`. The setting `bare` may be given without its key. A `blocking` handler waits for the outside, such as a network, and has a thread of its
    own.
    """

    def register(cls: _C) -> _C:
        if not callable(getattr(cls, "process", None)):
            raise HandlerError(f"{name}: the class {cls.__name__} has no method `process`")
        spaces = tuple(getattr(cls, "spaces", ("cpu",)))
        if spaces != ("cpu",):
            raise HandlerError(f"{name}: a handler in Python runs on the cpu; spaces cannot be {spaces!r}")
        text = about if about is not None else (cls.__doc__ or "").strip().partition("\n")[0]
        _vramp.register(
            {
                "name": name,
                "about": text or "a handler in Python",
                "inputs": _ports(getattr(cls, "inputs", ("video",)), "inputs"),
                "outputs": _ports(getattr(cls, "outputs", ("video",)), "outputs"),
                "settings": [_declared(key, value) for key, value in settings.items()],
                "bare": bare.replace("_", "-") if bare is not None else None,
                "blocking": blocking,
            },
            cls,
        )
        return cls

    return register
