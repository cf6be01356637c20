"""Each kind of question on the owner's own declaration: which are asked, and whole curators over made-up tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import count
from time import perf_counter
from typing import Any

from discreet.audit.attack import Attack
from discreet.audit.claims import Claim
from discreet.audit.events import Feature, answered, kind
from discreet.audit.made_up import GROUPS, ExtremePerson, Stage, rows_along
from discreet.audit.targets import Late, SampledAttack, Target
from discreet.catalog import Budget, Column, Declaration, Table
from discreet.curator import Curator
from discreet.errors import QuestionError
from discreet.plan.measurement import Price
from discreet.plan.split import measurement
from discreet.release import Release
from discreet.sql import lower
from discreet.trusted.ring_a.nodes import scan_of
from discreet.trusted.ring_a.table import Type, as_table

PUBLIC = Price(Fraction(1))
GAUSSIAN = Price(Fraction(1), Fraction(1, 100))
PRIVATE = Price(Fraction(2), Fraction(1, 20))
"""Prices at which an attack sees most for its draws. They are nobody's budget."""

WHOLE = Fraction(1, 2)
"""The ε of a whole question: so small that a hundred answers are enough to find one without noise."""

PLENTY = Budget(Fraction(10**6), Fraction(4, 5), Fraction(4, 5))
BOUNDS = "contribution_bounds_per_group"


@dataclass(frozen=True)
class AskedAggregate:
    """A question: an aggregate, and the columns that it is grouped by. `sort` names what kind of question it is."""

    aggregate: str
    keys: tuple[Column, ...] = ()
    sort: tuple[Any, ...] = ()

    def text(self, table: Table, number: int | None = None) -> str:
        """The question; with a number, one that no question with another is a repeat of."""
        names = ", ".join(_quoted(key.name) for key in self.keys)
        head = f"{names}, " if names else ""
        tail = f" GROUP BY {names}" if names else ""
        where = "" if number is None else f" WHERE {number} >= 0"
        return f"SELECT {head}{self.aggregate} AS x FROM {_quoted(table.name)}{where}{tail}"

    def name(self, table: Table) -> str:
        keys = " by " + ", ".join(key.name for key in self.keys) if self.keys else ""
        return f"{table.name}: {self.aggregate}{keys}".replace('"', "")

    @property
    def private(self) -> bool:
        """Whether the values of some key are not declared."""
        return any(key.keys() is None for key in self.keys)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def asked_of(table: Table, *, each: bool) -> list[AskedAggregate]:
    """The questions of a table: one of each kind, or, with `each`, of every column."""
    found: dict[tuple[Any, ...], AskedAggregate] = {}
    for number, question in enumerate(_every(table)):
        found.setdefault((number,) if each else question.sort, question)
    return list(found.values())


def _every(table: Table) -> Iterator[AskedAggregate]:
    single = table.person is None or table.one_row_per_person
    keys = [column for column in table.columns if column.name != table.person]
    # keys with fractions are counted in a relation: the hunt asks about those
    grouped = [column for column in keys if column.type is not Type.NUMBER]
    groupings: list[tuple[Column, ...]] = [(), *((column,) for column in grouped)]
    public = sorted((column for column in grouped if column.keys()), key=lambda column: len(column.keys() or ()))
    if len(public) > 1:
        groupings.append((public[0], public[1]))
    for grouping in groupings:
        shape = tuple((key.type, key.keys() is None) for key in grouping)
        yield AskedAggregate("COUNT(*)", grouping, ("rows", shape))
        if table.person is not None and table.path is None:  # a path begins at a key, not at a person
            yield AskedAggregate(f"COUNT(DISTINCT {_quoted(table.person)})", grouping, ("persons", shape))
        if not single:
            yield AskedAggregate(f"COUNT(*, {BOUNDS} => (0, 2))", grouping, ("bounded", shape))
        for column in keys:
            if column.type is not None and column.type.numeric and column not in grouping:
                yield from _numbers(column, grouping, single)


def _numbers(column: Column, grouping: tuple[Column, ...], single: bool) -> Iterator[AskedAggregate]:
    shape = tuple(key.keys() is None for key in grouping)
    kinds = (column.type, column.step is None, shape)
    name = _quoted(column.name)
    if column.minimum is not None and column.maximum is not None:
        yield AskedAggregate(f"SUM({name})", grouping, ("sum", kinds))
        yield AskedAggregate(f"AVG({name})", grouping, ("mean", kinds))
    if not single or column.minimum is None or column.maximum is None:
        yield AskedAggregate(f"SUM({name}, {BOUNDS} => (-2, 3))", grouping, ("clamped", kinds))


def of_declaration(declaration: Declaration, stage: Stage, draws: int, asks: int, *, each: bool) -> list[Target]:
    """All attacks on all questions of all tables about people. Columns must have their types."""
    found: list[Target] = []
    wholes: list[tuple[Table, AskedAggregate]] = []
    for table in declaration.tables.values():
        if table.public:
            continue
        questions = [one for one in asked_of(table, each=each) if _answerable(one, table, declaration)]
        for question in questions:
            for price in (PRIVATE,) if question.private else (PUBLIC, GAUSSIAN) if question.keys else (PUBLIC,):
                plan = lower(question.text(table), declaration).plan
                priced, along = measurement(plan, price), scan_of(plan.root).relation
                attack = Attack(question.name(table), stage, table if along is None else as_table(along), priced)
                if price is GAUSSIAN and attack.claim.mu is None:
                    continue  # Laplace noise was better at this price too
                found += attack.targets(draws)
        wholes += [(table, questions[0]), *[(table, one) for one in questions if one.private][:1]]
    if not each:  # one with and one without private groups
        wholes = [*wholes[:1], *[(table, one) for table, one in wholes[1:] if one.private != wholes[0][1].private][:1]]
    for table, one in wholes:
        found.append(Late(_whole_name(one, table), partial(_whole, declaration, stage, table, one, asks)))
    return found


def _answerable(question: AskedAggregate, table: Table, declaration: Declaration) -> bool:
    """Whether the curator takes the question: what it refuses, it refuses to everybody."""
    try:
        lower(question.text(table), declaration)
    except QuestionError:
        return False
    return True


def _whole(declaration: Declaration, stage: Stage, table: Table, question: AskedAggregate, asks: int) -> SampledAttack:
    """Whole questions to two curators over made-up neighbours: ledger in memory, engine, door, release and all."""
    keys = [key.name for key in question.keys]
    delta = PLENTY.keys_delta / (2 * asks) if question.private else Fraction(0)
    curators = []
    for person in (None, ExtremePerson(groups=GROUPS[2] if keys else GROUPS[0])):
        rows = rows_along(declaration.tables, table, keys, 8, person)
        tables = {name: stage.write(declaration.tables[name], rows[name]) for name in rows}
        made_up = replace(declaration, tables=tables, budget=PLENTY, analysts={}, ledger=None, file=None)
        curators.append(Curator.of(made_up))
    numbers, times = count(), ([], [])  # type: tuple[count[int], tuple[list[float], list[float]]]

    def ask(curator: Curator) -> Release:
        text = question.text(table, next(numbers))
        start = perf_counter()
        try:
            return curator.ask(text, epsilon=WHOLE, delta=delta)
        finally:
            times[curators.index(curator)].append(perf_counter() - start)

    def close() -> str:
        for curator in curators:
            curator.close()
        slower = sum(two > one for one, two in zip(*times, strict=True))
        return f"; slower with the person in {100 * slower / asks:.0f} % of pairs (time is not promised)"

    features = [
        Feature("total", answered(_total), ordered=True),
        Feature("number of groups", answered(lambda release: len(release.rows)), ordered=True),
        Feature("outcome", kind),
    ]
    claim = Claim(float(WHOLE), float(delta))
    return SampledAttack(
        _whole_name(question, table), claim, (curators[0], curators[1]), ask, features, asks, "asked", close
    )


def _whole_name(question: AskedAggregate, table: Table) -> str:
    return f"{question.name(table)}, asked"


def _total(release: Release) -> float:
    name = next(name for name in release.columns if name not in release.content["types"])
    return float(sum(row[name] for row in release.rows))


def typed(declaration: Declaration) -> Declaration:
    """The declaration with the types that its sources state: reads schemas, no row, and no ledger."""
    curator = Curator.of(replace(declaration, ledger=None), load=False)
    try:
        curator.check()
        return replace(curator.declaration, ledger=declaration.ledger)
    finally:
        curator.close()
