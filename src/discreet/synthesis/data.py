"""The data of a release whose table is synthetic."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.release.data import ReleaseData
from discreet.release.values import finite
from discreet.synthesis.decode import SyntheticColumn, read
from discreet.trusted.ring_a.table import Type


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

    def __len__(self) -> int:
        return int(self.holds.more["rows_drawn"])

    @property
    def total(self) -> float:
        """How many rows the real table seems to hold, of those that count."""
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
    def domain(self) -> dict[str, list[str]]:
        """The cells of each column, in words."""
        return {name: list(cells) for name, cells in self.holds.more["domain"].items()}

    @property
    def declaration(self) -> str:
        """A declaration of the synthetic table in TOML, as a public table."""
        return str(self.holds.more["declaration"])

    def off_by(self, columns: Sequence[str]) -> float | None:
        """Gives the number of rows by which all counts over cells of these columns are off at most, added up.

        It is the least bound of a marginal that contains them, at 95 % confidence; None where there is none.
        """
        known = [one["rows"] for one in self.marginals if set(columns) <= set(one["columns"])]
        return min(known, default=None)

    def to_columns(self) -> dict[str, list[Any]]:
        """Gives the rows as lists of one length, by column."""
        return {name: column.plain() for name, column in self._read.items()}

    def to_dict(self) -> dict[str, Any]:
        """Gives everything as plain values; the rows stand in `table`, packed."""
        whole: dict[str, Any] = finite({**self.content, "charged": dict(self.charged), **self.left_to_ask()})
        return whole

    def to_json(self) -> str:
        """Writes everything as JSON, with the rows as they are read."""
        whole = {**self.to_dict(), "rows": self.rows}
        del whole["table"]
        return json.dumps(whole, ensure_ascii=False, allow_nan=False, default=lambda moment: moment.isoformat())
