"""A budget that renews with each period of the calendar, through the curator: real tables, a real ledger."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import discreet
from discreet.catalog import read
from discreet.curator import Curator
from discreet.errors import BudgetError, DeclarationError, EngineError, LedgerError
from discreet.explanation import BudgetState
from discreet.trusted.ledger import chain
from face_tools import Command

Clock = Callable[[str], None]
COUNT = "SELECT COUNT(*) AS n FROM t"
TEXT = """
[budget]
epsilon = 1
{renews}
[tables.t]
source = "t.csv"
person = "id"
rows_per_person = 2
[tables.t.columns]
id = {{ type = "text" }}
v = {{ type = "integer", min = 0, max = 9 }}
[analysts.ana]
epsilon = 0.5
"""
EVERYBODY = 'period = "1 month"\nrenews = "everybody"'


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Sets the clock to noon of a day."""
    return lambda day: monkeypatch.setattr(chain, "now", lambda: f"{day}T12:00:00Z")


def ward(folder: Path, renews: str = EVERYBODY, further: str = "") -> Path:
    """A declaration of one table, and its source."""
    (folder / "t.csv").write_text("id,v\n" + "".join(f"p{n},{n % 10}\n" for n in range(50)))
    path = folder / "ward.toml"
    path.write_text(TEXT.format(renews=renews) + further, "utf-8")
    return path


def test_each_period_has_its_budget_and_begins_with_the_owners_refresh(tmp_path: Path, clock: Clock) -> None:
    clock("2026-10-30")
    with discreet.open(ward(tmp_path), owner=True) as one:
        release = one.ask(COUNT, epsilon="0.6")
        promise = "the promise is per person and month: ε 1; a person who is there all year: up to 12 × ε 1 = ε 12"
        assert promise in repr(release)
        state = one.budget
        assert state.period == {"name": "2026-10", "until": "2026-11-01", "renews": "everybody", "promise": promise}
        assert "period 2026-10, until 2026-11-01 UTC; then `discreet refresh` begins the next" in repr(state)
        assert BudgetState.from_dict(json.loads(json.dumps(state.to_dict()))) == state
        clock("2026-11-02")
        with pytest.raises(BudgetError):
            one.ask(f"{COUNT} WHERE v > 3", epsilon="0.5")
        assert one.budget.used == pytest.approx(60)
        one.refresh()
        assert one.budget.used == 0
        assert one.ask(COUNT, epsilon="0.6").cost  # not what was answered in October
        assert one.budget.used == pytest.approx(60)
        one.ledger.verify()


def test_a_process_that_has_the_old_rows_loads_anew_before_it_asks(tmp_path: Path, clock: Clock) -> None:
    clock("2026-10-30")
    path = ward(tmp_path)
    with discreet.open(path, owner=True) as one, discreet.open(path, owner=True) as other:
        one.ask(COUNT, epsilon="0.6")
        clock("2026-11-02")
        one.refresh()
        other.ask(COUNT, epsilon="0.7")
        assert other._engine.period == "2026-11"
        assert one.budget.used == pytest.approx(70)
        # in between: it has looked, and another process begins the next
        clock("2026-12-01")
        held = other._holdings.held
        other._holdings.held = lambda table: (held(table), one.refresh())[0]  # type: ignore[method-assign]
        with pytest.raises(LedgerError, match="a new period has begun"):
            other.ask(f"{COUNT} WHERE v > 3", epsilon="0.2")
        del other._holdings.held
        assert one.budget.used == 0
        assert other.ask(COUNT, epsilon="0.2").cost
        one.ledger.verify()


def test_what_was_charged_in_a_period_is_not_measured_on_rows_of_the_next(tmp_path: Path, clock: Clock) -> None:
    clock("2026-10-30")
    with discreet.open(ward(tmp_path), owner=True) as one:
        run = one.above_threshold(10, epsilon="0.1", limit=3, sensitivity=2)
        run.ask(COUNT)
        clock("2026-11-02")
        one.refresh()
        with pytest.raises(EngineError):
            run.ask(COUNT)
        assert one.budget.used == 0


def test_by_the_declared_clock_a_period_begins_at_the_next_question(tmp_path: Path, clock: Clock) -> None:
    clock("2020-10-30")
    with discreet.open(ward(tmp_path, further='[engine]\nevery = "1 day"\n'), owner=True) as one:
        one.ask(COUNT, epsilon="0.6")
        clock("2020-11-02")
        one.ask(COUNT, epsilon="0.7")
        assert one.budget.used == pytest.approx(70)
        assert one.ledger.turn().before == "2020-11"


def test_two_owners_who_refresh_at_once_begin_one_period(tmp_path: Path, clock: Clock) -> None:
    clock("2026-10-30")
    path = ward(tmp_path)
    with discreet.open(path, owner=True) as one, discreet.open(path, owner=True) as other:
        clock("2026-11-02")
        registered = one._holdings._one_person_a_row

        def late(*said: object) -> None:
            if other.ledger.turn().before == "2026-10":
                other.refresh()
                other.ask(COUNT, epsilon="0.3")
            registered(*said)  # type: ignore[arg-type]

        one._holdings._one_person_a_row = late  # type: ignore[method-assign, assignment]
        one.refresh()
        assert one.budget.used == pytest.approx(30)
        assert one.ledger.snapshot("t").number == 3  # type: ignore[union-attr]
        one.ask(COUNT, epsilon="0.2")
        one.ledger.verify()


@pytest.mark.parametrize(
    ("renews", "where"),
    [
        ('period = "1 month"', "budget.renews"),
        ('renews = "everybody"', "budget.renews"),
        ('period = "2 months"\nrenews = "everybody"', "budget.period"),
        ('period = 1\nrenews = "everybody"', "budget.period"),
        ('period = "1 month"\nrenews = ["everybody"]', "budget.renews"),
    ],
)
def test_half_a_declaration_is_refused(tmp_path: Path, renews: str, where: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        discreet.open(ward(tmp_path, renews))
    assert [fault.where for fault in refused.value.faults] == [where]


def test_on_the_command_line(cli: Command, tmp_path: Path) -> None:
    path = ward(tmp_path, "")
    assert cli("ask", path, COUNT, "--epsilon", "0.2", "--owner").code == 0
    ward(tmp_path)
    refused = cli("ask", path, COUNT, "--epsilon", "0.2", "--owner")
    assert (refused.code, "renews otherwise than the ledger's" in refused.err) == (4, True)
    asked = cli("ledger", path, "--raise-budget")
    assert asked.code == 1
    assert (
        "the budget: from now on the promise is per person and month: ε 1; a person who is there all year" in asked.err
    )
    said = cli("ledger", path, "--raise-budget", "--yes")
    assert (said.code, "the first period begins when the tables are loaded" in said.out) == (0, True)
    said = cli("check", path)
    assert "up to 12 × ε 1 = ε 12; the attacker is right at most 100 % of the time then" in said.out
    assert "the promise is per person and month" in cli("tables", path).out
    assert cli("ask", path, COUNT, "--epsilon", "0.9", "--owner").code == 0
    assert "begins: every account has its budget anew" in json.dumps(cli("ledger", path, "--json").json)
    assert "until" in cli("ledger", path).out


def test_the_odds_of_a_raise_are_those_of_a_period_and_of_a_year(cli: Command, tmp_path: Path) -> None:
    path = ward(tmp_path)
    assert cli("ask", path, COUNT, "--epsilon", "0.2", "--owner").code == 0
    text = path.read_text("utf-8")
    path.write_text(text.replace("epsilon = 1\n", "epsilon = 2\n"), "utf-8")
    asked = cli("ledger", path, "--raise-budget")
    assert "73.2 % → 88.1 % of the time after all of one month's" in asked.err
    assert (
        "up to 12 × ε 2 = ε 24; an attacker who knows everyone else is right at most 100 % of the time then"
        in asked.err
    )
    path.write_text(text.replace(EVERYBODY, ""), "utf-8")
    asked = cli("ledger", path, "--raise-budget")
    assert "renews no more; what earlier periods took comes on top of it, and is not counted" in asked.err


def test_an_open_curator_promises_what_the_ledger_holds(cli: Command, tmp_path: Path) -> None:
    path = ward(tmp_path)
    with discreet.open(path, owner=True) as one:
        one.ask(COUNT, epsilon="0.2")
        path.write_text(path.read_text("utf-8").replace("epsilon = 1\n", "epsilon = 2\n"), "utf-8")
        assert cli("ledger", path, "--raise-budget", "--yes").code == 0
        assert "up to 12 × ε 2 = ε 24" in repr(one.ask(COUNT, epsilon="0.3"))
        assert "up to 12 × ε 2 = ε 24" in repr(one.budget)


def test_who_holds_a_budget_for_ever_is_told_when_another_makes_it_renew(tmp_path: Path, clock: Clock) -> None:
    """Before, the next question loaded the tables again and again."""
    clock("2026-10-30")
    with Curator.of(read(ward(tmp_path, "")), owner=True) as one:
        one.ask(COUNT, epsilon="0.1")
        with Curator.of(read(ward(tmp_path)), owner=True, raise_budget=True) as other:
            other.ask(COUNT, epsilon="0.2")
        with pytest.raises(LedgerError) as told:
            one.ask(COUNT, epsilon="0.3")
        assert told.value.code == "raised"
