"""Pictures of answers: a notebook shows them, nothing of the answer is missing, and each kind of key has its kind."""

from __future__ import annotations

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
    assert figure._repr_png_().startswith(b"\x89PNG")


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
