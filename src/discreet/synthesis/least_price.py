"""The smallest price at which a table is published: a batch that costs less than the least price is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.errors import QuestionError, refused
from discreet.trusted.ring_a.exact import ceiling, show
from discreet.trusted.ring_a.least import Least

if TYPE_CHECKING:
    from discreet.synthesis.publication import Publication
    from discreet.synthesis.several import SeveralPublication

    Priced = Publication | SeveralPublication

_DIGITS, _TRIES, _CLOSE = 3, 8, 0.005


def too_cheap(call: Priced, least: Least, most: Fraction, at: Callable[[Fraction], Priced]) -> QuestionError | None:
    """The refusal of a call whose batch costs less than the least price, with the smallest ε that is taken instead, to
    half a percent and rounded up; None where it costs enough, or no ε up to `most` does.

    `at` is the same call at another ε. A batch's μ² is about the square of its ε times a constant, by which the ε is
    looked for; what is named was asked itself. Prices alone decide.
    """
    if least.admits(call.declared.loss):
        return None
    epsilon, found = Fraction(call.cost.epsilon), call
    for turn in range(_TRIES):
        reached = found.declared.loss.mu_squared
        if not reached:
            return None
        factor = math.sqrt(least.mu_squared / reached)
        enough = least.admits(found.declared.loss)
        if enough and (factor > 1 - _CLOSE or turn == _TRIES - 1):
            break
        step = factor if enough else max(factor, 1 + _CLOSE)
        epsilon = min(most, ceiling(epsilon * Fraction(step), _DIGITS))
        found = at(epsilon)
    else:
        return None
    message = "at this price the table costs less than the least price of a measurement"
    return refused("price", message, "epsilon", f"write epsilon = {show(epsilon)}, or more")
