"""An open run over marginals: private selection, noisy measurement, and one batch that is reserved before the first row
is read."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
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
from discreet.trusted.ring_c.coded import CodedRows, Marginal
from discreet.trusted.ring_c.coding import Coding, rows_of_person
from discreet.trusted.ring_c.declared import Declared
from discreet.trusted.ring_c.engine import CodedEngine

Integers = NDArray[np.int64]
Result = TypeVar("Result")
_CELLS_AT_ONCE, _MARGINALS_AT_ONCE = 1 << 22, 16  # in one request, which has the time of one question
_LARGEST = 1 << 61  # below it no sum of differences leaves 64 bits, where it would wrap


@dataclass(frozen=True)
class Declaring:
    """A run over marginals of one table: the batch of all its steps, fixed before the first."""

    table: Table
    batch: Declared

    @property
    def loss(self) -> Loss:
        return self.batch.loss


class Marginals:
    """Measures marginals of one table's coded rows, in any order, each step at a price that the batch declared.

    Unit: a person, with at most R rows that count (`rows_of_person`); the engine leaves out all others. Neighbours:
    one person added or removed. Every row is in one cell of each marginal or left out of all (`ring_c.coding`),
    so a marginal moves by at most R in ℓ1 and in ℓ2.

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

    def __init__(self, grant: Grant[Declaring]) -> None:
        opened = grant.take()
        table = opened.table
        self._grant, self._engine, self._table = grant, cast(CodedEngine, grant._engine), table
        self._left: Counter[Single] = Counter(opened.batch.parts)
        self._person = rows_of_person(table)
        self._rows: CodedRows | None = None
        self._exact: dict[tuple[str, ...], Marginal] = {}
        self._ended = False
        self._taking, self._owner = threading.Lock(), os.getpid()

    def find(self, question: QuestionMeasurement) -> Noisy:
        """The noisy answer to a priced question over the same table. Its loss is part of the batch."""
        if not reads(question.plan, self._table):
            raise ValueError("the question reads another table")
        for loss in question.loss.parts:
            self._take(loss)
        return self._guarded(lambda: noisy_answer(self._engine, question, self._table))

    def code(self, coding: Coding) -> None:
        """Has the engine put rows into cells; from now on marginals are over these."""
        old, self._rows, self._exact = self._rows, None, {}

        def build() -> CodedRows:
            if old is not None:
                self._engine.uncode(old)
            return self._engine.code(coding, self._table)

        self._rows = self._guarded(build)

    def measure(self, clique: Sequence[str], sigma: Fraction) -> Integers:
        """A marginal with rounded Gaussian noise of this deviation, in rows."""
        noise = Gaussian(sigma)
        self._take(noise.loss(self._person**2))

        def draw() -> Integers:
            (exact,) = self._marginals([tuple(clique)])
            noisy = noise.release(exact.reshape(-1).tolist())
            return np.array(noisy, np.int64).reshape(exact.shape)

        return self._guarded(draw)

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
        cliques, predictions = tuple(cliques), tuple(predictions)
        mechanism = ExponentialMechanism(epsilon, self._person * max(map(abs, weights)))
        self._take(BoundedRange(epsilon))

        def choose() -> int:
            misses = self._misses(cliques, predictions)
            return mechanism.release(
                [weight * miss - penalty for weight, miss, penalty in zip(weights, misses, penalties, strict=True)]
            )

        return self._guarded(choose)

    def distances(
        self, cliques: Sequence[Sequence[str]], predictions: Sequence[Integers], sigma: Fraction
    ) -> list[int]:
        """By how many rows each prediction is off, added up over its cells, with rounded Gaussian noise."""
        noise, cliques, predictions = Gaussian(sigma), tuple(cliques), tuple(predictions)
        self._take(noise.loss(self._person**2 * len(cliques)))

        def draw() -> list[int]:
            return noise.release(self._misses(cliques, predictions))

        return self._guarded(draw)

    def commit(self, answer: bytes) -> None:
        """Ends the run and stores what it released, durably: before anything else can fail."""
        self._ended = True
        self._grant.commit(answer)
        self.close()

    def close(self) -> None:
        """Ends the run; what it took of the budget stays taken."""
        self._ended, self._exact = True, {}
        if self._rows is not None:
            rows, self._rows = self._rows, None
            with suppress(Exception):  # it reads no row, and what is left there goes with the engine
                self._engine.uncode(rows)

    def _take(self, loss: Single) -> None:
        """Uses up one declared loss, of one thread at a time. Raises ValueError where the batch has none of it left,
        and in a forked process."""
        with self._taking:
            if self._ended or not self._left[loss] or os.getpid() != self._owner:
                raise ValueError("no such loss is left in the declared batch")
            self._grant.check(self._table)
            self._left[loss] -= 1

    def _guarded(self, draw: Callable[[], Result]) -> Result:
        """What sees exact numbers; whatever fails or interrupts it ends the run."""
        ended, self._ended = self._ended, True
        result = self._grant.guarded(draw, self._table)
        self._ended = ended
        return result

    def _misses(self, cliques: Sequence[Sequence[str]], predictions: Sequence[Integers]) -> list[int]:
        """The exact ‖marginal − prediction‖₁, in whole numbers.

        Predictions may be anything that was released, but not so large that 64 bits wrap: then one row could move a
        distance by 2^64.
        """
        if any(one.dtype.kind != "i" or _farthest(one) * max(1, one.size) > _LARGEST for one in predictions):
            raise ValueError("predictions are whole numbers, of a size that sums can hold")
        exact = self._marginals([tuple(clique) for clique in cliques])
        return [
            int(np.abs(one - prediction.reshape(one.shape)).sum())
            for one, prediction in zip(exact, predictions, strict=True)
        ]

    def _marginals(self, cliques: Sequence[tuple[str, ...]]) -> list[Marginal]:
        """Exact marginals, asked of the engine once each, in portions."""
        assert self._rows is not None
        portion: list[tuple[str, ...]] = []
        cells = 0
        for clique in dict.fromkeys(cliques):
            if clique not in self._exact:
                portion.append(clique)
                cells += int(np.prod(self._rows.coding.shape(clique)))
            if cells > _CELLS_AT_ONCE or len(portion) >= _MARGINALS_AT_ONCE:
                self._fetch(self._rows, portion)
                portion, cells = [], 0
        self._fetch(self._rows, portion)
        return [self._exact[clique] for clique in cliques]

    def _fetch(self, rows: CodedRows, cliques: Sequence[tuple[str, ...]]) -> None:
        if cliques:
            self._exact.update(zip(cliques, self._engine.marginals(rows, cliques), strict=True))


def _farthest(prediction: Integers) -> int:
    """The largest size of an entry; of the least 64-bit integer too, whose absolute value is itself."""
    return max(int(prediction.max(initial=0)), -int(prediction.min(initial=0)))
