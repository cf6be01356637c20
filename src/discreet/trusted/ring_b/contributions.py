"""How much persons contribute: noisy histograms of powers of two, with one bucket a person."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, replace

from discreet.trusted.ring_a.engine import Engine
from discreet.trusted.ring_a.loss import Batch, Single
from discreet.trusted.ring_a.measurement import fixed, reads
from discreet.trusted.ring_a.nodes import Aggregate
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_b.logarithmic import LogarithmicRange
from discreet.trusted.ring_b.order_statistics import GroupHistograms, Range, range_loss
from discreet.trusted.ring_b.questions import QuestionPlan


@dataclass(frozen=True)
class PersonHistogram:
    """How many rows of a relation have each power of two in their only quantity, with noise on every bucket.

    `table` is a relation with one row a person, as a subquery that groups by the person gives it: rows counted, groups
    counted, the largest size of a value. `buckets` are numbers of `LogarithmicRange`, ascending, public: a row counts
    in the last of them that is at most its own, or else in the first. NULL counts nowhere.

    Unit: a person, with all rows. Neighbours: one person added or removed. Privacy: a row counts in at most one bucket,
    so the counts move by at most as many as one person's rows reach the histogram: 1 where the relation has one row a
    person, by the fold over the nodes; `range_loss` refuses noise that is made for fewer. Independent discrete Laplace
    noise on every bucket, empty ones too, is a release of that ℓ1 sensitivity (Dwork & Roth 2014, Theorem 3.6).
    """

    table: Table
    of: Range
    buckets: tuple[int, ...]
    mechanism: LogarithmicRange

    def __post_init__(self) -> None:
        fixed(self.buckets)

    @property
    def loss(self) -> Single:
        """That of all buckets together. Raises ValueError where none can be proved."""
        plan = QuestionPlan(self.table.name, Aggregate(self.of.root.child, ()), (), (), ranges=(self.of,))
        if type(self.of.root) is not GroupHistograms or not reads(plan, self.table):
            raise ValueError("the plan does not read this table as it is declared")
        if {*map(type, self.buckets)} != {int} or list(self.buckets) != sorted(set(self.buckets)):
            raise ValueError("buckets are whole numbers in order: one that stands twice is told twice")
        return range_loss(self.of, self.mechanism)

    def released(self, engine: Engine) -> tuple[int, ...]:
        """The noisy counts, in the order of the buckets."""
        counts: Counter[int] = Counter()
        for _, (number, rows) in engine.run(self.of.root, self.table):
            counts[max(bisect_right(self.buckets, number) - 1, 0)] += rows
        return tuple(self.mechanism.noise.release([counts[place] for place in range(len(self.buckets))]))


@dataclass(frozen=True)
class ContributionMeasurement:
    """Histograms of the persons of one declared table, released together; where they are found along foreign keys,
    `table` is the relation of the declared tables on the way.

    Unit: a person, with all rows. Neighbours: one person added or removed in these tables, which may change every
    histogram. Their losses (`PersonHistogram.loss`) add up (pure ε: Dwork & Roth 2014, Theorem 3.16).
    """

    table: Table
    histograms: tuple[PersonHistogram, ...]

    def __post_init__(self) -> None:
        fixed(self.histograms)

    @property
    def loss(self) -> Batch:
        """Raises ValueError where a histogram has none, or reads other tables than these."""
        known = [replace(base, source=self.table.source) for base in self.table.bases]
        for one in self.histograms:
            if not all(replace(base, source=self.table.source) in known for base in one.table.bases):
                raise ValueError("a histogram reads another table")
        if not self.histograms:
            raise ValueError("there is no histogram to measure")
        return Batch(tuple(one.loss for one in self.histograms))

    def draw(self, engine: Engine) -> tuple[tuple[int, ...], ...]:
        """The noisy counts of each histogram."""
        return tuple(one.released(engine) for one in self.histograms)
