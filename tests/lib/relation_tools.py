"""A small shop in a real engine, several databases of it side by side, and the vectors that the door would see."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar
from unittest.mock import patch

import pyarrow

from discreet.catalog import Declaration, Table, declare
from discreet.catalog.model import EngineLimits
from discreet.engines.driver import _key
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.duckdb.driver import DuckDB
from discreet.engines.process import Failed
from discreet.errors import EngineError
from discreet.plan.measurement import Plan
from discreet.plan.planner import MAXIMUM_CELLS
from discreet.sql import Question, lower
from discreet.trusted.ring_a.groups import combined, dense
from discreet.trusted.ring_a.sensitivity import sensitivity
from discreet.trusted.ring_a.statement import statement
from discreet.trusted.ring_a.table import Relation, Source, SourceKind, Type, Value
from discreet.trusted.ring_a.windows import Salt

ARROW = {Type.INTEGER: pyarrow.int64(), Type.NUMBER: pyarrow.float64(), Type.TEXT: pyarrow.string()}
WHOLE, WORD = {"type": "integer"}, {"type": "text"}

Rows = Sequence[Mapping[str, Any]]
Database = Mapping[str, Rows]
Changes = list[Counter[tuple[Any, ...]]]


def shop(person: Mapping[str, str], order: Mapping[str, str]) -> Declaration:
    """Customers with one row, orders with several, lines whose person is found along a foreign key, a public table and
    people who are told by nothing but their rows. `person` and `order` are the types of the two keys."""
    tables: dict[str, Any] = {
        "customers": {
            "person": "id",
            "one_row_per_person": True,
            "columns": {
                "id": person,
                "city": {"type": "text", "values": ["x", "ü", "it's"]},
                "age": {"type": "integer", "min": 0, "max": 9},
                "h": WORD,
            },
        },
        "orders": {
            "person": "cust",
            "rows_per_person": 3,
            "groups_per_person": 2,
            "columns": {
                "oid": order,
                "cust": person,
                "st": WORD,
                "total": {"type": "number", "min": 0, "max": 10},
                "k": {"type": "integer", "min": -2, "max": 3},
                "big": WHOLE,
                "f": {"type": "number"},
            },
        },
        "lines": {
            "person": "oid -> orders.oid",
            "rows_per_person": 4,
            "groups_per_person": 2,
            "columns": {"oid": order, "qty": {"type": "integer", "min": 0, "max": 5}, "cur": WORD},
        },
        "solo": {
            "one_row_per_person": True,
            "columns": {"cur": WORD, "age": {"type": "integer", "min": 0, "max": 9}, "w": {"type": "number"}},
        },
        "rates": {
            "public": True,
            "columns": {"cur": WORD, "rate": {"type": "number"}, "a.b": WHOLE, "word": WORD},
        },
    }
    budget = {"epsilon": 1000, "delta": Fraction(1, 1000)}
    return declare({"budget": budget, "tables": {name: {"source": "no.csv", **one} for name, one in tables.items()}})


def frame(table: Table, rows: Rows) -> pyarrow.Table:
    """Rows as Arrow data of the declared types; what a row does not name is NULL."""
    columns = {}
    for column in table.columns:
        assert column.type is not None
        columns[column.name] = pyarrow.array([row.get(column.name) for row in rows], ARROW[column.type])
    return pyarrow.table(columns)


Tree = TypeVar("Tree")


def moved(tree: Tree, suffix: str) -> Tree:
    """A plan, relation or table that reads the declared tables under other names."""
    found: Any = tree
    if isinstance(tree, Table) and tree.source.kind is not SourceKind.RELATION:
        found = replace(tree, name=tree.name + suffix)
    elif isinstance(tree, tuple):
        found = tuple(moved(one, suffix) for one in tree)
    elif dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        changed = {field.name: moved(getattr(tree, field.name), suffix) for field in dataclasses.fields(tree)}
        found = replace(tree, **changed)
    return found  # type: ignore[no-any-return]


class Bench:
    """One engine for many databases."""

    def __init__(self) -> None:
        self.engine = DuckDB(EngineLimits(memory_gib=4, seconds=60))
        self.count = 0
        self.loaded: dict[str, str] = {}

    def load(self, known: Declaration, database: Database) -> str:
        """Puts a database next to the others; its tables' names end with what is returned. The same rows are loaded
        once: nothing changes them."""
        what = repr((sorted(known.tables.items()), database))
        if what in self.loaded and self.engine.has(next(iter(known.tables)) + self.loaded[what]):
            return self.loaded[what]
        self.count += 1
        suffix = f" {self.count}"
        for table in known.tables.values():
            rows = frame(table, database.get(table.name, ()))
            with patch("discreet.engines.driver.positions", lambda *_: "one key for all databases"):
                self.engine.load(
                    replace(table, name=table.name + suffix, source=Source(SourceKind.FRAME, frame=rows)), b""
                )
        self.loaded[what] = suffix
        return suffix

    def read(self, text: str, known: Declaration, suffix: str) -> Question:
        """The checked question. Public values come from the database, as they would for a curator."""

        def values(relation: Relation) -> list[Value]:
            return self.engine.public_values(moved(relation, suffix), MAXIMUM_CELLS)

        return lower(text, known, values)

    def sql(self, question: Question, salt: str) -> str:
        """What the engine would run over the declared tables, with this salt, without anything that is built beside."""
        return DUCKDB.text(statement(question.plan.root, question.table, Salt.of(salt)))

    def vectors(self, question: Question, sql: str, suffix: str) -> Changes:
        """For each part, its exact vectors over one database: every integer by its group and place."""
        plan = question.plan
        here = re.sub(r"\bt_[0-9a-f]+\b", lambda name: name[0] + suffix.encode().hex(), sql)
        assert self.engine._process is not None
        try:
            answer = self.engine._process.call("run", here, seconds=60)["rows"]
        except Failed:
            raise EngineError from None
        width = len(plan.keys)
        kinds = [key.type for key in plan.keys]
        rows = [
            (
                tuple(_key(value, kind) for value, kind in zip(row, kinds, strict=False)),
                tuple(int(total) for total in row[width:]),
            )
            for row in answer
        ]
        keys, totals = dense(rows, plan)
        assert len(set(keys)) == len(keys)
        parts = []
        for part in plan.parts:
            found: Counter[tuple[Any, ...]] = Counter()
            for place, vector in enumerate(part.vectors):
                for key, value in zip(keys, combined(vector, totals), strict=True):
                    found[(*key, place)] += value
            parts.append(found)
        return parts

    def close(self) -> None:
        self.engine.close()


def without(database: Database, person: Any) -> tuple[Database, Database]:
    """The database without a person, and with nobody else. A line belongs to whoever has an order of its key."""

    def of(orders: Rows) -> Rows:
        held = {row.get("oid") for row in orders}
        return [row for row in database["lines"] if row.get("oid") in held]

    parts = []
    for mine in (False, True):
        customers = [row for row in database["customers"] if (row.get("id") == person) is mine]
        orders = [row for row in database["orders"] if (row.get("cust") == person) is mine]
        lines = {"customers": customers, "orders": orders, "lines": of(orders)}
        parts.append({**database, "solo": () if mine else database["solo"], **lines})
    return parts[0], parts[1]


def hold(plan: Plan, changes: Changes) -> None:
    """One person's vectors are within the sensitivity that is paid for."""
    for part, changed in zip(plan.parts, changes, strict=True):
        blocks = [place for place, size in enumerate(part.blocks) for _ in range(size)]
        sizes: Counter[tuple[Any, ...]] = Counter()
        for (*key, place), value in changed.items():
            sizes[tuple(key), blocks[place] if part.axes else 0] += abs(value)
        norms: Counter[tuple[Any, ...]] = Counter()  # ℓ1; of joint parts the largest of their blocks' ℓ1 norms
        for (group, _), size in sizes.items():
            norms[group] = max(norms[group], size)
        bound = sensitivity(plan.root, part)
        assert sum(1 for norm in norms.values() if norm) <= bound.cells
        assert max(norms.values(), default=0) <= bound.each
        assert norms.total() <= bound.l1
        assert sum(norm * norm for norm in norms.values()) <= bound.l2_squared


def apart(bench: Bench, question: Question, suffixes: Sequence[str], salt: str) -> bool:
    """Holds that everybody's vectors are those of the others plus those of one person, exactly, for this salt, and that
    the person's are within the sensitivity. The databases are of everybody, of the others, and of the one person.
    Whether the person counts at all."""
    sql = bench.sql(question, salt)
    one, two, three = (bench.vectors(question, sql, suffix) for suffix in suffixes)
    for all_of, others, own in zip(one, two, three, strict=True):
        keys = all_of.keys() | others.keys() | own.keys()
        assert all(all_of[key] == others[key] + own[key] for key in keys)
    hold(question.plan, three)
    return any(any(part.values()) for part in three)


LARGE = 2**63 - 1
ME: Any = 1
FULL: Database = {
    "customers": [{"id": i, "city": "x", "age": i, "h": "h"} for i in range(1, 7)],
    "orders": [
        *(
            {"oid": f"o{n}", "cust": ME, "st": f"s{n}", "total": n, "k": n % 3, "big": LARGE, "f": 1e308}
            for n in range(9)
        ),
        *(
            {"oid": f"o{n}", "cust": n, "st": "s1", "total": 5.0, "k": 1, "big": -LARGE - 1, "f": -1e308}
            for n in range(2, 7)
        ),
    ],
    "lines": [{"oid": f"o{n % 9}", "qty": n % 5, "cur": "E" if n % 2 else "U"} for n in range(30)],
    "solo": [{"cur": "E", "age": n, "w": 0.5} for n in range(3)],
    "rates": [
        *({"cur": cur, "rate": rate, "a.b": 1, "word": cur} for cur, rate in (("E", 1.0), ("U", 2.0), (None, None))),
        *({"cur": f"none{n}", "rate": None, "a.b": 2**53 + n, "word": "E"} for n in range(2)),
    ],
}
"""One person who is everywhere and has the largest numbers, among others who have one order each."""
