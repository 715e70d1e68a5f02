"""`async for frame in pipeline`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._vramp import Frame, Pipeline

# Seconds that a worker thread waits at a time, so that a cancelled task leaves no thread behind.
_TURN = 0.1


async def frames(pipeline: Pipeline) -> AsyncIterator[Frame]:
    """The frames of the only `app` sink. Other tasks run while no frame is there."""
    import asyncio

    from .errors import Timeout

    pipeline.start()
    loop = asyncio.get_running_loop()

    def pull() -> tuple[bool, Frame | None]:
        try:
            return True, pipeline.pull(timeout=_TURN)
        except Timeout:
            return False, None

    while True:
        try:
            frame = pipeline.pull(timeout=0)
        except Timeout:
            came, frame = await loop.run_in_executor(None, pull)
            if not came:
                continue
        if frame is None:
            return
        yield frame
        del frame
        await asyncio.sleep(0)
