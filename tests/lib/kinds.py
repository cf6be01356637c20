"""How much of a test runs when: `make test` takes what is quick, `make test-all` the rest.
And where the files of tests lie."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
DATA = TESTS / "data"

QUICK = 25
"""Examples of a property in `make test`."""


def examples(most: int, quick: int = QUICK) -> int:
    """How many examples of a property are tried: `most` in `make test-all`, in `make test` no more than `quick`."""
    return most if settings.get_current_profile_name() == "thorough" else min(most, quick)


def some(cases: Iterable[Any], kind: pytest.MarkDecorator, quick: int = 1) -> list[Any]:
    """Cases for `parametrize`, of which the first run in `make test` and the others are of a kind that waits for
    `make test-all`."""
    listed = list(cases)
    others = [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=kind) for case in listed[quick:]]
    return [*listed[:quick], *others]
