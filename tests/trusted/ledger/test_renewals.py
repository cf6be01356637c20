"""Periods by the calendar, and budgets that renew with them: in the ledger."""

from __future__ import annotations

import datetime
import os
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.catalog.model import YEARLY
from discreet.errors import BudgetError, LedgerError
from discreet.ledger import TOTAL, Ledger, Reserved, Turn, Unit
from discreet.ledger.store import until
from discreet.trusted.ledger import chain
from discreet.trusted.ledger.accounts import account_to_json
from discreet.trusted.ledger.periods import Period
from storms import PRICE, caps, forge

Clock = Callable[[str], None]
MONTHLY = {"length": "month", "persons": "everybody"}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Sets the clock to noon of a day."""
    return lambda day: monkeypatch.setattr(chain, "now", lambda: f"{day}T12:00:00Z")


def opened(path: Path | None, renewal: dict[str, str] | None = MONTHLY, **said: Any) -> Ledger:
    ledger = Ledger(path)
    ledger.register({TOTAL: caps(3), "ana": caps(2)}, "declared", renewal=renewal, **said)
    return ledger


def refresh(ledger: Ledger) -> str:
    """What the owner's refresh writes. Gives the name of the period that runs then."""
    turn = ledger.turn()
    ledger.register_snapshots({"visits": "rows"}, anew=True, turning=turn)
    assert ledger.turn().before == turn.name
    return turn.name


def asked(ledger: Ledger, key: str, period: str, account: str = "ana") -> bool:
    """Whether a question was charged."""
    try:
        return isinstance(ledger.reserve(PRICE, question=key, key=key, account=account, period=period), Reserved)
    except BudgetError:
        return False


@given(st.sampled_from(sorted(YEARLY)), st.dates(datetime.date(1, 2, 1), datetime.date(9998, 1, 1)))
def test_every_day_lies_in_one_period_and_the_next_begins_where_it_ends(length: str, day: datetime.date) -> None:
    found = Period.of(length, day.isoformat())
    assert found.start <= day.isoformat() < until(found)
    assert Period.of(length, found.start) == found
    following = Period.of(length, until(found))
    assert following.start == until(found)
    assert following.name > found.name or length == "week"
    last = datetime.date.fromisoformat(until(found)) - datetime.timedelta(days=1)
    assert Period.of(length, last.isoformat()) == found
    assert len({Period.of(length, (day + datetime.timedelta(n)).isoformat()) for n in range(366)}) <= YEARLY[length] + 1


def test_periods_have_the_names_that_people_use() -> None:
    names = [Period.of(length, "2026-11-23").name for length in ("day", "week", "month", "year")]
    assert names == ["2026-11-23", "2026-W48", "2026-11", "2026"]
    for wrong in ("decade", ""):
        with pytest.raises(ValueError, match="no length"):
            Period.of(wrong, "2026-11-23")


def test_every_account_has_its_budget_anew_and_only_then(clock: Clock) -> None:
    with closing(opened(None)) as ledger:
        clock("2026-10-30")
        assert refresh(ledger) == "2026-10"
        assert [asked(ledger, f"a{n}", "2026-10") for n in range(3)] == [True, True, False]
        clock("2026-10-31")
        assert refresh(ledger) == "2026-10"
        assert not asked(ledger, "b", "2026-10")
        clock("2026-11-01")  # before the owner's refresh nothing is new
        assert not asked(ledger, "c", "2026-10")
        assert refresh(ledger) == "2026-11"
        assert [asked(ledger, f"d{n}", "2026-11") for n in range(3)] == [True, True, False]
        assert [asked(ledger, key, "2026-11", "") for key in "ef"] == [True, False]
        clock("2026-02-01")  # a clock that goes back begins nothing
        assert refresh(ledger) == "2026-11"
        ledger.verify()
        assert "period 2026-11 begins" in " ".join(entry.note for entry in ledger.entries())


def test_nothing_is_charged_in_a_period_for_which_the_rows_were_not_loaded(tmp_path: Path, clock: Clock) -> None:
    """Two processes with one ledger, of which one still has the old rows."""
    clock("2026-10-30")
    with closing(opened(tmp_path / "a.ledger")) as one, closing(opened(tmp_path / "a.ledger")) as other:
        with pytest.raises(LedgerError, match="a new period has begun") as refused:
            asked(one, "a", "2026-10")  # nothing was loaded yet
        assert refused.value.code == "period"
        refresh(one)
        late = other.reserve(PRICE, question="b", key="b", account="ana", period="2026-10")
        clock("2026-11-01")
        before = other.turn()
        refresh(one)
        for period in ("2026-10", "", "2026-12"):
            with pytest.raises(LedgerError, match="a new period has begun"):
                asked(other, "c", period)
        assert one.filter(TOTAL).spent.nothing
        other.commit(late.reserve_id, b"{}")  # what was charged in October is answered from October's rows
        with pytest.raises(LedgerError, match="a new period has begun"):
            other.register_snapshots({"visits": "rows"}, anew=True, turning=before)
        one.verify()


def test_an_account_pays_for_a_stored_answer_in_the_period_of_its_rows_or_never(clock: Clock) -> None:
    clock("2026-10-30")
    with closing(opened(None)) as ledger:
        refresh(ledger)
        reserved = ledger.reserve(PRICE, question="a", key="a", account="", period="2026-10")
        ledger.commit(reserved.reserve_id, b"{}")
        clock("2026-11-01")
        refresh(ledger)
        with pytest.raises(LedgerError, match="a new period has begun"):
            asked(ledger, "a", "2026-10")  # by a process that still has the old rows
        assert ledger.filter("ana").spent.nothing
        assert not asked(ledger, "a", "2026-10", "")  # whoever pays nothing for it gets it
        ledger.verify()


def test_what_begins_twice_too_early_or_undeclared_is_refused(clock: Clock) -> None:
    clock("2026-10-30")
    with closing(opened(None)) as ledger:
        refresh(ledger)
        for wrong in (
            Period("month", "2026-10-01"),
            Period("month", "2026-09-01"),
            Period("month", "2026-11-02"),
            Period("week", "2026-11-02"),
            Period("decade", "2027-01-01"),
        ):
            with pytest.raises(ValueError, match="period"):
                ledger.register_snapshots({"visits": "rows"}, anew=True, turning=Turn("2026-10", wrong))
        assert ledger.turn().before == "2026-10"
    with closing(opened(None, None)) as ledger:
        assert refresh(ledger) == ""
        with pytest.raises(ValueError, match="no such period"):
            ledger.register_snapshots({}, anew=True, turning=Turn("", Period("month", "2026-11-01")))


@pytest.mark.parametrize("forged", ["start", "spent", "twice"])
def test_a_forged_period_is_found_by_the_replay(clock: Clock, forged: str) -> None:
    clock("2026-10-30")
    with closing(opened(None)) as ledger:
        refresh(ledger)
        assert asked(ledger, "a", "2026-10")
        with ledger._file.write() as transaction:
            body = {"kind": "period", "length": "month", "start": "2026-11-01"}
            states = transaction.after(body)
            if forged == "start":
                body["start"] = "2026-10-01"
            elif forged == "spent":
                states = {key: state for key, state in states.items() if key[0] == "period"}
            else:
                states["period", ""]["charged"] = False
            chain.append(transaction.connection, transaction.head, transaction.texts, body, states)
        with pytest.raises(LedgerError, match="not as it was written"):
            ledger.replay()


def test_how_a_budget_renews_changes_by_the_owners_word_once_something_was_charged(
    tmp_path: Path, clock: Clock
) -> None:
    clock("2026-10-30")
    path, weekly = tmp_path / "a.ledger", {"length": "week", "persons": "everybody"}
    opened(path, None).close()
    opened(path, weekly).close()  # nothing was charged
    with closing(opened(path)) as ledger:
        refresh(ledger)
        assert asked(ledger, "a", "2026-10")
        clock("2026-11-01")
        refresh(ledger)
        assert ledger.filter(TOTAL).spent.nothing  # but something was charged before
    for other in (weekly, None):
        with pytest.raises(LedgerError, match="renews otherwise") as refused:
            opened(path, other)
        assert refused.value.code == "raised"
        assert "--raise-budget" in refused.value.fix
    opened(path, units={"visits": Unit("person", 1, "text")}).close()
    with pytest.raises(LedgerError) as refused:
        opened(path, units={"visits": Unit("person", 1, "integer")})
    assert refused.value.code == "unit"
    with closing(opened(path, weekly, raising=True)) as ledger:
        assert (ledger.turn().before, ledger.turn().begins) == (
            "2026-11",
            None,
        )  # a week that began before the month did is not the next
        clock("2026-11-02")
        assert refresh(ledger) == "2026-W45"
    with closing(opened(path, None, raising=True)) as ledger:
        clock("2027-11-02")
        assert refresh(ledger) == "2026-W45"
        assert asked(ledger, "b", "2026-W45")
        ledger.verify()


def test_what_was_lost_counts_in_the_next_period_too_and_caps_change_within_one(tmp_path: Path, clock: Clock) -> None:
    """Nobody knows in which of the two it was asked."""
    clock("2026-10-30")
    path = tmp_path / "a.ledger"
    with closing(opened(path)) as ledger:
        refresh(ledger)
        assert asked(ledger, "a", "2026-10")
    with closing(Ledger.spend_unknown(path, PRICE)) as ledger:
        assert ledger.filter("ana").spent.pure == 2 * PRICE.epsilon
        clock("2026-11-01")
        refresh(ledger)
        assert ledger.filter("ana").spent.pure == PRICE.epsilon
        assert [asked(ledger, f"b{n}", "2026-11") for n in range(2)] == [True, False]
        ledger.register({TOTAL: caps(9), "ana": caps(3)}, "declared", renewal=MONTHLY, raising=True)
        assert ledger.filter("ana").spent.pure == 2 * PRICE.epsilon
        assert [asked(ledger, f"c{n}", "2026-11") for n in range(2)] == [True, False]
        clock("2026-12-01")
        refresh(ledger)
        assert ledger.filter("ana").spent.nothing
        ledger.verify()


def test_a_kill_within_the_beginning_of_a_period_leaves_the_whole_or_nothing(tmp_path: Path, clock: Clock) -> None:
    clock("2026-10-30")
    path = tmp_path / "a.ledger"
    with closing(opened(path)) as ledger:
        refresh(ledger)
        number = ledger.snapshot("visits")
    clock("2026-11-01")
    for steps in range(1, 4):
        child = os.fork()
        if not child:
            append, made = chain.append, []

            def dying(*said: Any, append: Any = append, made: Any = made, steps: int = steps) -> Any:
                found = append(*said)
                made.append(found)
                if len(made) == steps:
                    os.kill(os.getpid(), signal.SIGKILL)
                return found

            chain.append = dying
            refresh(Ledger(path))
            os._exit(0)
        os.waitpid(child, 0)
        with closing(Ledger(path)) as ledger:
            begun = steps == 3
            assert ledger.turn().before == ("2026-11" if begun else "2026-10")
            assert (ledger.snapshot("visits") == number) is not begun
            ledger.verify()


def test_what_holds_in_one_period_alone_ends_with_it_whoever_begins_the_next(clock: Clock) -> None:
    """From what the entry says, and from nothing that a process has declared."""
    clock("2026-09-10")
    with closing(opened(None)) as ledger:
        for month, kept in (("2026-09", 3), ("2026-10", 2), ("2026-11", 2)):
            clock(f"{month}-10")
            if month == "2026-09":  # before the first period: it counts in that
                ledger.decide(ledger.request_more("ana", PRICE.epsilon, "why").number, approve=True, reason="yes")
            refresh(ledger)
            assert ledger.filter("ana").epsilon == kept * PRICE.epsilon
            assert [asked(ledger, f"{month} {n}", month) for n in range(4)] == [n < kept for n in range(4)]
        assert ledger.filter(TOTAL).epsilon == 3 * PRICE.epsilon
        ledger.verify()


@pytest.mark.parametrize(
    ("name", "epsilon"), [("ana", "0"), ("ana", "-1/10"), ("ana", "much"), (TOTAL, "1/10"), (TOTAL, None)]
)
def test_what_stays_of_a_cap_is_above_0_and_of_an_analyst(name: str, epsilon: str | None) -> None:
    with closing(opened(None)) as ledger:
        head = ledger.head
        with pytest.raises(ValueError, match=r"cap is above 0|Invalid literal"), ledger._file.write() as transaction:
            transaction.append("register", {"changes": [], "declaration": "", "lasting": [(name, epsilon)]})
        assert ledger.head == head


@pytest.mark.parametrize("stays", [1, 2, 3, 9])
def test_a_period_raises_no_cap(clock: Clock, stays: int) -> None:
    """Not where an entry, of a faulty program, says that more stays than there is."""
    clock("2026-09-10")
    with closing(opened(None)) as ledger:
        refresh(ledger)
        with ledger._file.write() as transaction:
            said = [("ana", str(stays * PRICE.epsilon))]
            transaction.append("register", {"changes": [], "declaration": "", "lasting": said})
        clock("2026-10-10")
        refresh(ledger)
        assert ledger.filter("ana").epsilon == min(2, stays) * PRICE.epsilon
        ledger.verify()


def test_a_cap_that_did_not_end_with_its_period_is_found(clock: Clock) -> None:
    """A forged entry that begins a period and leaves what was approved."""
    clock("2026-09-10")
    with closing(opened(None)) as ledger:
        refresh(ledger)
        ledger.decide(ledger.request_more("ana", PRICE.epsilon, "why").number, approve=True, reason="yes")
        with ledger._file.write() as transaction:
            fields = {"kind": "period", "length": "month", "start": "2026-10-01"}
            after = transaction.after(fields)
            forge(transaction, fields, after | {("account", "ana"): account_to_json(caps(3).filter())})
        with pytest.raises(LedgerError, match="is not as it was written"):
            ledger.verify()
