"""A source, two drawings, a counter in Python and a sink, linked as a graph: what `vramp demo` runs, with one handler of
your own.

The plan says what runs where, and what is transferred. Nothing in the program chooses a side: on a machine with a fast
GPU, the first three handlers run there, and one download brings the frames to the counter.
"""

import vramp


@vramp.handler("counter")
class Counter(vramp.Handler):
    """Counts frames and writes the count into the frame's notes."""

    def start(self, ctx: vramp.Context) -> None:
        self.count = 0
        print(f"{ctx.name} runs on the {ctx.device} with frames of {ctx.inputs['video']}")

    def process(self, tick: vramp.Tick) -> vramp.Frame:
        self.count += 1
        tick.note("count", self.count)
        return tick.input


graph = vramp.Graph()
ball = graph.add("pattern", kind="ball", size=(640, 480), frames=60)
markers = graph.add("markers")
wave = graph.add("waveform")
counter = graph.add("counter")
text = graph.add("text", text="frame {frame}, counted {count}")
sink = graph.add("null")
graph.connect(ball.outputs["video"], markers.inputs["video"])
graph.connect(markers, wave)
graph.connect(wave, counter)
graph.connect(counter, text)
graph.connect(text, sink)

pipeline = vramp.Pipeline(graph)
print(pipeline.plan)
print(pipeline.run())
