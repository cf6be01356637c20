"""The data of a release whose table is synthetic."""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.errors import refused
from discreet.release.data import ReleaseData, extra
from discreet.release.values import finite, plain
from discreet.synthesis.decode import OTHER, SyntheticColumn, read
from discreet.synthesis.digest import digest_of
from discreet.synthesis.known import SyntheticTable
from discreet.synthesis.packed import unpack
from discreet.trusted.ring_a.table import Type

if TYPE_CHECKING:
    import pyarrow

MADE = "_synthetic"
"""What the name of a file of made rows ends with, behind the table's own."""

_SOURCE = re.compile(r'^(source = ".*)\.csv("$)', re.MULTILINE)
_AT_ONCE = 1 << 14
"""So many rows are Python's own values at a time, where they are written."""


@dataclass(frozen=True, repr=False)
class SyntheticData(ReleaseData):
    """What a synthetic release says, apart from how it is shown. `Synthetic` has the words."""

    @functools.cached_property
    def _read(self) -> dict[str, SyntheticColumn]:
        types = self.holds.types
        return {name: read(Type(types[name]), self.holds.more["table"][name]) for name in self.columns}

    @functools.cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The made-up rows, each a mapping from column to value."""
        columns = [column.plain() for column in self._read.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*columns, strict=True)]

    def first(self, count: int) -> list[tuple[Any, ...]]:
        """Gives the first made-up rows, their values in the order of `columns`."""
        columns = [one.plain(slice(count)) for one in self._read.values()]
        return list(zip(*columns, strict=True))

    def __len__(self) -> int:
        return int(self.holds.more["rows_drawn"])

    @property
    def total(self) -> float:
        """How many rows the real table seems to hold, of those that count.

        Where public totals are declared, these say it.
        """
        return float(self.holds.more["total"])

    @property
    def marginals(self) -> list[dict[str, Any]]:
        """For sets of columns, by how much their counts are off at most.

        Each has `columns`; `rows`, the most by which all counts of combinations of their cells are off, added up, and
        `share`, that as a part of all rows; `cell`, the most by which one of them is off; each at 95 % confidence. The
        published rows were held against the real ones for this, with noise of its own.
        """
        return list(self.holds.more["marginals"])

    @property
    def measured(self) -> list[dict[str, Any]]:
        """What was measured, in order: `columns` and the deviation `sigma` of the noise in rows."""
        return [{name: one[name] for name in ("columns", "sigma")} for one in self.holds.more["measured"]]

    @property
    def columns_left_out(self) -> dict[str, str]:
        """Declared columns that are not in the table, and why."""
        return dict(self.holds.more["columns_left_out"])

    @property
    def target(self) -> str | None:
        """The column that the table was made to be predicted from the others, where one was named."""
        found: str | None = self.holds.more.get("target")
        return found

    @property
    def domain(self) -> dict[str, list[str]]:
        """The cells of each column, in words."""
        return {name: list(cells) for name, cells in self.holds.more["domain"].items()}

    @property
    def declaration(self) -> str:
        """A declaration of the synthetic table in TOML, as a public table, with its rows in NAME_synthetic.csv."""
        said = str(self.holds.more["declaration"])
        ((name, table),) = tomllib.loads(said)["tables"].items()
        if table["source"] != f"{name}.csv":
            return said
        return _SOURCE.sub(rf"\1{MADE}.csv\2", said, count=1)  # earlier versions wrote the table's own name

    @functools.cached_property
    def known(self) -> SyntheticTable:
        """What is said of the table beside its rows: for files that hold them, and for questions about them."""
        whole = {
            name: {"type": one["type"], "values": values, "nulls": "(none)" in self.domain[name]}
            for name, one in self._stated.items()
            if (values := self._of_cells(name, one)) is not None
        }
        rounded = abs(self.total - len(self)) <= 0.5  # as many rows as the real table seems to hold
        return SyntheticTable(
            str(self.holds.more["name"]),
            self.columns,
            whole,
            1.0 if rounded else self.total / max(1, len(self)),
            [{name: one[name] for name in ("columns", "rows", "cell")} for one in self.marginals],
            str(self.holds.more.get("together", "")),
            dict(self.holds.more.get("refers", {})),
            part=str(self.holds.more.get("part", "")),
        )

    def _of_cells(self, name: str, stated: Mapping[str, Any]) -> list[Any] | None:
        """The values of a column each of which has a cell by itself; none of a boolean, and None where cells hold more.
        Of whole numbers with bounds, bins may be as many as there are numbers."""
        cells = self.domain.get(name, [OTHER])
        if OTHER in cells:
            return None
        if "values" in stated or stated["type"] == str(Type.BOOLEAN):
            return [plain(value) for value in stated.get("values", ())]
        bins = len(cells) - ("(none)" in cells)
        if stated["type"] != str(Type.INTEGER) or bins != stated["max"] - stated["min"] + 1:
            return None
        return list(range(stated["min"], stated["max"] + 1))

    @functools.cached_property
    def _stated(self) -> dict[str, Any]:
        """What is declared of the columns of the synthetic table."""
        (table,) = tomllib.loads(self.declaration)["tables"].values()
        columns: dict[str, Any] = table["columns"]
        return columns

    def as_source(self) -> tuple[Any, dict[str, Any]]:
        """Gives the rows as an Arrow table, and what is declared of their columns: what `discreet.Table` is made of.

        Raises QuestionError where pyarrow is missing (extra `arrow`).
        """
        return self.to_arrow(), self._stated

    def to_arrow(self) -> pyarrow.Table:
        """Gives an Arrow table, each column with its own type; its metadata say how far counts of its rows may be off.

        Raises QuestionError where pyarrow is missing (extra `arrow`).
        """
        arrow = extra("pyarrow", "arrow")
        kinds = {
            "integer": arrow.int64(),
            "number": arrow.float64(),
            "text": arrow.string(),
            "boolean": arrow.bool_(),
            "date": arrow.date32(),
            "timestamp": arrow.timestamp("us"),
        }
        fields = [arrow.field(name, kinds[self.holds.types[name]]) for name in self.columns]
        table: pyarrow.Table = arrow.table(self.to_columns(), schema=arrow.schema(fields))
        return table.replace_schema_metadata({"discreet": self.known.written(digest_of(table))})

    def counts(self, column: str) -> dict[str, float]:
        """Gives how many rows each cell of a column has, scaled to as many rows as the real table seems to hold.

        Raises QuestionError where no such column was measured.
        """
        if column not in self.domain:
            raise refused("columns", f"{column} has no cells", "column", f"name one of {', '.join(self.domain)}")
        drawn = unpack(self.holds.more["cells"][column])
        scale = self.total / max(1, len(self))
        return {cell: float(count) * scale for cell, count in zip(self.domain[column], drawn.tolist(), strict=True)}

    def to_columns(self) -> dict[str, list[Any]]:
        """Gives the rows as lists of one length, by column."""
        return {name: column.plain() for name, column in self._read.items()}

    def blocks(self) -> Iterator[dict[str, list[Any]]]:
        """Gives the rows as `to_columns` does, some thousands at a time."""
        for start in range(0, max(1, len(self)), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            yield {name: column.plain(some) for name, column in self._read.items()}

    def to_dict(self) -> dict[str, Any]:
        """Gives everything as plain values; the rows stand in `table`, packed."""
        whole: dict[str, Any] = finite({**self.content, "charged": dict(self.charged), **self.left_to_ask()})
        return whole

    def to_json(self) -> str:
        """Writes everything as JSON, with the rows as they are read."""
        return "".join(self.json_parts())

    def json_parts(self) -> Iterator[str]:
        """Gives what `to_json` does in parts: the rows come last, some thousands at a time."""
        whole = {name: value for name, value in self.to_dict().items() if name not in ("table", "rows")}
        yield f'{_json(whole)[:-1]}, "rows": ['
        after = ""
        for block in self.blocks():
            rows = (dict(zip(block, row, strict=True)) for row in zip(*block.values(), strict=True))
            text = ", ".join(map(_json, rows))
            yield after + text
            after = ", " if text else ""
        yield "]}"


def _json(whole: object) -> str:
    return json.dumps(whole, ensure_ascii=False, allow_nan=False, default=lambda moment: moment.isoformat())
