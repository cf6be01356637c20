"""Any sequence of acts, against a model of twenty lines."""

from __future__ import annotations

import shutil
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from discreet.errors import BudgetError, LedgerError, QuestionError
from discreet.ledger import TOTAL, Ledger, Reserved
from kinds import examples
from storms import PRICE, caps

ANALYSTS = ("", "ana", "bob", "eve")
KEYS = ("a", "b", "c")


class Model:
    """Units, in dictionaries."""

    def __init__(self) -> None:
        self.caps: dict[str, int] = {}
        self.spent: dict[str, int] = {}
        self.answers: dict[int, tuple[str, bytes]] = {}  # of a reserve: its key, and what was committed
        self.paid: set[tuple[str, int]] = set()  # accounts, and reserves whose answers they paid for
        self.requests: dict[tuple[str, str], tuple[str, int]] = {}

    def own(self, analyst: str) -> list[str]:
        return [analyst] if analyst and analyst in self.caps else []

    def admits(self, accounts: list[str]) -> bool:
        return all(self.spent[name] < self.caps[name] for name in accounts)

    def debit(self, accounts: list[str], reserve_id: int) -> None:
        for name in accounts:
            self.spent[name] += 1
            self.paid.add((name, reserve_id))

    def answer(self, key: str, analyst: str, request: str | None) -> int | None:
        """The reserve whose answer is given: that of the request, else one that is paid, else the first."""
        if request is not None and (analyst, request) in self.requests:
            of = self.requests[analyst, request][1]
            return of if of in self.answers else None
        fitting = [of for of, (its, _) in self.answers.items() if its == key]
        mine = [of for of in fitting if (analyst, of) in self.paid and self.own(analyst)]
        return next(iter(mine or fitting), None)


class Machine(RuleBasedStateMachine):
    reserves = Bundle("reserves")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.ledger = Ledger(self.folder / "a.ledger")
        self.model = Model()
        self.heads: list[str] = []
        self.set_cap(TOTAL, 12)

    def teardown(self) -> None:
        for head in self.heads:
            self.ledger.verify(head)
        self.ledger.close()
        shutil.rmtree(self.folder)

    @rule(name=st.sampled_from(("", "ana", "bob")), units=st.integers(1, 15))
    def set_cap(self, name: str, units: int) -> None:
        if units > self.model.caps.get(name, 15):
            with pytest.raises(LedgerError, match="in the ledger"):
                self.ledger.register({name: caps(units)}, "declared")
        self.ledger.register({name: caps(units)}, "declared", raising=True)
        self.model.caps[name] = units
        self.model.spent.setdefault(name, 0)

    @rule(
        target=reserves,
        analyst=st.sampled_from(ANALYSTS),
        key=st.sampled_from(KEYS),
        request=st.sampled_from((None, "r", "s", "t")),
    )
    def reserve(self, analyst: str, key: str, request: str | None) -> object:
        model, own = self.model, self.model.own(analyst)
        known = model.requests.get((analyst, request or ""))
        of = model.answer(key, analyst, request)

        def ask() -> object:
            return self.ledger.reserve(PRICE, question=key, key=key, account=analyst, request=request)

        if known is not None and known[0] != key:
            with pytest.raises(QuestionError):
                ask()
        elif of is not None:
            accounts = [name for name in own if (name, of) not in model.paid]
            if not model.admits(accounts):
                with pytest.raises(BudgetError):
                    ask()
                return multiple()
            given = ask()
            assert (given.reserve_id, given.answer) == (of, model.answers[of][1])
            assert list(given.charged) == accounts
            model.debit(accounts, of)
            self._remember(analyst, request, key, of)
        elif known is not None:
            with pytest.raises(LedgerError, match="has no stored answer"):
                ask()
        elif not model.admits([TOTAL, *own]):
            with pytest.raises(BudgetError):
                ask()
        else:
            given = ask()
            assert isinstance(given, Reserved)
            model.debit([TOTAL, *own], given.reserve_id)
            self._remember(analyst, request, key, given.reserve_id)
            return (given.reserve_id, key)
        return multiple()

    def _remember(self, analyst: str, request: str | None, key: str, of: int) -> None:
        if request is not None:
            self.model.requests.setdefault((analyst, request), (key, of))

    @rule(reserve=consumes(reserves), answer=st.binary(max_size=20))
    def commit(self, reserve: tuple[int, str], answer: bytes) -> None:
        self.ledger.commit(reserve[0], answer)
        self.model.answers[reserve[0]] = (reserve[1], answer)

    @rule()
    def reopen(self) -> None:
        self.ledger.close()
        self.ledger = Ledger(self.folder / "a.ledger")

    @rule()
    def note_head(self) -> None:
        self.heads.append(self.ledger.head)

    @rule()
    def verify(self) -> None:
        verified = self.ledger.verify()
        spent = {name: filter_.spent.pure for name, filter_ in verified.accounts.items()}
        assert spent == {name: units * PRICE.epsilon for name, units in self.model.spent.items()}
        reserved = [entry for entry in self.ledger.entries() if entry.kind == "reserve"]
        assert len(reserved) - verified.unanswered == len(self.model.answers)

    @invariant()
    def balances(self) -> None:
        for name, units in self.model.spent.items():
            filter_ = self.ledger.filter(name)
            assert filter_.spent.pure == units * PRICE.epsilon
            assert filter_.epsilon == self.model.caps[name] * Fraction(1, 10)


TestModel = Machine.TestCase
TestModel.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
