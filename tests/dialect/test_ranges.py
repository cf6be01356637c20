"""Dates made of others lie where the rules say, in the real engine; so their quantiles need no named bounds."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from dialect_tools import Plain
from discreet.catalog import declare
from discreet.dialect.ranges import interval
from discreet.sql.expressions import ExpressionReader
from discreet.sql.grammar import parse
from discreet.trusted.ring_a.expressions import ColumnOf, Expression
from discreet.trusted.ring_a.table import Column, Type
from kinds import examples

UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
FORMS = (
    *(f"DATE_TRUNC('{unit}', {{0}})" for unit in UNITS),
    *(f"{{0}} + INTERVAL {number} {unit}" for unit in UNITS for number in (1, 7, 100)),
    *(f"{{0}} - INTERVAL {number} {unit}" for unit in UNITS for number in (1, 7, 100)),
    "CAST({0} AS DATE)",
    "CAST({0} AS TIMESTAMP)",
    "LAST_DAY({0})",
    "CASE WHEN {0} > DATE '1970-01-01' THEN {0} END",
)
MOMENTS = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59))


def read(text: str, columns: dict[str, Column]) -> Expression:
    def resolve(node: Any) -> Expression:
        column = columns[node.name]
        return ColumnOf(column.name, column.type or Type.TEXT)

    return ExpressionReader(resolve, columns).read(parse(f"SELECT {text}").expressions[0])


@settings(max_examples=examples(100), deadline=None, derandomize=True)
@given(
    form=st.recursive(
        st.sampled_from(["timestamp_0", "date_0"]),
        lambda below: st.tuples(st.sampled_from(FORMS), below).map(lambda pair: pair[0].format(pair[1])),
        max_leaves=3,
    ),
    moments=st.lists(MOMENTS, min_size=1, max_size=6),
    unit=st.sampled_from(
        ["UNIX_DATE(CAST({0} AS DATE))", "UNIX_SECONDS(CAST({0} AS TIMESTAMP))", "EXTRACT(YEAR FROM {0})"]
    ),
)
def test_dates_made_of_others_lie_within_their_bounds(form: str, moments: list[datetime.datetime], unit: str) -> None:
    rows = [{"timestamp_0": one, "date_0": one.date()} for one in moments]
    columns = {
        "timestamp_0": Column("timestamp_0", Type.TIMESTAMP, min(moments), max(moments)),
        "date_0": Column("date_0", Type.DATE, min(moments).date(), max(moments).date()),
    }
    expression = read(unit.format(form), columns)
    known = interval(expression, columns)
    assert known is not None
    _, (values,) = Plain(rows, ["timestamp_0", "date_0"]).values([expression])
    assert all(value is None or known[0] <= value <= known[1] for value in values), (form, values, known)


@pytest.fixture(scope="module")
def curator() -> Iterator[discreet.Curator]:
    chance = random.Random(3)
    start = datetime.datetime(2021, 1, 1)
    moments = [start + datetime.timedelta(seconds=chance.randrange(60 * 86_400)) for _ in range(999)]
    table = pyarrow.table({"ts": moments, "d": [one.date() for one in moments]})
    columns: dict[str, Any] = {
        "ts": {"type": "timestamp", "min": start, "max": datetime.datetime(2021, 3, 31)},
        "d": {"type": "date", "min": start.date(), "max": datetime.date(2021, 3, 31)},
    }
    people = discreet.Table(table, one_row_per_person=True, columns=columns)
    with discreet.Curator({"t": people}, epsilon=10**20) as one:
        yield one


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("MAX(DATE_TRUNC('month', d))", "2021-03-01"),
        ("MIN(CAST(ts AS DATE))", "2021-01-01"),
        ("MAX(CAST(ts AS DATE))", "2021-03-01"),
        ("MAX(d + INTERVAL 1 MONTH)", "2021-04-01"),
        ("MIN(DATE_TRUNC('week', d))", "2020-12-28"),
        ("MAX(LAST_DAY(d))", "2021-03-31"),
    ],
)
def test_their_quantiles_are_dates(curator: discreet.Curator, text: str, found: str) -> None:
    (row,) = curator.ask(f"SELECT {text} AS x FROM t", epsilon=10**9).rows
    assert str(row["x"])[:10] == found


def test_a_text_as_a_date_has_no_bounds() -> None:
    declared = {"source": "no.csv", "one_row_per_person": True, "columns": {"s": {"type": "text"}}}
    known = declare({"budget": {"epsilon": 1}, "tables": {"t": declared}}).tables["t"].columns
    expression = read("UNIX_DATE(DATE_TRUNC('year', CAST(s AS DATE)))", {column.name: column for column in known})
    found = interval(expression, {column.name: column for column in known})
    assert found is not None
    assert found[0] < -700_000
    assert found[1] > 2_900_000
