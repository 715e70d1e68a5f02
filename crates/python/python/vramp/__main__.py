"""The program `vramp`: `python -m vramp run 'pattern ! blur ! png path=out-%d.png'`."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Runs the program with the arguments of the process. Returns the exit code."""
    from . import _vramp

    # The program handles Ctrl-C itself: it finishes files and prints its report.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _vramp.program(["vramp", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
