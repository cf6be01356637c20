"""The synthetic state: counts that a public distribution answers, which hard questions correct.

What sees rows is `trusted.ring_c.interactive`. Here are the distribution, and which questions it answers:
post-processing and declarations.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.catalog import Declaration
from discreet.catalog.synthetic_state import MOST_CELLS
from discreet.errors import DeclarationError, Fault
from discreet.intervals.expected import expected_errors
from discreet.intervals.noise import CONFIDENCE
from discreet.intervals.watched import Watched
from discreet.plan.measurement import Measurement, Plan, Price
from discreet.plan.outputs import OutputKind
from discreet.procedures.run import digest
from discreet.release.content import ReleaseContent
from discreet.release.estimate import answer
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.expressions import Expression
from discreet.trusted.ring_a.gate import WHOLE
from discreet.trusted.ring_a.measurement import ExactPlan
from discreet.trusted.ring_a.nodes import Aggregate, Filter, LimitRows, Project, Total, TotalKind, project_of, scan_of
from discreet.trusted.ring_a.public_groups import public_groups
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_b.questions import Noisy
from discreet.trusted.ring_b.relations import columns_of
from discreet.trusted.ring_c.coding import Coding, ListedCells, rows_of_person
from discreet.trusted.ring_c.interactive import Answering, Counted, Interactive, Reply, Transcript
from discreet.trusted.ring_c.wholes import key_of

Labels = NDArray[np.int32]
"""Of each cell of the domain, the place of the question's group that counts it; −1 where none does."""

Shares = NDArray[np.float64]

Cells = Callable[[Coding, Expression, Table], NDArray[Any]]
"""Says of each cell of a coding whether a predicate is true there; reads no row."""

_SWEEPS = 20
"""How often the distribution is moved to each of the noisy counts."""

_NULL = 0.001
"""The share of NULL in each column at the beginning."""


def declared_state(declaration: Declaration) -> Interactive | None:
    """The declared state, None where there is none. Raises DeclarationError where it does not go with the types of its
    source."""
    one = declaration.state
    if one is None:
        return None
    table, listed = declaration.tables[one.table], []
    for name in one.columns:
        column = table.column(name)
        values = None if column is None else column.keys()
        if column is None or values is None:
            message = f"the values of {name} are not declared, and are no small range of whole numbers"
            raise _fault(declaration, message, "declare its values, or leave it out")
        listed.append(ListedCells(column, values))
    cells = math.prod(one.size for one in listed)
    if cells > MOST_CELLS:
        message = f"these columns have {cells:,} combinations of values, and a state at most {MOST_CELLS:,}"
        raise _fault(declaration, message, "name fewer columns")
    return Interactive.of(table, Coding(tuple(listed)), one.updates, one.epsilon)


def _fault(declaration: Declaration, message: str, fix: str) -> DeclarationError:
    return DeclarationError([Fault("synthesis.columns", message, fix)], file=str(declaration.file or ""))


@dataclass(frozen=True)
class Distribution:
    """A distribution over the domain's cells, for so many rows: public, so floating point may carry it."""

    shares: Shares
    rows: int

    def counts(self, labels: Labels, groups: int) -> tuple[int, ...]:
        """How many rows each group of a question has by it."""
        masses = np.bincount(labels + 1, weights=self.shares, minlength=groups + 1)[1:]
        return tuple(round(mass * self.rows) for mass in masses.tolist())


def fitted(domain: Coding, rows: int, hard: Sequence[tuple[Labels, Sequence[int]]]) -> Distribution:
    """The distribution after the noisy counts of these hard questions.

    It begins with independent columns, uniform over their values; NULL, which also stands for what is not declared, has
    a thousandth of each. Each count multiplies the shares of the cells that it counts by a factor, and all others by
    another (multiplicative weights), such that the distribution says the count. For an exact count that is the step by
    which its relative entropy from the true distribution falls most, and by at least 2·D², D the error as a share of
    all rows (Pinsker's inequality; a fixed step, as in Dwork & Roth 2014, Theorem 4.10, has D²/4). So for exact counts
    and errors of D or more there would be at most H/(2·D²) hard questions, H the relative entropy at the beginning (a
    little more than ln(cells) at most, but for NULL). Then all counts again in turn, as
    each step moves what earlier counts said a little: iterative proportional fitting (Csiszár 1975). No promise rests
    on how well that goes: whether an answer is right is watched.
    """
    shares: Shares = np.ones(1)
    for one in domain.columns:
        assert isinstance(one, ListedCells)
        own = np.full(one.size, 1.0)
        if one.null and one.values:
            own[-1] = len(one.values) * _NULL / (1 - _NULL)
        shares = np.multiply.outer(shares, own / own.sum()).reshape(-1)
    for _ in range(_SWEEPS):
        for labels, counts in hard:
            shares = _moved(shares, labels, counts, max(1, rows))
    return Distribution(shares, max(0, rows))


def _moved(shares: Shares, labels: Labels, counts: Sequence[int], rows: int) -> Shares:
    """The shares, multiplied in each group of cells such that the groups have these counts; a count is taken for half a
    row at least, as noise may make it less than none, and a cell without any share never gets one."""
    places = labels + 1
    masses = np.bincount(places, weights=shares, minlength=len(counts) + 1)
    wanted = np.maximum(np.array([rows - sum(counts), *counts], float), 0.5)
    there = np.bincount(places, minlength=len(counts) + 1) > 0
    wanted = np.where(there, wanted, 0.0)
    factors = np.where(there & (masses > 0), wanted / wanted.sum() / np.where(masses > 0, masses, 1.0), 0.0)
    moved = shares * factors[places]
    result: Shares = moved / moved.sum()
    return result


@dataclass(frozen=True)
class StateQuestion:
    """A question of counts over the state's columns."""

    plan: Plan
    table: Table

    @property
    def exact(self) -> ExactPlan:
        """What the engine computes of it."""
        return ExactPlan(self.plan.table, self.plan.root, self.plan.keys, self.plan.parts)

    @property
    def total(self) -> ExactPlan:
        """What the engine computes of all rows of the table that count."""
        scan = scan_of(self.plan.root)
        project = Project(scan, (), ())
        child = project if scan.one_row_per_person else LimitRows(project, rows_of_person(self.table))
        return ExactPlan(self.plan.table, Aggregate(child, self.plan.root.totals), (), self.plan.parts)

    @property
    def groups(self) -> int:
        """How many groups it has."""
        return len(public_groups(self.plan.keys, self.plan.root))

    def labels(self, domain: Coding, cells: Cells) -> Labels:
        """Which group counts which cell of the domain."""
        below = project_of(self.plan.root).child
        true = np.ones(domain.sizes) if not isinstance(below, Filter) else cells(domain, below.predicate, self.table)
        labels = np.where(true.reshape(domain.sizes) > 0, 0, -1)
        for key in self.plan.keys:
            axis = domain.names.index(key.name)
            one, groups = domain.columns[axis], key.groups or ()
            assert isinstance(one, ListedCells)
            held = [*one.values, *([None] if one.null else [])]
            place = np.array([groups.index(value) if value in groups else -1 for value in held])
            place = place.reshape([-1 if at == axis else 1 for at in range(len(domain.sizes))])
            labels = np.where((labels < 0) | (place < 0), -1, labels * len(groups) + place)
        return labels.reshape(-1).astype(np.int32)


def state_question(plan: Plan, table: Table, whole: Interactive) -> StateQuestion | None:
    """The question, where a state can answer it: counts of the rows of its table in public groups, with conditions on
    its columns alone."""
    names, project = set(whole.domain.names), project_of(plan.root)
    usual = {output.kind for output in plan.outputs if not output.hidden} <= {OutputKind.KEY, OutputKind.COUNT}
    if not usual or table != whole.table or plan.private or plan.specials or plan.ranges or plan.least != 1:
        return None
    if len(plan.parts) != 1 or plan.root.totals != (Total(TotalKind.ROWS),) or scan_of(plan.root).relation is not None:
        return None
    read = {key.name for key in plan.keys}
    read |= columns_of(project.child.predicate) if isinstance(project.child, Filter) else frozenset()
    try:
        Counted(ExactPlan(plan.table, plan.root, plan.keys, plan.parts), ()).hold(whole)
    except ValueError:
        return None
    return StateQuestion(plan, table) if read <= names else None


class SyntheticState:
    """A declared state: which questions it answers, how far off, and the answers."""

    def __init__(self, answering: Answering, cells: Cells, price: Price) -> None:
        self._answering, self._cells, self.price = answering, cells, price
        self._hard, self._fitted = -1, Distribution(np.zeros(0), 0)
        self._replies: dict[str, Reply] = {}
        self._read = 0

    @property
    def whole(self) -> Interactive:
        """What was declared."""
        return self._answering.whole

    @property
    def begun(self) -> bool:
        """Whether it was charged."""
        return self._answering.begun

    @property
    def over(self) -> bool:
        """Whether it answers no more new questions."""
        return self._answering.over

    def begin(self, question: StateQuestion, rows: object) -> bool:
        """Charges the whole, where that has not happened, as such a question is asked; whether it happened now. Raises
        BudgetError (nothing was spent), EngineError, LedgerError."""
        return self._answering.begin(Counted(question.total, (0,)), question=self.in_words, rows=rows)

    @property
    def in_words(self) -> str:
        """The state, for the ledger."""
        whole = self.whole
        return f"synthetic state: counts of {whole.table.name} over {', '.join(whole.domain.names)}"

    def used(self) -> str:
        """How many of its updates were used, in words."""
        return f"{self._answering.transcript().updates} of {self.whole.updates} updates used"

    def foretold(self, priced: Measurement, *, hard: bool = False) -> Measurement:
        """A question's measurement as the state answers it: from the distribution, or counted where it was hard."""
        mechanism = self.whole.count if hard else Watched(self.whole)
        return Measurement(plan=priced.plan, mechanisms=(mechanism,), price=Price(0 * priced.price.epsilon))

    def errors(self, priced: Measurement, miss: float = 1 - CONFIDENCE) -> dict[str, float]:
        """How far off its answer to a question may be, hard or not."""
        one, other = (expected_errors(self.foretold(priced, hard=hard), miss) for hard in (False, True))
        return {name: max(error, other[name]) for name, error in one.items()}

    def known(self, question: StateQuestion, numbers: str) -> Reply | None:
        """The stored reply to this very question of the same snapshot."""
        replies = self._answering.transcript().replies
        for one in replies[self._read :]:
            self._replies[one.said.split()[0]] = one
        self._read = len(replies)
        return self._replies.get(_asked(question, numbers))

    def remember(self, reply: Reply, *, request: str, text: str, analyst: str) -> None:
        """Keeps that a request got this reply. Raises QuestionError where it belongs to something else."""
        self._answering.remember(reply, request=request, question=text, analyst=analyst)

    def got(self, question: StateQuestion, key: str) -> Reply | None:
        """The reply that is stored under a key of the ledger, of whatever snapshot; None where it is none, or that of
        another question."""
        for reply in self._answering.transcript().replies if key.startswith(WHOLE) else ():
            if key_of(self.whole, reply.number) == key:
                return reply if reply.said.split()[-1] == _form(question) else None
        return None

    def reply(
        self, question: StateQuestion, *, text: str, analyst: str, numbers: str, rows: object, due: Callable[[], None]
    ) -> Reply | None:
        """The reply to a question, of which the stored one is given where there is one; None where none is given any
        more. Raises EngineError, LedgerError."""
        stored = self.known(question, numbers)
        if stored is not None or self.over:
            return stored
        labels = question.labels(self.whole.domain, self._cells)
        public = self._taken_in(self._answering.transcript()).counts(labels, question.groups)
        said = f"{_asked(question, numbers)} {_form(question)}"
        asked = Counted(question.exact, public, said, _written(labels))
        return self._answering.ask(asked, question=text, analyst=analyst, rows=rows, due=due)

    def _taken_in(self, transcript: Transcript) -> Distribution:
        """The distribution after all that was released."""
        hard = [one for one in transcript.replies if one.kept is not None]
        if len(hard) != self._hard:
            counts = [(_labels(one.kept or ""), one.counts) for one in hard]
            self._fitted, self._hard = fitted(self.whole.domain, transcript.rows or 0, counts), len(hard)
        return self._fitted

    def content(self, question: StateQuestion, reply: Reply, priced: Measurement, together: int) -> ReleaseContent:
        """The answer, with what it is made of."""
        made = self.foretold(priced, hard=reply.hard)
        groups = tuple(public_groups(question.plan.keys, question.plan.root))
        content = answer(made, Noisy(groups, ((reply.counts,),)), question.table, together=together)
        wide = self.whole.count.half_width(CONFIDENCE) if reply.hard else self.whole.half_width(1 - CONFIDENCE)
        how = "counted for the synthetic state" if reply.hard else "from the synthetic state"
        more = {"synthetic_state": f"{how}, ±{wide:,}; {self.used()}"}
        return replace(content, more={**content.more, **more})

    def said_before(self) -> str:
        """What is said of its answers before they are asked for."""
        wide = self.whole.half_width(1 - CONFIDENCE)
        begins = "" if self.begun else f"; it begins with this question, at ε {show(self.price.epsilon)} once"
        return f"from the synthetic state, ±{wide:,}; {self.used()}{begins}"


def _asked(question: StateQuestion, numbers: str) -> str:
    """What makes two questions the same."""
    return digest(repr(question.plan.root), repr(question.plan.keys), numbers)


def _form(question: StateQuestion) -> str:
    """The same, whatever rows are there."""
    return digest(repr(question.plan.root), repr(question.plan.keys))


def _written(labels: Labels) -> str:
    return base64.b64encode(zlib.compress(labels.astype("<i4").tobytes(), 9)).decode()


def _labels(text: str) -> Labels:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i4").astype(np.int32)
