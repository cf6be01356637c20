"""Columns that are sums of others: not measured, computed in the finished rows."""

from __future__ import annotations

import datetime
import tomllib
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.catalog import declare
from discreet.errors import DeclarationError, QuestionError
from discreet.synthesis.publication import PublishOptions, publication

DAY = datetime.date(2020, 1, 1)
COLUMNS: dict[str, Any] = {
    "cost": {"type": "number"},
    "paid": {"type": "number", "min": 0, "max": 90, "step": 0.01, "nulls": False},
    "owed": {"type": "number", "min": 0, "max": 90, "step": 0.01},
    "children": {"type": "integer", "min": 0, "max": 9, "nulls": False},
    "adults": {"type": "integer", "min": 1, "max": 9, "nulls": False},
    "persons": {"type": "integer"},
    "came": {"type": "date", "min": DAY, "max": DAY + datetime.timedelta(days=300), "nulls": False},
    "days": {"type": "integer", "min": 0, "max": 40},
    "left": {"type": "date", "min": DAY, "max": DAY + datetime.timedelta(days=300)},
    "free": {"type": "text"},
}
SUMS = {"cost": ["paid", "owed"], "persons": ["children", "adults"], "left": ["came", "days"]}


def families(count: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    paid, owed = (np.round(rng.random(count) * 90, 2) for _ in range(2))
    children, adults = rng.integers(0, 4, count), rng.integers(1, 3, count)
    came, days = rng.integers(0, 200, count), rng.poisson(7, count).clip(0, 40)
    frame = pd.DataFrame(
        {
            "cost": np.round(paid + owed, 2),
            "paid": paid,
            "owed": owed,
            "children": children,
            "adults": adults,
            "persons": children + adults,
            "came": [DAY + datetime.timedelta(days=int(one)) for one in came],
            "days": pd.array(days, "Int64"),
            "left": [DAY + datetime.timedelta(days=int(one)) for one in came + days],
            "free": "x",
        }
    )
    frame.loc[rng.random(count) < 0.2, ["owed", "cost"]] = None
    frame.loc[rng.random(count) < 0.2, ["days", "left"]] = None
    return frame


def curator(count: int, **more: Any) -> discreet.Curator:
    table = discreet.Table(families(count), columns=COLUMNS, one_row_per_person=True, **{"sums": SUMS, **more})
    return discreet.Curator({"families": table}, epsilon=10, delta=1e-5, engine={"memory_gib": 4})


def test_sums_are_those_of_the_made_up_rows(tmp_path: Any) -> None:
    """Of money, whole numbers, and a date with days; without a value where a part has none; in files too."""
    with curator(2000) as holder:
        release = holder.publish("families", epsilon=5)
    assert set(release.columns) == set(COLUMNS)
    assert not {"cost", "persons", "left"} & {name for one in release.measured for name in one["columns"]}
    assert not {"cost", "persons", "left"} & release.columns_left_out.keys()
    for row in release.rows:
        assert row["persons"] == row["children"] + row["adults"]
        cost = None if row["owed"] is None else round(row["paid"] + row["owed"], 2)
        assert row["cost"] == cost
        left = None if row["days"] is None else row["came"] + datetime.timedelta(days=row["days"])
        assert row["left"] == left
    made = release.to_pandas()
    assert 0.1 < made.left.isna().mean() < 0.3
    stay = (pd.to_datetime(made.left) - pd.to_datetime(made.came)).dt.days
    assert 5 < stay.mean() < 12  # 7 in truth, and what noise puts into a long tail
    (stated,) = tomllib.loads(release.declaration)["tables"].values()
    assert stated["columns"]["persons"] == {"type": "integer", "min": 1, "max": 18}
    assert stated["columns"]["left"] == {"type": "date", "min": DAY, "max": DAY + datetime.timedelta(days=340)}
    assert "persons is not measured: it is children + adults of the same row" in release.bounds
    answer = release.ask("SELECT persons, COUNT(*) AS n FROM families GROUP BY persons")
    assert answer.within is None
    for name in ("made.json", "made.duckdb", "made.parquet", "made.html"):
        release.save(tmp_path / name)
    assert release.plot() is not None
    assert discreet.published(tmp_path / "made.json").rows == release.rows
    with discreet.Curator({"made": discreet.Table(release, public=True)}, epsilon=1) as free:
        total = free.ask("SELECT SUM(persons) AS n FROM made").rows[0]["n"]
    assert total == sum(row["persons"] for row in release.rows)


def test_of_columns_of_which_a_part_is_left_out_it_is_a_column_like_others() -> None:
    with curator(300) as holder:
        release = holder.publish("families", epsilon=1, columns=["left", "came"])
        assert set(release.columns) == {"left", "came"}
        assert "left" in {name for one in release.measured for name in one["columns"]}
        part = holder.publish("families", epsilon=1, columns=["paid", "COST", "owed"])
    assert part.columns == ["paid", "owed", "cost"]


def declared(sums: Any, **more: Any) -> Any:
    table = {"source": "t.csv", "one_row_per_person": True, "columns": COLUMNS, "sums": sums, **more}
    return declare({"budget": {"epsilon": 1, "delta": Fraction(1, 10**6)}, "tables": {"t": table}})


def test_a_sum_is_no_part_of_what_is_measured() -> None:
    asked = PublishOptions(table="t", epsilon="0.5")
    with_sum, without = publication(declared({"left": ["came", "days"]}), asked), publication(declared({}), asked)
    assert {one.column.name for one in without.columns} - {one.column.name for one in with_sum.columns} == {"left"}
    assert len(with_sum.schedule.singles) == len(without.schedule.singles) - 1
    assert len(with_sum.parts) == len(without.parts) + 1


FAULTS: list[tuple[Any, dict[str, Any], str]] = [
    ([], {}, "not a valid list of sums"),
    ({"cost": "paid"}, {}, "not a valid list of sums"),
    ({"cost": ["paid"]}, {}, "not a valid list of sums"),
    ({"cost": ["paid", 3]}, {}, "not a valid list of sums"),
    ({"cost": ["paid", "nothing"]}, {}, "a column that is not declared"),
    ({"nothing": ["paid", "owed"]}, {}, "a column that is not declared"),
    ({"cost": ["paid", "free"]}, {}, "the bounds of free are not declared"),
    ({"cost": ["paid", "paid"]}, {}, "names a column twice"),
    ({"left": ["came", "days"], "cost": ["paid", "left"]}, {}, "left is a sum itself"),
    ({"persons": ["children", "paid"]}, {}, "persons is integer, and its parts integer, number"),
    ({"left": ["days", "adults"]}, {}, "left is date, and its parts integer, integer"),
    ({"free": ["children", "adults"]}, {}, "free is text"),
    ({"left": ["came", "days"]}, {"orders": [["came", "left"]]}, "orders says something of left too"),
    ({"left": ["came", "days"]}, {"impossible": [{"left": DAY}]}, "impossible says something of left too"),
    ({"persons": ["children", "adults"]}, {"person": "persons"}, "person says something of persons too"),
]


@pytest.mark.parametrize(("sums", "more", "words"), FAULTS)
def test_faults_are_named(sums: Any, more: dict[str, Any], words: str) -> None:
    with pytest.raises(DeclarationError) as error:
        declared(sums, **more)
    assert words in str(error.value)


def test_sums_that_no_date_or_number_can_be_are_refused() -> None:
    far = {"type": "integer", "min": 0, "max": 2**63 - 1}
    for name, parts in (("left", ["came", "days"]), ("persons", ["days", "adults"])):
        with pytest.raises(DeclarationError, match="any more"):
            declared({name: parts}, columns={**COLUMNS, "days": far})


def test_bins_of_a_sum_are_refused_before_anything_is_spent() -> None:
    with curator(20) as holder:
        with pytest.raises(QuestionError, match="computed from other columns"):
            holder.publish("families", epsilon=1, bins={"LEFT": 3})
        assert holder.budget.used == 0


def test_a_sum_is_no_target_and_says_that_a_target_is_measured() -> None:
    with curator(20) as holder:
        with pytest.raises(
            QuestionError, match="a target is a measured column, and cost is computed from others"
        ) as no:
            holder.publish("families", epsilon=1, target="COST")
        assert no.value.fix.startswith("name one of paid, owed, children, ")
        assert holder.budget.used == 0


def test_a_sum_has_the_digits_of_its_parts_however_small_it_is_beside_them() -> None:
    money = {"type": "number", "min": -1_000_000_000, "max": 1_000_000_000, "step": 0.01, "nulls": False}
    frame = pd.DataFrame({"a": [999_999_999.99, 5.25] * 200, "b": [-999_999_999.26, -4.5] * 200})
    columns = {"a": money, "b": money, "s": {"type": "number"}}
    frame["s"] = frame.a + frame.b
    table = discreet.Table(frame, one_row_per_person=True, columns=columns, sums={"s": ["a", "b"]})
    with discreet.Curator({"t": table}, epsilon=50, delta=1e-4) as holder:
        made = holder.publish("t", epsilon=20).to_pandas()
    hundredths = (made.a * 100).round() + (made.b * 100).round()
    assert (made.s == hundredths / 100).all()


def test_a_sum_that_is_declared_twice_is_refused() -> None:
    columns = {name: {"type": "integer", "min": 0, "max": 9} for name in "ab"} | {"x": {"type": "integer"}}
    frame = pd.DataFrame({"a": [1], "b": [2], "x": [3]})
    table = discreet.Table(frame, one_row_per_person=True, columns=columns, sums={"x": ["a", "b"], "X": ["a", "b"]})
    with pytest.raises(DeclarationError, match="it is there twice"):
        discreet.Curator({"t": table}, epsilon=1)
