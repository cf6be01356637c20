"""Checks a workload against a table's declaration: its columns become public cells, its questions linear queries on
them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

from discreet.errors import QuestionError, refused
from discreet.procedures.arguments import columns_of
from discreet.trusted.ring_a.exact import fraction, show
from discreet.trusted.ring_a.table import Column, Table, Type, Value
from discreet.trusted.ring_c.coding import Binned, Coding, ListedCells
from discreet.workload.items import PREFIXES, RANGES, Clique, Count, Intervals, Item, Marginal
from discreet.workload.plan import MOST_ROWS
from discreet.workload.question import Workload, WorkloadCall

MOST_QUERIES = 200_000
"""The most answers of one workload."""

MOST_CELLS = 1 << 20
"""The most cells that a workload's marginals have together."""

MOST_WEIGHTS = 1 << 22
"""The most cells that all conditions together look at."""

MOST_BINS = 1_000

_ORDERED = (Type.INTEGER, Type.NUMBER, Type.DATE, Type.TIMESTAMP)
_STEPS: dict[Type | None, Any] = {Type.INTEGER: 1, Type.DATE: datetime.timedelta(days=1)}
_KINDS: dict[Type, tuple[type, ...]] = {
    Type.TEXT: (str,),
    Type.BOOLEAN: (bool,),
    Type.DATE: (datetime.date,),
    Type.TIMESTAMP: (datetime.datetime, datetime.date),
}
_INT64 = 2**63 - 1


@dataclass(frozen=True)
class Coded:
    """The items of a workload in the order in which they were asked, and the cells that they are about."""

    coding: Coding
    items: tuple[Item, ...]
    labels: tuple[str, ...]

    @property
    def answers(self) -> int:
        """How many answers all items have."""
        return sum(item.queries for item in self.items)

    def size(self, column: int) -> int:
        """How many cells a column has."""
        return self.coding.columns[column].size

    def ordered(self, column: int) -> int:
        """How many cells hold values: all, or all but the last."""
        coded = self.coding.columns[column]
        return coded.size - coded.null

    def span(self, column: int, low: int, high: int) -> str:
        """The cells from low to high, in words."""
        coded = self.coding.columns[column]
        if isinstance(coded, ListedCells):
            first, last = self.cell(column, low), self.cell(column, high)
            return first if low == high else f"{first} to {last}"
        cuts = coded.cuts
        step = _STEPS.get(coded.column.type)
        begin = f"from {_word(cuts[low - 1])}" if low else ""
        end = ""
        if high < len(cuts):
            end = f"below {_word(cuts[high])}" if step is None else f"to {_word(cuts[high] - step)}"
        return f"{begin} {end}".strip() or "all"

    def cell(self, column: int, place: int) -> str:
        """A cell in words."""
        coded = self.coding.columns[column]
        if place == self.ordered(column):
            return "(none)"
        return _word(coded.values[place]) if isinstance(coded, ListedCells) else self.span(column, place, place)


def coded(workload: Workload, table: Table) -> Coded:
    """The workload on cells. Depends on declarations only. Raises QuestionError."""
    asked = workload.asked
    if not isinstance(asked, tuple) or not all(isinstance(one, WorkloadCall) for one in asked):
        raise refused("workload", "this is not a list of questions", "asked", 'write Workload("…").marginals("…")')
    if not asked:
        fix = 'write Workload("…").marginals("…")'
        raise refused("workload", "the workload asks nothing", "workload", fix)
    if not isinstance(workload.bins, Mapping):
        raise refused("bins", "bins must name columns", "bins", 'write bins={"hours": [20, 40, 60]}')
    for name in workload.bins:
        columns_of(table, [name], "bins")
    reader = _WorkloadReader(workload, table)
    items: dict[tuple[str, Item], None] = {}
    for one in workload.asked:
        for label, item in reader.items(one):
            items[label, item] = None
    coding = reader.coding()
    if not coding.columns:  # the engine has no table without columns
        fix = f'ask "SELECT COUNT(*) FROM {table.name}"'
        raise refused("workload", "the workload names no column", "workload", fix)
    known = Coded(coding, tuple(item for _, item in items), tuple(label for label, _ in items))
    _fits(known)
    return known


class _WorkloadReader:
    """Reads a workload's calls one by one. Which columns are coded, and how, is settled before."""

    def __init__(self, workload: Workload, table: Table) -> None:
        self._table = table
        self._bins = {columns_of(table, [name], "bins")[0].name: given for name, given in workload.bins.items()}
        self._cuts: dict[str, set[Any]] = {}
        used, only_counted = self._used(workload)
        for name in self._bins:
            if name not in used:
                raise refused("bins", f"nothing is asked about {name}", "bins", "leave it out")
        for one in workload.asked:
            if one.kind == "count":
                self._note(one.given, only_counted)
        self._coded: dict[str, ListedCells | Binned] = {}
        for column in table.columns:
            if column.name in used:
                self._coded[column.name] = self._code(column)
        self._place = {name: place for place, name in enumerate(self._coded)}

    def coding(self) -> Coding:
        return Coding(tuple(self._coded.values()))

    def items(self, one: WorkloadCall) -> list[tuple[str, Item]]:
        """What one call asks, with labels."""
        if one.kind == "count":
            return [("count", self._count(one.given))]
        if one.kind in (RANGES, PREFIXES):
            (column,) = self._columns(one)[0]
            coded = self._coded[column.name]
            if column.type not in _ORDERED:
                fix = "ask for its marginal, or for counts"
                raise refused("workload", f"the values of {column.name} have no order", one.kind, fix)
            ordered = coded.size - coded.null
            item = Intervals((self._place[column.name],), (coded.size,), ordered, one.kind)
            return [(f"{one.kind} of {column.name}", item)]
        found: list[tuple[str, Item]] = []
        for columns in self._columns(one):
            places = sorted(self._place[column.name] for column in columns)
            names = [list(self._coded)[place] for place in places]
            shape = tuple(self._coded[name].size for name in names)
            found.append((", ".join(names) or "all rows", Marginal(tuple(places), shape)))
        return found

    def _used(self, workload: Workload) -> tuple[set[str], set[str]]:
        """The columns that are asked about, and those of them that only counts are about."""
        counted: set[str] = set()
        other: set[str] = set()
        for one in workload.asked:
            for columns in self._columns(one):
                (counted if one.kind == "count" else other).update(column.name for column in columns)
        return counted | other, counted - other

    def _columns(self, one: WorkloadCall) -> list[list[Column]]:
        """The columns of each item of a call."""
        if one.kind == "count":
            if not isinstance(one.given, Mapping):
                raise refused("workload", "a condition maps columns to values", "counts", 'write {"sex": "Female"}')
            return [columns_of(self._table, list(one.given), "counts") if one.given else []]
        if one.kind == "all":
            ways, names = one.given
            columns = columns_of(self._table, names, "columns")
            if names is None:
                columns = [column for column in columns if self._has_cells(column)]
            if isinstance(ways, bool) or not isinstance(ways, int) or not 0 <= ways <= len(columns):
                message = f"ways must be a whole number from 0 to {len(columns)}, the columns that have cells"
                raise refused("workload", message, "all_marginals", "write all_marginals(2)")
            if math.comb(len(columns), ways) > MOST_QUERIES:
                message = f"{len(columns)} columns have too many marginals of {ways}"
                raise refused("workload", message, "all_marginals", "name fewer columns, or fewer ways")
            return [list(chosen) for chosen in combinations(columns, ways)]
        names = one.given
        if one.kind == "marginal" and not isinstance(names, str):
            where = "marginals"
            return [columns_of(self._table, list(names), where) if _listed(names, where) and len(names) else []]
        if not isinstance(names, str):
            raise refused("workload", f"{one.kind} need columns", one.kind, f'write .{one.kind}("age")')
        return [columns_of(self._table, [names], one.kind)]

    def _has_cells(self, column: Column) -> bool:
        return column.name in self._bins or column.keys() is not None

    def _note(self, condition: Mapping[str, Any], only_counted: set[str]) -> None:
        """The ends of a condition's ranges are where bins begin, for columns that nothing else divides."""
        for name, wanted in condition.items():
            (column,) = columns_of(self._table, [name], "counts")
            if self._has_cells(column) or column.name not in only_counted or column.type not in _ORDERED:
                continue
            if isinstance(wanted, tuple) and len(wanted) == 2:
                ends = _ends(column, wanted)
                self._cuts.setdefault(column.name, set()).update(end for end in ends if end is not None)

    def _code(self, column: Column) -> ListedCells | Binned:
        """A column's cells: bins that were named, declared values, bins that conditions begin at."""
        given = self._bins.get(column.name)
        if given is not None:
            if column.type not in _ORDERED:
                raise refused("bins", f"the values of {column.name} have no order", "bins", "leave it out")
            if isinstance(given, str | Mapping) or not _listed(given, "bins") or not 1 <= len(given) <= MOST_BINS:
                message = f"the bins of {column.name} must be a list of 1 to {MOST_BINS:,} values"
                raise refused("bins", message, "bins", f'write bins={{"{column.name}": […]}}')
            cuts = [_value(column, value, "bins") for value in given]
            if any(not low < high for low, high in pairwise(cuts)):
                raise refused(
                    "bins", f"the bins of {column.name} are not in ascending order", "bins", "write each once, in order"
                )
            return Binned(column, tuple(cuts), null=column.nulls)
        keys = column.keys()
        if keys is not None:
            ordered = tuple(sorted(keys)) if column.type in _ORDERED else keys
            return ListedCells(column, ordered, null=column.nulls or column.values is not None)
        if column.name in self._cuts:
            return Binned(column, tuple(sorted(self._cuts[column.name])), null=column.nulls)
        if column.type in _ORDERED:
            fix = f'write Workload(…, bins={{"{column.name}": […]}}): the values at which a new bin begins'
            if column.type is Type.NUMBER:
                fix += f", or declare {column.name} as integer with bounds"
            raise refused("columns", f"{column.name} has too many values to count each", "workload", fix)
        fix = f"declare the values of {column.name}, or leave it out"
        raise refused("columns", f"{column.name} has no declared values", "workload", fix)

    def _count(self, condition: Mapping[str, Any]) -> Count:
        masks: dict[int, tuple[bool, ...]] = {}
        for name, wanted in condition.items():
            (column,) = columns_of(self._table, [name], "counts")
            masks[self._place[column.name]] = self._mask(column, wanted)
        places: Clique = tuple(sorted(masks))
        return Count(places, tuple(len(masks[place]) for place in places), tuple(masks[place] for place in places))

    def _mask(self, column: Column, wanted: Any) -> tuple[bool, ...]:
        """Which cells of a column meet a condition."""
        coded = self._coded[column.name]
        chosen: set[int] = set()
        if isinstance(wanted, tuple) and len(wanted) == 2 and column.type in _ORDERED:
            chosen.update(self._between(column, coded, wanted))
        else:
            values = wanted if isinstance(wanted, list | tuple | set | frozenset) else [wanted]
            for value in values:
                chosen.add(self._cell(column, coded, value))
        if not chosen:
            raise refused("workload", f"no cell of {column.name} meets the condition", "counts", "name a value of it")
        return tuple(place in chosen for place in range(coded.size))

    def _between(self, column: Column, coded: ListedCells | Binned, wanted: tuple[Any, Any]) -> range:
        low, high = _ends(column, wanted)
        if isinstance(coded, ListedCells):
            inside = [place for place, value in enumerate(coded.values) if _inside(value, low, high)]
            return range(inside[0], inside[-1] + 1) if inside else range(0)
        for end in (low, high):
            if end is not None and end not in coded.cuts:
                fix = f"add {_word(end)} to bins"
                raise refused("workload", f"no bin of {column.name} begins at {_word(end)}", "counts", fix)
        first = 0 if low is None else coded.cuts.index(low) + 1
        return range(first, len(coded.cuts) + 1 if high is None else coded.cuts.index(high) + 1)

    def _cell(self, column: Column, coded: ListedCells | Binned, value: Any) -> int:
        if value is None:
            if not coded.null:
                raise refused("workload", f"{column.name} is declared to have no NULL", "counts", "leave it out")
            return coded.size - 1
        known = _value(column, value, "counts")
        if isinstance(coded, ListedCells):
            if known not in coded.values:
                message = f"a value in the condition is not declared for {column.name}"
                raise refused("workload", message, "counts", "name declared values")
            return coded.values.index(known)
        raise refused("workload", f"{column.name} is counted in bins", "counts", "write a pair (low, high)")


def _ends(column: Column, wanted: tuple[Any, Any]) -> tuple[Any, Any]:
    """Where a condition's range begins, and the first value behind it; None where it is open."""
    low, high = (None if end is None else _value(column, end, "counts") for end in wanted)
    step = _STEPS.get(column.type)
    if low is not None and high is not None and (high < low if step is not None else high <= low):
        raise refused("workload", f"the range of {column.name} is empty", "counts", "write (low, high)")
    if high is not None and step is not None:
        try:
            high += step
        except OverflowError:
            high = None
        if isinstance(high, int) and high > _INT64:
            high = None
    return low, high


def _inside(value: Any, low: Any, high: Any) -> bool:
    return (low is None or value >= low) and (high is None or value < high)


def _value(column: Column, raw: Any, where: str) -> Any:
    """A value of the column's type."""
    kind = column.type
    assert kind is not None
    fix = f"write values of type {kind}"
    if kind in _KINDS:
        if not isinstance(raw, _KINDS[kind]) or (kind is Type.DATE and isinstance(raw, datetime.datetime)):
            raise refused("workload", f"a value for {column.name} is not a valid {kind}", where, fix)
        if kind is Type.TIMESTAMP and isinstance(raw, datetime.date) and not isinstance(raw, datetime.datetime):
            return datetime.datetime.combine(raw, datetime.time())
        if isinstance(raw, datetime.datetime) and raw.tzinfo is not None:
            raise refused("workload", f"a value for {column.name} has a time zone", where, "leave the zone out")
        return raw
    try:
        number = fraction("" if isinstance(raw, str) else raw)
    except (ValueError, TypeError):
        raise refused("workload", f"a value for {column.name} is not a valid {kind}", where, fix) from None
    if kind is Type.INTEGER:
        if number.denominator != 1 or abs(number) > _INT64:
            raise refused("workload", f"a value for {column.name} is not a valid {kind}", where, fix)
        return int(number)
    if abs(number) > Fraction(10) ** 300:
        raise refused("workload", f"a value for {column.name} is out of range", where, fix)
    return number


def _listed(names: Any, where: str) -> bool:
    """Whether it is a list; else it is refused."""
    if isinstance(names, Mapping) or not isinstance(names, Sequence):
        raise refused("workload", f"{where} needs lists", where, f'write {where}(["…", "…"])')
    return True


def _fits(known: Coded) -> None:
    """Refuses what has too many answers or cells. Raises QuestionError."""
    for label, item in zip(known.labels, known.items, strict=True):
        if isinstance(item, Intervals) and item.queries > MOST_QUERIES:
            fix = "ask for prefixes, or write bins"
            raise _large(f"{label} are {item.queries:,} questions", fix)
        if math.prod(item.shape) > MOST_CELLS:
            names = ", ".join(known.coding.names[column] for column in item.columns)
            fix = "name fewer columns, or write bins with fewer cells"
            raise _large(f"{names} have {math.prod(item.shape):,} cells together", fix)
    if known.answers > MOST_QUERIES:
        raise _large(f"the workload has {known.answers:,} answers", "ask for less at once: fewer columns, or bins")
    cells = sum(math.prod(shape) for shape in {item.columns: item.shape for item in known.items}.values())
    if cells > MOST_CELLS:
        raise _large(f"the marginals have {cells:,} cells together", "ask for less at once: fewer columns, or bins")
    counts = [item for item in known.items if isinstance(item, Count)]
    ordered = {item.columns: item.ordered for item in known.items if isinstance(item, Intervals)}
    rows = sum(ordered.values()) + len(counts)
    if rows > MOST_ROWS or sum(math.prod(item.shape) for item in counts) > MOST_WEIGHTS:
        message = f"ranges, prefixes and counts are over {rows:,} cells and conditions"
        raise _large(message, f"ask for at most {MOST_ROWS:,}: fewer columns, bins, or marginals instead of counts")


def _large(message: str, fix: str) -> QuestionError:
    return refused("workload", f"{message}: too many", "workload", fix)


def _word(value: Value) -> str:
    return (
        show(fraction(value), 12) if isinstance(value, int | Fraction) and not isinstance(value, bool) else str(value)
    )
