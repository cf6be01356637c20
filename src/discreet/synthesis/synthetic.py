"""A release whose table is synthetic: synthetic rows, and bounds of their marginals' errors."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.release.render import aligned, used
from discreet.release.table import Release
from discreet.release.values import up
from discreet.synthesis.data import SyntheticData
from discreet.synthesis.database import write
from discreet.synthesis.destinations import is_database, place
from discreet.synthesis.page import page
from discreet.synthesis.query import Answer, answered
from discreet.texts import visible

_SHOWN = 5
MOST_OFF = 2.0
"""No two tables of as many rows are off by a larger part of them in sum: such a bound says nothing."""


@dataclass(frozen=True, repr=False)
class Synthetic(SyntheticData, Release):
    """A synthetic table that may be published, with all that is known of its errors.

    `rows` are made-up: none is anybody's. `marginals` says for sets of columns by how much their shares may be off,
    `measured` what was measured, `columns_left_out` which columns are not there and why. All is from the release alone.
    """

    @classmethod
    def of(cls, release: Release) -> Synthetic:
        """Gives a release whose table is synthetic as one that shows it."""
        return cls(release.holds, release.charged, release.balance, release.loss, release.notes)

    def ask(self, question: str) -> Answer:
        """Answers SQL on the synthetic table, with what is known of the error.

        Counts and sums are scaled to the real number of rows. It costs nothing: the table is public. Raises
        QuestionError.
        """
        return answered({self.known.name: self}, question)

    def save(self, path: str | Path) -> Path:
        """Writes the rows as `Release.save` does; a .duckdb is a database with a table of their types.

        That, a .parquet and a .json hold the bounds of the errors too. Gives the path. Raises QuestionError where it
        cannot be done.
        """
        found = place(path)
        if is_database(found):
            return write({self.known.name: self}, found)
        return super().save(found)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draws a page of pictures: each column measured and synthetic, pairs, what was measured.

        It is written to `path` (.html or .png); else a matplotlib figure is returned. Needs the extra `plot`. Raises
        QuestionError where that is missing, or the path has another ending.
        """
        return page(self, path)

    def __repr__(self) -> str:
        rows = [[_cell(row[name]) for name in self.columns] for row in self.rows[:_SHOWN]]
        right = [any(isinstance(row[name], int | float) for row in self.rows[:_SHOWN]) for name in self.columns]
        lines = aligned(list(map(visible, self.columns)), rows, right)
        if len(self) > _SHOWN:
            lines.append(f"… {len(self) - _SHOWN:,} more synthetic rows")
        paid = f"price {self.cost}" + ("" if self.charged else " (asked before: free)")
        lines.append(visible(" · ".join([paid, *used(self), self.left, *self._words(), *self.notes])))
        return "\n".join(lines)

    def _words(self) -> list[str]:
        words = []
        pairs = sorted(one["share"] for one in self.marginals if len(one["columns"]) == 2)
        middle = pairs[len(pairs) // 2] if pairs else 0.0
        if middle >= MOST_OFF:
            fewer = (
                "fewer rows_per_person (a profile tells how many), or "
                if self.holds.more["rows_per_person"] > 1
                else ""
            )
            words.append(
                f"pairs of columns: the noise is larger than the table, and nothing is known → {fewer}a larger epsilon"
            )
        elif pairs:
            words.append(f"pairs of columns: off by at most {up(middle, 2):.0%} of the rows in sum (the middle bound)")
        words += [f"left out: {name} ({why})" for name, why in self.columns_left_out.items()]
        return words + (["ended early"] if self.holds.more["ended_early"] else [])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else visible(str(value)[:24])
