"""One run that publishes several tables: the persons first, then rows below rows that are made already."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.markov import Clique, Domain, MarginalMeasurement, MarkovRandomField
from discreet.release.content import ReleaseContent
from discreet.synthesis.adaptive import EndedEarly, Progress, SynthesisResult
from discreet.synthesis.conditional import dependences, drawn
from discreet.synthesis.content import content, declaration_of
from discreet.synthesis.decode import drawn_values
from discreet.synthesis.packed import pack, unpack
from discreet.synthesis.publication import Publication, zeros
from discreet.synthesis.related import RelatedTable
from discreet.synthesis.row_before import ExpectedBefore, RowSequences, cells_before
from discreet.synthesis.run import FoundCells, InTurns, Tell, Turn, found_cells, synthesised
from discreet.synthesis.several import SeveralPublication
from discreet.trusted.ring_c.coding import Binned, Coding, ListedCells
from discreet.trusted.ring_c.marginals import Marginals

Codes = NDArray[np.int64]
_KINDS = {"inside": "inside", "across": "across", "row before": "before", "rows below": "rows"}


@dataclass(frozen=True, eq=False)
class _Made:
    """A table that is made: its cells, its rows as cells, what they hold, and whose each is."""

    coding: Coding
    codes: Mapping[str, Codes]
    content: ReleaseContent
    counts: tuple[Codes, ...]
    persons: Codes


def published(call: SeveralPublication, run: Marginals, turn: Turn, tell: Tell) -> ReleaseContent:
    """The tables, in a run that was opened for them. The engine is asked in a `turn` for each step. Where it is
    interrupted after the first marginals were measured, there are the tables that were begun until then;
    KeyboardInterrupt where there are none."""
    made: dict[str, _Made] = {}
    whole = sum(len(one.schedule.singles) + len(one.schedule.rounds) for one in call.each)
    for place, (one, each) in enumerate(zip(call.tables, call.each, strict=True)):
        before = sum(len(other.schedule.singles) + len(other.schedule.rounds) for other in call.each[:place])
        told = _told(tell, before, whole, place, len(call.each))
        try:
            table = _table(one, each, InTurns(run, turn, one.view, one.evenly), made, call, told)
        except EndedEarly:  # before anything was measured of it
            table = None
        if table is not None:
            made[one.table.name] = table
        if table is None or table.content.more["ended_early"]:
            break
    if not made:  # interrupted before there was anything to keep
        raise KeyboardInterrupt
    return _together(call, made)


def _told(tell: Tell, before: int, whole: int, place: int, tables: int) -> Tell:
    """A table's steps as steps of all tables."""

    def told(step: Progress) -> None:
        tell(replace(step, step=before + step.step, steps=whole, spent=(place + step.spent) / tables))

    return told


def _table(
    one: RelatedTable,
    each: Publication,
    run: InTurns,
    made: Mapping[str, _Made],
    call: SeveralPublication,
    tell: Tell,
) -> _Made | None:
    """Finds cells, chooses and measures marginals, and draws rows: of persons as they come, of others below those that
    are made. None where it is interrupted before anything is measured."""
    found, numbers = found_cells(each, run, one.time), [each.column.name for each in one.counts]
    if one.parent is None:
        coding, parents = found.coding, np.zeros(0, np.int64)
        run.code(coding)
        settled = _Settled(one, coding, call)
        result = synthesised(each, coding, run, numbers, counted=found.counted, amend=settled.amend, tell=tell)
    else:
        above, given, parents = _above(one, made, call)
        behind = [cells_before(cells) for cells in found.coding.columns if cells.column.name in one.before]
        coding = Coding((*above, *found.coding.columns, *behind))
        run.code(coding)
        persons = made[one.parent].persons[parents]
        rows = np.bincount(persons)[persons] if len(persons) else persons
        weights = one.moved // np.maximum(rows, 1) if one.evenly else np.ones(len(rows), np.int64)
        followed = _followed(one, coding, parents) if behind else None
        settled = _Settled(one, coding, call, persons)
        result = _below(each, coding, given, weights, run, numbers, tell, followed, settled)
    if not result.measurements and not result.complete:
        return None
    codes = {name: result.rows[:, place] for place, name in enumerate(coding.names)}
    held = _content(one, each, found, coding, result, parents, settled.numbers)
    whose = np.arange(len(result.rows)) if one.parent is None else made[one.parent].persons[parents]
    return _Made(coding, codes, held, tuple(settled.numbers[name] for name in numbers), whose)


def _above(
    one: RelatedTable, made: Mapping[str, _Made], call: SeveralPublication
) -> tuple[list[ListedCells | Binned], dict[str, Codes], Codes]:
    """The columns that stand beside a table's rows: their cells, and the cells of each row to be made; and to which
    row above it refers."""
    assert one.parent is not None
    parent = made[one.parent]
    above = next(table for table in call.tables if table.table.name == one.parent)
    counts = parent.counts[above.below.index(one.table.name)]
    parents = np.repeat(np.arange(len(counts)), counts)
    cells: list[ListedCells | Binned] = []
    given = {}
    for column in one.above:
        name = column.column if column.table == one.parent else column.name
        if name in parent.codes:  # it may have been left out
            known = next(cell for cell in parent.coding.columns if cell.column.name == name)
            cells.append(replace(known, column=replace(known.column, name=column.name)))
            given[column.name] = parent.codes[name][parents]
    return cells, given, parents


def _below(
    each: Publication,
    coding: Coding,
    given: Mapping[str, Codes],
    weights: Codes,
    run: InTurns,
    numbers: Sequence[str],
    tell: Tell,
    followed: RowSequences | None,
    settled: _Settled,
) -> SynthesisResult:
    """Rows beside what is given of each. How the given columns depend on one another is taken from what is given."""
    domain = Domain(coding.names, coding.sizes)
    exact = Fraction(each.schedule.moved)
    assumed = [MarginalMeasurement(clique, counts, exact) for clique, counts in dependences(domain, given, weights)]
    generator = np.random.default_rng(secrets.randbits(128))
    lines = {one.column.name: one.line for one in each.columns if one.line is not None}
    empty, totals = {} if followed is None else followed.zeros, each.totals
    possible = zeros(each.impossible, coding, lines, each.orders)
    rules = [*possible, *empty, *({} if totals is None else totals.zeros)]
    expected = None
    if followed is not None and len(weights):
        expected = ExpectedBefore(followed, float(weights[followed.first].sum() / weights.sum()))

    def draw(model: MarkovRandomField, measured: Sequence[Clique]) -> Codes:
        rows = drawn(model, given, weights, measured, generator, rules, followed)
        if totals is None:
            return rows
        rows = totals.met(model, rows, possible)
        for name, codes in ({} if followed is None else followed.behind(_by_name(coding, rows))).items():
            rows[:, coding.names.index(name)] = codes
        return rows

    result = synthesised(
        each,
        coding,
        run,
        numbers,
        empty=empty,
        expected=expected,
        assumed=assumed,
        draw=draw,
        amend=settled.amend,
        tell=tell,
    )
    if not run.evenly:
        return result
    # of counts of rows nothing is known by what was measured of weights: their distances are left
    return replace(result, evidence=replace(result.evidence, measurements=(), certain=0))


def _followed(one: RelatedTable, coding: Coding, parents: Codes) -> RowSequences:
    """How the rows of a table follow one another: those below one row, one after another."""
    assert one.time is not None
    before = {own: name for own, name in one.before.items() if own in coding.names}
    return RowSequences(Domain(coding.names, coding.sizes), before, one.time, parents)


@dataclass
class _Settled:
    """How many rows of each table below are made for each row: `numbers`, by the columns that say it, once rows are
    made. `persons` says whose each row is; None where each is another's."""

    one: RelatedTable
    coding: Coding
    call: SeveralPublication
    persons: Codes | None = None
    numbers: dict[str, Codes] = field(default_factory=dict)

    def amend(self, rows: Codes) -> Codes:
        """The rows with such numbers as there must be (`rows_below`) in place of those that were drawn."""
        found, generator = rows.copy(), np.random.default_rng(secrets.randbits(128))
        whose = np.arange(len(rows)) if self.persons is None else self.persons
        for each, table in zip(self.one.counts, self.one.below, strict=True):
            place = self.coding.names.index(each.column.name)
            cells, line = self.coding.columns[place], each.line
            assert isinstance(cells, Binned)
            assert line is not None
            none = rows[:, place] == cells.size - 1
            values = np.where(none, 0, drawn_values(cells, rows[:, place], line, None, generator))
            numbers = self.call.below[table].settled(values, whose, generator)
            cuts = [int(line.place(cut)) for cut in cells.cuts]
            found[:, place] = np.where(numbers, np.searchsorted(cuts, numbers, side="right"), cells.size - 1)
            self.numbers[each.column.name] = numbers
        return found


def _by_name(coding: Coding, rows: Codes) -> dict[str, Codes]:
    return {name: rows[:, place] for place, name in enumerate(coding.names)}


def _content(
    one: RelatedTable,
    each: Publication,
    found: FoundCells,
    coding: Coding,
    result: SynthesisResult,
    parents: Codes,
    numbers: Mapping[str, Codes],
) -> ReleaseContent:
    """What is known of one table: its rows under made-up keys, what was measured, and bounds of its view's errors."""
    followed = _followed(one, coding, parents) if one.before else None
    whole = content(each, coding, found.looks, {**one.left_out, **found.left_out}, result, followed, one.evenly)
    columns = {column.name: column for column in one.table.columns}
    own = {
        each.column.name: whole.more["table"][each.column.name]
        for each in one.columns
        if each.column.name in coding.names
    }
    sums = {column.name: column for column, _ in each.sums}
    own |= {name: whole.more["table"][name] for name in sums}
    ids = {name: {"keys": pack(np.arange(1, len(result.rows) + 1))} for name in one.keys}
    if one.reference is not None:
        ids[one.reference] = {"keys": pack(parents + 1)}
    names = [name for name in columns if name not in sums and (name in own or name in ids)]
    cells = {cell.column.name: cell for cell in coding.columns}
    said = Coding(tuple(cells[name] if name in own else ListedCells(columns[name], ()) for name in names))
    names += sums
    above, counts = {each.name for each in one.above}, set(numbers)
    behind = set(one.before.values())
    words = [] if followed is None else [f"rows that refer to one row of {one.parent} stand in the order of {one.time}"]
    more = {
        **whole.more,
        "table": {name: {**own, **ids}[name] for name in names},
        "counts": {name: {"whole": pack(one), "none": pack(one == 0)} for name, one in numbers.items()},
        "declaration": declaration_of(each, said),
        "marginals": [
            {**bound, "about": _about(bound["columns"], above, counts, behind)} for bound in whole.more["marginals"]
        ],
        "evenly": one.evenly,
        "measured": [_in_persons(measured, one.moved) for measured in whole.more["measured"]],
        "keys": list(one.keys),
        "refers": {} if one.reference is None else {"column": one.reference, "table": one.parent, "key": one.target},
    }
    types = {name: str({**columns, **sums}[name].type) for name in names}
    return replace(whole, columns=names, types=types, bounds=[*whole.bounds, *words], more=more)


def _in_persons(measured: Mapping[str, Any], moved: int) -> dict[str, Any]:
    """What was measured of weights, in units of what a person weighs."""
    counts = np.rint(unpack(measured["counts"]) / moved).astype(np.int64)
    return {**measured, "sigma": measured["sigma"] / moved, "counts": pack(counts)}


def _about(columns: Sequence[str], above: set[str], counts: set[str], behind: set[str]) -> str:
    """What a bound is about: inside a table, across a key, the row before, or how many rows below refer to a row."""
    if behind & set(columns):
        return "before"
    if above & set(columns):
        return "across" if set(columns) - above else "above"
    return "rows" if counts & set(columns) else "inside"


def _together(call: SeveralPublication, made: Mapping[str, _Made]) -> ReleaseContent:
    """One release: a line for each table, and each table with all that is known of it."""
    rows, tables, words, mechanisms = [], {}, [], []
    in_time = any(one.time is not None for one in call.tables)
    kinds = {column: about for column, about in _KINDS.items() if in_time or about != "before"}
    for name, one in made.items():
        plain: dict[str, Any] = one.content.to_dict()
        tables[name] = plain
        marginals = one.content.more["marginals"]
        found = {column: _middle(marginals, about) for column, about in kinds.items()}
        rows.append({"table": name, "rows": one.content.more["rows_drawn"], **found})
        words += [f"{name}: {line}" for line in one.content.bounds]
        mechanisms += [{**each, "columns": f"{name}: {each['columns']}"} for each in one.content.mechanisms]
    return ReleaseContent(
        columns=["table", "rows", *kinds],
        types={"table": "text", "rows": "integer", **dict.fromkeys(kinds, "number")},
        rows=rows,
        cost=call.cost,
        mechanisms=mechanisms,
        bounds=words,
        more={"tables": tables, "not_made": [one.table.name for one in call.tables if one.table.name not in made]},
    )


def _middle(marginals: Sequence[Mapping[str, Any]], about: str) -> float | None:
    """The middle one of the bounds of pairs of this kind, as a part of all rows; of numbers of rows, of them alone."""
    size = 1 if about == "rows" else 2
    found = sorted(one["share"] for one in marginals if one["about"] == about and len(one["columns"]) == size)
    return found[len(found) // 2] if found else None
