"""Columns of a PostgreSQL table: which of its types are ours, and how each is read.

What is read of a value never fails: a numeric of any size and a text of any kind come as texts, dates and moments that
no calendar of ours has, infinite ones too, come as its first or last. What does not convert to a declared type is found
out where every other source's is, in `ring_a.storing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.engines.files import check_columns
from discreet.engines.postgresql.connection import identifier, literal, names, qualified
from discreet.errors import DeclarationError, Fault
from discreet.trusted.ring_a.table import Source, Table, Type


@dataclass(frozen=True)
class ServerColumn:
    """A column as the server's catalog has it: the name of its type below all domains, the number that belongs to the
    type, and whether our user may read it."""

    name: str
    kind: str
    modifier: int
    readable: bool


def _between(first: str, last: str) -> str:
    """A moment no earlier and no later than these; NULL stays."""
    return f"CASE WHEN {{0}} < {first} THEN {first} WHEN {{0}} > {last} THEN {last} ELSE {{0}} END"


_DAYS = _between("DATE '0001-01-01'", "DATE '9999-12-31'")
_MOMENTS = _between("TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59'")
_TEXT = "CAST({0} AS text)"

FORMS: Mapping[str, tuple[Type | None, str]] = {
    "int2": (Type.INTEGER, "{0}"),
    "int4": (Type.INTEGER, "{0}"),
    "int8": (Type.INTEGER, "{0}"),
    "oid": (Type.INTEGER, "CAST({0} AS int8)"),
    "float4": (Type.NUMBER, "CAST({0} AS float8)"),
    "float8": (Type.NUMBER, "{0}"),
    "numeric": (Type.NUMBER, _TEXT),
    "money": (Type.NUMBER, "CAST(CAST({0} AS numeric) AS text)"),
    "bool": (Type.BOOLEAN, "{0}"),
    "date": (Type.DATE, _DAYS),
    "timestamp": (Type.TIMESTAMP, _MOMENTS),
    "timestamptz": (Type.TIMESTAMP, _MOMENTS.replace("{0}", "({0} AT TIME ZONE 'UTC')")),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "char", "uuid", "enum", "citext"), (Type.TEXT, _TEXT)),
    # texts only where they are declared so
    **dict.fromkeys(
        ("json", "jsonb", "xml", "inet", "cidr", "macaddr", "macaddr8", "time", "timetz", "interval", "bit", "varbit"),
        (None, _TEXT),
    ),
}
"""By the server's type: ours, if it states one, and how a value is read. No other type can be a column."""

_NUMBERS = frozenset({Type.INTEGER, Type.NUMBER, Type.TEXT})
_TIMES = frozenset({Type.DATE, Type.TIMESTAMP, Type.TEXT})
CONVERT: Mapping[Type | None, frozenset[Type]] = {
    Type.INTEGER: _NUMBERS | {Type.BOOLEAN},
    Type.NUMBER: _NUMBERS,
    Type.BOOLEAN: _NUMBERS | {Type.BOOLEAN},
    Type.DATE: _TIMES,
    Type.TIMESTAMP: _TIMES,
    Type.TEXT: frozenset(Type),
    None: frozenset({Type.TEXT}),
}
"""What a type may be declared as: anything else would be NULL in every row."""


def stated(found: Sequence[ServerColumn]) -> dict[str, tuple[Type | None, Fraction | None]]:
    """The columns with our types, as their table states them, and the step of a numeric with so many digits."""
    return {one.name: (FORMS[one.kind][0] if one.kind in FORMS else None, _step(one)) for one in found}


def _step(found: ServerColumn) -> Fraction | None:
    """The last digit of numeric(p, s): 65,536 p + s + 4 is the modifier, s with eleven bits and a sign."""
    if found.kind != "numeric" or found.modifier < 4:
        return None
    scale = (found.modifier - 4 & 0x7FF ^ 1024) - 1024
    return Fraction(10) ** -scale


def check(table: Table, found: Sequence[ServerColumn]) -> None:
    """Whether the server's table has the declared columns, of types that can be theirs, and lets us read them. Raises
    DeclarationError."""
    check_columns(table, [one.name for one in found])
    faults = []
    for column, there in zip(table.columns, _named([one.name for one in table.columns], found), strict=True):
        where = f"tables.{table.name}.columns.{column.name}"
        can = CONVERT[FORMS[there.kind][0]] if there.kind in FORMS else frozenset[Type]()
        if not there.readable:
            said = f"GRANT SELECT ({identifier(there.name)}) ON {qualified(str(table.source.relation))} TO the user"
            faults.append(Fault(where, "the server does not let this user read the column", f"run {said}"))
        elif not can:
            message = f"a column of the server's type {there.kind} cannot be read"
            faults.append(Fault(where, message, "leave it out, or name a view that makes a number or a text of it"))
        elif column.type is not None and column.type not in can:
            fix = f"write type = {' or '.join(repr(str(kind)) for kind in Type if kind in can)}".replace("'", '"')
            faults.append(Fault(where, f"the server's type {there.kind} cannot be {column.type}", fix))
    if faults:
        raise DeclarationError(faults, code="columns")


_LONGEST = 1_000_000
"""No text of more characters is a number, a date or a truth value."""


def select(source: Source, declared: Sequence[str], found: Sequence[ServerColumn]) -> str:
    """The statement that reads these columns, in this order, and no other."""
    return _statement(source, [_read(one) for one in _named(declared, found)])


def select_table(table: Table, found: Sequence[ServerColumn]) -> str:
    """The statement that reads a table's declared columns. No text of a table about people comes longer than it is
    needed, so one row's size does not decide whether the table can be loaded: one that is cut when it is stored is cut
    by the server, and one that leaves its row out when it is too long comes with one character too many. A server's
    character is one of ours or more."""
    forms = []
    for column, there in zip(table.columns, _named([one.name for one in table.columns], found), strict=True):
        form = _read(there)
        if not table.public and FORMS[there.kind][1] == _TEXT:
            if column.type is Type.TEXT:
                form = f"left({form}, {column.longest + column.identifies})"
            else:
                form = f"CASE WHEN length({form}) <= {_LONGEST} THEN {form} END"
        forms.append(form)
    return _statement(table.source, forms)


def _read(found: ServerColumn) -> str:
    """A column's value as it is read."""
    return FORMS[found.kind][1].format(identifier(found.name))


def _statement(source: Source, forms: Sequence[str]) -> str:
    read = ", ".join(f"{form} AS c{place}" for place, form in enumerate(forms))
    return f"SELECT {read} FROM {qualified(str(source.relation))}"


def _named(declared: Sequence[str], found: Sequence[ServerColumn]) -> list[ServerColumn]:
    """The server's columns of these names, whatever their case."""
    known = {one.name.casefold(): one for one in found}
    return [known[name.casefold()] for name in declared]


def catalog(relation: str) -> tuple[str, str]:
    """Two statements: what a name means (number, kind, whether we may use its schema), and the columns of a table of
    that number, in braces. Every user may read what they read."""
    schema, table = names(relation)
    means = (
        "SELECT CAST(c.oid AS int8) AS number, CAST(c.relkind AS text) AS kind, "
        "has_schema_privilege(n.oid, 'USAGE') AS usable FROM pg_catalog.pg_class c "
        "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE n.nspname = {literal(schema)} AND c.relname = {literal(table)}"
    )
    columns = (
        "WITH RECURSIVE seen AS ("
        "SELECT attnum, attname, atttypid AS kind, atttypmod AS modifier FROM pg_catalog.pg_attribute "
        "WHERE attrelid = {0} AND attnum > 0 AND NOT attisdropped UNION ALL "
        "SELECT s.attnum, s.attname, t.typbasetype, t.typtypmod FROM seen s "
        "JOIN pg_catalog.pg_type t ON t.oid = s.kind WHERE t.typtype = 'd') "
        "SELECT CAST(s.attname AS text) AS name, "
        "CASE WHEN t.typtype = 'e' THEN 'enum' WHEN t.typname = 'citext' OR n.nspname = 'pg_catalog' "
        "THEN CAST(t.typname AS text) ELSE n.nspname || '.' || t.typname END AS kind, s.modifier AS modifier, "
        "has_column_privilege({0}, s.attnum, 'SELECT') AS readable FROM seen s "
        "JOIN pg_catalog.pg_type t ON t.oid = s.kind JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace "
        "WHERE t.typtype <> 'd' ORDER BY s.attnum"
    )
    return means, columns
