"""The arguments of a procedure, checked against declarations before anything is spent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from discreet.catalog import Declaration
from discreet.catalog.price import price_of
from discreet.errors import refused
from discreet.trusted.ring_a.exact import Number, fraction
from discreet.trusted.ring_a.table import Column, Table, as_table
from discreet.trusted.ring_b.belonging import declared


def amount(name: str, value: Number, fix: str) -> Fraction:
    """A number as written. Raises QuestionError on what is none."""
    try:
        if len(str(value)) > 400:
            raise ValueError
        return fraction(value)
    except (ValueError, TypeError, OverflowError):
        raise refused("number", f"{name} must be a finite number", name, f"write {fix}") from None


def within(name: str, value: Number, low: Number, high: Number, fix: str) -> Fraction:
    """A number above `low` and at most `high`."""
    known = amount(name, value, fix)
    if not fraction(low) < known <= fraction(high):
        raise refused("number", f"{name} must be above {low} and at most {high}", name, f"write {fix}")
    return known


def whole(name: str, value: object, low: int, high: int, fix: str) -> int:
    """A whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise refused("number", f"{name} must be a whole number from {low:,} to {high:,}", name, f"write {fix}")
    return value


def epsilon_of(declaration: Declaration, epsilon: Number | None) -> Fraction:
    """The price that the call names, else the declared one."""
    named = None if epsilon is None else amount("epsilon", epsilon, "epsilon=0.5")
    return price_of(declaration, named, "epsilon=0.5")


def _not_public(declaration: Declaration, name: object) -> Table:
    """The declared table of that name, about persons."""
    table = declaration.table(name) if isinstance(name, str) else None
    if table is None:
        known = ", ".join(declaration.tables)
        raise refused("table", "this table is not declared", "table", f"name one of {known}")
    if table.public:
        raise refused("table", "this table is public", "table", "read it directly: it costs nothing")
    return table


def table_about_people(declaration: Declaration, name: object) -> Table:
    """The declared table of that name, each row of it about one person."""
    table = _not_public(declaration, name)
    if table.shared:
        raise refused("table", f"rows of {table.name} are of several persons", "table", "name another table")
    return table


def private_table(declaration: Declaration, name: object) -> Table:
    """The declared table of that name, with a column that holds its persons, or a row for each."""
    table = _not_public(declaration, name)
    if table.path is not None:  # the column holds a key of rows, not a person
        raise refused(
            "table", "its persons are found along a foreign key", "table", "name a table with a column that holds them"
        )
    return table


def with_owners(declaration: Declaration, table: Table) -> Table:
    """The table as it is read: where its persons are found along foreign keys, with the tables on the way."""
    return table if table.path is None else as_table(declared(table, declaration.tables))


def columns_of(table: Table, names: Sequence[str] | None, where: str) -> list[Column]:
    """The declared columns of these names, each once; all of them where none are named."""
    if names is None:
        return list(table.columns)
    if isinstance(names, str) or not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise refused(
            "columns", f"{where} must be a list of names", where, f'write {where}=["{table.columns[0].name}"]'
        )
    found = []
    for name in names:
        column = table.column(name)
        if column is None:
            known = ", ".join(column.name for column in table.columns)
            raise refused("columns", f"there is no declared column {name!r}", where, f"name some of {known}")
        if column in found:
            raise refused("columns", f"{name!r} is named twice", where, "name each column once")
        found.append(column)
    if not found:
        raise refused("columns", "no column is named", where, "name at least one, or leave the argument out")
    return found
