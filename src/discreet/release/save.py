"""A release as a file: its table as .csv or .parquet, all of it as .json."""

from __future__ import annotations

import csv
import importlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from discreet.errors import QuestionError
from discreet.release.data import ReleaseData


def place(path: str | Path) -> Path:
    """Where a release can be written. Raises QuestionError where it cannot."""
    found = given(path, "answer.csv")
    if found.suffix.lower() not in (".csv", ".json", ".parquet"):
        message = f"a table cannot be written as {found.suffix or 'a name without ending'}"
        raise QuestionError("output", message, where="path", fix="end it in .csv, .json or .parquet")
    if not found.parent.is_dir():
        raise QuestionError("output", f"there is no folder {found.parent}", where="path", fix="make it first")
    if found.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        fix = 'run pip install "discreet[arrow]", or end it in .csv'
        raise QuestionError("output", ".parquet needs pyarrow", where="path", fix=fix)
    return found


def given(path: object, example: str) -> Path:
    """The path of a file. Raises QuestionError on what is none."""
    if not isinstance(path, str | os.PathLike):
        raise QuestionError("output", "not a valid file path", where="path", fix=f'write "{example}"')
    return Path(path)


def save(release: ReleaseData, path: str | Path) -> Path:
    """Writes a release. Raises QuestionError where that cannot be done."""
    found = place(path)
    try:
        _write(release, found)
    except OSError as error:
        message = f"{found} cannot be written: {error.strerror}"
        raise QuestionError("output", message, where="path", fix="write it elsewhere; asking again is free") from None
    return found


def _write(release: ReleaseData, found: Path) -> None:
    if found.suffix.lower() == ".json":
        found.write_text(release.to_json() + "\n", "utf-8")
        return
    if found.suffix.lower() == ".parquet":
        importlib.import_module("pyarrow.parquet").write_table(release.to_arrow(), found)
        return
    table = release.to_columns()
    with found.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows([_cell(value) for value in row] for row in zip(*table.values(), strict=True))


def _cell(value: Any) -> Any:
    """A cell of a .csv: lists as they are shown."""
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else value
