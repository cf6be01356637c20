"""Checks of a declaration against its sources: the types that they state, and the faults of each table."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.catalog.declare import example_of
from discreet.catalog.model import Declaration
from discreet.errors import DeclarationError, Fault
from discreet.trusted.ring_a.table import Column, Table, Type


def of_table(table: Table, error: DeclarationError) -> DeclarationError:
    """The error of a table's source, with the table's key."""
    faults = [
        replace(fault, where=f"tables.{table.name}.source") if fault.where == "source" else fault
        for fault in error.faults
    ]
    return DeclarationError(faults, code=error.code)


def together(errors: Sequence[DeclarationError], file: str) -> DeclarationError:
    """All faults of several tables as one error."""
    codes = {error.code for error in errors}
    faults = [fault for error in errors for fault in error.faults]
    return DeclarationError(faults, code=codes.pop() if len(codes) == 1 else "declaration", file=file)


def checked_types(declaration: Declaration) -> Declaration:
    """Faults that only a source's own types reveal."""
    faults = []
    for table in declaration.tables.values():
        if table.path is not None:  # compared row by row: a text beside a number would fail where it is no number
            key, target = table.column(table.person or ""), declaration.tables[table.path[0]].column(table.path[1])
            if key is not None and target is not None and key.type is not target.type:
                message = f"{key.name} is {key.type}, {'.'.join(table.path)} is {target.type}"
                faults.append(Fault(f"tables.{table.name}.person", message, "declare both with one type"))
        for column in table.columns:
            if column.type is None:  # of a public table that cannot be read: whoever asks for it is told
                continue
            where = f"tables.{table.name}.columns.{column.name}"
            if column.name == table.person and column.type is Type.NUMBER:
                message = "a number with fractions cannot identify a person: doubles make several persons one"
                faults.append(Fault(where, message, 'write type = "integer" or "text"'))
            bounded = column.minimum is not None or column.maximum is not None
            if bounded and column.type in (Type.TEXT, Type.BOOLEAN):
                fix = "leave them out" + (", or list its keys: [...]" if column.type is Type.TEXT else "")
                faults.append(Fault(where, f"a {column.type} column takes no min and max", fix))
                continue
            if column.length is not None and (column.type is not Type.TEXT or table.public):
                faults.append(Fault(f"{where}.length", "length is for texts about people", "leave it out"))
            if column.step is not None and column.type is not Type.NUMBER:
                faults.append(Fault(f"{where}.step", "step is for numbers, and above 0", "leave it out"))
            elif without_multiple(column):
                fix = "declare a smaller step, or leave it out"
                faults.append(Fault(f"{where}.step", "no multiple of it lies between min and max", fix))
            ends = [end for end in (column.minimum, column.maximum, *(column.values or ())) if end is not None]
            if ends and not all(_fits(end, str(column.type)) for end in ends):
                example = example_of(column.type, python=declaration.file is None)
                fix = f"write them as for example {example}" if example else "write them as texts, in quotes"
                faults.append(Fault(where, f"its bounds or values are not of type {column.type}", fix))
    if faults:
        raise DeclarationError(faults, file=str(declaration.file or ""))
    return declaration


Stated = Mapping[str, tuple[Type | None, Fraction | None]]
"""What a source says of columns that are declared as texts, by their declared names: their types and steps."""


def told_alike(declaration: Declaration, stated: Mapping[str, Stated]) -> None:
    """Raises DeclarationError where keys that are compared, or columns that tell persons in several tables, are
    declared as texts and are of types that sources write differently: 1 beside 1.0, a day beside its first moment.

    Else no row would be found along such a key, and a person with rows in two tables would be two persons."""
    tables = declaration.tables
    persons = [(table, table.person) for table in tables.values() if table.person is not None and table.path is None]
    known = [(table, key) for table, key in persons if _written(stated.get(table.name, {}).get(key)) is not None]
    compared = [(known[0], other) for other in known[1:]]
    compared += [
        ((tables[table.path[0]], table.path[1]), (table, table.person))
        for table in tables.values()
        if table.person is not None and table.path is not None
    ]
    faults = []
    for (one, its), (other, key) in compared:
        there, here = (
            _written(stated.get(name, {}).get(column)) for name, column in ((one.name, its), (other.name, key))
        )
        if there is not None and here is not None and there != here:
            message = f"{key} is written like {here} in its source, and {one.name}.{its} like {there}"
            fix = "declare both with one type that is not text, as integer or date, or write them alike in the sources"
            faults.append(Fault(f"tables.{other.name}.person", message, fix))
    if faults:
        raise DeclarationError(faults, file=str(declaration.file or ""))


def _written(stated: tuple[Type | None, Fraction | None] | None) -> str | None:
    """What a key of a source looks like as a text; None where nothing is known."""
    kind, step = stated or (None, None)
    if kind is Type.NUMBER and step is not None:
        return "1" if step >= 1 else f"1.{'0' * (len(str(step.denominator)) - 1)}"
    written = {Type.NUMBER: "1.0", Type.INTEGER: "1", Type.DATE: "2026-01-01", Type.TIMESTAMP: "2026-01-01 00:00:00"}
    return written.get(kind) if kind is not None else None


def without_multiple(column: Column) -> bool:
    """Whether no multiple of the column's step lies within its bounds."""
    low, high, step = column.minimum, column.maximum, column.step
    if step is None or not isinstance(low, int | Fraction) or not isinstance(high, int | Fraction):
        return False
    return math.ceil(low / step) > math.floor(high / step)


def _fits(value: Any, kind: str) -> bool:
    if kind == "number":
        return isinstance(value, int | Fraction) and not isinstance(value, bool)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "date" and isinstance(value, datetime.datetime):
        return False
    expected: dict[str, type] = {
        "text": str,
        "boolean": bool,
        "date": datetime.date,
        "timestamp": datetime.datetime,
    }
    return isinstance(value, expected[kind])
