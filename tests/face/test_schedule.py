"""Answers on a schedule."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest

import discreet
from discreet import Curator


@pytest.fixture
def slow(tmp_path: Path) -> Curator:
    path = tmp_path / "t.csv"
    path.write_text("x\n1\n2\n", "utf-8")
    table = discreet.Table(path, one_row_per_person=True, columns={"x": (0, 5)})
    return Curator({"t": table}, epsilon=10, engine={"answer_seconds": 1})


def test_answers_repeats_and_refusals_take_the_same_time(slow: Curator) -> None:
    for chosen in ("COUNT(*)", "COUNT(*)", "nonsense", "SUM(x)"):
        start = time.monotonic()
        with contextlib.suppress(discreet.QuestionError):
            slow.ask(f"SELECT {chosen} FROM t", epsilon=1)
        assert time.monotonic() - start >= 1
    slow.close()
