"""`discreet init`: what the owner said on the command line, and what the source's schema states."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from discreet.catalog import EngineLimits, Source, Type, declare
from discreet.catalog.suggest import Suggestion, table_name, written
from discreet.engines.duckdb import DuckDB, csv_header
from discreet.errors import DeclarationError, Fault

MOST_KEYS = 1_000


def suggest(
    source: str,
    base: Path,
    *,
    one_row_per_person: bool,
    person: str | None,
    rows_per_person: int | None,
    groups_per_person: int | None,
    public: Sequence[str],
    ranges: Sequence[str],
    types: Sequence[str],
    epsilon: str,
    delta: str,
) -> str:
    """The text of a declaration. Raises DeclarationError where the source or a flag is wrong."""
    if not one_row_per_person and person is None:
        fix = "add --one-row-per-person, or --person COLUMN --rows-per-person N"
        raise _fault("person", "it has to be said whose rows these are", fix)
    place = _place(source)
    engine = DuckDB(EngineLimits())
    try:
        known = _types(place, engine)
        for column in [
            *public,
            *([person] if person else []),
            *(pair.rpartition("=")[0] or pair for pair in (*ranges, *types)),
        ]:
            if column not in known:
                raise _fault(column, "the source has no such column", "name one of: " + ", ".join(list(known)[:20]))
        for pair in types:
            column, _, kind = pair.rpartition("=")
            if kind not in set(Type):
                raise _fault(f"--type {pair}", "this type is not known", "write one of " + ", ".join(Type))
            known[column] = Type(kind)
        bounds = {}
        for pair in ranges:
            column, _, ends = pair.rpartition("=")
            low, high = (
                _number(f"--range {pair}", end, "write --range age=17:90") for end in (ends + ":").split(":")[:2]
            )
            if Decimal(low) > Decimal(high):
                raise _fault(f"--range {pair}", "min is larger than max", "write --range age=17:90")
            bounds[column] = (low, high)
            known[column] = _range_type(known[column], low, high)
        values = {column: _keys(engine, place, column) for column in public}
    finally:
        engine.close()
    relative = os.path.relpath(str(place.path), base)
    suggestion = Suggestion(
        table_name(source),
        f"{relative}::{place.relation}" if place.relation else relative,
        known,
        bounds,
        values,
        person,
        one_row_per_person,
        rows_per_person,
        groups_per_person,
        _number("--epsilon", epsilon, "write --epsilon 3"),
        _number("--delta", delta, "write --delta 1e-6"),
    )
    return _checked(written(suggestion), base)


def _place(source: str) -> Source:
    """The source, by the rules of a declaration."""
    placeholder = {
        "budget": {"epsilon": 1},
        "tables": {"t": {"source": source, "one_row_per_person": True, "columns": {"c": str}}},
    }
    found = declare(placeholder).tables["t"].source
    if found.path is None or not found.path.is_file():
        raise _fault(source, "there is no such file", "check its path")
    return found


def _types(place: Source, engine: DuckDB) -> dict[str, Type | None]:
    """Column names with the types that the source states; a CSV file states none: text until said otherwise."""
    if place.kind == "csv":
        return dict.fromkeys(csv_header(place), Type.TEXT)
    return engine.types(place)


def _number(where: str, text: str, fix: str) -> str:
    """A number as TOML writes it: .5 is 0.5 there, and 017 is 17."""
    try:
        number = Decimal(text)
        if not number.is_finite():
            raise InvalidOperation
    except InvalidOperation:
        raise _fault(where, "this is no number", fix) from None
    return str(number)


def _range_type(stated: Type | None, low: str, high: str) -> Type:
    if stated in (Type.INTEGER, Type.NUMBER):
        return stated
    return Type.INTEGER if all(text.lstrip("-").isdigit() for text in (low, high)) else Type.NUMBER


def _keys(engine: DuckDB, place: Source, column: str) -> Sequence[Any]:
    keys = engine.distinct(place, column, MOST_KEYS)
    if sum(key is not None for key in keys) > MOST_KEYS:
        raise _fault(f"--public {column}", f"it has more than {MOST_KEYS:,} values", "leave it private")
    return keys


def _checked(text: str, base: Path) -> str:
    """The text, once it was read back and found without faults."""
    import tomllib

    declaration = declare(tomllib.loads(text, parse_float=Decimal), file=base / "declaration.toml")
    assert replace(declaration, file=None)
    return text


def _fault(where: str, message: str, fix: str) -> DeclarationError:
    return DeclarationError([Fault(where, message, fix)], code="init")
