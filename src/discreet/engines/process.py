"""The parent's side of the engine's child process: start it, ask it within a time limit, kill it."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import struct
import subprocess
import sys
import threading
import time
import weakref
from contextvars import ContextVar
from typing import Any

UNTIL: ContextVar[float | None] = ContextVar("until", default=None)
"""The moment on the monotonic clock at which whatever is asked of an engine has failed; None where there is none."""


class Stopped(Exception):
    """The child died or was killed: it took too long, or too much memory."""


class Lost(Exception):
    """The child had ended under another's request before this one began: nothing of this one failed."""


class Failed(Exception):
    """The engine could not do it. Its message stayed in the child."""


class EngineProcess:
    """One child. `call` is safe from several threads; requests are answered one after another."""

    def __init__(self) -> None:
        environment = {
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "PATH": os.environ.get("PATH", ""),
            "HOME": "/nonexistent",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "OPENBLAS_NUM_THREADS": "1",  # its threads would take address space that the limit leaves to the tables
            "PYTHONDONTWRITEBYTECODE": os.environ.get("PYTHONDONTWRITEBYTECODE", ""),
        }
        self._owner = os.getpid()
        self._ended_under_a_request = False
        self._lock = threading.Lock()
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-c", "from discreet.engines.worker import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in environment.items() if value},
            start_new_session=True,
        )
        # an engine that nobody closed ends with the object that held it, or with this process
        self._end = weakref.finalize(self, _end, self._child, self._owner)

    @property
    def usable(self) -> bool:
        """Whether this child still runs and belongs to this process (a fork does not inherit it)."""
        return self._owner == os.getpid() and self._child.poll() is None

    @property
    def ended_alone(self) -> bool:
        """Whether this child has ended, and not under a request."""
        return not self._ended_under_a_request and self._child.poll() is not None

    @property
    def pid(self) -> int:
        return self._child.pid

    def call(self, *request: Any, seconds: float) -> Any:
        """The child's answer. Raises Failed where the engine failed, Stopped where the child is gone or was killed,
        Lost where that happened under an earlier request, which was told so."""
        with self._lock:
            if self._ended_under_a_request:
                raise Lost
            deadline = time.monotonic() + seconds
            if (until := UNTIL.get()) is not None:
                deadline = min(deadline, until)
            try:
                assert self._child.stdin is not None
                try:
                    pickle.dump(request, self._child.stdin, protocol=5)
                except (TypeError, AttributeError, pickle.PicklingError):
                    self.kill()  # an object that is no table; half of it may stand in the pipe
                    raise Failed from None
                self._child.stdin.flush()
                (length,) = struct.unpack(">Q", self._read(8, deadline))
                answer = json.loads(self._read(length, deadline))
                if "buffers" in answer:
                    answer["buffers"] = [self._read(size, deadline) for size in answer["buffers"]]
            except (OSError, Stopped, ValueError):
                self.kill()
                raise Stopped from None
            except BaseException:
                self.kill()  # interrupted half-way: what the pipe holds belongs to nobody
                raise
        if answer.get("failed"):
            raise Failed
        return answer

    def _read(self, length: int, deadline: float) -> bytes:
        assert self._child.stdout is not None
        descriptor = self._child.stdout.fileno()
        pieces = []
        while length:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise Stopped
            piece = os.read(descriptor, min(length, 1 << 20))
            if not piece:
                raise Stopped
            pieces.append(piece)
            length -= len(piece)
        return b"".join(pieces)

    def kill(self) -> None:
        """Ends the child at once."""
        self._ended_under_a_request = True
        self._end()


def _end(child: subprocess.Popen[bytes], owner: int) -> None:
    """Kills a child and lets go of its pipes; in a forked process it belongs to somebody else."""
    if owner != os.getpid():
        return
    child.kill()
    child.wait()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):  # what was still to be written has no reader any more
                stream.close()
