"""Every function on PostgreSQL: no value makes it fail, and each gives DuckDB's value, bit for bit, or is refused."""

from __future__ import annotations

import math
import random
from collections import Counter
from functools import cache
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from dialect_tools import ARROW, COLUMNS, DIALECT, read, rows, written
from discreet.dialect.table import TABLE
from discreet.engines import letters
from discreet.engines.postgresql.dialect import _REFUSED, FUNCTIONS, LACKS, POSTGRESQL
from discreet.errors import QuestionError
from discreet.trusted.ring_a.dialect import function
from discreet.trusted.ring_a.expressions import Expression
from discreet.trusted.ring_a.table import Type
from discreet.trusted.ring_a.terms import compiled
from discreet.trusted.ring_b.dialect import Lacking
from discreet.trusted.ring_b.engine_functions import COMMON, DIFFERENT
from discreet.trusted.ring_b.functions import OPERATORS
from discreet.trusted.ring_b.scalars import known
from kinds import examples, some
from two_engines import both

VERSIONS = some([18, 15], pytest.mark.power)
TYPES = {name: Type(name.rsplit("_", 1)[0]) for name in COLUMNS}
COLUMN = {name: exp.column(name) for name in COLUMNS}
OF_SQL = {
    **{
        name: [f"{kind}_1 {sign} {kind}_2" for kind in Type] + [f"CAST(integer_1 AS TEXT) {sign} 'ü'"]
        for name, sign in (("equal", "="), ("not_equal", "<>"), ("less", "<"), ("less_equal", "<="))
    },
    "greater": ["text_1 > text_2", "number_1 > integer_2", "'b' > text_1"],
    "greater_equal": ["date_1 >= '2020-01-01'", "number_1 BETWEEN number_2 AND 3"],
    "in": ["text_1 IN ('a', 'ü', '\\')", "number_1 NOT IN (0.5, 1)", "date_1 IN ('2020-02-29', NULL)"],
    "and": ["boolean_1 AND boolean_2"],
    "or": ["boolean_1 OR number_1 > 1"],
    "not": ["NOT boolean_1"],
    "is_null": ["text_1 IS NULL", "SQRT(number_1) IS NOT NULL"],
    "add": ["number_1 + number_2", "integer_1 + integer_2", "number_1 + 0.5", "number_1 + number_2 + integer_1"],
    "subtract": ["number_1 - number_2", "1 - number_1", "number_1 - 1.5 - (number_2 - number_1)"],
    "multiply": ["number_1 * number_2", "number_1 * 3", "number_1 * 0.001", "number_1 * number_2 * (number_1 * 2)"],
    "divide": ["number_1 / number_2", "number_1 / 3", "3 / number_1", "(number_1 + 1) / (number_1 - number_2)"],
    "negate": ["-number_1", "-integer_1", "-(-number_1)"],
    "absolute": ["ABS(number_1)", "ABS(integer_1)"],
    "like": [f"text_1 LIKE '{one}'" for one in ("a%", "%\\", "_", "%_b", "ü%", "", "a\\%", "%''%")],
    "power": ["POWER(number_1, 2)", "POWER(2, number_1)", "POW(integer_1, -1)", "POWER(number_1 * number_2, 0.5)"],
}
"""The operators of SQL itself."""

ALL = {row.operator: [*OF_SQL.get(row.operator, []), *(written(row) if row in DIALECT else [])] for row in TABLE}
REFUSED = {"initcap", "strip_accents", "reverse", "matches", "matches_all", "extract_match", "logarithm_2"}
"""Operators that do not run there, whatever they are of. Others do not of some arguments: a text that is cast, the text
of a double, a power of two columns."""
SOMETIMES = {"CAST of a text", "number_text", "pow", "log2", *REFUSED}


def test_every_operator_is_tried() -> None:
    assert set(ALL) == {row.operator for row in TABLE}
    assert all(ALL.values())
    assert OPERATORS - {row.operator for row in TABLE} == set()


def held(version: int, table: list[dict[str, Any]]) -> None:
    """Rows in both engines, numbered."""
    numbers = pyarrow.array(range(len(table)), pyarrow.int64())
    columns = {name: pyarrow.array([row[name] for row in table], ARROW[kind]) for name, kind in TYPES.items()}
    both(version).make("edges", pyarrow.table({"n": numbers, **columns}), {"n": Type.INTEGER, **TYPES})


def different(version: int, expression: Expression) -> list[Any]:
    """Rows where the engines give different values. Raises Lacking where PostgreSQL has no such function."""
    select = exp.select("n", exp.alias_(compiled(expression, COLUMN), "x")).from_("edges").order_by("n")
    ours, theirs = both(version).asked(select)
    assert len(ours) == len(theirs)
    return [
        (one, other)
        for one, other in zip(ours, theirs, strict=True)
        if one != other or type(one[1]) is not type(other[1])
    ]


@pytest.fixture(scope="module", params=VERSIONS)
def edges(request: pytest.FixtureRequest) -> int:
    """The version of a server that has the edge rows."""
    version: int = request.param
    held(version, rows(150))
    return version


@pytest.mark.parametrize("operator", ALL)
def test_no_value_makes_an_operator_fail_or_mean_something_else(edges: int, operator: str) -> None:
    asked, refused = 0, set[str]()
    for text in ALL[operator]:
        try:
            assert not different(edges, read(text)), text
            asked += 1
        except Lacking as lacking:
            refused.add(str(lacking))
    assert refused <= SOMETIMES
    assert (asked == 0) is (operator in REFUSED)


def test_what_is_lacking_is_refused_by_its_name() -> None:
    """A name of the table is written, or refused, and nothing else happens."""
    column, constant = exp.column("c"), exp.cast(exp.Literal.string("2.5"), "DOUBLE")
    for name in _REFUSED:
        with pytest.raises(Lacking, match=f"^{name}$"):
            POSTGRESQL.text(function(name, column.copy(), constant.copy(), constant.copy()))
    assert set(_REFUSED) <= LACKS
    assert FUNCTIONS.keys() | LACKS | POSTGRESQL.same == COMMON | DIFFERENT.keys()
    assert not LACKS & FUNCTIONS.keys()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("CAST(text_1 AS INTEGER)", "CAST of a text"),
        ("CAST(text_1 AS DATE)", "CAST of a text"),
        ("CAST(number_1 AS TEXT)", "number_text"),
        ("POWER(number_1, number_2)", "pow"),
        ("LOG2(number_1)", "log2"),
        ("text_1 = 'a\0b'", "a text with the character 0"),
    ],
)
def test_some_arguments_are_refused(text: str, name: str) -> None:
    with pytest.raises(Lacking, match=f"^{name}$"):
        POSTGRESQL.text(compiled(read(text) if "\0" not in text else _of_zero(), COLUMN))


def _of_zero() -> Expression:
    from discreet.trusted.ring_a.expressions import Call, ColumnOf, Literal

    return Call("equal", (ColumnOf("text_1", Type.TEXT), Literal("a\0b", Type.TEXT)), Type.BOOLEAN)


PLACES = [None, -(2**31), -(2**31) + 1, -10, -7, -4, -3, -2, -1, 0, 1, 2, 3, 4, 7, 100, 2**31 - 1, 2**31]


@pytest.mark.parametrize("version", VERSIONS)
def test_places_in_texts_are_counted_alike(version: int) -> None:
    nothing = dict.fromkeys(COLUMNS)
    held(
        version,
        [
            {**nothing, "text_1": text, "integer_1": start, "integer_2": length}
            for text, start, length in product(["", "a", "abcdef", "aüb🙂cé", None], PLACES, PLACES)
        ],
    )
    for call in ("SUBSTR(text_1, integer_1, integer_2)", "SUBSTR(text_1, integer_1)", "LEFT(text_1, integer_1)"):
        assert not different(version, read(call)), call
    assert not different(version, read("RIGHT(text_1, integer_1)"))


@pytest.mark.outside
@pytest.mark.parametrize("version", VERSIONS)
def test_letters_of_all_of_unicode(version: int) -> None:
    """Each character by itself, and texts of several."""
    chance = random.Random(3)
    single = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF]
    known = "".join(sorted({*letters.LARGE, *letters.SMALL}))
    several = ["".join(chance.choices(known + "abcXYZ 🙂ẞıİ", k=12)) for _ in range(5_000)]
    texts = pyarrow.array([*single, *several])
    numbers = pyarrow.array(range(len(texts)), pyarrow.int64())
    engines = both(version)
    engines.make("letters", pyarrow.table({"n": numbers, "c": texts}), {"n": Type.INTEGER, "c": Type.TEXT})
    for name in ("upper", "lower", "length", "byte_length", "ascii"):
        node = function(name, exp.column("c"))
        wrong = exp.select("n", exp.alias_(node, "x")).from_("letters").order_by("n")
        ours, theirs = engines.asked(wrong)
        assert ours == theirs, name
    like = exp.ILike(this=exp.column("c"), expression=exp.Literal.string("%İß🙂x_%"))
    ours, theirs = engines.asked(exp.select("n").from_("letters").where(like).order_by("n"))
    assert ours == theirs


CURVES = ("floor", "ceil", "round", "trunc", "sqrt", "cbrt", "exp", "ln", "log10", "sin", "cos", "tan", "asin", "acos")
CURVES += ("atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "degrees", "radians")


@pytest.mark.parametrize("version", VERSIONS)
def test_functions_of_doubles_have_the_same_bits(version: int) -> None:
    chance, engines = np.random.default_rng(24), both(version)
    near = [
        math.nextafter(one, side)
        for one in (709.782712893384, -745.1332191019411, -744.1, 0.5, 1, 2**52, 2**63)
        for side in (-math.inf, one, math.inf)
    ]
    below = np.ldexp(1 - chance.integers(0, 800, 5_000) * 2.0**-53, chance.integers(-63, 1024, 5_000))
    column = np.concatenate(
        [
            near,
            chance.integers(0, 2**64, 8_000, dtype=np.uint64).view(np.float64),
            chance.normal(size=4_000) * 10.0 ** chance.integers(-3, 4, 4_000),
            chance.integers(-1000, 1000, 2_000) / 4,
            -745 + chance.random(2_000) * 2,
            below,
        ]
    )
    column = column[~np.isnan(column)]
    other = np.where(
        chance.random(len(column)) < 0.5, chance.permutation(column), chance.integers(1, 50, len(column)) / 3
    )
    held_columns = {"n": np.arange(len(column)), "a": column, "b": other}
    engines.make("doubles", pyarrow.table(held_columns), {"n": Type.INTEGER, "a": Type.NUMBER, "b": Type.NUMBER})
    a, b = exp.column("a"), exp.column("b")
    digits = [exp.cast(exp.Literal.string(str(one)), "INT") for one in (-15, -2, 1, 2, 15)]
    least = exp.cast(exp.Literal.string(repr(2.0**-64)), "DOUBLE")
    above = exp.Greatest(this=exp.Abs(this=a), expressions=[least], ignore_nulls=True)
    nodes = [
        *(function(name, a.copy()) for name in CURVES),
        *(function(name, a.copy(), digit.copy()) for name in ("round", "trunc") for digit in digits),
        function("mod", a.copy(), exp.Nullif(this=b, expression=exp.cast(exp.Literal.string("0.0"), "DOUBLE"))),
        function("atan2", a.copy(), b.copy()),
        exp.Floor(this=function("log2", above)),
    ]
    for node in nodes:
        select = exp.select(exp.alias_(known(node), "x")).from_("doubles").order_by("n")
        ours, theirs = engines.asked(select)
        assert ours == theirs, node.name
    ours, theirs = engines.asked(
        exp.select(exp.alias_(function("whole_number", a.copy()), "x")).from_("doubles").order_by("n")
    )
    assert ours == theirs


def test_sums_are_rounded_to_the_same_double() -> None:
    """Of one person's rows, beyond 64 bits too."""
    chance, engines = random.Random(9), both(18)
    values = [chance.choice([1, -1]) * chance.getrandbits(chance.randint(1, 63)) for _ in range(20_000)]
    groups = [chance.randrange(4_000) for _ in values]
    values += [chance.choice([2**63 - 1, -(2**63)]) for _ in range(3_000)]
    groups += [4_000 + at % 300 for at in range(3_000)]
    table = pyarrow.table({"g": pyarrow.array(groups, pyarrow.int64()), "v": pyarrow.array(values, pyarrow.int64())})
    engines.make("whole", table, {"g": Type.INTEGER, "v": Type.INTEGER})
    total = function("whole_sum", exp.column("v"))
    count = exp.Count(this=exp.Star(), big_int=True)
    double = exp.alias_(exp.cast(total, "DOUBLE"), "x")
    mean = exp.alias_(function("whole_quotient", total.copy(), count), "m")
    ours, theirs = engines.asked(exp.select("g", double, mean, total.copy()).from_("whole").group_by("g").order_by("g"))
    assert ours == theirs


def test_what_tells_rows_apart_has_the_same_text() -> None:
    """Where relations are stacked, identifiers of any type meet as texts."""
    chance, engines = np.random.default_rng(25), both(18)
    column = np.concatenate(
        [
            [0.0, 1.0, -1.0, 0.1, 1e-5, 1e-4, 0.00012345, 1e15, -1e15, 123456789012345.6, 1234567890123456.5, 5e-324],
            [math.inf, -math.inf, 2.0**53, 1e15 + 0.5, 9999999999999998.0],
            chance.integers(-(10**6), 10**6, 3_000) / 1000,
            chance.integers(-(2**53), 2**53, 3_000) / 8,
            chance.integers(0, 2**52, 2_000, dtype=np.uint64).view(np.float64),
            10.0 ** chance.uniform(-300, 16, 5_000),
        ]
    )
    table = pyarrow.table({"r0": np.arange(len(column)), "r1": column})
    engines.make("identifiers", table, {"r0": Type.INTEGER, "r1": Type.NUMBER})
    texts = (exp.alias_(exp.cast(exp.column(name), "TEXT"), name) for name in ("r0", "r1"))
    ours, theirs = engines.asked(exp.select(*texts).from_("identifiers"))
    assert sorted(ours) == sorted(theirs)


def test_a_place_among_many_texts() -> None:
    names = ["", "a", "b", 'q"', "\\", "ü", "🙂", "{0}", "x'y", *(f"name {at}" for at in range(300))]
    table = pyarrow.table({"n": pyarrow.array(range(len(names) + 2), pyarrow.int64()), "c": [*names, None, "zz"]})
    engines = both(18)
    engines.make("names", table, {"n": Type.INTEGER, "c": Type.TEXT})
    node = function("place_among", exp.column("c"), *(exp.Literal.string(name) for name in names))
    ours, theirs = engines.asked(exp.select("n", exp.alias_(node, "x")).from_("names").order_by("n"))
    assert ours == theirs
    assert [place for _, place in ours] == [*range(len(names)), None, None]


@cache
def stock() -> list[tuple[str, Type]]:
    """Expressions that run on both engines, and their types."""
    return [
        (text, read(text).type)
        for operator, chosen in ALL.items()
        for text in chosen
        if operator not in REFUSED and not text.startswith(("CAST(text", "(text", "SAFE_CAST")) and len(text) < 200
    ]


def nested(chance: random.Random) -> str:
    """A function whose arguments are functions, up to three deep."""
    text = chance.choice(stock())[0]
    for _ in range(chance.randint(1, 3)):
        for name, kind in TYPES.items():
            choices = [one for one, other in stock() if other is kind]
            if name in text and len(text) < 1_500:
                text = text.replace(name, f"({chance.choice(choices)})", 1)
    return text


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**9))
def test_functions_of_functions_at_random(edges: int, seed: int) -> None:
    chance, outcomes = random.Random(seed), Counter[str]()
    if outcomes_of.get("version") != edges:
        held(edges, rows(150))
        outcomes_of["version"] = edges
    for _ in range(10):
        text = nested(chance)
        try:
            assert not different(edges, read(text)), text
        except (QuestionError, Lacking, duckdb.BinderException) as error:  # the last: no trial would let it through
            outcomes[type(error).__name__] += 1


outcomes_of: dict[str, int] = {}
"""Which server has the edge rows now: tests above put others into the table."""
