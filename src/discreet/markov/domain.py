"""The columns of an integer-coded table, and the sets of columns whose counts are taken together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from discreet.errors import QuestionError

Clique = tuple[str, ...]
"""Names of columns; an array on a clique has one axis for each, in that order."""


@dataclass(frozen=True)
class Domain:
    """The columns of a table and how many cells each has: column i holds integers from 0 to sizes[i] − 1."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.names:
            raise QuestionError("domain", "a table without columns has nothing to model", fix="name a column")
        if len(set(self.names)) != len(self.names) or len(self.names) != len(self.sizes):
            raise QuestionError("domain", "each column has one name and one size", fix="name each column once")
        for name, size in zip(self.names, self.sizes, strict=True):
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise QuestionError("domain", "a column has at least one cell", where=name, fix="declare its values")

    @staticmethod
    def of(sizes: Mapping[str, int]) -> Domain:
        """The columns in the order of the mapping, each with its number of cells."""
        return Domain(tuple(sizes), tuple(sizes.values()))

    @cached_property
    def place(self) -> Mapping[str, int]:
        """Where each column stands."""
        return {name: place for place, name in enumerate(self.names)}

    def size(self, name: str) -> int:
        return self.sizes[self.place[name]]

    def shape(self, clique: Clique) -> tuple[int, ...]:
        """How many cells each of a clique's columns has: the shape of its marginal."""
        return tuple(self.size(name) for name in clique)

    def cells(self, clique: Clique) -> int:
        """How many cells a clique's marginal has."""
        return math.prod(self.shape(clique))

    def clique(self, names: Iterable[str]) -> Clique:
        """The columns as a clique, in the order of the domain. Raises QuestionError on an unknown or repeated
        column."""
        given = tuple(names)
        for name in given:
            if name not in self.place:
                raise QuestionError("domain", "no such column", where=str(name), fix=f"one of {', '.join(self.names)}")
        if len(set(given)) != len(given):
            raise QuestionError("domain", "a column is named twice", where=", ".join(given), fix="name it once")
        return tuple(sorted(given, key=self.place.__getitem__))
