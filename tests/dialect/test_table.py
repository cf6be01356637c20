"""What functions mean: the table's own examples, plain Python beside them, and where their results lie."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import islice
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialect_tools import DIALECT, Plain, read, rows, written
from discreet.dialect.functions import SqlFunction
from discreet.dialect.patterns import PatternError, regular
from discreet.dialect.ranges import interval
from discreet.dialect.table import TABLE
from discreet.sql.documentation import page
from discreet.trusted.ring_a.table import Column, Type
from discreet.trusted.ring_b.relations import columns_of
from kinds import ROOT, examples

TABLE_OF_ROWS = rows(120)


@pytest.fixture(scope="module")
def plain() -> Plain:
    return Plain(TABLE_OF_ROWS)


def test_the_page_is_the_table() -> None:
    assert (ROOT / "docs" / "dialect.md").read_text("utf-8") == page()


def test_examples_give_what_the_table_says() -> None:
    expressions = [read(row.example) for row in TABLE]
    _, values = Plain([TABLE_OF_ROWS[0]]).values(expressions)
    for row, expression, (value,) in zip(TABLE, expressions, values, strict=True):
        if isinstance(value, bool):
            value = str(value).lower()
        elif isinstance(value, float) and expression.type is Type.INTEGER:
            value = int(value)
        assert (None if value is None else str(value)) == row.result, row.example


def _floor(x: float) -> float:
    return x if math.isinf(x) else float(math.floor(x))


def _sane(function: Callable[..., Any]) -> Callable[..., Any]:
    """NULL where Python finds no number."""

    def call(*values: Any) -> Any:
        try:
            return function(*values)
        except (ValueError, ZeroDivisionError):
            return None
        except OverflowError:
            return math.inf

    return call


PYTHON: dict[str, Callable[..., Any]] = {
    "FLOOR(number_1)": _floor,
    "SQRT(number_1)": lambda x: math.sqrt(x),
    "LN(number_1)": lambda x: math.log(x),
    "LOG10(integer_1)": lambda x: math.log10(float(x)),
    "EXP(number_1)": lambda x: math.exp(x),
    "MOD(number_1, 3)": lambda x: math.fmod(x, 3),
    "integer_1 % integer_2": lambda x, y: math.fmod(float(x), float(y)),
    "DIV(integer_1, 7)": lambda x: float(math.trunc(float(x) / 7)),
    "SIGN(number_1)": lambda x: (x > 0) - (x < 0),
    "CAST(number_1 AS INTEGER)": lambda x: _half_away(x) if abs(x) < 2**63 else None,
    "integer_1 & 255": lambda x: x & 255,
    "integer_1 ^ integer_2": lambda x, y: x ^ y,
    "~integer_1": lambda x: ~x,
    "integer_1 >> 3": lambda x: x >> 3,
    "BIT_COUNT(integer_1)": lambda x: (x % 2**64).bit_count(),
    "GREATEST(integer_1, integer_2, 5)": lambda x, y: max(x, y, 5),
    "LEAST(number_1, 1.5)": lambda x: min(x, 1.5),
    "NULLIF(integer_1, 7)": lambda x: None if x == 7 else x,
    "LENGTH(text_1)": len,
    "BYTE_LENGTH(text_1)": lambda s: len(s.encode()),
    "LEFT(text_1, 3)": lambda s: s[:3],
    "RIGHT(text_1, 3)": lambda s: s[-3:],
    "SUBSTR(text_1, 2, 3)": lambda s: s[1:4],
    "STRPOS(text_1, 'b')": lambda s: s.find("b") + 1,
    "CONTAINS(text_1, '🙂')": lambda s: "🙂" in s,
    "STARTS_WITH(text_1, text_2)": lambda s, t: s.startswith(t),
    "ENDS_WITH(text_1, text_2)": lambda s, t: s.endswith(t),
    "TRIM(text_1, 'a\\')": lambda s: s.strip("a\\"),
    "REPLACE(text_1, 'a-', 'ü')": lambda s: s.replace("a-", "ü"),
    "SPLIT_PART(text_1, '-', 2)": lambda s: [*s.split("-"), ""][1],
    "text_1 || '-' || text_2": lambda s, t: f"{s}-{t}",
    "LPAD(text_1, 4, 'xy')": lambda s: ("xyxy"[: max(0, 4 - len(s))] + s)[:4],
    "text_1 ~ '^[a-z]+$'": lambda s: bool(s) and all("a" <= x <= "z" for x in s[:10_000]),
    "text_1 IS DISTINCT FROM 'ü'": lambda s: s != "ü",
    "YEAR(date_1)": lambda d: d.year,
    "EXTRACT(QUARTER FROM timestamp_1)": lambda d: (d.month + 2) // 3,
    "WEEK(date_1)": lambda d: d.isocalendar().week,
    "EXTRACT(ISOYEAR FROM date_1)": lambda d: d.isocalendar().year,
    "DAYOFWEEK(date_1)": lambda d: d.isoweekday() % 7 + 1,
    "DAYOFYEAR(date_1)": lambda d: d.timetuple().tm_yday,
    "UNIX_DATE(date_1)": lambda d: (d - datetime.date(1970, 1, 1)).days,
    "UNIX_SECONDS(timestamp_1)": lambda d: (d - datetime.datetime(1970, 1, 1)) // datetime.timedelta(seconds=1),
    "DATE_DIFF(date_1, date_2, DAY)": lambda d, e: (d - e).days,
    "date_1 - date_2": lambda d, e: (d - e).days,
    "DATE_DIFF('month', date_1, date_2)": lambda d, e: (e.year - d.year) * 12 + e.month - d.month,
    "DATE_DIFF(date_1, date_2, WEEK)": lambda d, e: (d.toordinal() - 1) // 7 - (e.toordinal() - 1) // 7,
    "DATE_TRUNC(date_1, WEEK)": lambda d: d - datetime.timedelta(days=d.weekday()),
    "date_1 + INTERVAL 1 DAY": lambda d: d + datetime.timedelta(days=1) if d < datetime.date.max else None,
    "DATE_SUB(date_1, INTERVAL 1 DAY)": lambda d: d - datetime.timedelta(days=1) if d > datetime.date.min else None,
    "FORMAT_DATE('%Y-%m', date_1)": lambda d: f"{d.year:04}-{d.month:02}",
}


def _half_away(x: float) -> int:
    return int(math.copysign(math.floor(abs(x) + 0.5), x)) if abs(x) < 2**52 else int(x)


@pytest.mark.parametrize("text", PYTHON)
def test_functions_mean_what_python_means(plain: Plain, text: str) -> None:
    expression = read(text)
    names = sorted(columns_of(expression))
    _, (found,) = plain.values([expression])
    for row, value in zip(TABLE_OF_ROWS, found, strict=True):
        given = [row[name] for name in names]
        if any(one is None or (isinstance(one, float) and math.isnan(one)) for one in given):
            if "DISTINCT" not in text:
                assert value is None, given
            continue
        wanted = _sane(PYTHON[text])(*given)
        if isinstance(wanted, float) and isinstance(value, float):
            assert value == pytest.approx(wanted, rel=1e-14), given
        else:
            assert value == wanted, given


NUMERIC = [row for row in DIALECT if row.operator not in ("to_text", "to_boolean")]


def _numeric_questions(row: SqlFunction) -> list[str]:
    """Questions whose results have an interval."""
    chosen = (text for text in written(row) if "text_" not in text)
    return list(islice((text for text in chosen if read(text).type.numeric), 3))


QUESTIONS = [text for row in NUMERIC for text in _numeric_questions(row)]
EXTRA = ["POWER(number_1, 3)", "POWER(number_1, -2)", "ROUND(number_1, 2)", "LOG(number_1, 3)", "integer_1 & 7"]
DAYS = st.dates()


@pytest.mark.power
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_results_lie_in_their_intervals(data: st.DataObject) -> None:
    """Whatever bounds a declaration has and whatever values lie between them."""
    columns, row = {}, {}
    kinds: dict[Type, Any] = {
        Type.INTEGER: st.integers(-300, 300) | st.integers(-(2**53), 2**53),
        Type.NUMBER: st.floats(-20, 20).map(lambda x: round(x, 3)) | st.floats(-1e9, 1e9),
        Type.DATE: DAYS,
        Type.TIMESTAMP: st.datetimes(),
        Type.BOOLEAN: st.booleans(),
        Type.TEXT: st.just("x"),
    }
    for kind, values in kinds.items():
        for side in (1, 2):
            low, value, high = sorted(data.draw(st.tuples(values, values, values)))
            name = f"{kind}_{side}"
            row[name] = value
            exact = Fraction if kind in (Type.INTEGER, Type.NUMBER) else lambda one: one
            bounded = kind not in (Type.BOOLEAN, Type.TEXT)
            columns[name] = Column(name, kind, exact(low) if bounded else None, exact(high) if bounded else None)
    expressions = [read(text) for text in (*QUESTIONS, *EXTRA)]
    _, found = Plain([row]).values(expressions)
    for text, expression, (value,) in zip((*QUESTIONS, *EXTRA), expressions, found, strict=True):
        known = interval(expression, columns)
        if known is None or value is None or math.isnan(value) or math.isinf(value):
            continue
        room = Fraction(1, 2**44) * max(abs(known[0]), abs(known[1]))
        assert known[0] - room <= Fraction(value) <= known[1] + room, (text, row, known, value)


def test_many_functions_have_intervals() -> None:
    columns = {name: Column(name, Type(name[:-2]), 1, 9) for name in ("integer_1", "integer_2")}
    columns |= {name: Column(name, Type.NUMBER, Fraction(1), Fraction(9)) for name in ("number_1", "number_2")}
    columns |= {"date_1": Column("date_1", Type.DATE, datetime.date(2000, 1, 1), datetime.date(2020, 1, 1))}
    for text, low, high in (
        ("YEAR(date_1)", 2000, 2020),
        ("DATE_DIFF('2020-01-01', date_1, YEAR)", 0, 20),
        ("FLOOR(number_1 / 2)", 0, 4),
        ("SQRT(integer_1)", 1, 3),
        ("LEAST(integer_1, 5)", 1, 5),
        ("MOD(integer_1, 4)", 0, 3),
        ("WIDTH_BUCKET(number_1, 0, 10, 5)", 0, 6),
        ("CAST(number_1 > 2 AS INTEGER)", 0, 1),
    ):
        assert interval(read(text), columns) == (low, high), text


LETTERS = st.sampled_from(
    [*"ab1 ü.^$|?*+()[]{}-,:\\", "(?i)", "(?:", "[^", "{2,3}", "{9}", "\\d", "\\b", "[:alpha:]", "a-z", "[a"]
)


@settings(max_examples=examples(120), deadline=None)
@given(pattern=st.lists(LETTERS, max_size=12).map("".join))
def test_every_expression_that_is_let_through_is_one_of_the_engine(pattern: str) -> None:
    try:
        regular(pattern)
    except PatternError:
        return
    text = pattern.replace("'", "''")
    ONE.values([read(f"REGEXP_CONTAINS(text_1, '{text}')"), read(f"REGEXP_FULL_MATCH(text_1, '{text}')")])


ONE = Plain([row for row in TABLE_OF_ROWS if row["text_1"] is not None][:40])
