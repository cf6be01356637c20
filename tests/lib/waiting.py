"""Waiting for what must come: for a condition, never for a time, on a machine that may be busy with others."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LONGEST = 300
"""Seconds after which what was waited for does not come: far above what any machine needs."""


def until(holds: Callable[[], Any], every: float = 0.02) -> None:
    """Returns once it holds; looks again after so many seconds."""
    end = time.monotonic() + LONGEST
    while not holds():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(every)


def gone(process: int) -> bool:
    """Whether a process has ended, be it that nobody has let go of it yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
