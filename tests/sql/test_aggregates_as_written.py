"""Aggregates as analysts and tools write them: as plain SQL answers them, or refused with what to write instead."""

from __future__ import annotations

import datetime
import itertools
import random
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from dialect_tools import Plain
from discreet.errors import QuestionError
from discreet.sql.put_together import one_text
from discreet.trusted.ring_a.expressions import ColumnOf, Expression
from discreet.trusted.ring_a.table import Type
from kinds import examples

EXACT = 10**12
CHANCE = random.Random(11)
ROWS = [
    {
        "id": place // 3,
        "x": CHANCE.randrange(10_001) / 100 if CHANCE.random() > 0.1 else None,
        "n": CHANCE.randrange(50),
        "ok": CHANCE.choice([True, True, False, None]),
        "city": CHANCE.choice(["a", "b", "ab", "b:", "", None]),
        "who": CHANCE.choice(["u", "v", "w"]),
        "start": datetime.datetime(2021, 1, 1) + datetime.timedelta(seconds=CHANCE.randrange(86_400 * 30)),
        "stop": datetime.datetime(2021, 2, 1) + datetime.timedelta(seconds=CHANCE.randrange(86_400 * 30)),
    }
    for place in range(1200)
]
TABLE = pyarrow.Table.from_pylist(ROWS)
MOMENT = {"type": "timestamp", "min": datetime.datetime(2021, 1, 1), "max": datetime.datetime(2021, 3, 31)}
COLUMNS: dict[str, Any] = {
    "id": int,
    "x": {"type": "number", "min": 0, "max": 100, "step": 0.01},
    "n": {"type": "integer", "min": 0, "max": 49, "nulls": False},
    "ok": bool,
    "city": {"type": "text", "length": 10},
    "who": {"type": "text", "values": ["u", "v", "w"], "nulls": False},
    "start": MOMENT,
    "stop": MOMENT,
}


@pytest.fixture(scope="module")
def curator() -> Iterator[discreet.Curator]:
    people = discreet.Table(TABLE, person="id", rows_per_person=9, groups_per_person=9, columns=COLUMNS)
    with discreet.Curator({"t": people}, epsilon=10**20, delta=1e-6) as one:
        yield one


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.register("t", TABLE)
        yield connection


SAME = [
    ("SUM(ok)", ""),
    ("SUM(x > 50)", ""),
    ("SUM(ok) FILTER (WHERE n > 20)", ""),
    ("AVG(ok)", "AVG(ok::INT)"),
    ("AVG(who = 'u')", "AVG((who = 'u')::INT)"),
    ("100 * AVG(ok AND n > 10)", "100 * AVG((ok AND n > 10)::INT)"),
    ("STDDEV_POP(ok)", "STDDEV_POP(ok::INT)"),
    ("AVG(CASE WHEN who = 'u' THEN 1.0 ELSE 0 END)", ""),
    ("SUM(COALESCE(x, 0)), SUM(CAST(x AS DOUBLE)), SUM(x * n)", ""),
    ("AVG(CAST(x AS FLOAT))", "AVG(x::DOUBLE)"),
    ("SUM(x) * 1.0 / COUNT(*)", ""),
    ("SUM(1), SUM(1.0), SUM(0), SUM(2), COUNT(1), COUNT(NULL), AVG(1), MAX(1), COUNT(DISTINCT 1)", ""),
    ("SUM(x::DECIMAL(10, 1))", "SUM(ROUND(x::DECIMAL(10, 2), 1))"),
    ("SUM(CAST(x AS DECIMAL(10)))", "SUM(ROUND(x::DECIMAL(10, 2)))"),
    ("AVG(EXTRACT(EPOCH FROM stop - start))", ""),
    ("AVG(EXTRACT(EPOCH FROM (stop - start)))", ""),
    ("SUM(EXTRACT(DAY FROM stop - start))", ""),
    ("COUNT(DISTINCT city, who)", "COUNT(DISTINCT (city, who)) FILTER (WHERE city IS NOT NULL)"),
    ("COUNT(DISTINCT (city, who))", ""),
    ("COUNT(DISTINCT (city, ok))", ""),
    ("COUNT(DISTINCT (city, who)) FILTER (WHERE n > 47)", ""),
    (
        "COUNT(DISTINCT city, who) FILTER (WHERE n > 47 AND ok)",
        "COUNT(DISTINCT (city, who)) FILTER (WHERE n > 47 AND ok AND city IS NOT NULL)",
    ),
    (
        "COUNT(DISTINCT n, ok, CAST(start AS DATE))",
        "COUNT(DISTINCT (n, ok, start::DATE)) FILTER (WHERE ok IS NOT NULL)",
    ),
    ("COUNT(DISTINCT id, n)", "COUNT(DISTINCT (id, n))"),
    ("APPROX_COUNT_DISTINCT(city)", "COUNT(DISTINCT city)"),
    ("APPROX_COUNT_DISTINCT(n) FILTER (WHERE ok)", "COUNT(DISTINCT n) FILTER (WHERE ok)"),
    ("COUNT(DISTINCT CASE WHEN n > 40 THEN id END), COUNT(DISTINCT city || who)", ""),
    ("MIN(DISTINCT n), MAX(DISTINCT n)", ""),
    ("MODE() WITHIN GROUP (ORDER BY who)", ""),
    ("PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY n DESC)", ""),
    ("QUANTILE_DISC(n, [0.1, 0.5, 0.9])", ""),
    (
        "COUNT(*) FILTER (WHERE ok), COUNT_IF(ok), COUNT(CASE WHEN ok THEN 1 END), SUM(CASE WHEN ok THEN 1 ELSE 0 END)",
        "",
    ),
]


@pytest.mark.parametrize(("written", "same"), SAME, ids=[one for one, _ in SAME])
def test_answers_are_those_of_plain_sql(
    curator: discreet.Curator, plain: duckdb.DuckDBPyConnection, written: str, same: str
) -> None:
    (row,) = curator.ask(f"SELECT {written} FROM t", epsilon=EXACT).rows
    expected = plain.sql(f"SELECT {same or written} FROM t").fetchall()[0]
    for found, value in zip(row.values(), expected, strict=True):
        assert (
            found == value if isinstance(value, str | list) else float(found) == pytest.approx(float(value), rel=1e-9)
        )


def test_a_condition_is_added_up_within_a_person_too(curator: discreet.Curator) -> None:
    text = "SELECT SUM(k) AS n, AVG(share) AS m FROM (SELECT id, SUM(ok) AS k, AVG(ok) AS share FROM t GROUP BY id)"
    (row,) = curator.ask(text, epsilon=EXACT).rows
    assert row["n"] == sum(bool(one["ok"]) for one in ROWS)
    assert 0 < row["m"] < 1


def test_all_that_is_no_aggregate_is_grouped_by(curator: discreet.Curator) -> None:
    rows = curator.ask("SELECT who, n % 2 AS odd, COUNT(*) AS k FROM t GROUP BY ALL", epsilon=EXACT).rows
    assert {(row["who"], row["odd"]) for row in rows} == set(itertools.product("uvw", (0, 1)))
    assert sum(row["k"] for row in rows) == len(ROWS)


REFUSED = [
    ("STRING_AGG(city, ',')", "write SELECT city, COUNT(*) … GROUP BY city"),
    ("ARRAY_AGG(city ORDER BY n)", "write SELECT city, COUNT(*) … GROUP BY city"),
    ("LISTAGG(city, ',') WITHIN GROUP (ORDER BY n)", "write SELECT city, COUNT(*) … GROUP BY city"),
    ("GROUP_CONCAT(DISTINCT city)", "write SELECT city, COUNT(*) … GROUP BY city"),
    ("LIST(city)", "write SELECT city, COUNT(*) … GROUP BY city"),
    ("ANY_VALUE(city)", "GROUP BY city"),
    ("FIRST(city)", "GROUP BY city"),
    ("ARG_MAX(city, x)", "GROUP BY city"),
    ("BOOL_OR(n > 5)", "write COUNTIF(n > 5) and compare it with 0"),
    ("BOOL_AND(ok)", "write COUNTIF(NOT (ok)) and compare it with 0, or AVG(ok) for the share"),
    ("EVERY(ok)", "write COUNTIF(NOT (ok))"),
    ("BIT_OR(n)", "write COUNTIF(n & 1 = 1)"),
    ("PRODUCT(x)", "AVG(LN(x))"),
    ("KURTOSIS(x)", "AVG(POWER(x, 4))"),
    ("REGR_SLOPE(x, n)", "write COVAR_POP(x, n), VAR_POP(n)"),
    ("MAD(x)", "write APPROX_QUANTILES(x, 4)"),
    ("APPROX_TOP_K(city, 3)", "write APPROX_TOP_COUNT(city, 3)"),
    ("PERCENTILE(x, 50)", "write PERCENTILE_CONT(x, 0.5)"),
    ("SUM(DISTINCT x)", "write SUM(x), COUNT(DISTINCT x), or GROUP BY x"),
    ("AVG(DISTINCT x)", "write AVG(x), COUNT(DISTINCT x), or GROUP BY x"),
    ("HISTOGRAM(id)", "write SELECT WIDTH_BUCKET(id, 0, 100, 10) AS bin, COUNT(*) … GROUP BY bin"),
    ("HISTOGRAM(n, 0)", "write HISTOGRAM(x, 10)"),
    ("HISTOGRAM(n, [0, 10])", "write HISTOGRAM(x, 10)"),
    ("HISTOGRAM(who, 3)", "write HISTOGRAM(who)"),
    ("HISTOGRAM(start)", "write SELECT DATE_TRUNC('month', start) AS bin, COUNT(*) … GROUP BY bin"),
    ("HISTOGRAM(n), COUNT(*)", "write SELECT HISTOGRAM(n) … by itself"),
    ("HISTOGRAM(n) FILTER (WHERE ok)", "write SELECT HISTOGRAM(n) … by itself"),
    ("NUMERIC_HISTOGRAM(5, n)", "write SELECT HISTOGRAM(x, 10)"),
    ("COUNT(DISTINCT *)", "write COUNT(*) for rows"),
    ("MIN(ok)", "write COUNTIF(ok), or AVG(ok) for the share"),
    ("MEDIAN(ok)", "write COUNTIF(ok), or AVG(ok) for the share"),
    ("MAX(city)", "write SELECT city, COUNT(*) … GROUP BY city"),
    ("SUM(NULL)", "write a column, or a number such as 0"),
    ("SUM(start)", "write MEDIAN(start)"),
    ("QUANTILE_CONT(x, [0.5, 0.25])", "write QUANTILE_CONT(x, [0.25, 0.5, 0.75])"),
    ("QUANTILE_CONT(x, [])", "write QUANTILE_CONT(x, [0.25, 0.5, 0.75])"),
    ("PERCENTILE_CONT(n) WITHIN GROUP (ORDER BY x DESC)", "write PERCENTILE_CONT(x, 0.5)"),
    ("SUM(CAST(x AS DECIMAL(40, 20)))", "round with ROUND"),
    (f"COUNT(DISTINCT {', '.join(['n'] * 11)})", "count 2 to 10 columns together"),
]


@pytest.mark.parametrize(("written", "fix"), REFUSED, ids=[one for one, _ in REFUSED])
def test_what_is_refused_says_what_to_write(curator: discreet.Curator, written: str, fix: str) -> None:
    with pytest.raises(QuestionError) as caught:
        curator.explain(f"SELECT {written} FROM t", epsilon=1)
    assert fix in caught.value.fix


VALUES: dict[Type, list[Any]] = {
    Type.TEXT: ["", "a", "1", ":", "-", "1:a", "-:", "0:", "ü", "e\u0301", "🙂", None],
    Type.INTEGER: [-1, 0, 1, 10, 11, None],
    Type.BOOLEAN: [True, False, None],
    Type.DATE: [datetime.date(2020, 1, 1), datetime.date(2020, 1, 11), None],
}


class _Columns:
    """Reads names as columns."""

    def read(self, node: Any) -> Expression:
        return ColumnOf(node.name, Type(node.name.rsplit("_", 1)[0]))


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(kinds=st.lists(st.sampled_from(sorted(VALUES)), min_size=2, max_size=4), nulls=st.booleans(), data=st.data())
def test_texts_are_the_same_where_all_values_are(kinds: list[Type], nulls: bool, data: st.DataObject) -> None:
    """All combinations of awkward values, in the real engine."""
    from sqlglot import exp

    names = [f"{kind}_{place}" for place, kind in enumerate(kinds)]
    every = list(itertools.product(*(VALUES[kind] for kind in kinds)))
    chosen = every if len(every) <= 400 else data.draw(st.lists(st.sampled_from(every), min_size=50, max_size=200))
    rows = [dict(zip(names, one, strict=True)) for one in chosen]
    made = one_text(_Columns(), exp.Tuple(expressions=[exp.column(name) for name in names]), nulls=nulls)
    _, (texts,) = Plain(rows, names).values([made])
    counted = {one for one in chosen if nulls or None not in one}
    assert len({text for text in texts if text is not None}) == len(counted)
    assert [text is None for text in texts] == [not nulls and None in one for one in chosen]
