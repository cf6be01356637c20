"""A first declaration for sources: their names and types, and what the owner says. Nothing is computed from values,
except the keys of columns that the owner calls public; what a CSV file's first rows look like stands in comments."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.errors import DeclarationError, Fault
from discreet.texts import visible
from discreet.trusted.ring_a.table import Source, SourceKind, Type


@dataclass(frozen=True)
class Suggested:
    """What is known of a source's columns, and what the owner said of the table. `looks` is the type that the first
    rows of a CSV file seem to have, by column, and `dates` how those in the columns `dated` may be written: it decides
    nothing. The columns `full` have a value in every row; a `public` table is about nobody."""

    name: str
    source: str
    dialect: Source
    types: Mapping[str, Type | None]
    looks: Mapping[str, Type] = field(default_factory=dict)
    dates: Sequence[str] = ()
    dated: Sequence[str] = ()
    ranges: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    person: str | None = None
    one_row_per_person: bool = False
    rows_per_person: int | None = None
    groups_per_person: int | None = None
    full: Collection[str] = ()
    public: bool = False


@dataclass(frozen=True)
class Allowed:
    """An analyst's part of the budget, and the most of it in one day and in one month; numbers as TOML writes them."""

    name: str
    epsilon: str
    day: str | None = None
    month: str | None = None


def table_name(source: str) -> str:
    """A name for a source that needs no quotes in SQL."""
    parts = [part for part in source.split("/") if part and not re.search("[*?=]", part)] or [""]
    last = source.rpartition("::")[2] if "::" in source else parts[-1].partition(".")[0]
    name = re.sub(r"\W+", "_", last).strip("_") or "people"
    return f"t_{name}" if name[0].isdigit() else name


_READ = (
    "# Nothing here was computed from values, except the `values` of columns you called public, and whether",
    "# they are all there is (nulls = false). What stands behind a column as a comment decides nothing.",
)
_SAID = (
    "# Nothing here was computed from values: ranges, values and numbers are what you said. What stands behind a",
    "# column as a comment decides nothing.",
)


def written(
    tables: Sequence[Suggested],
    epsilon: str,
    delta: str,
    *,
    question: str = "0.1",
    renewal: tuple[str, str] | None = None,
    analysts: Sequence[Allowed] = (),
    said: bool = False,
) -> str:
    """The declaration as TOML. A `renewal` is a period and for whom; `said` is where the owner has said all values."""
    lines = [
        "# What may be asked about these people, and how much of their privacy may be spent.",
        *(_SAID if said else _READ),
        "",
        f"[budget]                      # {'over' if renewal else 'for all time, over'} all analysts",
        f"epsilon = {epsilon}",
        f"delta = {delta}",
    ]
    if renewal:
        lines += [f"period = {_text(renewal[0])}", f"renews = {_text(renewal[1])}"]
    lines += ["", "[question]                    # the price of a question that names none", f"epsilon = {question}"]
    for table in tables:
        lines += ["", *_table(table)]
    for one in analysts:
        lines += ["", f"[analysts.{_key(one.name)}]", f"epsilon = {one.epsilon}"]
        lines += [f"{window} = {most}" for window, most in (("day", one.day), ("month", one.month)) if most is not None]
    return "\n".join(lines) + "\n"


def write_new(path: Path, text: str) -> None:
    """Writes a file that is not there yet, whole or not at all. Raises DeclarationError where something is there, or it
    cannot be written."""
    beside = path.with_name(f".{secrets.token_hex(8)}.new")
    try:
        with beside.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        _link(beside, path, text)
    except FileExistsError:
        raise _unwritten(path, "this file exists", "remove it, or name another with --output", "exists") from None
    except FileNotFoundError:
        raise _unwritten(path, "there is no such folder", "make it, or name another with --output", "folder") from None
    except OSError:
        fix = "check the disk and the rights of the folder, or name another with --output"
        raise _unwritten(path, "it cannot be written", fix, "unwritable") from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def _link(beside: Path, path: Path, text: str) -> None:
    """Gives a file its name, which unlike a rename never takes the place of another file."""
    try:
        os.link(beside, path)
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:  # where files have no second names
        with path.open("x", encoding="utf-8") as file:
            try:
                file.write(text)
                file.flush()
            except OSError:
                path.unlink()
                raise


def _unwritten(path: Path, message: str, fix: str, code: str) -> DeclarationError:
    return DeclarationError([Fault(str(path), message, fix)], code=code)


def _table(table: Suggested) -> list[str]:
    lines = [f"[tables.{table.name}]", f"source = {_text(table.source)}"]
    usual = Source(SourceKind.CSV)
    dialect = {key: getattr(table.dialect, key) for key in ("delimiter", "decimal", "dates", "encoding")}
    other = [f"{key} = {_text(value)}" for key, value in dialect.items() if value != getattr(usual, key)]
    declared = any(table.types.get(name) in (Type.DATE, Type.TIMESTAMP) for name in table.dated)
    so = ", ".join([*other, *(f"dates = {_text(form)}" for form in table.dates[:1])])
    either = "".join(f', or like "{form}"' for form in table.dates[1:])
    if table.dates and declared:  # without it all their values would be NULL
        lines.append(f"csv = {{ {so} }}    # as the first rows look{either}: check this")
    elif other:
        lines.append(f"csv = {{ {', '.join(other)} }}    # as the first rows look: check this")
    if table.dates and not declared:
        where = visible(", ".join(table.dated))
        lines.append(f"# csv = {{ {so} }}    # dates in {where} look like this{either}: uncomment it if that is right")
    if table.public:
        lines.append("public = true    # about nobody: free to join, free to read")
    if table.person is not None:
        lines.append(f"person = {_text(table.person)}")
    if table.one_row_per_person:
        lines.append("one_row_per_person = true")
    if table.rows_per_person is not None:
        lines.append(
            f"rows_per_person = {table.rows_per_person}      # further rows of a person are left out, at random"
        )
    if table.groups_per_person is not None:
        lines.append(
            f"groups_per_person = {table.groups_per_person}    # how many groups of an answer a person may touch"
        )
    lines += ["", f"[tables.{table.name}.columns]"]
    lines += [_column(table, name, kind) for name, kind in table.types.items()]
    return lines


def _column(table: Suggested, name: str, kind: Type | None) -> str:
    parts = [f'type = "{kind or Type.TEXT}"']
    if name in table.ranges:
        ends = zip(("min", "max"), table.ranges[name], strict=True)
        parts += [f"{key} = {end}" for key, end in ends if end is not None]
    if name in table.values:
        keys = ", ".join(
            _text(value) if isinstance(value, str) and kind in (Type.TEXT, None) else _bare(value)
            for value in table.values[name]
            if value is not None
        )
        parts.append(f"values = [{keys}]")
    if name in table.full or (name in table.values and None not in table.values[name]):
        parts.append("nulls = false")
    comments = []
    if (table.person or "").partition("->")[0].strip().casefold() != name.casefold() and identifies(name):
        comments.append("identifies a person? leave this line out unless it is needed")
    if name in table.looks and table.looks[name] is not kind:
        looks = table.looks[name]
        bounds = ", min = …, max = …" if looks.numeric or looks in (Type.DATE, Type.TIMESTAMP) else ""
        beside = ", with csv.dates as above" if name in table.dated else ""
        comments.append(f'its first rows look like {{ type = "{looks}"{bounds} }}{beside}')
    line = f"{_key(name)} = {{ {', '.join(parts)} }}"
    return f"{line}    # {'; '.join(comments)}" if comments else line


_IDENTIFYING = re.compile(
    r"\b((first|last|full|user|nick|sur|fore|vor|nach)?names?|maiden|initials|ssn|social security|passport|drivers?"
    r"|licen[sc]e|address|street|e?mail|phone|telephone|mobile|fax|iban|ip|mrn|login|zip|postcode|lat|latitude|lon"
    r"|longitude|strasse|telefon|anschrift|adresse|plz)\b|^(first|last|tel)$"
)


def identifies(name: str) -> bool:
    """Whether a column seems to hold names, numbers or places of persons, by its own name alone."""
    words = re.sub(r"([a-zß-ÿ])([A-Z])", r"\1 \2", name)
    return _IDENTIFYING.search(" ".join(re.split(r"[\W_]+", words.casefold())).strip()) is not None


def _bare(value: Any) -> str:
    """A number, a truth value, or a date."""
    return value if isinstance(value, str) else json.dumps(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(value: str) -> str:
    """A TOML basic string: the same escapes as JSON, and DEL written out."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
