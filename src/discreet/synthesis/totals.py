"""Public totals in a synthetic table: its rows have these counts exactly, whatever was measured.

Privacy: totals stand in the declaration, so they are the same for neighbouring tables (one person added or removed),
and so is what follows from them alone: what is not measured, how many rows are made, which counts these have. Nothing
private is compared with them but by steps that the batch declares: choosing what is measured, and the distances of the
finished rows, at the sensitivity that these have for any prediction whatever (`ring_c.marginals`). The batch's loss is
that of what will be run: a marginal that totals determine is not in it. Meeting them is post-processing of what was
released. So it does not matter for the loss whether they are true. What the argument needs is that they were not
taken from this table for this purpose: then they would be an exact answer for nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.catalog.model import PublicTotal
from discreet.catalog.totals import cells
from discreet.errors import refused
from discreet.markov import Clique, Domain, MarginalMeasurement, MarkovRandomField
from discreet.markov.margins import Integers, Margins
from discreet.markov.moved import moved
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_c.coding import Coding

Zeros = Mapping[Clique, NDArray[np.bool_]]

SURE = Fraction(1, 1000)
"""The deviation, in rows, with which the model takes totals to be measured: next to none. Rows meet them exactly."""


@dataclass(frozen=True, eq=False)
class FixedTotals:
    """The totals of a table over those of its columns that are published: `counts` by one or two of them, in the order
    of the columns, of `rows` rows in all. Of totals by other columns it is the number of rows alone. `otherwise` are
    counts that meet them and what is impossible, for where no nearer ones are found (`markov.moved`)."""

    rows: int
    counts: Mapping[Clique, Integers]
    otherwise: tuple[Integers, ...] = ()

    @staticmethod
    def of(totals: Sequence[PublicTotal], table: Table, names: Sequence[str]) -> FixedTotals | None:
        """Of the published columns; None where no totals are declared."""
        if not totals:
            return None
        sizes = {column.name: len(cells(column)) for column in table.columns}
        found: dict[Clique, Integers] = {}
        for one in totals:
            counts = np.array(one.counts, np.int64).reshape([sizes[name] for name in one.columns])
            kept = sorted((name for name in one.columns if name in names), key=names.index)
            if kept:
                found[tuple(kept)] = _summed(counts, one.columns, tuple(kept))
        outer = {clique: one for clique, one in found.items() if not any(set(clique) < set(other) for other in found)}
        return FixedTotals(sum(totals[0].counts), outer)

    @property
    def in_words(self) -> str:
        """What they say, for the key of the release."""
        return f"totals of {self.rows}: " + repr([(clique, one.tolist()) for clique, one in self.counts.items()])

    def words(self, evenly: bool) -> list[str]:
        """What they do, for whoever reads the release; of a table that is measured `evenly`, of weights of persons, of
        which counts of rows say nothing."""
        by = ", ".join(f"by {' and '.join(clique)}" for clique in self.counts)
        counts = f" and the counts {by}" if by else ""
        measured = "what was measured is of persons, and they" if evenly else "they were not measured, and"
        return [f"the number of rows{counts} are declared as public: {measured} hold as declared"]

    def hold_possible(self, coding: Coding, zeros: Zeros) -> FixedTotals:
        """The same, with counts that meet all. Raises QuestionError where there are none."""
        margins = self._margins(coding, zeros)
        if margins is None:
            return self
        found = margins.tables()
        if found is None:
            fix = "correct what is declared: totals, or impossible"
            raise refused("totals", "no table can be found that has all totals and no impossible row", "totals", fix)
        return replace(self, otherwise=found)

    @property
    def zeros(self) -> Zeros:
        """The cells in which they count no row."""
        return {clique: counts == 0 for clique, counts in self.counts.items()}

    @property
    def measured(self) -> list[MarginalMeasurement]:
        """The totals as a model is fitted to them; those of each column alone, too, which it begins with."""
        known: dict[Clique, Integers] = {
            (name,): _summed(counts, clique, (name,)) for clique, counts in self.counts.items() for name in clique
        }
        known.update(self.counts)
        return [MarginalMeasurement(clique, counts, SURE) for clique, counts in known.items()]

    def met(self, model: MarkovRandomField, rows: Integers, zeros: Zeros) -> Integers:
        """These rows of the model, some with other values, so that they have these counts and none of them is in a
        cell of the zeros."""
        margins = self._margins(model.domain, zeros)
        if margins is None:
            return rows
        return moved(model, rows, margins, self.otherwise, np.random.default_rng(secrets.randbits(128)))

    def _margins(self, of: Coding | Domain, zeros: Zeros) -> Margins | None:
        return Margins.of(Domain(of.names, of.sizes), self.counts, zeros) if self.counts else None


def _summed(counts: Integers, clique: Clique, kept: Clique) -> Integers:
    """The counts of some of a clique's columns, in another order perhaps."""
    left = [name for name in clique if name in kept]
    sums: Integers = counts.sum(axis=tuple(axis for axis, name in enumerate(clique) if name not in kept))
    return sums.transpose([left.index(name) for name in kept])
