"""A question's groups: exact totals and their noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.trusted.ring_a.engine import Engine, Row
from discreet.trusted.ring_a.loss import Loss
from discreet.trusted.ring_a.measurement import CertifiedMeasurement, ExactPlan, NoisyGroups, reads
from discreet.trusted.ring_a.nodes import Vector
from discreet.trusted.ring_a.public_groups import Group, public_groups
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_a.threshold import Threshold


@dataclass(frozen=True)
class GroupsMeasurement:
    """A certified measurement over one table. Released: the groups' keys, and noisy vectors.

    Unit: a person, with all rows. Neighbours: one person added or removed. The loss is computed where it is asked for,
    from what will be executed (`CertifiedMeasurement.loss`): each part's sensitivity follows from the plan's nodes
    (`sensitivity`), its loss from that and its mechanism (`part_loss`). Here the plan is held against the table.
    """

    measurement: CertifiedMeasurement
    table: Table

    @property
    def loss(self) -> Loss:
        """The measurement's. Raises ValueError where it has none, or reads another table than this one."""
        if not reads(self.measurement.plan, self.table):
            raise ValueError("the plan does not read this table as it is declared")
        return self.measurement.loss

    def draw(self, engine: Engine) -> NoisyGroups:
        """The groups' keys and their noisy vectors; exact totals stay in the frames of `noisy_groups`."""
        return noisy_groups(engine, self.measurement, self.table)


def noisy_groups(engine: Engine, measurement: CertifiedMeasurement, table: Table) -> NoisyGroups:
    """Exact integers and their noise, in one frame. Groups are in an order that depends on their keys alone."""
    plan = measurement.plan
    keys, totals = exact_groups(engine, plan, table)
    shown = [True] * len(keys)
    parts: list[tuple[tuple[int, ...], ...]] = []
    for measured in measurement.parts:
        exact = [combined(vector, totals) for vector in measured.part.vectors]
        if isinstance(measured.mechanism, Threshold):
            counts = measured.mechanism.counts(exact[0])
            shown = [count is not None for count in counts]
            parts.append((tuple(count or 0 for count in counts),))  # of those that are not shown, nothing is kept below
            continue
        noise = measured.mechanism.release([value for vector in exact for value in vector])
        parts.append(tuple(tuple(noise[i * len(keys) : (i + 1) * len(keys)]) for i in range(len(exact))))
    kept = [index for index, show in enumerate(shown) if show]
    return NoisyGroups(
        tuple(keys[index] for index in kept),
        tuple(tuple(tuple(vector[index] for index in kept) for vector in part) for part in parts),
    )


def exact_groups(engine: Engine, plan: ExactPlan, table: Table) -> tuple[list[Group], list[tuple[int, ...]]]:
    """The groups and their exact totals. What sees them is the caller's frame: no other room calls this."""
    if not plan.parts:
        public = public_groups(plan.keys, plan.root)
        _apart([folded(keys) for keys in public])
        return public, []
    return dense(engine.run(plan.root, table), plan)


def dense(rows: list[Row], plan: ExactPlan) -> tuple[list[Group], list[tuple[int, ...]]]:
    """The groups and their exact totals: all public keys, empty ones too; with a private key, those that hold rows."""
    found: Mapping[tuple[object, ...], tuple[int, ...]] = {folded(keys): totals for keys, totals in rows}
    if len(found) < len(rows):
        raise ValueError("two groups have the same key")
    if plan.private:
        held = sorted((keys for keys, _ in rows), key=in_order)
        return held, [found[folded(keys)] for keys in held]
    public = public_groups(plan.keys, plan.root)
    zero, same = (0,) * len(plan.root.totals), [folded(keys) for keys in public]
    _apart(same)
    return public, [found.get(keys, zero) for keys in same]


def _apart(groups: Sequence[tuple[object, ...]]) -> None:
    """Raises ValueError where a group stands there twice: its numbers would be drawn twice."""
    if len(set(groups)) < len(groups):
        raise ValueError("a public group is listed twice")


def combined(vector: Vector, totals: list[tuple[int, ...]]) -> list[int]:
    """The vector's exact number in each group, in lattice steps: the totals that it names, weighted and added up."""
    return [sum(weight * group[index] for index, weight in vector.weights) for group in totals]


def folded(keys: Group) -> tuple[object, ...]:
    """Keys as the engine compares them: numbers are doubles there."""
    return tuple(float(key) if isinstance(key, Fraction) else key for key in keys)


def in_order(keys: Group) -> tuple[tuple[bool, object], ...]:
    """By what groups are put in an order that depends on their keys alone: NULL comes last."""
    return tuple((key is None, key) for key in folded(keys))
