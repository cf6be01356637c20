"""Which measurements have a loss at all, and which tables a plan reads as they were declared."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from discreet.mechanisms import gaussian_threshold, laplace_threshold
from discreet.trusted.ring_a.additive import Gaussian, Laplace
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression
from discreet.trusted.ring_a.loss import Approximate, Batch, DiscreteLaplace
from discreet.trusted.ring_a.measurement import CertifiedMeasurement, ExactPlan, part_loss, reads
from discreet.trusted.ring_a.nodes import (
    Aggregate,
    Filter,
    Key,
    Part,
    PartKind,
    Project,
    Quantity,
    Scan,
    Total,
    TotalKind,
    Vector,
)
from discreet.trusted.ring_a.sensitivity import Sensitivity
from discreet.trusted.ring_a.table import Column, Relation, Source, SourceKind, Table, Type, as_table
from discreet.trusted.ring_a.threshold import Threshold

PUBLIC, PRIVATE = Key("g", Type.TEXT, ("x", "y")), Key("h", Type.TEXT, None)
ONE = (Vector(((0, 1),)),)
COUNT, KEYS = Part(PartKind("count"), ONE), Part(PartKind("keys"), ONE)
NOISE, THRESHOLD = Laplace(Fraction(2)), laplace_threshold(Fraction(1), Fraction(1, 1000), 1)
EACH_ROW = Scan("t", None, True)


def root(*keys: Key, scan: Scan | Filter = EACH_ROW, read: Expression | None = None) -> Aggregate:
    quantities = () if read is None else (Quantity(read, None),)
    return Aggregate(Project(scan, keys, quantities), (Total(TotalKind("rows")),))


def plan(*keys: Key, parts: tuple[Part, ...] = (COUNT,), **more: Any) -> ExactPlan:
    return ExactPlan("t", root(*keys, **more), keys, parts)


@pytest.mark.parametrize(
    ("made", "place"),
    [(plan(PUBLIC), "keys"), (plan(PUBLIC), "parts"), (CertifiedMeasurement(plan(), (NOISE,)), "mechanisms")],
)
def test_what_is_priced_is_held_in_tuples(made: ExactPlan | CertifiedMeasurement, place: str) -> None:
    """A list could be added to between the price and the measurement; one beside tuples is refused too."""
    with pytest.raises(ValueError, match="are tuples"):
        replace(made, **{place: list(getattr(made, place))})


def test_a_plan_without_parts_computes_nothing_and_costs_nothing() -> None:
    assert plan().roots == (plan().root,)
    nothing = plan(PRIVATE, parts=())
    assert nothing.roots == ()
    assert CertifiedMeasurement(nothing, ()).loss == Batch(())


@pytest.mark.parametrize("mechanisms", [(), (NOISE,), (NOISE, NOISE, NOISE)])
def test_each_part_has_one_mechanism(mechanisms: tuple[Laplace, ...]) -> None:
    measured = CertifiedMeasurement(plan(parts=(COUNT, COUNT)), mechanisms)
    with pytest.raises(ValueError, match="zip"):
        _ = measured.loss


@pytest.mark.parametrize("kind", [Laplace, Gaussian], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("width", [2.0, 2 / 0.7, float("inf"), float("nan"), 0, 2, Fraction(0), Fraction(-1)])
def test_the_width_of_a_noise_is_a_fraction_above_0(kind: Any, width: Any) -> None:
    measured = CertifiedMeasurement(plan(parts=(COUNT,)), (kind(width),))
    with pytest.raises(ValueError, match="is a Fraction above 0"):
        _ = measured.loss


@pytest.mark.parametrize(("said", "grouped"), [((), (PUBLIC,)), ((PUBLIC,), ()), ((PUBLIC,), (PRIVATE,))])
def test_the_keys_that_are_shown_are_those_of_the_groups(said: tuple[Key, ...], grouped: tuple[Key, ...]) -> None:
    with pytest.raises(ValueError, match="not those of its groups"):
        _ = CertifiedMeasurement(ExactPlan("t", root(*grouped), said, (COUNT,)), (NOISE,)).loss


@pytest.mark.parametrize(
    ("keys", "parts"),
    [((PRIVATE,), (COUNT,)), ((PRIVATE, PUBLIC), (COUNT,)), ((PRIVATE,), (KEYS, KEYS)), ((PUBLIC,), (KEYS,))],
)
def test_private_keys_are_shown_through_one_threshold(keys: tuple[Key, ...], parts: tuple[Part, ...]) -> None:
    """Without one, groups would be shown because somebody is in them; public keys need none."""
    mechanisms = tuple(THRESHOLD if part is KEYS else NOISE for part in parts)
    with pytest.raises(ValueError, match="through one threshold"):
        _ = CertifiedMeasurement(plan(*keys, parts=parts), mechanisms).loss


def test_losses_of_the_parts_add_up() -> None:
    measured = CertifiedMeasurement(plan(PRIVATE, parts=(COUNT, KEYS)), (NOISE, THRESHOLD))
    assert measured.loss == Batch((DiscreteLaplace(Fraction(1, 2), 1), Approximate(Fraction(1), Fraction(1, 1000))))


ONCE = Sensitivity(1, 1, 1, 1, 1)


@pytest.mark.parametrize("size", [Fraction(0), Fraction(-1, 2), Fraction(-1), Fraction(-2)])
def test_noise_of_no_size_has_no_loss(size: Fraction) -> None:
    """A scale below 0 would give a loss below 0, which other parts could spend."""
    for mechanism in (Laplace(size), Gaussian(size)):
        with pytest.raises(ValueError, match="above 0"):
            part_loss(mechanism, COUNT, ONCE)


def test_noise_below_one_step_has_a_loss() -> None:
    half = Fraction(1, 2)
    assert part_loss(Laplace(half), COUNT, ONCE).pure == 2
    assert part_loss(Gaussian(half), COUNT, ONCE).mu_squared == 4


@pytest.mark.parametrize(("kind", "laplace", "gaussian"), [("count", True, True), ("joint", False, True)])
def test_which_noise_is_for_which_part(kind: str, laplace: bool, gaussian: bool) -> None:
    """A joint part is bounded in a norm that is at most ℓ1: noise for ℓ1 would be too small."""
    for mechanism, allowed in ((Laplace(Fraction(1)), laplace), (Gaussian(Fraction(1)), gaussian)):
        if allowed:
            assert part_loss(mechanism, Part(PartKind(kind), ONE), ONCE).mu_squared is not None
        else:
            with pytest.raises(ValueError, match="in another norm"):
                part_loss(mechanism, Part(PartKind(kind), ONE), ONCE)


@pytest.mark.parametrize("mechanism", [Laplace(Fraction(1)), Gaussian(Fraction(1))])
def test_noise_alone_does_not_hide_which_groups_there_are(mechanism: Laplace | Gaussian) -> None:
    with pytest.raises(ValueError, match=r"finds the keys|threshold must guard"):
        part_loss(mechanism, KEYS, ONCE)


THRESHOLDS = [
    laplace_threshold(Fraction(1), Fraction(1, 1000), 3),
    gaussian_threshold(Fraction(1), Fraction(1, 1000), 3),
]


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("bound", [Sensitivity(3, 1, 3, 3, 1), Sensitivity(2, 1, 2, 2, 1), Sensitivity(1, 0, 0, 0, 0)])
def test_a_threshold_holds_for_as_many_groups_as_it_knows_of(threshold: Threshold, bound: Sensitivity) -> None:
    assert part_loss(threshold, KEYS, bound) == threshold.loss()


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize(
    ("vectors", "bound"),
    [
        (1, Sensitivity(4, 1, 4, 4, 1)),  # one group too many
        (1, Sensitivity(1, 2, 2, 4, 2)),  # two of one person in a group
        (2, Sensitivity(3, 1, 3, 3, 1)),
        (0, Sensitivity(3, 1, 3, 3, 1)),
    ],
)
def test_a_threshold_made_for_less_has_no_loss(threshold: Threshold, vectors: int, bound: Sensitivity) -> None:
    with pytest.raises(ValueError, match="counts each person once"):
        part_loss(threshold, Part(PartKind("keys"), ONE * vectors), bound)


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("kind", ["count", "joint", "persons", "sum"])
def test_a_threshold_is_for_keys(threshold: Threshold, kind: str) -> None:
    with pytest.raises(ValueError, match="the part that finds the keys"):
        part_loss(threshold, Part(PartKind(kind), ONE), ONCE)


COLUMNS = (Column("g", Type.TEXT, values=("x", "y")), Column("h", Type.TEXT), Column("v", Type.NUMBER))
TABLE = Table("t", Source(SourceKind.CSV), COLUMNS, one_row_per_person=True)
V, WRONG = ColumnOf("v", Type.NUMBER), ColumnOf("v", Type.TEXT)


class _Made(Relation):
    """A relation that is read as TABLE."""


MADE = _Made()
JOINED = replace(TABLE, relation=MADE)


@as_table.register
def _(_relation: _Made) -> Table:
    return JOINED


def test_a_plan_reads_its_table() -> None:
    assert reads(plan(), TABLE)
    assert reads(plan(PUBLIC, PRIVATE, read=V), TABLE)
    assert reads(plan(PUBLIC, parts=()), TABLE)
    assert reads(plan(scan=Filter(EACH_ROW, ColumnOf("v", Type.NUMBER))), TABLE)
    assert reads(plan(scan=replace(EACH_ROW, relation=MADE)), JOINED)


@pytest.mark.parametrize(
    "scan",
    [
        replace(EACH_ROW, table="u"),
        replace(EACH_ROW, person="g"),  # another column than whose rows these are
        replace(EACH_ROW, one_row_per_person=False),
        replace(EACH_ROW, relation=MADE),
        Filter(replace(EACH_ROW, person="g"), V),
    ],
)
def test_a_plan_that_counts_other_persons_does_not_read_the_table(scan: Scan | Filter) -> None:
    assert not reads(plan(scan=scan), TABLE)


def test_a_plan_of_another_table_does_not_read_this_one() -> None:
    assert not reads(replace(plan(), table="u"), TABLE)
    assert not reads(replace(plan(parts=()), table="u"), TABLE)


def test_rows_that_belong_to_persons_elsewhere_are_read_along_their_path() -> None:
    """Read as they are, a foreign key would count as the person."""
    path = ("u", "p")
    assert not reads(plan(), replace(TABLE, path=path))
    assert not reads(plan(parts=()), replace(TABLE, path=path))


@pytest.mark.parametrize("change", [{"rows_per_person": 5}, {"columns": COLUMNS[:1]}, {"path": ("u", "p")}])
def test_a_relation_is_read_as_what_it_gives(change: dict[str, Any]) -> None:
    """A table that names the relation and bounds less, or has other columns, is none."""
    assert not reads(plan(scan=replace(EACH_ROW, relation=MADE)), replace(JOINED, **change))


@pytest.mark.parametrize(
    "wrong",
    [
        plan(Key("g", Type.INTEGER, (1, 2))),
        plan(PUBLIC, Key("v", Type.TEXT, None)),  # one right, one wrong
        plan(Key("unknown", Type.TEXT, None)),
        plan(read=WRONG),
        plan(read=Call("=", (V, WRONG), Type.BOOLEAN)),
        plan(read=ColumnOf("unknown", Type.NUMBER)),
        plan(scan=Filter(EACH_ROW, WRONG), read=V),
    ],
)
def test_columns_are_read_as_what_they_are(wrong: ExactPlan) -> None:
    """Text that is read as numbers, two keys as one: groups that are told apart would no longer be."""
    assert not reads(wrong, TABLE)
