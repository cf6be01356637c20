"""The curator's side of the process that reads texts.

What crosses: the declaration, without its sources, once; then a text there, and back a tree as data (`sql.trees`) or a
refusal in words. The argument why a text can do no harm here, whatever it does to the process that reads it:

* that process has no row, no ledger and no salt, so it has nothing to tell;
* what it takes is bounded by limits that the kernel holds, and the lock is given back when it is killed: other
  questions wait no longer than one text may take;
* nothing is unpickled or looked up that it sends: a tree of a closed list of nodes comes of it, which the curator then
  lowers by its own allow-list, and prices, as if the analyst had written that one. The worst that a process in the
  wrong hands can do is to have another question asked at the price that was named, which its analyst might have asked.

A refusal depends on the text and the declaration: the steps, sizes and processor time of reading them.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import threading
import time
import weakref
from dataclasses import replace
from typing import Any

from sqlglot import exp

from discreet.catalog.model import Declaration
from discreet.engines.child import HEADER, Child, ChildGone
from discreet.errors import QuestionError
from discreet.sql.asked import Asked
from discreet.sql.limits import LONGEST, small
from discreet.sql.trees import read
from discreet.trusted.ring_a.table import Source

_SECONDS = 120.0
"""The wall time of one text: ten times its processor time, for a busy machine."""

_MOST = 1 << 25
"""Bytes of an answer."""


class Reading:
    """One child. `tree` is safe from several threads, and in a forked process, which starts a child of its own."""

    _program = "discreet.reading.worker"

    def __init__(self, declaration: Declaration) -> None:
        tables = {name: replace(table, source=Source(table.source.kind)) for name, table in declaration.tables.items()}
        self._declaration = replace(declaration, tables=tables, ledger=None, file=None)
        self._fresh()
        _every.add(self)

    def _fresh(self) -> None:
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._knows = False

    def start(self) -> None:
        """Starts the child, without waiting for it."""
        with self._lock:
            self._start()

    def _start(self) -> Child:
        if self._child is None or not self._child.lives:
            self._child, self._knows = Child(self._program), False
        return self._child

    def wait(self) -> None:
        """Waits until the child is ready. What fails now fails again, and is said, when a question is read."""
        with self._lock, contextlib.suppress(ChildGone):
            if self._child is None or not self._child.lives or not self._knows:
                self._call(Asked(""))

    def tree(self, question: str | Asked) -> exp.Expression:
        """The tree of a question. Raises QuestionError where the text is none, or takes too much to be read."""
        asked = question if isinstance(question, Asked) else Asked(question)
        if len(asked.text) > LONGEST:  # it need not even be sent
            message = f"the question is longer than {LONGEST:,} characters"
            raise QuestionError("too-long", message, where="question", fix="ask something shorter")
        with self._lock:
            try:
                answer = self._call(asked)
            except ChildGone:
                fix = "ask something shorter, with fewer columns and constants"
                message = "this takes too long, or too much memory, to be read"
                raise QuestionError("too-long", message, where="question", fix=fix) from None
            except BaseException:
                self._kill()  # interrupted half-way: what the pipe holds belongs to nobody
                raise
        if "refused" in answer:
            code, message, where, fix = (str(word) for word in answer["refused"])
            raise QuestionError(code, message, where=where, fix=fix)
        try:
            tree = read(answer["tree"])
        except (ValueError, KeyError):
            raise QuestionError("syntax", "this cannot be read", where="question", fix="write plain SQL") from None
        small(tree)
        return tree

    def _call(self, asked: Asked) -> dict[str, Any]:
        """What the child says. Raises ChildGone where it died, was killed by a limit, or said what it cannot say."""
        child = self._start()
        deadline = time.monotonic() + _SECONDS
        try:
            if not self._knows:
                pickle.dump(self._declaration, child.requests, protocol=5)
                self._knows = True
            request = json.dumps([asked.text, asked.dialect, str(asked.day)]).encode()
            child.requests.write(HEADER.pack(len(request)) + request)
            length = child.length(deadline)
            if length > _MOST:
                raise ChildGone
            answer = json.loads(child.read(length, deadline))
            if type(answer) is not dict:
                raise ChildGone
            return answer
        except (ChildGone, OSError, ValueError, RecursionError):
            self._kill()
            raise ChildGone from None

    def close(self) -> None:
        """Ends the child."""
        with self._lock:
            self._kill()

    def _kill(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None


_every: weakref.WeakSet[Reading] = weakref.WeakSet()


def _forked() -> None:
    """In a forked process: locks that other threads held, and children that are not its own, are let go."""
    for one in list(_every):
        one._fresh()


os.register_at_fork(after_in_child=_forked)
