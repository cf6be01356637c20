"""A call that publishes several tables of the same persons, checked: their views, the price, and the one batch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from discreet.accounting import Declared, Filter
from discreet.accounting.balance import event_delta
from discreet.catalog import Declaration
from discreet.catalog.model import Rules
from discreet.catalog.orders import beside_totals
from discreet.errors import refused
from discreet.markov import Clique, Domain
from discreet.procedures.arguments import epsilon_of
from discreet.release.content import Cost
from discreet.synthesis.publication import (
    FirstSteps,
    Publication,
    cells_of,
    delta_of,
    first_steps,
    hold_fitting,
    hold_possible,
    hold_small,
    ordered,
)
from discreet.synthesis.related import RelatedTable, hold_work, related
from discreet.synthesis.rows_below import RowsBelow, rows_below
from discreet.synthesis.schedule import Schedule, Schedules, largest
from discreet.synthesis.totals import FixedTotals
from discreet.trusted.ring_a.curves import mu_of_budget
from discreet.trusted.ring_a.exact import Number, floor
from discreet.trusted.ring_a.table import Table

METHOD = "adaptive"
ALONE = 0.3
"""The share of single columns: how many rows below there are follows from them, and all else is multiplied by that."""


@dataclass(frozen=True)
class SeveralPublication:
    """A checked call: each table with what is measured of its view, as a publication of its own, in one batch."""

    tables: tuple[RelatedTable, ...]
    each: tuple[Publication, ...]
    below: Mapping[str, RowsBelow]
    read: tuple[Table, ...]
    event_delta: Fraction

    @cached_property
    def declared(self) -> Declared:
        """All releases of the run, declared before the first row is read."""
        return Declared(tuple(part for one in self.each for part in one.schedule.parts), self.event_delta)

    @property
    def steps(self) -> int:
        """How many measurements it has at most, which follows from the declaration and the call."""
        return sum(one.steps for one in self.each)

    @property
    def cost(self) -> Cost:
        """ε and δ of the one batch, as each table's publication states them."""
        return self.each[0].cost

    @property
    def question(self) -> str:
        """The call in words, for the ledger."""
        named = (f"{one.table.name} ({', '.join(each.column.name for each in one.columns)})" for one in self.tables)
        return f"publish together {'; '.join(named)}"

    @property
    def parts(self) -> tuple[str, ...]:
        """What decides the release, beside the tables: also by which column rows follow one another, and to which of
        several keys they refer, which a view's text does not say."""
        views = [repr((one.view, one.keys, one.reference, one.parent)) for one in self.tables]
        views += [f"{one.table.name} in time by {one.time}" for one in self.tables if one.time is not None]
        others = {(one.table.name, key) for one in self.tables for key in one.keys[1:]}
        views += [
            f"{one.table.name} refers to {one.target}" for one in self.tables if (one.parent, one.target) in others
        ]
        return ("publish together", *views, *(part for one in self.each for part in one.parts))


def hold_single(said: Mapping[str, Any]) -> None:
    """Raises QuestionError where something is said that can be said of a single table alone."""
    named = next((name for name, value in said.items() if value is not None), None)
    if named is not None:
        message = f"{named} is said of a single table"
        raise refused("table", message, named, "leave it out, or publish that table alone")


def several(
    declaration: Declaration, names: Sequence[str], epsilon: Number | None, delta: Number | None
) -> SeveralPublication:
    """The checked call. Raises QuestionError; nothing is spent and no row is read.

    The price is split by how many columns each table has of its own, the numbers of rows below among them: its share
    of μ². A person weighs as much in one table as in another, so tables of many rows a person need no larger share.
    """
    tables = together(declaration, names)
    totals, below = _needed(declaration, tables)
    price = epsilon_of(declaration, epsilon)
    spend = delta_of(declaration, price, delta)
    budget = declaration.budget
    event = event_delta(Filter(budget.epsilon, budget.delta, budget.keys_delta), spend)
    mu = mu_of_budget(price, spend - event)
    search = sum(each.found for one in tables for each in one.columns)
    failure_delta = floor(event / 2 / search, 3) if search else Fraction(0)
    event = floor(event / 2, 3) if search else event
    weights = [len(one.columns) + len(one.counts) for one in tables]
    shares = [Fraction(one, sum(weights)) for one in weights]
    firsts: list[FirstSteps] = []
    for one, share in zip(tables, shares, strict=True):
        part = mu * Fraction(math.isqrt(int(share * 10**12)), 10**6)
        firsts.append(first_steps(declaration, one.table, (*one.columns, *one.counts), part, failure_delta, one.moved))
    domains = _domains(tables)
    scalings = []
    for one, first, domain in zip(tables, firsts, domains, strict=True):
        known = totals.get(one.table.name)
        sure = () if known is None or one.evenly else tuple(known.counts)  # of a person's weight they say nothing
        pairs, own = _pairs(one, domain), [each.column.name for each in (*one.columns, *one.counts)]
        scalings.append(
            Schedule.scaling(
                METHOD,
                domain,
                one.rows,
                first.parts,
                pairs,
                own,
                moved=one.moved,
                rounds=len(pairs),
                alone=ALONE,
                known=sure,
            )
        )

    def scaled(factor: float) -> Schedules:
        pairs = zip(scalings, shares, strict=True)
        return Schedules(tuple(scaling(math.sqrt(share) * factor) for scaling, share in pairs))

    found = largest(scaled, mu, event)
    each = []
    for one, first, schedule in zip(tables, firsts, found.each, strict=True):
        rules = _rules(declaration, one)
        orders = ordered(declaration, one.table, one.columns)
        least = below[one.table.name].persons if one.parent is None else 1
        known = _held(declaration, one, totals.get(one.table.name), least)
        columns = (*one.columns, *one.counts)
        sigma, finders, left = first.look_sigma, first.finders, one.left_out
        each.append(
            Publication(
                one.table,
                columns,
                left,
                METHOD,
                None,
                price,
                spend,
                schedule,
                sigma,
                finders,
                event,
                rules,
                known,
                orders,
                one.sums,
                most_rows=below[one.table.name].fit,
                least_rows=max(1, least),
            )
        )
    read = dict.fromkeys([*(one.view for one in tables), *(table for first in firsts for table in first.tables)])
    return SeveralPublication(tables, tuple(each), below, tuple(read), event)


def together(declaration: Declaration, names: Sequence[str]) -> tuple[RelatedTable, ...]:
    """The tables of such a call, each after the one that it refers to. Raises QuestionError where they are not of the
    same persons, what is declared of them cannot hold in all of them, or the rows of one person are too much work for
    the engine."""
    tables = related(declaration, names)
    _needed(declaration, tables)
    for one in tables:
        hold_work(declaration, one.table.name, one.view)
    return tables


def _needed(
    declaration: Declaration, tables: Sequence[RelatedTable]
) -> tuple[Mapping[str, FixedTotals], Mapping[str, RowsBelow]]:
    """The totals of the tables that have some, and what they need of the numbers of rows in each. Raises QuestionError
    where no tables are such."""
    totals = {one.table.name: known for one in tables if (known := _totals(declaration, one)) is not None}
    return totals, rows_below(tables, totals, declaration.limits.memory_gib)


def _totals(declaration: Declaration, one: RelatedTable) -> FixedTotals | None:
    """The totals of a table over its published columns. Raises QuestionError where they count what is made anew, or
    meeting them could change the order of rows."""
    name, said = one.table.name, declaration.totals.get(one.table.name, ())
    by = {column for total in said for column in total.columns}
    _hold_no_key(one, by, "totals", "count by other columns")
    tied = beside_totals(((one.time, one.time),), said, declaration.impossible.get(name, ())) if one.time else None
    if tied is not None:
        message = f"rows of {name} follow one another by {tied}, and impossible ties it to columns with totals"
        raise refused("totals", message, f"tables.{name}.time", "leave one of them out")
    return FixedTotals.of(said, one.table, [each.column.name for each in one.columns])


def _rules(declaration: Declaration, one: RelatedTable) -> Rules:
    """Which rows of a table cannot be. Raises QuestionError where a rule names a key: no row has its values."""
    rules = declaration.impossible.get(one.table.name, ())
    named = {condition.column for rule in rules for condition in rule}
    _hold_no_key(one, named, "impossible", "name other columns")
    return rules


def _hold_no_key(one: RelatedTable, columns: Collection[str], what: str, fix: str) -> None:
    """Raises QuestionError where one of these columns of the table is a key, or refers to one."""
    name = one.table.name
    made = next((column for column in (*one.keys, one.reference) if column in columns), None)
    if made is not None:
        message = f"{made} is a key of {name}, which is made anew: no rows have its values"
        raise refused(what, message, f"tables.{name}.{what}", fix)


def _held(declaration: Declaration, one: RelatedTable, totals: FixedTotals | None, least: int) -> FixedTotals | None:
    """The totals of a table with counts that meet them. Raises QuestionError where there are none, or no such rows can
    be made; `least` is how many rows others need."""
    rules, orders = _rules(declaration, one), ordered(declaration, one.table, one.columns)
    columns = len(one.columns) + len(one.counts) + len(one.sums)
    hold_fitting(max(least, 0 if totals is None else totals.rows), columns, declaration)
    if totals is not None:
        hold_small(rules, one.columns, [*totals.counts, *orders])
    return hold_possible(rules, one.columns, totals, orders)


def _domains(tables: Sequence[RelatedTable]) -> list[Domain]:
    """The columns of each view, those above first, with about as many cells as they will have."""
    sizes: dict[tuple[str, str], int] = {}
    found = []
    for one in tables:
        own = {each.column.name: cells_of(each) for each in (*one.columns, *one.counts)}
        sizes.update({(one.table.name, name): size for name, size in own.items()})
        before = {name: own[column] + 1 for column, name in one.before.items()}
        given = {above.name: sizes[above.table, above.column] for above in one.above}
        found.append(Domain.of({**given, **own, **before}))
    return found


def _pairs(one: RelatedTable, domain: Domain) -> list[Clique]:
    """The marginals that matter: pairs of columns, of which one at least is the table's own; and of each column with
    that of the row before."""
    above, behind = {each.name for each in one.above}, set(one.before.values())
    names = [name for name in domain.names if name not in behind]
    pairs: list[Clique] = [pair for pair in itertools.combinations(names, 2) if not set(pair) <= above]
    pairs += list(one.before.items())
    return pairs or [(name,) for name in domain.names if name not in above]
