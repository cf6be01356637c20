"""The declaration of one table in Python, the same as `[tables.name]` in TOML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.errors import QuestionError


class Table:
    """A table and whose rows it holds.

    `source` is a pandas or polars DataFrame, an Arrow table, a path to .csv or .parquet, several of them as a pattern
    or a list, "folder/" for all Parquet files in it, "file.duckdb::table", or
    "postgresql://host:5432/database::schema.table". `delta` says which version of a Delta table in "folder/" it is:
    `{"version": 12}`; `iceberg` likewise, with the id of a snapshot.
    `columns` names what may be asked about: `str`, `int`, `float`, `bool`, `datetime.date` for a type, `(17, 90)` for
    bounds, `["F", "M"]` for public keys, `None` for what the source itself states, or the same mapping as in TOML.
    Say whose rows they are: `one_row_per_person`, or `person` (a column) with `rows_per_person`, `groups_per_person`.
    `shared`: rows whose person is found along a foreign key may be several persons' each.
    `csv` says how a CSV file is written where it differs: `{"delimiter": ";", "decimal": ",", "encoding": "latin-1"}`,
    `{"dates": "%d.%m.%Y"}`.
    `impossible` lists rows that cannot be, `[{"sex": "M", "pregnant": True}]`: no synthetic row will be like them.
    `totals` are counts that are public already, by one or two columns with declared values,
    `[{"by": ["sex"], "counts": {"F": 10771, "M": 21790}}]`: a published table has exactly these.
    `orders` lists columns whose values never fall from left to right, `[["admitted", "discharged"]]`: nor do those of
    synthetic rows.
    `sums` are columns that are sums of others, `{"cost": ["paid", "owed"]}`: of made-up rows they are computed.
    `time` is the column by which a person's rows follow one another, as "admitted": among tables that are published
    together made-up rows then follow the row before.
    With `public`, `source` may be a published synthetic table, whose columns need no declaration.
    Nothing else is checked here: `discreet.Curator` names every fault at once. Raises QuestionError where a release is
    no table, or is not `public`.
    """

    def __init__(
        self,
        source: Any,
        *,
        columns: Mapping[str, Any] | None = None,
        person: str | None = None,
        one_row_per_person: bool = False,
        rows_per_person: int | None = None,
        groups_per_person: int | None = None,
        public: bool = False,
        shared: bool = False,
        csv: Mapping[str, str] | None = None,
        delta: Mapping[str, int] | None = None,
        iceberg: Mapping[str, int] | None = None,
        impossible: Sequence[Mapping[str, Any]] | None = None,
        totals: Sequence[Mapping[str, Any]] | None = None,
        orders: Sequence[Sequence[str]] | None = None,
        sums: Mapping[str, Sequence[str]] | None = None,
        time: str | None = None,
    ) -> None:
        made = getattr(source, "as_source", None)  # of a published synthetic table
        if callable(made):
            source, stated = made()
            if not public:
                fix = "write discreet.Table(release, public=True)"
                raise QuestionError("source", "a published table is about nobody", where="public", fix=fix)
            columns = stated if columns is None else columns
        given = {
            "source": str(source) if isinstance(source, Path) else source,
            "columns": dict(columns) if isinstance(columns, Mapping) else None if columns is None else [columns],
            "person": person,
            "one_row_per_person": one_row_per_person or None,
            "rows_per_person": rows_per_person,
            "groups_per_person": groups_per_person,
            "public": public or None,
            "shared": shared or None,
            "csv": csv,
            "delta": delta,
            "iceberg": iceberg,
            "impossible": impossible,
            "totals": totals,
            "orders": orders,
            "sums": sums,
            "time": time,
        }
        self.declaration: dict[str, Any] = {name: value for name, value in given.items() if value is not None}

    def __repr__(self) -> str:
        return f"Table with {', '.join(map(str, self.declaration.get('columns', ['the columns of its source'])))}"
