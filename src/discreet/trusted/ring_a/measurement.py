"""Measurements: a plan with a mechanism for each of its parts; the loss follows from both.

No loss and no sensitivity is handed in: `CertifiedMeasurement.loss` is computed from what will be executed, as a
privacy map belongs to its function (Gaboardi, Hay & Vadhan 2020), and a measurement for which none can be proved has
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, singledispatch
from typing import Protocol

from discreet.trusted.ring_a.additive import Gaussian, Laplace, hold_width
from discreet.trusted.ring_a.expressions import typed
from discreet.trusted.ring_a.loss import Batch, Single
from discreet.trusted.ring_a.nodes import Aggregate, Filter, Key, Part, PartKind, Root, Scan, project_of, scan_of
from discreet.trusted.ring_a.sensitivity import Sensitivity, sensitivity
from discreet.trusted.ring_a.table import Table, Value, as_table
from discreet.trusted.ring_a.threshold import Threshold


class Shaped(Protocol):
    """Noise of another shape than one number at a time: ring B's."""

    @property
    def scale(self) -> Fraction: ...
    def release(self, exact: Sequence[int], /) -> list[int]: ...
    def describe(self) -> str: ...


Mechanism = Laplace | Gaussian | Threshold | Shaped


def fixed(*values: object) -> None:
    """Raises ValueError unless these are tuples: what is priced is what is measured, and nobody adds to it between."""
    if not all(type(value) is tuple for value in values):
        raise ValueError("a plan and its mechanisms are tuples")


@dataclass(frozen=True)
class ExactPlan:
    """What the engine computes, and what is measured of it."""

    table: str
    root: Aggregate
    keys: tuple[Key, ...]
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        fixed(self.keys, self.parts)

    @property
    def roots(self) -> tuple[Root, ...]:
        """What the engine computes for the question, each a statement of its own."""
        return (self.root,) if self.parts else ()

    @property
    def private(self) -> bool:
        """Whether some key is private, so that groups have to be found."""
        return any(key.values is None for key in self.keys)


@dataclass(frozen=True)
class Measured:
    """One part, what a person can do to it, and the mechanism that hides it."""

    part: Part
    sensitivity: Sensitivity
    mechanism: Mechanism


@dataclass(frozen=True)
class NoisyGroups:
    """What leaves the gate: the groups' keys in a fixed order, and for each part its noisy vectors."""

    keys: tuple[tuple[Value | None, ...], ...]
    parts: tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True)
class CertifiedMeasurement:
    """A plan and the mechanism of each of its parts."""

    plan: ExactPlan
    mechanisms: tuple[Mechanism, ...]

    def __post_init__(self) -> None:
        fixed(self.mechanisms)

    @cached_property
    def parts(self) -> tuple[Measured, ...]:
        """The plan's parts, each with the sensitivity that the fold over the nodes proves."""
        root = self.plan.root
        pairs = zip(self.plan.parts, self.mechanisms, strict=True)
        return tuple(Measured(part, sensitivity(root, part), mechanism) for part, mechanism in pairs)

    @cached_property
    def loss(self) -> Batch:
        """What the ledger stores and charges: the losses of all parts, which are released together, add up (pure ε:
        Dwork & Roth 2014, Theorem 3.16; Gaussian: the parts' vectors divided by their sigmas are one Gaussian vector of
        squared sensitivity Σ Δ²/σ²).

        Raises ValueError where no loss can be proved: what a person adds is not bounded, a mechanism is made for less,
        or groups with private keys would be shown without a threshold.
        """
        self.check()
        return Batch(tuple(part_loss(one.mechanism, one.part, one.sensitivity) for one in self.parts))

    def check(self) -> None:
        """Raises ValueError where private keys would be released without a threshold."""
        plan = self.plan
        if plan.keys != project_of(plan.root).keys:
            raise ValueError("the plan's keys are not those of its groups")
        finders = sum(part.kind is PartKind.KEYS for part in plan.parts)
        if plan.parts and finders != plan.private:
            raise ValueError("private keys are shown through one threshold")


def reads(plan: ExactPlan, table: Table) -> bool:
    """Whether all statements of a plan read this table, and count persons as it is declared."""
    declared = Scan(table.name, table.person, table.one_row_per_person, table.relation)
    if table.relation is None and table.path is not None:
        return False  # whose rows these are is told along the path
    if table.relation is not None and table != as_table(table.relation):
        return False
    return plan.table == table.name and all(scan_of(root) == declared and _typed(root, table) for root in plan.roots)


def _typed(root: Root, table: Table) -> bool:
    """Whether keys and terms have the columns' types: groups that are distinct stay distinct."""
    types = {column.name: column.type for column in table.columns}
    project = project_of(root)
    terms = [one.expression for one in project.quantities]
    terms += [project.child.predicate] if isinstance(project.child, Filter) else []
    return all(types.get(key.name) is key.type for key in project.keys) and all(typed(one, types) for one in terms)


@singledispatch
def part_loss(mechanism: object, part: Part, bound: Sensitivity) -> Single:
    """The loss of one part. Raises ValueError where its mechanism is made for less than a person can do. Ring B
    registers its mechanisms; what is not registered has no loss."""
    raise ValueError(f"the loss of {type(mechanism).__name__} on a {part.kind} with {bound} is not known")


@part_loss.register
def _(mechanism: Laplace, part: Part, bound: Sensitivity) -> Single:
    if part.kind in (PartKind.KEYS, PartKind.JOINT):
        raise ValueError("the noise is for a part bounded in another norm, or for a part that a threshold must guard")
    hold_width(mechanism.scale)
    return mechanism.loss(bound.l1)


@part_loss.register
def _(mechanism: Gaussian, part: Part, bound: Sensitivity) -> Single:
    if part.kind is PartKind.KEYS:
        raise ValueError("a threshold is for the part that finds the keys")
    hold_width(mechanism.sigma)
    return mechanism.loss(bound.l2_squared)


@part_loss.register
def _(mechanism: Threshold, part: Part, bound: Sensitivity) -> Single:
    if part.kind is not PartKind.KEYS:
        raise ValueError("a threshold is for the part that finds the keys")
    if len(part.vectors) != 1 or bound.each > 1 or bound.l1 > mechanism.cells:
        raise ValueError("a threshold counts each person once in a group, and in as many groups as it knows of")
    return mechanism.loss()
