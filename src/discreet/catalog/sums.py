"""Columns that are sums of others, as the owner declares them: a cost is what was paid and what is owed."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet.catalog.impossible import RuleReader
from discreet.catalog.model import Sums
from discreet.catalog.orders import place_of
from discreet.trusted.ring_a.table import Column, Type, Value

_FIX = 'write for example sums = { cost = ["paid", "owed"] }'
_INT64 = 2**63 - 1


def sums(reader: RuleReader, where: str, raw: Any, columns: tuple[Column, ...], held: Mapping[str, set[str]]) -> Sums:
    """The declared sums. `held` are columns that something else is declared of, by what that is."""
    right = isinstance(raw, Mapping) and all(isinstance(one, list | tuple) and len(one) > 1 for one in raw.values())
    if not right or not all(isinstance(name, str) for one in raw.values() for name in one):
        reader.fault(where, "not a valid list of sums", _FIX)
        return ()
    known = {column.name.casefold(): column for column in columns}
    found: list[tuple[str, tuple[str, ...]]] = []
    for name, parts in raw.items():
        total, *others = (known.get(str(one).casefold()) for one in (name, *parts))
        there = [column for column in others if column is not None]
        if total is None or len(there) < len(others):
            reader.fault(f"{where}.{name}", "it names a column that is not declared", "declare it, or leave it out")
            continue
        words = unsummable(total, there)
        again = next((one.name for one in there if one.name.casefold() in {str(key).casefold() for key in raw}), None)
        if again is not None:
            words = f"{again} is a sum itself"
        elif len({one.name for one in there}) < len(there):
            words = "it names a column twice"
        if any(total.name == before for before, _ in found):
            words = "it is there twice"
        other = next((key for key, names in held.items() if total.name in names), None)
        if words or other is not None:
            words = words or f"{other} says something of {total.name} too, which is not measured but computed"
            reader.fault(f"{where}.{name}", words, "correct it, or leave it out")
            continue
        found.append((total.name, tuple(one.name for one in there)))
    return tuple(found)


def unsummable(total: Column, parts: Sequence[Column]) -> str:
    """Why a column cannot be the sum of these; nothing where it can. A date is one of a date and whole days."""
    bare = next((one.name for one in parts if one.minimum is None or one.maximum is None), None)
    if bare is not None:
        return f"the bounds of {bare} are not declared"
    types = sorted(str(one.type) for one in parts)
    if total.type is None or "None" in types:  # a source states them, and they are held against each other then
        return ""
    whole = types == [Type.INTEGER] * len(types)
    dates = types == [Type.DATE, *[Type.INTEGER] * (len(types) - 1)]
    numbers = set(types) <= {Type.INTEGER, Type.NUMBER}
    if not {Type.INTEGER: whole, Type.DATE: dates, Type.NUMBER: numbers}.get(total.type, False):
        return f"{total.name} is {total.type}, and its parts {', '.join(types)}"
    low, high = (sum(map(place_of, ends)) for ends in ([one.minimum for one in parts], [one.maximum for one in parts]))
    least, most = (1, datetime.date.max.toordinal()) if total.type is Type.DATE else (-_INT64, _INT64)
    return "" if least <= low and high <= most else f"sums of its parts may be no {total.type} any more"


def sum_of(total: Column, parts: Sequence[Column]) -> Column:
    """The column with the bounds that follow from those of its parts."""
    low, high = (sum(map(place_of, ends)) for ends in ([one.minimum for one in parts], [one.maximum for one in parts]))
    return Column(total.name, total.type, _value(total.type, low), _value(total.type, high))


def _value(kind: Type | None, at: Fraction | int) -> Value:
    if kind is Type.DATE:
        return datetime.date.fromordinal(int(at))
    return Fraction(at) if kind is Type.NUMBER else int(at)
