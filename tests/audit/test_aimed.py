"""Questions aimed at the time of one person's rows: refused before anything is paid, or answered with little work.

No time is looked at: what is counted are the rows that the operators of a statement make, with the target in the
tables and without.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

import discreet.curator.planning
import discreet.engines.duckdb.sources
from discreet.audit import aimed
from discreet.audit.hunt import Pair, failure, seen
from discreet.engines.answers import _plain
from discreet.engines.duckdb.worker import DuckDBWorker
from discreet.engines.process import Failed
from hunt_tools import framed
from kinds import some

PRICE = (Fraction(1, 100), Fraction(0))
ROWS = 10_000
"""The joined rows of one person that a question may make; each operator may see them once."""

TOO_MUCH = (
    *("2 cross joins", "3 cross joins", "a join on a key that all", "12 times"),
    *("90 regular expressions", "4 levels"),
)
"""How those begin or end that have to be refused."""


class Counting:
    """An engine in this process that counts: for each SELECT its operators, and the rows that they make."""

    usable = True
    pid = os.getpid()

    def __init__(self, _worker: str) -> None:
        self.worker = DuckDBWorker()
        self.rows = self.operators = 0

    def call(self, *request: Any, seconds: float) -> Any:
        del seconds
        if request[0] in ("limit", "lock"):  # of a whole process
            return {}
        try:
            if request[0] == "run":
                ((_, plan),) = self.worker.connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {request[1]}").fetchall()
                for node in json.loads(plan)["operator"]:
                    self._count(node)
            answer = self.worker.answer(*request)
        except Exception:
            raise Failed from None
        return json.loads(json.dumps(answer, default=_plain))

    def _count(self, node: Any) -> None:
        self.rows += node["intermediate_rows"]
        self.operators += 1
        for child in node.get("children", ()):
            self._count(child)

    def close(self) -> None:
        pass

    def kill(self) -> None:
        self.worker.connection.close()


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discreet.engines.duckdb.sources, "EngineProcess", Counting)
        with Pair(aimed.declared(), aimed.worlds(), framed) as pair:
            yield pair


def made(pair: Pair, text: str) -> tuple[int, int, str]:
    """How many rows the target adds, the operators of all statements, and the refusal."""
    counts, refusals = [], []
    for curator in pair.curators:
        engine: Any = curator._engine._process
        engine.rows = engine.operators = 0
        found = seen(curator, text, PRICE)
        assert not failure(found)
        counts.append((engine.rows, engine.operators))
        refusals.append(found.get("refused"))
    assert refusals[0] == refusals[1]
    (absent, _), (present, operators) = counts
    return present - absent, operators, "" if refusals[0] is None else refusals[0][0]["code"]


@pytest.mark.parametrize(
    "name", some(sorted(aimed.questions(), key="a plain question".__ne__), pytest.mark.power, quick=6)
)
def test_an_aimed_question_is_refused_or_makes_little_work(pair: Pair, name: str) -> None:
    rows, operators, refusal = made(pair, aimed.questions()[name])
    assert rows <= ROWS * operators
    if any(part in name for part in TOO_MUCH):
        assert refusal == "work"
        assert operators == 0
    if name == "a plain question":
        assert refusal == ""
        assert operators > 3


def test_work_that_nothing_bounds_is_found(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million pairs of public rows for each row of the target's."""
    monkeypatch.setattr(discreet.curator.planning, "bound", lambda *_: None)
    rows, operators, _ = made(pair, aimed.questions()["2 cross joins with a public table"])
    assert rows > ROWS * operators
