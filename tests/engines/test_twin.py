"""What the engine cannot compute, or gives as another type than the plan says, is refused before it is paid."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pandas
import pytest
from sqlglot import exp

import discreet
from discreet.engines import statements, twin
from discreet.ledger import TOTAL
from discreet.sql import lower
from discreet.trusted.ring_a.nodes import Key, Project
from discreet.trusted.ring_a.table import Table, Type
from discreet.trusted.ring_b.dialect import Dialect

COLUMNS = {"id": {"type": "integer"}, "d": {"type": "text"}, "x": {"type": "number", "min": 0, "max": 4}}
QUESTIONS = [
    "SELECT COUNT(*), AVG(x), MEDIAN(x), COUNT(DISTINCT d) FROM t WHERE d LIKE 'a%'",
    "SELECT d, COUNT(*), COUNT(DISTINCT id) FROM t GROUP BY d",
    "SELECT d, SUM(x, contribution_bounds_per_group => (0, 3)) FROM t WHERE x > 1 GROUP BY d",
    "SELECT FLOOR(x) AS k, AVG(id) FROM t GROUP BY k",
    "SELECT w, AVG(n) FROM (SELECT id, MIN(d) AS w, COUNT(*) AS n FROM t GROUP BY id) GROUP BY w",
    "SELECT COUNT(*) FROM t a JOIN t b ON a.id = b.id AND a.x < b.x LEFT JOIN p ON p.d = a.d",
]


@pytest.fixture(scope="module")
def curator() -> Iterator[discreet.Curator]:
    frame = pandas.DataFrame({"id": [1, 1, 2], "d": ["a", "b", "a"], "x": [1.0, 2.0, 3.5]})
    people = discreet.Table(frame, person="id", rows_per_person=3, groups_per_person=1, columns=COLUMNS)
    public = discreet.Table(pandas.DataFrame({"d": ["a", "b"]}), public=True, columns={"d": str})
    with discreet.Curator({"t": people, "p": public}, epsilon=100, delta=1e-3, keys_delta=1e-4) as made:
        yield made


def test_all_shapes_of_plans_pass(curator: discreet.Curator) -> None:
    for text in QUESTIONS:
        question = lower(text, curator.declaration)
        curator._twin.hold(question.plan.roots, question.table)


def test_another_type_than_the_plan_s_is_refused_and_costs_nothing(
    curator: discreet.Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = curator.ledger.filter(TOTAL).spent
    real = twin.types

    def other(root: Any) -> tuple[list[str], int]:
        keys, totals = real(root)
        return ["BOOLEAN" for _ in keys], totals

    monkeypatch.setattr(twin, "types", other)
    for call in (curator.ask, curator.explain):
        with pytest.raises(discreet.QuestionError, match="cannot be computed"):
            call("SELECT d, COUNT(*) FROM t GROUP BY d", epsilon=1)
    assert curator.ledger.filter(TOTAL).spent == before


def test_a_key_of_another_type_in_the_plan_is_refused(curator: discreet.Curator) -> None:
    """As where two columns had one name; after it, the child goes on."""
    question = lower("SELECT d, COUNT(*) FROM t WHERE x > 1 GROUP BY d", curator.declaration)

    with pytest.raises(discreet.QuestionError, match="cannot be computed"):
        curator._twin.hold([_keyed(question.plan.root, Type.DATE)], question.table)
    curator._twin.hold(question.plan.roots, question.table)


@pytest.mark.parametrize(
    ("kinds", "held"),
    [(["BIGINT"], True), (["HUGEINT"], True), (["DOUBLE"], False), (["VARCHAR"], False), (["BIGINT", "BIGINT"], False)],
)
def test_totals_are_whole_numbers_and_as_many_as_the_plan_s(
    curator: discreet.Curator, monkeypatch: pytest.MonkeyPatch, kinds: list[str], held: bool
) -> None:
    """Sums of doubles would depend on the order of the rows."""
    question = lower("SELECT COUNT(*) FROM t", curator.declaration)
    given = exp.select(*(exp.cast(exp.Literal.number(1), kind) for kind in kinds))
    monkeypatch.setattr(statements, "statement", lambda *_, **__: given)
    expected = nullcontext() if held else pytest.raises(discreet.QuestionError, match="cannot be computed")
    with expected:
        curator._twin.hold(question.plan.roots, question.table)


def _keyed(node: Any, kind: Type) -> Any:
    if isinstance(node, Project):
        return replace(node, keys=tuple(Key(key.name, kind, None) for key in node.keys))
    return replace(node, child=_keyed(node.child, kind))


def test_nobody_waits_for_another_s_question(curator: discreet.Curator) -> None:
    """While the engine's child is busy, what a question would cost is said all the same; and no row is in the twin."""
    curator.ask("SELECT COUNT(*) FROM t", epsilon=1)
    process = curator._engine._process
    assert process is not None
    said: list[object] = []
    with process._lock:
        other = threading.Thread(target=lambda: said.append(curator.explain(QUESTIONS[1], epsilon=1)), daemon=True)
        other.start()
        other.join(300)
    assert said
    child = curator._twin._process
    assert child is not None
    name = curator.declaration.tables["t"].name.encode().hex()
    assert child.call("run", f"SELECT COUNT(*) FROM t_{name}", seconds=60)["rows"] == [[0]]


def test_ctrl_c_between_two_tables_of_the_trial_leaves_it_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has half of its tables then: it begins anew, and does not say of every question that it cannot be computed."""
    made, pressed = twin._loading, []

    def loading(table: Table, dialect: Dialect) -> list[str]:
        if table.name == "b" and not pressed:
            pressed.append(table.name)
            raise KeyboardInterrupt
        return made(table, dialect)

    monkeypatch.setattr(twin, "_loading", loading)
    frame = pandas.DataFrame({"x": [1, 2, 3]})
    tables = {name: discreet.Table(frame, columns={"x": (0, 9)}, one_row_per_person=True) for name in "ab"}
    with discreet.Curator(tables, epsilon=100) as curator:
        with pytest.raises(KeyboardInterrupt):
            curator.explain("SELECT COUNT(*) AS n FROM a", epsilon=1)
        assert pressed == ["b"]
        assert curator.ask("SELECT COUNT(*) AS n FROM a", epsilon=50).rows == [{"n": 3}]
