"""Open runs: the price is charged when the run opens, counts are asked one by one, and the end is stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from discreet.errors import EngineError, refused
from discreet.locks import Lock
from discreet.sql import Question

Reply = TypeVar("Reply", bool, int)


class DoorRun(Protocol):
    """The door's side of a run."""

    @property
    def ended(self) -> bool: ...

    def commit(self, answer: bytes) -> None: ...


class OpenRun(Generic[Reply]):
    """A run that questions are asked of one at a time, also by several threads. `method` is the curator's method that
    opened it, `word` what its replies are called where they are stored."""

    def __init__(self, measuring: DoorRun, method: str, word: str) -> None:
        self._measuring, self._method, self._word = measuring, method, word
        self._given: list[tuple[str, Reply]] = []
        self._closed = False
        self._lock = Lock()

    @property
    def _over(self) -> bool:
        """Whether nothing more can be asked."""
        return self._closed or self._measuring.ended

    def _answered(self, question: str, measure: Callable[[], Reply]) -> Reply:
        """The reply that `measure` gives, kept for the ledger. What fails in the engine ends the run."""
        with self._lock:
            if self._over:
                raise refused(self._code, "the run has ended", self._method, "open another one")
            try:
                reply = measure()
            except EngineError:
                self.close()
                raise
            self._given.append((question, reply))
            if self._measuring.ended:
                self.close()
            return reply

    def _unpriced(self, question: Question) -> None:
        """Refuses a question that names a price of its own."""
        if question.epsilon is not None or question.delta is not None:
            raise refused(self._code, "the price was paid when the run opened", "epsilon", "ask without a price")

    @property
    def _code(self) -> str:
        return self._method.replace("_", "-")

    def close(self) -> None:
        """Ends the run and stores what it replied."""
        if not self._closed:
            self._closed = True
            self._measuring.commit(json.dumps({self._word: self._given}, ensure_ascii=False).encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        name = self._method.replace("_", " ")
        return f"<{name}, {len(self._given)} {self._word}, {'ended' if self._over else 'open'}>"
