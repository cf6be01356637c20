"""The release: a small table with intervals, its price, and how it was made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from discreet.release import plot, render, save
from discreet.release.content import FREE, Cost
from discreet.release.data import ReleaseData
from discreet.release.pivot import Names, pivoted


@dataclass(frozen=True, repr=False)
class Release(ReleaseData):
    """An answer that may be published.

    `rows` and `intervals` go together: a list of mappings, from column to value and from column to (low, high).
    `cost` is the price of what was asked, `charged` what this call took: nothing for a repeat. `used` is the part of
    the whole budget that is used now, in percent, `more` how many more questions of this price fit, and `left` what is
    left; these two of what the whole budget and the asker's own account, where there is one, both allow.
    """

    def save(self, path: str | Path) -> Path:
        """Writes the table as .csv, .parquet (extra `arrow`), .xlsx (extra `excel`) or .html, or all of it as .json.

        An .html has the picture too where the extra `plot` is installed; an .xlsx a second sheet with the price and
        what changes how the numbers may be read. Gives the path. Raises QuestionError where that cannot be done.
        """
        return save.save(self, path, plot.drawing)

    def pivot(self, rows: Names | None = None, columns: Names | None = None, value: str | None = None) -> Release:
        """Gives the answer as a cross table: the values of the keys `columns` become columns, of the `value`.

        Without names, the last key stands across and the others down. It is a release like any other: printed, saved
        and drawn with its intervals, and free. Raises QuestionError where two numbers fall into one cell.
        """
        return replace(self, holds=pivoted(self.holds, rows, columns, value))

    def plot(self, path: str | Path | None = None) -> Any:
        """Draws a picture with errors: what follows from the keys.

        A line in its band over dates and numbers, one for each group beside them where these are few; bars of equal
        width over bins; a heat map of two keys; else bars. With a path ending in .png, .svg or .html it is written
        there; else a matplotlib figure is returned. Needs the extra `plot`. Raises QuestionError where that is missing,
        or the answer cannot be drawn.
        """
        return plot.plot(self, path)

    def __repr__(self) -> str:
        return render.text(self)

    def _repr_html_(self) -> str:
        return render.html(self)


__all__ = ["FREE", "Cost", "Release"]
