"""Answers on a schedule: response times do not depend on the data."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.engines.protocol import UNTIL
from discreet.errors import EngineError
from discreet.locks import Lock

WAITED = 4
"""How many times the declared seconds a question waits for its turn."""


class Slot:
    """The time of one question, from when its turn comes until it is answered: chosen beforehand, from the question."""

    def __init__(self, seconds: int | None) -> None:
        self._seconds = seconds
        self._begun = time.monotonic()
        self._statements = 0
        self.take(1)

    def take(self, statements: int) -> None:
        """A question of so many statements of the engine takes so many times the declared seconds."""
        if self._seconds is not None:
            self._whole = self._seconds * max(1, statements)
            UNTIL.set(self._begun + self._whole / 2)

    def part(self, statements: int) -> None:
        """The next part of the question takes so many of these statements: the engine has half of their time for it."""
        if self._seconds is not None:
            self._statements += max(1, statements)
            UNTIL.set(self._begun + min(self._whole, self._seconds * self._statements) / 2)

    def rest(self) -> None:
        """What is computed from what was released may take all of the slot that is left."""
        if self._seconds is not None:
            UNTIL.set(self._begun + self._whole)

    def wait(self, part: float = 1) -> bool:
        """Waits for the end of this part of it. Gives whether it was still to come."""
        if self._seconds is None:
            return True
        left = self._begun + self._whole * part - time.monotonic()
        time.sleep(max(0.0, left))
        return left >= 0


@contextmanager
def on_schedule(seconds: int | None, turn: Lock | None = None) -> Iterator[Slot]:
    """Ends when the slot ends, whatever happens inside: an answer, a repeat from the ledger, a refusal, a failure.
    None: at once.

    How long the slot is follows from the declaration and the question, never from how long it took: who waits for the
    next of several moments tells which one it was, and an analyst can tune a question to the edge between two. So what
    is not ready in time has failed. The engine is stopped at half of the slot; an answer that is late all the same is
    not given. (It is stored: asking again gives it.)

    The engine's `turn` is held for half of the slot, however early the engine is done: whoever asks next would see when
    it is let go of. So how long a question waits for its turn follows from when others asked, and its slot begins then.
    Where the turn does not come in time, nothing is spent.

    What was measured is stored at the end of the engine's time, `engine_time_over`, however early it is done: from then
    on the same question is a repeat, to whoever asks it in another process too, and not before.
    """
    if seconds is None or turn is None:
        with _slot(seconds) as slot:
            yield slot
        return
    if not turn.acquire(WAITED * seconds):
        raise EngineError(busy=True)
    with _slot(seconds, turn) as slot:
        yield slot


@contextmanager
def _slot(seconds: int | None, turn: Lock | None = None) -> Iterator[Slot]:
    before = UNTIL.get()
    slot = Slot(seconds)
    try:
        yield slot
    except BaseException:
        _end(slot, before, turn)
        raise
    if not _end(slot, before, turn):
        raise EngineError


def _end(slot: Slot, before: float | None, turn: Lock | None) -> bool:
    UNTIL.set(before)
    if turn is not None:
        try:
            slot.wait(1 / 2)
        finally:
            turn.release()
    return slot.wait()


def engine_time_over() -> None:
    """Waits for the end of the time that the engine has for what it does now; not at all without a schedule."""
    until = UNTIL.get()
    if until is not None:
        time.sleep(max(0.0, until - time.monotonic()))


class Turns:
    """The engine's turn, for the steps of a publication: they are not questions of their own, and have no slot.

    Each holds the turn for an eighth of the declared seconds, or for as many eighths as it takes: how long the engine
    takes for a step shows in others' waiting no finer. Questions come between them. None declared: no step waits.
    """

    def __init__(self, seconds: int | None, turn: Lock) -> None:
        self._seconds, self._turn = seconds, turn

    @contextmanager
    def one(self) -> Iterator[None]:
        """A step, once its turn has come."""
        if self._seconds is None:
            yield
            return
        with self._turn:
            begun = time.monotonic()
            try:
                yield
            finally:
                part = self._seconds / 8
                time.sleep(part - (time.monotonic() - begun) % part)
