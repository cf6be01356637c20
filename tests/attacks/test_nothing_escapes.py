"""What a failure shows: after the door fails, no message, no traceback and no log holds an exact value."""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from types import TracebackType
from typing import Any

import pyarrow
import pytest

import discreet
from discreet import Curator, EngineError, QuestionError, Table
from discreet.catalog import EngineLimits
from discreet.ledger import TOTAL
from discreet.mechanisms import AboveThreshold, Laplace
from discreet.trusted.ring_a.gate import Grant
from discreet.trusted.ring_b.watching import WatchMeasurement

COUNT, SECRET = 31_337, "name-of-a-person"
COLUMNS = {"p": {"type": "text"}, "h": {"type": "text"}, "v": {"type": "integer", "min": 0, "max": 3}}
QUESTION = "SELECT h, COUNT(*) AS n, SUM(v) FROM t WHERE h <> 'token-of-the-question' GROUP BY h"


@pytest.fixture
def curator() -> Iterator[Curator]:
    persons = pyarrow.array([f"{SECRET}{index}" for index in range(COUNT)])
    groups = pyarrow.array([f"{SECRET}-group"] * COUNT)
    frame = pyarrow.table({"p": persons, "h": groups, "v": pyarrow.array([3] * COUNT)})
    table = Table(frame, columns=COLUMNS, person="p", rows_per_person=1)
    with Curator({"t": table}, epsilon=100, delta=0.01, keys_delta=0.005) as curator:
        yield curator


def values(thing: Any, depth: int = 6) -> Iterator[Any]:
    """Every plain value inside containers, dataclasses and exceptions."""
    if depth == 0:
        return
    yield thing
    inner: list[Any] = []
    if isinstance(thing, dict):
        inner = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        inner = list(thing)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        inner = [getattr(thing, field.name) for field in dataclasses.fields(thing)]
    elif isinstance(thing, BaseException):
        inner = [thing.args, vars(thing)]
    for one in inner:
        yield from values(one, depth - 1)


def frames(trace: TracebackType | None) -> Iterator[tuple[str, dict[str, Any]]]:
    while trace is not None:
        yield trace.tb_frame.f_code.co_name, trace.tb_frame.f_locals
        trace = trace.tb_next


def holds_nothing(error: BaseException) -> None:
    """No cause, no context, and no frame with an exact total or a key."""
    assert error.__cause__ is None
    assert error.__context__ is None
    for name, variables in frames(error.__traceback__):
        if name.startswith("test_"):
            continue
        seeing = (
            "noisy_answer",
            "noisy_groups",
            "exact_groups",
            "dense",
            "combined",
            "run",
            "call",
            "release",
        )
        assert name not in seeing
        for value in values(variables):
            assert value not in (COUNT, 3 * COUNT) if isinstance(value, int) else True, name
            assert SECRET not in value if isinstance(value, str) else True, name


class Interruption(BaseException):
    """Neither an error nor an interrupt of the keyboard."""


@pytest.mark.parametrize(
    ("failure", "seen"),
    [
        (ValueError(f"{SECRET} {COUNT}"), EngineError),
        (MemoryError(COUNT), EngineError),
        (RecursionError(COUNT), EngineError),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (SystemExit(3), SystemExit),
        (Interruption("the program ends"), Interruption),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_a_failure_beside_exact_integers(
    curator: Curator, monkeypatch: pytest.MonkeyPatch, failure: BaseException, seen: type[BaseException]
) -> None:
    """Whatever fails while exact totals are at hand: a new error from outside their frames; the price stays charged."""
    met: list[Any] = []

    def fail(_: Laplace, exact: list[int]) -> list[int]:
        met.append(list(exact))
        raise failure

    monkeypatch.setattr(Laplace, "release", fail)
    before = curator.ledger.filter(TOTAL).spent
    with pytest.raises(seen) as caught:
        curator.ask(QUESTION, epsilon=1)
    assert met == [[COUNT]]
    holds_nothing(caught.value)
    assert caught.value is not failure
    if seen is EngineError:
        assert str(caught.value) == str(EngineError())
    if seen is SystemExit:
        assert caught.value.args == (3,)
    assert curator.ledger.filter(TOTAL).spent.pure == (before.pure or 0) + 1


def test_an_engine_that_takes_too_long_suspends_the_asker(curator: Curator) -> None:
    """The child is killed; the asker waits for the owner; after that it answers, and the price was charged."""
    curator._engine._limits = EngineLimits(seconds=0)
    assert curator._engine._process is not None
    os.kill(curator._engine._process.pid, signal.SIGSTOP)  # it hangs, however quick the machine is
    with pytest.raises(EngineError) as caught:
        curator.ask(QUESTION, epsilon=1)
    holds_nothing(caught.value)
    assert str(caught.value) == str(EngineError())
    with pytest.raises(EngineError, match="suspended"):
        curator.ask("SELECT COUNT(*) FROM t", epsilon=1)
    curator._engine._limits = EngineLimits()
    curator.refresh()
    assert abs(curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=20).rows[0]["n"] - COUNT) < 10
    assert curator.ledger.filter(TOTAL).spent.pure == 21


def test_a_grant_measures_once_and_only_what_it_was_opened_for(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    grants: list[Any] = []
    real = Grant.measure

    def kept(self: Any) -> Any:
        grants.append(self)
        return real(self)

    monkeypatch.setattr(Grant, "measure", kept)
    curator.ask("SELECT COUNT(*) FROM t", epsilon=1)
    with pytest.raises(ValueError, match="already used"):
        real(grants[0])


def test_of_many_who_use_a_grant_at_once_one_may(curator: Curator) -> None:
    """Also of threads that ask in the same moment; and a forked process has no part in its parent's grants."""
    threads = 8

    def used(grant: Any, start: Callable[[], object] = int) -> bool:
        start()
        try:
            grant.take()
        except ValueError:
            return False
        return True

    kind = AboveThreshold(10, Fraction(1), 1, 1, monotone=True)
    for number in range(4):
        opened = curator._door.open(WatchMeasurement(kind), analyst="", question="q", key=f"key {number}", request=None)
        with opened as grant, ThreadPoolExecutor(threads) as pool:  # type: ignore[union-attr]
            if number == 3 and not (child := os.fork()):
                os._exit(used(grant))
            if number == 3:
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            start = threading.Barrier(threads).wait
            assert sum(pool.map(used, [grant] * threads, [start] * threads)) == 1


def test_logs_hold_no_question_and_no_value(
    curator: Curator, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answered, repeated, refused, failed: the log names reserves only."""
    caplog.set_level(logging.DEBUG)
    answered = curator.ask(QUESTION, epsilon=2)
    curator.ask(QUESTION, epsilon=2)
    with pytest.raises(QuestionError):
        curator.ask("SELECT token-of-the-question FROM t", epsilon=1)
    with pytest.raises(discreet.BudgetError):
        curator.ask(QUESTION, epsilon=1000)
    monkeypatch.setattr(Laplace, "release", lambda *_: [][1])
    with pytest.raises(EngineError):
        curator.ask(QUESTION, epsilon=3)
    assert len(caplog.records) >= 5
    for record in caplog.records:
        assert record.name == "discreet"
        assert record.exc_info is None
        text = record.getMessage() + repr(record.args)
        assert "token" not in text
        assert SECRET not in text
        assert all(str(row["n"]) not in text for row in answered.rows)


def test_what_prints_itself_holds_no_row(curator: Curator) -> None:
    for shown in (
        curator,
        curator.declaration,
        curator.budget,
        curator._door,
        curator._engine,
        curator.explain(QUESTION, epsilon=1),
    ):
        assert SECRET not in repr(shown)
        assert str(COUNT) not in repr(shown)
