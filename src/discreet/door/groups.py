"""A question's groups: exact totals and their noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting import Loss
from discreet.door.specials import folded, in_order, released
from discreet.engines.duckdb import DuckDB, Row
from discreet.mechanisms import GaussianThreshold, LaplaceThreshold, LogarithmicRange
from discreet.plan.measurement import Measurement, Noisy, Plan, reads
from discreet.plan.nodes import Range, Vector, project_of
from discreet.plan.public_groups import public_groups
from discreet.trusted.ring_a.table import Table, Value


@dataclass(frozen=True)
class Groups:
    """A priced plan over one table. Released: the groups' keys, and noisy vectors."""

    measurement: Measurement
    table: Table

    @property
    def loss(self) -> Loss:
        """The measurement's. Raises ValueError where it has none, or reads another table than this one."""
        if not reads(self.measurement.plan, self.table):
            raise ValueError("the plan does not read this table as it is declared")
        return self.measurement.loss

    def draw(self, engine: DuckDB) -> Noisy:
        return _draw(engine, self.measurement, self.table)


def _draw(engine: DuckDB, priced: Measurement, table: Table) -> Noisy:
    """Exact integers and their noise, in one frame. Groups are in an order that depends on their keys alone."""
    found = tuple(
        _range(engine, one, mechanism, table) for one, mechanism in zip(priced.plan.ranges, priced.ranges, strict=True)
    )
    measurement = priced.settled(found)
    if measurement is not priced and not reads(measurement.plan, table):
        raise ValueError("the plan does not read this table as it is declared")
    plan = measurement.plan
    keys, totals = (
        _dense(engine.run(plan.root, table), plan) if plan.parts else (public_groups(plan.keys, plan.root), [])
    )
    shown = [True] * len(keys)
    parts: list[tuple[tuple[int, ...], ...]] = []
    for measured in measurement.parts:
        exact = [_combined(vector, totals) for vector in measured.part.vectors]
        if isinstance(measured.mechanism, LaplaceThreshold | GaussianThreshold):
            counts = measured.mechanism.counts(exact[0])
            shown = [count is not None for count in counts]
            parts.append((tuple(count or 0 for count in counts),))  # of those that are not shown, nothing is kept below
            continue
        noise = measured.mechanism.release([value for vector in exact for value in vector])
        parts.append(tuple(tuple(noise[i * len(keys) : (i + 1) * len(keys)]) for i in range(len(exact))))
    kept = [index for index, show in enumerate(shown) if show]
    groups = tuple(keys[index] for index in kept)
    return Noisy(
        groups,
        tuple(tuple(tuple(vector[index] for index in kept) for vector in part) for part in parts),
        tuple(released(engine, one, groups, table) for one in measurement.specials),
        found,
    )


def _range(engine: DuckDB, one: Range, mechanism: LogarithmicRange, table: Table) -> tuple[Fraction, Fraction]:
    """Bounds from noisy counts of powers of two."""
    bounds = mechanism.release({totals[0]: totals[1] for _, totals in engine.run(one.root, table)})
    return bounds.low.value, bounds.high.value


def _dense(rows: list[Row], plan: Plan) -> tuple[list[tuple[Value | None, ...]], list[tuple[int, ...]]]:
    """The groups and their exact totals: all public keys, empty ones too; with a private key, those that hold rows."""
    found: Mapping[tuple[object, ...], tuple[int, ...]] = {folded(keys): totals for keys, totals in rows}
    if plan.private:
        held = sorted((keys for keys, _ in rows), key=in_order)
        return held, [found[folded(keys)] for keys in held]
    public = public_groups(plan.keys, plan.root)
    zero, same = (0,) * len(plan.root.totals), [folded(keys) for keys in public]
    if len(set(same)) < len(same):
        raise ValueError("a public group stands there twice")
    return public, [found.get(keys, zero) for keys in same]


def one_vector(plan: Plan, table: Table) -> None:
    """Raises ValueError unless the plan gives one vector over public groups of this table as it is declared."""
    if not reads(plan, table) or plan.keys != project_of(plan.root).keys or plan.private:
        raise ValueError("the plan does not read this table as it is declared")
    if plan.specials or plan.ranges or len(plan.parts) != 1 or len(plan.parts[0].vectors) != 1:
        raise ValueError("the plan is no vector over public groups")


def monotone_count(plan: Plan, table: Table) -> bool:
    """Whether the plan counts rows or persons in public groups, so that one person more lowers none of the counts.

    Each is a total times a weight that is not negative. A count of a person's rows that is clamped to bounds is not
    negative where the upper one is not. Raises ValueError where the plan is no vector over public groups."""
    one_vector(plan, table)
    totals = [(plan.root.totals[index], weight) for index, weight in plan.parts[0].vectors[0].weights]
    return all(
        total.kind in ("rows", "present", "persons") and weight >= 0 and (total.bounds is None or total.bounds[1] >= 0)
        for total, weight in totals
    )


def _combined(vector: Vector, totals: list[tuple[int, ...]]) -> list[int]:
    return [sum(weight * group[index] for index, weight in vector.weights) for group in totals]
