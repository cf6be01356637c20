"""Numbers as they are shown."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from discreet.release.values import up

KIND = "exact"


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [(0.0, 0, "0"), (0.2, 0, "1"), (12.0, 0, "12"), (12.4, 0, "13"), (0.0004, 3, "0.001"), (0.3, 1, "0.3")],
)
def test_a_bound_is_never_shown_as_less_than_it_is(value: float, digits: int, shown: str) -> None:
    assert f"{up(value, digits):.{digits}f}" == shown
    assert Fraction(shown) >= Fraction(value) - Fraction(1, 10**8)


def test_a_bound_of_which_nothing_is_known_stays_so() -> None:
    assert up(math.inf) == math.inf
