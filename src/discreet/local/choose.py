"""Which channel serves an answer best, by exact variance."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from discreet.local.channels import LARGEST, Hashed, Odds, Projective, Response, composed, fits, points, spread

MOST_VALUES = 1 << 22


@lru_cache(maxsize=256)
def best(inputs: int, odds: Odds, again: Odds | None = None) -> Response | Projective | None:
    """The channel with the least variance for a value that nobody holds; on a tie, k-ary randomised response.

    With `again`, reports are randomised once more, with these odds, and the variance is that of both together. None
    where no client could draw any.
    """
    return min(_candidates(inputs, odds), key=lambda one: spread(*composed(one, redrawn(one, again))), default=None)


def redrawn(channel: Response | Projective, again: Odds | None) -> Response | None:
    """The second channel, on the reports of the first."""
    return None if again is None else Response(channel.outputs, again)


def _candidates(inputs: int, odds: Odds) -> Iterator[Response | Projective]:
    plain = Response(inputs, odds)
    if fits(plain.whole):
        yield plain
    for prime in primes(LARGEST):
        dimension = 3
        while points(prime, dimension) < inputs:
            dimension += 1
        if prime**dimension > LARGEST:
            if prime > 2 and dimension == 3:
                return  # larger primes only have more points
            continue
        geometry = Projective(inputs, odds, prime, dimension)
        if fits(geometry.whole):
            yield geometry


@lru_cache(maxsize=1)
def primes(largest: int) -> list[int]:
    """Those with at least three coordinates below `largest`."""
    most = round(largest ** (1 / 3)) + 1
    return [p for p in range(2, most + 1) if all(p % d for d in range(2, p)) and p**3 <= largest]


@lru_cache(maxsize=256)
def hashed(odds: Odds) -> Hashed:
    """Local hashing with the number of buckets of least variance; near e^ε + 1."""
    centre = odds[0] // odds[1] + 1
    return min(
        (Hashed(buckets, odds) for buckets in range(max(2, centre - 1), centre + 3)),
        key=lambda one: spread(one.truth, one.other),
    )


def branching(bins: int, odds: Odds, again: Odds | None = None) -> int:
    """Into how many parts each node of a tree over the bins is split: least worst variance of a range.

    With h levels, of which a respondent reports one, a range is a union of at most 2(b − 1) nodes of each level, b of
    the highest; each estimate has h times the variance of its level's channel.
    """
    best_of: tuple[Fraction, int] | None = None
    for parts in (2, 3, 4, 5, 6, 8, 10, 16, 32, 64, bins):
        if parts > bins or (parts == bins and bins > 64 and best_of is not None):
            continue
        sizes = levels(bins, parts)
        total = Fraction(0)
        for depth, size in enumerate(sizes):
            channel = best(size, odds, again)
            if channel is None:
                break
            nodes = size // 2 if depth == 0 else min(2 * (parts - 1), size)
            total += max(1, nodes) * len(sizes) * spread(*composed(channel, redrawn(channel, again)))
        else:
            if best_of is None or (total, parts) < best_of:
                best_of = (total, parts)
    return best_of[1] if best_of else 0


def levels(bins: int, parts: int) -> list[int]:
    """How many nodes each level has, from below the root down to the bins."""
    sizes = [bins]
    while sizes[0] > parts:
        sizes.insert(0, -(-sizes[0] // parts))
    return sizes
