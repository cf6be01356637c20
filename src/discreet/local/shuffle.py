"""Privacy amplification by shuffling: the central loss of a report when only the shuffled reports of a window are
seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from discreet.local.channels import Odds, Projective, Response
from discreet.local.collection import Collection
from discreet.trusted.ring_a.exact import ceiling, log_bounds

BITS = 192
BLOCKS = 64
_TAIL = Fraction(1, 1 << 60)


@dataclass(frozen=True)
class Clones:
    """How one respondent hides among others whose reports go through the same channel.

    For two answers with distributions R₀, R₁ and odds e = A/B, let Q₀ = (e·R₀ − R₁)/(e − 1) and Q₁ = (e·R₁ − R₀)/(e −
    1), which are distributions, with R₀ = (e·Q₀ + Q₁)/(e + 1) and R₁ = (Q₀ + e·Q₁)/(e + 1), Q₀ + Q₁ = R₀ + R₁. Any
    other answer's R is at least e^−1 times either of R₀ and R₁, so at least (Q₀ + Q₁)/(2e): with chance `rate` = 1/e
    the other's report is a clone, drawn from Q₀ or Q₁ with equal chances (Feldman, McMillan & Talwar 2021, Theorem
    3.1).
    Given how many clones there are, the shuffled reports follow from how many reports were drawn from Q₀ and how many
    from Q₁: (a + d, c − a + 1 − d), a ~ Bin(c, 1/2), with d = 1 with chance e/(e + 1) for one answer and 1/(e + 1) for
    the other.

    Where two answers' chances are equal for all but s reports each, of chances A/Z and B/Z (one channel of `Response`,
    s = 1, or `Projective`, s = c − i), that argument holds on those reports alone: the respondent's own report is among
    them with chance `seen` = s(A + B)/Z, and any other's is a clone with chance 2sB/Z.
    """

    odds: Odds
    rate: Fraction
    seen: Fraction

    @classmethod
    def of(cls, collection: Collection) -> Clones:
        """For one report of the collection. With `each` a respondent's reports are independent only given what is
        remembered: the argument holds for every memory, with the odds of the fresh randomisation."""
        odds = collection.each_odds or collection.odds
        channel = collection.parts[0][1].channel
        if len(collection.parts) == 1 and collection.each is None and isinstance(channel, Response | Projective):
            likely, unlikely = odds
            sides = channel.supported - channel.shared if isinstance(channel, Projective) else 1
            seen = Fraction(sides * (likely + unlikely), channel.whole)
            return cls(odds, Fraction(2 * sides * unlikely, channel.whole), seen)
        return cls(odds, Fraction(odds[1], odds[0]), Fraction(1))

    def delta(self, others: int, factor: Fraction) -> Fraction:
        """An upper bound of the δ at e^ε = factor, among so many others.

        With c clones, δ_c = Σ_k max(P(k) − factor·P'(k), 0). One more clone is a coin that anybody may toss, so δ_c
        falls with c, and a block of counts is bounded by its smallest. Of the binomial distribution of c, each block's
        chance is bounded from above; so is δ_c, from bounds of both kinds of the tails of Bin(c, 1/2).
        """
        total = Fraction(0)
        for count, chance in _blocks(others, self.rate):
            total += chance * self._delta_of(count, factor)
        return min(Fraction(1), total * self.seen)

    def _delta_of(self, count: int, factor: Fraction) -> Fraction:
        """P(k) − factor·P'(k) is positive for k above a bound that is linear in c, and for those its sum is
        T(k − 1)(p − factor·p') + T(k)(p' − factor·p), T(j) = P(Bin(c, 1/2) ≥ j), p = e/(e + 1) = 1 − p'."""
        likely, unlikely = self.odds
        p = Fraction(likely, likely + unlikely)
        rest = 1 - p
        least = (count + 1) * (factor * p - rest) / ((p - rest) * (1 + factor))
        start = -(-least.numerator // least.denominator)
        above, below = p - factor * rest, rest - factor * p
        if above <= 0:
            return Fraction(0)
        return max(Fraction(0), _tail(count, start - 1)[1] * above + _tail(count, start)[0] * below)


@dataclass(frozen=True)
class Central:
    """The central (ε, δ) of one report, for observers who see only the shuffled reports.

    It holds if `shuffled_by` mixes `reports` reports of honest respondents of one window, and takes off them all that
    tells them apart: tokens, addresses, times. Public attributes stay, so `reports` counts those that have the same
    ones, where they are fewest. Made-up reports hide nobody.
    """

    epsilon: float
    delta: float
    reports: int
    shuffled_by: str


def central(collection: Collection, reports: int, delta: Fraction, shuffled_by: str) -> Central:
    """The least ε, rounded up, that the clones prove. It is never above that of a report given all the others."""
    clones = Clones.of(collection)
    local = Fraction(*clones.odds)
    low, high = Fraction(1), local
    for _ in range(24):
        middle = (low + high) / 2
        middle = Fraction(int(middle * (1 << 40)), 1 << 40)
        low, high = (low, middle) if clones.delta(max(0, reports - 1), middle) <= delta else (middle, high)
    epsilon = (collection.each or collection.epsilon) if high == local else ceiling(log_bounds(high)[1], 12)
    shown = float(epsilon)
    while Fraction(shown) < epsilon:
        shown = math.nextafter(shown, math.inf)
    return Central(shown, float(delta), reports, shuffled_by)


@lru_cache(maxsize=16)
def _blocks(others: int, rate: Fraction) -> tuple[tuple[int, Fraction], ...]:
    """Blocks of Bin(others, rate): the smallest count of each, and an upper bound of its chance."""
    lows, highs = weights(others, rate)
    first = min(highs)
    places = sorted(highs)
    size = max(1, -(-len(places) // BLOCKS))
    whole = sum(lows.values())
    found = [(0, _TAIL)]
    for begin in range(0, len(places), size):
        block = places[begin : begin + size]
        found.append((first + begin, Fraction(sum(highs[place] for place in block), whole)))
    return tuple(found)


def weights(count: int, rate: Fraction) -> tuple[dict[int, int], dict[int, int]]:
    """Lower and upper integer bounds of P(Bin(count, rate) = k)·C, with one unknown C, for all k where it matters.

    From the mode on, w(k + 1) = w(k)·(count − k)/(k + 1)·rate/(1 − rate), rounded down and up in integers; until what
    is left out, bounded by a geometric series, is below 2^−61 on either side.
    """
    mode = min(count, int((count + 1) * rate))
    lows, highs = {mode: 1 << BITS}, {mode: 1 << BITS}
    for step in (1, -1):
        place, least, most = mode, 1 << BITS, 1 << BITS
        while 0 <= place + step <= count:
            if step == 1:
                up, down = (count - place) * rate.numerator, (place + 1) * (rate.denominator - rate.numerator)
            else:
                up, down = place * (rate.denominator - rate.numerator), (count - place + 1) * rate.numerator
            # the ratios only fall from here on, so what follows adds up to less than most·up/(down − up)
            if up < down and most * up << 62 < (down - up) << BITS:
                break
            least, most = least * up // down, -(-most * up // down)
            place += step
            lows[place], highs[place] = least, most
    return lows, highs


@lru_cache(maxsize=256)
def _tails(count: int) -> tuple[int, tuple[int, ...], tuple[int, ...], int, int]:
    """Cumulated bounds of Bin(count, 1/2) from above: the highest place, Σ lows, Σ highs, and both totals."""
    lows, highs = weights(count, Fraction(1, 2))
    top, bottom = max(highs), min(highs)
    low_sums, high_sums, low, high = [], [], 0, 0
    for place in range(top, bottom - 1, -1):
        low, high = low + lows[place], high + highs[place]
        low_sums.append(low)
        high_sums.append(high)
    return top, tuple(low_sums), tuple(high_sums), low, high


def _tail(count: int, start: int) -> tuple[Fraction, Fraction]:
    """Bounds of P(Bin(count, 1/2) ≥ start)."""
    top, lows, highs, low, high = _tails(count)
    if start <= 0:
        return Fraction(1), Fraction(1)
    if start > top:
        return Fraction(0), Fraction(0) if start > count else _TAIL
    place = top - start
    if place >= len(lows):
        return 1 - _TAIL, Fraction(1)
    # the true total lies between low and high·(1 + 2^−60)
    return Fraction(lows[place], high) * (1 - _TAIL), min(Fraction(1), Fraction(highs[place], low) + _TAIL)
