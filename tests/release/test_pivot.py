"""Cross tables: the numbers of an answer in other places, each with its own interval."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Curator, QuestionError, Release
from discreet.release.content import Cost, ReleaseContent
from discreet.release.pivot import pivoted

TWO = "SELECT city, smoker, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY city, smoker"


@pytest.fixture(scope="module")
def release(curator: Curator) -> Release:
    return curator.ask(TWO, epsilon=5)


def test_each_number_keeps_its_interval(release: Release) -> None:
    table = release.pivot("city", "smoker", "n")
    assert set(table.columns) == {"city", "False", "True", "NULL"}
    rows = {row["city"]: (row, ends) for row, ends in zip(table.rows, table.intervals, strict=True)}
    for row, ends, both in zip(release.rows, release.intervals, release.simultaneous(), strict=True):
        name = "NULL" if row["smoker"] is None else str(row["smoker"])
        assert rows[row["city"]][0][name] == row["n"]
        assert rows[row["city"]][1][name] == ends["n"]
        place = [one["city"] for one in table.rows].index(row["city"])
        assert table.simultaneous()[place][name] == both["n"]
    assert (table.cost, table.bounds, table.charged) == (release.cost, release.bounds, release.charged)


def test_the_last_key_stands_across_where_none_is_named(curator: Curator) -> None:
    counts = curator.ask("SELECT city, smoker, COUNT(*) AS n FROM visits GROUP BY city, smoker", epsilon=5)
    assert counts.pivot().rows == counts.pivot("city", "smoker", "n").rows
    assert counts.pivot(rows="smoker").rows == counts.pivot(columns="city").rows
    assert [row["smoker"] for row in counts.pivot(columns="city").rows] == list(
        dict.fromkeys(row["smoker"] for row in counts.rows)
    )


def test_it_is_shown_saved_and_drawn_like_any_other(release: Release, tmp_path: Path) -> None:
    table = release.pivot(value="a")
    assert "±" in repr(table)
    assert "<table>" in table._repr_html_()
    with table.save(tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        (first, *_others) = csv.DictReader(file)
    assert {"city", "True", "True_low", "True_high"} <= first.keys()
    assert table.plot().axes
    assert table.to_pandas().shape == (4, 10)


def test_numbers_and_dates_come_in_their_order(curator: Curator) -> None:
    ages = curator.ask("SELECT city, FLOOR(age / 10) AS decade, COUNT(*) AS n FROM visits GROUP BY 1, 2", epsilon=5)
    across = [name for name in ages.pivot().columns if name != "city"]
    assert across == ["0", "1", "2", "NULL"]
    days = curator.ask("SELECT day, smoker, COUNT(*) AS n FROM visits GROUP BY 1, 2 ORDER BY n", epsilon=5)
    columns = days.pivot("smoker", "day").columns[1:]
    assert columns == ["2024-01-01", "2024-01-04", "2024-01-05", "NULL"]


def test_groups_that_are_not_shown_are_empty_cells(curator: Curator) -> None:
    some = curator.ask(f"{TWO} HAVING smoker OR city = 'north'", epsilon=5).pivot(value="n")
    shown = [row[name] for row in some.rows for name in some.columns[1:]]
    assert None in shown
    assert "NULL" in repr(some)
    columns = some.to_columns()
    for name in some.columns[1:]:
        for value, low in zip(columns[name], columns[f"{name}_low"], strict=True):
            assert (value is None) == (low is None)


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        ({}, 'pivot(value="n")'),
        ({"value": "city"}, 'pivot(value="n")'),
        ({"value": 3}, 'pivot(value="n")'),
        ({"rows": "town", "value": "n"}, 'pivot(rows="city", columns="smoker")'),
        ({"rows": "city", "columns": "city", "value": "n"}, 'pivot(rows="city", columns="smoker")'),
        ({"rows": ["city", "smoker"], "value": "n"}, 'pivot(rows="city", columns="smoker")'),
        ({"rows": 3, "value": "n"}, 'pivot(rows="city", columns="smoker")'),
        ({"columns": [[]], "value": "n"}, 'pivot(rows="city", columns="smoker")'),
    ],
)
def test_what_is_no_table_is_refused(arguments: dict[str, Any], fix: str, release: Release) -> None:
    with pytest.raises(QuestionError) as refused:
        release.pivot(**arguments)
    assert refused.value.fix == f"write {fix}"


def test_one_key_and_left_out_keys_are_refused(curator: Curator) -> None:
    with pytest.raises(QuestionError, match="needs two keys"):
        curator.ask("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=5).pivot()
    three = curator.ask("SELECT city, smoker, day, COUNT(*) AS n FROM visits GROUP BY 1, 2, 3", epsilon=5)
    with pytest.raises(QuestionError, match="several numbers fall into one cell"):
        three.pivot("city", "smoker")
    assert len(three.pivot(["city", "day"], "smoker").rows) == 16
    assert len(three.pivot("city", ["smoker", "day"]).rows) == 4
    assert len(three.pivot("city", ["smoker", "day"]).columns) == 1 + 3 * 4


NAMES = st.sampled_from(["a", "b", "c", "n", "NULL", "a_", None])


@given(st.lists(st.tuples(NAMES, NAMES), unique=True, min_size=1))
def test_no_number_is_lost_whatever_the_keys_are_called(keys: list[tuple[str | None, str | None]]) -> None:
    rows = [{"a": one, "b": other, "n": place} for place, (one, other) in enumerate(keys)]
    holds = ReleaseContent(
        columns=("a", "b", "n"),
        types={"a": "text", "b": "text"},
        rows=rows,
        cost=Cost(epsilon=1.0, delta=0.0),
        mechanisms=(),
        bounds=(),
        intervals=[{"n": (place, place + 1)} for place in range(len(rows))],
    )
    made = pivoted(holds, None, None, None)
    found = sorted(value for row in made.rows for name, value in row.items() if name != "a" and value is not None)
    assert found == list(range(len(keys)))
    assert len(set(made.columns)) == len(made.columns)
    for row, ends in zip(made.rows, made.intervals, strict=True):
        assert all(ends[name][0] == row[name] for name in ends)
