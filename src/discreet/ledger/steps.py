"""Named points at which a crash test may end the process."""

from __future__ import annotations

import os
import signal

_KILL_AT = os.environ.get("DISCREET_KILL_AT")


def step(name: str) -> None:
    """Nothing; or the end of the process, without a further instruction, where DISCREET_KILL_AT says so."""
    if name == _KILL_AT:
        os.kill(os.getpid(), signal.SIGKILL)
