"""Real-time video and ML pipelines that stay on the GPU.

>>> import vramp
>>> p = vramp.Pipeline("pattern size=64x48 frames=3 ! blur sigma=2 ! app", gpu=False)
>>> [frame.shape for frame in p]
[(48, 64, 4), (48, 64, 4), (48, 64, 4)]
"""

from __future__ import annotations

import os as _os
import sys as _sys

if "t" in _sys.abiflags:
    raise ImportError(
        "vramp does not support free-threaded builds of Python (such as python3.13t): its handlers rely on the GIL; "
        "use the ordinary build of the same version"
    )

if _sys.platform == "linux" and "XDG_RUNTIME_DIR" not in _os.environ:
    # Graphics drivers look for a Wayland socket while they list adapters, and print warnings without this variable.
    _os.environ["XDG_RUNTIME_DIR"] = _os.environ.get("TMPDIR", "/tmp")

from . import _vramp, errors
from ._fuse import fuse
from ._handler import Handler, Setting, handler, setting
from ._run import run
from ._vramp import (
    Context,
    Frame,
    Frames,
    Graph,
    Lend,
    Model,
    Node,
    Pipeline,
    Plan,
    Plane,
    Port,
    Ports,
    Report,
    Settings,
    Store,
    Tensor,
    Tick,
    __version__,
    from_dlpack,
    tensor,
    zeros,
)
from .errors import (
    DeviceError,
    DTypeError,
    Error,
    FilesError,
    ForkError,
    HandlerError,
    HoldError,
    Mistake,
    MistakeError,
    ModelError,
    PanicError,
    PlanError,
    PrepareError,
    PullError,
    PushError,
    RunError,
    SettingError,
    SourceError,
    StateError,
    StoreError,
    TensorError,
    Timeout,
)

__all__ = [
    "Context",
    "DTypeError",
    "DeviceError",
    "Error",
    "FilesError",
    "ForkError",
    "Frame",
    "Frames",
    "Graph",
    "Handler",
    "HandlerError",
    "HoldError",
    "Lend",
    "Mistake",
    "MistakeError",
    "Model",
    "ModelError",
    "Node",
    "PanicError",
    "Pipeline",
    "Plan",
    "PlanError",
    "Plane",
    "Port",
    "Ports",
    "PrepareError",
    "PullError",
    "PushError",
    "Report",
    "RunError",
    "Setting",
    "SettingError",
    "Settings",
    "SourceError",
    "StateError",
    "Store",
    "StoreError",
    "Tensor",
    "TensorError",
    "Tick",
    "Timeout",
    "__version__",
    "errors",
    "from_dlpack",
    "fuse",
    "handler",
    "run",
    "setting",
    "tensor",
    "zeros",
]


def _at_exit() -> None:
    if _vramp.at_exit():
        return
    failed = getattr(_sys, "last_value", None) is not None
    print("vramp: a Python handler did not return; the process ends without waiting for it", file=_sys.stderr)
    _sys.stdout.flush()
    _sys.stderr.flush()
    _vramp.leave(1 if failed else 0)


import atexit as _atexit  # noqa: E402

_atexit.register(_at_exit)
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_vramp.after_fork_in_child)
