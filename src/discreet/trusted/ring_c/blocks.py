"""Sample and aggregate: the owner's function on disjoint blocks of the persons, and a private summary of its values."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.trusted.ring_a.additive import Laplace
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.loss import Loss
from discreet.trusted.ring_a.table import Column, Table
from discreet.trusted.ring_b.selection import PermuteAndFlip
from discreet.trusted.ring_c.block_process import BlockLimits, BlockProcesses, Unusable
from discreet.trusted.ring_c.engine import CodedEngine
from discreet.trusted.ring_c.sampling import RandomBlocks
from discreet.trusted.ring_c.vectors import VectorColumn, Vectors

__all__ = ["BlockLimits", "BlockProcesses", "Blocks", "Unusable", "scores", "step_of"]


@dataclass(frozen=True)
class Blocks:
    """A function's values on `blocks` disjoint blocks, summed or brought to their median, with noise (Nissim,
    Raskhodnikova & Smith 2007; Smith 2011).

    Unit: a person, with all rows. Neighbours: one person added or removed.

    Sensitivity. Each person's block is drawn independently of everything (`RandomBlocks`), so neighbours can be thought
    of with the same draw for all others. Then they differ in one block only: every other block holds the same rows in
    the same order with the same dtypes, and is computed in a fresh process that starts from the same state and gets
    nothing else, so its value has the same distribution and can be thought of as the same. A value is a whole number of
    steps in [low, high], whatever the function did: an error, a death, a limit overrun, or no number, is the public
    value in the middle. So one of the values is replaced by another.
    * mean: the sum changes by at most width = high − low steps; discrete Laplace noise of scale width/ε.
    * median: the score of a point c of the lattice is min(#{values ≤ c}, #{values ≥ c}); each of the two counts changes
      by at most 1, so does their minimum. Not monotone. Permute-and-flip at rate ε/2.

    Loss: pure ε. The division by the number of blocks, which is public, is post-processing.

    What this rests on beside the mathematics: that the function does not let one block's run influence another's,
    through files, the network or the machine's load. Limits on processor time and one process a processor keep load
    from deciding anything; the clock's limit is a last resort for functions that wait.
    """

    table: Table
    columns: tuple[Column, ...]
    blocks: int
    lattice: Lattice
    mechanism: Laplace | PermuteAndFlip
    processes: BlockProcesses = field(compare=False, repr=False)
    tell: Callable[[int], None] = field(compare=False, repr=False)

    @property
    def loss(self) -> Loss:
        """Raises ValueError where the mechanism is made for less than one value can change."""
        if isinstance(self.mechanism, Laplace):
            return self.mechanism.loss(self.lattice.width)
        if self.mechanism.sensitivity < 1:
            raise ValueError("one value changes a score by 1")
        if self.mechanism.monotone:
            raise ValueError("one value can raise and lower scores")
        return self.mechanism.loss()

    def draw(self, engine: CodedEngine) -> int:
        """The noisy sum of the values, in steps; or the place of their noisy median on the lattice, in steps."""
        vectors = engine.vectors(self.table, [VectorColumn(column) for column in self.columns])
        block = RandomBlocks(self.blocks).release(vectors.persons)[vectors.person]
        payloads = [_payload(vectors, self.columns, np.flatnonzero(block == one)) for one in range(self.blocks)]
        del vectors
        values = [step_of(value, self.lattice) for value in self.processes.compute(payloads, self.tell)]
        if isinstance(self.mechanism, Laplace):
            return self.mechanism.release([sum(values)])[0]
        return self.lattice.low + self.mechanism.release(scores(values, self.lattice))


def _payload(vectors: Vectors, columns: tuple[Column, ...], rows: Any) -> bytes:
    """A block's rows: for each column its name, type, values and whether they are known."""
    parts = [
        (column.name, str(column.type), vectors.values[column.name][rows], vectors.known[column.name][rows])
        for column in columns
    ]
    return pickle.dumps(parts, protocol=5)


def step_of(value: float | None, lattice: Lattice) -> int:
    """The lattice step nearest to a value, clamped; the middle one where there is none."""
    if value is None or math.isnan(value):
        return (lattice.low + lattice.high) // 2
    if math.isinf(value):
        return lattice.high if value > 0 else lattice.low
    return max(lattice.low, min(lattice.high, math.floor(Fraction(value) / lattice.step + Fraction(1, 2))))


def scores(values: list[int], lattice: Lattice) -> list[int]:
    """For each point of the lattice, the smaller of how many values are at most it and how many at least it."""
    counts = np.bincount(np.array(values, np.int64) - lattice.low, minlength=lattice.width + 1)
    up_to = np.cumsum(counts)
    return np.minimum(up_to, len(values) - up_to + counts).tolist()  # type: ignore[no-any-return]
