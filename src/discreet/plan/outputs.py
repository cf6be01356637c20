"""The columns of an answer, as they are computed from the noisy numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from discreet.dialect.counted import Scale
from discreet.trusted.ring_a.expressions import Expression
from discreet.trusted.ring_a.nodes import Key
from discreet.trusted.ring_a.table import Type, Value


class AggregateKind(StrEnum):
    """What an aggregate of a question is."""

    COUNT = "count"
    NON_NULL = "present"
    """COUNT(x)"""
    PERSONS = "persons"
    """COUNT(DISTINCT person)"""
    SUM = "sum"
    MEAN = "mean"
    PERSON_MEAN = "person_mean"
    """The mean of each person's mean."""
    DISTINCT = "distinct"
    """COUNT(DISTINCT x)"""
    QUANTILES = "quantiles"
    WINNERS = "winners"
    """The most frequent values."""
    VARIANCE = "variance"
    DEVIATION = "deviation"
    COVARIANCE = "covariance"
    CORRELATION = "correlation"


class OutputKind(StrEnum):
    """What a column of an answer is."""

    KEY = "key"
    COUNT = "count"
    SUM = "sum"
    MEAN = "mean"
    SPECIAL = "special"
    """Measured by itself: quantiles, most frequent values, the number of distinct values."""
    VARIANCE = "variance"
    DEVIATION = "deviation"
    COVARIANCE = "covariance"
    CORRELATION = "correlation"
    FORMULA = "formula"
    """Computed from other columns."""


@dataclass(frozen=True)
class Output:
    """A column of the answer: a key, or an estimate from one part; or made `of` other columns, which may be hidden.

    A special has the index of what is measured by itself. A variance, deviation, covariance or correlation is made of
    means, with `sample` where n − 1 divides; a formula of the others' values.
    `weights` give a count or a sum as a combination of the part's noisy vectors, and of a mean in a joint part they say
    which column it is of; `index` is the key's position or the part's.
    """

    name: str
    kind: OutputKind
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
    scale: Scale | None = None
    """What a key stands for that is counted in steps."""

    def shown(self, key: Value | None) -> Value | None:
        """A key as the answer shows it."""
        return key if self.scale is None else self.scale.of(key)

    def type_of(self, key: Key) -> Type:
        """The type of a key as the answer shows it."""
        return key.type if self.scale is None else self.scale.type
