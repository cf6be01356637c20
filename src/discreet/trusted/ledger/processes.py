"""Who is told of a fork, and identities of processes, to tell whether one still runs."""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from functools import cache
from pathlib import Path
from typing import Protocol


class Forkable(Protocol):
    """What is told of a fork by the thread that forks: before it, and after it in the parent and in the child."""

    def before_fork(self) -> None: ...
    def after_fork(self, child: bool) -> None: ...


_TOLD: weakref.WeakSet[Forkable] = weakref.WeakSet()
_forking = threading.local()  # whom this thread has told that it forks


def around(told: Forkable) -> None:
    """From now on it is told of every fork."""
    _TOLD.add(told)


def _before() -> None:
    _forking.told = sorted(_TOLD, key=id)  # one order for all threads
    for told in _forking.told:
        told.before_fork()


def _after(child: bool) -> None:
    for told in _forking.told:
        told.after_fork(child)
    _forking.told = []


os.register_at_fork(before=_before, after_in_parent=lambda: _after(False), after_in_child=lambda: _after(True))


def this_process() -> str:
    """A name that no other process has: the machine's start and the namespace of its numbers, hashed; the process's
    number; when it began, in the machine's ticks."""
    return f"{_place()} {os.getpid()} {_began(os.getpid())}"


def lives(process: str | None) -> bool:
    """Whether a process still runs; one of an older version, which gave it no name, counts for that. One of another
    machine, of before its last start, or of a namespace that cannot be seen from here, does not: a container that was
    killed and started again is another process, whatever its number."""
    if process is None:
        return True
    place, number, began = process.split()
    return place == _place() and _began(int(number)) == began


@cache
def _place() -> str:
    start = Path("/proc/sys/kernel/random/boot_id").read_text()
    return hashlib.sha256(f"{start} {os.readlink('/proc/self/ns/pid')}".encode()).hexdigest()[:16]


def _began(number: int) -> str | None:
    """None where there is no such process, or it has ended and waits to be collected."""
    try:
        stat = Path(f"/proc/{number}/stat").read_text(errors="replace")
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else fields[18]
