"""What a history amounts to: accounts with their caps and what was spent, and tables' snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.accounting import Filter, Loss, Spent
from discreet.exact import show

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

    @staticmethod
    def from_json(state: Mapping[str, Any]) -> Account:
        return Account(Caps.from_json(state["caps"]), Spent.from_json(state["spent"]))


def respent(caps: Caps, losses: Iterable[Loss]) -> Account:
    """The account that these releases, one after another, would have left under these caps."""
    filter_ = caps.filter()
    for loss in losses:
        filter_ = filter_.after(loss)
    return Account(caps, filter_.spent)


@dataclass(frozen=True)
class Snapshot:
    """How often a table was registered, and the fingerprint of the last time."""

    number: int
    fingerprint: str


@dataclass(frozen=True)
class TableState:
    """A table's snapshot (number 0 before the first), and whether it is frozen until the next."""

    snapshot: Snapshot
    frozen: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "number": self.snapshot.number,
            "fingerprint": self.snapshot.fingerprint,
            "frozen": self.frozen,
        }

    @staticmethod
    def from_json(state: Mapping[str, Any] | None) -> TableState:
        """The state that `to_json` wrote; None is a table that the ledger does not know."""
        if state is None:
            return TableState(Snapshot(0, ""), False)
        return TableState(Snapshot(state["number"], state["fingerprint"]), state["frozen"])
