"""Handlers in Python: what they receive, what they may return, how they fail, and how they share the interpreter."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest

import vramp

SOLID = "pattern kind=solid color=102030 label=false size=64x48"


def pixels(text: str, threads: int | None = None, **options: Any) -> list[Any]:
    pipeline = vramp.Pipeline(f"{text} ! app", gpu=False, threads=threads, **options)
    return [np.asarray(frame).copy() for frame in pipeline]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_handler_receives_ticks_and_passes_frames_on(threads: int) -> None:
    seen: list[tuple[int, float, float]] = []
    calls: list[str] = []

    @vramp.handler("t-pass")
    class Pass(vramp.Handler):
        def start(self, ctx: vramp.Context) -> None:
            calls.append(f"start {ctx.name} {ctx.device} {ctx.inputs['video']['size']} {ctx.fps}")

        def process(self, tick: vramp.Tick) -> vramp.Frame:
            seen.append((tick.frame_number, tick.timestamp, tick.delta_time))
            assert tick.input is tick.inputs["video"]
            return tick.input

        def stop(self) -> None:
            calls.append("stop")

    report = vramp.run(f"{SOLID} fps=25 frames=3 ! t-pass name=p ! null", gpu=False, threads=threads)
    assert [(number, timestamp) for number, timestamp, _ in seen] == [(0, 0.0), (1, 0.04), (2, 0.08)]
    assert [delta for _, _, delta in seen[1:]] == [0.04, 0.04]
    assert calls == ["start p cpu (64, 48) 25.0", "stop"]
    assert report.counters["frame_copies"] == 0


def test_a_taken_frame_is_changed_in_place() -> None:
    @vramp.handler("t-take")
    class Take(vramp.Handler):
        def process(self, tick: vramp.Tick) -> vramp.Frame:
            frame = tick.take()
            frame[..., 0] = 200
            return frame

    pipeline = vramp.Pipeline(f"{SOLID} frames=5 ! t-take ! app", gpu=False)
    assert all((np.asarray(frame)[..., 0] == 200).all() for frame in pipeline)
    assert pipeline.report is not None
    assert pipeline.report.counters["frame_copies"] == 0


def test_an_output_is_lent_and_an_array_is_copied() -> None:
    @vramp.handler("t-output")
    class Output(vramp.Handler):
        def process(self, tick: vramp.Tick) -> Any:
            if tick.frame_number % 2:
                return 255 - np.asarray(tick.input)
            frame = tick.output()
            np.subtract(255, np.asarray(tick.input), out=np.asarray(frame))
            return frame

    frames = pixels(f"{SOLID} frames=4 ! t-output")
    assert len(frames) == 4
    assert all((frame[..., 0] == 239).all() for frame in frames)


def test_none_filters_a_frame() -> None:
    @vramp.handler("t-odd")
    class Odd(vramp.Handler):
        def process(self, tick: vramp.Tick) -> vramp.Frame | None:
            return tick.input if tick.frame_number % 2 else None

    pipeline = vramp.Pipeline(f"{SOLID} frames=6 ! t-odd ! app", gpu=False)
    assert [frame.number for frame in pipeline] == [1, 3, 5]
    assert pipeline.report is not None
    assert pipeline.report.filtered == 3


def test_settings_are_declared_checked_and_attributes() -> None:
    @vramp.handler(
        "t-settings",
        fade=int,
        name_of="x",
        level=vramp.setting(float, default=0.5, least=0, most=1, live=True, about="how much"),
        mode=vramp.setting(["soft", "hard"], default="soft"),
        at=vramp.setting("size", default=(4, 3)),
        tint=vramp.setting("color", default="ff8000"),
        exact=False,
    )
    class Settings(vramp.Handler):
        def process(self, tick: vramp.Tick) -> vramp.Frame:
            tick.note("values", repr([self.fade, self.name_of, self.level, self.mode, self.at, self.tint, self.exact]))
            return tick.input

        fade: int
        name_of: str
        level: float
        mode: str
        at: tuple[int, int]
        tint: tuple[int, int, int, int]
        exact: bool

    (frame,) = vramp.Pipeline(f"{SOLID} frames=1 ! t-settings fade=3 mode=hard exact=true ! app", gpu=False)
    assert frame.notes["values"] == "[3, 'x', 0.5, 'hard', (4, 3), (255, 128, 0, 255), True]"
    with pytest.raises(vramp.MistakeError, match="fade"):
        vramp.Pipeline(f"{SOLID} ! t-settings ! null", gpu=False)
    with pytest.raises(vramp.MistakeError, match="from 0 to 1"):
        vramp.Pipeline(f"{SOLID} ! t-settings fade=1 level=2 ! null", gpu=False)
    pipeline = vramp.Pipeline(f"{SOLID} ! t-settings name=s fade=3 ! app", gpu=False, threads=1)
    frames = iter(pipeline)
    next(frames)
    pipeline["s"].level = 0.75
    assert any("0.75" in str(next(frames).notes["values"]) for _ in range(20))
    pipeline.stop()


def test_registering_again_replaces() -> None:
    for value in (1, 2):

        class Fill(vramp.Handler):
            value = 0

            def process(self, tick: vramp.Tick) -> vramp.Frame:
                frame = tick.take()
                frame[:] = self.value
                return frame

        Fill.value = value
        vramp.handler("t-again")(Fill)
        assert pixels(f"{SOLID} frames=1 ! t-again")[0][0, 0, 0] == value


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: vramp.handler("blur")(vramp.Handler), "blur"),
        (lambda: vramp.handler("no name")(vramp.Handler), "starts with a letter"),
        (lambda: vramp.handler("t-x", a=[1])(vramp.Handler), "expected a type, a default value or vramp.setting"),
        (lambda: vramp.handler("t-x", a=vramp.setting(int, default=5, most=3))(vramp.Handler), "the default of a"),
        (lambda: vramp.handler("t-x", a=bytes)(vramp.Handler), "cannot be a bytes"),
        (lambda: vramp.handler("t-x")(type("X", (), {})), "has no method `process`"),
        (lambda: vramp.handler("t-x")(type("X", (vramp.Handler,), {"spaces": ("gpu",)})), "runs on the cpu"),
        (lambda: vramp.handler("t-x")(type("X", (vramp.Handler,), {"inputs": {"video": "rgb9"}})), "`rgb9` is not"),
        (lambda: vramp.handler("t-x")(type("X", (vramp.Handler,), {"inputs": "video"})), "expected names such as"),
    ],
)
def test_wrong_declarations_are_refused(make: Any, words: str) -> None:
    with pytest.raises(vramp.HandlerError, match=words):
        make()


def test_an_exception_is_the_failure_of_its_frame() -> None:
    @vramp.handler("t-raise")
    class Raise(vramp.Handler):
        def process(self, tick: vramp.Tick) -> vramp.Frame:
            if tick.frame_number == 2:
                raise LookupError("the third frame")
            return tick.input

    with pytest.raises(vramp.RunError) as caught:
        vramp.run(f"{SOLID} frames=5 ! t-raise name=r ! null", gpu=False)
    assert (caught.value.handler, caught.value.frame) == ("r", 2)
    assert isinstance(caught.value.__cause__, LookupError)
    assert "the third frame" in str(caught.value)
    assert "test_handlers.py" in str(caught.value), "the traceback names the line"
    pipeline = vramp.Pipeline(f"{SOLID} frames=5 ! t-raise on-error=skip ! app", gpu=False)
    assert [frame.number for frame in pipeline] == [0, 1, 3, 4]
    assert pipeline.report is not None
    assert pipeline.report.failed == 1
    assert any("the third frame" in event for event in pipeline.events)


def test_a_retry_calls_the_handler_once_more() -> None:
    calls: list[int] = []

    @vramp.handler("t-retry")
    class Retry(vramp.Handler):
        def process(self, tick: vramp.Tick) -> vramp.Frame:
            calls.append(tick.frame_number)
            if calls.count(1) == 1 and tick.frame_number == 1:
                raise LookupError
            return tick.take()

    assert len(pixels(f"{SOLID} frames=3 ! t-retry on-error=retry")) == 3
    assert calls == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3, "process returned nonsense: expected a frame, an array, a dict of outputs, or None, got int"),
        ("text", "got str"),
        (np.zeros((2, 2, 4), np.uint8), r"expected an array of uint8 with the shape \[48, 64, 4\]"),
        (np.zeros((48, 64, 4)), "got float64"),
        ({"audio": None}, "no output `audio`; the outputs: video"),
        ({3: None}, "the keys of a returned dict are names of outputs"),
    ],
)
def test_nonsense_is_the_failure_of_the_handler(value: Any, words: str) -> None:
    @vramp.handler("t-nonsense")
    class Nonsense(vramp.Handler):
        def process(self, tick: vramp.Tick) -> Any:
            return value

    with pytest.raises(vramp.RunError, match=words) as caught:
        vramp.run(f"{SOLID} frames=1 ! t-nonsense name=n ! null", gpu=False)
    assert caught.value.handler == "n"


def test_failures_of_start_and_of_init_name_the_handler() -> None:
    @vramp.handler("t-start")
    class Start(vramp.Handler):
        def start(self, ctx: vramp.Context) -> None:
            raise OSError("no camera")

        def process(self, tick: vramp.Tick) -> vramp.Frame:
            return tick.input

    with pytest.raises(vramp.Error, match="no camera") as caught:
        vramp.run(f"{SOLID} frames=1 ! t-start ! null", gpu=False)
    assert isinstance(caught.value.__cause__, OSError)

    @vramp.handler("t-init")
    class Init(vramp.Handler):
        def __init__(self) -> None:
            raise OSError("no model")

        def process(self, tick: vramp.Tick) -> vramp.Frame:
            return tick.input

    with pytest.raises(vramp.PrepareError, match="no model") as prepared:
        vramp.Pipeline(f"{SOLID} frames=1 ! t-init ! null", gpu=False)
    assert isinstance(prepared.value.__cause__, OSError)


def test_several_ports_and_data() -> None:
    @vramp.handler("t-two")
    class Two(vramp.Handler):
        inputs = ("a", "b")
        outputs = ("sum", "difference")

        def process(self, tick: vramp.Tick) -> dict[str, Any]:
            a, b = np.asarray(tick.inputs["a"]), np.asarray(tick.inputs["b"])
            return {"sum": a | b, "difference": a & b}

    text = (
        "pattern name=p kind=solid color=0f0000 label=false size=8x4 frames=2; "
        "pattern name=q kind=solid color=f10000 label=false size=8x4 frames=2; "
        "p. ! two.a; q. ! two.b; t-two name=two; two.sum ! app name=s; two.difference ! app name=d"
    )
    pipeline = vramp.Pipeline(text, gpu=False).start()
    sums, differences = pipeline.frames("s"), pipeline.frames("d")
    for _ in range(2):
        assert np.asarray(next(sums))[0, 0, 0] == 0xFF
        assert np.asarray(next(differences))[0, 0, 0] == 0x01
    pipeline.stop()


def test_detections_are_data() -> None:
    @vramp.handler("t-detect")
    class Detect(vramp.Handler):
        outputs = {"boxes": "data"}

        def process(self, tick: vramp.Tick) -> Any:
            return [(1, 2, 3, 4, 0.5, tick.frame_number)]

    @vramp.handler("t-read")
    class Read(vramp.Handler):
        inputs = {"boxes": "data"}
        outputs = ()
        seen: list[Any] = []

        def process(self, tick: vramp.Tick) -> None:
            self.seen.extend(tick.input.detections)

    vramp.run(f"{SOLID} frames=2 ! t-detect ! t-read", gpu=False)
    assert Read.seen == [(1, 2, 3, 4, 0.5, 0), (1, 2, 3, 4, 0.5, 1)]


def test_sources_and_sinks_are_handlers_too() -> None:
    got: list[int] = []

    @vramp.handler("t-source", start_at=5)
    class Source(vramp.Handler):
        inputs = ()
        start_at: int

        def process(self, tick: vramp.Tick) -> Any:
            if tick.frame_number == 3:
                raise StopIteration
            frame = tick.output()
            frame[:] = self.start_at + tick.frame_number
            return frame

    @vramp.handler("t-sink")
    class Sink(vramp.Handler):
        outputs = ()

        def process(self, tick: vramp.Tick) -> None:
            got.append(int(np.asarray(tick.input)[0, 0, 0]))

    report = vramp.run("t-source size=16x8 fps=30 ! t-sink", gpu=False)
    assert got == [5, 6, 7]
    assert report.frames_out == 3


def test_coroutines_are_handlers_too() -> None:
    @vramp.handler("t-async")
    class Async(vramp.Handler):
        async def start(self, ctx: vramp.Context) -> None:
            await asyncio.sleep(0)
            self.queue: asyncio.Queue[int] = asyncio.Queue()

        async def process(self, tick: vramp.Tick) -> vramp.Frame:
            await self.queue.put(tick.frame_number)
            await asyncio.sleep(0.001)
            tick.note("from", await self.queue.get())
            return tick.input

        async def stop(self) -> None:
            await asyncio.sleep(0)

    for threads in (1, 2):
        frames = list(vramp.Pipeline(f"{SOLID} frames=5 ! t-async ! app", gpu=False, threads=threads))
        assert [frame.notes["from"] for frame in frames] == [0, 1, 2, 3, 4]


def test_what_a_handler_keeps_does_not_change() -> None:
    kept: list[Any] = []

    @vramp.handler("t-keep")
    class Keep(vramp.Handler):
        def process(self, tick: vramp.Tick) -> vramp.Frame:
            if tick.frame_number == 0:
                frame = tick.take()
                array = np.asarray(frame)
                array[:] = 77
                kept.append(array)
                kept.append(tick)
                return frame
            return tick.input

    frames = pixels("pattern size=64x48 frames=20 ! t-keep ! invert")
    assert (kept[0] == 77).all()
    assert (frames[0][..., 0] == 255 - 77).all()
    with pytest.raises(RuntimeError, match="the tick is over"):
        kept[1].take()
    with pytest.raises(RuntimeError, match="the tick is over"):
        kept[1].input  # noqa: B018


def test_keeping_every_frame_in_a_handler_names_the_handler() -> None:
    kept: list[Any] = []

    @vramp.handler("t-hoard")
    class Hoard(vramp.Handler):
        def process(self, tick: vramp.Tick) -> None:
            kept.append(tick.input)

    with pytest.raises(vramp.RunError, match="hoard keeps 2[0-9] frames"):
        vramp.run("pattern size=640x480 frames=2000 ! t-hoard name=hoard ! null", gpu=False, memory=32 << 20)
    kept.clear()


def test_other_lanes_do_not_wait_for_the_interpreter() -> None:
    @vramp.handler("t-hold")
    class Hold(vramp.Handler):
        def process(self, tick: vramp.Tick) -> vramp.Frame:
            return tick.input

    # The main thread holds the interpreter while a pipeline without Python runs beside it.
    pipeline = vramp.Pipeline("pattern size=64x48 ! null", gpu=False).start()
    before = pipeline.progress[0]
    until = time.perf_counter() + 0.3
    while time.perf_counter() < until:
        pass
    during = pipeline.progress[0] - before
    pipeline.stop()
    assert during > 100


def test_a_handler_that_is_collected_in_mid_run_works_on() -> None:
    def build() -> vramp.Pipeline:
        @vramp.handler("t-collected")
        class Collected(vramp.Handler):
            def process(self, tick: vramp.Tick) -> vramp.Frame:
                if tick.frame_number % 10 == 0:
                    gc.collect()
                return tick.take()

        return vramp.Pipeline(f"{SOLID} frames=100 ! t-collected ! app", gpu=False)

    pipeline = build()
    vramp.handler("t-collected")(vramp.Handler)
    gc.collect()
    assert sum(1 for _ in pipeline) == 100


def test_many_threads_and_handlers_do_not_deadlock() -> None:
    @vramp.handler("t-busy")
    class Busy(vramp.Handler):
        def process(self, tick: vramp.Tick) -> vramp.Frame:
            sum(range(200))
            return tick.take()

    counts: list[int] = []

    def run() -> None:
        text = f"{SOLID} frames=60 ! t-busy ! blur ! t-busy ! app"
        counts.append(sum(1 for _ in vramp.Pipeline(text, gpu=False)))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert counts == [60] * 4


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_a_handler_ends_the_run_and_stays_what_it_is(threads: int, end: type[BaseException]) -> None:
    @vramp.handler("t-end")
    class End(vramp.Handler):
        def process(self, tick: vramp.Tick) -> None:
            raise end

    with pytest.raises(end):
        pixels(f"{SOLID} frames=9 ! t-end on-error=skip", threads)


def test_a_failed_run_keeps_nothing_of_its_callers() -> None:
    @vramp.handler("t-wrong")
    class Wrong(vramp.Handler):
        def process(self, tick: vramp.Tick) -> None:
            raise ValueError("wrong")

    class Local:
        pass

    left: list[weakref.ref[Local]] = []

    def caller() -> None:
        local = Local()
        left.append(weakref.ref(local))
        pipeline = vramp.Pipeline(f"{SOLID} frames=2 ! t-wrong ! null", gpu=False)
        for end in (pipeline.run, pipeline.wait):
            with pytest.raises(vramp.RunError, match="wrong") as caught:
                end()
            assert isinstance(caught.value.__cause__, ValueError)
            del caught

    caller()
    gc.collect()
    assert left[0]() is None
