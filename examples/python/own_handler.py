"""A stateful handler: bright pixels leave a trail. The same handler as lesson 2 of the Rust examples."""

import numpy as np

import vramp


@vramp.handler("trail", bare="fade", fade=vramp.setting(int, default=8, least=1, most=255, live=True))
class Trail(vramp.Handler):
    """Lets bright pixels fade slowly."""

    fade: int

    def start(self, ctx: vramp.Context) -> None:
        self.before = None

    def process(self, tick: vramp.Tick) -> vramp.Frame:
        frame = tick.take()  # the frame's own memory, to be changed in place
        pixels = np.asarray(frame)
        if self.before is not None and self.before.shape == pixels.shape:
            np.maximum(pixels, np.maximum(self.before, self.fade) - self.fade, out=pixels)
        self.before = pixels.copy()
        return frame


report = vramp.run("pattern size=320x240 frames=60 ! trail 4 ! text 'trail' ! null")
print(report)
for handler in report.to_dict()["handlers"]:
    print(f"  {handler['name']:10} {handler['p50_us'] or 0:8.1f} us")
