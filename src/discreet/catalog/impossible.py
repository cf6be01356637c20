"""Impossible combinations of values, as the owner declares them: a married child, a pregnant man."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

from discreet.catalog.model import Condition, Rules, comparable, of_one_kind
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.table import Column, Type, Value

NONE = "(none)"
"""Stands for NULL among the values of a column, where TOML has no word for it."""
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
        named = [one.column for one in conditions if one is not None]
        if len(set(named)) < len(named):  # `sex` and `SEX` are one column
            reader.fault(f"{where}[{number}]", "it names a column twice", "name it once")
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
        return _range(reader, where, column, said)
    listed = said if isinstance(said, list | tuple) else [said]
    declared = column.keys()
    plain = [one for one in listed if not _is_null(one, declared)]
    if len(plain) < len(listed) and not column.nulls:
        message = f"{column.name} is declared to have no NULL"
        reader.fault(where, message, "leave NULL out: no synthetic row has it there")
        return None
    values = tuple(reader.value(where, value, column.type) for value in plain)
    known = tuple(value for value in values if value is not None)
    if not listed or len(known) != len(plain) or (column.values is not None and not set(known) <= set(declared or ())):
        other = next((one for one in known if one not in (declared or known)), None)
        message = "it names a value that is not declared"
        if other is None or declared is None:
            reader.fault(where, message, _FIX)
        else:
            words = ", ".join(map(_shown, declared[:20])) + (" …" if len(declared) > 20 else "")
            reader.fault(where, f"{message}: {_shown(other)}", f"name some of {words}")
        return None
    if column.type is None and any(not of_one_kind(value, bound) for value in known for bound in _bounds(column)):
        reader.fault(where, f"a value is of another kind than the bounds of {column.name}", "write it as these are")
        return None
    beyond = next((value for value in known if not _within(column, value)), None)
    if beyond is not None:
        message = f"{_shown(beyond)} lies outside the bounds of {column.name}: no row has it"
        reader.fault(where, message, "write one within its bounds, or leave it out")
        return None
    return Condition(column.name, (*known, *((None,) if len(plain) < len(listed) else ())))


def _is_null(said: Any, declared: tuple[Value, ...] | None) -> bool:
    """Whether it stands for NULL: None in Python, and a word in TOML, unless that is a value of the column."""
    return said is None or (isinstance(said, str) and said == NONE and NONE not in (declared or ()))


def _within(column: Column, value: Value) -> bool:
    """Whether the value lies within the column's bounds, as far as the declaration tells: not where the source states
    the type, as a date and a time are not compared."""
    bounds = _bounds(column)
    return column.type is None or not bounds or bounds[0] <= value <= bounds[1]  # type: ignore[operator]


def _bounds(column: Column) -> tuple[Value, ...]:
    low, high = column.minimum, column.maximum
    return () if low is None or high is None else (low, high)


def _range(reader: RuleReader, where: str, column: Column, said: Mapping[Any, Any]) -> Condition | None:
    if not said or set(said) - _RANGE or column.values is not None or column.type is Type.BOOLEAN:
        reader.fault(where, "a range has min, max or both, and its column bounds", _FIX)
        return None
    low, high = (reader.value(f"{where}.{end}", said.get(end), column.type) for end in ("min", "max"))
    low, high = column.minimum if low is None else low, column.maximum if high is None else high
    assert low is not None
    assert high is not None
    if not comparable(low, high):
        reader.fault(where, f"the range is of another kind than the bounds of {column.name}", "write it as these are")
        return None
    if low > high:  # type: ignore[operator]
        message = f"no value of {column.name} lies from {_shown(low)} to {_shown(high)}"
        fix = "write the smaller one as min" if set(said) == _RANGE else "write one that lies within its bounds"
        reader.fault(where, message, fix)
        return None
    return Condition(column.name, None, low, high)


def _shown(value: Value) -> str:
    return show(value) if isinstance(value, Fraction) else str(value)
