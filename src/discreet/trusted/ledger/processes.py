"""Identities of processes, to tell whether one still runs."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path


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
