"""Columns on a line: cuts, bins chosen from noisy counts, and values drawn inside them."""

from __future__ import annotations

import datetime
import itertools
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Curator, Table
from discreet.synthesis.cells import COARSE, FINE, NoisyHistogram, NumberLine, gathered, line, refined, weights
from discreet.synthesis.decode import drawn_values, read, stored
from discreet.synthesis.packed import pack, unpack
from discreet.trusted.ring_a.table import Column, Type
from discreet.trusted.ring_c.coding import Binned, ListedCells


def along(kind: Type, low: Any, high: Any, step: Fraction | None = None) -> NumberLine:
    found = line(Column("c", kind, low, high, step))
    assert found is not None
    return found


LINES = [
    along(Type.INTEGER, 17, 90),
    along(Type.INTEGER, -(2**63), 2**63 - 1),
    along(Type.INTEGER, 2**63 - 3, 2**63 - 1),
    along(Type.INTEGER, 3, 3),
    along(Type.NUMBER, Fraction(0), Fraction(100), Fraction(1, 100)),
    along(Type.NUMBER, Fraction(-1), Fraction(1)),
    along(Type.NUMBER, Fraction(1, 2), Fraction(19, 2), Fraction(1)),
    along(Type.NUMBER, Fraction(-10), Fraction(10), Fraction(3, 10)),
    along(Type.NUMBER, Fraction(-(10**300)), Fraction(10**300)),
    along(Type.NUMBER, Fraction(-(10**300)), Fraction(10**300), Fraction(1, 10**9)),
    along(Type.DATE, datetime.date(1900, 1, 1), datetime.date(2026, 12, 31)),
    along(Type.TIMESTAMP, datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, 0, 0, 30)),
]


@pytest.mark.parametrize("known", LINES, ids=lambda known: f"{known.column.type}-{known.low}")
def test_a_line_is_divided_into_cells_that_rise_and_hold_every_value(known: NumberLine) -> None:
    cuts = known.divided(known.low, known.end(), FINE)
    ends = [known.low, *cuts, known.end()]
    assert ends == sorted(set(ends)) or known.low == known.high
    assert len(cuts) < FINE
    binned = known.binned(cuts)
    assert binned.cell(known.value(known.low)) == 0
    assert binned.cell(known.value(known.high)) == len(cuts)
    for cut in cuts[::97]:
        assert known.place(known.value(cut)) == cut
    if known.unit is not None:
        assert all((cut - known.low) / known.unit == int((cut - known.low) / known.unit) for cut in cuts)


def test_bins_hold_about_as_much_each_and_a_heavy_value_stands_alone() -> None:
    known = along(Type.INTEGER, 0, 999)
    cuts = known.divided(known.low, known.end(), FINE)
    counts = [50_000, *([10] * 500), *([0] * 499)]
    bins = gathered(NoisyHistogram(known, tuple(cuts), tuple(counts), 2.0), 32)
    assert bins[0] == 1  # the value 0 by itself
    assert len(bins) < 64
    light = NoisyHistogram(known, tuple(cuts), tuple([100] * 1000), 5.0)
    sizes = [high - low for low, high in itertools.pairwise([Fraction(0), *gathered(light, 32), Fraction(1000)])]
    assert max(sizes[:-1]) - min(sizes[:-1]) <= 1
    assert 28 <= len(sizes) <= 34


def test_noise_alone_makes_no_bins() -> None:
    """1,000 cells of rounded noise, of a fixed seed: a cut needs a sum 4 deviations high; over runs of cells those are
    about 1,000 chances of 3e-5 each."""
    known = along(Type.INTEGER, 0, 999)
    noise = np.rint(np.random.default_rng(7).normal(0, 20, 1000)).astype(int).tolist()
    assert (
        len(gathered(NoisyHistogram(known, tuple(known.divided(known.low, known.end(), FINE)), tuple(noise), 20.0), 32))
        < 10
    )
    empty = NoisyHistogram(known, (Fraction(500),), (0, 0), 1.0)
    assert gathered(empty, 32) == []


def test_a_further_look_divides_what_may_be_told_from_noise() -> None:
    known = along(Type.INTEGER, 0, 99_999)
    cuts = tuple(known.divided(known.low, known.end(), COARSE))
    counts = (3_000, 399, -50, 800, *([0] * 12))
    again = refined(NoisyHistogram(known, cuts, counts, 50.0), 2)
    inside = [sum(low < cut < high for cut in again) for low, high in itertools.pairwise([0, *cuts, 100_000])]
    assert inside[:4] == [14, 0, 0, 3]  # 3,000 rows are 15 parts of 200, which are 4 times the noise
    assert set(cuts) <= set(again)
    noise = NoisyHistogram(known, cuts, tuple([30] * COARSE), 50.0)
    assert refined(noise, 32) == cuts


def test_only_what_many_rows_share_is_divided_beyond_the_finest_width() -> None:
    known = along(Type.NUMBER, Fraction(0), Fraction(1))
    cuts = tuple(known.divided(known.low, known.end(), COARSE))
    finest = FINE // COARSE
    counts = (30_000, *([60_000] * 15))
    again = refined(NoisyHistogram(known, cuts, counts, 1.0), 32)
    inside = [sum(low < cut < high for cut in again) for low, high in itertools.pairwise([Fraction(0), *cuts])]
    assert inside == [127, *[127] * 14]  # each holds a thirty-second and more
    again = refined(NoisyHistogram(known, cuts, (20_000, *([60_000] * 15)), 1.0), 32)
    assert sum(cut < cuts[0] for cut in again) == finest - 1


@given(st.lists(st.integers(-50, 5000), min_size=1, max_size=80), st.integers(1, 40))
def test_what_is_chosen_from_any_counts_is_a_partition(counts: list[int], parts: int) -> None:
    known = along(Type.NUMBER, Fraction(0), Fraction(10))
    cuts = tuple(known.divided(known.low, known.end(), len(counts)))
    histogram = NoisyHistogram(known, cuts, tuple(counts), 3.0)
    bins = gathered(histogram, parts)
    assert bins == sorted(set(bins))
    assert set(bins) <= set(cuts)
    again = refined(histogram, parts)
    assert list(again) == sorted(set(again))
    assert all(known.low < cut < known.end() for cut in again)
    for low, high in itertools.pairwise([known.low, *bins, known.end()]):
        ends, shares = weights(histogram, low, high)
        assert ends[0] == low
        assert ends[-1] == high
        assert len(shares) == len(ends) - 1
        assert abs(shares.sum() - 1) < 1e-9
        assert (shares >= 0).all()


def test_no_cut_lies_above_the_high_where_that_is_no_whole_unit() -> None:
    """A cut in the year 10000 would be no value at all, and which cuts there are follows from the rows."""
    last = datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999)
    for known in (
        along(Type.TIMESTAMP, datetime.datetime(9999, 12, 31), last),
        along(Type.TIMESTAMP, datetime.datetime(9999, 12, 31, 23, 59, 50), last),
        along(Type.NUMBER, Fraction(0), Fraction(7, 2), Fraction(1)),
    ):
        cuts = known.divided(known.low, known.end(), FINE)
        counts = (*([0] * len(cuts)), 90_000)
        again = refined(NoisyHistogram(known, tuple(cuts), counts, 1.0), 32)
        for cut in (*cuts, *again):
            assert known.low < cut <= known.high
            assert known.place(known.value(cut)) == cut


@pytest.mark.parametrize(("low", "high", "step"), [("0.5", "9.5", "1"), ("-10", "10", "0.3"), ("-5", "25", "10")])
def test_numbers_are_made_in_the_steps_in_which_they_are_loaded(low: str, high: str, step: str) -> None:
    """Also where a bound is no multiple of the step: through the real engine, at a price that hides nothing.

    Each value has 63 rows or more: at this price no count is wrong by 30, so the values with 30 rows are the same ones.
    """
    frame = pandas.DataFrame({"x": np.random.default_rng(0).normal(5, 2, 600).round().clip(2, 8)})
    number = {"type": "number", "min": Decimal(low), "max": Decimal(high), "step": Decimal(step), "nulls": False}
    table = Table(frame, columns={"x": number}, one_row_per_person=True)
    with Curator({"t": table}, epsilon=10**4, delta=1e-6) as curator:
        made = curator.publish("t", epsilon=5000).to_pandas().x
        real = curator.ask("SELECT x, COUNT(*) AS n FROM t GROUP BY x", epsilon=500).rows
    places = made / float(step)
    assert np.abs(places - places.round()).max() < 1e-9
    assert made.between(float(low), float(high)).all()
    counts = made.round(6).value_counts()
    assert {x for x, n in counts.items() if n >= 30} == {round(row["x"], 6) for row in real if row["n"] >= 30}


@pytest.mark.parametrize(
    ("low", "high", "step"), [("3", "10000000", "7"), ("0", "1000000", "0.25"), ("0.1", "9.5", "1")]
)
def test_heavy_values_and_bins_between_the_steps_stay_on_the_grid(low: str, high: str, step: str) -> None:
    """A part so narrow that it is taken for one value has a multiple of the step for it; a bin that begins between two
    multiples has the second one, and none below it."""
    unit = Fraction(step)
    column = Column("x", Type.NUMBER, Fraction(low), Fraction(high), step=unit, nulls=False)
    known = line(column)
    assert known is not None
    generator = np.random.default_rng(1)
    middle = known.low + unit * int((known.high - known.low) / unit / 3)
    narrow = [middle - unit / 4, middle + unit / 4]
    half = [known.low + unit * 5 / 4, known.low + unit * 7 / 2]
    for cuts in (narrow, half):
        binned = known.binned(cuts)
        codes = np.full(300, 1)
        drawn = drawn_values(binned, codes, known, None, generator)
        found = {round((Fraction(str(one)) - known.low) / unit, 6) for one in drawn.tolist()}
        if cuts is narrow:
            assert found == {(middle - known.low) / unit}
        else:
            assert found in ({2, 3}, {2})  # one value where the range is wide


@pytest.mark.parametrize("known", LINES, ids=lambda known: f"{known.column.type}-{known.low}")
def test_drawn_values_lie_in_their_cells(known: NumberLine) -> None:
    cuts = known.divided(known.low, known.end(), 7) if known.high > known.low else []
    binned = known.binned(cuts)
    codes = np.arange(500) % binned.size
    drawn = drawn_values(binned, codes, known, None, np.random.default_rng(1))
    column = read(known.column.type, stored(binned, codes, drawn))  # type: ignore[arg-type]
    for code, value in zip(codes.tolist(), column.plain(), strict=True):
        if code == binned.size - 1:
            assert value is None
            continue
        exact = Fraction(str(value)) if isinstance(value, float) else value
        assert binned.cell(exact) == code
        assert known.low <= known.place(exact) <= known.high


TINY = along(Type.NUMBER, Fraction(0), Fraction("1e-320"))  # narrower than what doubles tell apart in a cell of it


@pytest.mark.parametrize("known", [*LINES, TINY], ids=lambda known: f"{known.column.type}-{known.low}")
def test_what_stands_close_together_is_drawn_in_its_cell_too(known: NumberLine) -> None:
    """All rows in one narrow cell of a fine look, the last one or one in the middle."""
    cuts = tuple(known.divided(known.low, known.end(), FINE)) if known.high > known.low else ()
    for heavy in {len(cuts), len(cuts) // 2}:
        look = NoisyHistogram(known, cuts, tuple(900 * (place == heavy) for place in range(len(cuts) + 1)), 1.0)
        for parts in (cuts, cuts[heavy:]):
            inside = sum(one <= look.ends[heavy] for one in parts)
            with np.errstate(all="raise", under="ignore"):
                codes = np.full(50, inside, np.int64)
                drawn = drawn_values(known.binned(parts), codes, known, look, np.random.default_rng(1))
            for value in read(known.column.type, stored(known.binned(parts), codes, drawn)).plain():  # type: ignore[arg-type]
                place = known.place(Fraction(value) if isinstance(value, float) else value)
                slack = abs(place) / 2**50 + Fraction(1, 2**1073)
                assert look.ends[heavy] - slack <= place <= min(look.ends[heavy + 1], known.high) + slack


def test_a_bin_may_end_inside_a_cell_of_the_fine_look() -> None:
    known = along(Type.INTEGER, 0, 99)
    look = NoisyHistogram(known, (Fraction(50),), (900, 100), 1.0)
    ends, shares = weights(look, Fraction(10), Fraction(20))
    assert (ends, shares.tolist()) == ([10, 20], [1.0])
    ends, shares = weights(look, Fraction(40), Fraction(60))
    assert ends == [40, 50, 60]
    assert shares.tolist() == pytest.approx([0.9, 0.1])


def test_values_within_a_bin_follow_the_fine_look() -> None:
    known = along(Type.INTEGER, 0, 9)
    look = NoisyHistogram(known, tuple(Fraction(cut) for cut in range(1, 10)), (900, *([0] * 8), 100), 1.0)
    drawn = drawn_values(known.binned([]), np.zeros(1000, np.int64), known, look, np.random.default_rng(3))
    values = read(Type.INTEGER, stored(known.binned([]), np.zeros(1000, np.int64), drawn)).plain()
    assert set(values) == {0, 9}
    assert 850 < values.count(0) < 950


def test_listed_values_come_back_with_other_and_none() -> None:
    column = Column("c", Type.TEXT)
    one = ListedCells(column, ("a", "é"), other=True)
    packed = stored(one, np.array([0, 1, 2, 3]), None)
    assert read(Type.TEXT, packed).plain() == ["a", "é", "(other)", None]
    days = ListedCells(Column("d", Type.DATE), (datetime.date(2020, 1, 1),), null=False)
    assert read(Type.DATE, stored(days, np.array([0]), None)).plain() == [datetime.date(2020, 1, 1)]


@pytest.mark.parametrize(
    "array",
    [
        np.array([], np.int64),
        np.array([0, 255]),
        np.array([-1, 2**40]),
        np.array([[0.5], [2.0]]),
        np.array([True, False]),
    ],
)
def test_arrays_are_packed_and_unpacked(array: Any) -> None:
    again = unpack(pack(array))
    assert again.shape == array.shape
    assert (again == array).all()


def test_cells_in_words() -> None:
    assert Binned(Column("c", Type.INTEGER), (1, 5)).names == ("to 1", "1 to 5", "5 to", "(none)")
    assert ListedCells(Column("c", Type.TEXT), ("a",), other=True, null=False).names == ("a", "(other)")
