"""What is said of cells of which a column alone shows no more than noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.markov import Domain, MarginalMeasurement, fit
from discreet.markov.measurement import Average
from discreet.synthesis.tails import UNSEEN, UNSEEN_TAIL, falling, unseen, widths_of
from discreet.trusted.ring_a.table import Column, Type
from discreet.trusted.ring_c.coding import Binned

KIND = "exact"

SIGMA = 20


def column(counts: NDArray[np.int64], sigma: int = SIGMA) -> Average:
    return Average.of([MarginalMeasurement(("n",), counts, Fraction(sigma))])


def tail(counts: list[int], wide: list[int]) -> list[int]:
    """What is said of the cells that are said of."""
    said = falling(column(np.array(counts)), np.array(wide), 2_000.0)
    assert said is not None
    found: list[int] = said.values[1:].tolist()
    return found


def test_a_tail_falls_by_the_ratio_of_what_is_seen() -> None:
    counts = np.array([320, 160, 80, 40, 20, 10, 5, 2, 500])
    said = falling(column(counts), np.ones(8, np.int64), float(counts.sum()))
    assert said is not None
    assert said.merged == ((0, 0, 0, 1, 2, 3, 4, 5, 0),)  # 77 in five cells are noise, 157 in six are not
    assert said.values.tolist() == [1060, 40, 20, 10, 5, 2]  # the others together, and the one for no row is among them
    assert said.sigma == 1


def test_a_cell_of_many_values_has_as_many_rows_as_each_of_them_would_have() -> None:
    assert tail([400, 200, 100, 50, 25, 12, 6, 3, 900], [1] * 8)[-4:] == [25, 12, 6, 3]
    assert tail([400, 200, 100, 50, 37, 9, 900], [1, 1, 1, 1, 2, 2])[-2:] == [37, 9]
    assert tail([400, 200, 5, 9, 900], [1, 1, 10, 10**9])[-2:] == [4, 0]  # however many they are


def test_nothing_is_said_where_the_last_cell_is_seen_or_none_is() -> None:
    for counts in ([5, 5, 5, 400, 9], [3, -2, 5, 1, 400]):
        assert falling(column(np.array(counts)), np.ones(4, np.int64), 400.0) is None


def test_cells_are_empty_at_the_low_end_and_all_where_none_is_seen() -> None:
    seen = unseen(column(np.array([4, -9, 300, 20, 3, 200])), None, 5)
    assert seen.tolist() == [True, True, False, False, False, False]
    none = unseen(column(np.array([4, -9, 30, 20, 3, 200])), None, 5)
    assert none.tolist() == [True] * 5 + [False]
    rare = UNSEEN * SIGMA
    for count, empty in ((rare - 1, True), (rare, False)):
        assert unseen(column(np.array([300, 300, count])), 2, 0).tolist() == [False, False, empty]
    edge = int(UNSEEN_TAIL * SIGMA)
    for count, empty in ((edge - 1, True), (edge, False)):
        assert unseen(column(np.array([count, 300])), None, 2)[0] == empty


@given(
    st.lists(st.integers(-1000, 1000), min_size=2, max_size=12),
    st.lists(st.integers(1, 9), min_size=12, max_size=12),
    st.integers(1, 300),
)
def test_what_is_said_never_rises_and_is_of_as_many_rows_as_there_are(
    counts: list[int], wide: list[int], sigma: int
) -> None:
    each, found = np.array(wide[: len(counts)]), np.array([*counts, 5])
    said = falling(column(found, sigma), each, 10_000.0)
    if said is not None:
        of = said.values[1:] / each[-len(said.values) + 1 :]
        assert (of >= 0).all()
        assert (np.diff(of) <= 1).all()  # counts are whole
        assert said.values.sum() == max(10_000, int(said.values[1:].sum()))
        assert len(said.merged[0] or ()) == len(found)


def test_noise_may_be_as_small_as_a_price_can_make_it() -> None:
    counts = MarginalMeasurement(("n",), np.array([400, 0, 0, 9]), Fraction(1, 10**9))
    said = falling(Average.of([counts]), np.ones(3, np.int64), 409.0)
    assert said is not None
    assert said.values.tolist() == [409, 0, 0]
    assert said.sigma > 0


def test_how_many_numbers_a_cell_holds() -> None:
    cells = Binned(Column("n", Type.INTEGER, 1, 30), (2, 3, 10, 22))
    assert widths_of(cells).tolist() == [1, 1, 7, 12, 9]


@pytest.mark.power
@pytest.mark.parametrize(("ratio", "limit"), [(0.6, 10), (0.75, 20), (0.0, 10)])
def test_how_many_rows_there_are_is_less_wrong_than_with_an_empty_tail(ratio: float, limit: int) -> None:
    """600 persons whose numbers of rows fall by a ratio, 400 draws of the noise, always the same: the error of all
    rows is smaller by a fifth where there is a tail, and below a fifth of them where there is none."""
    generator, numbers = np.random.default_rng(3), np.arange(1, limit + 1)
    true = np.rint(600 * (1 - ratio) * ratio ** (numbers - 1)).astype(np.int64)
    domain, wide = Domain(("n",), (limit + 1,)), np.ones(limit, np.int64)
    off, sigma = [], 10
    for _ in range(400):
        noisy = np.rint(np.append(true, 200) + generator.normal(0, sigma, limit + 1)).astype(np.int64)
        counts = MarginalMeasurement(("n",), noisy, Fraction(sigma))
        said = falling(column(noisy, sigma), wide, float(noisy.sum()))
        empty = np.zeros(limit + 1, bool)
        if said is not None:
            empty[limit - len(said.values) + 1 : limit] = True
        models = (
            fit(domain, [counts] if said is None else [counts, said], rows=int(noisy.sum())),
            fit(domain, [counts], zeros={("n",): empty}, rows=int(noisy.sum())),
        )
        rows = [model.marginal(("n",))[:limit] @ numbers for model in models]
        off.append([each / (true @ numbers) - 1 for each in rows])
    ours, emptied = np.sqrt(np.mean(np.square(off), axis=0))
    assert ours < (emptied * 0.8 if ratio else 0.2)
