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
from discreet.look.page import document, escape, points, table
from discreet.release.data import ReleaseData
from discreet.release.render import cells, footer, numbers

_ENDS = (".csv", ".html", ".json", ".parquet", ".xlsx")
_NEEDS = {".parquet": ("pyarrow", "arrow"), ".xlsx": ("xlsxwriter", "excel")}
_LONGEST_CELL = 32_767
_MOST_IN_SHEET = (1_048_575, 16_384)
"""Rows below the head, and columns, that a sheet of .xlsx can have."""

Drawing = Callable[[Any], str]
"""The picture of a release as HTML; empty where none can be drawn."""


def place(path: str | Path, *others: str) -> Path:
    """Where a release can be written. Raises QuestionError where it cannot; `others` are endings that who calls takes
    too, and are told of then."""
    found = given(path, "answer.csv")
    ending = found.suffix.lower()
    if ending not in _ENDS:
        message = f"a table cannot be written as {found.suffix or 'a name without ending'}"
        *ends, last = sorted((*_ENDS, *others))
        raise QuestionError("output", message, where="path", fix=f"end it in {', '.join(ends)} or {last}")
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
    with found.open("w", encoding="utf-8") as file:
        file.writelines(release.json_parts())
        file.write("\n")


def _parquet(release: ReleaseData, found: Path, _drawing: Drawing) -> None:
    table, part = release.to_arrow(), release.holds.more.get("part")
    if part is not None:  # whose rows these are outlasts the notes
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), "discreet.part": part})
    importlib.import_module("pyarrow.parquet").write_table(table, found)


def _csv(release: ReleaseData, found: Path, _drawing: Drawing) -> None:
    with found.open("w", encoding="utf-8", newline="") as file:
        write_csv(release, file)


def write_csv(release: ReleaseData, file: TextIO) -> None:
    """Writes the table into an open text: a line of names, then a line for each row."""
    writer = csv.writer(file)
    for place, columns in enumerate(release.blocks()):
        if not place:
            writer.writerow(columns)
        writer.writerows([_cell(value) for value in row] for row in zip(*columns.values(), strict=True))


def _html(release: ReleaseData, found: Path, drawing: Drawing) -> None:
    found.write_text(page(release, drawing), "utf-8")


def page(release: ReleaseData, drawing: Drawing) -> str:
    """A page that needs nothing else: all rows, price, what to know, and the picture."""
    keys = [name for name in release.columns if name in release.holds.types]
    several = len(release) > 1 and keys
    title = f"{', '.join(one for one in release.columns if one not in keys)} by {', '.join(keys)}"
    title = title if several and len(keys) < len(release.columns) else "Answer"
    known = f"{len(release):,} {'row' if len(release) == 1 else 'rows'}; ± reaches to the ends of 95 % intervals"
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(footer(release))}</p>",
        table(known, release.columns, cells(release), numbers=numbers(release), keys=_leading(release)),
        drawing(release),
    ]
    if release.bounds:
        body.append(f"<h2>How to read the numbers</h2>{points(release.bounds)}")
    return document(title, "\n".join(body))


def _leading(release: ReleaseData) -> int:
    """How many columns at the left say what a row is about."""
    known = [name in release.holds.types for name in release.columns]
    return known.index(False) if False in known else 0


def _xlsx(release: ReleaseData, found: Path, _drawing: Drawing) -> None:
    """The table in one sheet; price and what to know in another. A text is a text, whatever sign it begins with."""
    columns = release.to_columns()
    if len(release) > _MOST_IN_SHEET[0] or len(columns) > _MOST_IN_SHEET[1]:
        message = "this table is larger than a sheet of .xlsx may be"
        raise QuestionError("output", message, where="path", fix="end it in .csv; asking again is free")
    book = importlib.import_module("xlsxwriter").Workbook(found, {"in_memory": True})
    forms: dict[type, Any] = {
        datetime.date: book.add_format({"num_format": "yyyy-mm-dd"}),
        datetime.datetime: book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
    }
    sheet, bold = book.add_worksheet("answer"), book.add_format({"bold": True})
    for across, (name, values) in enumerate(columns.items()):
        sheet.write_string(0, across, name[:_LONGEST_CELL], bold)
        for down, value in enumerate(values, 1):
            _in_sheet(sheet, down, across, value, forms)
    sheet.freeze_panes(1, 0)
    about = book.add_worksheet("about")
    part = release.holds.more.get("part")
    told = [] if part is None else [f"of the part {part} alone"]
    for down, line in enumerate(dict.fromkeys((f"{release.cost}, {release.holds.unit}", *told, *release.bounds))):
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
