"""How values are written in a source: decimal commas, and dates in other orders. What is read is then made the column's
type, and clamped, by the statements that load it (`ring_a.storing`), whatever it is."""

from __future__ import annotations

import re
from functools import partial

from sqlglot import exp

from discreet.trusted.ring_a import storing
from discreet.trusted.ring_a.dialect import function
from discreet.trusted.ring_a.names import column_name, table_name
from discreet.trusted.ring_a.table import Column, Source, SourceKind, Table, Type

DATES = re.compile(r"%([dmY])([./-])%(?!\1)([dmY])\2%(?!\1|\3)([dmY])")
"""How dates may be written in a CSV file: day, month and year in any order, with one sign between them."""


def words_of(source: Source) -> str:
    """A source in words, without its content."""
    if source.kind is SourceKind.FRAME:
        return "a table in Python"
    if source.server is not None:
        return f"{source.server}::{source.relation}"
    if source.further:
        return f"{source.path} and {len(source.further)} more"
    return f"{source.path}::{source.relation}" if source.relation else str(source.path)


def load_statements(table: Table, source: exp.Expression, key: str) -> tuple[list[exp.Expression], exp.Expression]:
    """The statements that build a table, of values as its source writes them (`storing.load_statement`), and the one
    that fingerprints it."""
    return [storing.load_statement(table, source, key, partial(as_read, table.source))], fingerprint(table)


def fingerprint(table: Table) -> exp.Expression:
    """The number of rows that are loaded, and hashes of what they hold."""
    content = [exp.column(column_name(index)) for index in range(len(table.columns))]
    facts = [
        exp.Count(this=exp.Star()),
        function("sum_of_hashes", *content),
        function("hash_of_rows", *(node.copy() for node in content)),
    ]
    return exp.select(*facts).from_(exp.to_table(table_name(table)))


def as_read(source: Source, column: Column) -> exp.Expression:
    """A column as its type is read of it. Where the source has a decimal comma, 3,5 is a number, and so is 1.234,5;
    1.5, which may be either, is NULL. Where it says how dates are written, no others are dates."""
    node: exp.Expression = exp.column(column.name, quoted=True)
    if source.decimal == "," and column.type is not None and column.type.numeric:
        return _with_point(node)
    if source.dates != Source(SourceKind.CSV).dates and column.type in (Type.DATE, Type.TIMESTAMP):
        return _as_iso(node, source.dates)
    return node


def _as_iso(node: exp.Expression, dates: str) -> exp.Expression:
    """A date, or a date and a time of day, with the year first, as the engine reads it; NULL if written otherwise."""
    parts = DATES.fullmatch(dates)
    assert parts is not None
    order = [parts[1], parts[3], parts[4]]
    digits = {"d": "([0-9]{1,2})", "m": "([0-9]{1,2})", "Y": "([0-9]{4})"}
    pattern = rf"\s*{f'[{parts[2]}]'.join(digits[part] for part in order)}([ T][0-9:.]+)?\s*"
    iso = "-".join(f"\\{order.index(part) + 1}" for part in "Ymd") + r"\4"
    match = function("matches_all", node.copy(), exp.Literal.string(pattern))
    words = [exp.Literal.string(f"^{pattern}$"), exp.Literal.string(iso)]
    return exp.Case(ifs=[exp.If(this=match, true=function("replace_match", node, *words))])


def _with_point(node: exp.Expression) -> exp.Expression:
    """A number that is written with a comma, as the engine reads it."""

    def replaced(inner: exp.Expression, old: str, new: str) -> exp.Expression:
        return function("replace", inner, exp.Literal.string(old), exp.Literal.string(new))

    grouped = exp.Literal.string(r"\s*[-+]?[0-9]{1,3}([.][0-9]{3})+(,[0-9]*)?\s*")
    dotted = function("contains", node.copy(), exp.Literal.string("."))
    whole = function("matches_all", node.copy(), grouped)
    cases = [
        exp.If(this=exp.Not(this=dotted), true=replaced(node.copy(), ",", ".")),
        exp.If(this=whole, true=replaced(replaced(node.copy(), ".", ""), ",", ".")),
    ]
    return exp.Case(ifs=cases)
