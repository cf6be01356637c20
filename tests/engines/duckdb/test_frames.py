"""Frames of pandas: no value decides how others are read."""

from __future__ import annotations

import datetime
import enum
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


LONG = [np.int64(2**60 + 1), np.int64(2**63 - 1), np.int64(-(2**63)), np.uint64(2**63 + 5), 2**60 + 3]


@pytest.mark.parametrize("kind", list(Type))
def test_long_whole_numbers_are_exact_as_objects_too(kind: Type) -> None:
    alone = [loaded(pandas.Series([value]), kind)[0] for value in LONG]
    assert loaded(pandas.Series(LONG, dtype=object), kind) == alone
    assert loaded(pandas.Series([*LONG, "odd"], dtype=object), kind)[:-1] == alone
    if kind is Type.TEXT:
        assert alone == [repr(str(int(value))) for value in LONG]


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
@pytest.mark.parametrize("kind", list(Type))
def test_pandas_own_types_read_a_value_alike_beside_any_other(kind: Type, backend: Any) -> None:
    """Which of them a column has, `convert_dtypes` chooses by the rows."""
    for values in ([1, 2, 0], [True, False], [2.0, 1.0], [moment("2020-01-01 00:00:00.5")]):
        apart = [loaded(pandas.Series([value]), kind)[0] for value in values]
        for odd in (None, 2.5, 2**40, "odd"):
            beside = pandas.Series([*values, odd]).convert_dtypes(dtype_backend=backend)
            assert loaded(beside, kind)[: len(values)] == apart, (values, odd, beside.dtype)


@pytest.mark.parametrize("kind", list(Type))
def test_values_of_odd_classes_are_those_that_they_stand_for(kind: Type) -> None:
    class Sex(str, enum.Enum):  # noqa: UP042 — its str() is another
        F = "F"

    class Level(enum.IntEnum):
        LOW = 1

    pairs: list[tuple[Any, Any]] = [
        (Sex.F, "F"),
        (Level.LOW, 1),
        (np.datetime64("2020-01-01T00:30"), moment("2020-01-01 00:30")),
        (np.timedelta64(5, "ns"), pandas.Timedelta(5, "ns")),
        (datetime.timedelta(days=1), pandas.Timedelta("1 day")),
    ]
    for odd, plain in pairs:
        assert loaded(pandas.Series([odd, "odd"], dtype=object), kind)[0] == loaded(pandas.Series([plain]), kind)[0]


@pytest.mark.parametrize("kind", list(Type))
def test_no_value_fails_for_everybody(kind: Type) -> None:
    class Silent:
        def __str__(self) -> str:
            raise RuntimeError

    far = moment(np.datetime64("300000-01-01", "s"))
    seconds = pandas.Series([far, moment("2020-01-01").as_unit("s")]).astype("datetime64[s]")
    zoned = pandas.Series(np.array(["290000-01-01", "2020-01-01"], "datetime64[s]")).dt.tz_localize("UTC")
    for odd in (
        pandas.Series([far, "x"], dtype=object),
        pandas.Series([Silent(), "\ud800", np.timedelta64(1, "D"), 1j], dtype=object),
        pandas.Series([1, 1j]),
        seconds,
        zoned,
        seconds.astype("category"),
    ):
        assert len(loaded(odd, kind)) == len(odd)
    if kind is Type.DATE:
        assert loaded(pandas.Series([far, "x"], dtype=object), kind)[0] == loaded(pandas.Series([far]), kind)[0]


def test_a_frame_of_a_class_of_its_own_is_one_of_pandas() -> None:
    class Mine(pandas.DataFrame):
        pass

    columns = {"v": {"type": "text", "values": ["1", "2"]}}
    for rows in ([1, 1, 2], [1, 1, 2, None]):
        with Curator({"t": Table(Mine({"v": rows}), columns=columns, one_row_per_person=True)}, epsilon=10**6) as one:
            counts = one.ask("SELECT v, COUNT(*) AS n FROM t GROUP BY v", epsilon=10**5).rows
        assert [row["n"] for row in counts[:2]] == [2, 1]


def test_what_is_stated_of_categories() -> None:
    frame = pandas.DataFrame({"b": [True, False], "m": [moment("2020-01-01")] * 2, "i": [1, 2], "t": ["x", "y"]})
    table = Table(frame.astype("category"), columns=dict.fromkeys("bmit"), one_row_per_person=True)
    with Curator({"t": table}, epsilon=1) as one:
        assert [column.type for column in one.declaration.tables["t"].columns] == [
            "boolean",
            "timestamp",
            "number",
            "text",
        ]
