"""What the tests of the hunt share: rows as Arrow tables, and statements that are compiled once for both curators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow
import pytest

from discreet.catalog import Source, Table, Type
from discreet.engines import duckdb as engine
from discreet.engines import twin

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
    return Source("frame", frame=pyarrow.table(columns))


class _Text(str):
    """A statement that is a text already."""

    def sql(self, *_: object, **__: object) -> str:
        return str(self)


def compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two curators that are asked the same run the same statements: three quarters of a hunt would be their making."""
    real, made = engine.statement, dict[str, _Text]()

    def statement(plan: Any, table: Table, salt: str, *, windows: bool = True) -> Any:
        key = repr((plan, table.name, table.columns, windows))
        if key not in made:
            made[key] = _Text(real(plan, table, "0" * len(salt), windows=windows).sql("duckdb"))
        return made[key]

    monkeypatch.setattr(engine, "statement", statement)
    monkeypatch.setattr(twin, "statement", statement)
