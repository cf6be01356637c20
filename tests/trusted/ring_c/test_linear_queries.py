"""Measurements of marginals: sensitivity by rational linear algebra, output distributions enumerated, neighbours in the
engine, and an attacker that noise of half the size would not escape."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.accounting import Batch, DiscreteLaplace
from discreet.accounting import Gaussian as GaussianLoss
from discreet.mechanisms import Gaussian, Laplace, variance
from discreet.trusted.ring_c.coding import Binned, Coding, ListedCells
from discreet.trusted.ring_c.linear_queries import Linear, LinearQueriesMeasurement, differences, loss_of
from discreet.workload.plan import strategy
from kinds import examples
from workload_tools import NOISES, workloads

Matrix = list[list[Fraction]]

SHAPES = [(1,), (2,), (3,), (5,), (2, 2), (2, 3), (1, 3), (3, 4), (2, 2, 3), ()]
SILENT = Fraction(1, 10**9)
"""Noise that is zero, whatever is drawn."""


def subtractions(shape: tuple[int, ...]) -> Matrix:
    """H: the tensor product over the axes of (each cell but the first, minus the first)."""
    rows: Matrix = [[Fraction(1)]]
    for size in shape:
        axis = [[Fraction((at == cell) - (at == 0)) for at in range(size)] for cell in range(1, size)]
        rows = [[a * b for a in left for b in right] for left in rows for right in axis]
    return rows


def solved(matrix: Matrix, right: list[Fraction]) -> list[Fraction]:
    """The solution of a regular system, exactly."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for place in range(len(rows)):
        pivot = next(row for row in range(place, len(rows)) if rows[row][place])
        rows[place], rows[pivot] = rows[pivot], rows[place]
        rows[place] = [value / rows[place][place] for value in rows[place]]
        for other in range(len(rows)):
            if other != place and rows[other][place]:
                factor = rows[other][place]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[place], strict=True)]
    return [row[-1] for row in rows]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_residual_moves_as_far_as_the_projection_of_a_row(shape: tuple[int, ...]) -> None:
    """For every cell e: the shortest vector u with H·u = H·e is Hᵀ(HHᵀ)⁻¹H·e. On the lattice 1/N it is whole, the rest
    of e is whole and taken away by H, and its squared length is the stated sensitivity."""
    taken = subtractions(shape)
    cells = math.prod(shape)
    for unit in (cells, 3 * cells):
        one = Linear(tuple(range(len(shape))), shape, Gaussian(Fraction(5)), residual=unit)
        for cell in range(cells):
            image = [row[cell] * unit for row in taken]
            weights = solved([[sum(a * b for a, b in zip(x, y, strict=True)) for y in taken] for x in taken], image)
            shift = [sum(w * row[at] for w, row in zip(weights, taken, strict=True)) for at in range(cells)]
            shift = [value if isinstance(value, Fraction) else Fraction(value) for value in shift]
            assert all(value.denominator == 1 for value in shift)
            rest = [unit * (at == cell) - value for at, value in enumerate(shift)]
            assert all(sum(a * b for a, b in zip(row, rest, strict=True)) == 0 for row in taken)
            assert sum(value * value for value in shift) == one.sensitivity


@given(st.lists(st.integers(1, 4), max_size=3), st.data())
@settings(max_examples=examples(30), deadline=None)
def test_what_a_residual_releases_is_the_subtractions(shape: list[int], data: st.DataObject) -> None:
    """The released array is 0 at every first place, and H·x elsewhere: nothing more leaves."""
    cells = math.prod(shape)
    values = np.array(data.draw(st.lists(st.integers(-99, 99), min_size=cells, max_size=cells)), np.int64).reshape(
        shape
    )
    found = differences(values)
    inner = found[tuple(slice(1, None) for _ in shape)]
    rows = subtractions(tuple(shape))
    assert inner.reshape(-1).tolist() == [
        sum(a * b for a, b in zip(row, values.reshape(-1).tolist(), strict=True)) for row in rows
    ]
    one = Linear(tuple(range(len(shape))), tuple(shape), Gaussian(Fraction(9)), residual=cells)
    released = np.asarray(one.release(values), np.int64)
    for axis in range(len(shape)):
        assert not np.take(found, 0, axis).any()
        assert not np.take(released, 0, axis).any()


@given(workloads(), st.sampled_from(NOISES))
@settings(max_examples=25, deadline=None)
def test_no_row_moves_a_measurement_farther_than_stated(case: tuple[Any, Any], noise: Any) -> None:
    """Every single row of every strategy, added to an empty table: rows and histograms by their own output, residuals
    by what the projection says; and R rows of one person by R times that."""
    items, sizes = case
    found, _ = strategy(items, sizes, [noise])
    for one in found.measurements:
        silent = Linear(one.columns, one.shape, type(one.mechanism)(SILENT), one.rows, one.atoms, one.residual)
        for cell in itertools.product(*(range(size) for size in one.shape)):
            exact = np.zeros(one.shape, np.int64)
            exact[cell] = 1
            moved = silent.release(exact).reshape(-1).astype(float)
            if one.residual:
                projected = moved.reshape(one.shape)
                for axis in range(len(one.shape)):
                    projected = projected - projected.mean(axis=axis, keepdims=True)
                assert float((projected**2).sum()) <= one.sensitivity * (1 + 1e-9)
            elif isinstance(one.mechanism, Laplace):
                assert np.abs(moved).sum() <= one.sensitivity
            else:
                assert (moved**2).sum() <= one.sensitivity


def law(sigma: float, reach: int) -> dict[int, float]:
    """The law of rounded Gaussian noise."""
    normal = NormalDist(0, sigma)
    return {k: normal.cdf(k + 0.5) - normal.cdf(k - 0.5) for k in range(-reach, reach + 1)}


def hockey_stick(first: dict[int, float], second: dict[int, float], epsilon: float) -> float:
    return sum(max(0.0, first.get(k, 0.0) - math.exp(epsilon) * second.get(k, 0.0)) for k in {*first, *second})


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Balle & Wang 2018, Theorem 8."""
    cdf = NormalDist().cdf
    return cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("size", [0.01, 0.2, 0.5, 0.9, 1.0, 4.0])
def test_variances_of_whole_noise(size: float) -> None:
    rounded = sum(k * k * p for k, p in law(size, 12 + int(10 * size)).items())
    assert math.isclose(variance(Gaussian(Fraction(str(size)))), rounded, rel_tol=1e-6, abs_tol=1e-12)
    q = math.exp(-1 / size)
    two_sided = sum(2 * k * k * (1 - q) / (1 + q) * q**k for k in range(1, 400))
    assert math.isclose(variance(Laplace(Fraction(str(size)))), two_sided, rel_tol=1e-6, abs_tol=1e-12)


@pytest.mark.parametrize("unit", [2, 6])
def test_the_law_of_a_residual_is_as_private_as_it_says(unit: int) -> None:
    """Two cells: released is the difference of two noisy counts in steps of 1/unit, enumerated. It is within the
    promise of mu = sensitivity/sigma at every ε, for a row in either cell; the noise of half the size is not. Were
    noise paid for as a count's is, at ‖e‖ = 1, twice as much would have been charged."""
    sigma = 3.0 * unit / 2
    one = Linear((0,), (2,), Gaussian(Fraction(sigma)), residual=unit)
    loss = loss_of([one], 1)
    assert isinstance(loss, GaussianLoss)
    assert math.isclose(float(loss.mu), unit / math.sqrt(2) / sigma, rel_tol=1e-9)

    def released(cells: tuple[int, int], size: float) -> dict[int, float]:
        noise, found = law(size, 12 * int(size)), {}
        for a, p in noise.items():
            for b, q in noise.items():
                value = unit * cells[1] + b - unit * cells[0] - a
                found[value] = found.get(value, 0.0) + p * q
        return found

    for epsilon in (0.0, 0.2, 0.5, 1.0, 2.0):
        allowed = gaussian_delta(epsilon, float(loss.mu))
        for neighbour in ((1, 0), (0, 1)):
            for first, second in (((0, 0), neighbour), (neighbour, (0, 0))):
                assert hockey_stick(released(first, sigma), released(second, sigma), epsilon) <= allowed + 1e-9
        assert hockey_stick(released((0, 0), sigma / 2), released((1, 0), sigma / 2), epsilon) > allowed * 1.5


def test_the_law_of_weighted_rows_is_as_private_as_it_says() -> None:
    """Two rows of weights over two atoms with discrete Laplace noise, enumerated on a grid: every ratio is at most
    e^ε, some are as large, and with half the noise some are larger."""
    rows, atoms = np.array([[1, 1], [1, 0]]), np.array([0, 1])
    one = Linear((0,), (2,), Laplace(Fraction(2)), rows, atoms)
    loss = loss_of([one], 1)
    assert loss == Batch((DiscreteLaplace(1, 2),))

    def ratios(scale: float) -> list[float]:
        found = []
        for cell in ((1, 0), (0, 1)):
            shift = rows @ np.array(cell)
            for place in itertools.product(range(-12, 13), repeat=2):
                found.append(sum(abs(a - b) - abs(a) for a, b in zip(place, shift, strict=True)) / scale)
        return found

    assert math.isclose(max(map(abs, ratios(2.0))), 1.0)
    assert max(map(abs, ratios(1.0))) > 1.9


def test_the_loss_adds_up_over_measurements_and_rows_of_a_person() -> None:
    gaussians = [
        Linear((0,), (3,), Gaussian(Fraction(6)), residual=3),  # squared sensitivity 9·2/3 = 6
        Linear((), (), Gaussian(Fraction(2)), residual=1),  # 1
        Linear((0,), (3,), Gaussian(Fraction(5)), np.array([[2, 0], [1, 1]]), np.array([0, 1, -1])),  # 5
    ]
    loss = loss_of(gaussians, 3)
    assert isinstance(loss, GaussianLoss)
    assert 0 <= loss.mu**2 - 9 * (Fraction(6, 36) + Fraction(1, 4) + Fraction(5, 25)) < Fraction(1, 10**12)
    laplaces = [Linear((0,), (3,), Laplace(Fraction(4))), Linear((), (), Laplace(Fraction(8)))]
    assert loss_of(laplaces, 2) == Batch((DiscreteLaplace("0.5", 2), DiscreteLaplace("0.25", 2)))
    with pytest.raises(ValueError, match="the same kind"):
        loss_of([*gaussians, *laplaces], 1)
    for wrong in ({"residual": 4}, {"residual": 3, "mechanism": Laplace(Fraction(1))}, {"rows": np.eye(3, dtype=int)}):
        with pytest.raises(ValueError, match="cell"):
            Linear(**{"columns": (0,), "shape": (3,), "mechanism": Gaussian(Fraction(1)), **wrong})  # type: ignore[arg-type]


def test_noise_has_the_size_that_was_paid_for() -> None:
    """The sum of squares of 4,000 noises over sigma² is χ² with 4,000 degrees: beyond 4,000 ± 5·√8,000 with
    p < 1e-6. Noise at half the size gives 1,000 ± 45, so it is always found."""
    cells = 4000
    for one, scale in (
        (Linear((0,), (cells,), Gaussian(Fraction(50)), np.eye(cells, dtype=np.int64), np.arange(cells)), 50.0),
        (Linear((0,), (cells + 1,), Gaussian(Fraction(77)), residual=cells + 1), 77.0),
    ):
        noise = one.release(np.zeros(one.shape, np.int64)).astype(float)
        noise = noise - (noise.mean() if one.residual else 0)
        assert abs(float((noise**2).sum()) / scale**2 - cells) < 5 * math.sqrt(2 * cells)
    noise = Linear((0,), (cells,), Laplace(Fraction(20))).release(np.zeros(cells, np.int64)).astype(float)
    assert abs(np.abs(noise).mean() - 20) < 5.5 * 20 / math.sqrt(cells)


# neighbours through the real engine


def curator_of(frame: pandas.DataFrame, rows: int) -> discreet.Curator:
    columns = {
        "p": {"type": "integer"},
        "city": {"type": "text", "values": ["a", "b", "c"]},
        "age": {"type": "integer", "min": 0, "max": 4},
        "cost": {"type": "number"},
    }
    table = discreet.Table(frame, person="p", rows_per_person=rows, groups_per_person=1, columns=columns)
    return discreet.Curator({"t": table}, epsilon=1000, delta="1e-6")


def people(rows: list[tuple[int, str | None, int | None, float]]) -> pandas.DataFrame:
    frame = pandas.DataFrame(rows, columns=["p", "city", "age", "cost"])
    return frame.astype({"p": "Int64", "age": "Int64", "city": "string", "cost": "float64"})


def exact(frame: pandas.DataFrame, rows: int) -> tuple[list[Any], tuple[Linear, ...]]:
    """What noiseless measurements release through the engine."""
    with curator_of(frame, rows) as curator:
        table = curator.declaration.tables["t"]
        city, age, cost = (table.column(name) for name in ("city", "age", "cost"))
        assert city is not None
        assert age is not None
        assert cost is not None
        coding = Coding(
            (ListedCells(city, ("a", "b", "c")), ListedCells(age, tuple(range(5))), Binned(cost, (Fraction(10),)))
        )
        measurements = (
            Linear((), (), Laplace(SILENT)),
            Linear((0, 1), (4, 6), Laplace(SILENT)),
            Linear((1,), (6,), Laplace(SILENT), np.tri(5, dtype=np.int64), np.array([0, 1, 2, 3, 4, -1])),
            Linear((0, 2), (4, 3), Laplace(SILENT)),
        )
        curator._holdings.load()
        found = LinearQueriesMeasurement(table, coding, measurements).draw(curator._engine)
        return found, measurements


def test_one_person_moves_measurements_within_the_sensitivity() -> None:
    """A person with far more rows than allowed, some of them in no declared cell, NULL, infinite or no number."""
    base = [(1, "a", 0, 5.0), (2, "b", 4, 20.0), (2, None, None, float("nan")), (3, "zz", 9, float("inf"))]
    odd = [(9, city, age, 10.0) for city in ("a", "c", "zz", None) for age in (0, 3, -7, None) for _ in range(5)]
    before, measurements = exact(people(base), 3)
    moved = 0
    for _ in range(3):
        after, _ = exact(people([*base, *odd]), 3)
        for one, x, y in zip(measurements, before, after, strict=True):
            change = np.asarray(y - x).reshape(-1).astype(int)
            assert (change >= 0).all()
            assert int(np.abs(change).sum()) <= 3 * one.sensitivity
            moved += int(change.sum())
    assert moved > 0
    assert int(before[0]) == 4
    assert before[1].sum() == before[3].sum() == 4
    assert before[1][3].sum() == 2  # NULL, and what is not declared
