"""Exact inference on a junction tree: from potentials to the probabilities of every clique."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.errors import QuestionError
from discreet.markov.domain import Clique, Domain
from discreet.markov.tree import JunctionTree

Floats = NDArray[np.float64]

_LOST = 1e-200
"""A sum so small beside the largest may have lost digits, or all."""


def summed(values: Floats, clique: Clique, kept: Clique) -> Floats:
    """Summed over the columns that are not kept; axes in the order of `kept`."""
    axes = tuple(axis for axis, name in enumerate(clique) if name not in kept)
    left = [name for name in clique if name in kept]
    result = _reduced(values, axes)
    return result.transpose([left.index(name) for name in kept])


def _highest(values: Floats, clique: Clique, kept: Clique) -> Floats:
    """The largest over the columns that are not kept, as `summed`; 0 where all are −inf."""
    axes = tuple(axis for axis, name in enumerate(clique) if name not in kept)
    left = [name for name in clique if name in kept]
    highest = np.asarray(values.max(axis=axes)).transpose([left.index(name) for name in kept])
    return np.where(highest == -np.inf, 0.0, highest)


def _reduced(values: Floats, axes: tuple[int, ...]) -> Floats:
    """`values.sum(axes)`, by matrix products for the outer axes, which is several times faster."""
    leading = 0
    while leading in axes:
        leading += 1
    if leading:
        outer = int(np.prod(values.shape[:leading]))
        kept_shape = values.shape[leading:]
        values = (np.ones(outer) @ np.ascontiguousarray(values).reshape(outer, -1)).reshape(kept_shape)
        axes = tuple(axis - leading for axis in axes if axis >= leading)
    trailing = 0
    while values.ndim - 1 - trailing in axes:
        trailing += 1
    if trailing:
        inner = int(np.prod(values.shape[values.ndim - trailing :]))
        kept_shape = values.shape[: values.ndim - trailing]
        values = (np.ascontiguousarray(values).reshape(-1, inner) @ np.ones(inner)).reshape(kept_shape)
        axes = tuple(axis for axis in axes if axis < values.ndim)
    return values.sum(axis=axes) if axes else values


def aligned(values: Floats, clique: Clique, onto: Clique) -> Floats:
    """A view with one axis for each column of `onto`, of length 1 where the column is not in `clique`."""
    order = [clique.index(name) for name in onto if name in clique]
    places = [clique.index(name) if name in clique else None for name in onto]
    moved = values.transpose(order)
    return moved.reshape([1 if place is None else values.shape[place] for place in places])


class Calibrator:
    """Belief propagation on one tree for factors on fixed cliques, with its memory kept between calls.

    Collecting goes from the leaves to the root with logarithms: each clique's largest is taken off before `exp`, so
    nothing overflows, and −inf is a structural zero. Where a value of what it shares with its parent would be lost so,
    which other cliques may make likely again, the largest beside each such value is. Distributing multiplies by the
    ratio of the parent's marginal to the one collected (Hugin; Lauritzen & Spiegelhalter 1988).
    """

    def __init__(self, tree: JunctionTree, factors: Sequence[Clique]) -> None:
        self.tree = tree
        self.factors = tuple(factors)
        self.homes = []
        for factor in self.factors:
            home = tree.holder(factor)
            assert home is not None, "the tree was made for these factors"
            self.homes.append(home)
        shapes = [tree.domain.shape(clique) for clique in tree.cliques]
        self.beliefs = [np.empty(shape) for shape in shapes]

    @cached_property
    def _guests(self) -> list[list[int]]:
        guests: list[list[int]] = [[] for _ in self.tree.cliques]
        for factor, home in enumerate(self.homes):
            guests[home].append(factor)
        return guests

    def run(self, potentials: Sequence[Floats]) -> float:
        """Fills `beliefs` with probabilities; gives the logarithm of the sum over all cells of e^(Σ potentials).

        Raises QuestionError where every cell is a structural zero.
        """
        tree = self.tree
        collected: list[Floats] = [np.empty(0)] * len(tree.cliques)
        waiting: list[list[tuple[Floats, Clique]]] = [[] for _ in tree.cliques]
        constant = 0.0
        for place in reversed(range(len(tree.cliques))):
            separator = tree.separators[place]
            self._add(place, potentials, waiting[place])
            highest = np.asarray(self.beliefs[place].max())
            if highest == -np.inf:
                raise QuestionError(
                    "zeros",
                    "what is declared impossible leaves no row possible",
                    where=", ".join(tree.cliques[place]),
                    fix="take a rule out of impossible, or out of orders",
                )
            sums = self._exponential(place, highest)
            if separator and sums.min() < _LOST * sums.max():
                self._add(place, potentials, waiting[place])
                highest = _highest(self.beliefs[place], tree.cliques[place], separator)
                sums = self._exponential(place, highest)
            collected[place] = sums
            with np.errstate(divide="ignore"):
                logarithms = np.log(sums) + highest
            most = float(logarithms.max())
            constant += most
            if separator:
                waiting[tree.parents[place]].append((logarithms - most, separator))
        for place, (parent, separator) in enumerate(zip(tree.parents, tree.separators, strict=True)):
            wanted = summed(self.beliefs[parent], tree.cliques[parent], separator) if separator else np.ones(())
            sums = collected[place]
            ratio = np.divide(wanted, sums, out=np.zeros_like(wanted), where=sums > 0)
            self.beliefs[place] *= aligned(ratio, separator, tree.cliques[place])
        return constant

    def _add(self, place: int, potentials: Sequence[Floats], messages: Sequence[tuple[Floats, Clique]]) -> None:
        """Fills a clique's belief with the sums of logarithms."""
        clique, belief = self.tree.cliques[place], self.beliefs[place]
        belief.fill(0.0)
        for factor in self._guests[place]:
            belief += aligned(potentials[factor], self.factors[factor], clique)
        for message, shared in messages:
            belief += aligned(message, shared, clique)

    def _exponential(self, place: int, highest: Floats) -> Floats:
        """e to a clique's belief less `highest`, one number or one for each value of what it shares with its parent;
        gives its sums over these values."""
        clique, belief, separator = self.tree.cliques[place], self.beliefs[place], self.tree.separators[place]
        belief -= aligned(highest, separator, clique) if highest.ndim else highest
        np.exp(belief, out=belief)
        return summed(belief, clique, separator)

    def marginal(self, factor: int) -> Floats:
        """The probabilities on a factor's clique after `run`."""
        home = self.homes[factor]
        return summed(self.beliefs[home], self.tree.cliques[home], self.factors[factor])


def zeros_by_clique(domain: Domain, zeros: Mapping[Clique, NDArray[np.bool_]]) -> dict[Clique, Floats]:
    """−inf at the impossible cells and 0 elsewhere."""
    found = {}
    for clique, impossible in zeros.items():
        if domain.clique(clique) != clique or np.shape(impossible) != domain.shape(clique):
            raise QuestionError(
                "zeros", "zeros need one entry for each cell, columns in the domain's order", where=", ".join(clique)
            )
        found[clique] = np.where(impossible, -np.inf, 0.0)
    return found
