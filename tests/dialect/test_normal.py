"""The normal form of expressions: the same value on every row, and its own normal form."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from discreet.dialect.normal import normal
from discreet.engines.chosen import DIALECT
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.table import Type
from discreet.trusted.ring_a.terms import compiled
from kinds import examples

KIND = "exact"

COLUMNS = {"i": Type.INTEGER, "j": Type.INTEGER, "f": Type.NUMBER, "s": Type.TEXT, "b": Type.BOOLEAN}
LARGE = 2**63 - 1
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
CONSTANTS = {
    Type.INTEGER: [-LARGE, -(2**53), -1, 0, 1, 2, 2**53 - 1, 2**53, LARGE, None],
    Type.NUMBER: [Fraction(-1), Fraction(0), Fraction(1, 2), Fraction(1), Fraction(2**53), None],
    Type.TEXT: ["", "a", "b", "it's", None],
}


def literals(kind: Type) -> st.SearchStrategy[Expression]:
    return st.sampled_from([Literal(value, kind) for value in CONSTANTS[kind]])


def values(kind: Type) -> st.SearchStrategy[Expression]:
    columns = st.sampled_from([ColumnOf(name, one) for name, one in COLUMNS.items() if one is kind])
    if kind is Type.TEXT:
        return columns | literals(kind)
    sums = st.tuples(st.sampled_from(["add", "multiply"]), columns, columns | literals(kind)).map(
        lambda drawn: Call(drawn[0], (drawn[1], drawn[2]), kind)
    )
    no_number = st.just(Call("divide", (ColumnOf("f", Type.NUMBER), ColumnOf("f", Type.NUMBER)), Type.NUMBER))
    return columns | sums | (no_number if kind is Type.NUMBER else columns) | literals(kind)


@st.composite
def comparisons(draw: st.DrawFn) -> Expression:
    kind = draw(st.sampled_from(list(CONSTANTS)))
    other = draw(st.sampled_from([Type.INTEGER, Type.NUMBER])) if kind.numeric else kind
    if draw(st.booleans()):
        constants = draw(st.lists(literals(kind), min_size=1, max_size=4))
        return Call("in", (draw(values(other)), *constants), Type.BOOLEAN)
    return Call(draw(st.sampled_from(COMPARISONS)), (draw(values(kind)), draw(values(other))), Type.BOOLEAN)


CONDITIONS = st.recursive(
    comparisons() | st.just(ColumnOf("b", Type.BOOLEAN)),
    lambda below: (
        below.map(lambda one: Call("not", (one,), Type.BOOLEAN))
        | st.tuples(st.sampled_from(["and", "or"]), below, below).map(
            lambda drawn: Call(drawn[0], drawn[1:], Type.BOOLEAN)
        )
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def rows() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (i BIGINT, j BIGINT, f DOUBLE, s VARCHAR, b BOOLEAN)")
    connection.execute(
        "INSERT INTO t SELECT i, j, f, s, b FROM"
        f" (VALUES (0), (1), (2), (-1), ({LARGE}), (-{LARGE}), ({2**53}), (NULL)) AS a(i),"
        " (VALUES (0), (1), (NULL)) AS c(j),"
        " (VALUES (0.0), (0.5), (1.0), (-1.0), ('inf'::DOUBLE), ('nan'::DOUBLE), (1e308), (NULL)) AS d(f),"
        " (VALUES (''), ('a'), ('b'), (NULL)) AS e(s), (VALUES (TRUE), (FALSE), (NULL)) AS g(b)"
    )
    return connection


@settings(max_examples=examples(400), deadline=None, suppress_health_check=list(HealthCheck))
@given(condition=CONDITIONS)
def test_the_normal_form_has_the_same_value_on_every_row(
    rows: duckdb.DuckDBPyConnection, condition: Expression
) -> None:
    columns = {name: exp.column(name) for name in COLUMNS}
    one, other = (DIALECT.text(compiled(each, columns)) for each in (condition, normal(condition)))
    differ = rows.execute(f"SELECT COUNT(*) FROM t WHERE ({one}) IS DISTINCT FROM ({other})").fetchone()
    assert differ == (0,)
    assert normal(normal(condition)) == normal(condition)
