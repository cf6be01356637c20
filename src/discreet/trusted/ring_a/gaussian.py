"""Gaussian noise rounded to the nearest integer: from a table for small sigma, a staircase for large."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from discreet.trusted.ring_a.exact import Number, normal_cdf_bounds
from discreet.trusted.ring_a.inversion import STANDARD, BitSizes, Digits, InversionTable, Whole
from discreet.trusted.ring_a.rounded_gaussian_wide import REACH, Cells
from discreet.trusted.ring_a.sampler import positive, sample

LARGEST_TABLE = 32


def rounded_gaussian(sigma: Number, size: int) -> Whole:
    """Independent values of N(0, sigma²) rounded: P(X = k) = Φ((k + 1/2)/sigma) − Φ((k − 1/2)/sigma).

    `sigma` is taken as written, 0 < sigma ≤ 10^60. The result is an int64 array, or an object array of Python
    integers where a value might not fit (sigma from about 10^17). Every decision compares random bits with
    integers: floating point takes no part. The distribution of each value is within 2^−128 of the stated one
    in total variation (see `build_table` and `Cells`), so a vector of up to 2^28 values is within 2^−100. An
    integer plus this noise is the integer plus N(0, sigma²), rounded: so a query with integer answers and
    sensitivity D gets exactly the privacy of the Gaussian mechanism with D/sigma.

    Up to sigma = 32 nothing is drawn and rejected, so how much is drawn does not depend on the noise, apart
    from the look-ups that `InversionTable` describes. Above, the running time depends on the number of rejected
    proposals, which is independent of the values accepted, and slightly on the values themselves (see
    `Cells`).
    """
    return sample(sampler(positive(sigma, "sigma")), size)


@lru_cache(maxsize=32)
def sampler(sigma: Fraction) -> Digits | Cells:
    """What draws noise of this sigma: one table up to `LARGEST_TABLE`, a staircase above. The last 32 are kept."""
    return build_table(sigma) if sigma <= LARGEST_TABLE else Cells.build(sigma)


def build_table(sigma: Fraction, sizes: BitSizes = STANDARD, reach: Fraction = REACH) -> Digits:
    """One table of all k with |k| ≤ N, N ≥ 16.5·sigma.

    The thresholds are 2^full·Φ((k + 1/2)/sigma) for −N ≤ k < N, each within 2 of the truth: one for the width
    of the certified bounds and one for rounding. Moving a threshold by that much moves a mass of at most
    2·2^−full; there are 2N ≤ 1056 of them; and what lies outside is added to ±N, a mass below 2^−196. So the
    total variation error is below 2112·2^−192 + 2^−196 < 2^−180. The thresholds are symmetric, so a value and
    its negative are equally likely. They are in order, since neighbours below 2^full − 1 are more than half a
    unit apart and the bounds a sixteenth of a unit wide.
    """
    if 40 * sigma < 1:  # P(X ≠ 0) = 2·(1 − Φ(1/(2·sigma))) < e^−200 < 2^−288
        return Digits((), 0, 0)
    full, top = sizes.full, int(-(-reach * sigma // 1))
    upper = []
    for k in range(top):
        low, _ = normal_cdf_bounds((k + Fraction(1, 2)) / sigma, full + 4)
        upper.append((low.numerator << full) // low.denominator)
    cuts = [(1 << full) - cut for cut in reversed(upper)] + upper
    return Digits((InversionTable.build(cuts, sizes),), 0, -top)
