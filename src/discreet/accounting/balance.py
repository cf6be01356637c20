"""What is left of a budget, as prices: for one more question, or for publishing one table.

Losses do not add, so these stand beside each other: either the one or the other. Found in floating point, then held
against the filter itself: what is said to be left is admitted.
"""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.accounting.curves import guessed_delta, mu_of_budget
from discreet.accounting.filter import Filter
from discreet.accounting.loss import EquivalentGaussian, Gaussian, Loss, Pure
from discreet.exact import floor, show

_DIGITS, _SHORT = 6, 3
_HALVINGS = 40
_TRIES = 8


def price_delta(whole: Filter, epsilon: Fraction) -> Fraction:
    """The δ of a price that names none: the budget's, in the share of ε, rounded down."""
    return floor(min(whole.delta, whole.delta * epsilon / whole.epsilon), 3)


def event_delta(whole: Filter, delta: Fraction) -> Fraction:
    """The part of a price's δ that goes to keys: of what is published, that outside which one μ stands for it all."""
    return floor(delta * whole.keys_delta / whole.delta, 3) if whole.delta else Fraction(0)


def published(whole: Filter, epsilon: Fraction, event: bool = True) -> Loss:
    """What publishing a table at this price takes of the budget `whole`, at most: the batch that it declares is made as
    large as one Gaussian release of the price's μ allows. Without the `event` it is one Gaussian release."""
    delta = price_delta(whole, epsilon)
    keys = event_delta(whole, delta) if event else Fraction(0)
    mu = mu_of_budget(epsilon, delta - keys)
    return EquivalentGaussian(mu, keys) if event else Gaussian(mu)


def for_publishing(account: Filter, whole: Filter, event: bool = True) -> Fraction:
    """The largest price, rounded down to two digits, at which a table can be published; 0 where none can."""
    room, keys = account.gaussian_room, account.keys_delta - account.spent.keys
    if not room or (event and (keys <= 0 or not whole.keys_delta or whole.keys_delta == whole.delta)):
        return Fraction(0)
    rate = float(whole.delta / whole.epsilon)
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


def for_questions(account: Filter) -> Fraction:
    """The largest ε, nearly and rounded down, that one more question may cost."""
    low = floor(account.room, _DIGITS)
    high = max(low, 2 * Fraction(math.sqrt(account.residue or 0)))
    for _ in range(20 if high > low else 0):
        middle = floor((low + high) / 2, _DIGITS)
        low, high = (middle, high) if account.admits(Pure(middle)) else (low, middle)
    return low if low > 0 and account.admits(Pure(low)) else Fraction(0)


def in_words(account: Filter, whole: Filter) -> str:
    """Both, for people."""
    questions, tables = for_questions(account), for_publishing(account, whole)
    if not questions and not tables:
        return "nothing is left"
    one = f"ε {show(floor(questions, _SHORT))} in questions" if questions else "no question"
    return f"left: either {one} or ε {show(tables)} in published tables" if tables else f"left: {one}"


def ends(before: Filter, after: Filter) -> str:
    """What a charge of the whole budget would end, for people: where tables could then be published at less than half
    the price. Empty where nothing ends."""
    if 4 * after.gaussian_room >= before.gaussian_room:
        return ""
    now, then = for_publishing(before, before), for_publishing(after, after)
    if not now:
        return ""
    return (
        f"tables can be published with at most ε {show(then)}, not {show(now)}" if then else "no table can be published"
    )
