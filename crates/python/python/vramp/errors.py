"""The exceptions of vramp: one class per kind of failure. All of them derive from `Error`."""

from __future__ import annotations

__all__ = [
    "DTypeError",
    "DeviceError",
    "Error",
    "FilesError",
    "ForkError",
    "HandlerError",
    "HoldError",
    "Mistake",
    "MistakeError",
    "ModelError",
    "PanicError",
    "PlanError",
    "PrepareError",
    "PullError",
    "PushError",
    "RunError",
    "SettingError",
    "SourceError",
    "StateError",
    "StoreError",
    "TensorError",
    "Timeout",
]


class Error(Exception):
    """The base of all exceptions of vramp."""


class Mistake:
    """One mistake in the text of a pipeline, or in a graph."""

    __slots__ = ("column", "end", "expected", "help", "line", "start", "title")

    title: str
    """The problem in one line."""
    expected: str
    help: str | None
    """The remedy: the nearest name or an edit."""
    line: int | None
    """Counted from 1; `None` if the graph does not come from text."""
    column: int | None
    """Counted from 1, in characters."""
    start: int | None
    """Index of the first wrong character in the text."""
    end: int | None

    def __init__(
        self,
        title: str,
        expected: str,
        help: str | None = None,
        line: int | None = None,
        column: int | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> None:
        self.title = title
        self.expected = expected
        self.help = help
        self.line = line
        self.column = column
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        place = "" if self.line is None else f" at {self.line}:{self.column}"
        return f"<Mistake {self.title!r}{place}>"


class MistakeError(Error, ValueError):
    """Mistakes in the text of a pipeline or in a graph, all of them at once, each with a caret under its place."""

    mistakes: list[Mistake]
    text: str | None
    """The text in which the mistakes are; `None` for a graph that was built in Python."""


class SourceError(Error):
    """A source could not be probed, for example because its file is missing."""

    handler: str | None


class FilesError(Error):
    """The run would overwrite a file that it reads, or write one file twice."""


class HandlerError(Error, ValueError):
    """The declaration of a handler is wrong."""


class PlanError(Error):
    """No plan satisfies the options."""


class DeviceError(Error):
    """The plan needs a device, and no device could be opened."""


class PrepareError(Error):
    """The pipeline could not be built from its plan."""

    handler: str | None


class RunError(Error):
    """A run failed. If a Python handler failed, `__cause__` is the exception of the handler."""

    handler: str | None
    """The handler that failed."""
    frame: int | None
    """The number of the frame on which it failed."""


class SettingError(Error, ValueError):
    """A setting was not changed; the pipeline has the settings that it had before."""


class StateError(Error, RuntimeError):
    """The call does not fit the state of the pipeline, or the pipeline has no such end."""


class PushError(Error):
    """A frame was not pushed."""


class PullError(Error):
    """No frame was pulled."""


class HoldError(PullError):
    """No frame can come, because the program holds all frames that it may hold."""


class Timeout(Error, TimeoutError):
    """A push or a pull took longer than its timeout."""


class TensorError(Error, ValueError):
    """A tensor op failed, or its shapes do not fit."""

    kind: str
    """`dimension`, `unsupported`, `memory`, `gone` or `other`."""


class DTypeError(TensorError, TypeError):
    """vramp has no such element type."""


class ModelError(Error):
    """A model could not be loaded or run."""


class StoreError(Error):
    """A store of tensors refused a call."""


class ForkError(Error):
    """The process was forked after vramp had started threads or opened a device."""


class PanicError(Error):
    """A defect of vramp. Please report it."""
