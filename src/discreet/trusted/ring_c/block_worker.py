"""The child in which the owner's function runs: one process that holds the function, and a fresh fork for each block.

Started as `python -c "from discreet.trusted.ring_c.block_worker import main; main()"`. It starts no threads, an
allocator's own aside, which is made for that, so it can be forked safely; each block's process begins in the same
state, so no block can see or change another through memory. A block's process has limits of its own, prints nothing and
is killed at its end, with its group. Nothing comes back but nine bytes: whether there was a number, and the number.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import pickle
import resource
import select
import signal
import struct
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from numbers import Real
from typing import Any, NoReturn

_GIB = 1 << 30
_ANSWER = struct.Struct("<Bd")
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def main() -> None:
    """Loads the function, says with one byte whether that went well (1) or not (0, which ends it), and then answers
    blocks until the parent is gone."""
    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")  # of the fork beside an allocator's thread
    try:
        function, memory_gib, seconds, wall = pickle.loads(_request(requests))
        worker = BlockWorker(pickle.loads(function), memory_gib, seconds, wall, (requests, answers))
    except Exception:
        os.write(answers, b"\0")
        return
    os.write(answers, b"\1")
    while True:
        os.write(answers, worker.answer(_request(requests)))


def _request(stream: int) -> bytes:
    (length,) = struct.unpack(">Q", _read(stream, 8))
    return _read(stream, length)


def _read(stream: int, length: int) -> bytes:
    pieces = []
    while length:
        piece = os.read(stream, min(length, 1 << 20))
        if not piece:
            sys.exit()  # the parent is gone
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)


class BlockWorker:
    """Holds the function, and runs it on one block after another, each in a process of its own."""

    def __init__(
        self, function: Callable[[Any], object], memory_gib: int, seconds: int, wall: float, pipes: tuple[int, int]
    ) -> None:
        frame([])  # what frames need is loaded once, before the forks

        self.function = function
        self.memory_gib = memory_gib
        self.seconds = seconds
        self.wall = wall
        self.pipes = pipes
        self.libc = ctypes.CDLL(None)

    def answer(self, block: bytes) -> bytes:
        """Nine bytes: 1 and the function's number, or 0 where it gave none within its limits."""
        theirs, ours = os.pipe()
        child = os.fork()
        if child == 0:
            self._compute(block, theirs, ours)
        os.close(ours)
        try:
            return self._wait(theirs)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(theirs)

    def _wait(self, result: int) -> bytes:
        """What the block's process wrote, if it did so in time. Ends both processes when the parent is gone."""
        deadline = time.monotonic() + self.wall
        found = b""
        while len(found) < _ANSWER.size:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([result, self.pipes[0]], [], [], max(0.0, left))
            if self.pipes[0] in ready:
                sys.exit()  # nothing is sent while a block runs: this is the end of the parent
            piece = os.read(result, _ANSWER.size - len(found)) if ready else b""
            if not piece:
                return _ANSWER.pack(0, 0.0)
            found += piece
        return found

    def _compute(self, block: bytes, theirs: int, ours: int) -> NoReturn:
        """The block's own process: limits first, then the function; whatever happens, it ends here."""
        answer = _ANSWER.pack(0, 0.0)
        try:
            os.setpgid(0, 0)
            self.libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL)
            for descriptor in (*self.pipes, theirs):
                os.close(descriptor)
            space = _address_space() + self.memory_gib * _GIB
            resource.setrlimit(resource.RLIMIT_AS, (space, space))
            resource.setrlimit(resource.RLIMIT_CPU, (self.seconds, self.seconds + 1))
            value = number(self.function(frame(pickle.loads(block))))
            if value is not None:
                answer = _ANSWER.pack(1, value)
        except BaseException:
            answer = _ANSWER.pack(0, 0.0)
        finally:
            with contextlib.suppress(BaseException):
                os.write(ours, answer)
            os._exit(0)


def _address_space() -> int:
    """The bytes of address space that this process has now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def number(value: object) -> float | None:
    """What a function gave, as a number; None where it is none: text, truth values, not-a-number, too large."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        known = float(value)
    except (OverflowError, ValueError, TypeError):
        return None
    return None if math.isnan(known) else known


def frame(columns: list[tuple[str, str, Any, Any]]) -> Any:
    """A block as a pandas frame. A column's dtype follows from its declared type, never from the values in it."""
    import numpy as np

    pd: Any = import_module("pandas")
    np.random.seed()  # a fork would repeat the numbers of its brothers
    made: dict[str, Any] = {}
    for name, kind, values, known in columns:
        if kind == "number":
            made[name] = np.where(known, values, np.nan)
        elif kind == "integer":
            made[name] = pd.arrays.IntegerArray(values.copy(), ~known)
        elif kind == "boolean":
            made[name] = pd.arrays.BooleanArray(values.astype(bool), ~known)
        elif kind in ("date", "timestamp"):
            moments = values.astype("datetime64[D]" if kind == "date" else "datetime64[us]").astype("datetime64[us]")
            made[name] = np.where(known, moments, np.datetime64("NaT"))
        else:
            made[name] = pd.array(np.where(known, values, None), dtype="string")
    return pd.DataFrame(made)
