"""Quantiles of dates and timestamps: whole days and seconds on a lattice, and dates again wherever they are read."""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pandas = pytest.importorskip("pandas")

import discreet  # noqa: E402
from discreet.sql import lower  # noqa: E402

DAY, MOMENT = datetime.date, datetime.datetime
EXACT = 1e20
DAYS = [DAY(2020, 1, 1) + datetime.timedelta(days=7 * week) for week in range(101)]
MOMENTS = [MOMENT(2020, 1, 1) + datetime.timedelta(hours=5 * turn) for turn in range(101)]


@pytest.fixture(scope="module")
def curator() -> Iterator[discreet.Curator]:
    columns = {
        "d": {"type": "date", "min": DAY(2020, 1, 1), "max": DAY(2025, 12, 31)},
        "t": {"type": "timestamp", "min": MOMENT(2020, 1, 1), "max": MOMENT(2020, 1, 31)},
        "k": ["a", "b"],
        "free": {"type": "date"},
        "late": {"type": "date", "min": DAY(1, 1, 2), "max": DAY(9999, 12, 30)},
        "early": {"type": "date", "min": DAY(1, 1, 2), "max": DAY(9999, 12, 30)},
    }
    days: list[Any] = [*DAYS, None]
    frame = pandas.DataFrame({"d": days, "t": [*MOMENTS, None], "free": days})
    frame["k"] = ["a" if day is None or day < DAYS[40] else "b" for day in days]
    frame = frame.assign(late=[DAY(9999, 12, 30)] * 102, early=[DAY(1, 1, 2)] * 102)
    table = discreet.Table(frame, one_row_per_person=True, columns=columns)
    with discreet.Curator({"v": table}, epsilon=10**25) as curator:
        yield curator


def test_dates_are_dates_again(curator: discreet.Curator) -> None:
    question = "SELECT MIN(d), MAX(d), MEDIAN(d), PERCENTILE_CONT(d, 0.25) AS q, APPROX_QUANTILES(d, 2) AS qs FROM v"
    release = curator.ask(question, epsilon=EXACT)
    middle, quarter = DAYS[50], DAYS[25]
    assert list(release.rows[0].values()) == [DAYS[0], DAYS[-1], middle, quarter, [DAYS[0], middle, DAYS[-1]]]
    assert release.columns == ["min_d", "max_d", "median_d", "q", "qs"]
    assert any(line.startswith("qs: off by at most") and "steps of 1 day" in line for line in release.bounds)
    assert str(middle) in repr(release)
    assert f"[{DAYS[0]}, {middle}, {DAYS[-1]}]" in repr(release)
    assert "datetime" not in repr(release)


def test_timestamps_are_timestamps_again(curator: discreet.Curator) -> None:
    """A month on a lattice of minutes: seconds would be 2.6 million buckets."""
    release = curator.ask("SELECT k, MAX(t) AS last FROM v GROUP BY k", epsilon=EXACT)
    assert release.rows[:2] == [{"k": "a", "last": MOMENTS[39]}, {"k": "b", "last": MOMENTS[100]}]
    assert any(line.startswith("last: off") and line.endswith("steps of 1 minute") for line in release.bounds)


def test_having_order_and_limit(curator: discreet.Curator) -> None:
    question = "SELECT k, MAX(d) AS last FROM v GROUP BY k"
    (row,) = curator.ask(f"{question} HAVING MAX(d) >= '2021-06-01' AND k = 'b'", epsilon=EXACT).rows
    assert row["last"] == DAYS[-1]
    first = curator.ask(f"{question} HAVING last < DATE '2021-06-01' AND k IS NOT NULL", epsilon=EXACT).rows
    assert [row["k"] for row in first] == ["a"]
    ordered = curator.ask(f"{question} HAVING k IS NOT NULL ORDER BY last DESC LIMIT 1", epsilon=EXACT).rows
    assert [row["last"] for row in ordered] == [DAYS[-1]]


def test_everywhere_it_is_read(curator: discreet.Curator, tmp_path: Path) -> None:
    release = curator.ask(
        "SELECT k, MAX(d) AS d, MIN(t) AS t, APPROX_QUANTILES(d, 2) AS qs FROM v GROUP BY k", epsilon=EXACT
    )
    content = json.loads(release.to_json())
    assert content["rows"][1]["d"] == "2021-12-01"
    assert content["types"] == {"k": "text", "d": "date", "t": "timestamp", "qs": "list of date"}
    assert str(release.to_arrow().schema.field("d").type) == "date32[day]"
    assert str(release.to_arrow().schema.field("qs").type).startswith("list<")
    assert release.to_pandas()["t"].dtype.kind == "M"
    with release.save(tmp_path / "a.csv").open() as file:
        assert next(row for row in csv.DictReader(file) if row["k"] == "b")["qs"].startswith("[2020-10-07, ")
    drawn = release.plot().axes
    assert [axis.get_xlabel() for axis in drawn] == ["d", "t"]
    assert all(type(axis.xaxis.get_major_locator()).__name__ == "AutoDateLocator" for axis in drawn)


def test_conditions_subqueries_and_reports(curator: discreet.Curator) -> None:
    asked = {
        "MAX(d) FILTER (WHERE k = 'a')": DAYS[39],
        "MAX(CASE WHEN k = 'a' THEN d END)": DAYS[39],
        "MAX(free, contribution_bounds_per_row => (DATE '2020-01-01', '2021-01-01'))": DAY(2021, 1, 1),
        "MAX(t, contribution_bounds_per_row => ('2020-01-01 00:00:00', '2020-01-01 12:00:00'))": MOMENT(2020, 1, 1, 12),
        "MIN(late)": DAY(9999, 11, 29),  # steps of 64 days; the first ends before the calendar begins
        "MAX(early)": DAY(1, 1, 1),
        "MAX(d, report_format => JSON)": '{"result": {"value": "2021-12-01"}}',
        "MAX(UNIX_DATE(d))": (DAYS[-1] - DAY(1970, 1, 1)).days,
    }
    for aggregate, expected in asked.items():
        (row,) = curator.ask(f"SELECT {aggregate} AS x FROM v", epsilon=EXACT).rows
        assert row["x"] == expected, aggregate


@pytest.mark.parametrize(
    ("question", "fix"),
    [
        ("SELECT AVG(d) AS a FROM v", "AVG(DATE_DIFF(d, DATE '2000-01-01', DAY))"),
        ("SELECT SUM(t) AS a FROM v", "SUM(DATE_DIFF(t, DATE '2000-01-01', DAY))"),
        ("SELECT STDDEV(d) AS a FROM v", "STDDEV(DATE_DIFF(d, DATE '2000-01-01', DAY))"),
    ],
)
def test_what_dates_have_none_of(curator: discreet.Curator, question: str, fix: str) -> None:
    """What the refusal says to write is answered."""
    with pytest.raises(discreet.QuestionError, match=r"there is no \w+ of a") as refused:
        curator.explain(question, epsilon=1)
    assert fix in refused.value.fix
    assert curator.ask(f"SELECT {fix} AS a FROM v", epsilon=EXACT).rows[0]["a"] > 0


@pytest.mark.parametrize(
    ("question", "fix"),
    [
        ("SELECT MAX(free) FROM v", "DATE '2000-01-01'"),
        ("SELECT MAX(free + INTERVAL 2 DAY - INTERVAL 1 DAY) FROM v", "DATE '2000-01-01'"),
        ("SELECT MAX(d, contribution_bounds_per_row => (1, 3)) FROM v", "DATE '2000-01-01'"),
        ("SELECT MEDIAN(k) FROM v", "numbers"),
    ],
)
def test_refusals(curator: discreet.Curator, question: str, fix: str) -> None:
    with pytest.raises(discreet.QuestionError) as refused:
        curator.explain(question, epsilon=1)
    assert fix in refused.value.fix


def test_days_and_dates_are_measured_once(curator: discreet.Curator) -> None:
    """They are the same numbers, read in two ways: asked for later, the other is free."""
    plan = lower("SELECT MAX(d) AS a, MAX(UNIX_DATE(d)) AS b FROM v", curator.declaration).plan
    assert len(plan.specials) == 1
    first = curator.ask("SELECT MEDIAN(d) AS m FROM v WHERE k = 'a'", epsilon=1)
    again = curator.ask("SELECT MEDIAN(UNIX_DATE(d)) AS m FROM v WHERE k = 'a'", epsilon=1)
    assert not again.charged
    assert DAY(1970, 1, 1) + datetime.timedelta(days=again.rows[0]["m"]) == first.rows[0]["m"]
