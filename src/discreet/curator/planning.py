"""A text, planned: its measured tables and the query around them, held against all that is known without a price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from discreet.catalog import Declaration, Table
from discreet.engines import chosen
from discreet.engines.protocol import Trial
from discreet.errors import QuestionError
from discreet.holdings import Holdings
from discreet.plan.measurement import Measurement
from discreet.plan.work import bound
from discreet.postprocessing import computing
from discreet.postprocessing.outer import OuterQuery, ReleasedTable, outer_query, released_tables
from discreet.reading import Reading
from discreet.sql import Question, lower_tree
from discreet.sql.asked import Asked
from discreet.sql.compiled import Askable, as_text
from discreet.sql.layers import LayeredQuestion, MeasuredTable, filled, layers, stand_in
from discreet.sql.limits import frames, room, too_deep
from discreet.sql.refusals import several_rows
from discreet.trusted.ring_a.nodes import Root
from discreet.trusted.ring_a.table import Value

_FEW_VALUES = 10_000
"""Plans with more values of public tables and declared groups are not kept."""

_FURTHER = 40
"""Calls in each other from where a question is tried to where it is measured are fewer than this."""


@dataclass(frozen=True)
class PlannedLayers:
    """A question without its price. `outer` is computed from what its parts release, with `values` that some parts wait
    for; `tables` are what both may read, and `data` is known of them beforehand: declared groups and public tables."""

    asked: Asked
    layers: LayeredQuestion
    outer: OuterQuery | None = None
    values: Mapping[str, OuterQuery] = field(default_factory=dict)
    tables: Mapping[str, ReleasedTable] = field(default_factory=dict)
    data: Mapping[str, computing.Columns] = field(default_factory=dict)
    known: Mapping[str, Sequence[Value | None]] = field(default_factory=dict)
    """Those of the values that are of public tables alone."""
    kinds: Sequence[str] = ()
    """The types of the columns of the outer query."""

    @property
    def small(self) -> bool:
        """Whether it may be kept."""
        return sum(len(column) for one in self.data.values() for column in one.values()) <= _FEW_VALUES

    @property
    def computed(self) -> object:
        """What a question with an outer query is, however it is spelled: its tables, and all that is computed of
        them."""
        outer = None if self.outer is None else (self.outer.text, [name for name, _ in self.outer.columns])
        waited = {name: (one.text, self.layers.values[name].many) for name, one in self.values.items()}
        return [(one.name, one.text) for one in self.layers.measured], outer, waited, self.layers.groups


@dataclass(frozen=True, eq=False, repr=False)
class Planner:
    """Reads texts and plans them. Of rows it knows those of public tables alone; statements are tried on the `twin`,
    which has none."""

    declaration: Declaration
    reading: Reading
    holdings: Holdings
    twin: Trial
    outer: computing.OuterEngine

    def asked(self, question: Askable, dialect: str | None = None) -> Asked:
        """A question as it is asked now."""
        return Asked.of(as_text(question), dialect, self.declaration)

    def plan(self, text: Asked) -> PlannedLayers:
        """A question without its price: its measured tables, and its outer query, which was tried on tables without
        rows."""
        read = self.read(text)
        if read.outer is None:
            return read
        tables = read.tables
        data = {name: computing.rows_of(tables[name], group.rows) for name, group in read.layers.groups.items()}
        for name in {name for query in (read.outer, *read.values.values()) for name in query.tables}:
            declared = self.declaration.table(tables[name].name)
            if declared is not None and declared.public:
                data[name] = computing.rows_of(tables[name], self.holdings.public_rows(declared))
        known = self._foreseen(read, data)
        kinds = self.outer.compute(read.outer, tables, {}).kinds
        return replace(read, data=data, known=known, kinds=kinds)

    def read(self, text: Asked) -> PlannedLayers:
        """The layers of a question, held against all that can be known before a price; the outer query, and those that
        give values to measured tables. No public table is read for them."""
        found = layers(self.reading.tree(text), self.declaration, self.holdings.public_values, text.day)
        for one in found.measured:
            self._hold(one.question)
        if found.outer is None:
            return PlannedLayers(text, found)
        tables = released_tables(found, self.declaration)
        values = {name: outer_query(one.query, ("*",), tables, chosen.OUTER) for name, one in found.values.items()}
        outer = outer_query(found.outer, found.names, tables, chosen.OUTER)
        return PlannedLayers(text, found, outer, values, tables)

    def _foreseen(
        self, read: PlannedLayers, data: Mapping[str, computing.Columns]
    ) -> dict[str, Sequence[Value | None]]:
        """The values that public tables alone give; the others are tried by their types. Raises QuestionError on what
        will not fit, before anything is paid."""
        found = read.layers
        known: dict[str, Sequence[Value | None]] = {}
        kinds: dict[str, str] = {}
        for name, query in read.values.items():
            free = not any(one.name in query.tables for one in found.measured)
            computed = self.outer.compute(query, read.tables, data if free else {})
            kinds[name] = computing.kind_of(query, computed)
            if free:
                if not found.values[name].many and len(computed.rows) > 1:
                    raise several_rows()
                known[name] = computing.value_of(computed, many=found.values[name].many)
        for one in found.measured:
            for number in range(2) if one.waits else ():
                tried = {name: known.get(name, (stand_in(kinds[name], number),)) for name in one.waits}
                try:
                    filled(one, tried, self.declaration, self.holdings.public_values)
                except QuestionError as error:
                    if error.code != "no-group" and (number == 0 or error.code == "type"):
                        raise
        return known

    def one_table(self, question: Askable) -> Question:
        """A question that is one measured table, as it is asked now."""
        return self.lowered(self.asked(question))

    def lowered(self, text: Asked) -> Question:
        """A question that is one measured table."""
        tree = self.reading.tree(text)  # refuses what takes too much to be read, lowered or written
        checked = lower_tree(tree, self.declaration, self.holdings.public_values, text.day)
        self._hold(checked)
        return checked

    # what waits for released values

    def release_values(
        self,
        planned: PlannedLayers,
        one: MeasuredTable,
        data: Mapping[str, computing.Columns],
        values: dict[str, Sequence[Value | None]],
    ) -> list[str]:
        """Adds the values that a part waits for, from what the parts before it released. Gives what is to be said."""
        notes: list[str] = []
        for name in one.waits:
            if name not in values:
                value, query = planned.layers.values[name], planned.values[name]
                computed = self.outer.compute(query, planned.tables, data, paid=True)
                values[name] = computing.value_of(computed, many=value.many)
                notes += computing.first_of(computed, many=value.many)
        return notes

    def filled(self, one: MeasuredTable, values: Mapping[str, Sequence[Value | None]]) -> Question:
        """A part of a question with the values that it waits for. Raises QuestionError where nothing is measured of it
        then, as where no group can be equal to such a value."""
        question = filled(one, values, self.declaration, self.holdings.public_values)
        self._hold(question)
        if question.plan.private and not one.question.plan.private:
            fix = "declare values for the grouped columns"
            raise QuestionError(
                "price", "with it the groups are private, and no delta is paid", where="GROUP BY", fix=fix
            )
        return question

    # what the engine can do

    def _hold(self, checked: Question) -> None:
        """Refuses what the engine would have to do too much for, or cannot do."""
        if checked.plan.ranges and frames(checked.plan.roots) + _FURTHER > room():
            raise too_deep()  # once bounds are found, the rest is planned and written further down, and is paid for
        self.hold(checked.plan.roots, checked.table)

    def hold(self, roots: Sequence[Root], table: Table) -> None:
        """Refuses statements that are too much for the engine, or that it cannot compute."""
        bound(roots, table, self.declaration.limits, list(self.declaration.tables.values()), self.holdings)
        try:  # what is too deep for this call of the caller's, or the engine cannot compute, is refused for nothing
            self.twin.hold(roots, table)
        except RecursionError:
            raise too_deep() from None

    def computes(self, measured: Measurement, table: Table) -> bool:
        """Whether the engine can compute a measurement."""
        try:
            self.twin.hold(measured.plan.roots, table)
        except (QuestionError, RecursionError):
            return False
        return True
