"""The ledger's accounts of parts, and its lists of who is in which."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import Gaussian, Pure
from discreet.errors import BudgetError, LedgerError
from discreet.ledger import TOTAL, Assigning, Caps, Ledger, Reserved
from discreet.trusted.ledger.accounts import PART
from discreet.trusted.ledger.file import LedgerFile
from discreet.trusted.ledger.ledger import BudgetLedger
from discreet.trusted.parts import assigned
from discreet.trusted.ring_a.loss import Loss
from kinds import examples

CAPS = Caps(Fraction(2), Fraction("1e-6"), Fraction("1e-7"))
NORTH, SOUTH = PART + "north", PART + "south"


def opened(parts: Sequence[str] = ("north", "south"), path: Path | None = None) -> Ledger:
    ledger = Ledger(path)
    ledger.register({TOTAL: CAPS, "ana": CAPS}, "declared", parts=parts)
    return ledger


def charge(ledger: Ledger, loss: Loss, key: str, period: str = "", **said: Any) -> dict[str, Loss]:
    found = ledger.reserve(loss, question=key, key=key, period=period, **said)
    assert isinstance(found, Reserved)
    return dict(found.charged)


def test_a_charge_is_for_one_part_or_for_all() -> None:
    ledger, price = opened(), Pure(Fraction(1, 2))
    assert {*charge(ledger, price, "a", NORTH)} == {NORTH}
    assert {*charge(ledger, price, "b")} == {TOTAL, NORTH, SOUTH}
    assert {*charge(ledger, price, "c", SOUTH, account="ana")} == {SOUTH, "ana"}
    for period in ("north", PART, PART + "west", "2026-11", None):
        with pytest.raises(LedgerError):
            ledger.reserve(price, question="d", key="d", period=period)
    assert [ledger.filter(name).spent.pure for name in (TOTAL, NORTH, SOUTH)] == [Fraction(1, 2), 1, 1]
    charge(ledger, Pure(Fraction(1)), "e", NORTH)
    for period in (NORTH, ""):  # nothing is written of what one account does not admit
        with pytest.raises(BudgetError, match="the budget of the part north"):
            ledger.reserve(price, question="f", key="f", period=period)
    assert [ledger.filter(name).spent.pure for name in (TOTAL, NORTH, SOUTH)] == [Fraction(1, 2), 2, 1]
    charge(ledger, price, "f", SOUTH)
    ledger.verify()


def test_a_repeat_debits_no_part() -> None:
    ledger, price = opened(), Pure(Fraction(1, 2))
    found = ledger.reserve(price, question="a", key="a", period=NORTH)
    ledger.commit(found.reserve_id, b"answer")
    again = ledger.reserve(price, question="a", key="a", period=NORTH, account="ana", request="1")
    assert dict(again.charged) == {"ana": price}
    assert ledger.filter(NORTH).spent.pure == Fraction(1, 2)
    ledger.verify()


def test_what_is_kept_for_publishing_is_kept_in_each_part_that_pays() -> None:
    ledger, kept = opened(), Pure(Fraction(1))
    charge(ledger, Pure(Fraction(1)), "a", NORTH, keep=kept)
    with pytest.raises(BudgetError, match="the budget of the part north, of which a part is kept for publishing,"):
        charge(ledger, Pure(Fraction(1, 10)), "b", keep=kept)
    charge(ledger, Pure(Fraction(1)), "b", SOUTH, keep=kept)
    charge(ledger, Pure(Fraction(1)), "c")
    with pytest.raises(BudgetError):
        ledger.hold_room(Pure(Fraction(1, 10)), TOTAL, None)
    with pytest.raises(BudgetError):
        ledger.hold_room(Pure(Fraction(1, 10)), TOTAL, None, NORTH)


@pytest.mark.parametrize(
    "parts", [[], [TOTAL], [NORTH, SOUTH], [TOTAL, NORTH], [PART + "west"], ["ana"], [SOUTH, TOTAL]]
)
def test_an_entry_that_debits_others_has_no_states(parts: list[str]) -> None:
    ledger = opened()
    body = {"kind": "reserve", "parts": parts, "account": None, "loss": Pure(Fraction(1)).to_json()}
    with ledger._file.read() as transaction, pytest.raises(ValueError, match="for one part, or for all"):
        transaction.after(body)
    del body["parts"]  # as an older program wrote it
    with ledger._file.read() as transaction, pytest.raises(ValueError, match="for one part, or for all"):
        transaction.after(body)


def test_no_analyst_has_a_parts_account() -> None:
    ledger, price = opened(), Pure(Fraction(1, 2))
    assert not ledger.has_account(NORTH)
    assert {*charge(ledger, price, "a", SOUTH, account=NORTH)} == {SOUTH}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("charge"), st.sampled_from(["", NORTH, SOUTH, PART + "west"]), st.sampled_from([1, 3, 7])),
        st.tuples(st.just("noisy"), st.sampled_from(["", NORTH, SOUTH, PART + "west"]), st.sampled_from([1, 4])),
        st.tuples(st.just("caps"), st.just(""), st.sampled_from([1, 2, 3])),
        st.tuples(st.just("west"), st.just(""), st.just(0)),
        st.tuples(st.just("unknown"), st.just(""), st.just(1)),
    ),
    max_size=14,
)


@settings(max_examples=examples(60), deadline=None)
@given(STEPS)
def test_each_parts_account_is_the_filter_of_all_that_was_for_it_or_for_all(steps: list[tuple[str, str, int]]) -> None:
    """Held against a plain list of losses for each part."""
    ledger = opened()
    losses: dict[str, list[Loss]] = {TOTAL: [], NORTH: [], SOUTH: []}
    caps = CAPS
    for number, (kind, period, amount) in enumerate(steps):
        if kind in ("charge", "noisy"):
            loss = Pure(Fraction(amount, 10)) if kind == "charge" else Gaussian(Fraction(amount, 50))
            concerned = [period] if period else [*losses]
            try:
                charge(ledger, loss, str(number), period)
            except BudgetError:
                assert not all(ledger.filter(name).admits(loss) for name in concerned)
                continue
            except LedgerError:
                assert period not in losses
                continue
            for name in concerned:
                losses[name].append(loss)
        elif kind == "caps":
            caps = Caps(Fraction(amount), CAPS.delta, CAPS.keys_delta)
            ledger.register({TOTAL: caps}, f"caps {number}", raising=True)
        elif kind == "west":
            ledger.register({TOTAL: caps}, f"west {number}", parts=["west"])
            losses.setdefault(PART + "west", [*losses[TOTAL]])
        else:
            loss = Pure(Fraction(amount, 10))
            with ledger._file.write() as transaction:
                transaction.append("unknown", {"accounts": [*losses], "loss": loss.to_json()})
            for each in losses.values():
                each.append(loss)
    for name, each in losses.items():
        found = ledger.filter(name)
        assert Caps.of(found) == caps
        assert found == caps.after(each, found.spent.family)
    ledger.verify()


def person(number: int, place: int) -> bytes:
    return number.to_bytes(16, "little") + place.to_bytes(8, "little")


def test_lists_are_of_one_kind_of_persons_and_of_parts_with_accounts() -> None:
    ledger = opened()
    ledger.register_snapshots({"t": "1"}, anew=True, assigning=Assigning("t.id", [NORTH, SOUTH], person(1, 0), 0))
    with pytest.raises(LedgerError):  # another process was faster
        ledger.register_snapshots({"t": "2"}, anew=True, assigning=Assigning("t.id", [NORTH], b"", 0))
    for other in (Assigning("t.other", [NORTH], b"", 1), Assigning("t.id", [PART + "west"], b"", 1)):
        with pytest.raises(ValueError, match="lists are of one kind of persons"):
            ledger.register_snapshots({"t": "2"}, anew=True, assigning=other)
    snapshot = ledger.snapshot("t")
    assert snapshot is not None
    assert snapshot.number == 1  # all in one transaction, or nothing
    ledger.register_snapshots({"t": "2"}, anew=True, assigning=Assigning("t.id", [SOUTH], person(2, 0), 1))
    assert ledger.assigned("t.id") == [([NORTH, SOUTH], person(1, 0)), ([SOUTH], person(2, 0))]
    with pytest.raises(LedgerError, match="persons are assigned to parts"):
        ledger.assigned("t.other")
    assert [entry.note for entry in ledger.entries() if entry.kind == "assigned"] == [
        "persons who are in a part for the first time are listed"
    ] * 2
    ledger.verify()


def test_a_list_s_length_is_not_what_its_hash_shows() -> None:
    first, second = opened(), opened()
    for ledger in (first, second):
        ledger.register_snapshots({}, anew=True, assigning=Assigning("t.id", [NORTH], b"", 0))
    answers = []
    for ledger in (first, second):
        with ledger._file.read() as transaction:
            (data,) = transaction.connection.execute("SELECT answer FROM entries WHERE kind = 'assigned'").fetchone()
            answers.append(bytes(data))
    assert {len(answer) for answer in answers} == {assigned.PERSON - 1}
    assert answers[0] != answers[1]


def test_the_ledger_alone_charges_parts_but_opens_no_lists_without_their_part(tmp_path: Path) -> None:
    ledger = opened(path=tmp_path / "a.ledger")
    ledger.close()
    alone = BudgetLedger(LedgerFile(tmp_path / "a.ledger"))
    found = alone.reserve(Pure(Fraction(1, 2)), question="q", key="k", period=SOUTH)
    assert dict(found.charged) == {SOUTH: Pure(Fraction(1, 2))}
    alone.replay()
    alone.close()
