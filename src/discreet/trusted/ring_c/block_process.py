"""The parent's side of the processes in which the owner's function runs on blocks of a table."""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import queue
import select
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType

START_SECONDS = 120
"""Importing what a function needs may take so long."""

_ANSWER = struct.Struct("<Bd")
_SETTINGS = {
    # no threads before the forks, and no allocator that reserves a gigabyte at once
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}


@dataclass(frozen=True)
class BlockLimits:
    """What one block may take. Public, never from data.

    `seconds` of processor time decide, since they hardly depend on what else the machine does; the clock's limit is
    twice that, for functions that wait. With `constant_time` every block lasts until the clock's limit.
    """

    seconds: int = 60
    memory_gib: int = 2
    constant_time: bool = False

    @property
    def wall(self) -> float:
        """The limit by the clock, in seconds."""
        return 2.0 * self.seconds


class Unusable(Exception):
    """The function cannot be loaded in a process of its own."""


class BlockProcesses:
    """As many processes as the machine has processors, each of which holds the function and runs one block at a time.

    Started before a price is reserved, so that a function which cannot be loaded there costs nothing.
    """

    def __init__(self, function: bytes, limits: BlockLimits, most: int) -> None:
        self._first = pickle.dumps((function, limits.memory_gib, limits.seconds, limits.wall))
        self._limits = limits
        self._lock = threading.Lock()
        self._children: set[subprocess.Popen[bytes]] = set()
        self._over = False
        self._idle: list[subprocess.Popen[bytes]] = []
        try:
            starting = [self._spawned() for _ in range(max(1, min(most, len(os.sched_getaffinity(0)))))]
            self._idle = [self._ready(child) for child in starting]
        except BaseException:
            self.close()
            raise

    def compute(self, blocks: Sequence[bytes], tell: Callable[[int], None]) -> list[float | None]:
        """The function's number on each block, or None. `tell` hears how many blocks are done."""
        results: list[float | None] = [None] * len(blocks)
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for place in range(len(blocks)):
            waiting.put(place)
        done: queue.SimpleQueue[int] = queue.SimpleQueue()

        def work(child: subprocess.Popen[bytes]) -> None:
            with contextlib.suppress(queue.Empty):
                while True:
                    place = waiting.get_nowait()
                    child, results[place] = self._one(child, blocks[place])
                    done.put(place)

        threads = [threading.Thread(target=work, args=(child,), daemon=True) for child in self._idle]
        for thread in threads:
            thread.start()
        for finished in range(len(blocks)):
            done.get()
            tell(finished + 1)
        return results

    def _one(self, child: subprocess.Popen[bytes], block: bytes) -> tuple[subprocess.Popen[bytes], float | None]:
        """One block's number; and the child that goes on, a new one where the old one died."""
        start = time.monotonic()
        value: float | None = None
        try:
            _send(child, block, start + self._limits.wall + START_SECONDS)
            known, found = _ANSWER.unpack(_read(child, _ANSWER.size, start + self._limits.wall + START_SECONDS))
            value = found if known else None
        except Exception:  # whatever it is, it is this block's, and the others go on
            _end(child)
            with contextlib.suppress(Exception):
                child = self._ready(self._spawned())
        if self._limits.constant_time:
            time.sleep(max(0.0, start + self._limits.wall - time.monotonic()))
        return child, value

    def _spawned(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._over:
                raise Unusable
            child = subprocess.Popen(
                [sys.executable, "-c", "from discreet.trusted.ring_c.block_worker import main; main()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_SETTINGS, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                start_new_session=True,
                bufsize=0,
            )
            self._children.add(child)
        return child

    def _ready(self, child: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        deadline = time.monotonic() + START_SECONDS
        try:
            _send(child, self._first, deadline)
            if _read(child, 1, deadline) == b"\1":
                return child
        except OSError:
            pass
        _end(child)
        raise Unusable

    def close(self) -> None:
        """Kills all of them; their blocks' processes die with them."""
        with self._lock:
            self._over = True
            children = list(self._children)
        for child in children:
            _end(child)

    def __enter__(self) -> BlockProcesses:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _ready(descriptor: int, event: int, deadline: float) -> bool:
    """Whether this happens to the descriptor in time. (A process may have more open than `select.select` takes.)"""
    waiting = select.poll()
    waiting.register(descriptor, event)
    return bool(waiting.poll(math.ceil(max(0.0, deadline - time.monotonic()) * 1_000)))


def _send(child: subprocess.Popen[bytes], body: bytes, deadline: float) -> None:
    assert child.stdin is not None
    descriptor, rest = child.stdin.fileno(), memoryview(struct.pack(">Q", len(body)) + body)
    while rest:
        if not _ready(descriptor, select.POLLOUT, deadline):
            raise Unusable
        rest = rest[os.write(descriptor, rest[: 1 << 12]) :]  # a pipe that is ready takes so much without waiting


def _read(child: subprocess.Popen[bytes], length: int, deadline: float) -> bytes:
    assert child.stdout is not None
    found = b""
    while len(found) < length:
        ready = _ready(child.stdout.fileno(), select.POLLIN, deadline)
        piece = os.read(child.stdout.fileno(), length - len(found)) if ready else b""
        if not piece:
            raise Unusable
        found += piece
    return found


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
