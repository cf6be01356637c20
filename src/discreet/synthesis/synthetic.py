"""A release whose table is synthetic: made-up rows, and how far their marginals may be from those of the truth."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.release.show import used
from discreet.release.table import Release
from discreet.synthesis.decode import Column, read
from discreet.synthesis.query import Answer, answered
from discreet.texts import visible
from discreet.trusted.ring_a.table import Type

_SHOWN = 5


@dataclass(frozen=True, repr=False)
class Synthetic(Release):
    """A synthetic table that may be published, with all that is known of its errors.

    `rows` are made-up: none is anybody's. `marginals` says for sets of columns by how much their shares may be off,
    `measured` what was measured, `columns_left_out` which columns are not there and why. All is from the release alone.
    """

    @property
    def columns(self) -> list[str]:
        return list(self.content["columns"])

    @functools.cached_property
    def _read(self) -> dict[str, Column]:
        types = self.content["types"]
        return {name: read(Type(types[name]), self.content["table"][name]) for name in self.columns}

    @functools.cached_property
    def rows(self) -> list[dict[str, Any]]:
        columns = [column.plain() for column in self._read.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return int(self.content["rows_drawn"])

    @property
    def total(self) -> float:
        """How many rows the real table seems to hold, of those that count."""
        return float(self.content["total"])

    @property
    def marginals(self) -> list[dict[str, Any]]:
        """For sets of columns: `columns`; `rows`, the most by which all counts of combinations of their cells are off,
        added up, and `share`, that as a part of all rows; `cell`, the most by which one of them is off; each with 95 %.
        The published rows were held against the real ones for this, with noise of its own."""
        return list(self.content["marginals"])

    @property
    def measured(self) -> list[dict[str, Any]]:
        """What was measured, in order: `columns` and the deviation `sigma` of the noise in rows."""
        return [{name: one[name] for name in ("columns", "sigma")} for one in self.content["measured"]]

    @property
    def columns_left_out(self) -> dict[str, str]:
        """Declared columns that are not in the table, and why."""
        return dict(self.content["columns_left_out"])

    @property
    def domain(self) -> dict[str, list[str]]:
        """The cells of each column, in words."""
        return {name: list(cells) for name, cells in self.content["domain"].items()}

    @property
    def declaration(self) -> str:
        """A declaration of the synthetic table in TOML, as a public table."""
        return str(self.content["declaration"])

    def off_by(self, columns: Sequence[str]) -> float | None:
        """By how many rows all counts over cells of these columns are off, added up: the least bound of a marginal that
        holds them; None where there is none."""
        known = [one["rows"] for one in self.marginals if set(columns) <= set(one["columns"])]
        return min(known, default=None)

    def ask(self, question: str) -> Answer:
        """The answer of SQL on the synthetic table, with counts and sums scaled to the real number of rows, and what is
        known of its error. It costs nothing: the table is public."""
        return answered(self, question)

    def plot(self, path: str | Path | None = None) -> Any:
        """A page of pictures: each column measured and synthetic, pairs, what was measured. Written to `path` (.html or
        .png); else a matplotlib figure is returned. Needs the extra `plot`."""
        from discreet.synthesis.page import page

        return page(self, path)

    def to_columns(self) -> dict[str, list[Any]]:
        """The rows as lists, by column."""
        return {name: column.plain() for name, column in self._read.items()}

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; the rows stand in `table`, packed."""
        return {**self.content, "charged": dict(self.charged), **self.left_to_ask()}

    def to_json(self) -> str:
        """Everything, with the rows as they are read."""
        whole = {**self.to_dict(), "rows": self.rows}
        del whole["table"]
        return json.dumps(whole, ensure_ascii=False, default=lambda moment: moment.isoformat())

    def __repr__(self) -> str:
        head = [self.columns, *([_cell(row[name]) for name in self.columns] for row in self.rows[:_SHOWN])]
        widths = [max(len(row[place]) for row in head) for place in range(len(self.columns))]
        right = [any(isinstance(row[name], int | float) for row in self.rows[:_SHOWN]) for name in self.columns]
        aligned = [str.rjust if one else str.ljust for one in right]
        lines = [
            "  ".join(place(cell, width) for place, cell, width in zip(aligned, row, widths, strict=True)).rstrip()
            for row in head
        ]
        if len(self) > _SHOWN:
            lines.append(f"… {len(self) - _SHOWN:,} more synthetic rows")
        paid = f"price {self.cost}" + ("" if self.charged else " (asked before: free)")
        lines.append(visible(" · ".join([paid, *used(self), self.left, *self._words(), *self.notes])))
        return "\n".join(lines)

    def _words(self) -> list[str]:
        words = []
        pairs = sorted(one["share"] for one in self.marginals if len(one["columns"]) == 2)
        if pairs:
            words.append(
                f"pairs of columns: off by at most {pairs[len(pairs) // 2]:.0%} of the rows in sum (the middle bound)"
            )
        words += [f"left out: {name} ({why})" for name, why in self.columns_left_out.items()]
        return words + (["ended early"] if self.content["ended_early"] else [])

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(repr(self))}</pre>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:24]
