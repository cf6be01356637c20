"""Frames of pandas: no value decides how others are read."""

from __future__ import annotations

import collections
import datetime
import enum
import ipaddress
import pathlib
import uuid
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pandas
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Curator, Table
from discreet.engines.duckdb.frames import taken, written
from discreet.trusted.ring_a.storing import TYPES
from discreet.trusted.ring_a.table import Type

moment = pandas.Timestamp
ENDS = pandas.ArrowDtype(pyarrow.timestamp("us", "UTC"))
WEST, EAST = (datetime.timezone(datetime.timedelta(hours=hours)) for hours in (-5, 3))
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
    "periods": [pandas.Period("2020-01", "M"), pandas.Period("2020-02", "M")],
    "days": [pandas.Period("2020-01-01", "D"), pandas.Period("2020-02-01", "D")],
    "intervals": [pandas.Interval(0, 1), pandas.Interval(1, 2)],
    "moments at the ends": [datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=WEST), moment("2020-01-01", tz=WEST)],
    "moments at the beginning": [datetime.datetime(1, 1, 1, tzinfo=EAST), datetime.datetime(1, 1, 2, tzinfo=EAST)],
    "decimals": [Decimal("1.10"), Decimal("2"), Decimal("-0.5"), Decimal("1E+3")],
    "lists": [[1, 2.0, None], ["a"]],
}
ODD = [None, "odd", "1.0", 2.5, 7, True, 2**70, moment("2021-01-01"), datetime.date(2020, 1, 2)]
ODD += [
    1j,
    datetime.datetime(2021, 1, 1, tzinfo=WEST),
    datetime.datetime(9999, 12, 31, 23, tzinfo=WEST),
    Decimal("1.25"),
]


@cache
def connected() -> duckdb.DuckDBPyConnection:
    engine = duckdb.connect()
    engine.execute("SET TimeZone = 'UTC'")
    return engine


def loaded(column: pandas.Series, kind: Type) -> list[Any]:
    """What the engine makes of a column."""
    frame, _ = taken(pandas.DataFrame({"v": column}), {"v": kind})
    engine = connected()
    engine.register("frame", frame)
    rows = engine.execute(f"SELECT TRY_CAST(v AS {TYPES[kind]}) FROM frame").fetchall()
    engine.unregister("frame")
    return [repr(value + 0.0 if isinstance(value, float) else value) for (value,) in rows]  # -0.0 is loaded as 0.0


@pytest.mark.parametrize("categories", [False, True])
@pytest.mark.parametrize("kind", list(Type))
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_a_value_is_the_same_beside_any_other(values: list[Any], kind: Type, categories: bool) -> None:
    """One more value gives the column another dtype: floats, or objects. No other value is read otherwise for it."""
    if categories and isinstance(values[0], list):
        return  # which are none
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


def test_texts_of_common_values() -> None:
    """What declared values are compared with, whatever the column holds beside."""
    texts = [
        (True, "true"),
        (np.bool_(False), "false"),
        (1, "1"),
        (np.uint8(7), "7"),
        (2.0, "2"),
        (np.float64(2.5), "2.5"),
        (-0.0, "0"),
        (1e300, "1e+300"),
        (3 + 0j, "3"),
        (Fraction(4, 2), "2"),
        (Decimal("2.50"), "2.5"),
        (moment("2020-01-01 00:30"), "2020-01-01 00:30:00"),
        (moment("2020-01-01", tz=WEST), "2020-01-01 05:00:00"),
        (datetime.datetime(2020, 1, 1, tzinfo=EAST), "2019-12-31 21:00:00"),
        (datetime.date(2020, 1, 1), "2020-01-01"),
        (datetime.time(1, 2), "01:02:00"),
        (pandas.Timedelta("1h"), "0 days 01:00:00"),
        (pandas.Period("2020-01", "M"), "2020-01"),
        (pandas.Interval(0, 1.5), "(0, 1.5]"),
    ]
    for value, text in texts:
        assert written(value, Type.TEXT) == text
        assert loaded(pandas.Series([value, "odd"], dtype=object), Type.TEXT)[0] == repr(text)
        assert loaded(pandas.Series([value]), Type.TEXT) == [repr(text)]
    assert [written(one, Type.INTEGER) for one in (True, False, 2.5, 3.5)] == ["1", "0", "2", "4"]
    assert [written(one, Type.BOOLEAN) for one in (True, 0, 1.0)] == ["true", "0", "1"]


def test_what_has_no_text_of_its_own_is_missing() -> None:
    """As one text, several persons would be one; as one that is another in the next process, the table would be."""

    class Plain:
        pass

    none = [
        "a\ud800",
        "b\ud800",
        10**5000,
        {"a", "b"},
        Plain(),
        lambda: 1,
        Decimal("sNaN"),
        pandas.NA,
    ]
    none += [
        frozenset("a"),
        [{"a"}],
        collections.deque([{"a", "b"}]),
        np.datetime64("NaT"),
        float("nan"),
        Decimal("nan"),
    ]
    assert [written(value, Type.TEXT) for value in none] == [None] * len(none)
    assert written("", Type.TEXT) == ""
    assert written([1, (2.0, "a"), None], Type.TEXT) == "[1, [2, 'a'], NULL]"
    assert written({"a": np.arange(2), "b": None}, Type.TEXT) == "{'a': [0, 1]}"
    long = np.arange(5000)
    for whole in (np.array, pandas.Series, pandas.Index, pyarrow.array, lambda one: pyarrow.chunked_array([one])):
        assert written(whole(long), Type.TEXT) != written(whole(long + (long == 2500)), Type.TEXT)
    assert len({written(one, Type.TEXT) for one in (["a, b"], ["a", "b"], [None], ["None"], [1], ["1"])}) == 6
    assert len({written(Fraction(2**60 + one, 7), Type.TEXT) for one in range(14)}) == 14
    assert written({"b": 1, "a": 2}, Type.TEXT) == written({"a": 2, "b": 1}, Type.TEXT)
    flat = [uuid.UUID(int=5), pathlib.PurePosixPath("a/b"), b"ab", ipaddress.ip_address("10.0.0.1"), 1 + 2j]
    assert [written(one, Type.TEXT) for one in flat] == [str(one) for one in flat]
    shared: list[Any] = []
    chained: Any = collections.deque()
    for _ in range(100):
        shared, chained = [shared, shared], collections.deque([chained, chained])
    assert written(shared, Type.TEXT) is None
    assert written(chained, Type.TEXT) is None
    found = loaded(pandas.Series(["1", Decimal("sNaN"), Plain()], dtype=object), Type.TEXT)
    assert found == ["'1'", "None", "None"]


@pytest.mark.parametrize("kind", list(Type))
@pytest.mark.parametrize("unit", ["us", "ms", "s"])
def test_one_far_moment_in_a_zone_fails_for_nobody(kind: Type, unit: str) -> None:
    column = pandas.Series([moment("2020-01-01", tz=WEST)] * 2).dt.as_unit(unit)
    far = pandas.concat([column, pandas.Series([moment("9999-12-31 23:59:59", tz=WEST).as_unit(unit)])])
    for made in (
        lambda one: one,
        lambda one: one.astype("category"),
        lambda one: one.convert_dtypes(dtype_backend="pyarrow"),
    ):
        assert loaded(made(far), kind)[:2] == loaded(made(column), kind)


@pytest.mark.parametrize("kind", list(Type))
def test_a_value_is_the_same_in_every_dtype_that_holds_it(kind: Type) -> None:
    """How many digits Arrow's decimals have, in what moments count and in which zone they lie may follow from other
    values."""
    decimals = [Decimal("1.1"), Decimal("2"), Decimal("-0")]
    made = [pandas.Series(decimals), pandas.Series(decimals, dtype=pandas.ArrowDtype(pyarrow.decimal128(10, 2)))]
    moments = pandas.Series([moment("2020-01-01 00:30"), moment("9999-12-31 23:59:59")])
    zoned = moments.dt.tz_localize("UTC").dt.tz_convert("America/New_York")
    endless = pandas.Series(np.array([2**63 - 1, 1 - 2**63, 2**63 - 2], "datetime64[us]"))
    far = pandas.Series(pyarrow.array([2**62 + 1, 1]).cast(pyarrow.timestamp("us", "UTC")), dtype=ENDS)
    for columns in (
        made,
        [one.astype(dtype) for one in (moments, zoned) for dtype in (object, "category", one.dtype)],
        [moments, *(zoned.dt.tz_convert(zone) for zone in ("UTC", "Asia/Tokyo"))],
        [endless, endless.astype(object), endless.astype("category")],
        [far, far.astype("category")],
    ):
        found = [loaded(column, kind) for column in columns]
        assert all(one == found[0] for one in found), found


@pytest.mark.parametrize("kind", list(Type))
@pytest.mark.parametrize(
    ("arrow", "far"),
    [
        (pyarrow.date64(), 10**9 * 86_400_000),
        (pyarrow.date32(), 10**8),
        (pyarrow.time64("ns"), 86_400 * 10**9 - 1),
        (pyarrow.duration("s"), 10**17),
    ],
    ids=str,
)
def test_no_value_that_arrow_has_fails_for_everybody(kind: Type, arrow: Any, far: int) -> None:
    """Neither where Python has no such value: days and times far away."""
    raw = pyarrow.int32() if arrow == pyarrow.date32() else pyarrow.int64()

    def column(*values: int | None) -> pandas.Series:
        return pandas.Series(pyarrow.array(values, raw).cast(arrow), dtype=pandas.ArrowDtype(arrow))

    for one in (0, 1, 86_400_000):
        alone = loaded(column(one), kind)
        assert loaded(column(one, far, None), kind)[:1] == alone
        if not pyarrow.types.is_date(arrow):  # of such days pandas makes no categories
            for categories in ((one, far), (far, one)):
                beside = pandas.Series(pandas.Categorical.from_codes([0, 1, -1], column(*categories).array))
                assert [loaded(beside, kind)[categories.index(one)]] == alone


def test_gaps_in_a_sparse_column_fail_for_nobody() -> None:
    for kind in ("int64", "uint8", "bool"):
        for values in ([1, float("nan"), 0], [1, 0, 1]):
            sparse = pandas.arrays.SparseArray(values, dtype=pandas.SparseDtype(kind, float("nan")))
            assert loaded(pandas.Series(sparse), Type.INTEGER)[0] == "1"


def test_strings_of_python_are_read_like_objects() -> None:
    class Sex(str, enum.Enum):  # noqa: UP042 — its str() is another
        F = "F"

    column = pandas.Series(np.array([Sex.F, "F", "\ud800"], object), dtype=pandas.StringDtype("python"))
    for made in (column, column.astype(object)):
        assert loaded(made, Type.TEXT) == ["'F'", "'F'", "None"]


def test_what_stands_beside_the_rows_is_not_read() -> None:
    """Filtered, sorted or put together, with an index of any objects, a frame has the rows that it shows."""
    frame = pandas.DataFrame({"v": pandas.array([1, 3, 2, 1], dtype="int64[pyarrow]")})
    odd = frame.set_axis([lambda: 1, "x", 2, None], axis="index")
    odd.attrs = {"how": lambda: 1}
    columns = {"v": {"type": "text", "values": ["1", "2", "3"]}}
    for some in (frame[frame.v < 3], frame.sort_values("v"), odd, frame.assign(k=range(4)).set_index("k")):
        with Curator({"t": Table(some, columns=columns, one_row_per_person=True)}, epsilon=10**6) as one:
            counts = one.ask("SELECT v, COUNT(*) AS n FROM t GROUP BY v", epsilon=10**5).rows
        assert [row["n"] for row in counts[:3]] == [2, 1, int((some.v == 3).sum())]


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
    numbers: list[list[Any]] = [[1, 2, 0], [True, False], [2.0, 1.0], [Decimal("1.1"), Decimal("2")]]
    late = moment("2019-12-31 23:59:59.9999996")  # of the day before: the rest is cut off
    for values in [*numbers, [moment("2020-01-01 00:00:00.5")], [late], [late.tz_localize(WEST)]]:
        apart = [loaded(pandas.Series([value]), kind)[0] for value in values]
        for odd in (None, 2.5, 2**40, "odd", Decimal("1.25")):
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


def test_columns_that_the_engine_does_not_know_are_read_too() -> None:
    """What it has no type for is a text; a column with gaps, or of longer floats, is one of numbers. Values of a
    program's own class, which another process could not make again, fail nothing, declared or not."""

    class Arm(enum.Enum):
        LEFT = 1

    unknown = {
        "month": pandas.period_range("2020-01", periods=2, freq="M"),
        "band": pandas.cut([1, 2], [0, 1, 2]),
        "arm": pandas.Categorical([Arm.LEFT, None]),
        "what": [Arm.LEFT, lambda: 1],
        "gaps": pandas.arrays.SparseArray([0, 1]),
        "long": np.array([0, 1], np.longdouble),
    }
    columns: dict[str, Any] = {
        "month": {"type": "text", "values": ["2020-01", "2020-02"]},
        "band": {"type": "text", "values": ["(0, 1]", "(1, 2]"]},
        "gaps": {"type": "integer", "values": [0, 1]},
        "long": {"type": "integer", "values": [0, 1]},
    }
    few: dict[str, Any] = {"what": {"type": "text"}}
    for declared in (few, columns):
        table = Table(pandas.DataFrame(unknown), columns=declared, one_row_per_person=True)
        with Curator({"t": table}, epsilon=10**6) as one:
            assert one.ask("SELECT COUNT(*) AS n FROM t", epsilon=10**4).rows == [{"n": 2}]
            for name in declared.keys() & columns:
                counts = one.ask(f"SELECT {name}, COUNT(*) AS n FROM t GROUP BY {name}", epsilon=10**4).rows
                assert [row["n"] for row in counts[:2]] == [1, 1]


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
