"""The bound on one person's work, rule by rule: rows as numbers, steps by what a dear expression adds wherever it
stands. Declarations and made-up facts about public tables are all that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from sqlglot import exp

import discreet
from discreet.catalog import declare
from discreet.plan.work import STEPS, VECTOR, RowCost, bound, default_work, work
from discreet.sql import lower
from discreet.trusted.ring_a.names import table_name
from discreet.trusted.ring_a.table import Relation
from discreet.trusted.ring_b.relation_statements import rows_of
from discreet.trusted.ring_b.relations import shape

RAW: dict[str, Any] = {
    "budget": {"epsilon": 10, "delta": 1e-6},
    "tables": {
        "p": {"source": "p.csv", "person": "id", "one_row_per_person": True,
              "columns": {"id": {"type": "text"}, "age": {"type": "integer", "min": 0, "max": 99}}},
        "v": {"source": "v.csv", "person": "id", "rows_per_person": 7,
              "columns": {"id": {"type": "text"}, "x": {"type": "integer", "min": 0, "max": 96},
                          "n": {"type": "number", "min": 0, "max": 1}, "t": {"type": "text", "length": 500},
                          "v": {"type": "text"}}},
        "items": {"source": "i.csv", "person": "v -> v.v", "rows_per_person": 4,
                  "columns": {"v": {"type": "text"}, "qty": {"type": "integer", "min": 0, "max": 9}}},
        "codes": {"source": "c.csv", "public": True,
                  "columns": {"k": {"type": "integer", "min": 0, "max": 9}, "word": {"type": "text"}}},
    },
}  # fmt: skip
DECLARED = declare(RAW)


class Facts:
    """Of a thousand public rows a hundred share a key, ten a word, and one both; words are long."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def most(self, relation: Relation, names: tuple[str, ...]) -> int:
        self.asked.append(names)
        assert set(names) <= {column.name for column in shape(relation).columns}
        return (1_000, 100, 1)[len(names)]

    def longest(self, relation: Relation) -> Mapping[str, int]:
        return {column.name: 30_000 for column in shape(relation).columns}


def of(text: str) -> tuple[int, int]:
    """The largest number of rows, and the steps."""
    question = lower(text, DECLARED, lambda *_: [])
    return work(question.plan.root, question.table, Facts())


ROWS = {
    "SELECT COUNT(*) FROM v a JOIN v b ON a.id = b.id": 49,
    "SELECT COUNT(*) FROM v a JOIN v b ON a.id = b.id JOIN v c ON a.id = c.id": 343,
    "SELECT COUNT(*) FROM p JOIN v ON p.id = v.id": 7,
    "SELECT COUNT(*) FROM v a LEFT JOIN v b ON a.id = b.id AND b.x > 1": 49,
    "SELECT COUNT(*) FROM v a FULL JOIN v b ON a.id = b.id AND a.x = b.x": 49 + 14,
    "SELECT COUNT(*) FROM items i": 28,
    "SELECT COUNT(*) FROM items i JOIN codes c ON i.qty = c.k": 2_800,
    "SELECT COUNT(*) FROM (SELECT id, x FROM v UNION ALL SELECT id, age AS x FROM p)": 8,
    "SELECT COUNT(*) FROM (SELECT id, x FROM v UNION ALL SELECT id, x FROM v) a JOIN v b ON a.id = b.id": 98,
    "SELECT COUNT(*) FROM v CROSS JOIN codes c": 7_000,
    "SELECT COUNT(*) FROM v JOIN codes c ON v.x < c.k": 7_000,
    "SELECT COUNT(*) FROM v JOIN codes c ON v.x = c.k": 700,
    "SELECT COUNT(*) FROM v JOIN codes c ON v.t = c.word AND c.k < 5": 700,
    "SELECT COUNT(*) FROM v JOIN codes c ON v.x = c.k AND v.t = c.word": 7,
    "SELECT COUNT(*) FROM v LEFT JOIN codes c ON v.x = c.k": 700,
    # none of these is found in a table of hashes by what the private row decides
    "SELECT COUNT(*) FROM v JOIN codes c ON v.x = c.k OR v.x = 7": 7_000,
    "SELECT COUNT(*) FROM v JOIN codes c ON NOT v.x = c.k": 7_000,
    "SELECT COUNT(*) FROM v JOIN codes c ON c.k = c.k + 0": 7_000,
    "SELECT COUNT(*) FROM v JOIN codes c ON v.x + c.k = c.k": 7_000,
    "SELECT COUNT(*) FROM v JOIN codes c ON v.n = c.k": 7_000,
    "SELECT COUNT(*) FROM v JOIN codes c ON v.x = c.k + 1": 7_000,
    "SELECT COUNT(*) FROM v JOIN codes c ON v.x + 1 = c.k": 7_000,
    "SELECT COUNT(*) FROM v JOIN codes c ON c.word = UPPER(c.word)": 7_000,
    "SELECT COUNT(*) FROM v JOIN codes c ON c.word = CONCAT(v.t, c.word)": 7_000,
}


@pytest.mark.parametrize("text", ROWS)
def test_rows_multiply_along_joins(text: str) -> None:
    assert of(text)[0] == ROWS[text]


DEAR = "REGEXP_CONTAINS({}, '[ab]*a[ab]{{5}}c')"
T, WORD, M = DEAR.format("t"), DEAR.format("c.word"), DEAR.format("m")
PLACES = {
    "a condition": (f"SELECT COUNT(*) FROM v WHERE x > 1 AND {T}", "SELECT COUNT(*) FROM v WHERE x > 1", 100),
    "a condition below": (
        f"SELECT COUNT(*) FROM (SELECT id, x FROM v WHERE {T}) a JOIN p ON a.id = p.id",
        "SELECT COUNT(*) FROM (SELECT id, x FROM v WHERE x > 1) a JOIN p ON a.id = p.id",
        100,
    ),
    "a column below": (
        f"SELECT COUNT(*) FROM (SELECT id, {T} AS m FROM v) WHERE m",
        "SELECT COUNT(*) FROM (SELECT id, x > 1 AS m FROM v) WHERE m",
        100,
    ),
    "a condition of a join": (
        f"SELECT COUNT(*) FROM v LEFT JOIN codes c ON v.x = c.k AND {WORD}",
        "SELECT COUNT(*) FROM v LEFT JOIN codes c ON v.x = c.k",
        700,
    ),
    "what is counted": (f"SELECT COUNTIF({T}) FROM v", "SELECT COUNTIF(x > 1) FROM v", 100),
    "what is counted for each person": (
        f"SELECT COUNT(*) FROM (SELECT id, SUM(CASE WHEN {T} THEN 1 ELSE 0 END) AS m FROM v GROUP BY id) WHERE m > 1",
        "SELECT COUNT(*) FROM (SELECT id, SUM(x) AS m FROM v GROUP BY id) WHERE m > 1",
        100,
    ),
    "what persons are grouped by": (
        f"SELECT COUNT(*) FROM (SELECT id, {T} AS m, COUNT(*) AS n FROM v GROUP BY id, m) WHERE n > 1",
        "SELECT COUNT(*) FROM (SELECT id, x AS m, COUNT(*) AS n FROM v GROUP BY id, m) WHERE n > 1",
        100,
    ),
    "what is looked up": (
        f"SELECT COUNT(*) FROM v WHERE CASE WHEN {T} THEN 1 ELSE 2 END IN (SELECT k FROM codes)",
        "SELECT COUNT(*) FROM v WHERE x IN (SELECT k FROM codes)",
        100,
    ),
    "where it is looked up": (
        f"SELECT COUNT(*) FROM p WHERE id IN (SELECT id FROM v WHERE {T})",
        "SELECT COUNT(*) FROM p WHERE id IN (SELECT id FROM v WHERE x > 1)",
        100,
    ),
    "either of two that are stacked": (
        f"SELECT COUNT(*) FROM (SELECT id, {T} AS m FROM v UNION ALL SELECT id, x > 1 AS m FROM v) WHERE m",
        "SELECT COUNT(*) FROM (SELECT id, x > 2 AS m FROM v UNION ALL SELECT id, x > 1 AS m FROM v) WHERE m",
        100,
    ),
    "above two that are stacked": (
        f"SELECT COUNT(*) FROM (SELECT id, t AS m FROM v UNION ALL SELECT id, t AS m FROM v) WHERE {M}",
        "SELECT COUNT(*) FROM (SELECT id, t AS m FROM v UNION ALL SELECT id, t AS m FROM v) WHERE m IS NULL",
        200,
    ),
    "above a total of texts": (
        f"SELECT COUNT(*) FROM (SELECT id, x, MAX(t) AS m FROM v GROUP BY id, x) WHERE {M}",
        "SELECT COUNT(*) FROM (SELECT id, x, MAX(t) AS m FROM v GROUP BY id, x) WHERE m IS NULL",
        7,
    ),
}
ONE = 7_500  # steps of the pattern on 500 characters, at least


@pytest.mark.parametrize("place", PLACES)
def test_a_dear_expression_counts_wherever_it_stands(place: str) -> None:
    """Once for each row that the engine may compute it on: of a table all that it holds, not those that count."""
    dear, cheap, rows = PLACES[place]
    assert of(dear)[1] - of(cheap)[1] >= rows * ONE


def test_what_follows_a_branch_counts_for_the_vectors_it_may_start() -> None:
    """A value that most rows share is computed once for all of them, and for each where one person's row differs."""
    upper = "SELECT COUNT(*) FROM (SELECT id, {} AS m FROM v) WHERE STARTS_WITH(UPPER(m), 'X')"
    branch = of(upper.format("CASE WHEN id = 'target' THEN t ELSE 'no' END"))[1]
    plain = of(upper.format("t"))[1]
    assert branch - plain > 2 * VECTOR * 1_000
    stacked = "SELECT COUNT(*) FROM (SELECT id, t AS m FROM v UNION ALL SELECT id, 'no' AS m FROM v)"
    above = of(f"{stacked} WHERE STARTS_WITH(UPPER(m), 'X')")[1]
    assert above - of(stacked)[1] > 2 * VECTOR * 1_000
    one = RowCost(steps=3, whole=5)
    assert (one.of(1), one.of(2)) == (3 + VECTOR * 5, 6 + 2 * VECTOR * 5)
    assert one.of(10 * VECTOR) == 30 * VECTOR + 12 * VECTOR * 5


@pytest.mark.parametrize(
    ("join", "constants"),
    [
        ("JOIN", ""),
        ("LEFT JOIN", "b"),
        ("RIGHT JOIN", "a"),
        ("FULL JOIN", "ab"),
    ],
)
def test_only_a_side_without_partners_is_one_constant_for_many_rows(join: str, constants: str) -> None:
    for side in "ab":
        text = f"SELECT COUNT(*) FROM v a {join} v b ON a.id = b.id AND a.x = b.x WHERE {{}}"
        dear = of(text.format(f"UPPER({side}.t) = 'X'"))[1] - of(text.format(f"{side}.t = 'X'"))[1]
        assert (dear >= 2 * VECTOR * 1_000) is (side in constants)


SCATTERED = {
    "found along a foreign key": ("SELECT COUNT(*) FROM items WHERE {}", "qty = 1", "CAST(qty AS STRING)", 14, 1_600),
    "stacked": (
        "SELECT COUNT(*) FROM (SELECT id, x, t FROM v UNION ALL SELECT id, x, t FROM v) WHERE {}", "x = 1", "t",
        4, 20_000,
    ),
    "grouped": (
        "SELECT COUNT(*) FROM (SELECT id, x, MAX(t) AS t FROM v GROUP BY id, x) WHERE {}", "x = 1", "t", 7, 20_000,
    ),
    "of a full join": (
        "SELECT COUNT(*) FROM v a FULL JOIN v b ON a.id = b.id AND a.x = b.x WHERE {}", "a.x = 1", "b.t", 100, 20_000,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SCATTERED)
def test_each_block_of_rows_among_others_may_start_vectors(what: str) -> None:
    """Tables are stored person by person, or by foreign keys, of which a person has seven; groups stand anywhere."""
    text, condition, value, rows, steps = SCATTERED[what]
    branch = f"CASE WHEN {condition} THEN {value} ELSE 'no' END"
    dear, cheap = (of(text.format(one))[1] for one in (f"UPPER({branch}) = 'X'", f"{branch} = 'X'"))
    assert dear - cheap >= rows * VECTOR * steps


def test_groups_that_a_person_may_make_are_handed_over() -> None:
    """Those by public keys are there in any case; so are not the values that a quantile reads."""
    plain = of("SELECT COUNT(*) FROM v")[1]
    assert of("SELECT t, COUNT(*) FROM v GROUP BY t")[1] - plain > 7 * (20_000 + 300 * 500)
    assert of("SELECT x, COUNT(*) FROM v GROUP BY x")[1] - plain < 7 * 20_000
    median = lower("SELECT MEDIAN(n) FROM v", DECLARED, lambda *_: [])
    assert work(median.plan.roots[-1], median.table, Facts())[1] - plain > 7 * 5_000


def test_texts_grow_through_public_tables_and_subqueries_up_to_a_limit() -> None:
    for text in (
        "SELECT COUNT(*) FROM v JOIN codes c ON v.x = c.k WHERE CONCAT(c.word, c.word, c.word, c.word) = 'a'",
        "SELECT COUNT(*) FROM (SELECT id, MAX(CONCAT(" + ", ".join("t" * 20) + ")) AS a FROM v GROUP BY id)"
        " WHERE CONCAT(" + ", ".join("a" * 11) + ") = 'a'",
        "SELECT COUNT(*) FROM (SELECT id, CONCAT(" + ", ".join("t" * 20) + ") AS a FROM v"
        " UNION ALL SELECT id, 'x' AS a FROM v) WHERE CONCAT(" + ", ".join("a" * 11) + ") = 'a'",
    ):
        with pytest.raises(discreet.QuestionError, match="characters long"):
            of(text)


def test_a_question_is_refused_above_the_limit_and_answered_up_to_it() -> None:
    text = "SELECT COUNT(*) FROM v JOIN codes c ON v.x = c.k JOIN v b ON v.id = b.id"
    question = lower(text, DECLARED, lambda *_: [])
    rows, steps = of(text)
    needed = max(rows, -(-steps // STEPS))
    for most, refused in ((needed, False), (needed - 1, True)):
        limits = type(DECLARED.limits)(work=most)
        call = (question.plan.roots, question.table, limits, list(DECLARED.tables.values()), Facts())
        if refused:
            with pytest.raises(discreet.QuestionError, match=f"work = {needed}"):
                bound(*call)
        else:
            bound(*call)
    assert default_work(list(DECLARED.tables.values())) == 10_000


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM v JOIN codes c ON v.x = c.k",
        "SELECT COUNT(*) FROM codes c JOIN v ON v.x = c.k",
        "SELECT COUNT(*) FROM v LEFT JOIN codes c ON v.x = c.k",
        "SELECT COUNT(*) FROM codes c RIGHT JOIN v ON v.x = c.k",
        "SELECT COUNT(*) FROM codes c CROSS JOIN v",
    ],
)
def test_a_public_side_is_read_first_however_it_is_written(text: str) -> None:
    """The engine reads the second side of a join whole before the first: whether a person has rows must not decide
    whether it reads the other side."""
    relation = lower(text, DECLARED, lambda *_: []).table.relation
    assert relation is not None
    joins = [join for select in rows_of(relation, lambda _: None).select.find_all(exp.Select)
             for join in select.args.get("joins") or ()]  # fmt: skip
    assert len(joins) == 1
    assert {table.name for table in joins[0].find_all(exp.Table)} == {table_name(DECLARED.tables["codes"])}
    assert joins[0].side in ("", "LEFT")
