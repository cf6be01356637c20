"""Public totals of a table, as the owner declares them: counts that are published elsewhere, which synthetic rows meet
exactly.

Whether they are true is not asked: they are held against one another and against what is impossible, and never against
the table.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any

from discreet.catalog.impossible import NONE, RuleReader
from discreet.catalog.model import Condition, PublicTotal, Rules
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.table import Column, Type, Value

MOST_ROWS, MOST_CELLS = 10_000_000, 20_000
_FIX = 'write for example totals = [{ by = ["sex"], counts = { Female = 10771, Male = 21790 } }]'
_KNOWN = {"by", "counts"}


def public_totals(
    reader: RuleReader, where: str, raw: Any, columns: tuple[Column, ...], person: str | None, rules: Rules
) -> tuple[PublicTotal, ...]:
    """The declared totals: each says `by` which one or two columns, and the counts of all combinations of their values.
    Faults where they contradict one another, or what is impossible."""
    if not isinstance(raw, list | tuple) or not all(isinstance(one, Mapping) and set(one) == _KNOWN for one in raw):
        reader.fault(where, "not a valid list of totals", _FIX)
        return ()
    read = [_total(reader, f"{where}[{number}]", one, columns, person) for number, one in enumerate(raw)]
    found = [one for one in read if one is not None]
    if len(found) == len(raw) and found and _agree(reader, where, found, columns):
        _possible(reader, where, found, columns, rules)
    return tuple(found)


def cells(column: Column) -> tuple[Value | None, ...]:
    """The cells of a column that totals count: its declared values, and NULL where it may have none."""
    return (*(column.keys() or ()), *((None,) if column.nulls else ()))


def _total(
    reader: RuleReader, where: str, raw: Mapping[str, Any], columns: tuple[Column, ...], person: str | None
) -> PublicTotal | None:
    by = raw["by"]
    if not isinstance(by, list | tuple) or not 1 <= len(by) <= 2 or not all(isinstance(name, str) for name in by):
        reader.fault(f"{where}.by", "it must name one column or two", _FIX)
        return None
    named = [next((one for one in columns if one.name.casefold() == name.casefold()), None) for name in by]
    listed = [one for one in named if one is not None]
    for name, column in zip(by, named, strict=True):
        if column is None:
            reader.fault(f"{where}.by", f"the column {name} is not declared", "declare it, or leave it out")
        elif column.name == person:
            reader.fault(f"{where}.by", f"{name} names the person", "leave it out")
        elif column.values is None and column.type is not Type.BOOLEAN:
            reader.fault(f"{where}.by", f"the values of {name} are not declared", "declare its values, or leave it out")
    if len({one.name for one in listed}) < len(by):
        if len(listed) == len(by):
            reader.fault(f"{where}.by", "it names a column twice", "name it once")
        return None
    if any(one.name == person or (one.values is None and one.type is not Type.BOOLEAN) for one in listed):
        return None
    order = sorted(listed, key=columns.index)
    size = len(cells(order[0])) * (len(cells(order[1])) if len(order) > 1 else 1)
    if size > MOST_CELLS:
        reader.fault(where, f"it has {size:,} counts, above {MOST_CELLS:,}", "count by columns with fewer values")
        return None
    counts = dict(_counts(reader, f"{where}.counts", raw["counts"], listed))
    lines = list(itertools.product(*map(cells, listed)))
    if len(counts) < len(lines):  # a fault was told of what is missing
        return None
    turned = listed != order
    wanted = itertools.product(*map(cells, order))
    return PublicTotal(
        tuple(one.name for one in order), tuple(counts[line[::-1] if turned else line] for line in wanted)
    )


def _counts(
    reader: RuleReader, where: str, raw: Any, columns: Sequence[Column]
) -> Iterator[tuple[tuple[Value | None, ...], int]]:
    """The counts of each combination of cells of these columns, one mapping inside the other."""
    first, *rest = columns
    if not isinstance(raw, Mapping):
        reader.fault(where, f"it must have a count for each value of {first.name}", _FIX)
        return
    said: dict[Value | None, Any] = {}
    for key, value in raw.items():
        known, cell = _cell(reader, where, key, first)
        if not known or cell in said:
            words = f"{key} is there twice" if known else f"{key} is no declared value of {first.name}"
            reader.fault(where, words, f"write each of {_listed(first)}")
            return
        said[cell] = value
    for cell in cells(first):
        name = _name(cell)
        if cell not in said and cell is not None:
            reader.fault(where, f"there is no count for {name}", f'write "{name}" = 0 where no row has it')
            return
        inside = said.get(cell, dict.fromkeys(map(_written, rest[0].keys() or ()), 0) if rest else 0)
        if rest:
            yield from (((cell, *others), count) for others, count in _counts(reader, f"{where}.{name}", inside, rest))
        elif isinstance(inside, bool) or not isinstance(inside, Integral) or inside < 0:
            reader.fault(f"{where}.{name}", "not a whole number of rows", _FIX)
            return
        else:
            yield (cell,), int(inside)


def _cell(reader: RuleReader, where: str, key: Any, column: Column) -> tuple[bool, Value | None]:
    """Whether this stands for a cell of a column, and the cell: a value as it is, or in words, as TOML has keys."""
    values = column.keys() or ()
    if key is None or (key == NONE and NONE not in values):
        return column.nulls, None
    if isinstance(key, str):
        return next(((True, value) for value in values if _written(value) == key), (False, None))
    value = reader.value(where, key, column.type)
    return value in values, value


def _written(value: Value) -> str:
    """A value as a key of TOML: what it would be without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return show(value) if isinstance(value, Fraction) else str(value)


def _listed(column: Column) -> str:
    names = [_written(value) for value in column.keys() or ()]
    return ", ".join(names[:10]) + (" …" if len(names) > 10 else "") + (f" (and {NONE})" if column.nulls else "")


def _agree(reader: RuleReader, where: str, found: Sequence[PublicTotal], columns: tuple[Column, ...]) -> bool:
    """Whether the totals are of as many rows, and say the same of what they share."""
    first = found[0]
    rows = sum(first.counts)
    fix = "correct them, or leave one out: official totals of one table and one time agree"
    if not 1 <= rows <= MOST_ROWS:
        reader.fault(where, f"they are of {rows:,} rows", f"write counts of 1 to {MOST_ROWS:,} rows in all")
        return False
    for place, one in enumerate(found):
        if sum(one.counts) != rows:
            words = f"by {_names(first)} there are {rows:,} rows, by {_names(one)} {sum(one.counts):,}"
            reader.fault(where, words, fix)
            return False
        for other in found[:place]:
            shared = [name for name in one.columns if name in other.columns]
            if len(shared) == len(one.columns) == len(other.columns):
                reader.fault(where, f"two totals are by {_names(one)}", "leave one out")
                return False
            mine, theirs = _margin(one, shared, columns), _margin(other, shared, columns)
            apart = next((cell for cell, count in mine.items() if theirs[cell] != count), None)
            if apart is not None:
                value = ", ".join(map(_name, apart))
                words = f"of {value} there are {mine[apart]:,} rows by {_names(one)}, {theirs[apart]:,} by "
                reader.fault(where, words + _names(other), fix)
                return False
    return True


def _names(one: PublicTotal) -> str:
    return " and ".join(one.columns)


def lines(one: PublicTotal, columns: Sequence[Column]) -> Iterator[tuple[tuple[Value | None, ...], int]]:
    """The cells of a total, and the count of each."""
    known = {column.name: column for column in columns}
    return zip(itertools.product(*(cells(known[name]) for name in one.columns)), one.counts, strict=True)


def _margin(one: PublicTotal, kept: Sequence[str], columns: Sequence[Column]) -> dict[tuple[Value | None, ...], int]:
    found: dict[tuple[Value | None, ...], int] = {}
    places = [one.columns.index(name) for name in kept]
    for line, count in lines(one, columns):
        cell = tuple(line[place] for place in places)
        found[cell] = found.get(cell, 0) + count
    return found


def _possible(
    reader: RuleReader, where: str, found: Sequence[PublicTotal], columns: tuple[Column, ...], rules: Rules
) -> None:
    """A fault where no table has these totals and none of the impossible rows."""
    for rule in rules:
        conditions = {one.column: one for one in rule}
        for total in found:
            if not set(conditions) <= set(total.columns):
                continue
            for line, count in lines(total, columns):
                row = dict(zip(total.columns, line, strict=True))
                if count and all(_meets(row[name], one) for name, one in conditions.items()):
                    words = ", ".join(map(_name, line))
                    fix = "write 0 there, or leave the rule out of impossible"
                    reader.fault(where, f"{count:,} rows are {words}, which is impossible", fix)
                    return
    known = {name for total in found for name in total.columns}
    if len(found) > 1 or any({one.column for one in rule} & known for rule in rules):
        _possible_together(reader, where, found, columns, rules)


def _possible_together(
    reader: RuleReader, where: str, found: Sequence[PublicTotal], columns: tuple[Column, ...], rules: Rules
) -> None:
    """The same of what no single total shows."""
    import numpy as np  # few declarations need them

    from discreet.markov.domain import Domain
    from discreet.markov.margins import MOST_CELLS as MOST_TOGETHER
    from discreet.markov.margins import Margins

    named = {name for total in found for name in total.columns} | {one.column for rule in rules for one in rule}
    points = {
        one.name: cells(one) if one.values is not None or one.type is Type.BOOLEAN else _points(one, rules)
        for one in columns
        if one.name in named
    }
    domain = Domain.of({name: len(values) for name, values in points.items()})
    counts = {one.columns: np.array(one.counts).reshape(domain.shape(one.columns)) for one in found}
    zeros: dict[tuple[str, ...], Any] = {}
    for rule in rules:
        conditions = {one.column: one for one in rule}
        empty: Any = np.ones((), bool)
        for name in domain.clique(conditions):
            empty = np.multiply.outer(empty, np.array([_meets(value, conditions[name]) for value in points[name]]))
        zeros[domain.clique(conditions)] = zeros.get(domain.clique(conditions), False) | empty
    margins = Margins.of(domain, counts, zeros)
    if margins.tree.cells > MOST_TOGETHER:
        words = f"together with what is impossible they have {margins.tree.cells:,} cells, above {MOST_TOGETHER:,}"
        reader.fault(where, words, "leave some out, or count by columns with fewer values")
    elif margins.tables() is None:
        words = "no table can be found that has all of these totals" + (" and no impossible row" if zeros else "")
        reader.fault(where, words, "correct them, or leave some out" + (", or correct impossible" if zeros else ""))


def _points(column: Column, rules: Rules) -> tuple[Value | None, ...]:
    """Values of a column with bounds, of which conditions of the rules tell all others apart no further, and NULL where
    there may be none: where a condition begins and ends, and one value between each two of these."""
    low, high = column.minimum, column.maximum
    ends = {low, high}
    for one in (one for rule in rules for one in rule if one.column == column.name):
        ends |= {one.minimum, one.maximum} if one.values is None else set(one.values) - {None}
    inside = sorted(end for end in ends if low <= end <= high)  # type: ignore[operator, type-var]
    found: list[Value | None] = []
    for value, after in itertools.pairwise([*inside, None]):
        found.append(value)
        if after is not None and (between := _between(value, after, column)) < after:
            found.append(between)
    return (*found, *((None,) if column.nulls else ()))


def _between(value: Any, after: Any, column: Column) -> Any:
    """The next value after one, or one between it and the other where there is no next."""
    if isinstance(value, datetime.datetime):
        return value + datetime.timedelta(seconds=1)
    if isinstance(value, datetime.date):
        return value + datetime.timedelta(days=1)
    if column.step is not None:
        return value + column.step
    return value + 1 if isinstance(value, int) and column.type is not Type.NUMBER else (value + after) / 2


def _meets(value: Any, condition: Condition) -> bool:
    """Whether a value meets a condition; NULL meets one that names it."""
    if value is None or condition.values is not None:
        return value in (condition.values or ())
    return bool(condition.minimum <= value <= condition.maximum)


def _name(value: Value | None) -> str:
    return NONE if value is None else _written(value)
