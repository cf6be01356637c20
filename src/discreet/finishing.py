"""Defers signals (such as Ctrl-C) until the answer is stored."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
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
    with _held_back(lambda _: True):
        yield


@contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """The same of what runs in steps, and stops between two of them when it is told so: gives what says whether a
    signal came. Where that was asked, a Ctrl-C that has no handler of the program's own is done with, and not raised at
    the end."""
    asked: list[bool] = []
    plain = signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def stops() -> bool:
        asked.append(True)
        return bool(came)

    with _held_back(lambda number: number != signal.SIGINT or not plain or not asked) as came:
        yield stops


@contextmanager
def _held_back(raised: Callable[[int], bool]) -> Iterator[list[int]]:
    """The signals that came inside: the first one has no effect there, and is raised at the end if it is to be. A
    process that is forked inside has what it would have had outside."""
    global _within
    came: list[int] = []
    if _within or threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = {one: signal.getsignal(one) for one in _SIGNALS}
    owner = os.getpid()

    def note(number: int, _: FrameType | None) -> None:
        came.append(number)
        if len(came) > 1 or os.getpid() != owner:
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
        if len(came) == 1 and os.getpid() == owner and raised(came[0]):
            signal.raise_signal(came[0])


def _outside() -> None:
    global _within
    _within = False


os.register_at_fork(after_in_child=_outside)
