"""Every operator of the allow-list on awkward values, in the real engine: nothing fails, whatever a row holds."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from discreet.plan.measurement import Plan
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.nodes import Aggregate, Part, PartKind, Project, Quantity, Scan, Total, TotalKind, Vector
from discreet.trusted.ring_a.table import Table, Type
from discreet.trusted.ring_b.functions import OPERATORS
from engine_tools import Bench, declaration, planned
from kinds import some
from reference_tools import totals

INTEGERS = [None, 0, 1, -1, 7, 2**31, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]
DOUBLES = [
    None,
    0.0,
    -0.0,
    0.5,
    -1.5,
    1e-308,
    5e-324,
    2**53 + 2.0,
    1.7976931348623157e308,
    -1e308,
    math.inf,
    -math.inf,
    math.nan,
]
TEXTS = [None, "", "\\", "a\\", "%", "_", "a%b_c", "'", '"; --', "ü", "🙂", "[a-z]*", "(", "a" * 300, "\t\r\n", "ＡＢ"]
DATES = [None, datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(9999, 12, 31)]
TIMES = [
    None,
    datetime.datetime(1, 1, 1),
    datetime.datetime(2020, 2, 29, 12, 0, 0, 1),
    datetime.datetime(9999, 12, 31, 23, 59),
]
VALUES: dict[Type, list[Any]] = {
    Type.INTEGER: INTEGERS,
    Type.NUMBER: DOUBLES,
    Type.TEXT: TEXTS,
    Type.BOOLEAN: [None, True, False],
    Type.DATE: DATES,
    Type.TIMESTAMP: TIMES,
}
NUMERIC = (Type.INTEGER, Type.NUMBER)
COLUMNS = {f"{kind}_{side}": {"type": str(kind)} for kind in VALUES for side in (1, 2)}
PATTERNS = [
    "",
    "%",
    "_",
    "%%",
    "\\",
    "a\\",
    "%\\",
    "\\%",
    "a\\_",
    "%'%",
    "[a",
    "(",
    "%_%_%_%b",
    "_" * 50,
    "%a" * 60,
    "ü%",
    "🙂",
    '"',
]


def column(kind: Type, side: int = 1) -> Expression:
    return ColumnOf(f"{kind}_{side}", kind)


def constants(kind: Type) -> list[Expression]:
    """Literals of a type: what a question could write."""
    numbers: dict[Type, list[Any]] = {
        Type.INTEGER: [0, -1, 2**63 - 1, -(2**63), 2**63, 10**290],
        Type.NUMBER: [Fraction(0), Fraction(1, 3), Fraction(-1, 10**299), Fraction(10**299)],
    }
    values = numbers.get(kind, [value for value in VALUES[kind] if value is not None])
    return [Literal(value, kind) for value in values]


def operands(kind: Type) -> list[Expression]:
    return [column(kind, 1), column(kind, 2), *constants(kind), Literal(None, Type.TEXT)]


def numbers() -> list[Expression]:
    """Numeric operands, some of them computed."""
    wild = Call("multiply", (column(Type.NUMBER), column(Type.NUMBER)), Type.NUMBER)
    mixed = Call("coalesce", (column(Type.INTEGER), column(Type.NUMBER)), Type.NUMBER)
    choice = Call("case", (column(Type.BOOLEAN), column(Type.INTEGER), Literal(3, Type.INTEGER)), Type.INTEGER)
    columns = [column(kind, side) for kind in NUMERIC for side in (1, 2)]
    return [*columns, *constants(Type.INTEGER)[2:5], *constants(Type.NUMBER)[2:], wild, mixed, choice]


def calls(operator: str) -> list[Expression]:
    """The operator on all kinds of operands that a question could give it."""
    if operator in ("add", "subtract", "multiply", "divide"):
        return [Call(operator, pair, Type.NUMBER) for pair in itertools.product(numbers(), repeat=2)]
    if operator in ("negate", "absolute"):
        return [Call(operator, (one,), one.type) for one in numbers()]
    if operator in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "in"):
        pairs = list(itertools.product(numbers(), repeat=2))
        for kind in VALUES:
            pairs += itertools.product([column(kind), *constants(kind)[:4]], operands(kind))
        if operator == "in":
            return [
                Call(operator, (first, second, *constants(first.type)[:3]), Type.BOOLEAN) for first, second in pairs
            ]
        return [Call(operator, pair, Type.BOOLEAN) for pair in pairs]
    if operator in ("and", "or"):
        return [Call(operator, pair, Type.BOOLEAN) for pair in itertools.product(operands(Type.BOOLEAN)[:4], repeat=2)]
    if operator == "not":
        return [Call(operator, (one,), Type.BOOLEAN) for one in operands(Type.BOOLEAN)[:4]]
    if operator == "is_null":
        return [Call(operator, (one,), Type.BOOLEAN) for kind in VALUES for one in operands(kind)] + [
            Call(operator, (one,), Type.BOOLEAN) for one in numbers()
        ]
    if operator == "like":
        texts = [column(Type.TEXT), *constants(Type.TEXT)]
        return [
            Call(operator, (one, Literal(pattern, Type.TEXT)), Type.BOOLEAN) for one in texts for pattern in PATTERNS
        ]
    if operator == "coalesce":
        chosen = [(one, two) for kind in VALUES for one, two in itertools.product(operands(kind), repeat=2)]
        chosen += itertools.product(numbers(), repeat=2)
        return [Call(operator, (one, two), _type(one, two)) for one, two in chosen if _type(one, two)]
    assert operator == "case", f"{operator} is not tested"
    return [
        Call("case", (Call("is_null", (column(Type.TEXT),), Type.BOOLEAN), *call.arguments), call.type)
        for call in calls("coalesce")[::2]
    ]


def _type(*sides: Expression) -> Any:
    kinds = {side.type for side in sides if not (isinstance(side, Literal) and side.value is None)}
    return None if not kinds else Type.NUMBER if kinds == set(NUMERIC) else kinds.pop()


def rows() -> list[dict[str, Any]]:
    """Every pair of two values of one type, and the types against each other by turns."""
    pairs = {kind: list(itertools.product(values, repeat=2)) for kind, values in VALUES.items()}
    most = max(map(len, pairs.values()))
    table = []
    for index in range(most):
        row = {}
        for kind, chosen in pairs.items():
            row[f"{kind}_1"], row[f"{kind}_2"] = chosen[index % len(chosen)]
        table.append(row)
    return table


COARSE, FINE = Lattice(Fraction(1), -(2**53), 2**53), Lattice(Fraction(1, 2**1060), -(2**31), 2**31)


def question(expressions: Sequence[Expression], lattices: Sequence[Lattice] = (COARSE, FINE)) -> Plan:
    """All the expressions at once: how many are not NULL, and of numbers their sums on these lattices."""
    quantities = []
    for expression in expressions:
        quantities.append(Quantity(expression, None))
        if expression.type in NUMERIC:
            quantities += [Quantity(expression, lattice) for lattice in lattices]
    sums = [
        Total(TotalKind.SUM if quantity.lattice else TotalKind.NON_NULL, index)
        for index, quantity in enumerate(quantities)
    ]
    root = Aggregate(Project(Scan("t", None, True), (), tuple(quantities)), tuple(sums))
    return Plan("t", root, (), (Part(PartKind.COUNT, (Vector(((0, 1),)),), 1),), ())


@pytest.fixture(scope="module")
def edges(bench: Bench) -> Table:
    return bench.load(declaration({"one_row_per_person": True}, COLUMNS).tables["t"], rows())


@pytest.mark.parametrize(
    ("every", "operator"),
    some([(every, operator) for every in (5, 1) for operator in sorted(OPERATORS)], pytest.mark.power, len(OPERATORS)),
)
def test_no_value_makes_an_operator_fail(bench: Bench, edges: Table, every: int, operator: str) -> None:
    expressions = calls(operator)[::every]
    for start in range(0, len(expressions), 150):
        plan = question(expressions[start : start + 150])
        ((_, found),) = bench.run(plan, edges, "salt")
        assert len(found) == len(plan.root.totals)


@pytest.mark.parametrize("most", some([20, 60], pytest.mark.power))
@pytest.mark.parametrize("operator", sorted(OPERATORS - {"in", "case"}))
def test_operators_mean_what_they_mean_in_python(bench: Bench, edges: Table, operator: str, most: int) -> None:
    """The same expressions in plain Python, counted and summed up to equal integers: so many of each."""
    chosen = [one for one in calls(operator) if not any(_huge(side) for side in one.arguments)]  # type: ignore[union-attr]
    plan = question(chosen[:: max(1, len(chosen) // most)], [COARSE])
    ((_, found),) = bench.run(plan, edges, "salt")
    expected = totals(plan.root, edges, rows())[()]
    wrong = [index for index, (one, two) in enumerate(zip(found, expected, strict=True)) if one != two]
    assert not wrong, [str(plan.root.child.quantities[index])[:500] for index in wrong[:3]]  # type: ignore[union-attr]


def _huge(expression: Expression) -> bool:
    """Integers that Python compares exactly, and the engine as doubles."""
    return isinstance(expression, Literal) and isinstance(expression.value, int) and abs(expression.value) >= 2**63


def test_deep_and_long_questions_do_not_fail(bench: Bench) -> None:
    """What the reader lets through, the engine takes: else a question would be charged and not answered."""
    known = declaration({"person": "p", "rows_per_person": 2})
    table = bench.load(known.tables["t"], [{"p": "a", "v": 1, "w": 0.5, "b": True}])
    for text in (
        "SELECT COUNT(*) FROM t WHERE " + " OR ".join(["v = 1"] * 95),
        "SELECT COUNT(*) FROM t WHERE " + " AND ".join(["w BETWEEN 0.1 AND 0.9"] * 90),
        "SELECT SUM(" + " + ".join(["v * w"] * 95) + ") FROM t",
        "SELECT SUM(" + "COALESCE(" * 30 + "v" + ", 1.5)" * 30 + ") FROM t",
        "SELECT COUNT(*) FROM t WHERE v IN (" + ", ".join(map(str, range(4_900))) + ")",
        "SELECT COUNT(*) FROM t WHERE " + "CASE WHEN b THEN " * 30 + "b" + " ELSE FALSE END" * 30,
    ):
        assert len(bench.run(planned(text, known), table, "salt")) == 1
