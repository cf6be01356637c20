"""Continual release: counts by period, running totals and windows over a declared calendar, at one price for all of it.

What is released in period t is w_t = Σ_(s ≤ t) C_(t−s)·x_s + Z_t, in whole numbers: x_s are the counts of period s by
public groups, C the square root of the matrix of running totals (`factorisation`), Z_t rounded Gaussian noise of
deviation sigma on each group. Running totals, windows and counts of periods, with their errors, are computed from
w_0 … w_t: post-processing, in which the noise of many days largely cancels.

Unit: a person with all rows, who adds Δ_t to x_t, ‖Δ_t‖₁ ≤ R, and not 0 in at most m periods of the whole horizon; both
limits are enforced from a memory of each person (`arrivals`). Neighbours: such a person there or not, in all snapshots.

Loss. ‖C·Δ‖₂ ≤ √(`squared_sensitivity`) = D for every Δ that a person can be. Let the data be adaptive: x_t, and Δ_t,
may depend on w_0 … w_(t−1), as those who see releases act on them. C is lower triangular, and both are fixed before Z_t
is drawn. So given the same releases before, w_t is rounded N(v, sigma²·I) in one world and rounded N(v + d_t, sigma²·I)
in the other, with d_t = (C·Δ)_t known from the past, and Σ_t ‖d_t‖² ≤ D² on every path. All releases together then are
μ-GDP for μ = D/sigma: of Gaussian releases chosen adaptively, with μ_t = ‖d_t‖/sigma, the squares add up, and what is
left after t of them is Gaussian with the rest (`ring_a.gaussian_budget`; Smith & Thakurta 2022; for this form Denisov,
McMahan, Rush, Smith & Thakurta 2022, Theorem 2.1). Rounding is post-processing as x is whole. Not releasing a period,
or the rest of them, is post-processing too.

Beside other questions: the whole loss was reserved when the stream began. With others between its releases, which act
on each other, it composes as one release of that loss, made when it began, would, in any filter for adaptive releases
(f-DP: Vadhan & Zhang 2023; Haney, Shoemate, Tian, Vadhan et al. 2023; where rows change: Henzinger, Safavi & Vadhan
2024).

What must never happen is a second Z_t for the same x_t: the mean of two has half the variance. The order is

    reserve period t (ledger) → count, draw, keep counts, memory and w_t (state, durable) → commit w_t (ledger) → show

* The ledger has one answer for each period, that of its last reserve (`Door.step`): of several processes, machines or
  copies of the state that reserve one period, one is answered, and what the others drew is shown to nobody.
* A process that dies before the state is kept has shown nothing: the period is drawn anew, of the rows that are there
  then. One that dies after it: the w_t that was kept is committed, no other drawn.
* A state that does not go with the ledger ends the stream: one that is older, newer, or of another opening than the
  ledger. Its identity is the ledger's; its last release is the one in the ledger, or else the one before is there; and
  of the next period the door gives a right only where none was released. So an older state never counts a period again
  that was released, and a ledger that was restored to before the last period but one releases nothing more. (One that
  lacks the last period alone gets the same w_t again.)
* Each period is drawn from the very state that was held against the ledger, with its last release in it: whoever puts
  another state in its place meanwhile, what is released is of one line of states.

A ledger *and* its note *and* the state, all restored together, cannot be told from the past: that is a second copy of
the ledger, of which SECURITY.md speaks.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import cast

import numpy as np

from discreet.errors import LedgerError
from discreet.trusted.ledger.ledger import Stored
from discreet.trusted.ring_a.additive import Gaussian
from discreet.trusted.ring_a.gate import Door
from discreet.trusted.ring_a.loss import GaussianLoss
from discreet.trusted.ring_a.table import Column, Table, Type
from discreet.trusted.ring_c import wholes
from discreet.trusted.ring_c.arrivals import arrived, present
from discreet.trusted.ring_c.engine import CodedEngine
from discreet.trusted.ring_c.factorisation import MOST_PERIODS, coefficients, measured_exactly, squared_sensitivity
from discreet.trusted.ring_c.stream_state import Seen, State, StateFile
from discreet.trusted.ring_c.vectors import VectorColumn, Vectors

MOST_GROUPS = 10_000
_MICROSECONDS = 86_400_000_000  # of a day


@dataclass(frozen=True)
class Continual:
    """A declared stream: what is counted when, of whom at most how much, and the noise.

    Period t has the days `first` + t·`days` up to the next, in days since 1970. Rows are counted whose `date` is in it
    or before it, and not before `first`, with keys among the declared values: `arrivals` says when.
    """

    name: str
    table: Table
    date: Column
    keys: tuple[VectorColumn, ...]
    first: int
    days: int
    horizon: int
    rows: int
    periods: int
    sigma: Fraction

    def __post_init__(self) -> None:
        person, columns = self.table.column(self.table.person or ""), {column.name for column in self.of_rows}
        if not self.name or any(map(str.isspace, self.name)):  # what stands behind a space is the number of a period
            raise ValueError("a stream has a name without spaces")
        if type(self.keys) is not tuple or any(key.values is None for key in self.keys):
            raise ValueError("a stream has groups with public keys, fixed beforehand")
        if person is None or person.type not in (Type.TEXT, Type.INTEGER) or self.table.path or self.table.relation:
            raise ValueError("a stream knows each person again, by a text or a whole number in the row itself")
        if self.date.type not in (Type.DATE, Type.TIMESTAMP) or len(columns) < 2 + len(self.keys):
            raise ValueError("a stream has a column of dates, another than those of its keys and persons")
        whole = (self.first, self.days, self.horizon, self.rows, self.periods)
        if (
            any(type(one) is not int for one in whole)
            or min(whole[1:]) < 1
            or max(self.horizon, self.days) > MOST_PERIODS
        ):
            raise ValueError("a stream has a number of periods, of days in each, and limits of a person")
        if self.groups > MOST_GROUPS or self.periods > self.horizon or self.sigma <= 0:
            raise ValueError("a stream has so many groups, no more periods of a person than there are, and noise")

    @property
    def of_rows(self) -> tuple[Column, ...]:
        """The columns that are read."""
        person = (column for column in self.table.columns if column.name == self.table.person)
        return (*person, self.date, *(key.column for key in self.keys))

    @property
    def groups(self) -> int:
        """How many groups there are: all combinations of the keys' declared values, 1 without keys."""
        return math.prod(len(key.values or ()) for key in self.keys)

    @cached_property
    def column(self) -> tuple[int, ...]:
        """The first column of C, in steps."""
        return coefficients(self.horizon)

    @property
    def key(self) -> str:
        """By what the ledger knows the stream: its name alone."""
        return _key(self.name)

    @cached_property
    def loss(self) -> GaussianLoss:
        """Of all releases together."""
        return Gaussian(self.sigma).loss(squared_sensitivity(self.column, self.rows, self.periods))

    @property
    def description(self) -> str:
        """All that says what is measured, and of whom."""
        columns = [[one.name, str(one.type)] for one in self.of_rows]
        values = [[repr(value) for value in key.values or ()] for key in self.keys]
        limits = [self.first, self.days, self.horizon, self.rows, self.periods, str(self.sigma)]
        return json.dumps([self.name, self.table.name, self.table.unit, columns, values, limits])

    def cells(self, vectors: Vectors, number: int) -> tuple[list[int | str], list[int]]:
        """The persons and groups of all rows that may be counted in a period."""
        person, date, *keys = self.of_rows
        day = vectors.values[date.name] // (1 if date.type is Type.DATE else _MICROSECONDS)
        counts = vectors.known[date.name] & (day >= self.first) & (day < self.first + (number + 1) * self.days)
        cell = np.zeros(len(day), np.int64)
        for key, one in zip(keys, self.keys, strict=True):
            counts &= vectors.known[key.name]
            cell = cell * len(one.values or ()) + np.where(vectors.known[key.name], vectors.values[key.name], 0)
        counts &= vectors.known[person.name]
        return vectors.values[person.name][counts].tolist(), cell[counts].tolist()


@dataclass(frozen=True)
class ReleasedPeriod:
    """The release of one period of a stream that has begun."""

    whole: Continual
    begun: bytes
    number: int

    def __post_init__(self) -> None:
        if type(self.number) is not int or not 0 <= self.number < self.whole.horizon:
            raise ValueError("this is no period of a stream")
        if json.loads(self.begun)["stream"] != self.whole.description:
            raise ValueError("this is no period of a stream that was declared so")

    @property
    def question(self) -> str:
        """It in words, for the ledger."""
        return f"stream {self.whole.name}, period {self.number + 1} of {self.whole.horizon}"


class Continuing:
    """A declared stream, as it goes on from process to process."""

    def __init__(self, door: Door, whole: Continual, file: StateFile) -> None:
        self._door, self._whole, self._file = door, whole, file

    def begin(self, question: str) -> bool:
        """Charges the whole horizon, where that has not happened; whether it happened now.

        Raises BudgetError, QuestionError or EngineError (nothing was spent), LedgerError: "stream other" where a stream
        of this name was declared otherwise, "stream restored" where the ledger lacks what the state has released.
        """
        with self._file.held() as key:
            if self._begun() is not None:
                return False
            seen = self._file.seen(key, self._whole.name)
            LedgerError.unless(seen is None or seen.periods == 0, "stream restored", file=self._file.path.name)
            identity = secrets.token_hex(32)
            written = self._file.write(State(identity), key, self._whole.name)
            LedgerError.unless(written, "stream unwritable", file=self._file.path.name)
            begun = json.dumps({"stream": self._whole.description, "identity": _hashed(identity)})
            wholes.begin(self._door, self._whole, begun.encode(), question=question)
            return True

    def advance(self, due: int, rows: object) -> int:
        """Releases all of the first `due` periods that were not, in order; gives how many.

        Raises EngineError where one failed (later calls try it again), LedgerError.
        """
        made = 0
        with self._file.held() as key:
            begun, seen = self._settled(key, rows)
            while seen.periods < min(due, self._whole.horizon):
                self._release(key, rows, begun, seen)
                made += 1
                begun, seen = self._settled(key, rows)
        return made

    def released(self) -> list[list[int]]:
        """What was released so far, w_0, w_1, … by group. The ledger alone is read. Raises LedgerError "stream other"
        where it was declared otherwise: with other noise, or for other groups, its numbers would be misread."""
        begun, found = self._begun(), list[list[int]]()
        while begun is not None and (stored := wholes.released(self._door, self._whole, len(found))) is not None:
            found.append(json.loads(stored)["measured"])
        return found

    def _begun(self) -> bytes | None:
        """What was stored when the stream began. Raises LedgerError "stream other" where it was declared otherwise."""
        try:
            begun = wholes.begun(self._door, self._whole)
        except ValueError:
            raise LedgerError.of("stream other") from None
        same = begun is None or json.loads(begun)["stream"] == self._whole.description
        LedgerError.unless(same, "stream other")
        return begun

    def _seen(self, key: bytes) -> tuple[bytes, Seen]:
        """What was stored when the stream began, and what may be seen of its state, which goes with the ledger. Raises
        LedgerError "stream missing" or "stream restored" where it does not."""
        begun, seen, file = self._begun(), self._file.seen(key, self._whole.name), self._file.path.name
        LedgerError.unless(begun is not None, "stream restored", file=file)
        LedgerError.unless(seen is not None, "stream missing", file=file)
        assert begun is not None
        assert seen is not None
        last, before = self._stored(seen.periods - 1), self._stored(seen.periods - 2)
        fits = json.loads(begun)["identity"] == _hashed(seen.identity)
        fits = fits and (last == seen.released if last is not None else before is not None or seen.periods < 2)
        LedgerError.unless(fits, "stream restored", file=file)
        return begun, seen

    def _stored(self, number: int) -> str | None:
        stored = wholes.released(self._door, self._whole, number) if number >= 0 else None
        return None if stored is None else stored.decode()

    def _settled(self, key: bytes, rows: object) -> tuple[bytes, Seen]:
        """What `_seen` gives, with its last period in the ledger: one that was kept and not committed is committed."""
        begun, seen = self._seen(key)
        last = self._stored(seen.periods - 1)
        if seen.periods and last is None:
            period = ReleasedPeriod(self._whole, begun, seen.periods - 1)
            grant = wholes.step(self._door, period, question=period.question, rows=rows)
            if isinstance(grant, Stored):
                last = grant.answer.decode()
            else:
                with grant:
                    grant.take()
                    grant.commit(seen.released.encode())
                    last = seen.released
        fits = last == seen.released or not seen.periods  # it may be of another process, since it was seen
        LedgerError.unless(fits, "stream restored", file=self._file.path.name)
        return begun, seen

    def _release(self, key: bytes, rows: object, begun: bytes, seen: Seen) -> None:
        period = ReleasedPeriod(self._whole, begun, seen.periods)
        grant = wholes.step(self._door, period, question=period.question, rows=rows)
        LedgerError.unless(not isinstance(grant, Stored), "stream restored", file=self._file.path.name)
        assert not isinstance(grant, Stored)
        with grant:
            taken, engine = grant.take(), cast(CodedEngine, grant._engine)
            released = grant.guarded(lambda: self._drawn(taken, engine, key, seen), self._whole.table)
            if released is None:  # how long a state is, and so whether it fits, follows from rows
                self._door._fail(grant.reserve_id, [self._whole.table.name])
                raise LedgerError.of("stream unwritable", file=self._file.path.name)
            grant.commit(released.encode())

    def _drawn(self, period: ReleasedPeriod, engine: CodedEngine, key: bytes, seen: Seen) -> str | None:
        """Counts, draws and keeps; None where it could not be kept, and so must not be shown. For the gate's frames.

        The state is the one that was seen to go with the ledger, whoever has put another in its place since: a lock
        holds others back, and nothing rests on it.
        """
        whole, state = self._whole, self._file.read(key, self._whole.name)
        if period.whole != whole or state.seen != seen or seen.periods != period.number:
            raise ValueError("this is not the next period of the state that was seen")
        values = {one.column.name: one.values for one in whole.keys}
        wanted = [VectorColumn(column, values.get(column.name)) for column in whole.of_rows]
        persons, cells = whole.cells(engine.vectors(whole.table, wanted), period.number)
        there = present(persons, cells, bytes.fromhex(state.identity))
        added, memory = arrived(state.memory, there, whole.groups, whole.rows, whole.periods)
        counted = (*state.counted, tuple(added))
        measured = Gaussian(whole.sigma).release(measured_exactly(whole.column, counted))
        released = json.dumps({"stream": whole.name, "period": period.number, "measured": measured})
        kept = self._file.write(State(state.identity, counted, memory, released), key, whole.name)
        return released if kept else None


def begun_with(door: Door, name: str) -> Fraction | None:
    """The sigma of the stream that has begun under this name; None where none has. `Continuing` holds it against what
    was charged."""
    found = wholes.stored(door, _key(name))
    return None if found is None else Fraction(json.loads(json.loads(found[0])["stream"])[-1][-1])


def _key(name: str) -> str:
    """One stream of a name in a ledger, for ever."""
    return f"stream {name}"


def _hashed(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()
