"""What a curator warns of while it answers: said in the log, or to whoever asks from elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_log = logging.getLogger("discreet.question")
"""What only who asks should read: it may name what is asked."""
_HEARD: ContextVar[list[str] | None] = ContextVar("heard", default=None)


def warn(words: str) -> None:
    """Says it in the log, or where `listening` is."""
    heard = _HEARD.get()
    if heard is None:
        _log.warning("%s", words)
    else:
        heard.append(words)


@contextmanager
def listening() -> Iterator[list[str]]:
    """What is warned of inside, in this thread: none of it is in this process's log."""
    heard: list[str] = []
    before = _HEARD.set(heard)
    try:
        yield heard
    finally:
        _HEARD.reset(before)
