"""One question on made-up neighbours, through the engine and the door, attacked in three ways.

The *change* of the exact integers from one neighbour to the other, over the scale of the noise, is the exact loss of
the release: what the bounds in the engine let through is held against what is charged. The *fit* says whether the noise
that leaves the door has the scale that was charged for. *Samples* of whole releases through the door hold the two
together, and everything else that might tell: missing groups, their order, errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import cycle
from typing import Any, NoReturn, cast

from discreet.audit import pmf
from discreet.audit.claims import Claim, Result
from discreet.audit.events import Feature, answered, kind
from discreet.audit.made_up import ExtremePerson, Stage, extremes
from discreet.audit.targets import ComputedAttack, Fitted, Late, SampledAttack, Target
from discreet.catalog import Table
from discreet.engines.protocol import Row
from discreet.errors import EngineError
from discreet.ledger import Ledger, Reserved, Stored
from discreet.mechanisms import Ball, Gaussian, Threshold
from discreet.plan.measurement import Measurement
from discreet.trusted.ring_a.gate import Door
from discreet.trusted.ring_a.measurement import Measured
from discreet.trusted.ring_a.nodes import project_of
from discreet.trusted.ring_a.sensitivity import cell_count
from discreet.trusted.ring_b.questions import Groups, Noisy

RUNS = 2
"""How often each neighbour runs through the engine, each time with a fresh salt."""

CELLS = 100
FEWEST = 100
"""Questions with more public groups than CELLS are sampled less often, but at least FEWEST times."""

CROWD = 5
MOST_CROWD = 400

Vectors = Mapping[tuple[Any, ...], tuple[int, ...]]
"""The exact integers of a part, by group."""


class Paper:
    """A ledger that admits everything and writes nothing: made-up tables have no budget."""

    def check(self, *_: object) -> None:
        pass

    def fail(self, *_: object) -> None:
        pass

    def end(self, *_: object) -> None:
        pass

    def commit(self, *_: object, **__: object) -> None:
        pass

    def reserve(self, *_: object, **__: object) -> Reserved:
        return Reserved(1, {})


class Replay:
    """Exact totals that the engine gave for a made-up table, given again in turn: the noise alone is drawn afresh.

    It is an engine that has these totals and nothing else: whatever else is asked of it fails."""

    period = ""

    def __init__(self, runs: Sequence[list[Row]] | None) -> None:
        self._runs = None if runs is None else cycle(runs)

    @property
    def rows(self) -> object:
        return self

    def run(self, *_: object) -> list[Row]:
        if self._runs is None:
            raise EngineError
        return list(next(self._runs))

    def vectors(self, *_: object) -> NoReturn:
        raise EngineError

    def code(self, *_: object, **__: object) -> NoReturn:
        raise EngineError

    def uncode(self, *_: object) -> NoReturn:
        raise EngineError

    def marginals(self, *_: object, **__: object) -> NoReturn:
        raise EngineError

    def cells(self, *_: object) -> NoReturn:
        raise EngineError


@dataclass(frozen=True)
class Neighbour:
    """A made-up table: who is in it beside the crowd, and what the engine said of it, salt by salt."""

    text: str
    runs: tuple[list[Row], ...] | None
    """None where the engine failed."""

    def vectors(self, measured: Measured, salt: int = 0) -> Vectors:
        """The exact vectors of a part."""
        weights = [vector.weights for vector in measured.part.vectors]
        return {
            plain(keys): tuple(sum(weight * totals[index] for index, weight in one) for one in weights)
            for keys, totals in (self.runs[salt] if self.runs else ())
        }

    def groups(self) -> set[tuple[Any, ...]]:
        """The keys of all groups that the engine gave, under whichever salt."""
        return {plain(keys) for run in self.runs or () for keys, _ in run}


def plain(keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """Keys as the engine compares them."""
    return tuple(float(key) if isinstance(key, Fraction) else key for key in keys)


class Attack:
    """One question at one price on one declared table."""

    def __init__(self, name: str, stage: Stage, table: Table, measurement: Measurement) -> None:
        self.name = name
        self.table = table
        self.measurement = measurement
        self.claim = Claim.of(measurement.loss)
        self._stage = stage
        self._noisy = [
            (index, measured)
            for index, measured in enumerate(measurement.parts)
            if not isinstance(measured.mechanism, Threshold)
        ]

    def targets(self, draws: int) -> list[Target]:
        """All attacks on this question; its tables are made when the first one's turn comes."""
        cells = cell_count(self.measurement.plan.keys) or 1
        pairs = max(FEWEST, min(draws, draws * CELLS // cells))
        alone = [(index, measured) for index, measured in self._noisy if not isinstance(measured.mechanism, Ball)]
        fits = [Late(self.name, partial(self._fitted, index, measured, draws)) for index, measured in alone]
        return [ComputedAttack(self.name, self._change), Late(self.name, partial(self._sampled, pairs)), *fits]

    @cached_property
    def neighbours(self) -> list[Neighbour]:
        """The crowd, then the crowd with each extreme person, as the engine sees them."""
        keys = tuple(key.name for key in self.measurement.plan.keys)
        persons = [None, *extremes(keys, numbers=bool(project_of(self.measurement.plan.root).quantities))]
        return [self._seen(keys, person) for person in persons]

    def _seen(self, keys: tuple[str, ...], person: ExtremePerson | None) -> Neighbour:
        loaded = self._stage.made_up(self.table, keys, self._crowd(), person)
        try:
            runs = tuple(self._stage.run(self.measurement.plan.root, loaded) for _ in range(RUNS))
        except EngineError:
            if person is None:
                raise
            runs = None  # the failure is seen by whoever asks
        return Neighbour(person.text if person else "nobody", runs)

    def _crowd(self) -> int:
        """As many persons as make it a toss-up whether the group that they fill is shown."""
        parts = self.measurement.parts
        limits = [one.mechanism.threshold for one in parts if isinstance(one.mechanism, Threshold)]
        return min(MOST_CROWD, max(limits, default=CROWD))

    # the exact loss

    def losses(self) -> list[float]:
        """The exact loss of each extreme person, over all salts."""
        nobody, *persons = self.neighbours
        return [max(self._loss(nobody, person, salt) for salt in range(RUNS)) for person in persons]

    def _loss(self, nobody: Neighbour, person: Neighbour, salt: int) -> float:
        """Laplace losses add up by ℓ1 over scale, Gaussian ones by ℓ2 over sigma. A person who touches more groups than
        a threshold knows of, or one group twice, has no finite loss."""
        if person.runs is None:
            return math.inf
        pure = square = 0.0
        for measured in self.measurement.parts:
            mechanism = measured.mechanism
            moved = changes(measured, nobody.vectors(measured), person.vectors(measured, salt))
            if isinstance(mechanism, Threshold) and (
                len(moved) > mechanism.cells or max((size for _, size in moved), default=0) > 1
            ):
                return math.inf
            noise = mechanism.noise if isinstance(mechanism, Threshold) else mechanism
            if isinstance(noise, Gaussian):
                square += sum(size * size for _, size in moved) / float(noise.sigma) ** 2
                continue
            pure += sum(size for _, size in moved) / float(noise.scale)
        return pure if self.claim.mu is None else math.sqrt(square)

    def _change(self) -> Result:
        losses = self.losses()
        found = max(losses)
        who = self.neighbours[1 + losses.index(found)].text
        return Result(self.name, "change", self.claim, found, self.claim.exceeded(found), f"one person: {who}")

    # through the door

    def _door(self, neighbour: Neighbour) -> Door:
        return Door(cast(Ledger, Paper()), Replay(neighbour.runs), self.table.bases)

    def _release(self, door: Door) -> Noisy:
        measurement = Groups(self.measurement, self.table)
        grant = door.open(measurement, analyst="audit", question=self.name, key="made up", request=None)
        assert not isinstance(grant, Stored)
        return grant.measure()

    def _fitted(self, index: int, measured: Measured, draws: int) -> Fitted:
        """The noise of one part: what releases of the crowd's table differ by from its exact numbers."""
        mechanism = measured.mechanism
        assert not isinstance(mechanism, Threshold)
        if isinstance(mechanism, Gaussian):
            law = pmf.gaussian_law(float(mechanism.sigma))
        else:
            law = pmf.laplace_law(float(mechanism.scale))
        return Fitted(self.name, self.claim, partial(self._noise, index, measured), draws, law)

    def _noise(self, index: int, measured: Measured, draws: int) -> list[int]:
        nobody = self.neighbours[0]
        exact, nothing = nobody.vectors(measured), (0,) * len(measured.part.vectors)
        door, found = self._door(nobody), list[int]()
        for _ in range(draws):
            noisy = self._release(door)
            for place, vector in enumerate(noisy.parts[index]):
                for keys, value in zip(noisy.keys, vector, strict=True):
                    found.append(value - exact.get(plain(keys), nothing)[place])
            if len(found) >= draws:
                break
        return found

    def _sampled(self, draws: int) -> SampledAttack:
        """Releases without and with the person whose loss is largest."""
        losses = self.losses()
        nobody, person = self.neighbours[0], self.neighbours[1 + losses.index(max(losses))]
        doors = self._door(nobody), self._door(person)
        return SampledAttack(self.name, self.claim, doors, self._release, self._features(nobody, person), draws)

    def _features(self, nobody: Neighbour, person: Neighbour) -> list[Feature]:
        own = person.groups() - nobody.groups()
        parts = [
            (index, measured, nobody.vectors(measured), person.vectors(measured)) for index, measured in self._noisy
        ]

        def likelihood(noisy: Noisy) -> float:
            return sum(_likelihood(measured, noisy.keys, noisy.parts[i], one, two) for i, measured, one, two in parts)

        def contrast(noisy: Noisy) -> float | None:
            """How far the number that moves most lies above one that moves less: shared noise would cancel."""
            return _contrast(noisy, places)

        places = _places(parts)
        features = [
            Feature("likelihood", answered(likelihood), ordered=True),
            Feature("contrast", answered(contrast), ordered=True),
            Feature("number of groups", answered(lambda noisy: len(noisy.keys)), ordered=True),
            Feature("order of groups", answered(lambda noisy: hash(noisy.keys))),
            Feature("outcome", kind),
        ]
        if self.measurement.plan.private:
            shown = answered(lambda noisy: sum(plain(keys) in own for keys in noisy.keys))
            features.append(Feature("own groups", shown, ordered=True))
        return features


def changes(measured: Measured, one: Vectors, two: Vectors) -> list[tuple[tuple[Any, ...], float]]:
    """The groups that change, and by how much: in ℓ1, in joint parts in the norm that the noise is made for."""
    nothing = (0,) * len(measured.part.vectors)
    found = []
    for keys in {**one, **two}:
        change = [a - b for a, b in zip(one.get(keys, nothing), two.get(keys, nothing), strict=True)]
        size: float = sum(map(abs, change))
        if measured.part.axes:
            size = measured.mechanism.norm(change) if isinstance(measured.mechanism, Ball) else math.hypot(*change)
        if size:
            found.append((keys, size))
    return found


def _likelihood(
    measured: Measured, keys: Sequence[tuple[Any, ...]], vectors: Sequence[Sequence[int]], one: Vectors, two: Vectors
) -> float:
    """How much likelier the shown numbers are on the second neighbour: the logarithm of the ratio."""
    nothing, mechanism, total = (0,) * len(measured.part.vectors), measured.mechanism, 0.0
    if isinstance(mechanism, Ball):
        for group, *values in zip(keys, *vectors, strict=True):
            sides = (side.get(plain(group), nothing) for side in (one, two))
            first, second = (mechanism.norm([v - x for v, x in zip(values, side, strict=True)]) for side in sides)
            total += (first - second) / float(mechanism.scale)
        return total
    assert not isinstance(mechanism, Threshold)
    for place, vector in enumerate(vectors):
        for group, value in zip(keys, vector, strict=True):
            a, b = one.get(plain(group), nothing)[place], two.get(plain(group), nothing)[place]
            if isinstance(mechanism, Gaussian):
                total += (b - a) * (2 * value - a - b) / (2 * float(mechanism.sigma) ** 2)
            elif a != b:
                total += (abs(value - a) - abs(value - b)) / float(mechanism.scale)
    return total


Place = tuple[int, int, tuple[Any, ...]]
"""Where a released number stands: part, vector, group."""


def _places(parts: Sequence[tuple[int, Measured, Vectors, Vectors]]) -> tuple[Place, Place] | None:
    """Of the numbers with noise of one scale: which moves most, and which least."""
    best: tuple[int, Place, Place] | None = None
    for index, measured, one, two in parts:
        nothing = (0,) * len(measured.part.vectors)
        moves = [
            (abs(two.get(keys, nothing)[vector] - one.get(keys, nothing)[vector]), (index, vector, keys))
            for keys in {**one, **two}
            for vector in range(len(nothing))
        ]
        if len(moves) > 1:
            moves.sort(key=lambda move: move[0])
            apart = moves[-1][0] - moves[0][0]
            if best is None or apart > best[0]:
                best = apart, moves[-1][1], moves[0][1]
    return None if best is None else best[1:]


def _contrast(noisy: Noisy, places: tuple[Place, Place] | None) -> float | None:
    if places is None:
        return None
    order = {plain(keys): place for place, keys in enumerate(noisy.keys)}
    values = [noisy.parts[part][vector][order[keys]] for part, vector, keys in places if keys in order]
    return float(values[0] - values[1]) if len(values) == 2 else None
