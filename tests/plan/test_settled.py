"""What is measured once bounds were found costs no more than was reserved before."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.accounting import Batch
from discreet.catalog import Declaration, declare
from discreet.plan.measurement import Price
from discreet.plan.split import measurement
from discreet.sql import lower

UNIT = "(GREATEST(LEAST(x, 1.0), -1.0) - 0.0)"
WIDE = "(GREATEST(LEAST(x, 64.0), 0.0) - 32.0)"
QUESTIONS = [
    # written as the placeholder's own columns are: one part before the bounds are known, and two afterwards
    f"VAR_POP(x, epsilon => 4), AVG({UNIT}, epsilon => 2), AVG(ABS({UNIT}) * ABS({UNIT}), epsilon => 1)",
    f"VAR_POP(x), AVG({UNIT}), AVG(ABS({UNIT}) * ABS({UNIT}))",
    # two parts before, and one afterwards
    f"AVG({WIDE}), AVG(ABS({WIDE}) * ABS({WIDE})), VAR_POP(x), AVG(SQRT(ABS(z))), AVG(ABS(z)), AVG(z * ABS(z))",
    "SUM(x), AVG(x), COUNT(*), MEDIAN(x), CORR(x, z), COUNT(DISTINCT z)",
]


@pytest.fixture(scope="module")
def known() -> Declaration:
    columns = {"x": {"type": "number"}, "z": {"type": "number", "min": -9, "max": 9}, "g": {"type": "text"}}
    table = {"source": "nowhere.csv", "one_row_per_person": True, "columns": columns}
    return declare({"budget": {"epsilon": 1000, "delta": Fraction(1, 100)}, "tables": {"t": table}})


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("keys", ["", "g"])
@pytest.mark.parametrize("bounds", [(0, 64), (-1, 1), (-(2**60), 2**60), (0, Fraction(1, 2**64))])
def test_what_follows_costs_at_most_what_was_reserved(
    known: Declaration, question: str, keys: str, bounds: tuple[Fraction, Fraction]
) -> None:
    text = f"SELECT {keys}{', ' if keys else ''}{question} FROM t" + (f" GROUP BY {keys}" if keys else "")
    price = Price(Fraction(10), Fraction(1, 1000) if keys else Fraction(0))
    first = measurement(lower(text, known).plan, price)
    second = first.settled(((Fraction(bounds[0]), Fraction(bounds[1])),) * len(first.ranges))
    finding, reserved = Batch(first.loss.parts[:-1]), first.loss.parts[-1]
    assert finding.pure == 2
    assert not second.ranges
    epsilon = sum((part.epsilon for part in second.loss.parts), Fraction(0))  # type: ignore[union-attr]
    assert epsilon <= reserved.epsilon == 8  # type: ignore[union-attr]
    assert second.loss.keys_delta <= reserved.keys_delta == price.delta
