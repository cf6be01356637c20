"""Which channel serves an answer best, by exact variance."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from discreet.local.channels import LARGEST, Hashed, Odds, Projective, Response, composed, fits, points, spread

MOST_VALUES = 1 << 22


@lru_cache(maxsize=256)
def best(inputs: int, odds: Odds, again: Odds | None = None) -> Response | Projective | None:
    """The channel with the least variance at true frequency 0; on a tie, k-ary randomised response.

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


@lru_cache(maxsize=256)
def branching(bins: int, odds: Odds, again: Odds | None = None) -> int:
    """Into how many parts each node of a tree over the bins is split: least exact variance of a range, or 0 if none.

    It is the mean over all ranges from the lowest bin on; the tree is taken for complete, and the estimates are those
    of `ranges.Tree`.
    """
    found: list[tuple[Fraction, int]] = []
    for parts in (2, 3, 4, 5, 6, 8, 16, bins):
        sizes = levels(bins, parts)
        channels = [best(size, odds, again) for size in sizes]
        if parts <= bins and all(channels):
            spreads = [spread(*composed(one, redrawn(one, again))) for one in channels if one is not None]
            found.append((_mean_variance(sizes, parts, spreads), parts))
    return min(found, default=(Fraction(0), 0))[1]


def _mean_variance(sizes: list[int], parts: int, spreads: list[Fraction]) -> Fraction:
    """The mean variance of a range that ends at a uniform bin, times the number of respondents.

    With M the matrix of the normal equations on the bins of a node, r the range and 1 all bins, 1ᵀM⁻¹1, 1ᵀM⁻¹r and
    rᵀM⁻¹r of a node follow from those of its parts (Sherman & Morrison): j of them lie in the range with all their
    bins, in the next one it ends, with j uniform and independent on each level. Carried are 1ᵀM⁻¹1 and the means of
    1ᵀM⁻¹r, of its square, and of rᵀM⁻¹r. The whole is known to be 1, as if its precision were infinite.
    """
    precisions = [1 / (len(sizes) * one) for one in spreads]
    ones = 1 / precisions[-1]
    across, square, inside = Fraction(0), Fraction(0), Fraction(0)
    for place in range(len(sizes) - 1, -1, -1):
        nodes = sizes[0] if place == 0 else parts
        first, second = Fraction(nodes - 1, 2), Fraction((nodes - 1) * (2 * nodes - 1), 6)
        square += 2 * across * ones * first + ones**2 * second
        across, inside, total = across + ones * first, inside + ones * first, nodes * ones
        factor = 1 / total if place == 0 else precisions[place - 1] / (1 + precisions[place - 1] * total)
        inside -= factor * square
        left = 1 - factor * total
        ones, across, square, inside = (
            _rounded(one) for one in (total * left, across * left, square * left**2, inside)
        )
    return inside


def _rounded(value: Fraction) -> Fraction:
    """To 2^−96, so that deep trees do not grow long fractions."""
    return Fraction(round(value * (1 << 96)), 1 << 96)


def levels(bins: int, parts: int) -> list[int]:
    """How many nodes each level has, from below the root down to the bins."""
    sizes = [bins]
    while sizes[0] > parts:
        sizes.insert(0, -(-sizes[0] // parts))
    return sizes
