"""What a question would cost, and what is left of the budget: as objects that print well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from discreet.intervals.expected import GROUP_FOR_MEANS
from discreet.intervals.noise import three_digits
from discreet.odds import chance
from discreet.release.content import Cost
from discreet.release.left_out import LeftOut
from discreet.release.limit_advice import LimitOption, in_words
from discreet.release.render import percent, remarks
from discreet.release.values import finite
from discreet.texts import visible


@dataclass(frozen=True)
class Explanation:
    """What a question would cost and how far off its answer would be; nothing was spent and no row was read.

    Where only what is missing is bought beside earlier answers, `price` is that of what is bought.
    `expected_error` is the half width of the 95 % interval of each column; of those of `means`, which are means and
    what is made of them, in a group of at least `group` values. `percent` is the part of the budget that the question
    takes, `more` how many like it fit. `bounds` are all that changes how the answer may be read,
    `left_out` the same with numbers, `choices` what other limits a person would cost in noise at this price. `advice`
    names questions that tell, at a price of their own, which limits to choose. `odds`
    is the chance, at best, of an attacker who knows all but whether one person is in the data to guess that right from
    this answer; one half is a coin toss. `odds_of_budget` is the same for all that the budget will ever allow. `after`
    says what the charge would leave for questions or for publishing, and what it would end. Where whoever asks has an
    account of her own, `analyst` is it, with the `percent` of it that the question takes; `more` and `after` are what
    both accounts allow. Where it is `stored`, no price was named, and whoever asks has an answer of this price already:
    asked without a price, it is free. Where it is made of `earlier` answers, so many, it is free too: its errors hold
    for whoever asks after some of their noise was seen; and it is free where a `synthetic` state answers it, as these
    words say. `columns` are the answer's, each with its type; an "estimate of
    integer" has an interval.
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
    left_out: tuple[LeftOut, ...] = ()
    choices: tuple[LimitOption, ...] = ()
    group: int = GROUP_FOR_MEANS
    after: str = ""
    analyst: Mapping[str, Any] | None = None
    stored: bool = False
    earlier: int = 0
    columns: Mapping[str, str] = field(default_factory=dict)
    synthetic: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Gives everything as plain values, as JSON has them."""
        whole: dict[str, Any] = {
            "price": dict(self.price),
            "percent": self.percent,
            "more": self.more,
            "expected_error": dict(self.expected_error),
            "means": list(self.means),
            "means_in_groups_of": self.group,
            "mechanisms": [dict(one) for one in self.mechanisms],
            "bounds": list(self.bounds),
            "left_out": [one.to_dict() for one in self.left_out],
            "choices": [one.to_dict() for one in self.choices],
            "advice": list(self.advice),
            "odds": self.odds,
            "odds_of_budget": self.odds_of_budget,
            "after": self.after,
            "analyst": None if self.analyst is None else dict(self.analyst),
            "stored": self.stored,
            "earlier": self.earlier,
            "columns": dict(self.columns),
            "synthetic": self.synthetic,
        }
        plain: dict[str, Any] = finite(whole)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Reads what `to_dict` wrote."""
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()
        }
        given |= {
            "price": Cost(plain["price"]),
            "group": given.pop("means_in_groups_of"),
            "left_out": tuple(LeftOut(**one) for one in plain["left_out"]),
            "choices": tuple(LimitOption(**one) for one in plain["choices"]),
        }
        return cls(**given)

    def __repr__(self) -> str:
        takes = f"{percent(self.percent)} of the budget"
        if self.analyst is not None:
            own = self.analyst
            takes += f" · {percent(own['percent'])} of {own['name']}'s ε {own['epsilon']}, {percent(own['used'])} of it"
            takes += " used before"
        lines = [visible(f"price {self.price} · {takes} · {self.more:,} like this fit")]
        if self.stored:
            lines = [f"free: the answer is stored, at price {self.price}"]
        elif self.synthetic:
            lines = [visible(f"free: {self.synthetic}")]
        elif self.earlier:
            several = "s" if self.earlier > 1 else ""
            errors = ", ".join(f"±{three_digits(error)}" for error in self.expected_error.values())
            lines = [f"free: from {self.earlier} earlier answer{several}{errors and ', ' + errors}"]
        elif self.after:
            lines.append(visible(f"after it {self.after}"))
        for name, error in self.expected_error.items():
            where = f" in a group of at least {self.group:,} values" if name in self.means else ""
            lines.append(f"{name}: ±{three_digits(error)} at 95 % confidence{where}")
        lines += [f"{one['columns']}: {one['mechanism']}" for one in self.mechanisms]
        lines += remarks(self.bounds)
        lines += in_words(self.choices)
        lines += self.advice
        lines.append(
            "membership inference: an attacker who knows everyone else is right at most"
            f" {chance(self.odds)} of the time after this answer, {chance(self.odds_of_budget)} after the whole budget"
        )
        return "\n".join([*lines, "nothing was spent"])


@dataclass(frozen=True)
class BudgetState:
    """The whole budget, how much of it is used, and what `room` that leaves, in words: either for questions, or for
    publishing. `total` is what is promised for all that was released. `analysts` are the declared ones' own accounts:
    the same of each, what is left being what both that account and the whole budget allow, and `windows` what of it may
    be spent in the present "day" or "month": its ε, the percent used, and the day on which the next one begins.
    `prices` are the largest ε that are left, of one more question ("questions") or else of a published table
    ("publishing"). An analyst's has `whole`: the promise of the whole budget, and the percent of it that is used, as
    each answer says it. Where the budget renews, `period` has the `name` of the one that runs, `until`, the day from
    which a refresh begins the next, for whom it `renews`, and the `promise` over a year. `approved` is how much of an
    analyst's ε the owner has approved above the declared one. Where each of several `parts` has a budget, they are the
    same of each; all else is then of the one with the least left, which a question about all is held against. A part of
    an analyst's has what both leave, and the part's own budget as `whole`."""

    total: Mapping[str, str]
    used: float
    keys_used: float
    lasting: bool
    room: str
    analysts: Mapping[str, BudgetState] = field(default_factory=dict)
    windows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    prices: Mapping[str, str] = field(default_factory=dict)
    whole: Mapping[str, Any] | None = None
    period: Mapping[str, str] | None = None
    approved: str = "0"
    parts: Mapping[str, BudgetState] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Gives everything as plain values, as JSON has them."""
        analysts = {name: one.to_dict() for name, one in self.analysts.items()}
        windows = {length: dict(one) for length, one in self.windows.items()}
        whole = None if self.whole is None else dict(self.whole)
        plain = {"total": dict(self.total), "analysts": analysts, "windows": windows, "prices": dict(self.prices)}
        period = None if self.period is None else dict(self.period)
        parts = {name: one.to_dict() for name, one in self.parts.items()}
        found = {**vars(self), **plain, "whole": whole, "period": period, "parts": parts}
        return found if parts else {name: one for name, one in found.items() if name != "parts"}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Reads what `to_dict` wrote."""
        read = {
            key: {name: cls.from_dict(one) for name, one in plain.get(key, {}).items()} for key in ("analysts", "parts")
        }
        return cls(**{**plain, **read})

    @property
    def left(self) -> str:
        """What is left, in words."""
        words = f"{self.room} (of ε {self.total['epsilon']}, δ {self.total['delta']})"
        return words if self.lasting else words + "; the ledger is in memory and ends with this object"

    @property
    def of_part(self) -> str:
        """Of a part, how much of its budget is used, and what is left, in words."""
        own: Mapping[str, Any] = {**self.total, "used": self.used} if self.whole is None else self.whole
        return f"{percent(own['used'])} of ε {own['epsilon']} used; {self.room}"

    def __repr__(self) -> str:
        whole = f"; of the whole budget {percent(self.whole['used'])} is used" if self.whole is not None else ""
        lines = [f"{percent(self.used)} used; {self.left}{whole}", *running(self.period)]
        lines += [visible(f"part {name}: {one.of_part}") for name, one in self.parts.items()]
        for name, one in self.analysts.items():
            lines.append(
                visible(
                    f"{name}: {percent(one.used)} of ε {one.total['epsilon']}{above(one.approved)} used"
                    f"{spans(one.windows)}; {one.room}"
                )
            )
        return "\n".join(lines)


def above(approved: str) -> str:
    """What was approved above the declared budget, in words that go on; nothing where nothing was."""
    return f" ({approved} of it approved)" if approved != "0" else ""


def spans(windows: Mapping[str, Mapping[str, Any]]) -> str:
    """What was used of the caps by day and month, in words that go on; nothing where there are none."""
    return "".join(
        f", {percent(one['used'])} of ε {one['epsilon']} a {length} (the next begins {one['until']} UTC)"
        for length, one in windows.items()
    )


def running(period: Mapping[str, str] | None) -> list[str]:
    """The period that runs, and what is promised over several, in lines; none where the budget does not renew."""
    if period is None:
        return []
    begun = f"period {period['name']}, until {period['until']} UTC; then `discreet refresh` begins the next"
    return [begun if period["name"] else "the first period begins when the tables are loaded", period["promise"]]
