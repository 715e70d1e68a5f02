"""Pushing, pulling and lending: frames of the program."""

from __future__ import annotations

import asyncio
import gc
import threading
import time

import numpy as np
import pytest

import vramp

INVERT = "app size=8x4 fps=30 ! invert ! app"


def picture(value: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.full((4, 8, 4), value, np.uint8)


def test_a_pushed_array_comes_back() -> None:
    with vramp.Pipeline(INVERT, gpu=False) as p:
        p.push(picture(10))
        out = p.pull(timeout=5)
        assert out is not None
        assert (np.asarray(out)[..., :3] == 245).all()
        assert p.ends == (["app0"], ["app1"])
    assert p.report is not None
    assert p.report.frames_out == 1


def test_strided_and_reversed_arrays_are_pushed_as_they_look() -> None:
    base = np.arange(8 * 16 * 4, dtype=np.uint8).reshape(8, 16, 4)
    with vramp.Pipeline("app size=8x4 ! app", gpu=False) as p:
        for array in (base[::2, ::2], base[:4, :8][::-1], base[:4, 8:], np.asfortranarray(base[:4, :8])):
            p.push(array)
            out = p.pull(timeout=5)
            assert out is not None
            assert (np.asarray(out) == array).all()


def test_wrong_arrays_are_refused_in_words() -> None:
    with vramp.Pipeline(INVERT, gpu=False) as p:
        with pytest.raises(TypeError, match=r"expected an array of uint8 with the shape \[4, 8, 4\], got float64"):
            p.push(np.zeros((4, 8, 4)))
        with pytest.raises(TypeError, match=r"with the shape \[4, 8, 3\]"):
            p.push(np.zeros((4, 8, 3), np.uint8))
        with pytest.raises(TypeError, match="expected an array or a frame, got int"):
            p.push(3)


def test_another_size_is_a_change_in_mid_stream() -> None:
    with vramp.Pipeline(INVERT, gpu=False) as p:
        p.push(picture(1))
        assert p.pull(timeout=5) is not None
        p.push(np.zeros((6, 10, 4), np.uint8))
        out = p.pull(timeout=5)
        assert out is not None
        assert out.size == (10, 6)


def test_a_lent_frame_is_sent_at_the_end_of_its_block() -> None:
    with vramp.Pipeline(INVERT, gpu=False) as p:
        with p.lend() as f:
            f[:] = 0
            f[1, 2] = (1, 2, 3, 255)
            assert f.writable
        out = p.pull(timeout=5)
        assert out is not None
        assert tuple(np.asarray(out)[1, 2]) == (254, 253, 252, 255)
        with pytest.raises(BufferError, match="was sent"):
            f[:] = 1
        with pytest.raises(BufferError, match="was sent"):
            np.asarray(f)
        assert "sent" in repr(f)
        with pytest.raises(LookupError), p.lend() as f:
            raise LookupError
        with pytest.raises(vramp.Timeout):
            p.pull(timeout=0.1)
    assert p.report is not None
    assert p.report.counters["frame_copies"] == 0
    assert p.report.frames_out == 1


def test_an_array_that_is_kept_from_a_lent_frame_does_not_reach_the_pipeline() -> None:
    with vramp.Pipeline("app size=8x4 ! app", gpu=False) as p:
        with p.lend() as f:
            kept = np.asarray(f)
            kept[:] = 7
        kept[:] = 9
        out = p.pull(timeout=5)
        assert out is not None
        assert (np.asarray(out) == 7).all()
        assert (kept == 9).all()


def test_frames_go_from_one_pipeline_to_another_without_a_copy() -> None:
    with vramp.Pipeline("app size=64x48 ! invert ! app", gpu=False) as second:
        for frame in vramp.Pipeline("pattern size=64x48 frames=3 ! app", gpu=False):
            second.push(frame)
            out = second.pull(timeout=5)
            assert out is not None
            assert (np.asarray(out)[..., 0] == 255 - np.asarray(frame)[..., 0]).all()


def test_times_are_kept_and_must_grow() -> None:
    with vramp.Pipeline("app size=8x4 ! app", gpu=False) as p:
        p.push(picture(1), pts=1.5)
        out = p.pull(timeout=5)
        assert out is not None
        assert out.pts == 1.5
        with pytest.raises(vramp.PushError, match="not later"):
            p.push(picture(1), pts=1.0)


def test_timeouts_are_timeouts() -> None:
    with vramp.Pipeline(INVERT, gpu=False) as p:
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            p.pull(timeout=0.2)
        assert 0.15 < time.monotonic() - begun < 2
        with pytest.raises(vramp.Timeout):
            for _ in range(100):
                p.push(picture(0), timeout=0.05)
        with pytest.raises(ValueError, match="seconds"):
            p.pull(timeout=-1)


def test_the_newest_frame_passes_over_older_ones() -> None:
    with vramp.Pipeline("app size=8x4 ! app", gpu=False) as p:
        for value in range(2):
            p.push(picture(value))
        while p.report is None and p.progress[0] < 2:
            time.sleep(0.001)
        out = p.latest(timeout=5)
        assert out is not None
        assert np.asarray(out)[0, 0, 0] == 1


def test_the_stream_ends_after_the_input() -> None:
    with vramp.Pipeline(INVERT, gpu=False) as p:
        p.push(picture(1))
        p.end_input()
        assert p.pull(timeout=5) is not None
        assert p.pull(timeout=5) is None
        with pytest.raises(vramp.Error):
            p.push(picture(1))


def test_keeping_every_frame_names_the_holder() -> None:
    for threads in (1, 2):
        pipeline = vramp.Pipeline("pattern size=64x48 frames=1000 ! app name=mine hold=4", gpu=False, threads=threads)
        kept = []
        with pytest.raises(vramp.HoldError, match="mine: the program holds all 4 frames"):
            for frame in pipeline:
                kept.append(frame)
        assert len(kept) == 4
        kept.clear()
        del frame
        pipeline.stop()


def test_an_array_outlives_its_pipeline() -> None:
    def arrays() -> list[np.ndarray[tuple[int, ...], np.dtype[np.uint8]]]:
        pipeline = vramp.Pipeline("pattern kind=solid color=102030 label=false size=64x48 frames=5 ! app", gpu=False)
        return [np.asarray(frame) for frame in pipeline]

    kept = arrays()
    gc.collect()
    others = [np.asarray(frame).sum() for frame in vramp.Pipeline("pattern size=64x48 frames=50 ! app", gpu=False)]
    assert len(others) == 50
    assert all((array[..., 0] == 0x10).all() for array in kept)


def test_threads_push_and_pull_at_the_same_time() -> None:
    with vramp.Pipeline("app size=8x4 ! app", gpu=False) as p:

        def push() -> None:
            for value in range(200):
                p.push(picture(value))
            p.end_input()

        thread = threading.Thread(target=push)
        thread.start()
        seen = [int(np.asarray(frame)[0, 0, 0]) for frame in p.frames()]
        thread.join()
    assert seen == list(range(200))


def test_python_threads_run_while_a_pull_waits() -> None:
    with vramp.Pipeline("app size=8x4 ! app", gpu=False) as p:
        turns = 0

        def count() -> None:
            nonlocal turns
            while not done.is_set():
                turns += 1

        done = threading.Event()
        thread = threading.Thread(target=count)
        thread.start()
        with pytest.raises(vramp.Timeout):
            p.pull(timeout=0.3)
        done.set()
        thread.join()
        assert turns > 1000


def test_frames_are_iterated_in_a_coroutine() -> None:
    async def both() -> tuple[int, int]:
        async def frames() -> int:
            seen = 0
            async for frame in vramp.Pipeline("pattern size=64x48 frames=20 ! app", gpu=False, fps=100):
                assert frame.shape == (48, 64, 4)
                seen += 1
            return seen

        async def other() -> int:
            turns = 0
            for _ in range(20):
                await asyncio.sleep(0.005)
                turns += 1
            return turns

        first, second = await asyncio.gather(frames(), other())
        return first, second

    assert asyncio.run(both()) == (20, 20)


def test_a_cancelled_coroutine_ends() -> None:
    async def cancelled() -> None:
        async def frames() -> None:
            async for _ in vramp.Pipeline("app size=8x4 ! app", gpu=False):
                pass

        task = asyncio.create_task(frames())
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancelled(), 5))


def test_several_ends_are_named() -> None:
    text = "app name=a size=8x4 ! app name=x; app name=b size=8x4 ! invert ! app name=y"
    with vramp.Pipeline(text, gpu=False) as p:
        p.push(picture(1), to="a")
        p.push(picture(1), to="b")
        x, y = p.pull(of="x", timeout=5), p.pull(of="y", timeout=5)
        assert x is not None and y is not None
        assert (np.asarray(x)[0, 0, 0], np.asarray(y)[0, 0, 0]) == (1, 254)
        with pytest.raises(vramp.StateError, match="several `app` sinks, so name one: x, y"):
            p.pull()
        with pytest.raises(vramp.StateError, match="`z` is not an `app` source; there are: a, b"):
            p.push(picture(1), to="z")


def test_a_stopped_pipeline_says_so() -> None:
    p = vramp.Pipeline("pattern size=64x48 ! app", gpu=False)
    frames = iter(p)
    next(frames)
    p.stop()
    with pytest.raises(vramp.StateError, match="stopped"):
        for _ in frames:
            pass
