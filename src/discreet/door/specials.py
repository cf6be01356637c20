"""Quantiles, the commonest values and the number of different values: counts of their own, and what is said of them.

Each is measured in every group that is shown, at the full price of the special. A person's rows lie in several groups,
but all groups together hold at most the rows R, or the pairs of group and value, that the plan leaves of a person; the
loss in one group is in proportion to the rows that the person has there, so the losses of all groups add up to that of
R rows in one. Which groups are shown is decided before, and paid for by the keys' own part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

from discreet.engines.duckdb import DuckDB
from discreet.mechanisms import Laplace, Quantiles
from discreet.plan.measurement import MeasuredSpecial
from discreet.trusted.ring_a.table import Table, Value

Group = tuple[Value | None, ...]


def released(
    engine: DuckDB, one: MeasuredSpecial, groups: Sequence[Group], table: Table
) -> tuple[tuple[int, ...], ...]:
    """For each group: the places of the quantiles, or of the winners among the candidates, or a noisy number."""
    rows = engine.run(one.special.root, table)
    if isinstance(one.mechanism, Laplace):
        counts = {folded(keys): totals[0] for keys, totals in rows}
        return tuple((noisy,) for noisy in one.mechanism.release([counts.get(folded(keys), 0) for keys in groups]))
    if isinstance(one.mechanism, Quantiles):
        assert one.special.lattice is not None
        low = one.special.lattice.low
        held: dict[tuple[object, ...], list[tuple[int, int]]] = defaultdict(list)
        for keys, (value, count) in rows:
            held[folded(keys)].append((value - low, count))
        return tuple(tuple(one.mechanism.release(sorted(held[folded(keys)]))) for keys in groups)
    found = {folded(keys): totals[0] for keys, totals in rows}
    places = []
    for keys in groups:
        candidates = [found.get((*folded(keys), *folded((value,))), 0) for value in one.special.values]
        places.append(tuple(one.mechanism.release(candidates)))
    return tuple(places)


def folded(keys: Group) -> tuple[object, ...]:
    """Keys as the engine compares them: numbers are doubles there."""
    return tuple(float(key) if isinstance(key, Fraction) else key for key in keys)


def in_order(keys: Group) -> tuple[tuple[bool, object], ...]:
    """By what groups are put in an order that depends on their keys alone: NULL comes last."""
    return tuple((key is None, key) for key in folded(keys))
