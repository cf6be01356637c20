"""Names in the engine: whatever an owner calls a table, they are letters, digits and underscores."""

from __future__ import annotations

import pytest
from sqlglot import exp

from discreet.trusted.ring_a.names import NOBODY, column_name, named, steps_name, table_name
from discreet.trusted.ring_a.table import Source, SourceKind, Table

KIND = "exact"


def test_columns_are_named_by_their_places() -> None:
    assert [column_name(place) for place in (0, 7, 12)] == ["c0", "c7", "c12"]
    assert [steps_name(place) for place in (0, 7, 12)] == ["s0", "s7", "s12"]


@pytest.mark.parametrize(("name", "known"), [("t", "t_74"), ("T", "t_54"), ("ä;", "t_c3a43b"), ('"', "t_22")])
def test_tables_are_named_by_the_bytes_of_their_names(name: str, known: str) -> None:
    assert table_name(Table(name, Source(SourceKind.CSV), ())) == known


def test_nobody_is_the_smallest_integer_of_64_bits() -> None:
    assert NOBODY == "-9223372036854775808"


def test_what_is_named_is_not_copied() -> None:
    node = exp.column("c0")
    alias = named(node, "it")
    assert alias.this is node
    assert alias.alias == "it"
