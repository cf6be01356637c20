"""Several processes that answer questions over one ledger, each with a curator and an engine of its own on the same
files.

    clients ──► the service: who asks, whose turn ──► a worker that has nothing to do ──► its engine

The service's own process says who asks, holds one question of an analyst at a time and the names of requests, and
hands each question to a worker that answers no other, so that nobody waits for another's question while a worker is
free. What a charge, a snapshot or a suspension is stands in the ledger, which every process reads anew for each
question: a worker takes another snapshot as soon as the owner does.

A worker that ends is started again. What it had reserved and not answered is charged, and whose question it was is
suspended, by the ledger's own rule. Workers end when the service does: after the questions that they have.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Protocol, cast

from discreet.catalog import Declaration
from discreet.curator import Curator
from discreet.curator.warned import listening, warn
from discreet.errors import EngineError, Error, QuestionError
from discreet.explanation import Explanation
from discreet.release import Release
from discreet.service.watching import log_to_standard_error

WAIT_SECONDS = 60
"""How long a question waits for a worker."""

AGAIN_SECONDS = 1.0
"""How long it takes at least from one start of a worker to the next."""

SLOTS = 16
"""How many questions all workers hold where answers come on a schedule: most of them only wait for their time."""

_log = logging.getLogger("discreet")


class Answerer(Protocol):
    """What answers questions: a curator, or several workers."""

    def ask(self, question: str, **said: Any) -> Release:
        """As of a curator."""
        ...

    def explain(self, question: str, **said: Any) -> Explanation:
        """As of a curator."""
        ...

    def columns_of(self, question: str, **said: Any) -> dict[str, str]:
        """As of a curator."""
        ...

    def check_question(self, question: str, **said: Any) -> tuple[str, ...]:
        """As of a curator."""
        ...

    @property
    def engine_starts(self) -> int:
        """As of a curator; of several workers, how often one was started."""
        ...


class _Worker:
    """A process that answers what comes on its connections: one question at a time on each."""

    def __init__(self, declaration: Declaration, connections: int, log: str | None) -> None:
        pairs = [Pipe() for _ in range(connections)]
        theirs = [there.fileno() for _, there in pairs]
        self.lanes = [_Lane(self, here) for here, _ in pairs]
        self.running = 0
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {__name__} import main; main({theirs!r}, {log!r})"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=theirs,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            start_new_session=True,
        )
        for _, there in pairs:
            there.close()
        with suppress(OSError):
            self.lanes[0].connection.send(declaration)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def ready(self) -> None:
        """Waits until it can answer. Raises what a curator raises that cannot be opened."""
        try:
            _result(self.lanes[0].connection.recv())
        except (EOFError, OSError):
            raise EngineError(busy=True) from None

    def wait(self) -> None:
        """Waits until it has ended."""
        self._process.wait()

    def kill(self) -> None:
        """Ends it at once; nobody uses it yet."""
        self._process.kill()
        self.wait()


class _Lane:
    """A connection to a worker."""

    def __init__(self, worker: _Worker, connection: Connection) -> None:
        self.worker, self.connection = worker, connection


class Workers:
    """So many processes with a curator each: `Answerer`. `start` starts them, `close` ends them.

    `declaration` is registered in the ledger already. Of analysts one question at a time is for the caller to hold.
    `log` is the form of what they log on standard error, as of `discreet.service.watching`.
    """

    def __init__(self, declaration: Declaration, number: int, log: str | None = None) -> None:
        self._declaration, self._number, self._log = declaration, number, log
        self._connections = max(1, SLOTS // number) if declaration.limits.answer_seconds else 1
        self._workers: list[_Worker] = []
        self._idle: list[_Lane] = []
        self._changed = threading.Condition()
        self._starting: _Worker | None = None
        self._starts = 0
        self._looks, self._closing = threading.Event(), threading.Event()
        self._watching = threading.Thread(target=self._watch, daemon=True)

    @property
    def engine_starts(self) -> int:
        """How often a worker was started, with its engine: more than once each where one has ended."""
        return self._starts

    @property
    def processes(self) -> list[int]:
        """The numbers of those that can answer."""
        with self._changed:
            return [one.pid for one in self._workers if one.lives]

    def start(self) -> None:
        """Starts the first, and the others when it can answer. Raises what a curator raises that cannot be opened."""
        self._begin()
        self._watching.start()

    def ask(self, question: str, **said: Any) -> Release:
        """Answers a question: `Curator.ask`. Raises EngineError, too, where the worker ended under it."""
        return cast("Release", self._call("ask", question, said, EngineError()))

    def explain(self, question: str, **said: Any) -> Explanation:
        """Says the price and expected error of a question: `Curator.explain`."""
        return cast("Explanation", self._call("explain", question, said, EngineError(busy=True)))

    def columns_of(self, question: str, **said: Any) -> dict[str, str]:
        """Says which columns an answer has: `Curator.columns_of`."""
        return cast("dict[str, str]", self._call("columns_of", question, said, EngineError(busy=True)))

    def check_question(self, question: str, **said: Any) -> tuple[str, ...]:
        """Says whether a question can be asked: `Curator.check_question`."""
        return cast("tuple[str, ...]", self._call("check_question", question, said, EngineError(busy=True)))

    def _call(self, method: str, question: str, said: dict[str, Any], ended: EngineError) -> object:
        """What a worker says; `ended` where it ends under the question, after which nobody knows how far it came."""
        while True:
            with self._lane() as lane:
                try:
                    lane.connection.send((method, question, said))
                    lane.connection.recv()  # it has it
                except (EOFError, OSError):
                    continue  # it ended before it began with this
                try:
                    came = lane.connection.recv()
                except (EOFError, OSError):
                    self._looks.set()
                    raise ended from None
            return _result(came)

    @contextmanager
    def _lane(self) -> Iterator[_Lane]:
        """A connection that nobody uses, to the worker that has least to do."""
        with self._changed:
            if not self._changed.wait_for(self._living, WAIT_SECONDS):
                raise EngineError(busy=True)
            lane = min(self._idle, key=lambda one: one.worker.running)
            self._idle.remove(lane)
            lane.worker.running += 1
        try:
            yield lane
        finally:
            with self._changed:
                lane.worker.running -= 1
                self._idle.append(lane)
                self._living()
                self._changed.notify()

    def _living(self) -> list[_Lane]:
        """The connections to use. Those of workers that have ended, and at the end all, are closed here alone, where
        nobody else has them: what is closed under somebody who reads may be another's by then."""
        for lane in self._idle:
            if self._closing.is_set() or not lane.worker.lives:
                lane.connection.close()
        self._idle = [lane for lane in self._idle if not lane.connection.closed]
        return self._idle

    def _begin(self) -> None:
        self._starts += 1
        self._starting = _Worker(self._declaration, self._connections, self._log)
        try:
            self._starting.ready()
        except BaseException:
            self._starting.kill()  # nothing was asked of it
            raise
        with self._changed:
            self._workers.append(self._starting)
            self._idle += self._starting.lanes
            self._changed.notify_all()

    def _watch(self) -> None:
        """Starts a worker where one is missing, one after another."""
        while not self._closing.is_set():
            with self._changed:
                ended = [one for one in self._workers if not one.lives]
                self._workers = [one for one in self._workers if one.lives]
                missing = len(self._workers) < self._number
                self._living()
            for _ in ended:
                _log.warning("a worker has ended; another is started")
            if not missing:
                self._looks.wait(AGAIN_SECONDS)
                self._looks.clear()
                continue
            try:
                self._begin()
            except Error as error:
                if not self._closing.is_set():
                    _log.error("a worker cannot be started: %s", error.code)
            self._closing.wait(AGAIN_SECONDS)

    def close(self) -> None:
        """Ends all, once what they have is answered."""
        self._closing.set()
        self._looks.set()
        if self._watching.is_alive():
            if self._starting is not None and self._starting not in self._workers:
                self._starting.kill()
            self._watching.join()
        with self._changed:
            self._living()
        for one in self._workers:
            one.wait()


@contextmanager
def several(curator: Curator, number: int, log: str | None = None) -> Iterator[Workers | None]:
    """Workers over a curator's ledger, that have started; None where one process does. Raises QuestionError where each
    would hold the tables in its memory though they could be kept in files, which those of budgets by part cannot; and
    what a curator raises that cannot be opened."""
    if number == 1:
        yield None
        return
    held = [name for name, table in curator.kept.items() if table.bytes is None]
    if held and curator.declaration.budget.parts is None:
        fix = 'write store = "file" under [engine], so that all workers read one copy; or --workers 1'
        message = f"each worker would hold {', '.join(held)} in its own memory"
        raise QuestionError("serve", message, where="--workers", fix=fix)
    workers = Workers(curator.declaration, number, log)
    try:
        workers.start()
        yield workers
    finally:
        workers.close()


def _result(came: tuple[str, Any]) -> object:
    """What a worker sent. Raises the error that it did."""
    kind, content = came
    if kind == "error":
        of, words, facts = content
        error = of.__new__(of, *words)
        error.__dict__.update(facts)
        raise error
    if kind == "fault":
        _log.error("a fault of discreet itself in a worker, of the kind %s", content)
        raise RuntimeError
    result, warnings = content
    for words in warnings:
        warn(words)
    return cast("object", result)


def main(descriptors: Sequence[int], log: str | None = None) -> None:
    """A worker, on these connections: it gets the declaration on the first, then questions, and ends when they end.
    When to end is the service's to say."""
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    if log is not None:
        log_to_standard_error(log)
    connections = [Connection(one) for one in descriptors]
    try:
        declaration = connections[0].recv()
    except (EOFError, OSError):
        return
    try:
        curator = Curator.of(declaration, owner=True, registered=True)
    except Error as error:
        with suppress(OSError):
            connections[0].send(("error", _plain(error)))
        return
    with curator:
        with suppress(OSError):
            connections[0].send(("result", (None, ())))
        threads = [threading.Thread(target=_answer, args=(curator, one)) for one in connections]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _answer(curator: Curator, connection: Connection) -> None:
    with connection:
        while True:
            try:
                method, question, said = connection.recv()
                connection.send("begun")
            except (EOFError, OSError):
                return
            came: tuple[str, Any]
            try:
                with listening() as warnings:
                    came = "result", (getattr(curator, method)(question, **said), warnings)
            except Error as error:
                came = "error", _plain(error)
            except Exception as error:  # its words may hold anything
                came = "fault", type(error).__name__
            try:
                connection.send(came)
            except OSError:
                return


def _plain(error: Error) -> tuple[type[Error], tuple[object, ...], dict[str, object]]:
    """An error without where it was raised."""
    return type(error), error.args, error.__dict__
