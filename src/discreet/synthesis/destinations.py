"""Where synthetic tables can be written: as any release, or in a database."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from discreet.errors import QuestionError
from discreet.release import save
from discreet.synthesis.database import logged, published_alone

DATABASE = ".duckdb"


def is_database(path: object) -> bool:
    """Whether a path is that of a database, by its ending."""
    return save.given(path, "made.csv").suffix.lower() == DATABASE


def place(path: str | Path) -> Path:
    """Gives the path where synthetic tables can be written. Raises QuestionError where they cannot.

    A database that is there is replaced where all its tables are published ones, each with the comment that
    `database.write` gives it, and no log of somebody's lies beside it.
    """
    found = save.given(path, "made.csv")
    if not is_database(found):
        return save.place(found, DATABASE)
    if not found.parent.is_dir():
        raise QuestionError("output", f"there is no folder {found.parent}", where="path", fix="make it first")
    if logged(found):
        message = f"somebody writes to {found}, or was ended there: {found.name}.wal lies beside it"
        fix = "close that database, or write to another file; asking again is free"
        raise QuestionError("output", message, where="path", fix=fix)
    if found.exists() and not found.is_dir() and not published_alone(found):
        message = f"{found} is there, and not all in it is a published table"
        fix = "write to another file, or remove this one; asking again is free"
        raise QuestionError("output", message, where="path", fix=fix)
    return found


def each(path: Path, names: Sequence[str]) -> dict[str, Path]:
    """Gives the file of each table of these names: its name behind the path's, with _ for what is no letter or digit;
    a database and a .json hold all of them."""
    if path.suffix.lower() in (DATABASE, ".json"):
        return dict.fromkeys(names, path)
    found: dict[str, Path] = {}
    for name in names:
        stem = "_".join([path.stem, re.sub(r"[^\w-]", "_", name)])
        while path.with_name(stem + path.suffix) in found.values():
            stem += "_"
        found[name] = path.with_name(stem + path.suffix)
    return found
