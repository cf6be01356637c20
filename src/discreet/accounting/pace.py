"""How long a budget lasts, if it is spent on as lately: for people, an estimate and no promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from functools import reduce

from discreet.accounting.room import part_used
from discreet.trusted.ring_a.filter import PrivacyFilter, Spent
from discreet.trusted.ring_a.loss import Loss

LONGEST, SHORTEST = 28, 7
"""Days that are looked back on, at most and at least: what was asked on the first day alone says little of a year."""

YEAR = 365


@dataclass(frozen=True)
class Pace:
    """`until` is about the day on which nothing is left; None where that is no day within a year. `days` are those
    that were looked back on."""

    days: int
    until: date | None
    words: str

    def to_dict(self) -> dict[str, object]:
        """The same as plain values."""
        return {"days": self.days, "until": self.until and self.until.isoformat(), "words": self.words}


def pace(
    account: PrivacyFilter, charges: Sequence[tuple[date, Loss]], today: date, *, kept: Loss | None = None
) -> Pace:
    """How long what is left of an account lasts, without what is `kept`, by its latest charges and their days."""
    lately = [(day, loss) for day, loss in charges if (today - day).days < LONGEST]
    first = min((day for day, _ in lately), default=today)
    days = min(LONGEST, max(SHORTEST, (today - first).days + 1))
    free = account if kept is None else account.after(kept)
    left = 1 - min(Fraction(1), part_used(free))
    if not left:
        return Pace(days, today, "nothing is left")
    if not lately:
        return Pace(days, None, f"nothing was charged in the last {LONGEST} days")
    taken = part(account, [loss for _, loss in lately])
    if left * days > taken * YEAR:
        return Pace(days, None, f"as in the last {days} days, no end within a year")
    until = today + timedelta(int(left * days / taken))
    return Pace(days, until, f"as in the last {days} days, until about {until.isoformat()}")


def part(account: PrivacyFilter, losses: Sequence[Loss]) -> Fraction:
    """The part of an account's budget that these alone would use, 0 to 1."""
    fresh = type(account)(account.epsilon, account.delta, account.keys_delta, Spent(account.spent.family))
    return part_used(reduce(PrivacyFilter.after, losses, fresh))
