"""A child process of our own and the pipes to it, from both ends: the parent starts it, reads what it says within a
time limit, and ends it; the child sends answers, prints nothing else, and ends when its parent does."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import struct
import subprocess
import sys
import threading
import time
import weakref
from typing import BinaryIO

HEADER = struct.Struct(">Q")
"""The length of what follows."""


class Gone(Exception):
    """The child has ended, or it says nothing within the time limit."""


class Child:
    """A child that runs `program`, with an environment that tells it nothing of its surroundings.

    It belongs to the process that started it: in a forked one it is somebody else's. What nobody ended ends with this
    object, or with the process.
    """

    def __init__(self, program: str) -> None:
        environment = {
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "PATH": os.environ.get("PATH", ""),
            "HOME": "/nonexistent",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "OPENBLAS_NUM_THREADS": "1",  # its threads would take address space that limits leave to others
            "PYTHONDONTWRITEBYTECODE": os.environ.get("PYTHONDONTWRITEBYTECODE", ""),
        }
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in environment.items() if value},
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.requests: BinaryIO = self._process.stdin  # type: ignore[assignment]
        self._answers = self._process.stdout.fileno()
        self.end = weakref.finalize(self, _end, self._process, self._owner)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    @property
    def own(self) -> bool:
        """Whether this process started it."""
        return self._owner == os.getpid()

    def length(self, deadline: float) -> int:
        """The length that the child says."""
        (length,) = HEADER.unpack(self.read(HEADER.size, deadline))
        return int(length)

    def read(self, length: int, deadline: float) -> bytes:
        """So many bytes of the child's, until a moment on the monotonic clock. Raises Gone."""
        pieces = []
        while length:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(self._answers, min(length, 1 << 20)) if ready else b""
            if not piece:
                raise Gone
            pieces.append(piece)
            length -= len(piece)
        return b"".join(pieces)


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    """Kills a child and lets go of its pipes."""
    if owner != os.getpid():
        return
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):  # what was still to be written has no reader any more
                stream.close()


def serve() -> tuple[BinaryIO, BinaryIO]:
    """In the child: where requests come from and answers go to. Nothing else is printed, no core is left behind, and
    the child ends when its parent does, also in the middle of a long request."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    return requests, answers
