"""Names in the engine, of tables and columns."""

from __future__ import annotations

from sqlglot import exp

from discreet.trusted.ring_a.table import Table

NOBODY = str(-(2**63))
"""The integer that tells no person: rows that have it are left out when a table is loaded."""


def column_name(index: int) -> str:
    """The engine's name of the declared column at this position."""
    return f"c{index}"


def steps_name(index: int) -> str:
    """The engine's name of the whole numbers of steps of the declared column at this position."""
    return f"s{index}"


def table_name(table: Table) -> str:
    """The engine's name of a declared table, whatever letters the owner used."""
    return f"t_{table.name.encode().hex()}"


def named(node: exp.Expression, name: str) -> exp.Expression:
    """The node under a name. sqlglot's own way copies the node."""
    return exp.Alias(this=node, alias=exp.to_identifier(name))
