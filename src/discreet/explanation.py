"""What a question would cost, and what is left of the budget: as objects that print well."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.accounting import Filter, Loss
from discreet.accounting.odds import best_guess, best_guess_of_budget
from discreet.release.estimate import GROUP_FOR_MEANS
from discreet.release.show import percent
from discreet.release.table import Cost


@dataclass(frozen=True)
class Explanation:
    """What a question would cost and how far off its answer would be; nothing was spent and no row was read.

    `expected_error` is the half width of the 95 % interval of each column; of a mean, in a group of at least
    `group` rows. `percent` is the part of the budget that the question takes, `more` how many like it fit. `bounds` say
    what the bounds are, `advice` which questions tell, at a price of their own, how many persons they concern. `odds`
    is the chance, at best, of an attacker who knows all but whether one person is in the data to guess that right from
    this answer; one half is a coin toss. `odds_of_budget` is the same for all that the budget will ever allow.
    """

    price: Cost
    percent: float
    more: int
    expected_error: Mapping[str, float]
    mechanisms: tuple[Mapping[str, str], ...]
    bounds: tuple[str, ...]
    advice: tuple[str, ...]
    means: tuple[str, ...]
    odds: float
    odds_of_budget: float
    group: int = GROUP_FOR_MEANS

    def to_dict(self) -> dict[str, Any]:
        return {
            "price": dict(self.price),
            "percent": self.percent,
            "more": self.more,
            "expected_error": dict(self.expected_error),
            "means_in_groups_of": self.group,
            "mechanisms": [dict(one) for one in self.mechanisms],
            "bounds": list(self.bounds),
            "advice": list(self.advice),
            "odds": self.odds,
            "odds_of_budget": self.odds_of_budget,
        }

    def __repr__(self) -> str:
        lines = [f"price {self.price} · {percent(self.percent)} of the budget · {self.more:,} like this fit"]
        for name, error in self.expected_error.items():
            where = f" in a group of at least {self.group:,} people" if name in self.means else ""
            lines.append(f"{name}: ±{error:,.3g} with 95 %{where}")
        lines += [f"{one['columns']}: {one['mechanism']}" for one in self.mechanisms]
        lines.append("bounds: " + "; ".join(self.bounds))
        lines += self.advice
        lines.append(
            "is one person in the data? Who knows everybody else guesses right with at most"
            f" {_chance(self.odds)} after this answer, {_chance(self.odds_of_budget)} after the whole budget"
        )
        return "\n".join([*lines, "nothing was spent"])


def explanation(
    total: Filter,
    loss: Loss,
    price: Cost,
    expected_error: Mapping[str, float],
    mechanisms: Iterable[Mapping[str, str]],
    bounds: tuple[str, ...],
    advice: tuple[str, ...] = (),
    means: tuple[str, ...] = (),
) -> Explanation:
    """What a loss would take of the whole budget as it is now, beside what is known of the answer."""
    taken = total.after(loss).used() - total.used()
    return Explanation(
        price,
        float(max(Fraction(0), taken) * 100),
        total.left(loss),
        expected_error,
        tuple(mechanisms),
        bounds,
        advice,
        means,
        best_guess(loss),
        best_guess_of_budget(total.epsilon, total.delta),
    )


@dataclass(frozen=True)
class BudgetState:
    """The whole budget, and how much of it is used."""

    total: Mapping[str, str]
    used: float
    keys_used: float
    lasting: bool

    @property
    def left(self) -> str:
        """What is left, in words."""
        words = f"{max(0, math.floor(100 - self.used))} % of ε {self.total['epsilon']}, δ {self.total['delta']} is left"
        return words if self.lasting else words + "; the ledger is in memory and ends with this object"

    def __repr__(self) -> str:
        return f"{percent(self.used)} used; {self.left}"


def _chance(odds: float) -> str:
    """Percent, rounded up: an attacker is never made smaller than he is."""
    return f"{min(100.0, math.ceil(odds * 1000 - 1e-9) / 10):g} %"
