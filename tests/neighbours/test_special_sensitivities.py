"""Counts of their own, found bounds and means of persons: what one person moves in the engine's exact numbers is within
what the mechanism hides, and reaches it. The person has more rows, groups and values than count, far beyond bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

pandas = pytest.importorskip("pandas")

import discreet  # noqa: E402
from discreet.mechanisms import Laplace, Quantiles, Winners  # noqa: E402
from discreet.plan.measurement import Measurement, Price  # noqa: E402
from discreet.plan.split import measurement  # noqa: E402
from discreet.sql import lower  # noqa: E402
from discreet.trusted.ring_a.nodes import Root  # noqa: E402
from discreet.trusted.ring_a.sensitivity import sensitivity  # noqa: E402

ROWS, GROUPS = 6, 2
OTHERS = [(who, "abc"[who % 3], who % 5, float(who)) for who in range(1, 9)]
PERSON = [(99, "abcd"[turn % 4], turn % 5, 1000.0 + 2.0 ** (turn % 7)) for turn in range(40)]


def curator_of(rows: list[tuple[Any, ...]]) -> discreet.Curator:
    columns = {
        "who": {"type": "integer"},
        "g": {"type": "text", "values": ["a", "b", "c", "d"]},
        "k": {"type": "integer", "min": 0, "max": 4},
        "z": {"type": "number"},
    }
    frame = pandas.DataFrame(rows, columns=list(columns))
    table = discreet.Table(frame, person="who", rows_per_person=ROWS, groups_per_person=GROUPS, columns=columns)
    return discreet.Curator({"t": table}, epsilon=1000, delta=Fraction(1, 100))


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[discreet.Curator, discreet.Curator]]:
    with curator_of(OTHERS) as without, curator_of([*OTHERS, *PERSON]) as with_person:
        yield without, with_person


def measured(one: discreet.Curator, question: str) -> Measurement:
    return measurement(lower(question, one.declaration).plan, Price(Fraction(1)))


def moved(pair: tuple[discreet.Curator, discreet.Curator], root: Root, *, values: bool) -> list[int]:
    """By how much each exact count differs; with `values`, a total that comes with each count tells counts apart."""
    found: list[Counter[tuple[Any, ...]]] = []
    for one in pair:
        counts: Counter[tuple[Any, ...]] = Counter()
        for keys, totals in one._engine.run(root, one.declaration.tables["t"]):
            counts[(*keys, *(totals[:1] if values else ()))] += totals[-1]
        found.append(counts)
    before, after = found
    changes = [after[key] - before[key] for key in before.keys() | after.keys()]
    assert all(change >= 0 for change in changes)
    return changes


@pytest.mark.parametrize("keys", ["", "g"])
def test_quantiles_and_winners_move_by_the_rows_that_count(
    pair: tuple[discreet.Curator, discreet.Curator], keys: str
) -> None:
    head, tail = (f"{keys}, ", f" GROUP BY {keys}") if keys else ("", "")
    priced = measured(pair[0], f"SELECT {head}MEDIAN(k) AS m, APPROX_TOP_COUNT(k, 2) AS w FROM t{tail}")
    for one in priced.specials:
        changes = moved(pair, one.special.root, values=isinstance(one.mechanism, Quantiles))
        assert sum(changes) == ROWS
        if isinstance(one.mechanism, Quantiles):
            assert one.mechanism.rows == ROWS
        else:
            assert isinstance(one.mechanism, Winners)
            assert max(changes) <= one.mechanism.each
            assert sum(changes) <= one.mechanism.total


@pytest.mark.parametrize(("keys", "bounds", "most"), [("", "", 2), ("g", "", 2), ("g", "(0, 3)", 6), ("", "(0, 3)", 3)])
def test_different_values_move_by_as_many_as_count(
    pair: tuple[discreet.Curator, discreet.Curator], keys: str, bounds: str, most: int
) -> None:
    head, tail = (f"{keys}, ", f" GROUP BY {keys}") if keys else ("", "")
    named = f", contribution_bounds_per_group => {bounds}" if bounds else ""
    priced = measured(pair[0], f"SELECT {head}COUNT(DISTINCT z{named}) AS n FROM t{tail}")
    (one,) = priced.specials
    assert isinstance(one.mechanism, Laplace)
    assert sum(moved(pair, one.special.root, values=False)) == most
    assert one.mechanism.scale == most  # at a price of 1
    assert priced.loss.pure == 1


def test_counts_of_powers_of_two_move_by_the_rows_that_count(pair: tuple[discreet.Curator, discreet.Curator]) -> None:
    priced = measured(pair[0], "SELECT SUM(z) AS s FROM t")
    (needed,), (mechanism,) = priced.plan.ranges, priced.ranges
    assert sum(moved(pair, needed.root, values=True)) == ROWS == mechanism.sensitivity


def test_a_mean_of_persons_moves_by_its_bounds_in_each_group(pair: tuple[discreet.Curator, discreet.Curator]) -> None:
    """The person's mean is a hundred times the upper bound: it counts for the bound, in as many groups as count."""
    question = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) g, AVG(z, contribution_bounds_per_group => (0, 10)) AS a"
        " FROM t GROUP BY g"
    )
    priced = measured(pair[0], question)
    (part,) = priced.plan.parts
    bound = sensitivity(priced.plan.root, part)
    vectors: list[Counter[tuple[Any, ...]]] = []
    for one in pair:
        found: Counter[tuple[Any, ...]] = Counter()
        for keys, totals in one._engine.run(priced.plan.root, one.declaration.tables["t"]):
            for place, vector in enumerate(part.vectors):
                found[(*keys, place)] = sum(weight * totals[index] for index, weight in vector.weights)
        vectors.append(found)
    before, after = vectors
    changes = {key: abs(after[key] - before[key]) for key in before.keys() | after.keys()}
    assert sum(changes.values()) == bound.l1 == GROUPS * bound.row
    assert sum(1 for change in changes.values() if change) == GROUPS  # one of the two sums in each group
