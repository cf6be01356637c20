"""How a price is divided: by what minimises the sum of the logarithms of the columns' errors."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from discreet.plan.measurement import Measurement, Price
from discreet.plan.split import measurement
from engine_tools import declaration, planned

PEOPLE = {"person": "p", "rows_per_person": 5, "groups_per_person": 2}
QUESTIONS = [
    "SELECT g, COUNT(DISTINCT p) AS n, COUNT(*) AS c, AVG(v) AS m, SUM(v) AS s FROM t GROUP BY g",
    "SELECT h, COUNT(DISTINCT p) AS n, COUNT(*) AS c, AVG(v) AS m FROM t GROUP BY h",
    "SELECT g, SUM(v) AS s, COUNT(DISTINCT p) AS n FROM t GROUP BY g",
]


def shares(priced: Measurement) -> list[Fraction]:
    pure = [part.pure for part in priced.loss.parts]
    assert all(one is not None for one in pure)
    return [one for one in pure if one is not None]


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_other_split_has_a_smaller_sum_of_logarithms(question: str) -> None:
    """Each column's error, and the threshold, are proportional to one over the part's share: moving a little of the
    price from any part to any other makes the sum larger."""
    plan = planned(question, declaration(PEOPLE))
    priced = measurement(plan, Price(Fraction(1), Fraction(1, 10**6) if plan.private else Fraction(0)))
    assert len(priced.parts) > 1
    assert sum(shares(priced)) == 1
    columns = [output.index for output in plan.outputs if output.kind != "key"]
    columns += [index for index, part in enumerate(plan.parts) if part.kind == "keys"]

    def objective(split: list[float]) -> float:
        return -sum(math.log(split[index]) for index in columns)

    found = [float(share) for share in shares(priced)]
    for one, two in itertools.permutations(range(len(found)), 2):
        moved = list(found)
        moved[one] += 0.01
        moved[two] -= 0.01
        assert objective(moved) > objective(found)
