"""What the bounds of a release of synthetic tables say of a question's counts.

A release bounds, for a set of columns, by how much the counts of their cells differ from the real table's: each by
`cell` rows at most, and all together by `rows` (`bounds`). A count of a question is off by no more than

* `cell`, where it counts one cell: each of the columns is grouped by, or compared with one value in WHERE;
* `rows`, where it counts several cells: the errors of these add up to no more than those of all cells.

That needs each cell to be one value: what a question asks about values inside a bin, or about those that share the cell
"(other)", no bound of cells is about. The cell of NULL has the values too that were not declared: so a column is
grouped by, or compared with declared values, and no count of its NULL has a bound; only a boolean has no other values.
And the marginal is chosen by the question's columns alone, never by how small
its bound came out, so that each bound fails in 5 % of all cases and no more. Of everything else nothing is known, and
nothing is said.

A join counts rows of the table below where it follows its key, which each row has one partner for: then the columns of
both stand in the view whose marginals were measured (`related`), those of rows above under their table's name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlglot import exp

from discreet.release.values import finite
from discreet.trusted.ring_a.table import Type

_FAR = 1e300
_BOUNDS = ("rows", "cell")
_PLAIN = {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct"}
_TOTAL = (
    *(exp.And, exp.Or, exp.Xor, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Cast),
    *(exp.Lower, exp.Upper, exp.Length, exp.Substring, exp.Count, exp.CountIf),
)
"""Functions that give the same for the same row, whenever they are asked."""
_OTHERWISE = (
    *(exp.Window, exp.Lateral, exp.Unnest, exp.TableSample, exp.Pivot, exp.Placeholder, exp.Parameter, exp.Columns),
    *(exp.Rollup, exp.Cube, exp.GroupingSets),
)
"""What makes of rows more, or other ones, than there are."""


@dataclass(frozen=True)
class SyntheticTable:
    """What a release says of a table beside its rows.

    `whole` are columns each cell of which is one value, and of each its `type`, its `values` as JSON has them (of a
    boolean none) and whether `nulls` have a cell. `factor` is how many real rows a made-up one stands for; `marginals`
    are the bounds as `Synthetic.marginals` has them. Of several tables, `together` is the same for those of one
    release, and `refers` says by which `column` rows refer to which `key` of which `table`. `rows` is a digest of the
    rows that all this is about: it stands in files. `part` names the part whose persons alone the real table has, where
    it is of one.
    """

    name: str
    columns: Sequence[str]
    whole: Mapping[str, Mapping[str, Any]]
    factor: float
    marginals: Sequence[Mapping[str, Any]]
    together: str = ""
    refers: Mapping[str, Any] = field(default_factory=dict)
    rows: str = ""
    part: str = ""

    @classmethod
    def of(cls, text: str | bytes) -> SyntheticTable | None:
        """What `text`, which anybody may have written, says; None where it says nothing of the kind."""
        try:
            found = cls(**json.loads(text)["synthetic"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        return found if found.sound else None

    @property
    def sound(self) -> bool:
        """Whether each part is what it must be."""
        texts = (self.name, self.together, self.rows, self.part)
        if not all(isinstance(one, str) for one in texts) or not _texts(self.columns):
            return False
        if not isinstance(self.whole, dict) or not all(map(_cells, self.whole.values())):
            return False
        if not _number(self.factor) or not isinstance(self.marginals, list) or not all(map(_bounds, self.marginals)):
            return False
        refers = self.refers
        whole = isinstance(refers, dict) and all(isinstance(one, str | None) for one in refers.values())
        return whole and (not refers.get("key") or _texts([refers.get("column"), refers.get("table")]))

    def written(self, rows: str) -> str:
        """The same as a text, for a file that holds the rows, of which `rows` is the digest."""
        said = {**asdict(self), "rows": rows}
        if not self.part:
            del said["part"]  # so that older versions read it
        return json.dumps({"synthetic": finite(said)})

    @property
    def title(self) -> str:
        """Its name, and which part it is of."""
        return f"{self.name} of the part {self.part} alone" if self.part else self.name

    def bound(self, columns: Sequence[str]) -> Mapping[str, Any] | None:
        """The marginal that the columns make, or the first of the smallest that have them all; None where there is
        none."""
        wanted = set(columns)
        found = [one for one in self.marginals if wanted <= set(one["columns"])]
        return min(found, key=lambda one: len(one["columns"]), default=None)


def _texts(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(one, str) for one in given)


def _number(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and given >= 0


def _cells(given: Any) -> bool:
    """Whether this is what `whole` says of a column."""
    known = isinstance(given, dict) and given.keys() == {"type", "values", "nulls"}
    return known and isinstance(given["type"], str) and isinstance(given["values"], list)


def _bounds(given: Any) -> bool:
    """Whether this is a marginal's bounds."""
    return isinstance(given, dict) and _texts(given.get("columns")) and all(map(_number, map(given.get, _BOUNDS)))


@dataclass(frozen=True)
class KnownErrors:
    """Of an answer: by how many rows all counts over cells of the columns that it reads are off, added up; and, for
    columns of the answer by their places, by how many rows each count there is off at most. All at 95 %. A row with a
    NULL in the place of one of `keys` counts values too that were not declared: of it nothing is known."""

    within: float | None = None
    counts: Mapping[int, float] = field(default_factory=dict)
    keys: Sequence[int] = ()

    def intervals(self, names: Sequence[str], row: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
        """The intervals of a row of the answer; a count is a whole number, and so are their ends."""
        found: dict[str, tuple[float, float]] = {}
        if any(row[names[place]] is None for place in self.keys):
            return found
        for place, off in self.counts.items():
            value, half = row[names[place]], math.ceil(off) + 1  # scaled and rounded, a count moves by less than one
            if value is not None:
                found[names[place]] = (float(max(0, value - half)), float(value + half))
        return found


def known_errors(statement: exp.Expr, tables: Mapping[str, SyntheticTable]) -> KnownErrors:
    """What is known of the answer of a question that reads these tables, by the names it has for them."""
    if not isinstance(statement, exp.Select) or len(list(statement.find_all(exp.Select, exp.SetOperation))) != 1:
        return KnownErrors()
    source = _source(statement, {name.casefold(): one for name, one in tables.items()})
    if source is None or statement.find(*_OTHERWISE):
        return KnownErrors()
    counted = {place: one for place, item in enumerate(statement.expressions) if (one := _count(item)) is not None}
    within = _within(statement, source, len(counted))
    stars = any(item.is_star for item in statement.expressions if _count(item) is None)
    groups, where = _groups(statement, source), statement.args.get("where")
    if stars or groups is None or not counted or any(statement.args[name] for name in statement.args.keys() - _PLAIN):
        return KnownErrors(within)
    read = [*groups, *([where] if where else []), *counted.values()]
    nodes = [one for part in read for one in part.find_all(exp.Column)]
    columns = [one for part in read for one in source.columns(part)]
    if len(columns) != len(nodes):  # a name of an item, for instance
        return KnownErrors(within)
    if not all(_certain(one, source, groups) for one in nodes) or not all(
        isinstance(f, _TOTAL) for p in read for f in p.find_all(exp.Func)
    ):
        return KnownErrors(within)
    missing = [one for one in groups if isinstance(one, exp.Column) and not _boolean(source.cells(one))]
    missing = [one for one in missing if (source.cells(one) or {}).get("nulls")]  # where NULL is one of the groups
    keys = [_place(one, statement, source) for one in missing]
    if None in keys:
        return KnownErrors(within)
    used = set(columns)
    single = [*(one for one in groups if isinstance(one, exp.Column)), *_equal(where, source)]
    one_cell = bool(used) and used == {name for one in single for name in source.columns(one)}
    bound = source.lowest.bound(list(used))
    exact = one_cell and bound is not None and used == set(bound["columns"])
    off = _finite(bound, "cell" if exact else "rows")
    shown = [one for one in keys if one is not None]
    return KnownErrors(within) if off is None else KnownErrors(within, dict.fromkeys(counted, off), shown)


def _within(statement: exp.Select, source: _FromClause, counted: int) -> float | None:
    """The bound of all cells that the question reads; None where it reads anything else, or counts otherwise."""
    parts = [node for name, node in statement.args.items() if name not in ("joins", "from_")]
    nodes = [
        node for part in parts for one in _list(part) if isinstance(one, exp.Expr) for node in one.find_all(exp.Expr)
    ]
    named = {item.alias.casefold() for item in statement.expressions if isinstance(item, exp.Alias)}
    for one in nodes:
        if (
            isinstance(one, exp.Column)
            and not list(source.columns(one))
            and (one.table or one.name.casefold() not in named)
        ):
            return None
        if isinstance(one, exp.Func) and not isinstance(one, (*_TOTAL, exp.AggFunc)):
            return None
    counts = [one for item in statement.expressions for one in item.find_all(exp.Count, exp.CountIf)]
    if len(counts) != counted:
        return None
    return _finite(source.lowest.bound([name for part in parts for name in source.columns(part)]), "rows")


def _list(part: Any) -> list[Any]:
    return part if isinstance(part, list) else [part]


def _finite(bound: Mapping[str, Any] | None, name: str) -> float | None:
    return None if bound is None or not bound[name] < _FAR else float(bound[name])


@dataclass(frozen=True)
class _FromClause:
    """The tables of a FROM clause by the names they have in it, and the one whose rows the joins have."""

    tables: Mapping[str, SyntheticTable]
    lowest: SyntheticTable

    def columns(self, part: Any) -> Iterator[str]:
        """The columns that a part of the question reads, as marginals call them."""
        for one in _list(part):
            for column in one.find_all(exp.Column) if isinstance(one, exp.Expr) else ():
                found = list(self.named(column))
                if len(found) == 1:
                    (table, name), *_ = found
                    yield name if table is self.lowest else f"{table.name}.{name}"

    def cells(self, column: exp.Column) -> Mapping[str, Any] | None:
        """The cells of a column that it reads; None where they are not one value each."""
        ((table, name),) = self.named(column)
        return table.whole.get(name)

    def named(self, column: exp.Column) -> Iterator[tuple[SyntheticTable, str]]:
        for alias, table in self.tables.items():
            if column.table.casefold() in ("", alias):
                yield from ((table, one) for one in table.columns if one.casefold() == column.name.casefold())


def _source(statement: exp.Select, known: Mapping[str, SyntheticTable]) -> _FromClause | None:
    """What the question reads, where joins follow keys; None where they do not."""
    first = statement.args.get("from_")
    joins = statement.args.get("joins") or []
    nodes = [first.this, *(join.this for join in joins)] if first is not None else []
    if not nodes or not all(_table(one) and one.name.casefold() in known for one in nodes):
        return None
    tables = {one.alias_or_name.casefold(): known[one.name.casefold()] for one in nodes}
    held = list(tables.values())
    if len(held) != len(nodes) or len({id(one) for one in held}) != len(nodes):
        return None
    by_name = {one.name: one for one in held}
    links, referred = set(), set()
    for one in held:
        above = by_name.get(one.refers.get("table", ""))
        if above is not None and one.together and one.together == above.together and one.refers.get("key"):
            links.add(frozenset([(one.name, one.refers["column"]), (above.name, one.refers["key"])]))
            referred.add(above.name)
    lowest = [one for one in held if one.name not in referred]
    if len(by_name) != len(held) or len(lowest) != 1 or len(links) != len(joins):
        return None
    source = _FromClause(tables, lowest[0])
    for join in joins:
        if any(join.args[name] for name in join.args.keys() - {"this", "on", "kind"}) or join.kind not in ("", "INNER"):
            return None
        on = join.args.get("on")
        ends = [on.this, on.expression] if isinstance(on, exp.EQ) else []
        found = [list(source.named(one)) for one in ends if isinstance(one, exp.Column)]
        if len(found) != 2 or any(len(one) != 1 for one in found):
            return None
        links.discard(frozenset((table.name, name) for ((table, name),) in found))
    return None if links else source


def _table(node: exp.Expr) -> bool:
    """Whether this names a table, and at most another name of it: no columns, no joins of its own."""
    given = {name for name, value in node.args.items() if value}
    plain = isinstance(node, exp.Table) and given <= {"this", "alias", "db"} and node.db.casefold() in ("", "main")
    return plain and isinstance(node.this, exp.Identifier) and not node.alias_column_names


def _count(item: exp.Expr) -> exp.Expr | None:
    """An item of SELECT that is a count of rows, and nothing else."""
    node: Any = item.unalias()
    while isinstance(node, exp.Paren):
        node = node.this
    inner = node.this if isinstance(node, exp.Filter) else node
    plain = isinstance(inner, exp.CountIf) or (
        isinstance(inner, exp.Count) and not isinstance(inner.this, exp.Distinct)
    )
    return node if plain and not inner.args.get("expressions") else None


def _groups(statement: exp.Select, source: _FromClause) -> list[exp.Expr] | None:
    """What is grouped by, a place or a name of an item of SELECT as that item; None where that is not plain."""
    group = statement.args.get("group")
    if group is None:
        return []
    items = [item.unalias() for item in statement.expressions]
    if group.args.get("all") is True and not group.expressions:
        return [item for item in items if item.find(exp.AggFunc) is None]
    if any(value for name, value in group.args.items() if name != "expressions"):
        return None
    names = {item.alias.casefold(): item.this for item in statement.expressions if isinstance(item, exp.Alias)}
    found: list[exp.Expr] = []
    for one in group.expressions:
        named = names.get(one.name.casefold()) if isinstance(one, exp.Column) and not one.table else None
        if isinstance(one, exp.Literal):
            if not one.is_int or not 1 <= int(one.name) <= len(items):
                return None
            found.append(items[int(one.name) - 1])
        elif named is None:
            found.append(one)
        elif not list(source.named(one)):
            found.append(named)
        elif isinstance(named, exp.Column) and list(source.named(named)) == list(source.named(one)):
            found.append(one)
        else:
            return None  # a column, or what an item calls by its name
    return found


def _boolean(cells: Mapping[str, Any] | None) -> bool:
    """Whether a column has a cell for each value there can be, and for NULL."""
    return cells is not None and cells["type"] == Type.BOOLEAN and cells["nulls"] is True


def _certain(column: exp.Column, source: _FromClause, groups: Sequence[exp.Expr]) -> bool:
    """Whether the question reads the column so that values that were not declared count as NULL does: it is grouped
    by, or compared with declared values, where it is the same that this is NULL or false."""
    cells = source.cells(column)
    if cells is None or _boolean(cells) or any(one is column for one in groups):
        return cells is not None
    node: Any = column.parent
    listed = isinstance(node, exp.In) and not any(node.args.get(name) for name in ("query", "unnest", "field"))
    values = node.expressions if listed else [node.expression] if isinstance(node, exp.EQ) else []
    if node.this is not column or not values or not all(_declared(one, cells) for one in values):
        return False
    while isinstance(node.parent, exp.And | exp.Or | exp.Paren):
        node = node.parent
    above = node.parent
    if isinstance(above, exp.If):
        return node.arg_key == "this" and not (isinstance(above.parent, exp.Case) and above.parent.this)
    return isinstance(above, exp.Where | exp.CountIf)


def _declared(value: exp.Expr, cells: Mapping[str, Any]) -> bool:
    """Whether this is one of a column's values, written as its type is."""
    if cells["type"] == Type.BOOLEAN:
        return isinstance(value, exp.Boolean)
    if not isinstance(value, exp.Literal) or cells["type"] not in (Type.TEXT, Type.INTEGER):
        return False
    if cells["type"] == Type.TEXT:
        return value.is_string and value.name in cells["values"]
    return value.is_int and int(value.name) in cells["values"]


def _place(column: exp.Column, statement: exp.Select, source: _FromClause) -> int | None:
    """Where the answer shows a column that is grouped by; None where it does not."""
    for place, item in enumerate(statement.expressions):
        shown = item.unalias()
        if isinstance(shown, exp.Column) and list(source.named(shown)) == list(source.named(column)):
            return place
    return None


def _equal(where: exp.Where | None, source: _FromClause) -> Iterator[exp.Column]:
    """The columns that WHERE compares with one value of their type, whatever else it asks."""
    asked: Any = None if where is None else where.this
    for one in asked.flatten() if isinstance(asked, exp.And) else [asked]:
        node = one.this if isinstance(one, exp.Paren) else one
        if isinstance(node, exp.EQ | exp.Is) and isinstance(node.this, exp.Column):
            cells, value = source.cells(node.this), node.expression
            if _declared(value, cells or {"type": ""}) or (_boolean(cells) and isinstance(value, exp.Null)):
                yield node.this
