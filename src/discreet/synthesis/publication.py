"""A call that publishes a table, checked: its columns, its price, and the batch of releases it is made of."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting import Declared, Filter, Gaussian
from discreet.accounting.balance import event_delta, price_delta
from discreet.catalog import Declaration
from discreet.catalog.model import Condition, EngineLimits, Orders, Rules
from discreet.catalog.orders import apart
from discreet.errors import refused
from discreet.markov import Domain, fit
from discreet.markov.tree import junction_tree
from discreet.mechanisms import gaussian_threshold
from discreet.plan.measurement import Measurement, Price
from discreet.procedures.arguments import amount, epsilon_of, table_about_people, whole, with_owners
from discreet.release.content import Cost
from discreet.sql import lower
from discreet.synthesis.adaptive import LIMIT, MOST_ROWS
from discreet.synthesis.cells import FINE, NoisyHistogram, NumberLine
from discreet.synthesis.columns import BINS, PublishedColumn, referred, wanted
from discreet.synthesis.earlier import Earlier
from discreet.synthesis.orders import order_zeros
from discreet.synthesis.related import hold_work
from discreet.synthesis.schedule import METHODS, MOST_HELD, Schedule
from discreet.synthesis.sums import Summed, summed_columns
from discreet.synthesis.totals import FixedTotals
from discreet.trusted.ring_a.curves import mu_of_budget
from discreet.trusted.ring_a.exact import Number, floor, show, sqrt_ceiling
from discreet.trusted.ring_a.loss import Single
from discreet.trusted.ring_a.sensitivity import sensitivity
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_c.coding import Binned, Coding, ListedCells, rows_of_person

BYTES = 32
"""About so many bytes a value of a made row takes in the owner's process, until the release is stored."""
MOST_COLUMNS = 10
"""Of a named marginal."""
# Of the price, as μ²: for looking at a column once, and for all looks, of which columns whose values are found leave a
# part; for finding a column's values, and for all of that. It may be much, as it also counts what is found.
_LOOK, _LOOKS = Fraction(4, 100), Fraction(30, 100)
_FIND, _FINDS = Fraction(6, 100), Fraction(36, 100)


@dataclass(frozen=True)
class Publication:
    """A checked call. `look_sigma` is the noise of a fine look at a column, `finders` what finds private values."""

    table: Table
    columns: tuple[PublishedColumn, ...]
    left_out: Mapping[str, str]
    method: str
    rows: int | None
    epsilon: Fraction
    delta: Fraction
    schedule: Schedule
    look_sigma: Fraction
    finders: Mapping[str, Measurement]
    event_delta: Fraction
    impossible: Rules
    totals: FixedTotals | None = None
    orders: Orders = ()
    sums: tuple[Summed, ...] = ()
    earlier: Earlier | None = None
    looks: Mapping[str, NoisyHistogram] = field(default_factory=dict)
    """How values lie inside bins, as an earlier release saw it."""
    most_rows: int = MOST_ROWS
    """No more rows are made where the call does not say how many."""
    least_rows: int = 1
    """No fewer rows are made: those of other tables need so many above them."""

    @cached_property
    def declared(self) -> Declared:
        """All releases of the run, declared before the first row is read."""
        return Declared(self.schedule.parts, self.event_delta)

    @property
    def steps(self) -> int:
        """How many measurements it has at most, which follows from the declaration and the call: what finds values,
        looks at columns, single columns, rounds, and how far the rows are from the table."""
        looks = sum(one.looks for one in self.columns)
        return len(self.finders) + looks + len(self.schedule.singles) + len(self.schedule.rounds) + 1

    @property
    def target(self) -> str | None:
        """The column that is to be predicted from the others."""
        return self.schedule.target

    @property
    def cost(self) -> Cost:
        """ε and δ of the whole run."""
        return Cost(epsilon=float(self.epsilon), delta=float(self.delta))

    @property
    def question(self) -> str:
        """The call in words, for the ledger."""
        words = f"publish {self.table.name}: {', '.join(one.column.name for one in self.columns)}; {self.method}"
        words += "" if self.target is None else f", to predict {self.target}"
        return words if self.earlier is None else f"{words}, like an earlier release"

    @property
    def parts(self) -> tuple[str, ...]:
        """What decides the release, beside the table."""
        rules = repr(self.impossible)
        said = ("publish", repr(self.columns), repr(self.schedule), repr(self.rows), repr(self.event_delta), rules)
        more = (
            *(() if self.totals is None else (self.totals.in_words,)),
            *((repr(self.orders),) if self.orders else ()),
            *((repr(self.sums),) if self.sums else ()),
            *(() if self.earlier is None else (f"like {self.earlier.digest}",)),
        )
        return (*said, *more)


@dataclass(frozen=True, kw_only=True)
class PublishOptions:
    """What a call of `Curator.publish` names, as it was written: that method says what each means."""

    table: object
    epsilon: Number | None = None
    delta: Number | None = None
    rows: int | None = None
    method: str = "adaptive"
    columns: Sequence[str] | None = None
    bins: Mapping[str, Any] | None = None
    workload: Sequence[Sequence[str]] | None = None
    target: object = None
    like: object = None


def hold_without_totals(call: Publication) -> None:
    """Raises QuestionError where the rows of a part would have public totals, which are those of all rows."""
    if call.totals is not None:
        message = f"the public totals of {call.table.name} are of all rows, and a part has others"
        raise refused("part", message, "part", "leave part out")


def publication(declaration: Declaration, options: PublishOptions) -> Publication:
    """The checked call. Raises QuestionError; nothing is spent and no row is read."""
    known, method, rows = table_about_people(declaration, options.table), options.method, options.rows
    if known.path is not None:
        hold_work(declaration, known.name, with_owners(declaration, known))
    if method not in METHODS:
        raise refused("method", f"method is one of {', '.join(METHODS)}", "method", f'write method="{METHODS[0]}"')
    if rows is not None:
        whole("rows", rows, 1, MOST_ROWS, "rows=10000")
    sums = summed_columns(declaration, known, options.columns)
    kept, left_out = _measured(declaration, known, options, {column.name for column, _ in sums})
    rules = declaration.impossible.get(known.name, ())
    earlier, looks = None, dict[str, NoisyHistogram]()
    if options.like is not None:
        earlier, kept, left, looks = _continued(options, kept, rules)
        left_out |= left
    totals = FixedTotals.of(declaration.totals.get(known.name, ()), known, [one.column.name for one in kept])
    if totals is not None and rows not in (None, totals.rows):
        fix = f"leave rows out: there will be {totals.rows:,}"
        raise refused("rows", "the declared totals say how many rows there are", "rows", fix)
    most = rows_that_fit(len(kept) + len(sums), declaration.limits.memory_gib)
    hold_fitting(max(rows or 0, 0 if totals is None else totals.rows), len(kept) + len(sums), declaration)
    price = epsilon_of(declaration, options.epsilon)
    spend = delta_of(declaration, price, options.delta)
    search = [one for one in kept if one.found]
    budget = declaration.budget
    event = event_delta(Filter(budget.epsilon, budget.delta, budget.keys_delta), spend)
    mu = mu_of_budget(price, spend - event)
    failure_delta = floor(event / 2 / len(search), 3) if search else Fraction(0)
    event = floor(event / 2, 3) if search else event
    first = first_steps(declaration, known, kept, mu, failure_delta, rows_of_person(known))
    named = _workload(kept, method, options.workload)
    sure = () if totals is None else tuple(totals.counts)
    orders = ordered(declaration, known, kept)
    hold_small(rules, kept, [*((named or []) if method == "workload" else []), *sure, *orders])
    domain = Domain.of({one.column.name: cells_of(one) for one in kept})
    schedule = Schedule.of(
        method,
        domain,
        mu,
        event,
        rows_per_person=rows_of_person(known),
        extra_events=first.parts,
        workload=named,
        target=_target(kept, left_out, [one.name for one, _ in sums], options),
        known=sure,
    )
    totals = hold_possible(rules, kept, totals, orders)
    sigma, finders = first.look_sigma, first.finders
    return Publication(
        known,
        kept,
        left_out,
        method,
        rows,
        price,
        spend,
        schedule,
        sigma,
        finders,
        event,
        rules,
        totals,
        orders,
        sums,
        earlier,
        looks,
        most,
    )


def hold_fitting(rows: int, columns: int, declaration: Declaration) -> None:
    """Raises QuestionError where so many rows of so many columns cannot be made."""
    most = rows_that_fit(columns, declaration.limits.memory_gib)
    if rows > most:
        message = f"at most {most:,} rows of {columns} columns fit into engine.memory_gib"
        raise refused("rows", message, "rows", "make fewer rows, or raise engine.memory_gib")


def rows_that_fit(columns: int, memory_gib: int = EngineLimits.memory_gib) -> int:
    """How many rows of so many columns are made at most: what the engine may take, its owner may take for these."""
    return min(MOST_ROWS, (memory_gib << 30) // (BYTES * columns))


@dataclass(frozen=True)
class FirstSteps:
    """What finds values and looks at columns before marginals are measured; `tables` are what the finders read."""

    finders: Mapping[str, Measurement]
    tables: tuple[Table, ...]
    look_sigma: Fraction
    parts: tuple[Single, ...]


def first_steps(
    declaration: Declaration,
    table: Table,
    kept: Sequence[PublishedColumn],
    mu: Fraction,
    failure_delta: Fraction,
    rows_per_person: int,
) -> FirstSteps:
    """The first steps of a table's share mu of the price; `failure_delta` is the δ of each column with found values.

    Each is a release of its own with its own loss, and the batch has them all: of found values the noisy numbers that
    were shown are used again as counts, which is post-processing. A part for every column adds up to what one
    measurement of all of them would cost: a person has a row in each, so its ℓ2 sensitivity is √columns, and the δ of
    one that the person alone fills is shared among them likewise.
    Raises QuestionError where that is no price."""
    search = [one for one in kept if one.found]
    looks = sum(one.looks for one in kept)
    share = min(_LOOK, _LOOKS / (looks + len(search))) * mu**2 if looks else Fraction(0)
    each = min(_FIND, _FINDS / len(search)) * mu**2 if search else Fraction(0)
    if mu <= 0 or (looks and share <= 0) or (search and each <= 0):
        raise refused("price", "epsilon is too small for this table", "epsilon", "write a larger epsilon or delta")
    sigma = sqrt_ceiling(rows_per_person**2 / share) if looks else Fraction(1)
    found = {one.column.name: finder_of(declaration, table, one, each, failure_delta) for one in search}
    parts = [part for _, one in found.values() for part in one.loss.parts]
    parts += [Gaussian(sqrt_ceiling(rows_per_person**2 / sigma**2))] * sum(one.looks for one in kept)
    tables = tuple(dict.fromkeys(read for read, _ in found.values()))
    return FirstSteps({name: one for name, (_, one) in found.items()}, tables, sigma, tuple(parts))


def hold_possible(
    rules: Rules, kept: Sequence[PublishedColumn], totals: FixedTotals | None = None, orders: Orders = ()
) -> FixedTotals | None:
    """The totals, with counts that meet them and the owner's rules. Raises QuestionError where the rules and orders
    leave no row possible, which a fit to them alone tells, or none that the totals need."""
    named = {condition.column for rule in rules for condition in rule} | {name for pair in orders for name in pair}
    named |= {name for clique in ({} if totals is None else totals.counts) for name in clique}
    about = [one for one in kept if one.column.name in named]
    lines = {one.column.name: one.line for one in about if one.line is not None}
    cells = [
        coded(one, [], rules_about(rules, one.column.name)) if one.line is not None else one.coded for one in about
    ]
    coding = Coding(tuple(one for one in cells if one is not None))
    forbidden = zeros(rules, coding, lines, orders)
    if forbidden:
        fit(Domain(coding.names, coding.sizes), [], zeros=forbidden)
    return totals and totals.hold_possible(coding, forbidden)


def _measured(
    declaration: Declaration, table: Table, options: PublishOptions, summed: set[str]
) -> tuple[tuple[PublishedColumn, ...], dict[str, str]]:
    """The columns that are measured, and those that are left out and why; of sums neither."""
    bins, keys = options.bins or {}, referred(declaration, table.name)
    for name in bins if isinstance(bins, Mapping) else ():
        if any(str(name).casefold() == one.casefold() for one in summed):
            raise refused("bins", f"{name} is computed from other columns", "bins", "leave it out of bins")
    names = options.columns
    if names is not None and summed:
        names = [one for one in names if all(one.casefold() != other.casefold() for other in summed)]
    kept, left_out = wanted(table, names, bins, keys)
    kept = tuple(one for one in kept if one.column.name not in summed)
    return kept, {name: why for name, why in left_out.items() if name not in summed}


def _continued(
    options: PublishOptions, kept: tuple[PublishedColumn, ...], rules: Rules
) -> tuple[Earlier, tuple[PublishedColumn, ...], dict[str, str], dict[str, NoisyHistogram]]:
    """The earlier release, the columns with its cells, those that it left out, and how values lie inside bins. Raises
    QuestionError where it is none of these columns, or the call says otherwise."""
    earlier = Earlier.of(options.like)
    for name, said in {"bins": bool(options.bins), "method": options.method != METHODS[0]}.items():
        if said:
            message = f"an earlier release is continued with its own bins, by the method {METHODS[0]}"
            raise refused("like", message, name, f"leave out {name}, or like")
    found, left_out, looks = earlier.columns(kept, options.columns is not None)
    for one in found:
        if one.line is not None and coded(one, one.cuts, rules_about(rules, one.column.name)) != one.coded:
            message = f"what is impossible has changed: {one.column.name} is cut elsewhere in the earlier release"
            raise refused("like", message, "like", "publish the table afresh")
    if not found:
        raise refused("like", "the earlier release has none of these columns", "like", "publish the table afresh")
    return earlier, found, left_out, looks


def ordered(declaration: Declaration, table: Table, kept: Sequence[PublishedColumn]) -> Orders:
    """The published columns that are in order. Raises QuestionError where their types, which a source may state, cannot
    be."""
    known = {one.column.name: one.column for one in kept}
    found = tuple(pair for pair in declaration.orders.get(table.name, ()) if set(pair) <= known.keys())
    for low, high in found:
        words = apart(known[low], known[high])
        if words:
            raise refused("columns", words, "orders", "declare both alike, or take the order out")
    return found


def rules_about(rules: Rules, name: str) -> list[Condition]:
    """The conditions that the owner's rules set on a column."""
    return [condition for rule in rules for condition in rule if condition.column == name]


def _workload(
    kept: Sequence[PublishedColumn], method: str, workload: Sequence[Sequence[str]] | None
) -> list[tuple[str, ...]] | None:
    """The marginals that matter, by the names of their columns."""
    example = 'workload=[["sex", "age"], ["age", "income"]], or --workload sex,age'
    if workload is None:
        if method == "workload":
            raise refused(
                "workload", "this method measures the marginals that you name", "workload", f"write {example}"
            )
        return None
    names = {one.column.name.casefold(): one.column.name for one in kept}
    listed = _listed(workload) and all(_listed(clique) or isinstance(clique, Set) for clique in workload)
    unknown = [name for clique in workload for name in clique if str(name).casefold() not in names] if listed else []
    if unknown:
        message = f"workload is not a valid list of sets of published columns: {_quoted(unknown[0])} is none"
        raise refused("workload", message, "workload", _one_of(names.values()))
    cliques = [tuple(names[str(name).casefold()] for name in clique) for clique in workload] if listed else []
    if not cliques or not all(cliques) or any(len(set(clique)) != len(clique) for clique in cliques):
        message = "workload is not a valid list of sets of published columns"
        raise refused("workload", message, "workload", f"write {example}")
    order = list(names.values())
    likely = _likely(kept)
    for clique in cliques:
        if len(clique) > MOST_COLUMNS or likely.cells(clique) > MOST_HELD:
            words = f"a marginal of the workload has more than {MOST_COLUMNS} columns, or {MOST_HELD:,} cells"
            raise refused("workload", words, ", ".join(clique), "name fewer columns together, or coarser bins")
    return list(dict.fromkeys(tuple(sorted(clique, key=order.index)) for clique in cliques))


def _target(
    kept: Sequence[PublishedColumn], left_out: Mapping[str, str], sums: Iterable[str], options: PublishOptions
) -> str | None:
    """The column that is to be predicted, by its own name."""
    said, example = options.target, 'write target="income", a column of the synthetic table'
    if said is None:
        return None
    if not isinstance(said, str):
        raise refused("target", "target is not the name of a column", "target", example)
    if options.method != METHODS[0] or options.workload is not None:
        other = "method" if options.workload is None else "workload"
        message = f"a target says which marginals matter to the method {METHODS[0]}, and {other} says otherwise"
        raise refused("target", message, "target", f"leave out target or {other}")
    measured = _one_of(one.column.name for one in kept)
    for name in sums:
        if name.casefold() == said.casefold():
            message = f"a target is a measured column, and {name} is computed from others"
            raise refused("target", message, "target", measured)
    for name, why in left_out.items():
        if name.casefold() == said.casefold():
            raise refused("target", f"{name} cannot be published: {why}", "target", example)
    for one in kept:
        if one.column.name.casefold() == said.casefold():
            return one.column.name
    message = f"target is not a column of the synthetic table: {_quoted(said)} is none"
    raise refused("target", message, "target", measured)


def _quoted(name: object) -> str:
    return repr(str(name)[:100])


def _one_of(names: Iterable[str]) -> str:
    """A remedy that lists the columns, not all of a wide table."""
    known = list(names)
    return f"name one of {', '.join(known[:40])}{' …' if len(known) > 40 else ''}"


def _listed(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _likely(kept: Sequence[PublishedColumn], rules: Rules = ()) -> Domain:
    """The columns with about as many cells as they will have at least, those between ends of the rules with them."""
    sizes = {one.column.name: BINS if one.looks else one.coded.size if one.coded else 2 for one in kept}
    for one in kept:
        if one.line is not None:
            ruled = coded(one, one.cuts, rules_about(rules, one.column.name)).size
            sizes[one.column.name] = max(sizes[one.column.name], ruled)
    return Domain.of(sizes)


def hold_small(rules: Rules, kept: Sequence[PublishedColumn], fixed: Sequence[tuple[str, ...]]) -> None:
    """Raises QuestionError where a model of what is certain to be in it would be too large: of the marginals that will
    be measured, and of the owner's rules."""
    likely = _likely(kept, rules)
    ruled = [[condition.column for condition in rule] for rule in rules]
    about = [likely.clique(dict.fromkeys(rule)) for rule in ruled if set(rule) <= set(likely.names)]
    tree = junction_tree(likely, [*fixed, *about])
    if tree.cells > LIMIT:
        where, fix = ", ".join(tree.largest), "take fewer columns together, or give them fewer and coarser cells"
        words = f"a model of these columns would have {tree.cells:,} cells, above the limit of {LIMIT:,}"
        raise refused("domain", words, where, fix)


def delta_of(declaration: Declaration, epsilon: Fraction, delta: Number | None) -> Fraction:
    """δ in all: as named, else the same share of the budget's as ε is."""
    budget = declaration.budget
    if budget.delta <= budget.keys_delta or budget.keys_delta == 0:
        fix = "declare a budget with delta = 1e-6 (a tenth of it is kept for private keys, which publishing needs too)"
        raise refused("delta", "publishing a table needs a delta", "delta", fix)
    if delta is None:
        return price_delta(Filter(budget.epsilon, budget.delta, budget.keys_delta), epsilon)
    known = amount("delta", delta, f"delta={show(budget.delta / 10)}")
    if not 0 < known < 1:
        raise refused("delta", "delta must lie between 0 and 1", "delta", f"write delta={show(budget.delta / 10)}")
    return known


def finder_of(
    declaration: Declaration, table: Table, one: PublishedColumn, mu_squared: Fraction, delta: Fraction
) -> tuple[Table, Measurement]:
    """What finds the values of a column: noisy numbers of persons, shown above a threshold; and what it reads.

    No selection of this loss shows more of a value with n persons. If one shows it with probability π(n), π(1) ≤ δ, and
    tables that differ by a person are told apart no better than N(0, 1) and N(μ, 1) are, Φ⁻¹(π(n + 1)) ≤ Φ⁻¹(π(n)) + μ
    (Dong, Roth & Su 2019, Definition 2.6), so π(n) ≤ Φ(Φ⁻¹(δ) + (n − 1)·μ): what the threshold does, but for rounding.
    Optimal partition selection for (ε, δ), which adds about ε² to μ², needs two or three times as many persons."""
    name, source = (text.replace('"', '""') for text in (one.column.name, table.name))
    question = lower(f'SELECT "{name}" FROM "{source}" GROUP BY "{name}"', declaration, lambda *_: [])
    (part,) = question.plan.parts
    bound = sensitivity(question.plan.root, part)
    mechanism = gaussian_threshold(mu_squared, delta, bound.l1)
    return question.table, Measurement(question.plan, (mechanism,), price=Price(Fraction(1), delta))


def cells_of(one: PublishedColumn) -> int:
    """How many cells a column will have, about: the schedule is made before they are found."""
    if one.coded is None:
        return 2 * BINS
    return BINS + 1 if one.looks else one.coded.size


def coded(one: PublishedColumn, cuts: Sequence[Fraction], rules: Sequence[Condition]) -> Binned:
    """A column with bounds as bins between these cuts, and wherever a rule about it begins or ends."""
    along = one.line
    assert along is not None
    ends = {end for rule in rules for end in _ends(along, rule)}
    return along.binned(sorted({*cuts, *(end for end in ends if along.low < end < along.end())}))


def _ends(along: NumberLine, rule: Condition) -> list[Fraction]:
    unit = along.least
    if rule.values is not None:
        said = [along.place(value) for value in rule.values if value is not None]
        return [end for place in said for end in (place, place + unit)]
    assert rule.minimum is not None
    assert rule.maximum is not None
    return [along.place(rule.minimum), along.place(rule.maximum) + unit]


def zeros(
    rules: Rules, coding: Coding, lines: Mapping[str, NumberLine], orders: Orders = ()
) -> dict[tuple[str, ...], NDArray[np.bool_]]:
    """The cells that the owner's rules and orders make impossible, by the columns each is about, in the coding's order.
    Rules about a column that is not published are left out."""
    found: dict[tuple[str, ...], NDArray[np.bool_]] = order_zeros(orders, coding, lines)
    known = {one.column.name: one for one in coding.columns}
    for rule in rules:
        conditions = {condition.column: condition for condition in rule}
        if not set(conditions) <= set(known):
            continue
        clique = tuple(name for name in coding.names if name in conditions)
        cells = np.ones((), bool)
        for name in clique:
            cells = np.multiply.outer(cells, _meets(known[name], conditions[name], lines.get(name)))
        found[clique] = found[clique] | cells if clique in found else cells
    return found


def _meets(one: ListedCells | Binned, condition: Condition, along: NumberLine | None) -> NDArray[np.bool_]:
    """The cells of a column all of whose values meet a condition."""
    meets = np.zeros(one.size, bool)
    if one.null:  # the last cell
        meets[-1] = condition.values is not None and None in condition.values
    if isinstance(one, ListedCells):
        assert condition.values is not None
        for place, value in enumerate(one.values):
            meets[place] = value in condition.values
        return meets
    assert along is not None
    ends = [along.low, *(along.place(cut) for cut in one.cuts), along.end()]
    unit = along.least
    for place, (low, high) in enumerate(itertools.pairwise(ends)):
        if condition.values is not None:
            said = [along.place(value) for value in condition.values if value is not None]
            meets[place] = any(start <= low and high <= start + unit for start in said)
        else:
            assert condition.minimum is not None
            assert condition.maximum is not None
            meets[place] = along.place(condition.minimum) <= low and high <= along.place(condition.maximum) + unit
    return meets


__all__ = ["FINE", "Publication", "coded", "publication", "zeros"]
