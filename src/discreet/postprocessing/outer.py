"""The outer query of a question: checked against its list, with its names resolved and intervals carried through it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, assert_never

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from discreet.catalog.model import Declaration
from discreet.dialect.texts import UNITS
from discreet.errors import QuestionError
from discreet.plan.measurement import Plan
from discreet.plan.outputs import Output, OutputKind
from discreet.postprocessing.allowed import allowed
from discreet.postprocessing.box import HIGH, LOW, ONE_HIGH, ONE_LOW, Box, Followed, boxed, extra
from discreet.sql.grammar import Statistic
from discreet.sql.layers import LayeredQuestion
from discreet.sql.limits import too_deep
from discreet.sql.refusals import unknown_name
from discreet.sql.scope import numbered
from discreet.trusted.ring_a.table import Type
from discreet.trusted.ring_b.order_statistics import Special, SpecialKind


@dataclass(frozen=True)
class ReleasedTable:
    """A table that an outer query reads: names and types of its columns, and which of them are noisy."""

    name: str
    columns: tuple[tuple[str, str], ...]
    noisy: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()
    """Those that are noisy and have no intervals."""
    found: bool = False
    """Whether noise decides which rows there are: those of private keys."""

    @property
    def box(self) -> Box:
        """What is known of the columns as they were released, by names in lower case."""
        known = {**dict.fromkeys(self.noisy, Followed.PASSED), **dict.fromkeys(self.unknown, Followed.UNKNOWN)}
        return Box(tuple((name.lower(), known.get(name, Followed.EXACT)) for name, _ in self.columns), self.found)

    @property
    def stored(self) -> Iterator[tuple[str, str]]:
        """The columns as the outer engine has them: with the ends of intervals."""
        for name, kind in self.columns:
            yield name.lower(), kind
            if name in self.noisy:
                yield from ((name.lower() + ending, "number") for ending in (LOW, HIGH, ONE_LOW, ONE_HIGH))


class OuterDialect(Protocol):
    """How the engine of outer queries writes them, and which functions they may call."""

    def known(self, name: str) -> bool: ...

    def text(self, tree: exp.Expr) -> str: ...


@dataclass(frozen=True)
class OuterQuery:
    """An outer query that can be run: its text, names of its columns with what is known of their errors, whether noise
    decides which rows there are, and the tables that it reads."""

    text: str
    columns: tuple[tuple[str, Followed], ...]
    picked: bool
    tables: tuple[str, ...]


def outer_query(
    query: exp.Expr, names: Sequence[str], tables: Mapping[str, ReleasedTable], dialect: OuterDialect
) -> OuterQuery:
    """An outer query over tables. `names` are what its columns are called, as they are written; a star among them is
    all columns of some table. Raises QuestionError on what is not in the list, or means nothing."""
    tree = query.copy()
    allowed(tree, dialect.known)
    _units_as_texts(tree)
    _apart(tree)
    spelled = {name.lower(): name for table in tables.values() for name, _ in table.columns}
    for one in tree.find_all(exp.Identifier):
        spelled.setdefault(one.name.lower(), one.name)
        one.set("this", one.name.lower())
        one.set("quoted", True)
    by_name = {name.lower(): table for name, table in tables.items()}
    named = {one.alias for one in tree.find_all(exp.CTE)}
    read = {one.name for one in tree.find_all(exp.Table)} - named
    for name in read - set(by_name):
        raise unknown_name(name, list(by_name), kind="table", where="FROM")
    schema = {name: {column.lower(): kind for column, kind in by_name[name].columns} for name in read}
    try:
        tree = qualify(tree, schema=dict(schema), quote_identifiers=True, expand_alias_refs=True)
    except SqlglotError as error:
        raise _unresolved(str(error), [column for one in schema.values() for column in one]) from None
    for one in tree.find_all(exp.Identifier):
        one.set("quoted", True)
    for select in tree.find_all(exp.Select):
        if any(isinstance(item.unalias(), exp.Star) or item.name == "*" for item in select.expressions):
            fix = "name the columns, each with AS where two are called alike"
            raise QuestionError("star", "it is not clear which columns * means", where="SELECT", fix=fix)
        if len(select.expressions) > _MOST_COLUMNS:
            message = f"there are more than {_MOST_COLUMNS:,} columns"
            raise QuestionError("too-long", message, where="SELECT", fix="name fewer")
    tree = annotate_types(tree, schema=dict(schema))
    _alike(tree)
    _apart(tree)
    tree = tree.transform(_by_name)
    box = boxed(tree, {name: by_name[name].box for name in read})
    listed = list(box.columns)
    if "*" not in names and len(names) == len(listed):
        visible = list(names)
    else:
        visible = [spelled.get(name, name) for name, _ in listed]
    columns = tuple(zip(_unlike(visible), (followed for _, followed in listed), strict=True))
    try:
        text = dialect.text(tree)
    except RecursionError:
        raise too_deep() from None
    return OuterQuery(text, columns, box.picked, tuple(sorted(read)))


def beside(query: OuterQuery) -> Iterator[tuple[int, int]]:
    """For each column its place among those that the engine gives, and how many stand behind for its intervals."""
    at = len(query.columns)
    for _, followed in query.columns:
        count = len(extra("", followed))
        yield at, count
        at += count


def _units_as_texts(tree: exp.Expr) -> None:
    """The unit of DATE_TRUNC(x, MONTH) and DATE_DIFF(x, y, DAY), which looks like a column, as a text."""
    for node in tree.find_all(exp.Anonymous):
        name, given = node.name.upper(), node.expressions
        many = 2 if name.endswith("_TRUNC") else 3 if name.endswith("_DIFF") or name == "DATEDIFF" else 0
        last = given[-1] if len(given) == many else None
        first_is_unit = bool(given) and isinstance(given[0], exp.Literal)
        if not isinstance(last, exp.Column) or last.table or last.name.upper() not in UNITS or first_is_unit:
            continue
        unit = exp.Literal.string(last.name.lower())
        node.set("expressions", [unit, given[0]] if many == 2 else [unit, given[1], given[0]])


def _by_name(node: exp.Expr) -> exp.Expr:
    """An aggregate of the dialect's as a function of the engine's."""
    return exp.Anonymous(this=node.this, expressions=node.expressions) if isinstance(node, Statistic) else node


_MOST_COLUMNS = 1_000
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def _alike(tree: exp.Expr) -> None:
    """Refuses a text that is compared with a number, of a tree whose types are known."""
    for node in tree.find_all(*_COMPARED):
        kinds = [one.is_type(*exp.DataType.TEXT_TYPES) - one.is_type(*exp.DataType.NUMERIC_TYPES)
                 for one in (node.this, node.expression)]  # fmt: skip
        lists = any(one.is_type("list", "array") for one in (node.this, node.expression))
        if sorted(kinds) == [-1, 1] or (lists and -1 in kinds):
            what = "a list" if lists else "a text"
            fix = "write texts in single quotes, numbers without; or CAST one of them"
            where = (node.this if isinstance(node.this, exp.Column) else node).name[:60] or "question"
            raise QuestionError("type", f"{what} is compared with a number", where=where, fix=fix)


def _apart(tree: exp.Expr) -> None:
    """Gives columns of one SELECT that have one name different ones."""
    for select in tree.find_all(exp.Select):
        taken: set[str] = set()
        for item in select.expressions:
            own = next(one for one in numbered(item.alias_or_name) if one not in taken)
            if own != item.alias_or_name:
                if isinstance(item, exp.Alias):
                    item.set("alias", exp.to_identifier(own, quoted=True))
                elif isinstance(item, exp.Column) and not item.is_star:
                    item.replace(exp.alias_(item.copy(), own, quoted=True))
            taken.add(own)


def _unlike(names: Sequence[str]) -> list[str]:
    """Names of which no two are alike: with a number where one stands there already."""
    made: list[str] = []
    for name in names:
        taken = {one.casefold() for one in made}
        made.append(next(one for one in numbered(name) if one.casefold() not in taken))
    return made


def _unresolved(said: str, known: Sequence[str]) -> QuestionError:
    """What the words of the resolver mean, in ours."""
    found = re.search(r"Column '?\"?([^'\"]+)", said) or re.search(r"[Uu]nknown column:? '?\"?([^'\"]+)", said)
    if found and ("ambiguous" in said.lower() or found[1] in known):
        fix = f"write the table before it: table.{found[1]}"
        return QuestionError("ambiguous", f"Column name {found[1][:60]} is ambiguous", where=found[1][:60], fix=fix)
    if found:
        return unknown_name(found[1].rpartition(".")[2], list(known), kind="column", where="the query on the answers")
    message = "the query on the answers cannot be read"
    fix = "name each column with its table, and each subquery with AS"
    return QuestionError("syntax", message, where="question", fix=fix)


def released_tables(layers: LayeredQuestion, declaration: Declaration) -> dict[str, ReleasedTable]:
    """The tables that a question's outer query may read, by their names in small letters, as it reads them."""
    found = {}
    for one in declaration.tables.values():
        if one.public:
            found[one.name.lower()] = ReleasedTable(
                one.name, tuple((c.name, str(c.type or Type.TEXT)) for c in one.columns)
            )
    for name, group in layers.groups.items():
        found[name] = ReleasedTable(name, tuple((column, str(kind)) for column, kind in group.columns))
    for measured in layers.measured:
        found[measured.name] = measured_table(measured.name, measured.question.plan)
    return found


def measured_table(name: str, plan: Plan) -> ReleasedTable:
    """What a measured table gives: its keys are exact once they are shown, all else is noisy."""
    columns: list[tuple[str, str]] = []
    noisy, unknown = set[str](), set[str]()
    for output in plan.outputs:
        if output.hidden:
            continue
        if output.kind is OutputKind.KEY:
            columns.append((output.name, str(output.type_of(plan.keys[output.index]))))
            continue
        kind, intervals = "number", not output.report
        if output.kind is OutputKind.COUNT:
            kind = "integer"
        elif output.kind is OutputKind.SPECIAL:
            special = plan.specials[output.index]
            intervals &= special.kind is SpecialKind.DISTINCT
            kind = f"list of {_type(special, output)}" if special.many else _type(special, output)
        columns.append((output.name, "text" if output.report else kind))
        (noisy if intervals else unknown).add(output.name)
    return ReleasedTable(name, tuple(columns), frozenset(noisy), frozenset(unknown), plan.private)


def _type(special: Special, output: Output) -> str:
    """The type of the values of what is measured by itself."""
    match special.kind:
        case SpecialKind.QUANTILES:
            return str(output.moment or "number")
        case SpecialKind.WINNERS:
            return "text"
        case SpecialKind.DISTINCT:
            return "integer"
        case _:
            assert_never(special.kind)
