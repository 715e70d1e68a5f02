"""`vramp.run`: builds and runs a pipeline in one call."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._vramp import Graph, Report


def run(pipeline: str | Graph, /, *, gpu: bool | None = None, progress: bool | None = None, **options: Any) -> Report:
    """Runs a pipeline to its end and returns the report.

    In a notebook, a bar shows the progress; `progress=True` shows it anywhere, `progress=False` nowhere. Interrupting
    the call stops the run, and files have the frames so far.
    """
    from ._vramp import Pipeline

    built = Pipeline(pipeline, gpu=gpu, **options)
    shows = _in_notebook() if progress is None else progress
    if not shows:
        return built.run()
    from ._progress import Bar

    with Bar(total=options.get("frames")) as bar:
        return built.run(progress=bar.update)


def _in_notebook() -> bool:
    import sys

    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"
