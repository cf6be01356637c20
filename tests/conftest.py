"""What all tests share: how many examples are tried, and of which kind a test is. No test is timed, on a machine that
may be busy with others."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from kinds import QUICK

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy is not loaded yet; small arrays: threads wait for each other
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # tests, and the many processes that they start, are compiled once
sys.dont_write_bytecode = False

settings.register_profile("quick", deadline=None, max_examples=QUICK)
settings.register_profile("thorough", deadline=None, max_examples=300)
settings.load_profile("quick")

HERE = Path(__file__).parent
EXACT = {
    "accounting",
    "accounting_tight",
    "constructions",
    "markov",
    "mechanisms",
    "mechanisms_order",
    "mechanisms_textbook",
    "noise",
    "plan",
    "theory",
    "trusted",
}
"""The folders whose tests need no engine."""

LATER = ("storm", "power", "outside")
"""The kinds that wait for `make test-all`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What no mark sets apart is of the kind of its folder, so that each test is of one kind."""
    for item in items:
        if not any(item.get_closest_marker(kind) for kind in LATER):
            folder = item.path.relative_to(HERE).parts[0]
            item.add_marker("exact" if folder in EXACT else "engine")
