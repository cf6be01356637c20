"""A release of several synthetic tables whose keys fit."""

from __future__ import annotations

import functools
import hashlib
import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.errors import QuestionError
from discreet.release.content import ReleaseContent
from discreet.release.render import aligned, used
from discreet.release.table import Release
from discreet.release.values import finite, up
from discreet.synthesis.database import write
from discreet.synthesis.destinations import each, is_database, place
from discreet.synthesis.query import Answer, answered
from discreet.synthesis.synthetic import MOST_OFF, Synthetic
from discreet.texts import visible


@dataclass(frozen=True, repr=False)
class SyntheticTables(Release):
    """Several synthetic tables that may be published, with all that is known of their errors.

    `tables` are the tables by name, each as `Synthetic`: made-up rows, of which none is anybody's, under made-up keys.
    A row's key stands in each row that refers to it. `marginals` of a table has bounds `about` its columns ("inside"),
    its columns beside those of the rows above, weighted by its rows ("across"), those of the rows above alone
    ("above"), a column beside that of the row before ("before"), and how many rows below refer to a row ("rows").
    `rows` is a line for each table: how many rows it has, and the middle bound of each kind.
    """

    @classmethod
    def of(cls, release: Release) -> SyntheticTables:
        """Gives a release of several synthetic tables as one that shows them."""
        return cls(release.holds, release.charged, release.balance, release.loss, release.notes)

    @functools.cached_property
    def tables(self) -> dict[str, Synthetic]:
        """The tables by name, the persons' first."""
        return {
            name: Synthetic(
                ReleaseContent.from_dict({**plain, "together": self._together}),
                self.charged,
                self.balance,
                self.loss,
                self.notes,
            )
            for name, plain in self.holds.more["tables"].items()
        }

    @functools.cached_property
    def _together(self) -> str:
        """A name of this release, which its noise makes its own: keys fit in tables of one release alone."""
        measured = [plain["measured"] for plain in self.holds.more["tables"].values()]
        return hashlib.sha256(json.dumps(measured, sort_keys=True).encode()).hexdigest()[:32]

    def ask(self, question: str) -> Answer:
        """Answers SQL on the synthetic tables, also where it joins them, with what is known of the error.

        It costs nothing: the tables are public. Raises QuestionError.
        """
        return answered(self.tables, question)

    def as_source(self) -> Any:
        """Refuses: each table is a source of its own. Raises QuestionError."""
        fix = "write {name: discreet.Table(one, public=True) for name, one in release.tables.items()}"
        raise QuestionError("source", "several published tables are not one table", where="source", fix=fix)

    @property
    def intervals(self) -> list[dict[str, tuple[float, float]]]:
        """None: no line of the release is an estimate."""
        return []

    def save(self, path: str | Path) -> Any:
        """Writes each table to a file of its own: "made.csv" becomes made_patients.csv, made_visits.csv and so on.

        Endings as of `Release.save`; a .json holds all tables, and so does a .duckdb, with their types and keys. Gives
        the paths, by table. Raises QuestionError where that cannot be done.
        """
        found = place(path)
        if is_database(found):
            return dict.fromkeys(self.tables, write(self.tables, found))
        if found.suffix.lower() == ".json":
            try:
                found.write_text(self.to_json() + "\n", "utf-8")
            except OSError as error:
                message = f"{found} cannot be written: {error.strerror}"
                fix = "write it elsewhere; asking again is free"
                raise QuestionError("output", message, where="path", fix=fix) from None
            return dict.fromkeys(self.tables, found)
        return {name: self.tables[name].save(one) for name, one in self.paths(found).items()}

    def paths(self, path: Path) -> dict[str, Path]:
        """Gives the file of each table: its name behind the path's, with _ for what is no letter or digit."""
        return each(path, list(self.tables))

    def plot(self, path: str | Path | None = None) -> Any:
        """Refuses: each table has a picture of its own. Raises QuestionError."""
        name = "page.html" if path is None else path
        fix = f'write release.tables["{visible(next(iter(self.tables)))}"].plot("{name}")'
        raise QuestionError("output", "several tables have no common picture", where="plot", fix=fix)

    def to_dict(self) -> dict[str, Any]:
        """Gives everything as plain values; the rows of each table stand in its `table`, packed."""
        whole: dict[str, Any] = finite({**self.content, "charged": dict(self.charged), **self.left_to_ask()})
        return whole

    def to_json(self) -> str:
        """Writes everything as JSON, with the rows of each table as they are read."""
        tables = {}
        for name, one in self.tables.items():
            tables[name] = finite({**one.content, "rows": one.rows})
            for packed in ("table", "counts"):
                tables[name].pop(packed, None)  # a release that was read again has none
        whole = {**self.to_dict(), "tables": tables}
        return json.dumps(whole, ensure_ascii=False, allow_nan=False, default=lambda moment: moment.isoformat())

    def __repr__(self) -> str:
        lines = aligned(
            list(map(visible, self.columns)),
            [[visible(row["table"]), f"{row['rows']:,}", *map(_share, list(row.values())[2:])] for row in self.rows],
            [False, *[True] * (len(self.columns) - 1)],
        )
        lines.append(
            "bounds: the part of the rows that may be off in sum, at 95 % confidence each, the middle of its kind"
        )
        paid = f"price {self.cost}" + ("" if self.charged else " (asked before: free)")
        left_out = [
            f"left out: {n}.{c} ({w})" for n, one in self.tables.items() for c, w in one.columns_left_out.items()
        ]
        early = ["ended early"] if any(one.holds.more["ended_early"] for one in self.tables.values()) else []
        early += [f"not made: {name}" for name in self.holds.more["not_made"]]
        lines.append(visible(" · ".join([paid, *used(self), self.left, *left_out, *early, *self.notes])))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def _share(value: float | None) -> str:
    return "" if value is None else f"{up(value, 3):.1%}" if value < MOST_OFF else "unknown"
