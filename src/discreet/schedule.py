"""Answers on a schedule: when something comes back must not tell what was computed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def on_schedule(seconds: int | None) -> Iterator[None]:
    """Ends `seconds` after it began, or where that has passed at the next multiple, whatever happens inside: an answer,
    a repeat from the ledger, a refusal, a failure. None: at once.

    The number is public. Work that takes longer than one period shows in how many it takes: declare a period above what
    the tables need, and `engine.seconds` below it, so that a runaway question fails inside its period.
    """
    if seconds is None:
        yield
        return
    start = time.monotonic()
    try:
        yield
    finally:
        passed = time.monotonic() - start
        time.sleep(seconds * (int(passed // seconds) + 1) - passed)
