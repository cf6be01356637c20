"""The columns of an answer, as they are computed from the noisy numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.trusted.ring_a.expressions import Expression
from discreet.trusted.ring_a.table import Type


@dataclass(frozen=True)
class Output:
    """A column of the answer: a key, or an estimate from one part; or made `of` other columns, which may be hidden.

    `kind` is key, count, sum or mean; special, with the index of what is measured by itself; variance, deviation,
    covariance or correlation, made of means, with `sample` where n − 1 divides; or a `formula` of the others' values.
    `weights` give a count or a sum as a combination of the part's noisy vectors, and of a mean in a joint part they say
    which column it is of; `index` is the key's position or the part's.
    """

    name: str
    kind: str
    index: int
    weights: tuple[Fraction, ...] = ()
    text: str = ""
    of: tuple[int, ...] = ()
    hidden: bool = False
    sample: bool = False
    report: str = ""
    formula: Expression | None = None
    moment: Type | None = None
    """What is made of a special's days or seconds since 1970: a date or a timestamp."""
