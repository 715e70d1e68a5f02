"""An effect on a camera: edges in colour over a dark picture, with settings that change while it runs.

    python examples/python/webcam_effect.py camera         # shows a window
    python examples/python/webcam_effect.py                # a test picture, without a window
"""

import sys

import vramp

source, sink = ("camera", "window") if sys.argv[1:] == ["camera"] else ("pattern size=320x240 frames=60", "null")
pipeline = vramp.Pipeline(
    f"{source} name=cam ! brightness -0.4 ! mix name=both amount=0.7 ! hue name=colour 0 ! {sink} cam. ! edges ! both.b",
    fps=None if sink == "window" else 120,
)
pipeline.start()
angle = 0
while not pipeline.wait(timeout=0.05):
    angle = (angle + 10) % 360
    pipeline["colour"].degrees = angle
print(pipeline.report)
