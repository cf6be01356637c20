"""Pictures of answers: a notebook shows them, nothing of the answer is missing, and each kind of key has its kind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, timedelta

import pandas as pd
import pytest

from discreet import Curator, Table, Workload

DAYS = [date(2024, 1, 1) + timedelta(days=day) for day in range(100)]
FRAME = pd.DataFrame(
    {
        "day": [DAYS[i % 100] for i in range(2000)],
        "code": [f"c{i % 80}" for i in range(2000)],
        "age": [i % 40 for i in range(2000)],
        "sex": ["f" if i % 3 else "m" for i in range(2000)],
    }
)


@pytest.fixture(scope="module")
def curator() -> Iterator[Curator]:
    columns = {
        "day": {"type": "date", "values": DAYS},
        "code": [f"c{i}" for i in range(80)],
        "age": {"type": "integer", "min": 0, "max": 39, "nulls": False},
        "sex": {"type": "text", "values": ["f", "m"], "nulls": False},
    }
    table = Table(FRAME, one_row_per_person=True, columns=columns)
    with Curator({"t": table}, epsilon=1e6, delta=1e-6) as curator:
        yield curator


def test_a_notebook_shows_the_picture(curator: Curator) -> None:
    figure = curator.ask("SELECT sex, COUNT(*) AS n FROM t GROUP BY sex", epsilon=5).plot()
    picture, told = figure._repr_png_()
    assert picture.startswith(b"\x89PNG")
    assert told["alt"].startswith("Bars or points with error bars of each group; n: from ")


def test_all_rows_are_bars(curator: Curator) -> None:
    release = curator.ask("SELECT code, COUNT(*) AS n FROM t GROUP BY code", epsilon=5)
    (axis,) = release.plot().axes
    assert len(axis.patches) == len(release.rows) == 81
    assert [bar.get_width() for bar in axis.patches] == [row["n"] for row in release.rows]
    assert [label.get_text() for label in axis.get_yticklabels()][-1] == "NULL"


def test_dates_and_numbers_are_a_line_in_a_band(curator: Curator) -> None:
    release = curator.ask("SELECT day, COUNT(*) AS n, AVG(age) AS a FROM t GROUP BY day ORDER BY n DESC", epsilon=5)
    axes = release.plot().axes
    assert [axis.get_ylabel() for axis in axes] == ["n, 95 % intervals", "a, 95 % intervals"]
    (line,), (band,) = axes[0].lines, axes[0].collections
    assert list(line.get_xdata()) == DAYS
    by_day = {
        row["day"]: (row["n"], interval["n"]) for row, interval in zip(release.rows, release.intervals, strict=True)
    }
    assert list(line.get_ydata()) == [by_day[day][0] for day in DAYS]
    box = band.get_datalim(axes[0].transData)
    assert (box.y0, box.y1) == (min(by_day[day][1][0] for day in DAYS), max(by_day[day][1][1] for day in DAYS))
    assert axes[0].get_title(loc="left").startswith("where day is NULL: ")
    (axis,) = curator.ask("SELECT age, COUNT(*) AS n FROM t GROUP BY age", epsilon=5).plot().axes
    assert len(axis.lines[0].get_xdata()) == 40


def test_bins_are_a_histogram(curator: Curator) -> None:
    release = curator.ask("SELECT FLOOR(age / 5) * 5 AS bin, COUNT(*) AS n FROM t GROUP BY 1", epsilon=5)
    (axis,) = release.plot().axes
    assert [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in axis.patches] == [
        (row["bin"], 5, row["n"]) for row in release.rows
    ]
    assert axis.get_xlabel() == "bin, in bins of 5"
    assert len(axis.collections) == 1  # the intervals


def test_a_date_beside_a_few_groups_is_a_line_for_each(curator: Curator) -> None:
    release = curator.ask("SELECT sex, day, COUNT(*) AS n FROM t GROUP BY sex, day", epsilon=5)
    (axis,) = release.plot().axes
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["f", "m"]
    for line, sex in zip(axis.lines, ["f", "m"], strict=True):
        assert list(line.get_xdata()) == DAYS
        counts = {row["day"]: row["n"] for row in release.rows if row["sex"] == sex}
        assert list(line.get_ydata()) == [counts[day] for day in DAYS]
    assert len(axis.collections) == 2


def test_two_keys_are_a_map(curator: Curator) -> None:
    release = curator.ask("SELECT sex, FLOOR(age / 10) AS decade, COUNT(*) AS n FROM t GROUP BY 1, 2", epsilon=5)
    (axis,) = release.plot().axes
    cells = axis.images[0].get_array()
    assert cells.shape == (2, 4)
    for row in release.rows:
        assert cells[["f", "m"].index(row["sex"])][int(row["decade"])] == row["n"]
    words = {text.get_text() for text in axis.texts}
    assert len(axis.texts) == 8
    assert all("±" in one for one in words)
    both = curator.ask(
        "SELECT sex, FLOOR(age / 10) AS decade, COUNT(*) AS n, AVG(age) AS a FROM t GROUP BY 1, 2", epsilon=5
    )
    assert [axis.get_title() for axis in both.plot().axes] == ["n, 95 % intervals", "a, 95 % intervals"]


def test_a_large_map_says_its_largest_error(curator: Curator) -> None:
    release = curator.ask("SELECT code, age, COUNT(*) AS n FROM t GROUP BY code, age", epsilon=5)
    axis, beside = release.plot().axes
    assert axis.images[0].get_array().shape == (81, 40)
    assert not axis.texts
    assert beside.get_label() == "<colorbar>"
    most = max(
        high - row["n"] for row, one in zip(release.rows, release.intervals, strict=True) for _, high in [one["n"]]
    )
    assert axis.get_title() == f"n, 95 % intervals of at most ±{most:,.3g}"


def test_cells_that_are_not_shown_are_empty(curator: Curator) -> None:
    release = curator.ask("SELECT sex, age, COUNT(*) AS n FROM t GROUP BY sex, age HAVING n < 25 OR n > 33", epsilon=5)
    (axis,) = release.plot().axes
    assert axis.images[0].get_array().mask.any() or any(map(math.isnan, axis.images[0].get_array().ravel()))
    (axis,) = (
        curator.ask("SELECT sex, age, COUNT(*) AS n FROM t WHERE age < 2 GROUP BY 1, 2 HAVING n < -99", epsilon=5)
        .plot()
        .axes
    )
    assert not axis.patches


def test_keys_that_are_left_out_of_the_list_make_no_line(curator: Curator) -> None:
    release = curator.ask("SELECT day, COUNT(*) AS n FROM t GROUP BY day, sex", epsilon=5)
    (axis,) = release.plot().axes
    assert len(release.rows) == 202
    assert len(axis.patches) == 100
    assert axis.get_title(loc="left") == "the first 100 of 202 groups; the table has all"


def test_medians_are_drawn(curator: Curator) -> None:
    release = curator.ask("SELECT sex, MEDIAN(age) AS middle FROM t GROUP BY sex", epsilon=5)
    (axis,) = release.plot().axes
    assert axis.get_xlabel().startswith("middle")
    drawn = [bar.get_width() for bar in axis.patches] or list(axis.lines[0].get_xdata())
    assert drawn == [row["middle"] for row in release.rows]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["f", "m"]


def test_labels_of_a_workload_hold_no_variance(curator: Curator) -> None:
    release = curator.answer(Workload("t").marginals(["sex"]), epsilon=5)
    (axis,) = release.plot().axes
    assert [row["count"] for row in release.rows] == [bar.get_width() for bar in axis.patches]
    for label, row in zip(axis.get_yticklabels(), release.rows, strict=True):
        assert str(row["variance"]) not in label.get_text()
        assert row["sex"] in label.get_text()
