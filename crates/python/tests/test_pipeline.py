"""Pipelines: running, iterating, plans, reports, settings, graphs, options and mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import vramp

SOLID = "pattern kind=solid color=102030 label=false size=64x48"


def test_a_run_returns_its_report() -> None:
    report = vramp.run(f"{SOLID} frames=5 ! null", gpu=False)
    assert (report.frames, report.frames_in, report.frames_out) == (5, 5, 5)
    assert report.to_dict()["frames"] == 5
    assert json.loads(report.to_json())["backend"] == "cpu"
    assert report.counters["frame_copies"] == 0
    with pytest.raises(AttributeError, match="no figure `nothing`"):
        report.nothing  # noqa: B018


@pytest.mark.parametrize("threads", [1, 2])
def test_every_frame_is_iterated_once_and_in_order(threads: int) -> None:
    pipeline = vramp.Pipeline(f"{SOLID} frames=200 ! app", gpu=False, threads=threads)
    numbers = []
    for frame in pipeline:
        array = np.asarray(frame)
        assert array.shape == (48, 64, 4)
        assert (array[0, 0] == (0x10, 0x20, 0x30, 255)).all()
        numbers.append(frame.number)
    assert numbers == list(range(200))
    assert pipeline.report is not None
    assert pipeline.report.frames_out == 200
    assert pipeline.report.counters["frame_copies"] == 0
    assert not pipeline.running


def test_both_ways_of_iterating_give_the_same_pixels() -> None:
    def sums(threads: int) -> list[int]:
        pipeline = vramp.Pipeline("pattern size=64x48 frames=20 ! blur ! app", gpu=False, threads=threads)
        return [int(np.asarray(frame).astype(np.int64).sum()) for frame in pipeline]

    assert sums(1) == sums(2)


def test_few_memories_serve_many_frames() -> None:
    for threads in (1, 2):
        pipeline = vramp.Pipeline("pattern size=1920x1080 frames=60 ! app", gpu=False, threads=threads)
        addresses = {np.asarray(frame).__array_interface__["data"][0] for frame in pipeline}
        assert len(addresses) <= 6
        assert pipeline.report is not None
        assert pipeline.report.counters["frame_copies"] == 0


def test_other_sinks_get_every_frame_of_a_stepped_pipeline(tmp_path: Path) -> None:
    path = tmp_path / "out.y4m"
    text = f"pattern name=cam size=64x48 frames=9 ! app; cam. ! y4m path={path}"
    pipeline = vramp.Pipeline(text, gpu=False, threads=1)
    assert sum(1 for _ in pipeline) == 9
    assert path.read_bytes().count(b"FRAME") == 9


def test_an_iteration_that_is_left_early_leaves_whole_files(tmp_path: Path) -> None:
    for threads in (1, 2):
        path = tmp_path / f"out{threads}.y4m"
        text = f"pattern name=cam size=64x48 frames=1000000 ! app; cam. ! y4m path={path}"
        for frame in vramp.Pipeline(text, gpu=False, threads=threads):
            if frame.number == 5:
                break
        del frame
        size = path.stat().st_size
        head = path.read_bytes().index(b"\n") + 1
        record = len(b"FRAME\n") + 64 * 48 * 3 // 2
        assert size > head
        assert (size - head) % record == 0


def test_frames_have_times_and_facts() -> None:
    first, second = vramp.Pipeline(f"{SOLID} frames=2 fps=25 ! app", gpu=False)
    assert (first.pts, second.pts) == (0.0, 0.04)
    assert second.pts_ns == 40_000_000
    assert (second.format, second.size, second.space, second.writable) == ("rgba8", (64, 48), "cpu", False)
    assert second.meta["number"] == 1
    assert len(second) == 48
    assert (second[0, 0] == (0x10, 0x20, 0x30, 255)).all()
    assert "rgba8" in repr(second)


def test_arrays_are_read_only() -> None:
    (frame,) = vramp.Pipeline(f"{SOLID} frames=1 ! app", gpu=False)
    array = np.asarray(frame)
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0, 0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.flags.writeable = True
    with pytest.raises(ValueError, match="read-only"):
        frame[0, 0, 0] = 1


def test_padded_rows_and_planes_are_arrays_too() -> None:
    pushed = np.arange(45, dtype=np.uint8).reshape(3, 5, 3)
    with vramp.Pipeline("app size=5x3 format=rgb8 ! app format=rgb8", gpu=False) as p:
        p.push(pushed)
        out = p.pull(timeout=5)
    assert out is not None
    array = np.asarray(out)
    assert array.shape == (3, 5, 3)
    assert array.strides == (16, 3, 1)
    assert (array == pushed).all()
    (frame,) = vramp.Pipeline("pattern size=6x4 frames=1 ! app format=i420", gpu=False)
    assert [plane.shape for plane in frame.planes] == [(4, 6), (2, 3), (2, 3)]
    assert np.asarray(frame.planes[1]).shape == (2, 3)
    (frame,) = vramp.Pipeline("pattern size=6x4 frames=1 ! app format=nv12", gpu=False)
    assert [plane.shape for plane in frame.planes] == [(4, 6), (2, 3, 2)]
    (frame,) = vramp.Pipeline("pattern size=6x4 frames=1 ! app format=gray8", gpu=False)
    assert np.asarray(frame).shape == (4, 6)


def test_a_memoryview_needs_no_numpy() -> None:
    (frame,) = vramp.Pipeline(f"{SOLID} frames=1 ! app", gpu=False)
    view = memoryview(frame)
    assert (view.shape, view.format, view.readonly) == ((48, 64, 4), "B", True)
    assert bytes(view[0, 0, channel] for channel in range(4)) == b"\x10\x20\x30\xff"


def test_the_plan_is_text_a_dictionary_and_a_drawing() -> None:
    pipeline = vramp.Pipeline("pattern size=64x48 frames=1 ! blur name=b ! null", gpu=False)
    plan = pipeline.plan
    assert "b " in str(plan) and "3 handlers on the cpu" in str(plan)
    assert plan.spaces["b"] == "cpu"
    assert {handler["name"] for handler in plan.to_dict()["handlers"]} >= {"b"}
    assert plan.to_dot().startswith("digraph")
    assert plan._repr_html_().lstrip().lower().startswith("<!doctype html>")
    assert "<svg" in plan.to_html()
    assert pipeline.handlers == ["pattern0", "b", "null0"]


def test_the_report_is_drawn_and_is_a_table() -> None:
    report = vramp.run("pattern size=64x48 frames=3 ! blur ! null", gpu=False)
    assert "<svg" in report._repr_html_()
    with pytest.raises(ValueError, match="no table `frames`"):
        report.to_pandas("frames")
    pandas = pytest.importorskip("pandas") if _has("pandas") else None
    if pandas is not None:
        assert list(report.to_pandas()["name"]) == ["pattern0", "blur0", "null0"]
    else:
        with pytest.raises(ModuleNotFoundError, match="pandas"):
            report.to_pandas()


def _has(module: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(module) is not None


def test_settings_change_between_two_frames() -> None:
    pipeline = vramp.Pipeline(f"{SOLID} frames=1000000 ! brightness name=b amount=0 ! app", gpu=False, threads=1)
    frames = iter(pipeline)
    assert np.asarray(next(frames))[0, 0, 0] == 0x10
    assert pipeline["b"].amount == 0
    pipeline["b"].amount = 1
    assert pipeline["b"].amount == 1
    assert any(np.asarray(next(frames))[0, 0, 0] == 255 for _ in range(20))
    pipeline["b"].set(amount=0.5)
    assert pipeline["b"].to_dict()["amount"] == 0.5
    assert "amount" in dir(pipeline["b"])
    pipeline.stop()


def test_wrong_settings_are_refused_in_words() -> None:
    pipeline = vramp.Pipeline("pattern size=64x48 frames=1 ! blur name=b ! null", gpu=False)
    with pytest.raises(vramp.SettingError, match="expected a number from 0.01 to 100"):
        pipeline["b"].sigma = -1
    with pytest.raises(vramp.SettingError, match="did you mean `sigma`"):
        pipeline["b"].sgma = 1
    with pytest.raises(AttributeError, match="no setting"):
        pipeline["b"].nothing  # noqa: B018
    with pytest.raises(vramp.SettingError, match="read when the pipeline starts"):
        pipeline["pattern0"].size = (32, 32)
    with pytest.raises(KeyError, match="no handler `c`; the handlers: pattern0, b, null0"):
        pipeline["c"]


def test_a_graph_is_built_from_handlers_and_links() -> None:
    graph = vramp.Graph()
    camera = graph.add("pattern", size=(64, 48), frames=4)
    blur = graph.add("blur", name="soft", sigma=2)
    sink = graph.add("app")
    graph.connect(camera.outputs["video"], blur.inputs["video"])
    graph.connect(blur, sink, policy="lossless", depth=2)
    assert "blur name=soft sigma=2" in str(graph)
    pipeline = vramp.Pipeline(graph, gpu=False)
    assert pipeline["soft"].sigma == 2
    assert sum(1 for _ in pipeline) == 4
    with pytest.raises(KeyError, match="pattern has no output `sound`; it has: video"):
        camera.outputs["sound"]
    with pytest.raises(TypeError, match="starts at an output"):
        graph.connect(blur.inputs["video"], sink)


def test_mistakes_have_a_caret_and_a_place() -> None:
    with pytest.raises(vramp.MistakeError) as caught:
        vramp.Pipeline("pattern !\n  blru sigma=2 ! null")
    error = caught.value
    assert isinstance(error, ValueError)
    assert "^^^^" in str(error)
    assert "did you mean `blur`?" in str(error)
    (mistake,) = error.mistakes
    assert (mistake.line, mistake.column, mistake.start, mistake.end) == (2, 3, 12, 16)
    assert error.text is not None
    assert error.text[12:16] == "blru"
    with pytest.raises(vramp.MistakeError) as caught:
        vramp.Pipeline('text "grün" ! blru ! null')
    assert caught.value.mistakes[0].column == 15 or len(caught.value.mistakes) > 1


def test_every_kind_of_failure_has_its_class(tmp_path: Path) -> None:
    with pytest.raises(vramp.SourceError, match="does not exist|No such file|not found"):
        vramp.Pipeline(f"image path={tmp_path}/none.png ! null", gpu=False)
    shader = tmp_path / "same.wgsl"
    shader.write_text("fn pixel(color: vec4f, at: vec2u, frame: Frame) -> vec4f { return color; }")
    with pytest.raises(vramp.PlanError):
        vramp.Pipeline(f"pattern size=64x48 frames=1 ! wgsl {shader} ! null", gpu=False)
    with pytest.raises(vramp.FilesError):
        vramp.Pipeline(f"pattern name=c frames=1 ! y4m path={tmp_path}/a.y4m; c. ! y4m path={tmp_path}/a.y4m", gpu=False)
    with pytest.raises(vramp.StateError, match="no `app` sink; write `app` at the end"):
        iter(vramp.Pipeline("pattern frames=1 ! null", gpu=False))
    with pytest.raises(vramp.StateError, match="iterate over the pipeline"):
        vramp.Pipeline("pattern frames=1 ! app", gpu=False).run()
    with pytest.raises(TypeError, match="no option `thread`; did you mean `threads`"):
        vramp.Pipeline("pattern ! null", thread=2)
    with pytest.raises(ValueError, match="threads: expected 1 or more"):
        vramp.Pipeline("pattern ! null", threads=0)
    with pytest.raises(TypeError, match="given as text"):
        vramp.Pipeline(3)  # type: ignore[arg-type]
    for kind in (vramp.SourceError, vramp.PlanError, vramp.FilesError, vramp.StateError, vramp.MistakeError):
        assert issubclass(kind, vramp.Error)


def test_a_run_that_fails_says_where(tmp_path: Path) -> None:
    path = tmp_path / "short.y4m"
    path.write_bytes(b"YUV4MPEG2 W64 H48 F25:1 C420\nFRAME\n" + bytes(100))
    pipeline = vramp.Pipeline(f"y4m path={path} ! app", gpu=False)
    with pytest.raises(vramp.RunError) as caught:
        list(pipeline)
    assert caught.value.handler == "y4m0"
    assert pipeline.report is not None
    assert not pipeline.running


def test_a_pipeline_runs_once() -> None:
    pipeline = vramp.Pipeline(f"{SOLID} frames=1 ! null", gpu=False)
    pipeline.run()
    with pytest.raises(vramp.StateError, match="build it again"):
        pipeline.run()
    pipeline = vramp.Pipeline(f"{SOLID} frames=3 ! app", gpu=False)
    assert len(list(pipeline)) == 3
    assert list(pipeline) == []


def test_options_reach_the_run() -> None:
    assert vramp.run("pattern size=64x48 ! null", gpu=False, frames=7).frames == 7
    report = vramp.run("pattern size=64x48 ! null", gpu=False, seconds=0.2, fps=50)
    assert 1 <= report.frames <= 20
    plan = vramp.Pipeline("pattern frames=1 ! blur name=b ! null", place={"b": "cpu"}).plan
    assert plan.spaces["b"] == "cpu"


def test_progress_is_told_during_a_run_and_at_its_end() -> None:
    told: list[tuple[int, float, float]] = []
    vramp.Pipeline("pattern size=64x48 frames=15 ! null", gpu=False, fps=30).run(progress=told.append)
    assert told[-1][0] == 15
    assert len(told) >= 3
    assert [frames for frames, _, _ in told] == sorted(frames for frames, _, _ in told)


def test_an_exception_in_the_progress_stops_the_run() -> None:
    def fail(progress: tuple[int, float, float]) -> None:
        raise LookupError("enough")

    pipeline = vramp.Pipeline("pattern size=64x48 ! null", gpu=False, fps=30)
    with pytest.raises(LookupError, match="enough"):
        pipeline.run(progress=fail)
    assert not pipeline.running


def test_a_frame_is_a_picture_in_a_notebook() -> None:
    (frame,) = vramp.Pipeline(f"{SOLID} frames=1 ! app", gpu=False)
    png = frame._repr_png_()
    assert png is not None
    assert png.startswith(b"\x89PNG")
    assert png == frame.to_png()
    (frame,) = vramp.Pipeline("pattern size=6x4 frames=1 ! app format=i420", gpu=False)
    assert frame._repr_png_() is None
    with pytest.raises(vramp.Error, match="add `convert rgba8`"):
        frame.to_png()


def test_a_pull_steps_a_pipeline_of_one_thread() -> None:
    pipeline = vramp.Pipeline(f"{SOLID} frames=3 ! app", gpu=False, threads=1)
    numbers = []
    while (frame := pipeline.pull(timeout=5)) is not None:
        numbers.append(frame.number)
    assert numbers == [0, 1, 2]
    pipeline = vramp.Pipeline("pattern size=64x48 fps=1 ! app", gpu=False, threads=1, fps=1)
    assert pipeline.pull(timeout=5) is not None
    with pytest.raises(vramp.Timeout):
        pipeline.pull(timeout=0.1)
    pipeline.stop()


def test_a_run_in_a_notebook_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    shown: list[str] = []

    class ZMQInteractiveShell:
        pass

    class Handle:
        def update(self, html: str) -> None:
            shown.append(html)

    def display(html: str, display_id: bool) -> Handle:
        shown.append(html)
        return Handle()

    ipython, module = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = ZMQInteractiveShell  # type: ignore[attr-defined]
    module.HTML, module.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    vramp.run("pattern size=64x48 frames=15 ! null", gpu=False, fps=30)
    assert len(shown) >= 4
    assert "0 frames" in shown[0] and "15 frames" in shown[-1]
    assert len(set(shown)) == len(shown)
    vramp.run("pattern size=64x48 frames=2 ! null", gpu=False, progress=False)
    assert "15 frames" in shown[-1]


def test_the_bar_of_a_notebook_moves() -> None:
    from vramp._progress import Bar

    bar = Bar()
    bar.turns = 3
    one = bar.markup(10, 1.0, 10.0)
    bar.turns = 4
    assert one != bar.markup(10, 1.0, 10.0)
    assert "width:50%" in Bar(total=20).markup(10, 1.0, 10.0)
