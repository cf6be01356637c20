"""Whole questions made up at random, with hostile persons in the tables and without: none fails, none tells.

And what it is there for: engines that a row makes fail, and sentences that a row changes, are found.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from sqlglot import exp

import discreet.curator.lookup
from discreet.audit import hunt
from discreet.audit.hostile import crowd, with_persons
from discreet.audit.hunt import PRICES, Pair, shrunk
from discreet.audit.maker import From, Item, Maker
from discreet.audit.random_expressions import Expressions, Name, gives
from discreet.audit.world import world
from discreet.catalog import Column, Type, declare
from discreet.dialect.table import TABLE
from discreet.errors import QuestionError
from discreet.plan import order_statistic_plans
from discreet.sql import lower
from discreet.sql.expressions import ExpressionReader
from discreet.sql.grammar import parse
from discreet.trusted.ring_a.expressions import ColumnOf, Expression
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_b import relations, scalars
from hunt_tools import compiled_once, framed
from kinds import some

KNOWN = world()
QUESTIONS = 60


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair.of(KNOWN, framed) as pair:
        yield pair


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled_once(monkeypatch)


@pytest.mark.parametrize("questions", some([QUESTIONS // 5, QUESTIONS], pytest.mark.power))
def test_no_question_fails_and_nothing_printed_differs(pair: Pair, questions: int) -> None:
    assert hunt.hunt(KNOWN, pair, 7, questions, smaller=False) == []


def test_every_function_of_the_table_is_written_and_read() -> None:
    """Of each row of the dialect's table, on every type that it can give, questions are made that are accepted."""
    columns = {(name := f"{kind}_{side}"): Column(name, kind) for kind in Type for side in (1, 2)}
    names = [Name(name, column.type or Type.TEXT) for name, column in columns.items()]

    def read(text: str) -> Expression:
        reader = ExpressionReader(lambda node: ColumnOf(node.name, Type(node.name.rsplit("_", 1)[0])), columns)
        return reader.read(parse(f"SELECT {text}").expressions[0])

    for row in TABLE:
        for kind in [kind for kind in Type if gives(row, kind)]:
            accepted = 0
            for seed in range(3):
                try:
                    found = read(Expressions(Random(seed)).call(row, kind, names, 0))
                except QuestionError:
                    continue
                assert found.type is kind or row.gives in ("rounded", "moment"), row.operator
                accepted += 1
            assert accepted, (row.operator, kind)


def test_most_questions_are_accepted_and_they_are_of_all_kinds() -> None:
    """Not one kind of source, unit, key or aggregate is left out; a third at most is refused."""
    maker, texts, refused = Maker(KNOWN, 5), [], 0
    for _ in range(150):
        text = maker.question()
        try:
            lower(text, KNOWN, lambda _: [(1,)])
            texts.append(text)
        except QuestionError:
            refused += 1
    assert refused < 50
    for part in (
        *(
            "LEFT JOIN",
            "RIGHT JOIN",
            "UNION ALL",
            "WITH ",
            "DISTINCT",
            "IN (SELECT",
            "CROSS JOIN",
            "OPTIONS (",
            "HAVING",
        ),
        *("ORDER BY", "LIMIT", "GROUP BY", "MEDIAN", "codes", "parts", "items", "visits", "people", "answers"),
    ):
        assert any(part in text for text in texts), part


def test_the_persons_are_hostile_and_the_rest_is_not_touched() -> None:
    others = crowd(KNOWN)
    whole = with_persons(KNOWN, others)
    assert all(whole[name][: len(rows)] == rows for name, rows in others.items())
    assert whole["codes"] == others["codes"]
    values = [value for name in ("people", "visits", "answers") for row in whole[name] for value in row.values()]
    assert {2**63 - 1, float("inf"), "infinity", "10000-01-01", "1e999", None, ""} <= set(values)
    assert max(len(value) for value in values if isinstance(value, str)) >= 10_000


def test_keys_of_hostile_persons_are_theirs_alone_unless_a_table_is_shared() -> None:
    """Else the tables that the hunt makes up would be refused."""
    columns = {"who": {"type": "text"}, "number": {"type": "integer"}}
    told: dict[str, Any] = {
        "people": {"person": "who", "rows_per_person": 3, "columns": columns},
        "visits": {"person": "visit -> people.number", "rows_per_person": 3, "columns": {"visit": {"type": "integer"}}},
    }
    for shared in (False, True):
        told["visits"]["shared"] = shared
        tables = {name: {"source": "nowhere.csv", **one} for name, one in told.items()}
        known = declare({"budget": {"epsilon": 1}, "tables": tables})
        whole = with_persons(known, crowd(known))["people"]
        owners: dict[int, set[str]] = {}
        for row in whole:
            owners.setdefault(row["number"], set()).add(row["who"])
        assert (max(map(len, owners.values())) > 1) == shared


@pytest.mark.power
def test_an_engine_that_fails_on_a_row_is_found_and_made_small(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cast that is not total: an error of the engine where a text is no number."""
    monkeypatch.setitem(scalars.BUILDERS, "to_integer", lambda nodes, _: exp.cast(nodes[0], "BIGINT"))
    text = "SELECT COUNT(*) AS n, SUM(age) FROM people WHERE CAST(note AS INTEGER) > 1 OR age > 3"
    what = pair.ask(text, PRICES[1])
    assert "EngineError" in what
    small = shrunk(text, pair, PRICES[1], what)
    assert "CAST ( note AS INTEGER )" in small
    assert len(small) < len(text) - 15
    monkeypatch.undo()
    assert pair.ask("SELECT COUNT(*) FROM visits", PRICES[1]) == ""


def test_a_sentence_that_is_said_where_it_is_true_is_found(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Any = discreet.curator.lookup.answer

    def told(priced: Any, noisy: Any, table: Any, *more: Any, **named: Any) -> Any:
        content = real(priced, noisy, table, *more, **named)
        return replace(content, bounds=(*content.bounds, f"of {len(noisy.keys)} groups"))

    monkeypatch.setattr(discreet.curator.lookup, "answer", told)
    assert pair.ask("SELECT note, COUNT(*) FROM answers GROUP BY note", PRICES[2]) == "bounds differs"


def test_a_lattice_beyond_64_bits_is_found(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrong version sized a quantile's lattice by the width of its bounds only: a row cannot be cast to it."""

    def by_width(bounds: tuple[Fraction, Fraction], step: Fraction | None, most: int) -> Lattice:
        del step
        each = (bounds[1] - bounds[0]) / most or Fraction(1)
        return Lattice(each, bounds[0] // each, bounds[1] // each + 1)

    monkeypatch.setattr(order_statistic_plans, "buckets", by_width)
    monkeypatch.setattr(Lattice, "__post_init__", lambda _: None)
    assert "EngineError" in first(pair, Maker(KNOWN, 5), "SELECT MEDIAN", "(1e15")


class Clashing(Maker):
    """Random questions in which a column of ours could be taken for the analyst's, if both had one name."""

    def made(self, below: From, count: int) -> list[Item]:
        del count
        return [Item(self.condition(below.names, 1), '"value 0"', Type.BOOLEAN)]

    def where(self, source: From, share: float = 0.5) -> str:  # noqa: ARG002
        return next((f" WHERE {name.text}" for name in source.names if name.text.endswith('"value 0"')), "")

    def _wanted(self, source: From) -> str:
        return f"COUNT(DISTINCT {self.value(Type.TEXT, source.names, 1)})"


def test_a_computed_column_with_a_name_of_ours_is_found(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrong version called a computed column so as an analyst may call one: what is checked is another column than
    what is read."""
    monkeypatch.setattr(sys.modules["discreet.sql.lower"], "_computed_name", lambda _: "value 0")
    monkeypatch.setattr(relations, "_told_apart", lambda _: None)
    what = first(pair, Clashing(KNOWN, 5), 'AS "value 0"', 'WHERE "value 0"')
    assert "EngineError" in what or "does not read this table" in what  # the gate is the first to see it


def first(pair: Pair, maker: Maker, *parts: str) -> str:
    """What is wrong with the first of many random questions that hold these parts and are found."""
    for text in (maker.question() for _ in range(2_000)):
        if all(part in text for part in parts) and (what := pair.ask(text, PRICES[1], explained=False)):
            return what
    return ""
