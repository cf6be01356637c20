"""What the tests of the hunt share: rows as Arrow tables, and statements that are compiled once for both curators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow
import pytest

from discreet.catalog import Source, SourceKind, Table, Type
from discreet.engines import statements
from discreet.trusted.ring_a.windows import Salt

ARROW = {
    Type.INTEGER: pyarrow.int64(),
    Type.NUMBER: pyarrow.float64(),
    Type.TEXT: pyarrow.string(),
    Type.BOOLEAN: pyarrow.bool_(),
    Type.DATE: pyarrow.date32(),
    Type.TIMESTAMP: pyarrow.timestamp("us"),
}


def framed(table: Table, rows: Sequence[Mapping[str, Any]]) -> Source:
    """Rows as they are: NaN, empty texts, and what a type cannot hold as text."""
    columns = {}
    for column in table.columns:
        assert column.type is not None
        values = [row.get(column.name) for row in rows]
        try:
            columns[column.name] = pyarrow.array(values, ARROW[column.type])
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
            texts = [None if value is None else str(value) for value in values]
            columns[column.name] = pyarrow.array(texts, pyarrow.string())
    return Source(SourceKind.FRAME, frame=pyarrow.table(columns))


def compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two curators that are asked the same run the same statements: three quarters of a hunt would be their making."""
    real, made = statements.Statements.of, dict[str, statements.SaltedStatement]()

    def of(self: statements.Statements, plan: Any, table: Table) -> statements.SaltedStatement:
        key = repr((plan, table.name, table.columns))
        if key not in made:
            made[key] = real(self, plan, table)
        return made[key]

    fill = statements.SaltedStatement.salted

    def salted(self: statements.SaltedStatement, _salt: Salt) -> str:
        return fill(self, Salt.of("0"))

    monkeypatch.setattr(statements.Statements, "of", of)
    monkeypatch.setattr(statements.SaltedStatement, "salted", salted)
