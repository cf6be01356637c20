"""The parent's side of the engine's child process: ask it within a time limit, kill it."""

from __future__ import annotations

import json
import math
import pickle
import threading
import time
from typing import Any

from discreet.engines.child import Child, ChildGone, UnreadableSource
from discreet.engines.protocol import UNTIL, Lost, Stopped


class Failed(Exception):
    """The engine could not do it. Its message stayed in the child."""


class EngineProcess:
    """One child, which runs an engine's module `worker`. `call` is safe from several threads; requests are answered one
    after another."""

    def __init__(self, worker: str) -> None:
        self._ended_under_a_request = self._closed = False
        self._stood = -math.inf
        self._lock = threading.Lock()
        self._child = Child(worker)

    @property
    def usable(self) -> bool:
        """Whether this child still runs and belongs to this process (a fork does not inherit it)."""
        return self._child.own and self._child.lives

    @property
    def ended_alone(self) -> bool:
        """Whether this child has ended, and not under a request."""
        return not self._ended_under_a_request and self._child.own and not self._child.lives

    @property
    def pid(self) -> int:
        return self._child.pid

    def call(self, *request: Any, seconds: float) -> Any:
        """The child's answer. Raises Failed where the engine failed, UnreadableSource where a source's server did,
        Stopped where the child is gone or was killed, Lost where that happened under an earlier request, which was told
        so, or its owner closed it."""
        with self._lock:
            return self._call(request, seconds)

    def stands(self, every: float, seconds: float) -> bool:
        """Whether the child still has what it loaded from a server, so far as it can be asked now: it is where another
        request runs, and for `every` seconds after it said so. Where it does not say so within these seconds it is
        killed."""
        if time.monotonic() >= self._stood + every and self._lock.acquire(blocking=False):
            try:
                self._call(("whole",), seconds)
            except (Failed, UnreadableSource, Lost, Stopped):
                self.kill()
                return False
            finally:
                self._lock.release()
            self._stood = time.monotonic()
        return True

    def _call(self, request: tuple[Any, ...], seconds: float) -> Any:
        if self._ended_under_a_request:
            raise Lost
        deadline = time.monotonic() + seconds
        if (until := UNTIL.get()) is not None:
            deadline = min(deadline, until)
        try:
            try:
                pickle.dump(request, self._child.requests, protocol=5)
            except (TypeError, AttributeError, pickle.PicklingError):
                self.kill()  # an object that is no table; half of it may stand in the pipe
                raise Failed from None
            answer = json.loads(self._child.read(self._child.length(deadline), deadline))
            if "buffers" in answer:
                answer["buffers"] = [self._child.read(size, deadline) for size in answer["buffers"]]
        except (OSError, ChildGone, ValueError):
            self.kill()
            raise (Lost if self._closed else Stopped) from None
        except BaseException:
            self.kill()  # interrupted half-way: what the pipe holds belongs to nobody
            raise
        if answer.get("failed"):
            raise Failed
        if "refused" in answer:
            raise UnreadableSource(answer["refused"])
        return answer

    def last(self, *request: Any, seconds: float) -> None:
        """Asks the child for something before it is closed, whatever becomes of it; nothing while another request
        runs."""
        if self._lock.acquire(blocking=False):
            try:
                self._call(request, seconds)
            except (Failed, UnreadableSource, Lost, Stopped):
                pass
            finally:
                self._lock.release()

    def close(self) -> None:
        """Ends the child at once, on its owner's word: what is asked of it now is lost, and has not failed."""
        self._closed = True
        self.kill()

    def kill(self) -> None:
        """Ends the child at once."""
        self._ended_under_a_request = True
        self._child.end()
