"""A statement is one tree for all engines, made once, and written by a table of what engines write differently."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import pytest
from sqlglot import exp

import discreet
from discreet.engines import statements
from discreet.engines.duckdb.dialect import DUCKDB, FUNCTIONS
from discreet.engines.statements import Statements
from discreet.sql import lower
from discreet.trusted.ring_a.dialect import function
from discreet.trusted.ring_a.windows import Salt
from discreet.trusted.ring_b.dialect import Lacking
from discreet.trusted.ring_b.engine_functions import COMMON, DIFFERENT, dialect
from discreet.trusted.ring_b.scalars import BUILDERS

QUESTIONS = {
    "SELECT g, COUNT(*), AVG(x) FROM t WHERE GREATEST(x / y, y) > NULLIF(y, 2) GROUP BY g": 1,
    "SELECT AVG(x / y) FROM t": 3,  # bounds are found first, and what follows is planned anew
    "SELECT INITCAP(g) AS w, SUM(SQRT(x), contribution_bounds_per_row => (0, 3)) FROM t GROUP BY w": 1,
    "SELECT MEDIAN(x), COUNT(DISTINCT g), COUNT(*) FROM t WHERE g LIKE 'a%'": 3,
    "SELECT COUNT(*) FROM (SELECT id, SUM(LOG2(x)) AS s FROM t GROUP BY id) WHERE s > 1": 1,
}
"""And how many statements each has."""


@pytest.fixture(scope="module")
def curator() -> Iterator[discreet.Curator]:
    frame = pandas.DataFrame({"id": [1, 1, 2], "g": ["a", "b", "a"], "x": [1.0, 2.0, 3.5], "y": [1, 2, 3]})
    number = {"type": "number", "min": 0, "max": 4}
    columns = {"id": {"type": "integer"}, "g": str, "x": number, "y": number}
    table = discreet.Table(frame, person="id", rows_per_person=3, groups_per_person=2, columns=columns)
    with discreet.Curator({"t": table}, epsilon=1000, delta=1e-3, keys_delta=1e-4) as made:
        yield made


def called(text: str) -> set[str]:
    """The functions that a statement calls."""
    return set(re.findall(r"(\w+)\(", text))


OTHER = dialect("postgres", {name: f"other_{name}({{all}})" for name in DIFFERENT})


@pytest.mark.parametrize("text", QUESTIONS)
def test_what_another_engine_reads_has_nothing_of_the_first(curator: discreet.Curator, text: str) -> None:
    question = lower(text, curator.declaration)
    own = called(" ".join(FUNCTIONS.values())) - {"CAST", "LEFT", "UPPER", "LOWER", "SUBSTRING", "COALESCE", "NULLIF"}
    for root in question.plan.roots:
        written = Statements(OTHER).of(root, question.table).salted(Salt.of("salt"))
        assert not called(written) & own
        assert not {"//", "LAMBDA", "rowid"} & set(written.split())


def test_every_name_is_one_that_all_engines_have() -> None:
    with pytest.raises(Lacking, match="list_transform"):
        DUCKDB.text(function("list_transform", exp.column("c")))


@pytest.mark.parametrize("wrong", [{"let": None}, {"list_transform": "LIST_TRANSFORM({all})"}])
def test_a_table_has_all_that_is_asked_for_and_nothing_else(wrong: dict[str, Any]) -> None:
    table = {name: written for name, written in (FUNCTIONS | wrong).items() if written is not None}
    with pytest.raises(ValueError, match="other functions"):
        dialect("duckdb", table)


def test_a_common_function_may_be_written_in_an_engines_own_way() -> None:
    own = dialect("duckdb", {**FUNCTIONS, "floor": "OWN_FLOOR({0})"})
    tree = function("floor", function("ceil", exp.column("c")))
    assert own.text(tree) == "OWN_FLOOR(CEIL(c))"
    assert DUCKDB.text(tree) == "FLOOR(CEIL(c))"


def test_texts_that_look_like_places_stay_as_they_are() -> None:
    tree = function("starts_with", exp.Literal.string("{1} {all}"), exp.Literal.string("{0}"))
    assert DUCKDB.text(tree) == "STARTS_WITH('{1} {all}', '{0}')"


def test_no_name_is_asked_for_that_nothing_needs() -> None:
    source = Path(discreet.__file__).parent
    folders = [
        source / "catalog",
        source / "engines",
        *(source / "trusted" / ring for ring in ("ring_a", "ring_b", "ring_c")),
    ]
    texts = [
        file.read_text("utf-8") for folder in folders for file in folder.glob("*.py") if file.stem != "engine_functions"
    ]
    used = {name for name in COMMON | DIFFERENT.keys() if sum(text.count(f'"{name}"') for text in texts) > 0}
    assert used == COMMON | DIFFERENT.keys()
    assert len(BUILDERS) > 100


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_question_s_statements_are_made_once(
    curator: discreet.Curator, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    real, made = statements.statement, list[object]()

    def counting(*arguments: Any, **options: Any) -> Any:
        made.append(arguments[0])
        return real(*arguments, **options)

    monkeypatch.setattr(statements, "statement", counting)
    curator.ask(text, epsilon=1)
    assert len(made) == QUESTIONS[text]


def test_statements_differ_in_their_salts_alone(curator: discreet.Curator) -> None:
    kept = Statements(DUCKDB)
    question = lower(
        "SELECT COUNT(*), SUM(x) FROM t WHERE g <> '0123456789abcdef0123456789abcdef'", curator.declaration
    )
    (root,) = question.plan.roots
    made = kept.of(root, question.table)
    assert kept.of(root, question.table) is made
    salts = [Salt.of(secrets.token_hex(16)) for _ in range(2)]
    texts = [made.salted(salt) for salt in salts]
    assert texts[0] != texts[1]
    for salt, text in zip(salts, texts, strict=True):
        assert text == DUCKDB.text(statements.statement(root, question.table, salt))


def test_what_is_kept_has_a_limit(curator: discreet.Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Statements(DUCKDB)
    monkeypatch.setattr(statements, "MOST_KEPT", 3_000)
    for number in range(40):
        question = lower(f"SELECT COUNT(*) FROM t WHERE x > {number}", curator.declaration)
        kept.of(question.plan.root, question.table)
    sizes = [made.length for _, _, made in kept._made.values()]
    assert 0 < sum(sizes) == kept._kept <= 3_000


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_salt_beside_a_statement_is_the_salt_in_it(curator: discreet.Curator, text: str) -> None:
    question, salt = lower(text, curator.declaration), Salt.of(secrets.token_hex(16))
    for root in question.plan.roots:
        made = Statements(DUCKDB).of(root, question.table)
        written, values = made.bound(salt)
        assert not any(str(value) in written for value in values)
        assert set(map(str, values)) == {getattr(salt, name) for name in made.salts}
        for place, value in reversed(list(enumerate(values, 1))):
            written = written.replace(f"${place}", f"'{value}'" if isinstance(value, str) else str(value))
        assert written == made.salted(salt)
