"""Locks that survive forks."""

from __future__ import annotations

import os
import threading
import weakref


class Lock:
    """A lock for `with`, which a thread may take again while it holds it, and which a forked child has anew.

    A fork copies a lock that another thread holds, but not that thread: in the child nobody would ever let go of it.
    What it guards must be fit for the child as any thread may have left it, or know that it belongs to the parent.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _LOCKS.add(self)

    def acquire(self, seconds: float) -> bool:
        """Whether the lock was had within so many seconds; then `release` lets go of it."""
        return self._lock.acquire(timeout=seconds)

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def renew(self) -> None:
        """A lock that nobody holds, in the place of the one there was: for a forked child."""
        self._lock = threading.RLock()


_LOCKS: weakref.WeakSet[Lock] = weakref.WeakSet()


def _renew() -> None:
    for lock in list(_LOCKS):
        lock.renew()


os.register_at_fork(after_in_child=_renew)
