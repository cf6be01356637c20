"""Defers signals (such as Ctrl-C) until the answer is stored."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)  # asked to end, the terminal is gone, Ctrl-C
_within = False  # used by the main thread alone


@contextmanager
def finishing() -> Iterator[None]:
    """Holds back the first signal that would end what runs inside, and raises it at the end.

    A question whose price is reserved has an answer that is paid for, and its end in the middle would count as a
    failure (`trusted.ledger`). So it runs on, within the engine's limits, and is stored; the engine's process
    has a session of its own and hears nothing. Who sends a second signal does not wait.

    Signals come to the main thread alone: in others this does nothing. One that is ignored stays ignored.
    """
    with _held_back(_SIGNALS):
        yield


@contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """The same of what runs in steps, and stops between two of them when it is told so: gives what says whether a
    signal came. A Ctrl-C is done with then, and raised no more; other signals are, at the end."""
    with _held_back((signal.SIGTERM, signal.SIGHUP)) as came:
        yield lambda: bool(came)


@contextmanager
def _held_back(raised: Collection[int]) -> Iterator[list[int]]:
    """The signals that came inside: the first one has no effect there, and is `raised` at the end if it is one of
    these."""
    global _within
    came: list[int] = []
    if _within or threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = {one: signal.getsignal(one) for one in _SIGNALS}

    def note(number: int, _: FrameType | None) -> None:
        came.append(number)
        if len(came) > 1:
            restore()
            signal.raise_signal(number)

    def restore() -> None:
        for one in _SIGNALS:
            if signal.getsignal(one) is note:
                signal.signal(one, before[one])

    _within = True
    try:
        for one, handler in before.items():
            if handler not in (signal.SIG_IGN, None):
                signal.signal(one, note)
        yield came
    finally:
        _within = False
        restore()
        if len(came) == 1 and came[0] in raised:
            signal.raise_signal(came[0])
