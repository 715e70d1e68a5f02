"""Code that strict mypy must accept: the types that users see."""

from __future__ import annotations

import vramp


@vramp.handler("typed", fade=int, level=vramp.setting(float, default=0.5))
class Typed(vramp.Handler):
    fade: int
    level: float

    def start(self, ctx: vramp.Context) -> None:
        self.name: str = ctx.name

    def process(self, tick: vramp.Tick) -> vramp.Frame:
        frame: vramp.Frame = tick.take()
        number: int = tick.frame_number
        tick.note("number", number)
        return frame


@vramp.fuse
def scaled(x: vramp.Tensor, by: float) -> vramp.Tensor:
    return (x * by).relu()


def use() -> float:
    report: vramp.Report = vramp.run("pattern frames=1 ! typed fade=1 ! null")
    with vramp.Pipeline("app size=8x4 ! app", gpu=False, threads=2) as p:
        with p.lend() as frame:
            frame[:] = 0
        out: vramp.Frame | None = p.pull(timeout=1)
        if out is not None:
            width, height = out.size or (0, 0)
    total: float = sum(frame.pts for frame in vramp.Pipeline(vramp.Graph()))
    y: vramp.Tensor = scaled(vramp.zeros((2, 3), "f16"), 2)
    return report.fps + total + float(y.sum())
