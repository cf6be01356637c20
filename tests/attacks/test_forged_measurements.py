"""The door reserves the loss of what it will run: whoever hands in less is refused, or charged in full.

Each test forges one kind of measurement: a field that makes the noise smaller, or a plan that gives one person more
weight, or another table. It is refused before anything is reserved, or costs what it really tells.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow
import pytest

from discreet import BudgetError, Curator, EngineError, Table
from discreet.accounting import BoundedRange, Declared, DiscreteLaplace, Pure
from discreet.catalog import declare
from discreet.learning.model import FitOptions, fit
from discreet.ledger import TOTAL
from discreet.mechanisms import (
    AboveThreshold,
    Gaussian,
    Laplace,
    NoisyMax,
    PermuteAndFlip,
    Threshold,
    laplace_threshold,
)
from discreet.plan.measurement import Measurement, Price
from discreet.plan.split import measurement
from discreet.selection.weights import weighted
from discreet.sql import lower
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Literal
from discreet.trusted.ring_a.gate import Costly, Grant
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.nodes import (
    Aggregate,
    Clip,
    LimitGroups,
    LimitRows,
    Part,
    PartKind,
    PersonGroup,
    Project,
    Quantity,
    Scan,
    Total,
    TotalKind,
    Vector,
    project_of,
)
from discreet.trusted.ring_a.sensitivity import sensitivity
from discreet.trusted.ring_a.table import Type, as_table
from discreet.trusted.ring_b.choice_measurement import ChoiceMeasurement
from discreet.trusted.ring_b.questions import Groups
from discreet.trusted.ring_b.relations import (
    Attributed,
    Base,
    Computed,
    Joined,
    JoinKind,
    Matched,
    PerPerson,
    Renamed,
    Stacked,
    Where,
)
from discreet.trusted.ring_b.watching import Watching, WatchMeasurement
from discreet.trusted.ring_c.blocks import Blocks
from discreet.trusted.ring_c.coding import Coding
from discreet.trusted.ring_c.coding import ListedCells as Cells
from discreet.trusted.ring_c.linear_queries import Linear, LinearQueriesMeasurement
from discreet.trusted.ring_c.marginals import Declaring, Marginals
from discreet.trusted.ring_c.share_measurement import Shares
from discreet.trusted.ring_c.shares import LaplaceShares, LargestShares
from discreet.trusted.ring_c.training import Training
from discreet.trusted.ring_c.weighing import Weigh

ROWS = {
    "p": ["a", "a", "b", "c", "d", "e"],
    "g": ["x", "y", "x", "y", "x", "z"],
    "h": ["one", "one", "two", "two", "three", "four"],
    "v": [1, 5, 3, 4, 2, 9],
    "b": [True, False, True, True, False, True],
}
COLUMNS: dict[str, Any] = {
    "p": {"type": "text"},
    "g": {"type": "text", "values": ["x", "y", "z"]},
    "h": {"type": "text"},
    "v": {"type": "integer", "min": 0, "max": 9},
    "f": {"type": "number"},
    "b": {"type": "boolean"},
}


@pytest.fixture(scope="module")
def curator() -> Iterator[Curator]:
    """Four rows of a person count, in two groups."""
    with fresh() as one:
        one._holdings.load()
        yield one


def fresh() -> Curator:
    frame = pyarrow.table(ROWS | {"f": [0.5] * 6})
    table = Table(frame, person="p", rows_per_person=4, groups_per_person=2, columns=COLUMNS)
    return Curator({"t": table}, epsilon=1000, delta="0.001", keys_delta="0.0005")


def planned(curator: Curator, question: str) -> Any:
    return lower(question, curator.declaration).plan


def declared(curator: Curator) -> Any:
    return curator.declaration.tables["t"]


def opened(curator: Curator, forged: Costly) -> Any:
    return curator._door.open(forged, analyst=TOTAL, question="q", key=secrets.token_hex(), request=None)


def refused(curator: Curator, forged: Costly, match: str | None = None) -> None:
    """Before anything is reserved."""
    before = len(list(curator.ledger.entries()))
    with pytest.raises(ValueError, match=match):
        opened(curator, forged)
    assert len(list(curator.ledger.entries())) == before


def nothing_leaves(forged: Groups) -> None:
    """What is found out only when it runs is a failure, whose price stays charged."""
    with fresh() as one:
        one._holdings.load()
        with opened(one, forged) as grant, pytest.raises(EngineError):
            grant.measure()


def test_no_measurement_takes_a_loss() -> None:
    for kind in (
        Groups,
        Measurement,
        ChoiceMeasurement,
        Shares,
        Blocks,
        Training,
        Declaring,
        Weigh,
        WatchMeasurement,
        LinearQueriesMeasurement,
        Linear,
    ):
        assert not {"loss", "sensitivity"} & {field.name for field in fields(kind)}  # type: ignore[arg-type]


def test_a_training_with_little_noise_costs_what_it_tells(curator: Curator) -> None:
    """With a multiplier of 1e-6 and an ε of 1e6 for the count, which gave the exact number of persons."""
    options = FitOptions(table="t", target="b", features=["v"], epsilon=1, sample_rate=1, steps=2)
    call = fit(curator.declaration, options)
    honest = call.measurement(lambda _: None)
    assert honest.loss.parts[1].pure == honest.count_epsilon
    assert honest.loss.mu_squared is not None
    forged = replace(honest, sigma=Fraction(1, 10**6), count_epsilon=Fraction(10**7))
    assert forged.loss.parts[1].pure == 10**7
    with pytest.raises(BudgetError):
        opened(curator, forged)
    for name, value in (("steps", 200), ("sigma", honest.sigma / 2), ("count_epsilon", honest.count_epsilon * 2)):
        dearer = replace(honest, **{name: value})
        assert dearer.loss.mu_squared is not None
        assert dearer.loss.mu_squared > honest.loss.mu_squared
    sampled = replace(honest, sample_rate=Fraction(1, 10), event_delta=Fraction(1, 10**8))
    assert sampled.loss.mu_squared is not None
    assert replace(sampled, sample_rate=Fraction(1, 2)).loss.mu_squared > sampled.loss.mu_squared


def test_a_choice_for_less_than_a_person_adds(curator: Curator) -> None:
    table, rows = declared(curator), planned(curator, "SELECT g, COUNT(*) FROM t GROUP BY g")
    assert ChoiceMeasurement(rows, table, NoisyMax(Fraction(1), 4)).loss.pure == 1
    refused(curator, ChoiceMeasurement(rows, table, NoisyMax(Fraction(1), 3)), "by more")
    sums = planned(curator, "SELECT g, SUM(v) FROM t GROUP BY g")
    refused(curator, ChoiceMeasurement(sums, table, NoisyMax(Fraction(1), 10**6)), "not a count")
    private = planned(curator, "SELECT h, COUNT(*) FROM t GROUP BY h")
    refused(curator, ChoiceMeasurement(private, table, NoisyMax(Fraction(1), 4)), "table")
    minus = replace(rows.parts[0], vectors=(Vector(((0, -1),)),))
    refused(curator, ChoiceMeasurement(replace(rows, parts=(minus,)), table, NoisyMax(Fraction(1), 4)), "not a count")


def test_shares_for_less_than_a_person_adds(curator: Curator) -> None:
    table, rows = declared(curator), planned(curator, "SELECT g, COUNT(*) FROM t GROUP BY g")
    assert Shares(rows, table, LaplaceShares(Fraction(1), 4, 3, 1)).loss.pure == 1
    refused(curator, Shares(rows, table, LaplaceShares(Fraction(1), 3, 3, 1)), "by more")
    refused(curator, Shares(rows, table, LargestShares(Fraction(1), 3, 3, 1)), "by more")
    sums = planned(curator, "SELECT g, SUM(v) FROM t GROUP BY g")
    refused(curator, Shares(sums, table, LargestShares(Fraction(1), 10**6, 3, 1)), "counts")
    private = planned(curator, "SELECT h, COUNT(*) FROM t GROUP BY h")
    refused(curator, Shares(private, table, LaplaceShares(Fraction(1), 4, 3, 1)), "table")


def test_blocks_cost_what_one_value_changes(curator: Curator) -> None:
    processes: Any = None
    lattice = Lattice(Fraction(1), 0, 100)

    def blocks(mechanism: Laplace | PermuteAndFlip) -> Blocks:
        return Blocks(declared(curator), (), 5, lattice, mechanism, processes, lambda _: None)

    assert blocks(Laplace(Fraction(100))).loss.pure == 1
    assert blocks(Laplace(Fraction(1))).loss.pure == 100
    assert blocks(PermuteAndFlip(Fraction(2))).loss.pure == 2
    refused(curator, blocks(PermuteAndFlip(Fraction(2), Fraction(1, 2))), "by 1")
    refused(curator, blocks(PermuteAndFlip(Fraction(2), monotone=True)), "raise and lower")


def test_a_run_of_counts_asks_none_that_may_fall(curator: Curator) -> None:
    table = declared(curator)
    grant = opened(curator, WatchMeasurement(AboveThreshold(3, Fraction(1), 36, 1, monotone=True)))
    assert isinstance(grant, Grant)
    run = Watching(grant)
    for question in ("SELECT SUM(v) FROM t", "SELECT g, COUNT(*) FROM t GROUP BY g"):
        with pytest.raises(ValueError, match="only one monotone count"):
            run.ask(planned(curator, question), table)
    counted = planned(curator, "SELECT COUNT(*) FROM t")
    with pytest.raises(ValueError, match="table"):
        run.ask(replace(counted, table="u"), table)
    forged = replace(table, one_row_per_person=True)
    plan = replace(counted, root=scans(counted.root, lambda scan: as_declared(scan, forged)))
    with pytest.raises(ValueError, match="declared"):
        run.ask(plan, forged)


def test_weights_for_other_rows_a_person(curator: Curator) -> None:
    table, column = declared(curator), declared(curator).column("g")
    coding = Coding((Cells(column, column.values),))
    honest = weighted(
        curator.declaration, "t", ["g"], epsilon=1, questions=5, alpha=Fraction(1, 5), beta=Fraction(1, 20)
    )
    assert Weigh(honest.construction, table, coding).loss.pure == 1
    refused(curator, Weigh(replace(honest.construction, rows_per_person=3), table, coding), "rows per person")


def test_a_batch_of_marginals_measures_what_it_declared(curator: Curator) -> None:
    table = declared(curator)
    grant = opened(curator, Declaring(table, Declared((BoundedRange(Fraction(1)),), Fraction(1, 10**9))))
    run = Marginals(grant)
    other = planned(curator, "SELECT COUNT(*) FROM t")
    with pytest.raises(ValueError, match="batch"):
        run.find(measurement(other, Price(Fraction(1))))
    with pytest.raises(ValueError, match="another table"):
        run.find(measurement(replace(other, table="u"), Price(Fraction(1))))
    run.close()


def test_linear_queries_stay_what_they_were_priced_as(curator: Curator) -> None:
    column = declared(curator).column("g")
    weights, atoms = np.array([[1, 1, 0]]), np.array([0, 1, 2])
    one = Linear((0,), (3,), Gaussian(Fraction(10)), weights, atoms)
    queries = LinearQueriesMeasurement(declared(curator), Coding((Cells(column, column.values),)), (one,))
    before = queries.loss
    weights *= 1000
    assert one.rows is not None
    assert one.rows.tolist() == [[1, 1, 0]]
    with pytest.raises(ValueError, match="read-only"):
        one.rows[0, 0] = 1000
    assert before == queries.loss


QUESTIONS = {
    "count": "SELECT g, COUNT(*) FROM t GROUP BY g",
    "mean": "SELECT AVG(v) FROM t",
    "clamped": "SELECT g, SUM(f, contribution_bounds_per_group => (0, 3)) FROM t GROUP BY g",
    "joint": "SELECT SUM(v), COUNT(*), AVG(v + 1) FROM t",
    "keys": "SELECT h, COUNT(*) FROM t GROUP BY h",
    "quantile": "SELECT MEDIAN(v) FROM t",
    "distinct": "SELECT COUNT(DISTINCT h) FROM t",
    "winners": "SELECT MODE(g) FROM t",
    "found": "SELECT SUM(f) FROM t",
}
PRICE = Price(Fraction(1), Fraction(1, 10**8))


def priced(curator: Curator, name: str) -> Measurement:
    plan = planned(curator, QUESTIONS[name])
    return measurement(plan, PRICE if plan.private else Price(Fraction(1)))


@pytest.mark.parametrize("name", QUESTIONS)
def test_honest_measurements_cost_their_price(curator: Curator, name: str) -> None:
    loss = Groups(priced(curator, name), declared(curator)).loss
    assert loss.pure is not None
    assert Fraction(999, 1000) <= loss.pure <= 1


@pytest.mark.parametrize("name", QUESTIONS)
def test_less_noise_costs_more(curator: Curator, name: str) -> None:
    """A mechanism for a tenth of the noise is charged ten times the loss, or refused."""
    one = priced(curator, name)
    for place, mechanism in enumerate(one.mechanisms):
        noise = mechanism.noise if isinstance(mechanism, Threshold) else mechanism
        known = "sigma" if isinstance(noise, Gaussian) else "scale"
        tenth = replace(noise, **{known: getattr(noise, known) / 10})
        try:
            less = replace(mechanism, noise=tenth) if isinstance(mechanism, Threshold) else tenth
        except ValueError:
            assert isinstance(noise, Laplace)  # it would show groups of one person
            continue
        forged = replace(one, mechanisms=(*one.mechanisms[:place], less, *one.mechanisms[place + 1 :]))
        if one.rest is None:
            dear = Groups(forged, declared(curator)).loss.pure
            assert dear is None or dear > Fraction(3, 2)
    for place, special in enumerate(one.special_mechanisms):
        less = (
            replace(special, scale=special.scale / 10)
            if isinstance(special, Laplace)
            else replace(special, epsilon=special.epsilon * 10)
        )
        assert replace(one, special_mechanisms=(less,)).loss.pure == 10, place
        if not isinstance(special, Laplace):
            few = {"rows": 1} if hasattr(special, "rows") else {"each": 1, "total": 1}
            refused(curator, Groups(replace(one, special_mechanisms=(replace(special, **few),)), declared(curator)))


@pytest.mark.parametrize("mechanism", [Laplace(Fraction(0)), Laplace(Fraction(-1)), Gaussian(Fraction(0))])
def test_noise_of_no_size_has_no_loss(curator: Curator, mechanism: Any) -> None:
    refused(curator, Groups(replace(priced(curator, "count"), mechanisms=(mechanism,)), declared(curator)), "above 0")


def test_bounds_found_for_fewer_rows(curator: Curator) -> None:
    one = priced(curator, "found")
    few = replace(one.ranges[0], sensitivity=1)
    refused(curator, Groups(replace(one, ranges=(few,)), declared(curator)), "more rows")
    refused(curator, Groups(replace(one, rest=None), declared(curator)), "as a whole")
    refused(curator, Groups(replace(priced(curator, "count"), rest=Pure(1)), declared(curator)), "as a whole")


def test_a_plan_made_anew_costs_at_most_what_was_left_for_it(curator: Curator) -> None:
    """The second measurement is made by the planner inside the grant: one that costs more gives nothing."""
    one = priced(curator, "found")
    for forged in (
        replace(one, replan=lambda _: measurement(planned(curator, "SELECT SUM(v) FROM t"), Price(Fraction(9, 10)))),
        replace(one, replan=lambda _: one),
        replace(one, replan=lambda _: replace(priced(curator, "count"), mechanisms=(Gaussian(Fraction(10**9)),))),
        replace(
            one,
            replan=lambda _: measurement(
                replace(planned(curator, "SELECT SUM(v) FROM t"), table="u"), Price(Fraction(1, 2))
            ),
        ),
    ):
        nothing_leaves(Groups(forged, declared(curator)))
    cheap = replace(one, replan=lambda _: measurement(planned(curator, "SELECT SUM(v) FROM t"), Price(Fraction(4, 5))))
    with opened(curator, Groups(cheap, declared(curator))) as grant:
        assert len(grant.measure().parts) == 1


def test_groups_of_private_keys_are_shown_through_a_threshold(curator: Curator) -> None:
    one, table = priced(curator, "keys"), declared(curator)
    place = next(place for place, part in enumerate(one.plan.parts) if part.kind is PartKind.KEYS)
    others = tuple(part for part in one.plan.parts if part.kind is not PartKind.KEYS)
    noise = tuple(mechanism for mechanism in one.mechanisms if not isinstance(mechanism, Threshold))
    forged = replace(one, plan=replace(one.plan, parts=others), mechanisms=noise)
    refused(curator, Groups(forged, table), "threshold")
    found = one.mechanisms[place]
    assert isinstance(found, Threshold)
    with pytest.raises(ValueError, match="with a probability above"):
        replace(found, threshold=found.threshold // 2)
    with pytest.raises(ValueError, match="with a probability above"):
        replace(found, delta=found.delta / 10)
    few = laplace_threshold(Fraction(1), Fraction(1, 10**8), 1)
    swapped = tuple(few if i == place else mechanism for i, mechanism in enumerate(one.mechanisms))
    refused(curator, Groups(replace(one, mechanisms=swapped), table), "threshold")
    plain = tuple(Laplace(Fraction(10)) if i == place else mechanism for i, mechanism in enumerate(one.mechanisms))
    refused(curator, Groups(replace(one, mechanisms=plain), table), "must guard")


def test_a_plan_over_a_table_that_nobody_declared(curator: Curator) -> None:
    """Another person column, one row a person, a longer list of rows: none is taken at its word."""
    one, table = priced(curator, "count"), declared(curator)
    for other in (
        replace(table, person="h"),
        replace(table, one_row_per_person=True),
        replace(table, rows_per_person=1),
        replace(table, public=True),
        replace(table, name="u"),
        replace(table, parts=(table,), person="h"),
    ):
        refused(curator, Groups(one, other))
        refused(curator, Declaring(other, Declared((BoundedRange(Fraction(1)),), Fraction(1, 10**9))), "declared")


def scans(root: Aggregate, change: Any) -> Aggregate:
    """The plan with another scan."""

    def changed(node: Any) -> Any:
        return change(node) if isinstance(node, Scan) else replace(node, child=changed(node.child))

    made: Aggregate = changed(root)
    return made


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize(
    "change",
    [
        lambda scan: replace(scan, person=None),
        lambda scan: replace(scan, one_row_per_person=True),
        lambda scan: replace(scan, table="u"),
        lambda scan: replace(scan, person="h"),
    ],
)
def test_a_plan_that_counts_persons_otherwise(curator: Curator, name: str, change: Any) -> None:
    one = priced(curator, name)
    plan = one.plan
    forged = replace(
        plan,
        root=scans(plan.root, change),
        ranges=tuple(replace(each, root=scans(each.root, change)) for each in plan.ranges),  # type: ignore[arg-type,type-var]
        specials=tuple(replace(each, root=scans(each.root, change)) for each in plan.specials),  # type: ignore[arg-type]
    )
    refused(curator, Groups(replace(one, plan=forged), declared(curator)), "table")


def test_keys_that_are_not_those_of_the_groups(curator: Curator) -> None:
    one, table = priced(curator, "count"), declared(curator)
    (key,) = one.plan.keys
    refused(curator, Groups(replace(one, plan=replace(one.plan, keys=())), table), "keys")
    refused(curator, Groups(replace(one, plan=replace(one.plan, keys=(replace(key, values=None),))), table), "keys")
    twice = replace(key, values=("x", "x", "x", "x"))

    def changed(node: Any) -> Any:
        return replace(node, keys=(twice,)) if isinstance(node, Project) else replace(node, child=changed(node.child))

    plan = replace(one.plan, keys=(twice,), root=changed(one.plan.root))
    nothing_leaves(Groups(replace(one, plan=plan), table))


SMALLER = {
    "a wider lattice": lambda node: (
        isinstance(node, Project)
        and replace(
            node,
            quantities=tuple(
                replace(q, lattice=q.lattice and Lattice(q.lattice.step, -90, 90)) for q in node.quantities
            ),
        )
    ),
    "more rows": lambda node: isinstance(node, LimitRows) and replace(node, rows=40),
    "no limit of rows": lambda node: isinstance(node, LimitRows) and node.child,
    "more groups": lambda node: isinstance(node, LimitGroups) and replace(node, groups=3),
    "no limit of groups": lambda node: isinstance(node, LimitGroups) and node.child,
    "wider bounds": lambda node: (
        isinstance(node, Aggregate)
        and replace(
            node,
            totals=tuple(
                t if t.bounds is None else replace(t, bounds=(t.bounds[0], 5 * t.bounds[1])) for t in node.totals
            ),
        )
    ),
    "no bounds": lambda node: (
        isinstance(node, Aggregate) and replace(node, totals=tuple(replace(t, bounds=None) for t in node.totals))
    ),
    "no clip": lambda node: isinstance(node, Clip) and node.child.child,
}


@pytest.mark.parametrize("what", SMALLER)
def test_a_person_who_may_do_more_costs_more(curator: Curator, what: str) -> None:
    """Whatever node of a plan lets one person do more: the same noise costs more, or the plan is refused."""
    hits = []
    for name in ("count", "mean", "clamped", "joint", "keys"):
        one = priced(curator, name)

        def changed(node: Any) -> Any:
            made = SMALLER[what](node)
            return made or (node if isinstance(node, Scan) else replace(node, child=changed(node.child)))

        root = changed(one.plan.root)
        if root == one.plan.root:
            continue
        forged, honest = Groups(replace(one, plan=replace(one.plan, root=root)), declared(curator)), one.loss.pure
        assert honest is not None
        try:
            loss = forged.loss.pure
        except (ValueError, TypeError):
            hits.append(name)
            continue
        assert loss is None or loss >= honest
        if loss is None or loss > honest:
            hits.append(name)
    assert hits


def test_a_heavier_vector_costs_more(curator: Curator) -> None:
    for name in ("count", "mean", "clamped", "joint"):
        one = priced(curator, name)
        part = one.plan.parts[0]
        heavier = tuple(Vector(tuple((i, 3 * weight) for i, weight in vector.weights)) for vector in part.vectors)
        plan = replace(one.plan, parts=(replace(part, vectors=heavier), *one.plan.parts[1:]))
        loss, honest = replace(one, plan=plan).loss.pure, one.loss.pure
        assert loss is not None
        assert honest is not None
        assert loss > honest * Fraction(5, 4)


def test_counts_of_rows_pass_for_no_count_of_persons(curator: Curator) -> None:
    """A threshold is for counts that one person raises by 1: rows, sums and weights are refused."""
    one = priced(curator, "keys")
    place = next(place for place, part in enumerate(one.plan.parts) if part.kind is PartKind.KEYS)
    part = one.plan.parts[place]
    for vectors in (
        (Vector(((part.vectors[0].weights[0][0], 2),)),),
        part.vectors * 2,
        one.plan.parts[1 - place].vectors,
    ):
        parts = tuple(replace(part, vectors=vectors) if i == place else other for i, other in enumerate(one.plan.parts))
        refused(curator, Groups(replace(one, plan=replace(one.plan, parts=parts)), declared(curator)))


def test_the_shape_of_joint_noise_is_that_of_the_part(curator: Curator) -> None:
    one, table = priced(curator, "joint"), declared(curator)
    (ball,) = one.mechanisms
    part = one.plan.parts[0]
    assert part.kind is PartKind.JOINT
    refused(
        curator, Groups(replace(one, mechanisms=(replace(ball, blocks=(len(part.vectors),)),)), table), "another part"
    )  # type: ignore[call-arg]
    refused(curator, Groups(replace(one, mechanisms=(Laplace(Fraction(100)),)), table), "norm")
    axes = part.axes[:-1]
    refused(curator, Groups(replace(one, plan=replace(one.plan, parts=(replace(part, axes=axes),))), table), "blocks")


def test_a_relation_is_the_table_that_it_makes(curator: Curator) -> None:
    """A join or subquery as a table of its own: persons and limits are those that follow from it."""
    question = lower("SELECT COUNT(*) FROM (SELECT p, v FROM t WHERE v > 1) AS s", curator.declaration)
    one, table = measurement(question.plan, Price(Fraction(1))), question.table
    assert table.relation is not None
    assert Groups(one, table).loss.pure == 1
    for other in (
        replace(table, rows_per_person=1),
        replace(table, person=None),
        replace(table, one_row_per_person=True),
        replace(table, parts=()),
    ):
        plan = replace(one.plan, root=scans(one.plan.root, lambda scan, other=other: as_declared(scan, other)))
        refused(curator, Groups(one, other))
        refused(curator, Groups(replace(one, plan=plan), other))


def as_declared(scan: Scan, table: Any) -> Scan:
    return Scan(table.name, table.person, table.one_row_per_person, scan.relation)


def test_every_statement_reads_the_declared_table(curator: Curator) -> None:
    """The first one, and each that is measured by itself."""
    question = planned(curator, "SELECT COUNT(*), MEDIAN(v) FROM t")
    one = measurement(question, Price(Fraction(1)))
    assert Groups(one, declared(curator)).loss.pure is not None
    (special,) = question.specials
    forged = replace(special, root=scans(special.root, lambda scan: replace(scan, one_row_per_person=True)))  # type: ignore[arg-type]
    refused(curator, Groups(replace(one, plan=replace(question, specials=(forged,))), declared(curator)), "table")
    forged_root = scans(question.root, lambda scan: replace(scan, one_row_per_person=True))
    refused(curator, Groups(replace(one, plan=replace(question, root=forged_root)), declared(curator)), "table")


def test_a_person_counts_once_in_a_group_that_is_found() -> None:
    """Who touches one group alone, and is counted twice there: as far as two groups, and yet seen with less noise."""
    frame = pyarrow.table({"h": ["a", "b"]})
    with Curator(
        {"t": Table(frame, one_row_per_person=True, columns={"h": {"type": "text"}})}, epsilon=100, delta="0.001"
    ) as one:
        one._holdings.load()
        plan = planned(one, "SELECT h, COUNT(*) FROM t GROUP BY h")
        (part,) = plan.parts
        twice = replace(plan, parts=(replace(part, vectors=(Vector(((0, 2),)),)),))
        two = laplace_threshold(Fraction(1), Fraction(1, 10**6), 2)
        honest = Measurement(plan, (two,))
        assert Groups(honest, declared(one)).loss.pure == 1
        refused(one, Groups(replace(honest, plan=twice), declared(one)), "once")


def test_lists_and_fractions_are_no_plans(curator: Curator) -> None:
    """What is priced is what is measured: nothing that somebody may add to, and integers alone."""
    one = priced(curator, "count")
    for wrong in (
        lambda: replace(one, mechanisms=list(one.mechanisms)),  # type: ignore[arg-type]
        lambda: replace(one.plan, parts=list(one.plan.parts)),  # type: ignore[arg-type]
        lambda: replace(one.plan, ranges=[]),  # type: ignore[arg-type]
        lambda: replace(one, ranges=[]),  # type: ignore[arg-type]
        lambda: Declared([BoundedRange(Fraction(1))], Fraction(1, 10**9)),  # type: ignore[arg-type]
        lambda: LinearQueriesMeasurement(declared(curator), Coding(()), []),  # type: ignore[arg-type]
        lambda: Vector(((0, Fraction(1, 4096)),)),  # type: ignore[arg-type]
        lambda: Total(TotalKind.ROWS, None, (0, Fraction(3, 5))),  # type: ignore[arg-type]
        lambda: Lattice(Fraction(1), 0, Fraction(3, 5)),  # type: ignore[arg-type]
        lambda: LimitRows(Project(Scan("t", "p", False), (), ()), Fraction(1, 1000)),  # type: ignore[arg-type]
        lambda: LimitGroups(PersonGroup(Project(Scan("t", "p", False), (), ())), Fraction(1, 2)),  # type: ignore[arg-type]
        lambda: Linear((0,), (3,), Gaussian(Fraction(10)), np.array([[0.5, 1, 0]]), np.array([0, 1, 2])),
    ):
        with pytest.raises(ValueError, match=r"tuples|fixed|integers|whole"):
            wrong()


def test_keys_and_terms_of_other_types_than_the_columns(curator: Curator) -> None:
    """0.5 and 0.50 are two texts and one number: a group would take another's place."""
    one, table = priced(curator, "keys"), declared(curator)
    (key,) = one.plan.keys
    other = replace(key, type=Type.NUMBER)

    def changed(node: Any) -> Any:
        return replace(node, keys=(other,)) if isinstance(node, Project) else replace(node, child=changed(node.child))

    plan = replace(one.plan, keys=(other,), root=changed(one.plan.root))
    refused(curator, Groups(replace(one, plan=plan), table), "table")


def test_specials_are_measured_as_they_are_priced(curator: Curator) -> None:
    table = declared(curator)
    winners = priced(curator, "winners")
    (special,) = winners.plan.specials
    alike = replace(special, values=tuple(Fraction(1, 2) + Fraction(place, 10**40) for place in range(5)))
    refused(curator, Groups(replace(winners, plan=replace(winners.plan, specials=(alike,))), table), "twice")
    found = priced(curator, "found")
    (one,) = found.plan.ranges
    keyed = replace(one, root=replace(one.root, child=with_keys(one.root.child, priced(curator, "keys").plan.keys)))
    refused(curator, Groups(replace(found, plan=replace(found.plan, ranges=(keyed,))), table), "one count")
    refused(curator, Groups(replace(found, rest=DiscreteLaplace(Fraction(4, 5), 10**9)), table), "as a release")
    powers = priced(curator, "count")
    quantity = Quantity(ColumnOf("v", Type.INTEGER), Lattice(Fraction(1), 0, 1), powers=True)

    def summed(node: Any) -> Any:
        if isinstance(node, Project):
            return replace(node, quantities=(quantity,))
        child = replace(node, child=summed(node.child))
        return replace(child, totals=(Total(TotalKind.SUM, 0),)) if isinstance(child, Aggregate) else child

    plan = replace(powers.plan, root=summed(powers.plan.root))
    refused(curator, Groups(replace(powers, plan=plan), table), "powers")


def with_keys(node: Any, keys: Any) -> Any:
    return replace(node, keys=keys) if isinstance(node, Project) else replace(node, child=with_keys(node.child, keys))


def test_public_groups_are_drawn_once_each(curator: Curator) -> None:
    """Also where a question has nothing but what is measured by itself."""
    question = planned(curator, "SELECT g, COUNT(DISTINCT h) FROM t GROUP BY g")
    one = measurement(question, Price(Fraction(1)))
    (key,), (special,) = question.keys, question.specials
    many = replace(key, values=("x",) * 40)
    keys = project_of(special.root).keys
    forged = replace(special, root=with_keys(special.root, (many, *keys[1:])))
    root = with_keys(question.root, (many,))
    nothing_leaves(
        Groups(replace(one, plan=replace(question, keys=(many,), root=root, specials=(forged,))), declared(curator))
    )


def test_a_step_of_a_batch_is_taken_once() -> None:
    """By many threads at once, and in no forked process."""
    with fresh() as one:
        one._holdings.load()
        table = declared(one)
        batch = Declared((Gaussian(Fraction(3)).loss(16),), Fraction(1, 10**9))
        run = Marginals(opened(one, Declaring(table, batch)))
        run.code(Coding((Cells(table.column("g"), table.column("g").values),)))
        start = threading.Barrier(8).wait

        def step(_: int) -> bool:
            start()
            try:
                run.measure(("g",), Fraction(3))
            except ValueError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(step, range(8))) == 1
        again = Marginals(opened(one, Declaring(table, batch)))
        if not (child := os.fork()):
            try:
                again._take(batch.parts[0], table)
            except ValueError:
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_reserve_that_has_ended_measures_nothing(curator: Curator) -> None:
    """Else its failures would count for nothing."""
    grant = opened(curator, Groups(priced(curator, "count"), declared(curator)))
    grant.commit(b"{}")
    with pytest.raises(ValueError, match="settled"):
        grant.measure()
    with opened(curator, Groups(priced(curator, "mean"), declared(curator))) as ended:
        pass
    with pytest.raises(ValueError, match="settled"):
        ended.measure()


def test_weights_stay_as_they_were_priced() -> None:
    one = Linear((0,), (3,), Gaussian(Fraction(10)), np.array([[1, 1, 0]]), np.array([0, 1, 2]))
    assert one.rows is not None
    with pytest.raises(ValueError, match="WRITEABLE"):
        one.rows.setflags(write=True)


TWO = declare(
    {
        "budget": {"epsilon": 100},
        "tables": {
            "people": {
                "source": "a.csv",
                "person": "p",
                "rows_per_person": 2,
                "columns": {"p": {"type": "text"}, "c": {"type": "text"}},
            },
            "lines": {
                "source": "b.csv",
                "person": "o -> orders.o",
                "rows_per_person": 2,
                "columns": {"o": {"type": "text"}, "c": {"type": "text"}},
            },
            "orders": {
                "source": "c.csv",
                "person": "p",
                "rows_per_person": 2,
                "columns": {"o": {"type": "text"}, "p": {"type": "text"}},
            },
            "codes": {"source": "d.csv", "public": True, "columns": {"c": {"type": "text"}, "k": {"type": "text"}}},
            "rows": {"source": "e.csv", "one_row_per_person": True, "columns": {"c": {"type": "text"}}},
        },
    }
).tables
C = ColumnOf("c", Type.TEXT)
PEOPLE, CODES, NOBODY = (Base.of(TWO[name]) for name in ("people", "codes", "rows"))
NUMBERS_ALIKE = Call("equal", (ColumnOf("c", Type.NUMBER), ColumnOf("d", Type.NUMBER)), Type.BOOLEAN)
EVERYBODY = Renamed(Base.of(replace(TWO["people"], public=True, person=None)), ("q", "d"))


@pytest.mark.parametrize(
    ("relation", "match"),
    [
        (Matched(PEOPLE, C, Computed(PEOPLE, (("c", C),))), "person alone"),
        (Matched(PEOPLE, None, Computed(PEOPLE, (("c", C),))), "person alone"),
        (Stacked((Computed(PEOPLE, (("c", C),)), Computed(CODES, (("c", C),)))), "UNION ALL"),
        (Base.of(TWO["lines"]), "path"),
        (Where(Base.of(TWO["lines"]), Literal(True, Type.BOOLEAN)), "path"),
        (Attributed(PEOPLE, "c", Base.of(TWO["orders"]), "o"), "path"),
        (Attributed(Base.of(TWO["lines"]), "c", Base.of(TWO["orders"]), "o"), "path"),
        (Attributed(Base.of(TWO["lines"]), "o", PEOPLE, "c"), "path"),
        (
            PerPerson(Joined(JoinKind.INNER, NOBODY, Renamed(CODES, ("d", "k")), None), (("c", C),), ()),
            "without persons",
        ),
        (Where(PEOPLE, ColumnOf("c", Type.BOOLEAN)), "under another type"),
        (Joined(JoinKind.INNER, PEOPLE, EVERYBODY, None), "the same name"),
        (Joined(JoinKind.INNER, PEOPLE, Renamed(CODES, ("d", "k")), NUMBERS_ALIKE), "under another type"),
    ],
)
def test_a_relation_that_breaks_its_rule_is_no_table(relation: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        as_table(relation)


def test_rows_that_nobody_promised_one_of_a_person() -> None:
    """Of persons that nothing tells apart a plan bounds nothing, unless each has one row."""
    several = Joined(JoinKind.INNER, NOBODY, Renamed(CODES, ("d", "k")), None)
    table = as_table(several)
    assert not table.one_row_per_person
    root = Aggregate(Project(Scan(table.name, None, False, several), (), ()), (Total(TotalKind.ROWS),))
    with pytest.raises(ValueError, match="does not bound"):
        sensitivity(root, Part(PartKind.COUNT, (Vector(((0, 1),)),)))
