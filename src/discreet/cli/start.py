"""`discreet init`: what the owner said on the command line, and what the sources' schemas state."""

from __future__ import annotations

import codecs
import datetime
import difflib
import gzip
import os
import re
import shlex
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from discreet.catalog import Source, Type, declare
from discreet.catalog.formats import words_of
from discreet.catalog.server import is_server
from discreet.catalog.suggest import Suggested, table_name, written
from discreet.engines import chosen
from discreet.engines.files import SNIFFED_ROWS, csv_head, csv_header, files
from discreet.engines.protocol import Sources
from discreet.errors import DeclarationError, Fault
from discreet.texts import visible
from discreet.trusted.ring_a.table import SourceKind

MOST_KEYS = 1_000
_HEAD = 1 << 20
"""So many bytes of a CSV file are looked at for its encoding."""


@dataclass
class _SourceTable:
    """One source, and what is said of it."""

    name: str
    place: Source
    types: dict[str, Type | None]
    looks: dict[str, Type] = field(default_factory=dict)
    dates: tuple[str, ...] = ()
    dated: tuple[str, ...] = ()
    ranges: dict[str, tuple[str, str]] = field(default_factory=dict)
    values: dict[str, Sequence[Any]] = field(default_factory=dict)
    person: str | None = None
    rows: int | None = None
    groups: int | None = None


def suggest(
    sources: Sequence[str],
    base: Path,
    *,
    one_row_per_person: bool,
    person: Sequence[str],
    rows_per_person: Sequence[str],
    groups_per_person: Sequence[str],
    public: Sequence[str],
    ranges: Sequence[str],
    types: Sequence[str],
    epsilon: str,
    delta: str,
    tell: Callable[[str], None] = lambda _: None,
) -> str:
    """The text of a declaration. Raises DeclarationError where a source or an option is wrong. Tells what the owner
    should look at."""
    engine = chosen.sources()
    try:
        tables = _tables(sources, engine, tell)
        for source, one in zip(sources, tables, strict=True):
            if one.dates:
                message = f"{source}: dates in {visible(', '.join(one.dated))} look like {' or '.join(one.dates)}"
                tell(f"{message} → if that is right, uncomment the line with `dates`; without it they are texts")
        for said in person:
            written_column, arrow, target = said.partition("->")
            for table, column in _meant("--person", written_column.strip(), tables):
                table.person = f"{column} -> {target.strip()}" if arrow else column
        _keys_seen(tables)
        for option, numbers in (("rows", rows_per_person), ("groups", groups_per_person)):
            for said in numbers:
                for table, count in _counted(f"--{option}-per-person", said, tables):
                    setattr(table, option, count)
        for pair in types:
            written_column, _, kind = pair.rpartition("=")
            if kind not in set(Type):
                raise _fault(f"--type {pair}", "this type is not known", "write one of " + ", ".join(Type))
            for table, column in _meant("--type", written_column, tables):
                table.types[column] = Type(kind)
                table.looks.pop(column, None)
        for pair in ranges:
            written_column, ends = _range(pair)
            for table, column in _meant("--range", written_column, tables):
                dates = _is_date(ends[0])
                if table.looks.get(column) in (Type.DATE, Type.TIMESTAMP) and not dates:
                    message, fix = "its first rows look like dates", f"write --range {column}=1900-01-01:2026-12-31"
                    raise _fault(f"--range {pair}", message, fix)
                table.ranges[column] = ends
                kind = table.types[column] = Type.DATE if dates else _range_type(table.types[column], *ends)
                fractions = table.looks.get(column) is Type.NUMBER and not _whole(table.place, column)
                if kind is not Type.INTEGER or not fractions:
                    table.looks.pop(column, None)
        for said in public:
            for table, column in _meant("--public", said, tables):
                table.values[column] = _keys(engine, table.place, column)
    finally:
        engine.close()
    for source, one in zip(sources, tables, strict=True):
        for told in _looks(one, alone=len(tables) == 1):
            tell(f"{source}: {told}")
    suggested = [_suggested(table, base, one_row_per_person, alone=len(tables) == 1) for table in tables]
    epsilon = _number("--epsilon", epsilon, "write --epsilon 1")
    return _checked(written(suggested, epsilon, _number("--delta", delta, "write --delta 1e-6")), base)


def _looks(table: _SourceTable, *, alone: bool) -> Iterator[str]:
    """What the owner says next of columns that are texts, as long as nobody has said otherwise, and look like more; and
    of those that are integers by their range, and look like numbers with fractions. Of dates that need their form said
    first something else is told."""
    said = "; or with --range COLUMN=MIN:MAX, from what you know and not from the file"
    dated = table.dated if table.dates else ()
    for declared, more in ((Type.TEXT, said), (Type.INTEGER, "")):
        looks = {
            name: kind for name, kind in table.looks.items() if name not in dated and table.types[name] is declared
        }
        if not looks:
            continue
        names = visible(", ".join(looks))
        options = [shlex.quote(f"{'' if alone else f'{table.name}.'}{name}={kind}") for name, kind in looks.items()]
        typed = visible(" ".join(f"--type {option}" for option in options))
        yield (
            f"declared as {declared}s, though the first rows look otherwise: {names} → if they are right, say so with"
            f" {typed}{more}"
        )


def _keys_seen(tables: Sequence[_SourceTable]) -> None:
    """No number with fractions identifies a person: columns of persons, and those that they refer to, look like
    integers where their first rows are whole, as 621.0 is, and like texts where they are not."""
    keys = set()
    for table in tables:
        column, _, target = (table.person or "").partition("->")
        keys |= {f"{table.name}.{column.strip()}".casefold(), target.strip().casefold()}
    for table in tables:
        for name, kind in list(table.looks.items()):
            if kind is Type.NUMBER and f"{table.name}.{name}".casefold() in keys:
                if _whole(table.place, name):
                    table.looks[name] = Type.INTEGER
                else:
                    del table.looks[name]


def found(sources: Sequence[str], base: Path, tell: Callable[[str], None] = lambda _: None) -> list[Suggested]:
    """What sources say of themselves: names of columns, types that they state, and of a CSV file how its first rows
    look. Nothing is said of the tables yet, and no value is in it. Raises DeclarationError where a source is wrong."""
    engine = chosen.sources()
    try:
        tables = _tables(sources, engine, tell)
    finally:
        engine.close()
    return [
        Suggested(one.name, _written(one.place, base), one.place, one.types, one.looks, one.dates, one.dated)
        for one in tables
    ]


def named(source: str) -> str:
    """What the declaration of a source is called, without its suffix: as its file; else as its table, so that nothing
    of a server's URL is in it."""
    stem = Path(source.partition("::")[0].removesuffix(".gz")).stem
    return table_name(source) if is_server(source) or re.search("[*?]", stem) else stem


def _tables(sources: Sequence[str], engine: Sources, tell: Callable[[str], None]) -> list[_SourceTable]:
    tables: list[_SourceTable] = []
    for source in sources:
        place = _place(source, engine)
        name = table_name(source)
        if any(name.casefold() == other.name.casefold() for other in tables):
            raise _fault(source, f"another source makes a table {name} too", "rename one of the files")
        if place.kind is SourceKind.CSV:
            place, looks = _dialect(place, engine)
            names = csv_header(place)
            if not names:
                raise _fault(source, "this file is empty", "name one whose first line names the columns")
            values = [one for one in names if _VALUE.fullmatch(one.strip())]
            if values:
                some = visible(", ".join(values[:3]) + (", …" if len(values) > 3 else ""))
                message = f"its first line is read as column names, but looks like values: {some}"
                tell(f"{source}: {message} → if these are not names, add a line of column names before it")
            dates, dated = _dates(place)
            looks |= dated
            table = _SourceTable(name, place, dict.fromkeys(names, Type.TEXT), looks, tuple(dates), tuple(dated))
            tables.append(table)
        else:
            tables.append(
                _SourceTable(name, place, {column: kind for column, (kind, _) in engine.types(place).items()})
            )
    return tables


def _place(source: str, engine: Sources) -> Source:
    """The source, by the rules of a declaration; of a DuckDB file the tables are named where none was."""
    path = Path(source)
    if path.suffix.lower() in (".duckdb", ".ddb", ".db") and path.is_file():
        names = [
            shlex.quote(f"{source}::{name}") for name in engine.tables(Source(SourceKind.DATABASE, path.resolve()))
        ]
        fix = f"write {' or '.join(names[:20])}" if names else "it has no table: name another file"
        raise _fault(source, "this file may hold several tables", fix)
    placeholder = {
        "budget": {"epsilon": 1},
        "tables": {"t": {"source": source, "one_row_per_person": True, "columns": {"c": str}}},
    }
    try:
        found = declare(placeholder).tables["t"].source
    except DeclarationError as error:
        if is_server(source):  # it may hold a password
            raise _fault(
                "SOURCE", error.faults[0].message, error.faults[0].fix.removeprefix("write source = ")
            ) from None
        raise _fault(source, error.faults[0].message, "name a file that ends so") from None
    if found.kind is SourceKind.POSTGRESQL:
        return found
    try:
        files(found)
    except DeclarationError as error:
        fault = error.faults[0]
        if error.code == "missing":
            raise _fault(source, "there is no such file", "check its path") from None
        raise _fault(source, fault.message, fault.fix) from None
    return found


def _dialect(place: Source, engine: Sources) -> tuple[Source, dict[str, Type]]:
    """How a CSV file is written, and which types its first rows seem to have."""
    place = replace(place, encoding=_encoding(place))
    sniffed = engine.sniffed(place)
    if sniffed is None:
        return place, {}
    delimiter, types = sniffed
    if delimiter not in (",", ";", "\t", "|"):
        return place, {}
    place = replace(place, delimiter=delimiter)
    if _decimal_comma(place):
        place = replace(place, decimal=",")
        _, types = engine.sniffed(place) or sniffed
    names = csv_header(place)
    known = zip(names, types, strict=True) if len(names) == len(types) else ()
    return place, {name: kind for name, kind in known if kind not in (None, Type.TEXT)}


def _whole(place: Source, column: str) -> bool:
    """Whether the numbers of a column in a CSV file's first rows are whole, as 621 and 621.0, and none is too large for
    an integer."""
    names, *rows = csv_head(place, SNIFFED_ROWS) or [[]]
    cells = [row[names.index(column)].strip() for row in rows if len(row) == len(names)]
    written = re.compile(rf"[-+]?\d{{1,18}}({re.escape(place.decimal)}0*)?")
    return all(written.fullmatch(cell) for cell in cells if cell)


_VALUE = re.compile(r"[-+]?\d+([.,]\d+)*|\d{1,4}([./-])\d{1,2}\2\d{1,4}([ T][\d:.]+)?")
"""A number or a date."""

_DATE = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})([ T][\d:.]+)?")


def _dates(place: Source) -> tuple[list[str], dict[str, Type]]:
    """How the dates in a file's first rows may be written, if not as 2020-01-31, and in which columns."""
    names, *rows = csv_head(place, SNIFFED_ROWS) or [[]]
    found: list[str] = []
    dated: dict[str, Type] = {}
    for name, *cells in zip(names, *(row for row in rows if len(row) == len(names)), strict=True):
        matches = [_DATE.fullmatch(cell.strip()) for cell in cells if cell.strip()]
        read = [match for match in matches if match is not None]
        forms = _forms(read) if len(read) == len(matches) else []
        both = [form for form in found if form in forms] if found else forms
        if both:
            found = both
            dated[name] = Type.TIMESTAMP if any(match[5] for match in read) else Type.DATE
    return found, dated


def _forms(dates: Sequence[re.Match[str]]) -> list[str]:
    """The forms that fit all of these dates, but for the one that needs no word."""
    most = {"d": (1, 31, 2), "m": (1, 12, 2), "Y": (0, 9999, 4)}
    forms = []
    for order in ("dmY", "mdY", "Ymd"):
        for sign in "./-":
            fits = all(
                date[2] == sign and low <= int(date[place]) <= high and (len(date[place]) == 4) == (digits == 4)
                for date in dates
                for place, (low, high, digits) in zip((1, 3, 4), (most[part] for part in order), strict=True)
            )
            if dates and fits and (order, sign) != ("Ymd", "-"):
                forms.append(sign.join(f"%{part}" for part in order))
    return forms


_WITH_COMMA = re.compile(r"[-+]?(\d+|\d{1,3}([.]\d{3})+),\d+")
_WITH_POINT = re.compile(r"[-+]?\d+[.]\d+")


def _decimal_comma(place: Source) -> bool:
    """Whether more of the first rows' numbers are written with a comma than with a point."""
    cells = (
        [cell.strip() for row in csv_head(place, SNIFFED_ROWS)[1:] for cell in row] if place.delimiter != "," else []
    )
    return sum(map(bool, map(_WITH_COMMA.fullmatch, cells))) > sum(map(bool, map(_WITH_POINT.fullmatch, cells)))


def _encoding(place: Source) -> str:
    """UTF-8, unless the file's head is not; UTF-16 begins with a mark of its own; the rest is taken for Latin-1."""
    path = files(place)[0]
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            head = file.read(_HEAD)
    except (OSError, EOFError, zlib.error):
        return "utf-8"  # whoever reads it next says what is wrong
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _meant(option: str, said: str, tables: Sequence[_SourceTable]) -> Iterator[tuple[_SourceTable, str]]:
    """The columns that an option means: COLUMN of every table that has it, or table.COLUMN, in whatever case."""
    found = [(table, name) for table in tables for name in table.types if name == said]
    found = found or [
        (table, name)
        for table in tables
        for name in table.types
        if said.casefold() in (name.casefold(), f"{table.name}.{name}".casefold())
    ]
    if not found:
        names = list(dict.fromkeys(name for table in tables for name in table.types))
        folded = {name.casefold(): name for name in names}
        near = difflib.get_close_matches(said.rpartition(".")[2].casefold(), list(folded), 1)
        fix = f"write {option} {folded[near[0]]}" if near else "name one of: " + ", ".join(names[:20])
        raise _fault(f"{option} {said}", "the source has no such column", fix)
    yield from found


def _counted(option: str, said: str, tables: Sequence[_SourceTable]) -> Iterator[tuple[_SourceTable, int]]:
    """N for all tables, or table=N."""
    name, _, number = said.rpartition("=")
    if not number.isascii() or not number.isdigit() or int(number) == 0:
        fix = f"write {option} 20" + (f", or {option} {tables[0].name}=20" if len(tables) > 1 else "")
        raise _fault(f"{option} {said}", "not a whole number above 0", fix)
    found = [table for table in tables if not name or table.name.casefold() == name.casefold()]
    if not found:
        fix = f"name one of: {', '.join(table.name for table in tables)}"
        raise _fault(f"{option} {said}", "there is no such table", fix)
    yield from ((table, int(number)) for table in found)


def _written(place: Source, base: Path) -> str:
    """The source as a declaration in the folder `base` names it."""
    if place.server is not None:
        return words_of(place)
    relative = os.path.relpath(str(place.path), base)
    if place.kind is SourceKind.PARQUET and place.path is not None and not place.path.suffix:
        relative += "/"
    return f"{relative}::{place.relation}" if place.relation else relative


def _suggested(table: _SourceTable, base: Path, one_row: bool, *, alone: bool) -> Suggested:
    """A table of the declaration. Of several, those with a number of rows a person are not one row a person."""
    if one_row and not alone and table.rows is not None:
        one_row = False
    of = "" if alone else f"{table.name}."
    count = "N" if alone else f"{table.name}=N"
    if not one_row and table.person is None:
        fix = f"add --one-row-per-person, or --person {of}COLUMN --rows-per-person {count}"
        where = "--person" if alone else f"--person, of {table.name}"
        raise _fault(where, "the privacy unit is missing", fix)
    if not one_row and table.rows is None:
        fix = f"add --rows-per-person {count}: the maximum of rows counted per person"
        raise _fault("--rows-per-person" if alone else f"--rows-per-person, of {table.name}", "it is missing", fix)
    if one_row and (table.rows is not None or table.groups is not None):
        fix = "leave out --rows-per-person and --groups-per-person"
        raise _fault(
            "--one-row-per-person", "one row per person cannot be combined with other contribution bounds", fix
        )
    return Suggested(
        table.name,
        _written(table.place, base),
        table.place,
        table.types,
        table.looks,
        table.dates,
        table.dated,
        table.ranges,
        table.values,
        table.person,
        one_row,
        table.rows,
        table.groups,
    )


def _range(pair: str) -> tuple[str, tuple[str, str]]:
    column, _, ends = pair.rpartition("=")
    fix = "write --range age=17:90"
    low, _, high = ends.partition(":")
    if _is_date(low) and _is_date(high) and low <= high:
        return column, (low, high)
    low, high = (_number(f"--range {pair}", end, fix) for end in (ends + ":").split(":")[:2])
    if Decimal(low) > Decimal(high):
        raise _fault(f"--range {pair}", "min is larger than max", fix)
    return column, (low, high)


def _is_date(text: str) -> bool:
    try:
        return len(text) == 10 and bool(datetime.date.fromisoformat(text))
    except ValueError:
        return False


def _number(where: str, text: str, fix: str) -> str:
    """A number as TOML writes it: .5 is 0.5 there, and 017 is 17."""
    try:
        number = Decimal(text)
        if not number.is_finite():
            raise InvalidOperation
    except InvalidOperation:
        raise _fault(where, "not a valid number", fix) from None
    return str(number)


def _range_type(stated: Type | None, low: str, high: str) -> Type:
    if stated in (Type.INTEGER, Type.NUMBER):
        return stated
    return Type.INTEGER if all(text.lstrip("-").isdigit() for text in (low, high)) else Type.NUMBER


def _keys(engine: Sources, place: Source, column: str) -> Sequence[Any]:
    keys = engine.distinct(place, column, MOST_KEYS)
    if sum(key is not None for key in keys) > MOST_KEYS:
        raise _fault(f"--public {column}", f"it has more than {MOST_KEYS:,} values", "leave it private")
    return keys


def _checked(text: str, base: Path) -> str:
    """The text, once it was read back and found without faults. A fault names the option, not a key of a file that does
    not exist yet."""
    import tomllib

    try:
        declare(tomllib.loads(text, parse_float=Decimal), file=base / "declaration.toml")
    except DeclarationError as error:
        faults = [replace(fault, where=_option(fault.where, _OPTIONS)) for fault in error.faults]
        raise DeclarationError(faults, code="init") from None
    return text


_OPTIONS = {
    "budget.epsilon": "--epsilon",
    "budget.delta": "--delta",
    "budget.keys_delta": "--delta",
    "person": "--person",
    "rows_per_person": "--rows-per-person",
    "groups_per_person": "--groups-per-person",
}


def _option(where: str, options: Mapping[str, str]) -> str:
    head, _, last = where.rpartition(".")
    if where in options:
        return options[where]
    if ".columns." in where:
        return f"column {where.partition('.columns.')[2]}"
    return f"{options[last]}, of {head.rpartition('.')[2]}" if last in options else where


def _fault(where: str, message: str, fix: str) -> DeclarationError:
    return DeclarationError([Fault(where, message, fix)], code="init")
