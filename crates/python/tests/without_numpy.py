"""Uses the package in an environment that has nothing else."""

from __future__ import annotations

import sys

import vramp

assert "numpy" not in sys.modules
numbers = []
for frame in vramp.Pipeline("pattern kind=solid color=102030 label=false size=64x48 frames=5 ! app", gpu=False):
    view = memoryview(frame)
    assert view.readonly and view.shape == (48, 64, 4) and view[0, 0, 0] == 0x10
    numbers.append(frame.number)
assert numbers == [0, 1, 2, 3, 4]


@vramp.handler("count", limit=3)
class Count(vramp.Handler):
    limit: int

    def process(self, tick: vramp.Tick) -> vramp.Frame | None:
        return tick.input if tick.frame_number < self.limit else None


assert vramp.run("pattern size=64x48 frames=9 ! count ! null", gpu=False).filtered == 6
assert (vramp.tensor([1.0, -2.0], device="cpu") * 2).relu().tolist() == [2, 0]
print(f"{sys.version.split()[0]}: works without numpy")
