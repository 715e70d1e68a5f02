"""The progress of a run, as a bar in a notebook or as a line on standard error."""

from __future__ import annotations

import importlib
import sys
from types import TracebackType
from typing import Any


class Bar:
    """Shows frames, seconds and frames per second. With a total, a bar fills; without one, it moves to and fro."""

    def __init__(self, total: int | None = None) -> None:
        self.total = total
        self.turns = 0
        self.handle: Any = None
        self.html: Any = None
        self.line = ""

    def __enter__(self) -> Bar:
        ipython = sys.modules.get("IPython")
        if ipython is not None and ipython.get_ipython() is not None:
            shown = importlib.import_module("IPython.display")
            self.html = shown.HTML
            self.handle = shown.display(self.html(self.markup(0, 0.0, 0.0)), display_id=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.handle is None and self.line:
            print(file=sys.stderr)

    def update(self, progress: tuple[int, float, float]) -> None:
        """Called about ten times a second, and at the end."""
        self.turns += 1
        frames, seconds, fps = progress
        if self.handle is not None:
            self.handle.update(self.html(self.markup(frames, seconds, fps)))
            return
        width = len(self.line)
        self.line = self.words(frames, seconds, fps)
        print(f"\r{self.line:<{width}}", end="", file=sys.stderr, flush=True)

    def words(self, frames: int, seconds: float, fps: float) -> str:
        of = f" of {self.total}" if self.total else ""
        return f"{frames}{of} frames, {seconds:.1f} s, {fps:.0f} a second"

    def markup(self, frames: int, seconds: float, fps: float) -> str:
        """The bar as HTML."""
        if self.total:
            share = min(1.0, frames / self.total)
            place, width = 0.0, share
        else:
            phase = self.turns % 40
            place, width = (phase if phase < 20 else 40 - phase) / 20 * 0.8, 0.2
        return (
            '<div style="width:24em;height:6px;background:#8884;border-radius:3px">'
            f'<div style="margin-left:{place:.0%};width:{width:.0%};height:6px;background:#4a8;border-radius:3px">'
            f"</div></div><small>{self.words(frames, seconds, fps)}</small>"
        )
