"""The engine protocol of ring C: discretised rows and rows as vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from discreet.trusted.ring_a.engine import Engine
from discreet.trusted.ring_a.expressions import Expression
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_c.coded import CodedRows, Marginal
from discreet.trusted.ring_c.coding import Coding
from discreet.trusted.ring_c.vectors import VectorColumn, Vectors


class CodedEngine(Engine, Protocol):
    """An engine as the gate of marginals, workloads, training and blocks has it."""

    def vectors(self, table: Table, wanted: Sequence[VectorColumn], /) -> Vectors:
        """The rows of a table in some of its columns, person by person, and of each person in the order in which they
        were loaded."""
        ...

    def code(self, coding: Coding, table: Table, /, *, evenly: bool = False) -> CodedRows:
        """Rows put into cells, of each person as many as are declared, chosen with a fresh salt; until `uncode`. With
        `evenly` each has a weight, and persons weigh alike."""
        ...

    def uncode(self, rows: CodedRows, /) -> None:
        """Lets go of rows in cells."""
        ...

    def marginals(
        self, rows: CodedRows, cliques: Sequence[Sequence[str]], /, *, evenly: bool = False
    ) -> list[Marginal]:
        """How many rows are in each cell, or what they weigh, for each of these sets of columns; the axes are in the
        order of the names."""
        ...

    def cells(self, coding: Coding, predicate: Expression, table: Table, /) -> Marginal:
        """1 for each cell of the coding for which the predicate is true, 0 for the others. Reads no row."""
        ...
