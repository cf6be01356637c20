"""Chooses the α at which the parts of an error bound balance, for a number of rows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from discreet.errors import QuestionError
from discreet.textbook.linear import FractionalGenerator
from discreet.textbook.small import SmallDatabase
from discreet.trusted.ring_c.multiplicative_weights import OnlineMultiplicativeWeights

Tunable = TypeVar("Tunable", FractionalGenerator, OnlineMultiplicativeWeights, SmallDatabase)

_STEPS = 60


def with_best_alpha(construction: Tunable, rows: int) -> Tunable:
    """The same construction with the α, of 60 between 0.001 and 0.95, whose bound is least for so many rows.

    `rows` is your guess: nothing is read. The bound holds whatever the guess was.
    """
    found = [construction]
    for step in range(_STEPS):
        alpha = Fraction(round(1000 * 950 ** (step / (_STEPS - 1))), 10**6)
        try:
            found.append(replace(construction, alpha=alpha))
        except QuestionError:
            continue  # too many databases, rows or updates at this α
    return min(found, key=lambda one: one.bound(rows))
