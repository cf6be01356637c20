"""Public keys with which no row meets WHERE are no groups: what is left has the same totals, and nothing was counted
with what is gone."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from discreet.catalog import Table
from discreet.errors import QuestionError
from discreet.trusted.ring_a.table import Source, SourceKind
from engine_tools import Bench, declaration, frame, planned
from kinds import examples

TEXTS = ["", "a", "B", "ab", "ß", "é", "e\u0301", "\uffff", "😀", "it's"]
WHOLE = [-12, -1, 0, 5, 14, 15, 25, 29]
NUMBERS = [-0.5, 0.0, 0.07, 2.5]
DAYS = [datetime.date(1999, 12, 31), datetime.date(2000, 1, 1), datetime.date(2004, 2, 29)]
COLUMNS: dict[str, Any] = {
    "g": {"type": "text", "values": TEXTS[:-2]},
    "k": {"type": "integer", "min": -12, "max": 29},
    "j": {"type": "integer", "values": [0, 5, 14, 2**53, 2**53 + 1]},
    "u": {"type": "integer", "min": -100_000, "max": 100_000},
    "w": {"type": "number", "values": [-0.5, 0, 0.07]},
    "f": {"type": "number", "min": -20, "max": 20},
    "b": {"type": "boolean"},
    "d": {"type": "date", "values": DAYS[:2]},
    "e": {"type": "date", "min": datetime.date(1990, 1, 1), "max": datetime.date(2010, 1, 1)},
    "m": {"type": "timestamp", "min": datetime.datetime(1990, 1, 1), "max": datetime.datetime(2010, 1, 1)},
}
MOMENTS = [
    datetime.datetime(1999, 12, 31, 23, 59, 59, 999999),
    datetime.datetime(2000, 1, 1),
    datetime.datetime(2005, 6, 7, 8, 9, 10),
]
HELD: dict[str, list[Any]] = {
    "g": [*TEXTS, None],
    "k": [*WHOLE, None],
    "j": [0, 5, 7, 14, 2**53, 2**53 + 1, 2**53 + 2, None],
    "u": [-100_000, -999, -1, 0, 499, 500, 99_999, None],
    "w": [*NUMBERS, -0.0, float("nan"), float("inf"), None],
    "f": [-20.0, -0.0, 0.5, 1.4999999999999998, 2.5, 15.0, 20.0, float("nan"), float("-inf"), None],
    "b": [True, False, None],
    "d": [*DAYS, None],
    "e": [*DAYS, datetime.date(2010, 1, 1), None],
    "m": [*MOMENTS, None],
}
KEYS = [
    "g",
    "k",
    "j",
    "w",
    "b",
    "d",
    "COALESCE(k, 31)",
    "ROUND(k, -1)",
    "FLOOR(k / 10) * 10",
    "ABS(k)",
    "MOD(k, 7)",
    "FLOOR(j / 5)",
    "COALESCE(b, k > 3)",
    "k > 10",
    "g LIKE 'a%'",
    "CASE WHEN k < -20 THEN 'low' WHEN k < 10 THEN 'middle' WHEN k >= 10 THEN 'high' END",
    "CASE WHEN g IN ('a', 'B') THEN 'one' WHEN g > 'e' THEN 'two' ELSE 'three' END",
    "CASE WHEN f < 0 THEN 'low' ELSE 'high' END",
    "FLOOR(u / 500)",
    "CAST(u / 1000 AS INTEGER)",
    "FLOOR(f)",
    "FLOOR(f * 2 + 1)",
    "CAST(f AS INTEGER)",
    "EXTRACT(YEAR FROM e)",
    "EXTRACT(YEAR FROM m)",
    "EXTRACT(QUARTER FROM d)",
]


def written(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime.date):
        return f"'{value}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)


FINITE = {name: [one for one in values if str(one) not in ("nan", "inf", "-inf")] for name, values in HELD.items()}
FINITE["k"] += [14.5, 3]
FINITE["u"] += [1000, -499.5]
FINITE["f"] += [1, -3]
FINITE["w"] += [0.06]
FINITE["d"] += [datetime.date(1999, 1, 1)]


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(list(HELD)))
    values = [written(one) for one in FINITE[name]]
    value, other = draw(st.sampled_from(values)), draw(st.sampled_from(values))
    if name == "b":
        return draw(st.sampled_from(["b", "b = TRUE", "b IS NULL", "b IS FALSE", "b <> FALSE", "b IS NOT TRUE"]))
    sign = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    forms = [
        f"{name} {sign} {value}",
        f"{name} IS NULL",
        f"{name} IN ({value}, {other})",
        f"{name} NOT IN ({value}, {other}, {values[0]})",
        f"{name} IS DISTINCT FROM {value}",
        f"{name} BETWEEN {value} AND {other}",
        f"COALESCE({name}, {values[1]}) {sign} {value}",
        f"CASE WHEN {name} < {value} THEN {name} = {other} WHEN {name} IS NULL THEN TRUE ELSE {name} >= {value} END",
    ]
    if name == "g":
        pattern = draw(st.sampled_from(["", "%", "a%", "%b", "%é%", "_", "a%b", "%%", "\\%"]))
        forms += [f"g LIKE '{pattern}'", f"UPPER(g) = {value}", f"LOWER(g) = {value}", "STARTS_WITH(g, 'a') = (k > 3)"]
    if name in ("k", "j", "u", "f", "w"):
        forms += [f"{name} + 1 {sign} k", f"{name} / 2 {sign} {value}", f"ROUND({name}, -1) {sign} {value}"]
        forms += [f"MOD({name}, 5) {sign} 2", f"FLOOR({name} / 10) IN (0, 1)", f"1 / {name} > 0"]
    if name in ("d", "e", "m"):
        forms += [f"EXTRACT(YEAR FROM {name}) {sign} 2000", f"CAST({name} AS DATE) {sign} '2000-01-01'"]
    return draw(st.sampled_from(forms))


CONDITIONS = st.recursive(
    comparisons(),
    lambda below: (
        below.map("NOT ({})".format)
        | st.tuples(st.sampled_from(["AND", "OR"]), below, below).map(lambda one: f"(({one[1]}) {one[0]} ({one[2]}))")
    ),
    max_leaves=5,
)

KNOWN = declaration({"one_row_per_person": True}, COLUMNS)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    one = Bench()
    yield one
    one.close()


@pytest.fixture(scope="module")
def table(bench: Bench) -> Table:
    """Each column's values with each of another column's, the others as they come."""
    names = list(HELD)
    turning = {name: itertools.cycle(values) for name, values in HELD.items()}
    rows = []
    for one, other in itertools.combinations(names, 2):
        for pair in itertools.product(HELD[one], HELD[other]):
            rows.append({name: next(turning[name]) for name in names} | dict(zip((one, other), pair, strict=True)))
    declared = KNOWN.tables["t"]
    loaded = replace(declared, source=Source(SourceKind.FRAME, frame=frame(declared, rows)))
    bench.engine.load(loaded, b"")
    return loaded


def all_keys(text: str) -> Any:
    """The plan of a question that drops no key."""
    with patch("discreet.sql.lower.narrowed", lambda key, *_: key):
        return planned(text, KNOWN)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(condition=CONDITIONS, keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=2, unique=True))
def test_what_is_left_has_the_same_totals_and_what_is_gone_had_none(
    bench: Bench, table: Table, condition: str, keys: list[str]
) -> None:
    text = f"SELECT COUNT(*) AS n, SUM(k) AS s FROM t WHERE {condition} GROUP BY {', '.join(keys)}"
    try:
        whole = bench.totals(all_keys(text), table, "salt")
    except QuestionError as refused:  # a text is compared that is not declared, or anything with NULL
        if refused.code not in ("value", "null"):
            raise
        reject()
    try:
        left = bench.totals(planned(text, KNOWN), table, "salt")
    except QuestionError as refused:
        if refused.code != "no-group":
            raise
        left = {}
    nothing = (0,) * len(next(iter(whole.values())))
    assert left.keys() <= whole.keys()
    assert all(totals == left.get(key, nothing) for key, totals in whole.items())


def groups(condition: str, key: str) -> list[Any]:
    (one,) = planned(f"SELECT COUNT(*) AS n FROM t WHERE {condition} GROUP BY {key}", KNOWN).keys
    return list(one.groups or ())


YEAR = "EXTRACT(YEAR FROM e)"
LEFT = [
    ("g IN ('a', 'B')", "g", ["a", "B"]),
    ("g >= '\uffff'", "g", ["\uffff"]),
    ("g = 'a' OR g IS NULL", "g", ["a", None]),
    ("g IS NULL", "g", [None]),
    ("g NOT LIKE '%a%' AND LENGTH(g) > 0", "g", ["", "B", "ß", "é", "e\u0301", "\uffff"]),
    ("UPPER(g) = 'AB'", "g", ["ab", "ß", "é", "e\u0301", "\uffff"]),
    ("(g = 'a' AND k > 3) OR (g = 'B' AND f < 0)", "g", ["a", "B"]),
    ("b", "b", [True]),
    ("NOT b", "b", [False]),
    ("b IS NULL", "b", [None]),
    ("k BETWEEN 3 AND 5", "k", [3, 4, 5]),
    ("k > 4.5 AND k * 2 < 14", "k", [5, 6]),
    ("k > PI() AND k < 6", "k", list(range(-12, 6))),  # a call without arguments is not worked out
    ("j > 14", "j", [0, 5, 14, 2**53, 2**53 + 1]),  # so large that it may be compared as a double
    ("w <= 0.07 AND w > -0.5", "w", [0, Fraction("0.07")]),
    ("d < '2000-01-01'", "d", [DAYS[0]]),
    ("e >= '2008-01-01'", YEAR, [2008, 2009, 2010]),
    ("e > '2007-12-31' AND e < '2009-01-01'", YEAR, [2008]),
    ("m >= '2009-12-31' AND m < TIMESTAMP '2010-01-01 00:00:00'", "EXTRACT(YEAR FROM m)", [2009]),
    ("e IN ('1995-05-05', '2001-01-01')", YEAR, [1995, 2001]),
    (f"{YEAR} > 2008", YEAR, [2009, 2010]),
    ("u > 98999", "FLOOR(u / 500)", [198, 199, 200]),
    ("f > 18", "FLOOR(f)", [18, 19, 20]),
    ("f = 3", "FLOOR(f * 2 + 1)", [7]),
    ("k < 0 OR k IS NULL", "COALESCE(k, 31)", [*range(-12, 0), 31]),
    ("TRUE", "ROUND(k, -1)", [-1, 0, 1, 2, 3, None]),  # counted in tens
    ("k >= 10", "CASE WHEN k < -20 THEN 'low' WHEN k < 10 THEN 'middle' ELSE 'high' END", ["high"]),
    ("g IN ('a', 'B')", "CASE WHEN g = 'a' THEN 'one' WHEN g = 'B' THEN 'two' ELSE 'three' END", ["one", "two"]),
]


@pytest.mark.parametrize(("condition", "key", "left"), LEFT, ids=[f"{one[0]}, {one[1]}" for one in LEFT])
def test_groups_are_the_keys_that_a_row_can_have(condition: str, key: str, left: list[Any]) -> None:
    assert groups(condition, key) == left


@pytest.mark.parametrize("condition", ["g = 'a' AND g = 'B'", "g > 'a' AND g < 'a'", "FALSE", "NULL = 1"])
def test_a_question_without_a_group_is_refused(condition: str) -> None:
    with pytest.raises(QuestionError, match="no group can meet WHERE") as refused:
        planned(f"SELECT COUNT(*) AS n FROM t WHERE {condition} GROUP BY g", KNOWN)
    assert refused.value.where == "WHERE"
    assert planned(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", KNOWN).keys == ()


@pytest.mark.parametrize(
    ("key", "values", "null"),
    [
        ("b", (True,), False),
        ("b", (False,), True),
        ("b", (), True),
        ("g", (), True),
        ("g", ("a",), False),
        ("k", (), True),
    ],
)
def test_rows_with_other_keys_are_left_out_whatever_where_says(
    bench: Bench, table: Table, key: str, values: tuple[Any, ...], null: bool
) -> None:
    """What a person can do is counted over the plan's keys, so no bound may rest on what was known of WHERE."""
    with patch("discreet.sql.lower.narrowed", lambda one, *_: replace(one, values=values, null=null)):
        plan = planned(f"SELECT COUNT(*) AS n FROM t GROUP BY {key}", KNOWN)
    assert {keys[0] for keys, _ in bench.run(plan, table, "salt")} == {*values, *([None] if null else [])}


INSIDE = [
    ("(SELECT * FROM t WHERE g IN ('a', 'B'))", "g", ["a", "B"]),
    ("(SELECT id, g AS other, k AS g FROM t WHERE g = 'a')", "other", ["a"]),
    ("(SELECT id, g AS other, k AS g FROM t WHERE g = 'a' AND k < -10)", "g", [-12, -11]),
    ("(SELECT id, g, k + 1 AS k FROM t WHERE k = 5 AND g = 'a')", "k", [6]),
    ("(SELECT id, g, MAX(k) AS k FROM t WHERE g = 'a' OR (g = 'B' AND k > 3) GROUP BY id, g)", "g", ["a", "B"]),
    ("t a JOIN t b ON a.id = b.id AND b.g IN ('a', 'é')", "b.g", ["a", "é"]),
    ("(SELECT id, g FROM t WHERE g = 'a') a JOIN t b ON a.id = b.id", "a.g", ["a"]),
    ("t b LEFT JOIN (SELECT id, g FROM t WHERE g = 'a') a ON a.id = b.id AND b.g = 'a'", "a.g", [*TEXTS[:-2], None]),
    ("t b LEFT JOIN (SELECT id, g FROM t WHERE g = 'a') a ON a.id = b.id AND b.g = 'a'", "b.g", [*TEXTS[:-2], None]),
]


@pytest.mark.parametrize(("source", "key", "left"), INSIDE, ids=[one[0] for one in INSIDE])
def test_conditions_of_a_subquery_or_a_join_narrow_too(source: str, key: str, left: list[Any]) -> None:
    unit = {"person": "id", "rows_per_person": 9}
    known = declaration(unit, {"id": {"type": "integer"}, "g": COLUMNS["g"], "k": COLUMNS["k"]})
    (one,) = planned(f"SELECT COUNT(*) AS n FROM {source} GROUP BY {key}", known).keys
    assert list(one.groups or ()) == left
