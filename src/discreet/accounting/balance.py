"""The remaining budget as prices: for one more question, or for publishing one table.

Losses do not add, so these stand beside each other: either the one or the other. Found in floating point, then held
against the filter itself: what is said to be left is admitted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from discreet.accounting.room import gaussian_room, part_used, pure_room, times_left
from discreet.trusted.ring_a.curves import guessed_delta, mu_of_budget
from discreet.trusted.ring_a.exact import floor, show
from discreet.trusted.ring_a.filter import GAUSSIAN_PART, PrivacyFilter
from discreet.trusted.ring_a.loss import EquivalentGaussian, GaussianLoss, Loss, Pure

_DIGITS, _SHORT = 6, 3
_HALVINGS = 40
_TRIES = 8


def price_delta(whole: PrivacyFilter, epsilon: Fraction, event: bool = True) -> Fraction:
    """The δ of a price that names none: in the share of ε, that part of the budget's which one release can take, so
    that the whole ε can be spent on one; rounded down. Without the `event` nothing of it goes to keys."""
    most = GAUSSIAN_PART * (whole.delta if event else whole.delta - whole.keys_delta)
    return floor(most * min(Fraction(1), epsilon / whole.epsilon), 3)


def event_delta(whole: PrivacyFilter, delta: Fraction) -> Fraction:
    """The part of a price's δ that goes to keys: of what is published, that outside which one μ stands for it all. Not
    rounded: what the keys did not get would be the Gaussian part's, which may have no more than its own."""
    return delta * whole.keys_delta / whole.delta if whole.delta else Fraction(0)


def published(whole: PrivacyFilter, epsilon: Fraction, event: bool = True) -> Loss:
    """What publishing a table at this price takes of the budget `whole`, at most: the batch that it declares is made as
    large as one Gaussian release of the price's μ allows. Without the `event` it is one Gaussian release."""
    delta = price_delta(whole, epsilon, event)
    keys = event_delta(whole, delta) if event else Fraction(0)
    mu = floor(mu_of_budget(epsilon, delta - keys), 12)  # its square is then no longer than a filter's own
    return EquivalentGaussian(mu, keys) if event else GaussianLoss(mu)


def price_of(whole: PrivacyFilter, mu_squared: Fraction, event: bool = True) -> tuple[Fraction, Fraction]:
    """The price (ε, δ) that names no δ and buys noise of this μ²: for people, to two digits and in floating point. The
    δ of the budget is not 0, or there would be no such noise."""
    rate = float(price_delta(whole, whole.epsilon, event) / whole.epsilon)
    part = float(1 - whole.keys_delta / whole.delta) if event else 1.0
    low, high = 0.0, 2 * float(whole.epsilon)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = guessed_delta(middle, math.sqrt(mu_squared)) >= middle * rate * part
        low, high = (middle, high) if fits else (low, middle)
    epsilon = Fraction(show(Fraction(low), 2))
    return epsilon, price_delta(whole, epsilon, event)


def for_publishing(account: PrivacyFilter, whole: PrivacyFilter, event: bool = True) -> Fraction:
    """The largest price at which a table can be published, the whole or rounded down to two digits; 0 where none
    can."""
    room, keys = gaussian_room(account), account.keys_delta - account.spent.keys
    if not room or (event and (keys <= 0 or not whole.keys_delta or whole.keys_delta == whole.delta)):
        return Fraction(0)
    if account.admits(published(whole, whole.epsilon, event)):
        return whole.epsilon
    rate = float(price_delta(whole, whole.epsilon, event) / whole.epsilon)
    part = float(1 - whole.keys_delta / whole.delta) if event else 1.0
    low, high = 0.0, float(whole.epsilon)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = guessed_delta(middle, math.sqrt(room)) >= middle * rate * part
        fits = fits and (not event or middle * rate * (1 - part) <= float(keys))
        low, high = (middle, high) if fits else (low, middle)
    for short in range(_TRIES):
        price = floor(Fraction(low) * (1 - Fraction(short, 100)), 2)
        if price > 0 and account.admits(published(whole, price, event)):
            return price
    return Fraction(0)


def for_questions(account: PrivacyFilter) -> Fraction:
    """The largest ε, nearly and rounded down, that one more question may cost."""
    low = floor(pure_room(account), _DIGITS)
    high = max(low, 2 * Fraction(math.sqrt(account.residue or 0)))
    for _ in range(20 if high > low else 0):
        middle = floor((low + high) / 2, _DIGITS)
        low, high = (middle, high) if account.admits(Pure(middle)) else (low, middle)
    return low if low > 0 and account.admits(Pure(low)) else Fraction(0)


@dataclass(frozen=True)
class Balance:
    """What is left to whoever asks: of the whole budget `total`, of which the owner keeps `kept` for publishing, and of
    the account of an `analyst` who has one, `own`, of which so much may be spent in each of the present `windows`. Each
    charge is debited from all of them, so what is left is what all admit."""

    total: PrivacyFilter
    analyst: str = ""
    own: PrivacyFilter | None = None
    kept: Loss | None = None
    windows: Mapping[str, PrivacyFilter] = field(default_factory=dict)

    def after(self, loss: Loss) -> Balance:
        """The balance once this is charged, admitted or not."""
        windows = {length: account.after(loss) for length, account in self.windows.items()}
        own = None if self.own is None else self.own.after(loss)
        return replace(self, total=self.total.after(loss), own=own, windows=windows)

    @property
    def _own(self) -> list[PrivacyFilter]:
        """What is the analyst's own."""
        return [] if self.own is None else [self.own, *self.windows.values()]

    @property
    def alive(self) -> bool:
        """Whether all accounts admitted what was charged."""
        return all(account.alive for account in (self.total, *self._own))

    def more(self, loss: Loss) -> int:
        """How many more releases of this loss are admitted, one after another."""
        return min(times_left(account, loss) for account in (self._free, *self._own))

    @cached_property
    def prices(self) -> tuple[Fraction, Fraction]:
        """The largest prices that are left: of one more question, or of a published table; 0 for none."""
        questions, tables = for_questions(self._free), for_publishing(self.total, self.total)
        if self.kept is not None and not self.total.after(Pure(questions)).admits(self.kept):
            questions = Fraction(0)
        for account in self._own:
            questions = min(questions, for_questions(account))
            tables = min(tables, for_publishing(account, self.total))
        return questions, tables

    @property
    def left(self) -> str:
        """What is left, in words."""
        questions, tables = self.prices
        whose = f" for {self.analyst}" if self.own is not None else ""
        if not questions and not tables:
            return f"nothing is left{whose}"
        one = f"ε {show(floor(questions, _SHORT))} in questions" if questions else "no question"
        return f"left{whose}: " + (f"either {one} or ε {show(tables)} in published tables" if tables else one)

    @property
    def used(self) -> float:
        """The part of the whole budget that is used, in percent."""
        return used(self.total)

    def account(self, more: Loss | None = None) -> dict[str, Any] | None:
        """The analyst's own account as plain values, `used` in percent; with `more`, also how much of it that takes,
        as `percent`. None where whoever asks has none."""
        if self.own is None:
            return None
        found = {"name": self.analyst, **promise(self.own), "used": used(self.own)}
        return found if more is None else found | {"percent": percent_of(self.own, more)}

    @property
    def _free(self) -> PrivacyFilter:
        """The whole budget without what the owner keeps."""
        return self.total if self.kept is None else self.total.after(self.kept)


def promise(account: PrivacyFilter) -> dict[str, str]:
    """What is promised for all that an account ever pays."""
    return {"epsilon": show(account.epsilon), "delta": show(account.promised_delta)}


def used(account: PrivacyFilter) -> float:
    """The part of an account that is used, in percent."""
    return float(min(Fraction(1), part_used(account)) * 100)


def percent_of(account: PrivacyFilter, loss: Loss) -> float:
    """What a release takes of an account, in percent."""
    return float(max(Fraction(0), part_used(account.after(loss)) - part_used(account)) * 100)


def ends(before: PrivacyFilter, after: PrivacyFilter) -> str:
    """What a charge of the whole budget would end, for people: where tables could then be published at less than half
    the price. Empty where nothing ends."""
    if 4 * gaussian_room(after) >= gaussian_room(before):
        return ""
    now, then = for_publishing(before, before), for_publishing(after, after)
    if not now:
        return ""
    return (
        f"tables can be published with at most ε {show(then)}, not {show(now)}" if then else "no table can be published"
    )
