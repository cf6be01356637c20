"""Impossible combinations of values, as the owner declares them: a married child, a pregnant man."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from discreet.catalog.model import Condition, Rules
from discreet.trusted.ring_a.table import Column, Type, Value

_FIX = 'write for example impossible = [{ sex = "M", pregnant = true }, { age = { max = 15 }, married = ["yes"] }]'
_RANGE = {"min", "max"}


class RuleReader(Protocol):
    """Collects faults and reads values."""

    def fault(self, where: str, message: str, fix: str) -> None: ...
    def value(self, where: str, raw: Any, kind: Type | None) -> Value | None: ...


def impossible(reader: RuleReader, where: str, raw: Any, columns: tuple[Column, ...]) -> Rules:
    """The declared rules: each is a mapping from columns to a value, a list of values, or {min, max}."""
    if not isinstance(raw, list | tuple) or not all(isinstance(rule, Mapping) and rule for rule in raw):
        reader.fault(where, "not a valid list of rules", _FIX)
        return ()
    rules = []
    for number, rule in enumerate(raw):
        conditions = [_condition(reader, f"{where}[{number}]", name, said, columns) for name, said in rule.items()]
        rules.append(tuple(one for one in conditions if one is not None))
    return tuple(rule for rule in rules if rule)


def _condition(reader: RuleReader, where: str, name: Any, said: Any, columns: tuple[Column, ...]) -> Condition | None:
    column = next((one for one in columns if isinstance(name, str) and one.name.casefold() == name.casefold()), None)
    if column is None:
        reader.fault(where, f"the column {name} is not declared", "declare it, or leave it out")
        return None
    where = f"{where}.{column.name}"
    if column.keys() is None and (column.minimum is None or column.maximum is None):
        reader.fault(where, "neither values nor bounds of this column are declared", "declare them, or leave it out")
        return None
    if isinstance(said, Mapping):
        if not said or set(said) - _RANGE or column.values is not None or column.type is Type.BOOLEAN:
            reader.fault(where, "a range is { min = …, max = … } of a column with bounds", _FIX)
            return None
        low, high = (reader.value(f"{where}.{end}", said.get(end), column.type) for end in ("min", "max"))
        low, high = column.minimum if low is None else low, column.maximum if high is None else high
        assert low is not None
        assert high is not None
        return Condition(column.name, None, low, high)
    listed = said if isinstance(said, list | tuple) else [said]
    values = tuple(reader.value(where, value, column.type) for value in listed)
    known = tuple(value for value in values if value is not None)
    declared = column.keys()
    if not known or len(known) != len(listed) or (column.values is not None and not set(known) <= set(declared or ())):
        reader.fault(where, "it names a value that is not declared", _FIX)
        return None
    return Condition(column.name, known)
