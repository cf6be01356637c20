"""Where a table's snapshot lies on a server, and how it gets there: the rows never leave it.

Each snapshot of a table has a schema of its own: the table as `ring_a.storing` makes it, and a mark that says of which
rows and of which declaration it is. Both are made in one transaction, so there is a whole one or none. They are logged
tables: a crash of the server empties unlogged ones, and a question would be answered over no rows.

The schema's name follows from the load's key, which no one else has, and from the hash of the rows. What questions need
beside the tables lies in a schema of the process that asks. All of it belongs to the user who connects, whom nobody
else has to grant anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from sqlglot import exp

from discreet.engines.postgresql.columns import FORMS, ServerColumn
from discreet.engines.postgresql.connection import identifier, qualified
from discreet.errors import DeclarationError, Fault
from discreet.trusted.ring_a.table import Column, Table, Type

SIDE = "discreet_beside_"
"""How the name begins of a schema for what questions need beside tables."""

FORM = "1"
"""What a schema looks like inside: another form is made anew."""


def stem(key: str) -> str:
    """How the names of a table's schemas begin. From it nobody learns the load's key, which has 128 secret bits."""
    return f"discreet_{hashlib.sha256(f'place {key}'.encode()).hexdigest()[:24]}_"


def schema(key: str, fingerprint: str) -> str:
    """The schema of a table's rows with this hash."""
    return stem(key) + fingerprint[:16]


def digest(statements: Sequence[str]) -> str:
    """What a schema's content follows from, beside the source's rows: how all of it is made."""
    return hashlib.sha256("\n".join([FORM, *statements]).encode()).hexdigest()


def lock(name: str) -> int:
    """The number that says on the server that a schema is in use."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)


_WHOLE, _DOUBLE = "CAST({0} AS int8)", "CAST({0} AS float8)"
_IN_64_BITS = "CASE WHEN {0} >= -9223372036854775808 AND {0} < 9223372036854775808 THEN CAST({0} AS int8) END"
_NUMERIC_WHOLE = (
    "CASE WHEN round({0}) BETWEEN -9223372036854775808 AND 9223372036854775807 THEN CAST(round({0}) AS int8) END"
)
_LEAST = f"{5**1075}e-1075"  # 2^-1075: of it and of less the nearest double is 0
_MOST = str(2**1024 - 2**970)  # of it and of more, infinity
_NUMERIC_DOUBLE = (  # where the nearest double is 0 or infinite, the server fails
    f"CASE WHEN {{0}} = 'NaN' THEN NULL WHEN abs({{0}}) <= {_LEAST} THEN 0 "
    f"WHEN {{0}} >= {_MOST} THEN CAST('Infinity' AS float8) "
    f"WHEN {{0}} <= -{_MOST} THEN CAST('-Infinity' AS float8) ELSE CAST({{0}} AS float8) END"
)
_TRUE = "({0} <> 0)"
_TEXT = 'CAST({0} AS text) COLLATE "C"'

_WHOLES = {Type.INTEGER: _WHOLE, Type.NUMBER: _DOUBLE, Type.BOOLEAN: _TRUE, Type.TEXT: _TEXT}

_READ: Mapping[str, Mapping[Type, str]] = {
    **dict.fromkeys(("int2", "int4", "int8", "oid"), _WHOLES),
    "float4": {Type.NUMBER: _DOUBLE, Type.INTEGER: _IN_64_BITS},
    "float8": {Type.NUMBER: "{0}", Type.INTEGER: _IN_64_BITS},
    "numeric": {Type.NUMBER: _NUMERIC_DOUBLE, Type.INTEGER: _NUMERIC_WHOLE, Type.TEXT: _TEXT},
    "bool": {Type.BOOLEAN: "{0}", Type.INTEGER: "CAST(CAST({0} AS int4) AS int8)", Type.TEXT: _TEXT},
}
"""By the server's type and the declared one: a value as the declared one, NULL where it has none. No value fails. What
is not here is as `columns` reads it, where its type is stated; no text becomes a number, a date or a truth value."""


def select(table: Table, found: Sequence[ServerColumn]) -> exp.Expression:
    """A table of the server with the declared columns, each of its declared type. Raises DeclarationError where a
    column's type cannot become that one on the server."""
    known = {one.name.casefold(): one for one in found}
    faults, forms = [], []
    for column in table.columns:
        there = known[column.name.casefold()]
        form = _form(column, there)
        if form is None:
            message = f"the server's type {there.kind} does not become {column.type} there"
            fix = 'name a view that casts it, declare the type that it has, or write kind = "duckdb" under [engine]'
            faults.append(Fault(f"tables.{table.name}.columns.{column.name}", message, fix))
            continue
        value = form.replace("{0}", identifier(there.name))
        if column.type is Type.TEXT and not table.public:
            value = f"left({value}, {column.longest + column.identifies})"
        forms.append(f"{value} AS {identifier(column.name)}")
    if faults:
        raise DeclarationError(faults, code="columns")
    text = exp.Var(this=f"SELECT {', '.join(forms)} FROM {qualified(str(table.source.relation))}")
    return exp.Subquery(this=text, alias=exp.TableAlias(this=exp.to_identifier("frame")))


def _form(column: Column, found: ServerColumn) -> str | None:
    assert column.type is not None
    if found.kind in _READ:
        return _READ[found.kind].get(column.type)
    kind, form = FORMS[found.kind]
    if found.kind == "money":
        form, kind = _NUMERIC_DOUBLE.replace("{0}", "CAST({0} AS numeric)"), Type.NUMBER
    if kind is column.type or (kind in (Type.DATE, Type.TIMESTAMP) and column.type in (Type.DATE, Type.TIMESTAMP)):
        moments = {Type.DATE: "date", Type.TIMESTAMP: "timestamp"}
        if column.type in moments:
            return f"CAST({form} AS {moments[column.type]})"
        return _TEXT.replace("{0}", form) if column.type is Type.TEXT else form
    if column.type is Type.TEXT:
        return _TEXT.replace("{0}", form)
    return None
