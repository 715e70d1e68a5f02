"""The documentation: every block of docs/python.md, the doctests of the package, and the programs in examples/python."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/python.md"


def test_every_block_of_the_page_runs() -> None:
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= 12
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        code = compile("\n" * line + block.group(1), str(PAGE), "exec")
        exec(code, names)  # noqa: S102


@pytest.mark.parametrize("name", ["vramp", "vramp._handler", "vramp._fuse", "vramp._run"])
def test_doctests_pass(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


@pytest.mark.parametrize("path", sorted((ROOT / "examples/python").glob("*.py")), ids=lambda path: path.stem)
def test_examples_run(path: Path) -> None:
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
