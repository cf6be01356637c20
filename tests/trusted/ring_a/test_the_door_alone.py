"""The gate with a ledger and an engine that do as they are told: what is written down when, and what gets out."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import EngineError, LedgerError, QuestionError
from discreet.trusted.ledger.ledger import Reserved, Stored
from discreet.trusted.ring_a.engine import Lost
from discreet.trusted.ring_a.gate import Door, Grant
from discreet.trusted.ring_a.least import Least
from discreet.trusted.ring_a.loss import Loss, Pure
from discreet.trusted.ring_a.table import Column, Relation, Source, SourceKind, Table, Type, as_table

PEOPLE = Table("people", Source(SourceKind.CSV, Path("people.csv")), (Column("v", Type.NUMBER),), person="p")
VISITS = replace(PEOPLE, name="visits")
REGIONS = Table("regions", Source(SourceKind.CSV), (Column("r", Type.TEXT),), public=True)


class _Both(Relation):
    """People and regions, put together."""


BOTH = Table("both", Source(SourceKind.CSV), PEOPLE.columns, person="p", parts=(PEOPLE, REGIONS), relation=_Both())


@as_table.register
def _(relation: _Both) -> Table:
    return replace(BOTH, relation=relation)


class Ledger:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.broken = False
        self.stored: Stored | None = None
        self.asked: dict[str, Any] = {}

    def _note(self, *said: Any) -> None:
        self.told.append(said)
        if self.broken:
            raise LedgerError("unwritable", "the disk is full")

    def check(self, tables: tuple[str, ...], analyst: str) -> None:
        self.told.append(("check", tables, analyst))

    def reserve(self, loss: Loss, **asked: Any) -> Reserved | Stored:
        self.asked = asked | {"loss": loss}
        return self.stored or Reserved(7 + sum(said[0] == "commit" for said in self.told), {})

    def fail(self, reserve_id: int, tables: Any = None) -> None:
        self._note("fail", reserve_id, *([tables] if tables is not None else []))

    def end(self, reserve_id: int) -> None:
        self._note("end", reserve_id)

    def commit(self, reserve_id: int, answer: bytes, *, alone: bool = False) -> None:
        assert not alone  # what was opened for one measurement is no part of a whole
        self._note("commit", reserve_id, answer)


class Rows:
    """The rows that an engine holds."""

    def __init__(self) -> None:
        self.rows: object = object()
        self.period = ""


@dataclass
class Asked:
    """A measurement that does this."""

    draw: Callable[[Any], str] = lambda _engine: "released"
    table: Table | None = PEOPLE
    loss: Loss = field(default_factory=lambda: Pure(Fraction(1, 10)))


class House:
    """A door, its ledger and its engine."""

    def __init__(self, *tables: Table, **more: Any) -> None:
        self.ledger, self.engine = Ledger(), Rows()
        self.door = Door(self.ledger, self.engine, tables or (PEOPLE, REGIONS, VISITS), **more)  # type: ignore[arg-type]

    def open(self, asked: Asked | None = None, **more: Any) -> Grant[Any]:
        said = {"analyst": "ann", "question": "q", "key": "k", "request": None} | more
        return self.door.open(asked or Asked(), **said)  # type: ignore[return-value]

    @property
    def written(self) -> list[tuple[Any, ...]]:
        return [said for said in self.ledger.told if said[0] != "check"]


def test_what_is_reserved() -> None:
    keep = Pure(Fraction(3))
    house = House(failures=4, keep=keep)
    assert house.open().reserve_id == 7
    said = {"account": "ann", "question": "q", "key": "k", "request": None, "loss": Pure(Fraction(1, 10))}
    said |= {"period": "", "answer": None}
    assert house.ledger.asked == said | {"tables": ("people",), "limit": 4, "keep": keep}
    house.open(Asked(table=BOTH), publishing=True)
    assert house.ledger.asked == said | {
        "tables": ("people",),
        "limit": 4,
        "keep": None,
    }  # what is public is not frozen
    assert house.ledger.told == [("check", ("people",), "ann")] * 2
    house.open(Asked(table=None))
    assert house.ledger.asked["tables"] == ("people", "visits")  # a run over several tables
    assert house.ledger.told[-1] == ("check", (), "ann")
    assert House().door._failures == 1


@pytest.mark.parametrize(
    "wrong",
    [
        replace(PEOPLE, name="others"),
        replace(PEOPLE, person="q"),
        replace(PEOPLE, rows_per_person=1),
        replace(BOTH, rows_per_person=1),  # not what its relation gives
        replace(BOTH, name="other"),
    ],
)
def test_what_is_not_declared_so_is_not_read(wrong: Table) -> None:
    house = House()
    with pytest.raises(ValueError, match="differs from the declared one"):
        house.open(Asked(table=wrong))
    with pytest.raises(ValueError, match="differs from the declared one"):
        house.open().check(wrong)


@pytest.mark.parametrize("declared", [(PEOPLE,), (replace(PEOPLE, person="q"), REGIONS), (REGIONS,)])
def test_every_table_of_a_relation_is_declared_so(declared: tuple[Table, ...]) -> None:
    with pytest.raises(ValueError, match="differs from the declared one"):
        House(*declared).open(Asked(table=BOTH))


def test_where_a_file_lies_is_no_part_of_it() -> None:
    house = House()
    grant = house.open(Asked(table=replace(PEOPLE, source=Source(SourceKind.CSV, Path("elsewhere.csv")))))
    grant.check(PEOPLE)
    assert house.ledger.told == [("check", ("people",), "ann")] * 2


def test_a_price_below_the_least_reserves_nothing() -> None:
    house = House(least=Least(Fraction(1, 5), Fraction(1, 5)))
    with pytest.raises(QuestionError, match="below the least"):
        house.open()
    assert not house.ledger.asked


def test_a_stored_answer_is_given_again() -> None:
    house = House()
    house.ledger.stored = Stored(3, b"said", {})
    assert house.open() is house.ledger.stored  # type: ignore[comparison-overlap]
    house.door.close()
    assert house.written == []


def test_one_price_one_draw() -> None:
    house = House()
    grant = house.open(Asked(draw=lambda engine: f"from {engine is house.engine}"))
    assert grant.measure() == "from True"
    with pytest.raises(ValueError, match="this grant is already used"):
        grant.measure()
    grant.commit(b"answer")
    assert house.written == [("commit", 7, b"answer")]
    with pytest.raises(ValueError, match="already settled"):
        grant.guarded(lambda: "again", PEOPLE)
    house.door.close()
    assert house.written == [("commit", 7, b"answer")]


@pytest.mark.parametrize("further", [1, -1])
def test_a_forked_process_has_no_right_to_it(further: int, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House()
    grant, here = house.open(), os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + further)
    with pytest.raises(ValueError, match="belongs to another process"):
        grant.measure()
    house.door.close()
    assert house.written == []  # nor does it end what its parent has reserved


def fails(error: BaseException) -> Asked:
    def draw(_engine: Any) -> str:
        secret = 4711  # noqa: F841
        raise error

    return Asked(draw)


@pytest.mark.parametrize("error", [ValueError("4711"), MemoryError(), EngineError(busy=True)])
def test_a_failure_is_written_down_and_says_nothing(error: Exception) -> None:
    house = House()
    grant = house.open(fails(error))
    with pytest.raises(EngineError) as raised:
        grant.measure()
    assert raised.value.message == EngineError.TEXT
    assert raised.value.__context__ is None
    assert house.written == [("fail", 7, ("people",))]
    with grant, pytest.raises(ValueError, match="already settled"):
        grant.guarded(lambda: "again", PEOPLE)
    house.door.close()
    assert house.written == [("fail", 7, ("people",))]  # it has ended with that


def test_an_interrupt_counts_as_a_failure_and_goes_on() -> None:
    house = House()
    with pytest.raises(KeyboardInterrupt) as raised:
        house.open(fails(KeyboardInterrupt("now"))).measure()
    assert raised.value.args == ("now",)
    assert raised.value.__context__ is None
    assert house.written == [("fail", 7, ("people",))]


class Late(BaseException):
    """An end of somebody else's, which is made of nothing and says something."""

    def __init__(self) -> None:
        super().__init__("late")


def failed() -> ValueError:
    """An error with the frame that it came from."""
    secret = 4711  # noqa: F841
    try:
        raise ValueError
    except ValueError as error:
        return error


@pytest.mark.parametrize("end", [Late(), BaseExceptionGroup("several", [KeyboardInterrupt(), failed()])])
def test_an_interrupt_that_cannot_be_made_anew_takes_nothing_along(end: BaseException) -> None:
    """It is an interrupt of the keyboard then. Those that a group holds would bring their frames."""
    house = House()
    with pytest.raises(KeyboardInterrupt) as raised:
        house.open(fails(end)).measure()
    assert (raised.value.args, raised.value.__context__, raised.value.__cause__) == ((), None, None)
    assert "secret" not in {name for one in raised.traceback for name in one.frame.f_locals}
    assert house.written == [("fail", 7, ("people",))]
    house.door.close()
    assert house.written == [("fail", 7, ("people",))]


def test_what_ended_under_anothers_request_is_no_failure() -> None:
    house = House()
    grant = house.open(fails(Lost()))
    with pytest.raises(EngineError, match="could not answer"):
        grant.measure()
    assert house.written == []
    assert grant.guarded(lambda: "again", PEOPLE) == "again"


def test_rows_of_a_later_snapshot_are_not_measured() -> None:
    """Neither where they came before the draw nor where they came during it."""
    house = House()
    old, drawn = house.engine.rows, []
    with pytest.raises(EngineError):
        house.open(Asked(lambda _: drawn.append("drawn") or "x"), rows=object()).measure()
    assert drawn == []

    def refreshed(engine: Any) -> str:
        engine.rows = object()
        return "of the old rows"

    with pytest.raises(EngineError):
        house.open(Asked(refreshed), rows=old).measure()
    assert house.written == []
    assert house.open(rows=house.engine.rows).measure() == "released"
    assert house.open(rows=None).measure() == "released"


def test_rows_of_another_period_are_not_measured_for_this_ones_charge() -> None:
    """Neither where they came before the draw nor where they came during it, for a run without rows either."""
    house = House()
    house.engine.period = "2026-10"
    house.open()
    assert house.ledger.asked["period"] == "2026-10"
    for other in ("2026-11", "2026-09"):  # also an earlier one, should a clock have gone back
        house.engine.period = "2026-10"
        grant = house.open()
        house.engine.period = other
        with pytest.raises(EngineError):
            grant.measure()
    house.engine.period = "2026-11"

    def begun(engine: Any) -> str:
        engine.period = "2026-12"
        return "of November's rows"

    with pytest.raises(EngineError):
        house.open(Asked(begun)).measure()
    assert house.written == []
    assert house.open().measure() == "released"


def test_the_analyst_is_looked_at_again_when_the_turn_comes() -> None:
    house = House()
    grant = house.open()
    house.ledger.told.clear()
    grant.measure()
    assert house.ledger.told == [("check", ("people",), "ann")]


def test_a_failure_that_could_not_be_written_comes_before_anything_else() -> None:
    house = House()
    grant = house.open(fails(ValueError()))
    house.ledger.broken = True
    with pytest.raises(EngineError):
        grant.measure()
    with pytest.raises(LedgerError):
        house.open()
    house.ledger.broken = False
    house.open()
    house.open()
    assert house.written == [("fail", 7, ("people",)), ("fail", 7), ("fail", 7)]


def test_what_was_not_committed_ends_without_an_answer() -> None:
    house = House()
    with house.open():
        pass
    assert house.written == [("end", 7)]
    house.door.close()
    assert house.written == [("end", 7)]
    with house.open() as grant:
        grant.commit(b"")
    assert house.written == [("end", 7), ("commit", 7, b"")]


def test_the_end_of_the_door_ends_what_waits_but_not_what_runs() -> None:
    house = House()
    running = house.open(Asked(lambda _: house.door.close() or "drawn"))
    assert running.measure() == "drawn"
    assert house.written == []
    other = House()
    other.open()
    other.ledger.broken = True
    other.door.close()  # where it cannot be written the ledger finds it open
    assert other.written == [("end", 7)]


def test_an_end_that_cannot_be_written_is_tried_again() -> None:
    house = House()
    house.ledger.broken = True
    with house.open():
        pass
    house.ledger.broken = False
    house.door.close()
    assert house.written == [("end", 7), ("end", 7)]
