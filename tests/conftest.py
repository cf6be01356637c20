"""What all tests share: how many examples are tried, and of which kind a test is; `tests/lib/shared.py` has the
fixtures. No test is timed, on a machine that may be busy with others."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import tempfile

import pytest
from hypothesis import settings

from kinds import QUICK

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy is not loaded yet; small arrays: threads wait for each other
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # tests, and the many processes that they start, are compiled once
sys.dont_write_bytecode = False
tempfile.tempdir = os.environ.get("PYTEST_DEBUG_TEMPROOT")  # where `make` has room in memory for files
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts with SIGINT ignored what it starts with &

gc.set_threshold(20_000, 20)  # trees of SQL make much that is let go of at once

pytest_plugins = ["shared", "ledger_places"]

settings.register_profile("quick", deadline=None, max_examples=QUICK)
settings.register_profile("thorough", deadline=None, max_examples=300)
settings.load_profile("quick")

LATER = ("storm", "power", "outside")
"""The kinds that wait for `make test-all`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What no mark sets apart is of the kind that its file names, "exact" or else "engine", so that each test is of one
    kind."""
    for item in items:
        if not any(item.get_closest_marker(kind) for kind in LATER):
            item.add_marker(getattr(item.module, "KIND", "engine"))  # type: ignore[attr-defined]


def pytest_collection_finish() -> None:
    """Modules and thousands of tests stay to the end: what looks for garbage does not go through them again, before
    the process ends: pytest does so several times at its own end."""
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)
