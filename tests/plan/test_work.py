"""What one person's rows can make the engine do: bounded before the price, alike for everybody, and truly a bound."""

from __future__ import annotations

import datetime
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import pandas
import pytest

import discreet
from discreet.catalog import declare
from discreet.dialect.patterns import regular
from discreet.dialect.table import TABLE
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.duckdb.worker import DISABLED
from discreet.plan.work import LONGEST, VECTOR, Public, RowCost, _Measure, default_work
from discreet.sql import lower
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.statement import kept_rows, statement
from discreet.trusted.ring_a.table import Type
from discreet.trusted.ring_a.windows import Salt
from discreet.trusted.ring_b.relation_statements import rows_of
from kinds import some

CODES = [{"k": place % 10, "word": "x" * (place % 7)} for place in range(1_000)]
VISITS = [{"id": f"p{place % 50}", "x": place % 97, "t": f"text {place}"} for place in range(500)]
TARGET = [{"id": "target", "x": 7, "t": "ab" * 2_000} for _ in range(100)]

REFUSED = {
    "a cross join": "SELECT COUNT(*) FROM (SELECT id FROM v WHERE id = 'target' AND x = 7) p CROSS JOIN codes c"
    " CROSS JOIN codes d",
    "an unequal join": "SELECT COUNT(*) FROM v JOIN codes c ON v.x < c.k",
    "keys that are made equal": "SELECT COUNT(*) FROM v"
    " JOIN (SELECT CASE WHEN k >= 0 THEN 'many' END AS m FROM codes) c"
    " ON CASE WHEN v.x = 7 THEN 'many' ELSE 'none' END = c.m",
    "joins of a person's rows": "SELECT COUNT(*) FROM v a "
    + " ".join(f"JOIN v b{n} ON a.id = b{n}.id" for n in range(5)),
    "regexes on a text of the target alone": "SELECT COUNT(*) FROM v WHERE "
    + " AND ".join(f"NOT REGEXP_CONTAINS(CASE WHEN id = 'target' THEN t ELSE '' END, 'a{n}b')" for n in range(90)),
    "a regex of very many states": "SELECT COUNT(*) FROM v WHERE REGEXP_CONTAINS(t, '[ab]*a[ab]{40}c')",
    "texts that grow": "SELECT COUNT(*) FROM (SELECT id, MAX(CONCAT("
    + ", ".join(["a"] * 20)
    + ")) AS b FROM (SELECT id,"
    " MAX(CONCAT(t, t, t, t, t, t, t, t, t, t, t, t, t, t, t, t, t, t, t, t)) AS a FROM v GROUP BY id) GROUP BY id)"
    " WHERE CONCAT(b, b) = 'x'",
}
ANSWERED = [
    "SELECT COUNT(*) FROM v JOIN codes c ON v.x = c.k",
    "SELECT COUNT(*) FROM v a JOIN v b ON a.id = b.id",
    "SELECT COUNT(*) FROM v WHERE t LIKE '%abc%' OR REGEXP_CONTAINS(t, 'text (1|2)[0-9]*')",
    "SELECT CASE WHEN x > 50 THEN 'high' ELSE 'low' END AS h, COUNT(*) FROM v GROUP BY h",
]


def of(visits: list[dict[str, Any]], **engine: int) -> discreet.Curator:
    tables = {
        "v": discreet.Table(
            pandas.DataFrame(visits), person="id", rows_per_person=20, columns={"id": str, "x": (0, 96), "t": str}
        ),
        "codes": discreet.Table(pandas.DataFrame(CODES), public=True, columns={"k": (0, 9), "word": str}),
    }
    return discreet.Curator(tables, epsilon=100, delta=1e-6, engine=engine)


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[discreet.Curator, discreet.Curator]]:
    with of(VISITS) as absent, of(VISITS + TARGET) as present:
        yield absent, present


@pytest.mark.parametrize("question", REFUSED.values(), ids=REFUSED)
def test_work_that_one_person_can_cause_is_refused_alike_and_costs_nothing(
    both: tuple[discreet.Curator, discreet.Curator], question: str
) -> None:
    words = set()
    for one in both:
        before = one.ledger.head
        for call in (one.ask, one.explain):
            with pytest.raises(discreet.QuestionError) as refusal:
                call(question, epsilon=1)
            words.add((refusal.value.code, str(refusal.value)))
        assert one.ledger.head == before
    ((code, text),) = words
    assert code == "work"
    assert "target" not in text


@pytest.mark.parametrize("question", ANSWERED)
def test_ordinary_questions_are_answered(both: tuple[discreet.Curator, discreet.Curator], question: str) -> None:
    for one in both:
        assert one.ask(question, epsilon=1).rows


def test_an_owner_may_allow_more() -> None:
    question = "SELECT COUNT(*) FROM v JOIN codes c ON v.x < c.k"
    with of(VISITS, work=20_000) as one:
        assert one.ask(question, epsilon=1).rows
    with of(VISITS, work=19_999) as one, pytest.raises(discreet.QuestionError, match="work = 20000"):
        one.ask(question, epsilon=1)


class Counted(Public):
    """Facts about public tables, from an engine that holds nothing else."""

    def __init__(self, one: discreet.Curator) -> None:
        self.most, self.longest = one._holdings.most, one._holdings.longest


JOINS = [
    "SELECT COUNT(*) FROM p JOIN v ON p.id = v.id",
    "SELECT COUNT(*) FROM v a JOIN v b ON a.id = b.id",
    "SELECT COUNT(*) FROM v a FULL JOIN v b ON a.id = b.id AND a.x = b.x",
    "SELECT COUNT(*) FROM v a FULL JOIN v b ON a.id = b.id AND a.x < b.x - 200",
    "SELECT COUNT(*) FROM v a LEFT JOIN v b ON a.id = b.id AND b.x > 1",
    "SELECT COUNT(*) FROM v RIGHT JOIN p ON p.id = v.id",
    "SELECT COUNT(*) FROM items i",
    "SELECT COUNT(*) FROM items i JOIN codes c ON i.qty = c.k",
    "SELECT COUNT(*) FROM v LEFT JOIN codes c ON v.x < c.k",
    "SELECT COUNT(*) FROM v CROSS JOIN codes c",
    "SELECT COUNT(*) FROM (SELECT id, x FROM v UNION ALL SELECT id, age AS x FROM p)",
    "SELECT COUNT(*) FROM (SELECT id, x FROM v WHERE id IN (SELECT id FROM p)) a JOIN v b ON a.id = b.id",
]


@pytest.fixture(scope="module")
def shop() -> Iterator[discreet.Curator]:
    """One person with everything: very many rows, on one key and on many."""
    visits = [{"id": "target", "x": place % 5, "v": f"v{place}"} for place in range(500)]
    visits += [{"id": f"p{place}", "x": place, "v": f"w{place}"} for place in range(20)]
    items = [{"v": "v1", "qty": 3} for _ in range(500)]
    items += [{"v": f"{word}{place}", "qty": place % 9} for word in "vw" for place in range(500)]
    persons = [{"id": name, "age": 7} for name in ("target", *(f"p{place}" for place in range(20)))]
    tables = {
        "p": discreet.Table(pandas.DataFrame(persons), person="id", one_row_per_person=True,
                            columns={"id": str, "age": (0, 99)}),
        "v": discreet.Table(pandas.DataFrame(visits), person="id", rows_per_person=7,
                            columns={"id": str, "x": (0, 96), "v": str}),
        "items": discreet.Table(pandas.DataFrame(items), person="v -> v.v", rows_per_person=4,
                                columns={"v": str, "qty": (0, 9)}),
        "codes": discreet.Table(pandas.DataFrame(CODES), public=True, columns={"k": (0, 9), "word": str}),
    }  # fmt: skip
    with discreet.Curator(tables, epsilon=100, delta=1e-6) as one:
        one.ask("SELECT COUNT(*) FROM v", epsilon=1)
        yield one


def second_sides(one: discreet.Curator, sql: str) -> list[int]:
    """How many rows the second side of each join gave, as the engine itself counts them, on tables copied out of it."""
    return [second for _, _, second in joins(one, sql)]


def joins(one: discreet.Curator, sql: str) -> list[tuple[str, int, int]]:
    """Of each join how the engine made it, and how many rows either side gave."""
    names = sorted(set(re.findall(r"\bt_[0-9a-f]+\b", sql)))
    connection = duckdb.connect()
    connection.execute(f"SET disabled_optimizers = '{','.join(DISABLED)}'")
    for name in names:
        columns = run(one, f"SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = '{name}'")
        connection.execute(f"CREATE TABLE {name} ({', '.join(f'{column} {kind}' for column, kind in columns)})")
        values = list(map(list, zip(*run(one, f"SELECT * FROM {name}"), strict=True)))
        listed = ", ".join(f"unnest(?::{kind}[])" for _, kind in columns)
        connection.execute(f"INSERT INTO {name} SELECT {listed}", values or [[]] * len(columns))
    ((_, plan),) = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}").fetchall()
    found: list[tuple[str, int, int]] = []

    def rows(node: Any) -> int:
        below = [rows(child) for child in node.get("children", [])]
        return sum(below) if node["type"] == "UNION" else int(node["intermediate_rows"]) or 0

    def walk(node: Any) -> None:
        if node.get("type", "").endswith(("JOIN", "PRODUCT")):
            found.append((node["type"], rows(node["children"][0]), rows(node["children"][1])))
        for child in node.get("children", []):
            walk(child)

    walk(json.loads(plan)["operator"][0])
    return found


def run(one: discreet.Curator, sql: str) -> list[list[Any]]:
    assert one._engine._process is not None
    return list(one._engine._process.call("run", sql, seconds=60)["rows"])


@pytest.mark.parametrize("text", JOINS)
def test_no_person_has_more_joined_rows_than_the_bound(shop: discreet.Curator, text: str) -> None:
    """Counted in the engine."""
    question = lower(text, shop.declaration, shop._holdings.public_values)
    relation = question.table.relation
    assert relation is not None
    most = _Measure(Counted(shop)).side(relation).rows
    rows = rows_of(relation, lambda table: kept_rows(Salt.of("salt"), table))
    counts = Counter(person for (person,) in run(shop, f"SELECT person FROM ({DUCKDB.text(rows.select)})"))
    assert counts["target"] <= most
    assert counts["target"] > 0
    assert all(len(person) <= 1_000 for person in counts)


def test_the_engine_holds_no_more_rows_of_a_person_than_questions_may_choose_from(shop: discreet.Curator) -> None:
    for name, column, most in (("v", 0, 100), ("items", 0, 100)):
        table = shop.declaration.tables[name]
        assert table.stored == most
        sql = f"SELECT count(*) FROM t_{name.encode().hex()} GROUP BY c{column}"
        assert max(count for (count,) in run(shop, sql)) == most


@pytest.fixture(scope="module")
def many() -> Iterator[discreet.Curator]:
    """More persons than the engine reads at a time, nobody of whom has an x of 9."""
    frame = pandas.DataFrame({"id": range(5_000), "x": [n % 7 for n in range(5_000)], "t": ["a"] * 5_000})
    whole = {"type": "integer", "min": 0, "max": 9}
    table = discreet.Table(frame, person="id", one_row_per_person=True, columns={"id": int, "x": whole, "t": str})
    codes = discreet.Table(pandas.DataFrame({"k": range(5)}), public=True, columns={"k": whole})
    with discreet.Curator({"p": table, "codes": codes}, epsilon=10, delta=1e-6) as one:
        yield one


@pytest.mark.parametrize(
    "condition",
    some(
        [
            "a.id = b.id",
            "a.id = b.id AND a.x + 1 = NULLIF(b.x, 0)",
            "a.id = b.id AND a.x + b.x > 3",
            "a.id = b.id AND a.x = b.x",
            "a.id = b.id AND b.x >= a.x",
            "a.id = b.id AND a.t = b.t AND a.x = 3",
        ],
        pytest.mark.power,
        quick=3,
    ),
)
@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "FULL JOIN"])
def test_others_rows_are_read_whether_or_not_a_row_could_meet_them(
    many: discreet.Curator, kind: str, condition: str
) -> None:
    """Whatever else is compared: nobody's row has a value there, which the engine does not leave out."""
    text = f"SELECT COUNT(*) FROM p a {kind} (SELECT id, x, t FROM p WHERE x = 9) b ON {condition}"
    checked = many._planner.one_table(text)
    ((how, first, second),) = joins(many, DUCKDB.text(statement(checked.plan.root, checked.table, Salt.of("salt"))))
    assert how == "HASH_JOIN"
    assert first == (714 if "a.x = 3" in condition and kind == "JOIN" else 5_000)
    assert second >= 1 or kind == "FULL JOIN"  # of which either side is read


@pytest.mark.parametrize(
    "join",
    ["CROSS JOIN codes c", "JOIN codes c ON p.x >= c.k", "JOIN codes c ON p.x + c.k > 3", "LEFT JOIN codes c ON TRUE",
     "LEFT JOIN codes c ON p.x <> c.k", "LEFT JOIN codes c ON p.x + c.k > 3 AND p.x = c.k", "JOIN codes c ON p.x = c.k",
     "LEFT JOIN codes c ON c.k = 1 OR p.x = 2"],
)  # fmt: skip
def test_every_join_is_by_an_equality(many: discreet.Curator, join: str) -> None:
    """By anything else the engine lets one side's row stand still, the one of the smaller side."""
    checked = many._planner.one_table(f"SELECT COUNT(*) FROM p {join}")
    sql = DUCKDB.text(statement(checked.plan.root, checked.table, Salt.of("salt")))
    assert [how for how, *_ in joins(many, sql)] == ["HASH_JOIN"]


def test_the_second_side_of_a_join_about_people_is_never_empty(shop: discreet.Curator) -> None:
    """Whether the engine reads others' rows must not depend on whether one person's row is there: no condition on the
    second side alone stands where the engine could carry it below the row of nobody."""
    for text in (
        "SELECT COUNT(*) FROM v a JOIN (SELECT id, x FROM v WHERE x = 96) b ON a.id = b.id",
        "SELECT COUNT(*) FROM v a JOIN v b ON a.id = b.id AND b.x = 96",
        "SELECT COUNT(*) FROM v a JOIN v b ON a.id = b.id WHERE b.x = 96",
        "SELECT COUNT(*) FROM v a LEFT JOIN v b ON a.id = b.id AND b.x = 96",
        "SELECT COUNT(*) FROM v a LEFT JOIN v b ON a.id = b.id WHERE b.x = 96",
        "SELECT COUNT(*) FROM (SELECT a.id, b.x + 1 AS y FROM v a JOIN v b ON a.id = b.id) WHERE y = 97",
        "SELECT COUNT(*) FROM v b RIGHT JOIN v a ON a.id = b.id AND b.x = 96",
        "SELECT COUNT(*) FROM v WHERE id IN (SELECT id FROM v WHERE x = 96)",
        "SELECT COUNT(*) FROM items WHERE v = 'a key that no visit has'",
        "SELECT COUNT(*) FROM items WHERE v >= 'x' AND qty > 8",
    ):
        checked = shop._planner.one_table(text)
        sql = DUCKDB.text(statement(checked.plan.root, checked.table, Salt.of("salt")))
        sides = second_sides(shop, sql)
        assert sides, text
        assert min(sides) >= 1, text


def test_items_are_read_whether_or_not_somebody_s_row_has_their_key() -> None:
    """Along a foreign key, where the key is of each type that nobody's row can have."""
    for kind, keys, far in (
        (int, list(range(20)), "777"),
        (str, [f"k{place}" for place in range(20)], "'z'"),
        (datetime.date, [datetime.date(2020, 1, 1 + place) for place in range(20)], "DATE '2030-01-01'"),
    ):
        orders = pandas.DataFrame({"o": keys, "p": range(20)})
        items = pandas.DataFrame({"o": keys * 9, "x": [1] * 180})
        tables = {
            "orders": discreet.Table(orders, person="p", rows_per_person=3, columns={"o": kind, "p": int}),
            "items": discreet.Table(
                items, person="o -> orders.o", rows_per_person=20, columns={"o": kind, "x": (0, 9)}
            ),
        }
        with discreet.Curator(tables, epsilon=10**6, delta=1e-6) as one:
            text = f"SELECT COUNT(*) FROM items WHERE o >= {far} AND x > 0"
            checked = one._planner.one_table(text)
            sql = DUCKDB.text(statement(checked.plan.root, checked.table, Salt.of("salt")))
            assert second_sides(one, sql) == [21]  # all owners, and nobody
            assert one.ask("SELECT COUNT(*) AS n FROM items", epsilon=10**5).rows == [{"n": 180}]


def test_no_text_is_longer_than_its_bound() -> None:
    """Each operator that makes a text, on its example."""
    seen = 0
    table = discreet.Table(pandas.DataFrame({"id": ["1"]}), one_row_per_person=True, columns={"id": str})
    with discreet.Curator({"t": table}, epsilon=1, delta=1e-6) as one:
        for row in TABLE:
            if row.result is None or row.gives is not Type.TEXT:
                continue
            question = lower(f"SELECT COUNT({row.example}) FROM t", one.declaration, one._holdings.public_values)
            expression = question.plan.root.child.quantities[0].expression  # type: ignore[union-attr]
            cost = _Measure(Counted(one)).cost(expression, {})
            assert cost.length >= len(row.result), row.operator
            seen += 1
    assert seen > 15


def _text(expression: Expression, length: int) -> RowCost:
    return _Measure(None).cost(expression, {"t": RowCost(1, length=length)})  # type: ignore[arg-type]


def test_lengths_and_steps_add_up() -> None:
    t = ColumnOf("t", Type.TEXT)
    three = Call("concatenate", (t, t, Literal("abc", Type.TEXT)), Type.TEXT)
    assert _text(three, 1_000).length == 2_003
    assert (
        _text(Call("pad_left", (t, Literal(500, Type.INTEGER), Literal(" ", Type.TEXT)), Type.TEXT), 10).length == 500
    )
    between = Call("concatenate_with", (Literal("--", Type.TEXT), t, t, t), Type.TEXT)
    assert _text(between, 10).length >= 34
    with pytest.raises(discreet.QuestionError, match="characters long"):
        _text(Call("concatenate", (t,) * 20, Type.TEXT), LONGEST // 10)
    long, short = _text(Call("upper", (t,), Type.TEXT), 1_000), _text(Call("upper", (t,), Type.TEXT), 10)
    assert long.steps > 50 * short.steps


def test_what_follows_a_branch_counts_for_whole_vectors() -> None:
    x = ColumnOf("t", Type.TEXT)
    branch = Call("case", (Call("equal", (x, Literal("7", Type.TEXT)), Type.BOOLEAN), Literal("a", Type.TEXT),
                           Literal("b", Type.TEXT)), Type.TEXT)  # fmt: skip
    alone, above = _text(branch, 10), _text(Call("upper", (branch,), Type.TEXT), 10)
    assert alone.whole == 0 < above.whole
    assert above.of(1) >= VECTOR * above.whole
    mixed = Call("concatenate", (branch, x), Type.TEXT)
    assert _text(mixed, 10).whole == 0  # a column of the rows' own is no constant: it is computed for all in any case


@pytest.mark.parametrize(
    ("pattern", "few"),
    [
        ("myocardial infarction", True),
        ("diab.*type", True),
        ("^[A-Z]{2}[0-9]+$", True),
        ("(a|b)*a(a|b){12}c", False),
        ("[ab]*a[ab]{16}c", False),
        ("(a?){30}a{30}b", False),
    ],
)
def test_patterns_of_many_states_are_dear(pattern: str, few: bool) -> None:
    assert (regular(pattern).letter_steps <= 15) is few


def test_what_is_not_ready_in_time_has_failed_and_the_next_multiple_is_not_waited_for() -> None:
    """A thousand public rows meet themselves three times: longer than two seconds. The failure comes when due."""
    question = (
        "SELECT COUNT(*) FROM (SELECT id FROM v WHERE x = 5) v JOIN codes a ON TRUE JOIN codes b ON a.k <= b.k"
        " JOIN codes c ON a.word || b.word || c.word < a.word || c.word"
    )
    with of(VISITS, answer_seconds=4, work=10_000_000) as one:
        one.ask("SELECT COUNT(*) FROM v", epsilon=1)
        begun = time.monotonic()
        with pytest.raises(discreet.Error) as failure:
            one.ask(question, epsilon=1)
        assert time.monotonic() - begun >= 4
        assert failure.value.code in ("engine", "work")


def test_the_usual_bound_follows_from_declarations() -> None:
    raw: dict[str, Any] = {
        "budget": {"epsilon": 1},
        "tables": {"t": {"source": "t.csv", "person": "id", "rows_per_person": 40_000,
                         "columns": {"id": {"type": "text"}}}},
    }  # fmt: skip
    assert default_work(list(declare(raw).tables.values())) == 40_000
    raw["tables"]["t"]["rows_per_person"] = 10**6
    assert default_work(list(declare(raw).tables.values())) == 100_000
