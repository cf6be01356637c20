"""Frames of pandas: no value decides how others are read."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Curator, Table
from discreet.engines.duckdb.frames import taken
from discreet.trusted.ring_a.storing import TYPES
from discreet.trusted.ring_a.table import Type

moment = pandas.Timestamp
VALUES: dict[str, list[Any]] = {
    "booleans": [True, False],
    "whole numbers": [0, 1, -3, 2**40, 20200101],
    "numbers": [0.5, 1.5, 2.5, -2.5, 3.0, -0.0, 0.1, 1e-7, 1e15, 1e16, 1e20, -1e19, 1e300, float("inf")],
    "short numbers": list(np.array([0.1, 2.5, 16777216, 1e20], np.float32)),
    "moments": [moment("2020-01-01"), moment("1700-02-03 23:59:59.999999"), moment("2020-01-01 00:00:00.5")],
    "short moments": [moment("2020-01-01 00:00:00.123456500"), moment("1960-01-01 23:59:59.999999999")],
    "moments in a zone": [moment("2020-01-01 00:30", tz="Europe/Berlin"), moment("2020-06-01 00:30:00.25", tz="UTC")],
    "times": [pandas.Timedelta("1 day"), pandas.Timedelta("1h")],
    "texts": ["a", "1.0", "true", "2020-01-01"],
    "dates": [datetime.date(2020, 1, 1)],
}
ODD = [None, "odd", "1.0", 2.5, 7, True, 2**70, moment("2021-01-01"), datetime.date(2020, 1, 2)]


def loaded(column: pandas.Series, kind: Type) -> list[Any]:
    """What the engine makes of a column."""
    frame, _ = taken(pandas.DataFrame({"v": column}), {"v": kind})
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        engine.register("frame", frame)
        rows = engine.execute(f"SELECT TRY_CAST(v AS {TYPES[kind]}) FROM frame").fetchall()
    return [repr(value + 0.0 if isinstance(value, float) else value) for (value,) in rows]  # -0.0 is loaded as 0.0


@pytest.mark.parametrize("categories", [False, True])
@pytest.mark.parametrize("kind", list(Type))
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_a_value_is_the_same_beside_any_other(values: list[Any], kind: Type, categories: bool) -> None:
    """One more value gives the column another dtype: floats, or objects. No other value is read otherwise for it."""
    for each in (values, *([value] for value in values)):
        alone = pandas.Series(each)
        found = loaded(alone.astype("category") if categories else alone, kind)
        for odd in ODD:
            beside = pandas.Series([*each, odd])
            assert loaded(beside.astype("category") if categories else beside, kind)[: len(each)] == found, odd


SINGLE = st.one_of(
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False),
    st.booleans(),
    st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)),
)


@given(values=st.lists(SINGLE, min_size=1, max_size=4), odd=st.sampled_from(ODD), kind=st.sampled_from(list(Type)))
def test_any_values_are_read_alike_beside_any_other(values: list[Any], odd: Any, kind: Type) -> None:
    apart = [loaded(pandas.Series([value]), kind)[0] for value in values]
    assert loaded(pandas.Series([*values, odd]), kind)[: len(values)] == apart


def test_one_missing_value_hides_nobody_s_text() -> None:
    """Neighbouring tables through the real engine: 1 became "1.0" for everybody, no declared value any more."""
    answers = []
    for rows in ([1, 1, 2], [1, 1, 2, None]):
        columns = {"v": {"type": "text", "values": ["1", "2"]}, "b": {"type": "integer", "min": 0, "max": 1}}
        frame = pandas.DataFrame({"v": rows, "b": [True, True, False, None][: len(rows)]})
        with Curator({"t": Table(frame, columns=columns, one_row_per_person=True)}, epsilon=10**6) as curator:
            counts = curator.ask("SELECT v, COUNT(*) AS n, SUM(b) AS s FROM t GROUP BY v", epsilon=10**5).rows
        answers.append([(row["v"], row["n"], row["s"]) for row in counts[:2]])
    assert answers[0] == answers[1] == [("1", 2, 2), ("2", 1, 0)]


def test_what_cannot_be_written_is_no_value_and_fails_for_nobody() -> None:
    far = datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=3)))
    values = pandas.Series([10**5000, Fraction(10**400), far, 1], dtype=object)
    for kind in Type:
        assert len(loaded(values, kind)) == 4
    assert loaded(values, Type.INTEGER) == ["None", "None", "None", "1"]
    seconds = pandas.Series(np.array(["300000-01-01", "2020-01-01"], "datetime64[s]"))
    assert [len(loaded(seconds, kind)) for kind in (Type.DATE, Type.TEXT)] == [2, 2]


def test_columns_of_one_name_stay_apart() -> None:
    frame = pandas.DataFrame([[1, 2.5, moment("2020-01-01").as_unit("ns")]] * 2, columns=["x", "x", "x"])
    found, _ = taken(frame, {"x": Type.TEXT})
    assert found.iloc[0].tolist() == [1, "2.5", "2020-01-01 00:00:00"]
