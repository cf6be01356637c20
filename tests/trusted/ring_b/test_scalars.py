"""Every function of the table on awkward rows, in the real engine: nothing fails, results are what the table says."""

from __future__ import annotations

import datetime
import math
import random
import time
from fractions import Fraction

import pytest

from dialect_tools import COLUMNS, DIALECT, ENGINE, KINDS, Plain, read, rows, written
from discreet.dialect.numbers import STEPS
from discreet.dialect.table import TABLE
from discreet.errors import QuestionError
from discreet.plan.measurement import Plan
from discreet.trusted.ring_a.expressions import Call, Expression, Literal
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.nodes import Aggregate, Part, PartKind, Project, Quantity, Scan, Total, TotalKind, Vector
from discreet.trusted.ring_a.table import Type
from discreet.trusted.ring_a.terms import is_whole
from discreet.trusted.ring_b.functions import OPERATORS
from discreet.trusted.ring_b.scalars import BUILDERS
from engine_tools import Bench, declaration, planned

ALL = {row.operator: [(text, read(text)) for text in written(row)] for row in DIALECT}


def test_the_table_and_the_engine_have_the_same_operators() -> None:
    operators = [row.operator for row in (*TABLE, *STEPS)]
    assert len(set(operators)) == len(operators)
    assert set(operators) == OPERATORS | set(BUILDERS)
    assert not OPERATORS & set(BUILDERS)
    names = [name for row in TABLE for name in row.names]
    assert len(set(names)) == len(names)


def test_the_questions_are_of_the_functions_they_are_for() -> None:
    for operator, chosen in ALL.items():
        assert chosen
        of = [expression for text, expression in chosen if "LOG(" not in text and not isinstance(expression, Literal)]
        assert all(operator in _operators(expression) for expression in of), operator


def _operators(expression: Expression) -> set[str]:
    if not isinstance(expression, Call):
        return {"to_text", "to_boolean", "to_number", "to_date", "to_timestamp"}  # casts to the type it has already
    return {expression.operator}.union(*map(_operators, expression.arguments))


@pytest.fixture(scope="module")
def plain() -> Plain:
    return Plain(rows())


@pytest.mark.parametrize("operator", ALL)
def test_no_value_makes_a_function_fail(plain: Plain, operator: str) -> None:
    """And its type is the declared one, no number is NaN, no moment is outside the calendar, no text is long."""
    texts, expressions = zip(*ALL[operator], strict=True)
    kinds, values = plain.values(expressions)
    for text, expression, kind, found in zip(texts, expressions, kinds, values, strict=True):
        wanted = ("BIGINT" if is_whole(expression) else "DOUBLE") if expression.type is Type.INTEGER else None
        assert kind == (wanted or ENGINE[expression.type]), text
        for value in found:
            if isinstance(value, float) and operator in BUILDERS:
                assert not math.isnan(value) or operator in ("nullif", "greatest", "least"), text
                assert expression.type is not Type.INTEGER or math.isinf(value) or value == int(value), text
            if isinstance(value, datetime.date):
                assert 1 <= value.year <= 9999, text
            assert not isinstance(value, str) or len(value) <= 60_000, text


def question(expressions: list[Expression]) -> Plan:
    """All the expressions at once: how many are not NULL, and of numbers their sums on a lattice."""
    lattice = Lattice(Fraction(1, 2**20), -(2**53), 2**53)
    quantities = [Quantity(one, lattice if one.type.numeric else None) for one in expressions]
    totals = [
        Total(TotalKind.SUM if one.lattice else TotalKind.NON_NULL, place) for place, one in enumerate(quantities)
    ]
    root = Aggregate(Project(Scan("t", None, True), (), tuple(quantities)), tuple(totals))
    return Plan("t", root, (), (Part(PartKind.COUNT, (Vector(((0, 1),)),), 1),), ())


def test_all_functions_run_in_plans(bench: Bench) -> None:
    """Compiled with the sums, in the engine's own process; and functions of functions, picked by chance."""
    table = bench.load(declaration({"one_row_per_person": True}, COLUMNS).tables["t"], rows())
    expressions = [expression for chosen in ALL.values() for _, expression in chosen[:4]]
    expressions += [read(text) for text in nested(40)]
    for start in range(0, len(expressions), 120):
        plan = question(expressions[start : start + 120])
        ((_, found),) = bench.run(plan, table, "salt")
        assert len(found) == len(plan.root.totals)


def nested(count: int) -> list[str]:
    """Functions whose arguments are functions, three deep."""
    chance = random.Random(11)
    stock = [(text, expression.type) for chosen in ALL.values() for text, expression in chosen]
    columns = {f"{kind}_1": [text for text, other in stock if other is kind and len(text) < 200] for kind in Type}
    found: list[str] = []
    while len(found) < count:
        text = chance.choice(stock)[0]
        for name, choices in columns.items():
            for _ in range(2):
                if name in text and len(text) < 2_000:
                    text = text.replace(name, f"({chance.choice(choices)})", 1)
        try:
            read(text)
        except QuestionError:
            continue
        found.append(text)
    return found


def deepest(text: str, name: str) -> str | None:
    """A function of itself in place of one column, about as deep as the reader lets it be; None where it takes none."""
    for depth in (24, 12, 7, 4, 2):
        found = text
        for _ in range(depth):
            found = found.replace(name, f"({text})", 1)
        try:
            read(found)
        except QuestionError:
            continue
        return found
    return None


@pytest.mark.power
def test_functions_of_themselves_take_no_longer_than_they_are_long() -> None:
    """What the reader lets through, the engine takes, at once: guards do not multiply what they guard."""
    few, slow = Plain(rows(3)), []
    for operator, chosen in ALL.items():
        if operator in ("to_date", "to_timestamp"):
            continue  # the parser of SQL itself tries DATE((x)) twice at each level, long before the engine
        found = [
            one
            for text, _ in chosen[:2]
            for name in COLUMNS
            if name in text and len(text) < 200 and (one := deepest(text, name))
        ]
        for text in found[:1]:
            start = time.monotonic()
            few.values([read(text)])
            if time.monotonic() - start > 60:  # where it doubles at each level it is hours
                slow.append((operator, text[:200]))
    assert not slow


def test_deep_functions_do_not_fail(bench: Bench) -> None:
    """In the engine's process, with everything around them."""
    known = declaration({"person": "p", "rows_per_person": 2})
    table = bench.load(known.tables["t"], [{"p": "a", "v": 1, "w": 0.5, "d": datetime.date(2020, 1, 31)}])
    for before, after, deep in (
        ("GREATEST(1, ", ")", 24),
        ("WIDTH_BUCKET(", ", 0, 10, 5)", 24),
        ("NULLIF(", ", 2)", 24),
        ("1 / (", ")", 18),
        ("CAST(CAST(", " AS TEXT) AS INTEGER)", 12),
        ("EXTRACT(YEAR FROM CAST(CAST(", " AS TEXT) AS DATE))", 8),
        ("MOD(7, ", ")", 24),
    ):
        plan = planned(f"SELECT COUNT(*) FROM t WHERE {before * deep}v{after * deep} > 0", known)
        assert len(bench.run(plan, table, "salt")) == 1
    for text in (f"d{' + INTERVAL 1 DAY' * 24} > '2020-02-01'", "h" + " || '-' || h" * 19 + " > 'a'"):
        assert len(bench.run(planned(f"SELECT COUNT(*) FROM t WHERE {text}", known), table, "salt")) == 1


def test_kinds_are_all_used() -> None:
    assert set(KINDS) == {argument.kind for row in TABLE for argument in row.takes}
