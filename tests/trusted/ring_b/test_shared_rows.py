"""Rows that lead to several persons along a foreign key: refused, or declared, and then said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import discreet
from discreet.catalog import declare
from discreet.trusted.ring_a.sensitivity import sensitivity
from relation_tools import WHOLE, WORD, Bench, Database, shop

ORDERS = {"oid": ["a", "a", "b", None, None], "cust": [1, 1, 2, 1, 2]}
LINES = {"lid": [1, 2, 3], "oid": ["a", "b", "c"]}
PARTS = {"lid": [1, 1, 2, 3, 9]}


def tables(orders: Mapping[str, Sequence[Any]], **lines: Any) -> dict[str, Any]:
    return {
        "orders": discreet.Table(
            pyarrow.table(orders), person="cust", rows_per_person=5, columns={"oid": WORD, "cust": WHOLE}
        ),
        "lines": discreet.Table(
            pyarrow.table(LINES),
            person="oid -> orders.oid",
            rows_per_person=4,
            columns={"lid": WHOLE, "oid": WORD},
            **lines,
        ),
        "parts": discreet.Table(
            pyarrow.table(PARTS), person="lid -> lines.lid", rows_per_person=4, columns={"lid": WHOLE}, **lines
        ),
    }


def test_a_key_of_one_person_is_loaded_however_often_it_stands_there() -> None:
    with discreet.Curator(tables(ORDERS), epsilon=1e25) as curator:
        assert curator.ask("SELECT COUNT(*) AS n FROM parts", epsilon=1e20).rows == [{"n": 5}]


def test_a_key_of_two_persons_is_refused_when_the_rows_are_loaded() -> None:
    """Along one key and along two: the owner reads which, and no value."""
    both = {"oid": [*ORDERS["oid"], "a"], "cust": [*ORDERS["cust"], 2]}
    with pytest.raises(discreet.DeclarationError) as refusal:
        discreet.Curator(tables(both), epsilon=1)
    assert [(fault.where, fault.message) for fault in refusal.value.faults] == [
        ("tables.lines.person", "a value of orders.oid leads to several persons"),
        ("tables.parts.person", "a value of lines.lid leads to several persons"),
    ]
    assert all("shared = true" in fault.fix for fault in refusal.value.faults)


def test_a_new_snapshot_with_such_a_key_is_not_taken(tmp_path: Path) -> None:
    source = tmp_path / "orders.csv"
    source.write_text("oid,cust\na,1\nb,2\n")
    (tmp_path / "lines.csv").write_text("oid\na\nb\n")
    file = tmp_path / "shop.toml"
    file.write_text(
        "[budget]\nepsilon = 10\n"
        '[tables.orders]\nsource = "orders.csv"\nperson = "cust"\nrows_per_person = 9\n'
        '[tables.orders.columns]\noid = { type = "text" }\ncust = { type = "integer" }\n'
        '[tables.lines]\nsource = "lines.csv"\nperson = "oid -> orders.oid"\nrows_per_person = 9\n'
        '[tables.lines.columns]\noid = { type = "text" }\n'
    )
    with discreet.open(str(file)) as curator:
        curator.ask("SELECT COUNT(*) FROM lines", epsilon=1)
        source.write_text("oid,cust\na,1\nb,2\na,2\n")
        with pytest.raises(discreet.DeclarationError, match="several persons"):
            curator.refresh()
        snapshot = curator.ledger.snapshot("orders")
        assert snapshot is not None
        assert snapshot.number == 1


def test_shared_rows_are_declared_and_said() -> None:
    both = {"oid": ["a", "a"], "cust": [1, 2]}
    with discreet.Curator(tables(both, shared=True), epsilon=1e25) as curator:
        release = curator.ask("SELECT COUNT(*) AS n FROM lines", epsilon=1e20)
        assert release.rows == [{"n": 2}]  # once for each
        assert "of lines, a row of several persons counts once for each" in release.bounds
        assert release.content["unit"].endswith("with the part in them")
        own = curator.ask("SELECT COUNT(*) AS n FROM orders", epsilon=1e20)
        assert own.content["unit"] == "one person, added or removed with all rows"


def test_only_rows_along_a_foreign_key_are_shared() -> None:
    raw = {"source": "x.csv", "person": "p", "rows_per_person": 2, "shared": True, "columns": {"p": {"type": "text"}}}
    with pytest.raises(discreet.DeclarationError) as refusal:
        declare({"budget": {"epsilon": 1}, "tables": {"t": raw}})
    assert [fault.where for fault in refusal.value.faults] == ["tables.t.shared"]


def test_what_is_paid_for_is_a_persons_part_and_not_the_row(several: Bench) -> None:
    """Twelve owners of an order with four lines. One owner less: 4, as paid for. The lines themselves gone: 48, which
    nobody pays for, so such tables are refused unless that is declared."""
    known = shop(WHOLE, WORD)
    known = replace(known, tables={**known.tables, "lines": replace(known.tables["lines"], shared=True)})
    orders = [{"oid": "o", "cust": person} for person in range(12)]
    lines = [{"oid": "o", "qty": place, "cur": "x"} for place in range(4)]
    every: Database = {"orders": orders, "lines": lines}
    suffixes = [
        several.load(known, one)
        for one in (every, {**every, "orders": orders[1:]}, {"orders": orders[1:], "lines": []})
    ]
    question = several.read("SELECT COUNT(*) FROM lines", known, suffixes[0])
    counts = [several.vectors(question, several.sql(question, "1"), suffix)[0].total() for suffix in suffixes]
    assert counts == [48, 44, 0]
    assert sensitivity(question.plan.root, question.plan.parts[0]).l1 == 4
