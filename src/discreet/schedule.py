"""Answers on a schedule: response times do not depend on the data."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.engines.protocol import UNTIL
from discreet.errors import EngineError
from discreet.trusted.ring_a.forks import Lock


class Slot:
    """The time of one question, from when it is asked until it is answered: chosen beforehand, from the question."""

    def __init__(self, seconds: int | None) -> None:
        self._seconds = seconds
        self._begun = time.monotonic()
        self.take(1)

    def take(self, statements: int) -> None:
        """A question of so many statements of the engine takes so many times the declared seconds."""
        if self._seconds is not None:
            self._whole = self._seconds * max(1, statements)
            UNTIL.set(self._begun + self._whole / 2)

    def wait(self) -> bool:
        """Waits for the end. Gives whether it was still to come."""
        if self._seconds is None:
            return True
        left = self._begun + self._whole - time.monotonic()
        time.sleep(max(0.0, left))
        return left >= 0


@contextmanager
def on_schedule(seconds: int | None, turn: Lock | None = None) -> Iterator[Slot]:
    """Ends when the slot ends, whatever happens inside: an answer, a repeat from the ledger, a refusal, a failure.
    None: at once.

    How long the slot is follows from the declaration and the question, never from how long it took: who waits for the
    next of several moments tells which one it was, and an analyst can tune a question to the edge between two. So what
    is not ready in time has failed. The engine is stopped at half of the slot; an answer that is late all the same is
    not given. (It is stored: asking again gives it.) Where the engine's `turn` does not come within a quarter of the
    slot, because others ask, nothing is spent.
    """
    before = UNTIL.get()
    slot = Slot(seconds)
    mine = turn is not None and seconds is not None
    try:
        if mine and turn is not None and not turn.acquire((seconds or 0) / 4):
            mine = False
            raise EngineError(busy=True)
        yield slot
    except BaseException:
        _end(slot, before, turn if mine else None)
        raise
    if not _end(slot, before, turn if mine else None):
        raise EngineError


def _end(slot: Slot, before: float | None, turn: Lock | None) -> bool:
    UNTIL.set(before)
    if turn is not None:
        turn.release()
    return slot.wait()
