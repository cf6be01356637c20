"""What an analyst may spend in one day and in one month, inside an account of her own."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import BudgetError, LedgerError
from discreet.ledger import TOTAL, Caps, Ledger
from discreet.trusted.ledger import chain
from kinds import examples
from storms import PRICE, caps

Clock = Callable[[str], None]
DAY = {"ana": {"day": caps(2), "month": caps(3)}}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Sets the clock to noon of a day."""
    return lambda day: monkeypatch.setattr(chain, "now", lambda: f"{day}T12:00:00Z")


def opened(path: Path | None, allowances: Mapping[str, Mapping[str, Caps]] = DAY, *, raising: bool = False) -> Ledger:
    ledger = Ledger(path)
    accounts = {TOTAL: caps(50), "ana": caps(20), "bob": caps(20)}
    ledger.register(accounts, "declared", allowances=allowances, raising=raising)
    return ledger


def asked(ledger: Ledger, key: str, account: str = "ana") -> bool:
    """Whether a question was charged."""
    try:
        ledger.reserve(PRICE, question=key, key=key, account=account)
    except BudgetError:
        return False
    return True


def test_each_day_and_each_month_begin_anew_and_bind_nobody_else(clock: Clock) -> None:
    with closing(opened(None)) as ledger:
        clock("2026-11-29")
        assert [asked(ledger, f"a{n}") for n in range(3)] == [True, True, False]
        assert asked(ledger, "b", "bob")
        assert asked(ledger, "t", "")
        clock("2026-11-30")
        assert [asked(ledger, f"c{n}") for n in range(2)] == [True, False]  # the month's
        clock("2026-12-01")
        assert [asked(ledger, f"d{n}") for n in range(3)] == [True, True, False]
        assert ledger.filter("ana").spent.pure == 5 * PRICE.epsilon
        ledger.verify()


def test_the_refusal_says_when_the_next_window_begins(clock: Clock) -> None:
    with closing(opened(None)) as ledger:
        clock("2026-12-31")
        asked(ledger, "a"), asked(ledger, "b")
        with pytest.raises(BudgetError, match=r"analyst ana's budget of this day does not allow .* from 2027-01-01 on"):
            ledger.reserve(PRICE, question="c", key="c", account="ana")
        with pytest.raises(BudgetError, match=r"of this day .* from 2027-01-01 on, in UTC"):
            ledger.hold_room(PRICE, "ana", None)
        assert ledger.allowances("ana")["day"].until == "2027-01-01"
        assert ledger.allowances("bob") == {}


def test_a_clock_that_goes_back_opens_nothing_anew(clock: Clock) -> None:
    with closing(opened(None)) as ledger:
        for day in ("2026-11-29", "2026-11-28", "2026-11-29", "2026-01-01"):
            clock(day)
            asked(ledger, day), asked(ledger, f"{day} again")
        assert ledger.filter("ana").spent.pure == 2 * PRICE.epsilon
        ledger.verify()


def test_a_repeat_that_debits_an_account_is_held_against_its_day(clock: Clock) -> None:
    with closing(opened(None)) as ledger:
        clock("2026-11-29")
        for key in "abc":
            ledger.commit(ledger.reserve(PRICE, question=key, key=key, account="bob").reserve_id, b"{}")
        assert [asked(ledger, key) for key in "abca"] == [True, True, False, True]  # what was paid is free
        ledger.verify()


def test_a_larger_cap_and_none_need_the_owners_word_and_what_was_spent_counts(clock: Clock, tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    clock("2026-11-29")
    with closing(opened(path)) as ledger:
        assert asked(ledger, "a")
    larger = {"ana": {"day": caps(3), "month": caps(3)}}
    for more in (larger, {"ana": {"month": caps(3)}}, {}):
        with pytest.raises(LedgerError) as refused:
            opened(path, more)
        assert refused.value.code == "raised"
        assert "analyst ana's budget of a day is ε 0.2 in the ledger" in str(refused.value)
    with closing(opened(path, larger, raising=True)) as ledger:
        assert [asked(ledger, key) for key in "bcd"] == [True, True, False]
    with closing(opened(path, {}, raising=True)) as ledger:
        assert all(asked(ledger, key) for key in "efg")
        assert "ana a day: ε 0.3 → no cap" in [entry.note for entry in ledger.entries()][-4]
    with closing(opened(path)) as ledger:  # it was lowered to what is used up
        assert not asked(ledger, "h")
        ledger.verify()


def test_another_cap_opens_no_window_anew_when_the_clock_was_set_back(clock: Clock) -> None:
    with closing(opened(None)) as ledger:
        clock("2026-11-29")
        assert [asked(ledger, f"a{n}") for n in range(3)] == [True, True, False]
        lower = {"ana": {length: Caps(Fraction("0.19"), *[Fraction(0)] * 2) for length in ("day", "month")}}
        for day in ("2026-11-28", "2026-10-28"):
            clock(day)
            ledger.register({TOTAL: caps(50), "ana": caps(20)}, day, allowances=lower)
            assert not asked(ledger, day)
            ledger.register({TOTAL: caps(50), "ana": caps(20)}, "more", allowances=DAY, raising=True)
            clock("2026-11-29")
            assert not asked(ledger, f"{day} again")
        clock("2026-12-01")
        assert asked(ledger, "b")
        ledger.verify()


@pytest.mark.parametrize("length", ["day", "week", "month"])
def test_a_month_goes_on_where_a_period_ends_in_it(clock: Clock, length: str) -> None:
    """A smaller cap of a month, which needs nobody's word, forgets nothing of the periods before."""
    accounts, renewal = {TOTAL: caps(50), "ana": caps(20)}, {"length": length, "persons": "everybody"}
    with closing(Ledger(None)) as ledger:

        def spent(day: str, key: str) -> bool:
            """Whether a question was charged after the owner's refresh of the day."""
            clock(day)
            turn = ledger.turn()
            ledger.register_snapshots({"visits": "rows"}, anew=True, turning=turn)
            try:
                ledger.reserve(PRICE, question=key, key=key, account="ana", period=turn.name)
            except BudgetError:
                return False
            return True

        clock("2026-11-25")
        ledger.register(accounts, "declared", allowances={"ana": {"month": caps(3)}}, renewal=renewal)
        spent("2026-11-25", "before")
        clock("2026-12-01")  # the owner's refresh comes late
        period = ledger.turn().before
        for key in "ab":
            ledger.reserve(PRICE, question=key, key=key, account="ana", period=period)
        assert spent("2026-12-08", "c")
        lower = {"ana": {"month": Caps(Fraction("0.29"), Fraction(0), Fraction(0))}}
        ledger.register(accounts, "declared", allowances=lower, renewal=renewal)
        assert not spent("2026-12-09", "d")
        assert spent("2027-01-01", "e")
        ledger.verify()


def test_an_account_that_a_declaration_leaves_out_keeps_its_caps(tmp_path: Path, clock: Clock) -> None:
    clock("2026-11-29")
    opened(tmp_path / "a.ledger").close()
    with closing(Ledger(tmp_path / "a.ledger")) as ledger:
        ledger.register({TOTAL: caps(50)}, "another")
        assert [asked(ledger, key) for key in "abc"] == [True, True, False]


def test_two_processes_and_many_threads_never_exceed_a_day_together(tmp_path: Path, clock: Clock) -> None:
    clock("2026-11-29")
    opened(tmp_path / "a.ledger", {"ana": {"day": caps(7)}}).close()
    with closing(Ledger(tmp_path / "a.ledger")) as one, closing(Ledger(tmp_path / "a.ledger")) as other:
        with ThreadPoolExecutor(8) as pool:
            charged = pool.map(lambda n: asked((one, other)[n % 2], f"{n}"), range(24))
        assert sum(charged) == 7
        one.verify()


def test_a_forged_day_or_a_window_that_began_anew_is_found(clock: Clock) -> None:
    """The chain is made anew around the forgery: what follows from the entries says otherwise."""
    clock("2026-11-29")
    with closing(opened(None)) as ledger:
        assert asked(ledger, "a")
        with ledger._file.write() as transaction:
            asked_again: dict[str, object] = {
                "analyst": "ana",
                "question": "b",
                "key": "b",
                "request": None,
                "account": "ana",
            }
            body = {"kind": "reserve", **asked_again, "reserve": transaction.head.seq + 1, "loss": PRICE.to_json()}
            with pytest.raises(ValueError, match="before the last"):
                transaction.after({**body, "day": "2026-11-28"})
            with pytest.raises(KeyError):
                transaction.after(body)
            states = transaction.after({**body, "day": "2026-11-29"})
            fresh = transaction.after({**body, "day": "2026-11-30"})
            forged = states | {("day", "ana"): fresh["day", "ana"]}
            chain.append(
                transaction.connection, transaction.head, transaction.texts, {**body, "day": "2026-11-29"}, forged
            )
        with pytest.raises(LedgerError, match="not as it was written"):
            ledger.replay()


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 70), st.integers(1, 3)), max_size=12))
def test_no_window_ever_admits_more_than_its_cap(acts: list[tuple[int, int]]) -> None:
    """Whatever the clock does: of the days that entries name, none holds more than a day's cap, and no month more than
    a month's."""
    with pytest.MonkeyPatch.context() as patch, closing(opened(None)) as ledger:
        for number, (day, times) in enumerate(acts):
            now = (datetime.date(2026, 10, 15) + datetime.timedelta(days=day)).isoformat()
            patch.setattr(chain, "now", lambda now=now: f"{now}T00:00:00Z")
            for time in range(times):
                asked(ledger, f"{number}/{time}")
        spent: dict[str, Fraction] = {}
        with ledger._file.read() as transaction:
            for record in transaction.entries():
                if record.body["kind"] == "reserve":
                    for window in (record.body["day"], record.body["day"][:7]):
                        spent[window] = spent.get(window, Fraction(0)) + PRICE.epsilon
        assert all(much <= (3 if len(window) == 7 else 2) * PRICE.epsilon for window, much in spent.items())
        ledger.verify()
