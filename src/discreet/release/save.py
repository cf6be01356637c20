"""A release as a file: its table as .csv, .parquet, .xlsx or .html, all of it as .json."""

from __future__ import annotations

import csv
import datetime
import importlib
import math
import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

from discreet.errors import QuestionError
from discreet.release.data import ReleaseData
from discreet.release.render import html

_ENDS = (".csv", ".html", ".json", ".parquet", ".xlsx")
_NEEDS = {".parquet": ("pyarrow", "arrow"), ".xlsx": ("xlsxwriter", "excel")}
_LONGEST_CELL = 32_767
_MOST_IN_SHEET = (1_048_575, 16_384)
"""Rows below the head, and columns, that a sheet of .xlsx can have."""

Drawing = Callable[[Any], str]
"""The picture of a release as SVG; empty where none can be drawn."""


def place(path: str | Path) -> Path:
    """Where a release can be written. Raises QuestionError where it cannot."""
    found = given(path, "answer.csv")
    ending = found.suffix.lower()
    if ending not in _ENDS:
        message = f"a table cannot be written as {found.suffix or 'a name without ending'}"
        raise QuestionError("output", message, where="path", fix=f"end it in {', '.join(_ENDS[:-1])} or {_ENDS[-1]}")
    if not found.parent.is_dir():
        raise QuestionError("output", f"there is no folder {found.parent}", where="path", fix="make it first")
    if ending in _NEEDS and find_spec(_NEEDS[ending][0]) is None:
        module, extra = _NEEDS[ending]
        fix = f'run pip install "discreet[{extra}]", or end it in .csv'
        raise QuestionError("output", f"{ending} needs {module}", where="path", fix=fix)
    return found


def given(path: object, example: str) -> Path:
    """The path of a file. Raises QuestionError on what is none."""
    if not isinstance(path, str | os.PathLike):
        raise QuestionError("output", "not a valid file path", where="path", fix=f'write "{example}"')
    return Path(path)


def save(release: ReleaseData, path: str | Path, drawing: Drawing) -> Path:
    """Writes a release. Raises QuestionError where that cannot be done."""
    found = place(path)
    try:
        _WRITERS[found.suffix.lower()](release, found, drawing)
    except OSError as error:
        message = f"{found} cannot be written: {error.strerror}"
        raise QuestionError("output", message, where="path", fix="write it elsewhere; asking again is free") from None
    return found


def _json(release: ReleaseData, found: Path, _drawing: Drawing) -> None:
    found.write_text(release.to_json() + "\n", "utf-8")


def _parquet(release: ReleaseData, found: Path, _drawing: Drawing) -> None:
    importlib.import_module("pyarrow.parquet").write_table(release.to_arrow(), found)


def _csv(release: ReleaseData, found: Path, _drawing: Drawing) -> None:
    with found.open("w", encoding="utf-8", newline="") as file:
        write_csv(release, file)


def write_csv(release: ReleaseData, file: TextIO) -> None:
    """Writes the table into an open text: a line of names, then a line for each row."""
    table = release.to_columns()
    writer = csv.writer(file)
    writer.writerow(table)
    writer.writerows([_cell(value) for value in row] for row in zip(*table.values(), strict=True))


def _html(release: ReleaseData, found: Path, drawing: Drawing) -> None:
    """A page that needs nothing else: all rows, price, what to know, and the picture."""
    head = f"<!doctype html><meta charset='utf-8'><title>discreet</title><style>{_STYLE}</style>"
    found.write_text(f"{head}{html(release, most=len(release))}{drawing(release)}\n", "utf-8")


_STYLE = (
    "body{font-family:sans-serif;margin:2em}table{border-collapse:collapse}"
    "td,th{padding:.2em .8em;border-bottom:1px solid #ddd}svg{max-width:100%;height:auto}"
)


def _xlsx(release: ReleaseData, found: Path, _drawing: Drawing) -> None:
    """The table in one sheet; price and what to know in another. A text is a text, whatever sign it begins with."""
    table = release.to_columns()
    if len(release) > _MOST_IN_SHEET[0] or len(table) > _MOST_IN_SHEET[1]:
        message = "this table is larger than a sheet of .xlsx may be"
        raise QuestionError("output", message, where="path", fix="end it in .csv; asking again is free")
    book = importlib.import_module("xlsxwriter").Workbook(found, {"in_memory": True})
    forms: dict[type, Any] = {
        datetime.date: book.add_format({"num_format": "yyyy-mm-dd"}),
        datetime.datetime: book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
    }
    sheet, bold = book.add_worksheet("answer"), book.add_format({"bold": True})
    for across, (name, values) in enumerate(table.items()):
        sheet.write_string(0, across, name[:_LONGEST_CELL], bold)
        for down, value in enumerate(values, 1):
            _in_sheet(sheet, down, across, value, forms)
    sheet.freeze_panes(1, 0)
    about = book.add_worksheet("about")
    for down, line in enumerate((f"{release.cost}, {release.holds.unit}", *release.bounds)):
        about.write_string(down, 0, line[:_LONGEST_CELL])
    try:
        book.close()
    except importlib.import_module("xlsxwriter.exceptions").FileCreateError as error:
        cause = error.args[0] if error.args else None
        raise (cause if isinstance(cause, OSError) else OSError(None, "it cannot be made")) from None


def _in_sheet(sheet: Any, down: int, across: int, value: Any, forms: Mapping[Any, Any]) -> None:
    if value is None:
        return
    if isinstance(value, bool):
        sheet.write_boolean(down, across, value)
    elif (isinstance(value, int) and abs(value) <= _EXACT) or (isinstance(value, float) and math.isfinite(value)):
        sheet.write_number(down, across, value)
    elif isinstance(value, datetime.date) and value.year >= 1900:
        sheet.write_datetime(down, across, value, forms[type(value)])
    else:
        sheet.write_string(down, across, str(_cell(value))[:_LONGEST_CELL])


_EXACT = 2**53
"""Numbers of a sheet are doubles; a larger whole one is written as a text."""

_WRITERS: Mapping[str, Callable[[ReleaseData, Path, Drawing], None]] = {
    ".csv": _csv,
    ".html": _html,
    ".json": _json,
    ".parquet": _parquet,
    ".xlsx": _xlsx,
}


def _cell(value: Any) -> Any:
    """A cell of a .csv: lists as they are shown."""
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else value
