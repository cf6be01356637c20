"""Answers on a schedule."""

from __future__ import annotations

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
    for question in (
        "SELECT COUNT(*) FROM t",
        "SELECT COUNT(*) FROM t",
        "SELECT nonsense FROM t",
        "SELECT SUM(x) FROM t",
    ):
        start = time.monotonic()
        try:
            slow.ask(question, epsilon=1)
        except discreet.QuestionError:
            pass
        assert time.monotonic() - start >= 1
    slow.close()
