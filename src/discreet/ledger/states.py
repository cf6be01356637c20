"""What a history amounts to: accounts with their caps and what was spent, and tables' snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.errors import LedgerError
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.filter import Family, Spent
from discreet.trusted.ring_a.loss import Loss
from discreet.trusted.ring_b.gdp_filter import CertifiedFilter as Filter

TOTAL = ""  # the account of the whole budget


@dataclass(frozen=True)
class Caps:
    """What an account may spend."""

    epsilon: Fraction
    delta: Fraction
    keys_delta: Fraction

    def filter(self, spent: Spent | None = None) -> Filter:
        """The filter of these caps. Raises ValueError unless epsilon > 0 and 0 ≤ keys_delta ≤ delta < 1."""
        return Filter(self.epsilon, self.delta, self.keys_delta, spent)

    def to_json(self) -> dict[str, str]:
        return {"epsilon": str(self.epsilon), "delta": str(self.delta), "keys_delta": str(self.keys_delta)}

    @staticmethod
    def from_json(caps: Mapping[str, str]) -> Caps:
        return Caps(Fraction(caps["epsilon"]), Fraction(caps["delta"]), Fraction(caps["keys_delta"]))

    def within(self, other: Caps) -> bool:
        """Whether these are nowhere larger: not in ε, not in the δ for keys, not in the δ for all else."""
        mine, its = self.delta - self.keys_delta, other.delta - other.keys_delta
        return self.epsilon <= other.epsilon and self.keys_delta <= other.keys_delta and mine <= its

    def __str__(self) -> str:
        return f"ε {show(self.epsilon)}" + (f" δ {show(self.delta)}" if self.delta else "")


@dataclass(frozen=True)
class Account:
    """An account's caps and what was spent of them."""

    caps: Caps
    spent: Spent

    def filter(self) -> Filter:
        return self.caps.filter(self.spent)

    def to_json(self) -> dict[str, Any]:
        return {"caps": self.caps.to_json(), "spent": self.spent.to_json()}

    @property
    def promise(self) -> str:
        """What holds for all that was released from this account, in words."""
        return str(replace(self.caps, delta=self.filter().promised_delta))

    @staticmethod
    def from_json(state: Mapping[str, Any]) -> Account:
        """The state that `to_json` wrote. Raises LedgerError "newer" for filters that this version does not know."""
        try:
            return Account(Caps.from_json(state["caps"]), Spent.from_json(state["spent"]))
        except ValueError:
            message = "the ledger began with filters that this version does not know"
            raise LedgerError("newer", message, fix="upgrade discreet") from None


@dataclass(frozen=True)
class Unit:
    """Who counts as a person in a table, in words, and of how many rows of one its declaration speaks. `kind` is the
    type that the person's column is read as: of other types, other persons come of the same column."""

    column: str
    rows: int
    kind: str = ""

    @property
    def person(self) -> str:
        return f"{self.column} ({self.kind})" if self.kind else self.column

    def was(self, known: str) -> bool:
        """Whether the same persons are meant by words of an earlier time, which did not say the type."""
        return known in (self.person, self.column)


def respent(caps: Caps, losses: Iterable[Loss], family: Family | None) -> Account:
    """The account that these releases, one after another, would have left under these caps.

    `family` is that of the account: whatever its caps, it keeps the filters that it began with. None before the first
    charge.
    """
    filter_ = caps.filter(Spent(family))
    for loss in losses:
        filter_ = filter_.after(loss)
    return Account(caps, filter_.spent)


def renewed(account: Account, losses: Iterable[Loss]) -> Account | None:
    """The account with the present filters, charged anew, where it began with older ones and something would be
    left."""
    family = account.filter().renewable
    after = None if family is None else respent(account.caps, losses, family)
    return after if after is not None and after.filter().alive else None


@dataclass(frozen=True)
class Snapshot:
    """How often a table was registered, and the fingerprint of the last time."""

    number: int
    fingerprint: str


@dataclass(frozen=True)
class TableState:
    """A table's snapshot (number 0 before the first), whether it is frozen until the next, how many measurements failed
    in it, and which analysts are suspended on it since one of theirs did ("" for those who name none)."""

    snapshot: Snapshot
    frozen: bool
    failures: int = 0
    suspended: tuple[str, ...] = ()

    def failed(self, analyst: str, *, counted: bool, limit: int) -> TableState:
        """After a failed measurement. One that is `counted` may be the last before the table is frozen."""
        failures = self.failures + counted
        suspended = tuple(sorted({*self.suspended, analyst}))
        return replace(self, frozen=self.frozen or failures >= limit, failures=failures, suspended=suspended)

    def lifted(self, analyst: str) -> TableState:
        """After the owner has lifted an analyst's suspension. What failed stays counted."""
        return replace(self, suspended=tuple(name for name in self.suspended if name != analyst))

    def to_json(self) -> dict[str, Any]:
        """What is 0 or empty is left out, as older versions wrote it."""
        plain = {"number": self.snapshot.number, "fingerprint": self.snapshot.fingerprint, "frozen": self.frozen}
        failures: dict[str, Any] = {"failures": self.failures} if self.failures else {}
        return plain | failures | ({"suspended": list(self.suspended)} if self.suspended else {})

    @staticmethod
    def from_json(state: Mapping[str, Any] | None) -> TableState:
        """The state that `to_json` wrote; None is a table that the ledger does not know."""
        if state is None:
            return TableState(Snapshot(0, ""), False)
        snapshot = Snapshot(state["number"], state["fingerprint"])
        return TableState(snapshot, state["frozen"], state.get("failures", 0), tuple(state.get("suspended", ())))
