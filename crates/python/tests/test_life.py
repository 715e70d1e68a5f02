"""Beginnings and ends: imports, interrupts, forks, leaks, and the program of the package."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

FRAME = len(b"FRAME\n") + 64 * 48 * 3 // 2


def python(code: str, *words: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Runs a program in a Python of its own."""
    command = [sys.executable, "-c", textwrap.dedent(code), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def passes(code: str, *words: str) -> str:
    done = python(code, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_needs_neither_numpy_nor_asyncio() -> None:
    out = passes("import sys, vramp; print([name for name in ('numpy', 'asyncio', 'pandas', 'json') if name in sys.modules])")
    assert out == "[]\n"


def wait_for_frames(folder: Path) -> None:
    """Waits until a program has written some frames. A file has its name only when it is finished."""
    until = time.monotonic() + 30
    while sum(file.stat().st_size for file in folder.iterdir() if file.is_file()) < 4 * FRAME:
        assert time.monotonic() < until, "the program wrote no frames"
        time.sleep(0.01)


def interrupted(code: str, path: Path) -> tuple[float, str]:
    """Starts a program, interrupts it once it writes, and returns how long it took to end and what it printed."""
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for_frames(path.parent)
    begun = time.monotonic()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert "KeyboardInterrupt" in err, err
    return time.monotonic() - begun, out


@pytest.mark.parametrize(
    "code",
    [
        "import sys, vramp\nvramp.run(f'pattern size=64x48 ! y4m path={sys.argv[1]}', gpu=False, fps=200)",
        "import sys, vramp\nfor f in vramp.Pipeline(f'pattern name=c size=64x48 ! app; c. ! y4m path={sys.argv[1]}', "
        "gpu=False, fps=200, threads=1): pass",
        "import sys, vramp\nfor f in vramp.Pipeline(f'pattern name=c size=64x48 ! app; c. ! y4m path={sys.argv[1]}', "
        "gpu=False, fps=200): pass",
        "import sys, vramp\np = vramp.Pipeline(f'app size=8x4 ! app; pattern size=64x48 ! y4m path={sys.argv[1]}', "
        "gpu=False, fps=200).start()\np.pull()",
        "import sys, vramp\np = vramp.Pipeline(f'app size=8x4 ! app; pattern size=64x48 ! y4m path={sys.argv[1]}', "
        "gpu=False, fps=200).start()\nwhile True: p.push(bytearray(128) if False else memoryview(bytearray(128))"
        ".cast('B', (4, 8, 4)))",
    ],
    ids=["run", "stepped", "iterated", "pull", "push"],
)
def test_an_interrupt_ends_with_whole_files(code: str, tmp_path: Path) -> None:
    path = tmp_path / "out.y4m"
    took, _ = interrupted(code, path)
    assert took < 1.5
    data = path.read_bytes()
    head = data.index(b"\n") + 1
    assert (len(data) - head) % FRAME == 0
    assert len(data) > head


def test_a_sleeping_handler_does_not_keep_the_process() -> None:
    code = """
        import time, vramp
        @vramp.handler("sleepy")
        class Sleepy(vramp.Handler):
            def process(self, tick):
                time.sleep(60)
                return tick.input
        p = vramp.Pipeline("pattern size=64x48 ! sleepy ! null", gpu=False).start()
        time.sleep(0.3)
        try:
            p.stop()
            p.wait()
        except vramp.RunError as error:
            print(error)
        print("over")
    """
    begun = time.monotonic()
    done = python(code, timeout=30)
    assert "over" in done.stdout
    assert "sleepy0 did not return" in done.stdout
    assert time.monotonic() - begun < 8
    assert "does not return" in done.stderr or "did not return" in done.stderr
    assert done.returncode == 0


def test_a_pipeline_that_still_runs_at_the_end_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "out.y4m"
    code = """
        import sys, time, vramp
        @vramp.handler("slow")
        class Slow(vramp.Handler):
            def process(self, tick):
                time.sleep(0.005)
                return tick.input
        p = vramp.Pipeline(f"pattern size=64x48 ! slow ! y4m path={sys.argv[1]}", gpu=False).start()
        time.sleep(0.3)
    """
    passes(code, str(path))
    data = path.read_bytes()
    assert (len(data) - data.index(b"\n") - 1) % FRAME == 0


def test_a_child_that_was_forked_before_the_first_use_works() -> None:
    code = """
        import os, sys, vramp
        child = os.fork()
        if child == 0:
            frames = sum(1 for _ in vramp.Pipeline("pattern size=64x48 frames=5 ! app", gpu=False))
            sys.exit(0 if frames == 5 else 1)
        status = os.waitpid(child, 0)[1]
        print(os.waitstatus_to_exitcode(status))
    """
    assert passes(code) == "0\n"


def test_a_child_that_was_forked_later_is_refused_in_words() -> None:
    code = """
        import os, sys, vramp
        p = vramp.Pipeline("pattern size=64x48 ! app", gpu=False)
        frames = iter(p)
        next(frames)
        child = os.fork()
        if child == 0:
            refused = 0
            for use in (lambda: vramp.Pipeline("pattern ! null"), lambda: next(frames), lambda: vramp.tensor([1.0])):
                try:
                    use()
                except vramp.ForkError as error:
                    refused += "spawn" in str(error)
            del p, frames
            sys.exit(refused)
        status = os.waitpid(child, 0)[1]
        print(os.waitstatus_to_exitcode(status))
        print(next(frames).shape)
        p.stop()
    """
    assert passes(code) == "3\n(48, 64, 4)\n"


def test_pipelines_leave_no_thread_and_no_memory() -> None:
    code = """
        import gc, os, time, vramp
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        def threads():
            return len(os.listdir("/proc/self/task"))
        @vramp.handler("touch")
        class Touch(vramp.Handler):
            def process(self, tick):
                return tick.take()
        def turn(n):
            for i in range(n):
                p = vramp.Pipeline("pattern size=64x48 frames=3 ! touch ! app", gpu=False, threads=1 + i % 2)
                if i % 3 == 0:
                    for frame in p: break
                elif i % 3 == 1:
                    assert sum(1 for _ in p) == 3
                del p
        turn(150)
        gc.collect()
        before = resident()
        turn(600)
        gc.collect()
        # Threads of a pool end after the pool was told to.
        until = time.monotonic() + 10
        while threads() > 1 and time.monotonic() < until:
            time.sleep(0.01)
        grown = resident() - before
        print(threads() - 1, grown < 8 << 20, grown)
    """
    out = passes(code)
    assert out.startswith("0 True"), out


def test_the_program_is_part_of_the_package(tmp_path: Path) -> None:
    module = [sys.executable, "-m", "vramp"]
    script = [str(Path(sys.executable).with_name("vramp"))]
    for command in (module, script):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout.split()[0]) == (0, "vramp"), done
        path = tmp_path / "out.y4m"
        words = ["run", f"pattern size=64x48 frames=5 ! y4m path={path}", "--cpu", "--json"]
        done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert '"frames":5' in done.stdout
        done = subprocess.run([*command, "run", "pattern ! blru ! null"], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2
        assert "did you mean `blur`?" in done.stderr


def test_the_program_finishes_files_after_an_interrupt(tmp_path: Path) -> None:
    path = tmp_path / "out.y4m"
    command = [sys.executable, "-m", "vramp", "run", f"pattern size=64x48 ! y4m path={path}", "--cpu", "--fps", "100"]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    wait_for_frames(path.parent)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=30)
    assert child.returncode == 130, err
    assert "Traceback" not in err
    data = path.read_bytes()
    assert (len(data) - data.index(b"\n") - 1) % FRAME == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform does not fork")
def test_a_free_threaded_interpreter_is_refused_in_words() -> None:
    code = """
        import sys
        sys.abiflags = "t"
        try:
            import vramp
        except ImportError as error:
            print(error)
    """
    assert "does not support free-threaded builds" in passes(code)
