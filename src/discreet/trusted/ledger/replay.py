"""Replays the whole history and recomputes every state from the releases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from attrs import evolve

from discreet.errors import LedgerError
from discreet.trusted.ledger import chain
from discreet.trusted.ledger.accounts import Charge, States, account_from_json, follow
from discreet.trusted.ledger.chain import Key, Record
from discreet.trusted.ring_a.loss import Loss
from discreet.trusted.ring_b.gdp_filter import CertifiedFilter as Filter

TOLERANCE = Fraction(1, 10**6)
"""μ comes from a floating-point guess that is then certified: another machine's may differ within this part of it."""

_RESERVE = {"repeat": (True,), "commit": (False,), "failure": (True, False), "end": (True, False)}
"""Of which kinds of entries there must be the reserve, and whether with an answer."""


class HistoryReplay(States):
    """Replays a history and compares every recorded state with one computed from the entries alone.

    Raises LedgerError where a state charges less than the losses, an account is over its caps, a reserve is
    answered twice, or an answer is not the one that was committed. Entries must come in order, each read
    through `chain.read`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.head = chain.START
        self.answered: dict[int, bool] = {}  # by reserve
        self._charges: dict[str, list[Charge]] = {}  # by account
        self._recorded: Mapping[Key, Any] = {}  # the states that the entry set

    def charges(self, name: str) -> Sequence[Charge]:
        return self._charges.get(name, ())

    def follow(self, record: Record, digest: str | None) -> None:
        """Take the next entry; `digest` is the SHA-256 of the answer that is stored with it."""
        body, seq = record.body, record.seq
        self._recorded = {(kind, name): state for kind, name, state in body["states"]}
        placed = seq == self.head.seq + 1 and (body["kind"] == "open") == (seq == 1)
        if not placed or not self._follow_answer(record, digest):
            raise chain.broken(self.head.seq + 1)
        try:
            expected = self.after(body)
        except ValueError:
            raise chain.broken(seq) from None
        self.texts |= {key: chain.canonical(state) for key, state in self._recorded.items()}
        fits = all(_fits(state, expected.get(key)) for key, state in self._recorded.items())
        if not fits or len(self._recorded) != len(expected) or chain.balances(self.texts) != body["balances"]:
            raise chain.broken(seq)
        follow(self._charges, body)
        self.head = record

    def charged(self, key: Key, account: Filter, loss: Loss) -> Filter:
        """The first charge says with which filters an account began, never that an owner moved to them."""
        if account.spent.family is None and key in self._recorded:
            begun = account_from_json(self._recorded[key]).spent.family
            account = evolve(account, spent=evolve(account.spent, family=begun and evolve(begun, moved=False)))
        admitted = evolve(account, epsilon=account.epsilon * (1 + TOLERANCE)).admits(loss)
        LedgerError.unless(admitted, "overcharged", entry=self.head.seq + 1)
        return account.after(loss)

    def _follow_answer(self, record: Record, digest: str | None) -> bool:
        """Whether the entry's answer is the one that it names, and its reserve was there for it."""
        kind, reserve = record.body["kind"], record.body.get("reserve", 0)
        right = self.answered.get(reserve) in _RESERVE[kind] if kind in _RESERVE else True
        if kind in ("reserve", "commit"):
            self.answered[record.seq if kind == "reserve" else reserve] = kind == "commit"
        return right and digest == record.body.get("answer")


def _fits(recorded: Any, expected: Any) -> bool:
    """Whether a recorded state is the expected one. An account charges what the losses ask for: exactly, but for the
    tolerance of μ².

    A larger μ² is right too: a later version of the accounting may find a smaller one for the same release. An earlier
    version went on adding to a μ² above its cap, which is as dead as None.
    """
    accounts = all(isinstance(one, dict) and "spent" in one for one in (recorded, expected))
    if not accounts or recorded == expected:
        return chain.canonical(recorded) == chain.canonical(expected)
    if recorded.get("day") != expected.get("day"):
        return False
    found, wanted = account_from_json(recorded), account_from_json(expected)
    given, least = found.spent.mu_squared, wanted.spent.mu_squared
    enough = given is not None and least is not None and given >= least * (1 - TOLERANCE)
    same = found == evolve(wanted, spent=evolve(wanted.spent, mu_squared=given))
    return same and (enough or given is None or found.residue is None)
