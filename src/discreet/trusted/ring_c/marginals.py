"""An open run over marginals: private selection, noisy measurement, and one batch that is reserved before the first row
is read."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from discreet.trusted.ring_a.additive import Gaussian
from discreet.trusted.ring_a.gate import Grant
from discreet.trusted.ring_a.loss import Loss, Single
from discreet.trusted.ring_a.measurement import reads
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_b.further_losses import BoundedRange
from discreet.trusted.ring_b.questions import Noisy, QuestionMeasurement, noisy_answer
from discreet.trusted.ring_b.selection import ExponentialMechanism
from discreet.trusted.ring_c.coded import UNIT, CodedRows, Marginal
from discreet.trusted.ring_c.coding import Coding, rows_of_person
from discreet.trusted.ring_c.declared import Declared
from discreet.trusted.ring_c.engine import CodedEngine

Integers = NDArray[np.int64]
Result = TypeVar("Result")
_CELLS_AT_ONCE, _MARGINALS_AT_ONCE = 1 << 22, 16  # in one request, which has the time of one question


@dataclass(frozen=True)
class Declaring:
    """A run over marginals of one table: the batch of all its steps, fixed before the first."""

    table: Table
    batch: Declared

    @property
    def tables(self) -> tuple[Table, ...]:
        """The one table, as a run over several has them."""
        return (self.table,)

    @property
    def loss(self) -> Loss:
        """Of the whole batch, whatever is measured of it."""
        return self.batch.loss


@dataclass(frozen=True)
class DeclaringSeveral:
    """A run over marginals of several tables, one after another: one batch of all their steps, fixed before the first.

    A table may be a relation of declared ones: a view with the persons' attributes beside each row.
    """

    tables: tuple[Table, ...]
    batch: Declared

    def __post_init__(self) -> None:
        if type(self.tables) is not tuple or not self.tables:
            raise ValueError("the tables of a run are fixed before its first step")

    @property
    def table(self) -> None:
        """None: the run reads several."""
        return None

    @property
    def loss(self) -> Loss:
        """Of the whole batch, whatever is measured of it."""
        return self.batch.loss


Opened = Declaring | DeclaringSeveral


class Marginals:
    """Measures marginals of coded rows, in any order, each step at a price that the batch declared.

    Unit: a person, with at most R rows that count (`rows_of_person`); the engine leaves out all others. Neighbours:
    one person added or removed. Every row is in one cell of each marginal or left out of all (`ring_c.coding`),
    so a marginal moves by at most R in ℓ1 and in ℓ2.

    Of several tables each has an R of its own: what a step costs follows from that of the table whose rows are coded
    now, in the person's presence or absence in all of them at once. A relation of declared tables is held to the rule
    that rows which carry a person depend on this person's rows alone (`ring_b.relations.check`), and its rows are
    limited to R above all joins (`ring_c.coded`): so the same holds of it, whatever the person has in other tables.
    Where a person has at most one row there, as in a view of persons with the number of their rows elsewhere, R is 1.

    Rows that are coded `evenly` have weights, of which a person's add up to at most UNIT (`ring_c.coded`); then
    `measure` and `select` are of sums of weights in place of counts, UNIT stands where R does, and sigma, predictions
    and scores are in weights. A person moves such a marginal by non-negative weights that add up to at most UNIT, so by
    at most UNIT in ℓ1 and in ℓ2. `distances` are of counts of rows there too, at R.

    Loss. Each step takes one of the batch's declared losses and is refused where none is left:
    * `find`, a priced question about one column's values: its own loss, as everywhere;
    * `measure`: rounded Gaussian noise of deviation sigma on a vector of ℓ2 sensitivity R: μ = R/sigma, rounded up;
    * `select`: the exponential mechanism on integer scores weight·‖exact − prediction‖₁ − penalty. Prediction, weight
      and penalty follow from what was released before, so between neighbours, by the triangle inequality, a score moves
      by at most weight·R, up or down: not monotone, so the full factor 2 stands in the exponent, and the choice has
      bounded range epsilon (Durfee & Rogers 2019).
    * `distances`, how far predictions are from the truth, Σ‖exact − prediction‖₁ for each of W marginals: each moves by
      at most R, so all of them together by R·√W in ℓ2, and rounded Gaussian noise is measured as such.
    The batch was fixed before the first step. Whatever the order of its steps, and whatever each is asked about, what
    remains is dominated by the rest of the batch; ending early is post-processing (`ring_c.batch`). The
    ledger is charged the one loss that stands for the batch (`ring_c.declared`).

    A failure ends the run: what remains is never measured, and the whole batch stays charged.
    """

    def __init__(self, grant: Grant[Declaring] | Grant[DeclaringSeveral] | Grant[Opened]) -> None:
        opened: Opened = grant.take()
        self._grant, self._engine, self._tables = grant, cast(CodedEngine, grant._engine), opened.tables
        self._left: Counter[Single] = Counter(opened.batch.parts)
        self._now = _Coded(opened.tables[0])
        self._ended = False
        self._taking, self._owner = threading.Lock(), os.getpid()

    def find(self, question: QuestionMeasurement) -> Noisy:
        """The noisy answer to a priced question over a table of the run. Its loss is part of the batch."""
        table = next((one for one in self._tables if reads(question.plan, one)), None)
        if table is None:
            raise ValueError("the question reads another table")
        for loss in question.loss.parts:
            self._take(loss, table)
        return self._guarded(lambda: noisy_answer(self._engine, question, table), table)

    def code(self, coding: Coding, table: Table | None = None, *, evenly: bool = False) -> None:
        """Has the engine put rows of a table of the run, by default the one before, into cells; from now on marginals
        are over these, and with `evenly` over their weights. Raises ValueError where the run has no such table, or
        nothing tells whose its rows are."""
        if table is not None and table not in self._tables:
            raise ValueError("the run was not declared for this table")
        old = self._now
        new = self._now = _Coded(table or old.table, evenly)

        def build() -> CodedRows:
            if old.rows is not None:
                self._engine.uncode(old.rows)
            return self._engine.code(coding, new.table, evenly=evenly)

        self._now = replace(new, rows=self._guarded(build, new.table))

    def measure(self, clique: Sequence[str], sigma: Fraction) -> Integers:
        """A marginal with rounded Gaussian noise of this deviation, in rows."""
        now, noise = self._now, Gaussian(sigma)
        self._take(noise.loss(now.moved**2), now.table)

        def draw() -> Integers:
            (exact,) = self._marginals(now, [tuple(clique)])
            return np.array(noise.release(exact.reshape(-1).tolist()), np.int64).reshape(exact.shape)

        return self._guarded(draw, now.table)

    def select(
        self,
        epsilon: Fraction,
        cliques: Sequence[Sequence[str]],
        predictions: Sequence[Integers],
        weights: Sequence[int],
        penalties: Sequence[int],
    ) -> int:
        """The place of a marginal that the predictions miss by much, chosen with noise."""
        weights, penalties = [int(weight) for weight in weights], [int(penalty) for penalty in penalties]
        columns, predictions = _shaped(now := self._now, cliques, predictions)
        mechanism = ExponentialMechanism(epsilon, now.moved * max(map(abs, weights)))
        self._take(BoundedRange(epsilon), now.table)

        def choose() -> int:
            scored = zip(weights, self._misses(now, columns, predictions), penalties, strict=True)
            return mechanism.release([weight * miss - penalty for weight, miss, penalty in scored])

        return self._guarded(choose, now.table)

    def distances(
        self, cliques: Sequence[Sequence[str]], predictions: Sequence[Integers], sigma: Fraction
    ) -> list[int]:
        """By how many rows each prediction is off, added up over its cells, with rounded Gaussian noise."""
        now, noise = replace(self._now, evenly=False), Gaussian(sigma)
        columns, predictions = _shaped(now, cliques, predictions)
        self._take(noise.loss(now.moved**2 * len(columns)), now.table)
        return self._guarded(lambda: noise.release(self._misses(now, columns, predictions)), now.table)

    def commit(self, answer: bytes) -> None:
        """Ends the run and stores what it released, durably: before anything else can fail."""
        self._ended = True
        self._grant.commit(answer)
        self.close()

    def close(self) -> None:
        """Ends the run; what it took of the budget stays taken."""
        now, self._now, self._ended = self._now, _Coded(self._now.table), True
        if now.rows is not None:
            with suppress(Exception):  # it reads no row, and what is left there goes with the engine
                self._engine.uncode(now.rows)

    def _take(self, loss: Single, table: Table) -> None:
        """Uses up one declared loss, of one thread at a time. Raises ValueError where the batch has none of it left,
        and in a forked process."""
        with self._taking:
            if self._ended or not self._left[loss] or os.getpid() != self._owner:
                raise ValueError("no such loss is left in the declared batch")
            self._grant.check(table)
            self._left[loss] -= 1

    def _guarded(self, draw: Callable[[], Result], table: Table) -> Result:
        """What sees exact numbers; whatever fails or interrupts it ends the run."""
        ended, self._ended = self._ended, True
        result = self._grant.guarded(draw, table)
        self._ended = ended
        return result

    def _misses(self, now: _Coded, cliques: Sequence[tuple[str, ...]], predictions: Sequence[Integers]) -> list[int]:
        """The exact ‖marginal − prediction‖₁, in whole numbers, whatever was predicted."""
        return [_apart(one, other) for one, other in zip(self._marginals(now, cliques), predictions, strict=True)]

    def _marginals(self, now: _Coded, cliques: Sequence[tuple[str, ...]]) -> list[Marginal]:
        """Exact marginals, asked of the engine once each, in portions."""
        assert now.rows is not None
        portion: list[tuple[str, ...]] = []
        cells = 0
        for clique in dict.fromkeys(cliques):
            if (clique, now.evenly) not in now.exact:
                portion.append(clique)
                cells += int(np.prod(now.rows.coding.shape(clique)))
            if cells > _CELLS_AT_ONCE or len(portion) >= _MARGINALS_AT_ONCE:
                self._fetch(now, now.rows, portion)
                portion, cells = [], 0
        self._fetch(now, now.rows, portion)
        return [now.exact[clique, now.evenly] for clique in cliques]

    def _fetch(self, now: _Coded, rows: CodedRows, cliques: Sequence[tuple[str, ...]]) -> None:
        if cliques:
            found = self._engine.marginals(rows, cliques, evenly=now.evenly)
            now.exact.update({(clique, now.evenly): one for clique, one in zip(cliques, found, strict=True)})


@dataclass(frozen=True, eq=False, repr=False)
class _Coded:
    """The rows that are measured now. A step takes it once, for its price and for what it draws: whatever is coded in
    between, by whomever, what is drawn is what was priced."""

    table: Table
    evenly: bool = False
    rows: CodedRows | None = None
    exact: dict[tuple[tuple[str, ...], bool], Marginal] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.evenly and (self.table.relation is None or self.table.person is None):
            raise ValueError("rows are weighed by person where a relation tells the person")

    @property
    def moved(self) -> int:
        """What a person moves in what is measured: as many rows as count, or what these weigh."""
        return UNIT if self.evenly else rows_of_person(self.table)


def _shaped(
    now: _Coded, cliques: Sequence[Sequence[str]], predictions: Sequence[Integers]
) -> tuple[tuple[tuple[str, ...], ...], list[Integers]]:
    """Columns, and predictions as marginals of them, read once: what is priced is what is measured. Predictions are
    plain arrays: a subclass would be handed the exact marginal. Raises ValueError or TypeError before anything is used
    up where they are none: it would be a failure later, of which somebody learns for nothing."""
    assert now.rows is not None, "nothing is coded"
    columns, plain = tuple(tuple(map(str.__str__, one)) for one in cliques), map(np.asarray, predictions)
    shapes = map(now.rows.coding.shape, columns)
    return columns, [one.astype(np.int64, casting="safe").reshape(of) for one, of in zip(plain, shapes, strict=True)]


def _apart(one: Integers, other: Integers) -> int:
    """‖one − other‖₁, exactly: in no difference, and no sum of them, do 64 bits wrap. Else one row could move it by
    2^64. The larger less the smaller is below 2^64, which unsigned numbers of 64 bits hold; their halves are added up,
    of at most 2^32 cells."""
    one, other = np.atleast_1d(one), np.atleast_1d(other)
    differences = np.maximum(one, other).astype(np.uint64) - np.minimum(one, other).astype(np.uint64)  # modulo 2^64
    return (int((differences >> np.uint64(32)).sum()) << 32) + int((differences & np.uint64(0xFFFFFFFF)).sum())
