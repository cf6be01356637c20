"""`curator.multiplicative_weights`: private multiplicative weights, which answer many counts at one price."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from discreet.catalog import Declaration
from discreet.errors import refused
from discreet.procedures import arguments
from discreet.selection.open_run import OpenRun
from discreet.sql import Question
from discreet.textbook import OnlineMultiplicativeWeights, Universe
from discreet.trusted.ring_a.exact import Number
from discreet.trusted.ring_a.expressions import Expression
from discreet.trusted.ring_a.nodes import Aggregate, Filter, LimitRows, Project, Scan, Total, TotalKind
from discreet.trusted.ring_a.table import Column, Table
from discreet.trusted.ring_b.relations import columns_of
from discreet.trusted.ring_c.coding import Coding, ListedCells, rows_of_person
from discreet.trusted.ring_c.weighing import Weighing

_refused = partial(refused, "multiplicative-weights")

MOST_CELLS = 1 << 16
"""Of the universe of a run."""


@dataclass(frozen=True)
class Weighted:
    """A checked call: the cells that rows are counted in, and the construction that answers."""

    table: Table
    coding: Coding
    construction: OnlineMultiplicativeWeights

    @property
    def question(self) -> str:
        """The call in words, for the owner's ledger."""
        names = ", ".join(self.coding.names)
        return f"multiplicative weights over {names} of {self.table.name}, {self.construction.questions} questions"


def weighted(
    declaration: Declaration,
    table: str,
    columns: Sequence[str] | None,
    *,
    epsilon: Number | None,
    questions: int,
    alpha: Number,
    beta: Number,
) -> Weighted:
    """The checked call. Raises QuestionError; nothing is spent and no row is read."""
    known = arguments.private_table(declaration, table)
    price = arguments.epsilon_of(declaration, epsilon)
    coding = Coding(tuple(_listed(column) for column in arguments.columns_of(known, columns, "columns")))
    cells = math.prod(coding.sizes)
    if cells > MOST_CELLS:
        message = f"these columns have {cells:,} combinations of values, and a run at most {MOST_CELLS:,}"
        raise refused("columns", message, "columns", "name fewer columns")
    try:
        rows = rows_of_person(known)
    except ValueError:
        fix = "declare rows_per_person"
        raise refused("table", "the rows of a person are not limited", "table", fix) from None
    construction = OnlineMultiplicativeWeights(
        epsilon=price,
        beta=Fraction(arguments.amount("beta", beta, "beta=0.05")),
        universe=Universe(range(cells)),
        questions=questions,
        alpha=arguments.amount("alpha", alpha, "alpha=0.1"),
        rows_per_person=rows,
    )
    return Weighted(known, coding, construction)


def _listed(column: Column) -> ListedCells:
    values = column.keys()
    if values is None:
        fix = "declare its values, or leave it out"
        message = f"the values of {column.name!r} are not declared"
        raise refused("columns", message, "columns", fix)
    return ListedCells(column, values)


class WeightsRun(OpenRun[int]):
    """An open run, in which `ask` answers one count after another.

    The whole price was charged when it opened, however many are asked. `half_width` is what all answers are within, in
    rows, with probability 1 − beta.

    Questions are "SELECT COUNT(*) FROM table WHERE …" over the columns of the run; there, a value that is not declared
    counts as NULL. Rows are those that the table had when the run opened. Use it in a `with` block, or call `close`:
    then its answers are stored in the ledger. A run that a crash ends stays charged without an answer.
    """

    def __init__(self, weighing: Weighing, call: Weighted, lower: Callable[[str], Question]) -> None:
        super().__init__(weighing, "multiplicative_weights", "answers")
        self._weighing, self._call, self._lower = weighing, call, lower

    @property
    def ended(self) -> bool:
        """Whether nothing more can be asked."""
        return self._over

    @property
    def answers(self) -> list[tuple[str, int]]:
        """The questions so far with their answers."""
        return list(self._given)

    @property
    def half_width(self) -> float:
        """The error, in rows, that no answer exceeds with probability 1 − beta."""
        return self._weighing.half_width

    def ask(self, question: str) -> int:
        """Gives the noisy count, in rows.

        Raises QuestionError where the question is no count over the columns of the run, or the run has ended;
        EngineError where it failed, which ends the run; LedgerError.
        """
        checked = self._lower(question)
        predicate = self._predicate(checked)
        return self._answered(question, lambda: self._weighing.ask(predicate))

    def _predicate(self, question: Question) -> Expression | None:
        """Which rows are counted. Raises QuestionError on anything else than such a count."""
        plan, table = question.plan, self._call.table
        self._unpriced(question)
        root = plan.root
        usual = [output.kind for output in plan.outputs] == ["count"] and not plan.keys and plan.having is None
        if not usual or plan.specials or not isinstance(root, Aggregate) or root.totals != (Total(TotalKind.ROWS),):
            raise _refused("a run answers one count at a time", "SELECT", f"write SELECT COUNT(*) FROM {table.name}")
        project = root.child.child if isinstance(root.child, LimitRows) else root.child
        assert isinstance(project, Project)
        below = project.child
        scan = below.child if isinstance(below, Filter) else below
        assert isinstance(scan, Scan)
        if scan.relation is not None or question.table.name != table.name:
            raise _refused(f"the run is over the table {table.name} alone", "FROM", f"write FROM {table.name}")
        predicate = below.predicate if isinstance(below, Filter) else None
        others = columns_of(predicate) - set(self._call.coding.names) if predicate is not None else frozenset()
        if others:
            message = f"{', '.join(sorted(others))} is not a column of the run"
            raise _refused(message, "WHERE", f"ask about {', '.join(self._call.coding.names)}")
        return predicate
