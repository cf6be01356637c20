"""A child process of our own and the pipes to it, from both ends: the parent starts it, reads what it says within a
time limit, and ends it; the child sends answers, prints nothing else, and ends when its parent does."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import select
import signal
import socket
import struct
import threading
import time
import weakref
from collections.abc import Iterator
from typing import BinaryIO

from discreet.engines.forkserver import CURATOR, fork
from discreet.locks import Lock

START_SECONDS = 120
"""A child that is not forked within this time is none."""

HEADER = struct.Struct(">Q")
"""The length of what follows."""


class UnreadableSource(Exception):
    """A server cannot be read: one word of a fixed list, which says why."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


class ChildGone(Exception):
    """The child has ended, or it says nothing within the time limit."""


def _ready(descriptor: int, seconds: float | None) -> bool:
    """Whether something is to be read there, or nothing any more, within so many seconds; None: it waits for it. (A
    process may have more open than `select.select` takes.)"""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(None if seconds is None else math.ceil(max(0.0, seconds) * 1_000)))


class Requests:
    """What a child is asked, written at once: nothing waits in a buffer, of which a forked process would have a copy
    to send again."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, request: bytes) -> None:
        """Writes all of it. Raises OSError where nobody reads any more."""
        left = memoryview(request).cast("B")
        while left:
            left = left[os.write(self._descriptor, left) :]

    def close(self) -> None:
        """Lets go of the pipe."""
        os.close(self._descriptor)


class Child:
    """A child that runs `main` of the module `program`.

    It belongs to the process that started it: in a forked one it is somebody else's. What nobody ended ends with this
    object, or with the process.
    """

    def __init__(self, program: str) -> None:
        requests, there = os.pipe()
        self._answers, answers = os.pipe()
        self.requests = Requests(there)
        self._process = _Process(fork(program, requests, answers))
        os.close(requests)
        os.close(answers)
        self.end = weakref.finalize(self, _end, self._process, self.requests, self._answers)

    @property
    def pid(self) -> int:
        return self._process.known()[0]

    @property
    def lives(self) -> bool:
        """Whether it runs, and is this process's."""
        return self._process.own and self._process.lives

    @property
    def own(self) -> bool:
        """Whether this process started it."""
        return self._process.own

    def length(self, deadline: float) -> int:
        """The length that the child says."""
        (length,) = HEADER.unpack(self.read(HEADER.size, deadline))
        return int(length)

    def read(self, length: int, deadline: float) -> bytes:
        """So many bytes of the child's, until a moment on the monotonic clock. Raises ChildGone."""
        pieces = []
        while length:
            ready = _ready(self._answers, deadline - time.monotonic())
            piece = os.read(self._answers, min(length, 1 << 20)) if ready else b""
            if not piece:
                raise ChildGone
            pieces.append(piece)
            length -= len(piece)
        return b"".join(pieces)


class _Process:
    """The process of a child, of which it is told when it is forked."""

    def __init__(self, news: socket.socket) -> None:
        self._news, self._owner = news, os.getpid()
        self._lock = Lock()
        self._known: tuple[int, int | None] | None = None

    def known(self) -> tuple[int, int | None]:
        """Its number, and its descriptor while it is not ended; no descriptor where it could not be started."""
        with self._lock:
            if self._known is None:
                number, descriptors = b"", list[int]()
                if _ready(self._news.fileno(), START_SECONDS):  # interrupted here, it is asked again
                    number, descriptors, _, _ = socket.recv_fds(self._news, 8, 1)
                self._news.close()
                self._known = int.from_bytes(number, "big"), next(iter(descriptors), None)
            return self._known

    @property
    def own(self) -> bool:
        return self._owner == os.getpid()

    @property
    def lives(self) -> bool:
        _, descriptor = self.known()
        return descriptor is not None and not _ready(descriptor, 0)

    def end(self) -> None:
        """Kills it, and waits until it is gone; in a forked process, lets go of it, and reads no news of it: there is
        one piece, and that is the owner's."""
        with self._lock:
            if self._known is None and not self.own:
                self._news.close()
                self._known = 0, None
            number, descriptor = self.known()
            if descriptor is not None:
                if self.own:
                    with contextlib.suppress(ProcessLookupError):
                        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                    _ready(descriptor, None)
                os.close(descriptor)
                self._known = number, None


def _end(process: _Process, requests: Requests, answers: int) -> None:
    """Kills a child and lets go of its pipes."""
    process.end()
    requests.close()
    os.close(answers)


def serve() -> tuple[BinaryIO, BinaryIO]:
    """In the child: where requests come from and answers go to. Nothing else is printed, no core is left behind, and
    the child ends when the curator's process does, also in the middle of a long request."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def watch() -> None:
        _ready(CURATOR, None)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    return requests, answers


def held() -> int:
    """The bytes of address space that this process takes: at its beginning, what its program needs."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


@contextlib.contextmanager
def libraries() -> Iterator[None]:
    """What is loaded here is counted apart from the memory of the tables: the limit grows by the address space that the
    libraries take, of which they reserve more than a GiB and use little."""
    limit, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    before = held()
    try:
        yield
    finally:
        if limit != resource.RLIM_INFINITY:
            limit += max(0, held() - before)
            resource.setrlimit(
                resource.RLIMIT_AS, (limit if most == resource.RLIM_INFINITY else min(limit, most), most)
            )
