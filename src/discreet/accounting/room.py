"""What an account has left, and how much of it is used: numbers for people. Whether a release is admitted the filter
says alone (`trusted.ring_a.filter`); a test holds that what is said here to be left is admitted."""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from discreet.trusted.ring_a import gaussian_budget
from discreet.trusted.ring_a.filter import PrivacyFilter, amounts
from discreet.trusted.ring_a.gaussian_budget import Pricing, parts_of
from discreet.trusted.ring_a.loss import Loss
from discreet.trusted.ring_b.gdp_filter import certified

MANY = 10**9
_NEAR = Fraction(1, 1 << 100)
_FEW, _MOST_KNOWN = 100, 10_000  # parts of a loss that is looked up, and states of it


def pure_room(account: PrivacyFilter) -> Fraction:
    """The largest ε that is left in a pure part: whatever costs at most that is admitted."""
    return max((pure for pure, _ in account.pairs_left), default=Fraction(0)) if account.keys_alive else Fraction(0)


def gaussian_room(account: PrivacyFilter) -> Fraction:
    """The largest μ² that a Gaussian release may still cost; 0 where there is none."""
    rooms = [account.residue or Fraction(0), *(mu_squared for _, mu_squared in account.pairs_left)]
    return max(rooms) if account.keys_alive else Fraction(0)


def times_left(account: PrivacyFilter, like: Loss) -> int:
    """How many more releases of this loss would be admitted, one after another."""
    counts, spent = [times_at(account.price, like, account.residue)], account.spent
    cost, square = amounts(like)
    if square is not None and spent.gaussian is not None:
        for pure, mu_squared in account.pairs:
            counts.append(min(_times(spent.finite, pure, cost), _times(spent.gaussian, mu_squared, square)))
    return min(max(counts), _times(spent.keys, account.keys_delta, like.keys_delta))


def part_used(account: PrivacyFilter) -> Fraction:
    """The part of the budget that is used, 0 to 1: that of the filter which has the most room. Of a mixed pair the pure
    part stands for its part of ε, the Gaussian one for the rest."""
    parts, spent = [Fraction(1)], account.spent
    if account.mu_squared and account.residue is not None:
        parts.append(1 - account.residue / account.mu_squared)
    for pure, mu_squared in account.pairs:
        if spent.gaussian is not None and spent.finite <= pure and spent.gaussian <= mu_squared:
            taken = spent.gaussian / mu_squared if mu_squared else Fraction(0)
            parts.append(spent.finite / account.epsilon + (1 - pure / account.epsilon) * taken)
    return min(parts)


def times_at(pricing: Pricing, loss: Loss, left: Fraction | None, most: int = MANY) -> int:
    """How many releases of this loss, one after another, `gaussian_budget.charge` would admit; at most `most`.

    States are rounded down to multiples of `_NEAR` where the cost changes, so that the next answer at the same price
    comes to those that were counted from before, and looks them up; by so little one more may fit than is said.
    """
    known = _counted(pricing, loss) if len(parts_of(loss)) <= _FEW else {}
    count, passed = 0, dict[Fraction, int]()
    while left is not None and count < most:
        found = [pricing(part, left) for part in parts_of(loss)]
        steps = [step for step in found if step is not None]
        if len(steps) < len(found):
            left = None
            break
        total = sum((cost for cost, _ in steps), Fraction(0))
        if total == 0:
            return most
        enough = max(until for _, until in steps) + total  # as long as this is left, the next release costs the same
        if left >= enough:
            rounds = min(most - count, (left - enough) // total + 1)
            left -= rounds * total
            count += rounds
        else:
            left -= left % _NEAR
            if left in known:
                return min(most, count + known[left])
            passed[left] = count
            left = gaussian_budget.charge(pricing, loss, left)
            count += left is not None
    if left is None and len(known) < _MOST_KNOWN:
        known.update({state: count - before for state, before in passed.items()})
    return count


@lru_cache(maxsize=64)
def _counted(_pricing: Pricing, _loss: Loss) -> dict[Fraction, int]:
    """Of states from which it was counted, how many releases are admitted."""
    return {}


def times(loss: Loss, left: Fraction | None, most: int = MANY) -> int:
    """`times_at` certified prices."""
    return times_at(certified, loss, left, most)


def _times(spent: Fraction, whole: Fraction, cost: Fraction) -> int:
    """How often a cost fits, each time added and rounded up by `ceiling`; never more often than it does.

    Sums up to the whole keep its last place. Where the costs do too they are exact, else less than that place larger.
    """
    if spent > whole:
        return 0
    if cost == 0:
        return MANY
    place = _last_place(whole)
    exact = spent % place == cost % place == 0
    return min(MANY, (whole - spent) // (cost if exact else cost + place))


def _last_place(value: Fraction, digits: int = 40) -> Fraction:
    """The power of ten that the last of a number's `digits` significant digits counts; 1 for 0."""
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_FLOOR, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
    written = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return Fraction(10) ** (written.adjusted() - digits + 1) if value else Fraction(1)
