"""Values that have a name become columns of derived tables: the text stays short, and the answers are the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import pyarrow
import pytest
from sqlglot import exp

from discreet.engines.layers import is_let, layered, let
from discreet.engines.postgresql.dialect import POSTGRESQL
from discreet.trusted.ring_a.dialect import function
from discreet.trusted.ring_a.table import Type
from discreet.trusted.ring_a.terms import double_literal
from discreet.trusted.ring_b.scalars import bound
from two_engines import Both, both

Node = exp.Expression
Made = Callable[[], exp.Expression]


def _no_totals(node: exp.Expr) -> bool:
    return isinstance(node, exp.AggFunc)


def twice(value: Node) -> Node:
    """A value that stands in an expression twice."""
    return bound(
        value, lambda v: exp.Paren(this=exp.Add(this=v, expression=exp.Mul(this=v.copy(), expression=v.copy())))
    )


def column(name: str, table: str | None = None) -> Node:
    return exp.column(name, table=table)


def number(value: int) -> Node:
    return exp.Literal.number(value)


def more(left: Node, right: Node) -> Node:
    return exp.Add(this=left, expression=right)


@pytest.fixture(scope="module")
def engines() -> Both:
    made, chance = both(18), random.Random(2)
    for name in ("one", "other"):
        rows = {
            c: pyarrow.array([chance.choice([None, 0, 1, 2, 3, -1]) for _ in range(40)], pyarrow.int64()) for c in "abk"
        }
        made.make(name, pyarrow.table(rows), dict.fromkeys("abk", Type.INTEGER))
    return made


def _select(*nodes: Node, source: str = "one") -> exp.Select:
    named = [exp.alias_(node, f"x{place}") for place, node in enumerate(nodes)]
    return exp.select(*named).from_(source)


def _joined(kind: str, on: Node, *nodes: Node) -> exp.Select:
    left = exp.select("*").from_("one").subquery("l")
    select = exp.select(*(exp.alias_(node, f"x{place}") for place, node in enumerate(nodes))).from_(left)
    keys = exp.EQ(this=column("k", "l"), expression=column("k", "r"))
    return select.join(exp.select("*").from_("other").subquery("r"), on=exp.and_(keys, on), join_type=kind)


A, B = column("a"), column("b")
SELECTS: dict[str, Made] = {
    "one": lambda: _select(twice(A.copy())),
    "one in one": lambda: _select(twice(twice(more(A.copy(), B.copy())))),
    "the same name inside": lambda: _select(
        bound(
            more(A.copy(), number(1)), lambda v: more(v, bound(more(v.copy(), number(2)), lambda w: more(w, w.copy())))
        )
    ),
    "a value that is plain": lambda: _select(twice(A.copy()), twice(number(3))),
    "where": lambda: (
        _select(A.copy(), B.copy())
        .where(exp.GT(this=A.copy(), expression=number(0)))
        .where(exp.GT(this=twice(more(A.copy(), B.copy())), expression=number(1)))
    ),
    "all columns": lambda: (
        exp.select("*")
        .from_(exp.select("a", "b").from_("one").subquery("s"))
        .where(exp.GT(this=twice(more(A.copy(), B.copy())), expression=number(1)))
    ),
    "a union": lambda: (
        exp.select("*")
        .from_(exp.select("a", "b").from_("one").subquery("s"))
        .where(exp.GT(this=twice(more(A.copy(), B.copy())), expression=number(1)))
        .union(exp.select("a", "b").from_("other"), distinct=False)
    ),
    "groups": lambda: _select(twice(more(A.copy(), number(1))), exp.Count(this=exp.Star())).group_by(
        twice(more(A.copy(), number(1)))
    ),
    "of totals": lambda: _select(
        twice(more(exp.Count(this=exp.Star()), exp.Count(this=twice(more(A.copy(), B.copy()))))), B.copy()
    ).group_by("b"),
    "of totals and of keys": lambda: _select(
        twice(more(exp.Max(this=A.copy()), number(1))), twice(more(B.copy(), number(1)))
    ).group_by(twice(more(B.copy(), number(1)))),
    "of totals of all": lambda: _select(twice(more(exp.Max(this=twice(more(A.copy(), number(1)))), number(1)))),
    "a window": lambda: _select(
        A.copy(),
        exp.Window(this=exp.Count(this=exp.Star()), partition_by=[twice(more(A.copy(), number(1)))]),
    ),
    **{
        f"{kind} join of {name}": lambda kind=kind, on=on: _joined(  # type: ignore[misc]
            kind, on(), column("a", "l"), column("b", "r"), column("k", "l")
        )
        for kind in ("inner", "left", "full")
        for name, on in {
            "one side": lambda: exp.GT(this=twice(more(column("a", "l"), number(1))), expression=column("b", "r")),
            "each side": lambda: exp.GT(
                this=twice(more(column("a", "l"), number(1))), expression=twice(more(column("b", "r"), number(1)))
            ),
            "both sides": lambda: exp.GT(this=twice(more(column("a", "l"), column("b", "r"))), expression=number(1)),
            "both sides and each": lambda: exp.GT(
                this=twice(twice(more(twice(more(column("a", "l"), number(1))), column("b", "r")))),
                expression=number(1),
            ),
        }.items()
    },
    "what a join gives": lambda: _joined(
        "left",
        exp.GT(this=twice(more(column("a", "l"), column("b", "r"))), expression=number(1)),
        twice(more(exp.Coalesce(this=column("b", "r"), expressions=[number(7)]), column("a", "l"))),
        column("k", "l"),
    ),
    "a list": lambda: _select(A.copy()).where(
        exp.In(
            this=twice(more(A.copy(), number(1))),
            query=_select(twice(more(B.copy(), number(1))), source="other").subquery(copy=False),
        )
    ),
}


@pytest.mark.parametrize("name", SELECTS)
def test_layers_give_what_lambdas_give(engines: Both, name: str) -> None:
    ours, theirs = engines.asked(SELECTS[name]())
    assert sorted(ours, key=repr) == sorted(theirs, key=repr)
    assert len(ours) > 0


@pytest.mark.parametrize("name", SELECTS)
def test_no_let_is_left_and_the_tree_itself_stays(name: str) -> None:
    tree = SELECTS[name]()
    found = layered(tree.copy(), _no_totals)
    assert not any(is_let(node) for node in found.walk())
    assert tree == SELECTS[name]()


def test_an_expression_alone_becomes_a_select_of_its_own(engines: Both) -> None:
    text = POSTGRESQL.text(twice(twice(more(A.copy(), B.copy()))))
    found = engines.of_server(f"SELECT a, b, {text} AS x FROM one WHERE a IS NOT NULL AND b IS NOT NULL")
    once = [a + b + (a + b) ** 2 for a, b, _ in found]
    assert [x for *_, x in found] == [one + one**2 for one in once]


def test_equal_values_share_a_column() -> None:
    text = POSTGRESQL.text(_select(*(twice(more(A.copy(), B.copy())) for _ in range(5))))
    assert text.count("a + b") == 1
    assert text.count("OFFSET '0'") == 1


def _deep(depth: int) -> Node:
    node: Node = A.copy()
    for _ in range(depth):
        node = bound(
            function("number_product", node, column("b")),
            lambda v: function("number_sum", v, function("number_quotient", v.copy(), double_literal(Fraction(3)))),
        )
    return node


def test_deep_nests_grow_with_their_depth_alone() -> None:
    sizes = [len(POSTGRESQL.text(_select(_deep(depth)))) for depth in (10, 20, 40)]
    assert sizes[1] - sizes[0] < 50_000
    assert sizes[2] - sizes[1] < 2.2 * (sizes[1] - sizes[0])


def test_conditions_without_lets_are_asked_first() -> None:
    text = POSTGRESQL.text(SELECTS["where"]())
    assert text.index("a > 0") < text.index("OFFSET")


def test_layers_run_in_parallel(engines: Both) -> None:
    """The planner may divide a table among workers below them."""
    engines.server.execute("SET max_parallel_workers_per_gather = 2")
    engines.server.execute("SET parallel_setup_cost = 0")
    engines.server.execute("SET min_parallel_table_scan_size = 0")
    engines.server.execute("SET parallel_tuple_cost = 0")
    try:
        text = POSTGRESQL.text(exp.select(exp.Count(this=twice(more(A.copy(), B.copy())))).from_("one"))
        engines.server.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
        plan = engines.of_server(f"EXPLAIN (COSTS OFF) {text}")
        assert any("Parallel Seq Scan" in line for (line,) in plan), plan
    finally:
        engines.server.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "true"})
        for name in (
            "max_parallel_workers_per_gather",
            "parallel_setup_cost",
            "min_parallel_table_scan_size",
            "parallel_tuple_cost",
        ):
            engines.server.execute(f"RESET {name}")


def test_a_let_of_no_table() -> None:
    found = both(18).of_server(POSTGRESQL.text(exp.select(exp.alias_(twice(more(number(1), number(2))), "x"))))
    assert found == [(12,)]


def test_names_are_bound_where_they_stand() -> None:
    inner = let(more(column("v"), number(1)), "v", more(column("v"), column("v")))
    tree = exp.select(exp.alias_(let(more(A.copy(), number(1)), "v", inner), "x")).from_("one")
    text = POSTGRESQL.text(tree)
    assert " v " not in text
    assert text.count("OFFSET '0'") == 2
