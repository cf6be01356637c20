"""Answers on a schedule."""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas
import pytest

import discreet
from discreet import Curator, schedule
from discreet.engines.protocol import UNTIL
from discreet.locks import Lock
from discreet.schedule import Turns, on_schedule


@pytest.fixture
def slow(tmp_path: Path) -> Curator:
    path = tmp_path / "t.csv"
    path.write_text("x\n1\n2\n", "utf-8")
    table = discreet.Table(path, one_row_per_person=True, columns={"x": (0, 5)})
    return Curator({"t": table}, epsilon=10, delta="1e-6", engine={"answer_seconds": 1})


def test_answers_repeats_and_refusals_take_the_same_time(slow: Curator) -> None:
    for chosen in ("COUNT(*)", "COUNT(*)", "nonsense", "SUM(x)"):
        start = time.monotonic()
        with contextlib.suppress(discreet.QuestionError, discreet.EngineError):  # on a busy machine it is not ready
            slow.ask(f"SELECT {chosen} FROM t", epsilon=1)
        assert time.monotonic() - start >= 1
    slow.close()


def test_what_was_measured_is_stored_when_the_engine_s_time_is_over(
    slow: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, the same question of somebody else, in another process, would tell by its price when the engine was done:
    it is no repeat until then."""
    seen = []

    def over() -> None:
        until = UNTIL.get()
        assert until is not None
        before = [entry.kind for entry in slow.ledger.entries()][-1]
        schedule.engine_time_over()
        seen.append((before, time.monotonic() >= until))

    monkeypatch.setattr("discreet.curator.measuring.engine_time_over", over)
    begun = time.monotonic()
    both = "SELECT a.n, b.s FROM (SELECT COUNT(*) AS n FROM t) a, (SELECT SUM(x) AS s FROM t) b"
    with contextlib.suppress(discreet.EngineError, discreet.QuestionError):  # on a busy machine it is not ready
        slow.ask("SELECT COUNT(*) FROM t WHERE x > 1", epsilon=1)
        assert seen == [("reserve", True)]
        slow.ask(both, epsilon=1)
        assert seen == 3 * [("reserve", True)]
        assert time.monotonic() - begun >= 3
    assert seen or time.monotonic() - begun >= 1
    slow.close()


def test_each_part_of_a_question_has_its_own_half() -> None:
    with on_schedule(1) as slot:
        first = UNTIL.get()
        assert first is not None
        slot.take(3)
        slot.part(1)
        assert UNTIL.get() == pytest.approx(first)
        slot.part(2)
        assert UNTIL.get() == pytest.approx(first + 1)
        slot.part(5)  # never beyond the half of the whole
        assert UNTIL.get() == pytest.approx(first + 1)
        slot.take(1)


def test_what_is_started_and_loaded_is_no_part_of_a_slot() -> None:
    """Else the first question, which loads the public tables, would fail, and stop their engine."""
    tables = {
        "t": discreet.Table(pandas.DataFrame({"x": [1]}), one_row_per_person=True, columns={"x": (0, 5)}),
        "codes": discreet.Table(pandas.DataFrame({"k": [1, 2]}), public=True, columns={"k": (0, 5)}),
    }
    with (
        Curator(tables, epsilon=10, engine={"answer_seconds": 1}) as one,
        contextlib.suppress(discreet.EngineError),  # late, on a busy machine
        one._on_schedule(),
    ):
        assert one._holdings._public.has("codes")
        assert one._reading._knows
        assert one._twin._ready


def test_a_slot_is_chosen_beforehand_and_the_engine_has_half_of_it() -> None:
    before = UNTIL.get()
    begun = time.monotonic()
    with on_schedule(2) as slot:
        until = UNTIL.get()
        assert until is not None
        assert begun + 1 <= until <= time.monotonic() + 1
        slot.take(0)
        assert UNTIL.get() == until
        slot.take(3)
        assert UNTIL.get() == pytest.approx(until + 2)
        slot.take(1)
    assert time.monotonic() >= begun + 2
    assert UNTIL.get() is before
    with on_schedule(None):
        assert UNTIL.get() is before


def test_what_is_late_is_not_given() -> None:
    """Nor at the end of the next slot: it has failed."""
    with pytest.raises(discreet.EngineError), on_schedule(1):
        time.sleep(1.05)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_fails_is_said_when_the_slot_ends(error: type[BaseException]) -> None:
    begun, turn = time.monotonic(), Lock()
    with pytest.raises(error), on_schedule(1, turn):
        raise error
    assert time.monotonic() >= begun + 1
    assert turn.acquire(0)  # and the others' turn comes


def test_when_the_turn_is_let_go_of_tells_nothing() -> None:
    """Whoever waits for it would read from the moment how long the engine took for somebody else's question."""
    turn, begun, had = Lock(), time.monotonic(), threading.Event()

    def next_one() -> float:
        had.wait()
        assert turn.acquire(60)
        turn.release()
        return time.monotonic()

    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(next_one)
        with on_schedule(1, turn) as slot:
            slot.take(2)
            had.set()
        assert waiting.result() >= begun + 1


def test_a_slot_begins_with_its_turn() -> None:
    turn = Lock()
    with ThreadPoolExecutor(1) as other:
        assert other.submit(turn.acquire, 0).result()
        timer = threading.Timer(0.3, other.submit, (turn.release,))
        begun = time.monotonic()  # before the timer starts, else the turn may come sooner than it counts
        timer.start()
        with on_schedule(1, turn):
            assert UNTIL.get() >= begun + 0.3 + 0.5  # type: ignore[operator]
        timer.join()


def test_whose_turn_does_not_come_has_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "WAITED", 1)
    turn, asked = Lock(), []
    with ThreadPoolExecutor(1) as other:
        assert other.submit(turn.acquire, 0).result()
        begun = time.monotonic()
        with pytest.raises(discreet.EngineError) as busy, on_schedule(1, turn):
            asked.append(1)
        assert not asked
        assert time.monotonic() >= begun + 1
        assert str(busy.value) != str(discreet.EngineError())
        assert not turn.acquire(0)  # it is still the other's
        other.submit(turn.release).result()


def test_a_step_of_a_publication_waits_for_its_turn_and_holds_it_for_eighths(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    turn, free = Lock(), []
    monkeypatch.setattr(schedule.time, "sleep", slept.append)
    with ThreadPoolExecutor(1) as other:
        with Turns(8, turn).one():
            free.append(other.submit(turn.acquire, 0).result())
        with Turns(None, turn).one():  # without a schedule nothing waits
            free.append(other.submit(turn.acquire, 0).result())
    assert free == [False, True]
    assert len(slept) == 1
    assert 0 < slept[0] <= 1


def test_questions_of_others_come_between_the_steps_of_a_publication(slow: Curator) -> None:
    """While a question has the engine's turn no step is measured; the publication then goes on."""
    first = threading.Event()
    with ThreadPoolExecutor(1) as other:
        with slow._turn:
            made = other.submit(slow.publish, "t", epsilon=1, delta=1e-9, tell=lambda _: first.set())
            assert not first.wait(0.3)
        assert len(made.result()) >= 1
    assert first.is_set()
    slow.close()
