"""What the owner sees of a service that runs: numbers for Prometheus, and a line of a log for each request.

Both say when something happened and how long it took, which may follow from rows: so the numbers are for the owner and
his monitor alone, and so is whatever keeps them or the log. Neither holds a question, a name, an address or any other
word of a request or an answer: paths, methods and codes are of closed lists, and all else is a number.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from discreet.curator import Curator
from discreet.errors import Error, LedgerError
from discreet.trusted.ledger import note

CONTENT_TYPE = CONTENT_TYPE_LATEST
FORMS = ("json", "text")

PATH, CODE = "discreet.path", "discreet.code"
"""Where the path, of the closed list, and the code of an error stand in the scope of a request."""

OTHER = "other"
"""A path, or a method, that is none of ours."""

SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_LEAST_ROOM = 1 << 20  # bytes of a disk: far more than an entry takes
_READY_SECONDS = 1.0  # how long it is known: whoever may ask has no token

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
App = Callable[[_Message, _Receive, _Send], Awaitable[None]]

_requests = logging.getLogger("discreet.requests")


class ServiceWatch:
    """Counts the requests of one service, and logs each as it ends. `load` says how many questions run, and wait;
    `starts`, how often engines were started."""

    def __init__(self, curator: Curator, load: Callable[[], tuple[int, int]], starts: Callable[[], int]) -> None:
        self._curator = curator
        self._ready = float("-inf")
        self._numbers = count(1)
        self._registry = CollectorRegistry()
        self._ended = Counter("discreet_requests", "Requests that ended.", ("path", "status"), registry=self._registry)
        self._open = Gauge("discreet_requests_open", "Requests that have begun.", registry=self._registry)
        self._seconds = Histogram(
            "discreet_request_seconds",
            "How long requests took.",
            ("path",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self.psql = PsqlWatch(self._registry, self._numbers)
        self._registry.register(_Present(curator, self, load, starts))

    def around(self, app: App) -> App:
        """The same application, watched."""

        async def watched(scope: _Message, receive: _Receive, send: _Send) -> None:
            if scope["type"] != "http":
                return await app(scope, receive, send)
            number, begin, status = next(self._numbers), time.monotonic(), 0

            async def sent(message: _Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            try:
                with self._open.track_inprogress():
                    await app(scope, receive, sent)
            finally:
                self._end(scope, number, status, time.monotonic() - begin)

        return watched

    def _end(self, scope: _Message, number: int, status: int, seconds: float) -> None:
        path = scope.get(PATH, OTHER)
        self._ended.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)
        method = scope["method"] if scope["method"] in _METHODS else OTHER
        _logged(number, method, path, status, scope.get(CODE), seconds)

    def text(self) -> bytes:
        """All numbers, in Prometheus' text form."""
        return generate_latest(self._registry)

    def ready(self) -> None:
        """Raises LedgerError where nothing could be charged now: the ledger is damaged or another process keeps it, or
        its disk is full or takes no writes. What is found is good for a second."""
        if time.monotonic() - self._ready < _READY_SECONDS:
            return
        self._curator.ledger.hold_writable()
        path = self._curator.declaration.ledger
        if isinstance(path, Path):
            path = path.resolve()
            room = os.statvfs(path.parent)
            LedgerError.unless(not room.f_flag & os.ST_RDONLY, "unwritable", where=path.name)
            for one in (path, note.place(path), path.parent):
                LedgerError.unless(os.access(one, os.W_OK, effective_ids=True), "unwritable", where=one.name)
            LedgerError.unless(room.f_bavail * room.f_frsize >= _LEAST_ROOM, "full", where=path.name)
        self._ready = time.monotonic()


def _logged(number: int, method: str, path: str, status: int | str, code: str | None, seconds: float) -> None:
    """A line of the log."""
    facts = {
        "request": number,
        "method": method,
        "path": path,
        "status": status,
        "code": code,
        "seconds": round(seconds, 3),
    }
    _requests.info("request", extra={"facts": facts})


class PsqlWatch:
    """Counts what comes over PostgreSQL's protocol, where the service has a port for it, and logs it: each connection
    as it ends, each login that is refused, each question. A line has the method `psql`, and these as its paths."""

    def __init__(self, registry: CollectorRegistry, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self._connections = Counter("discreet_psql_connections", "Connections to the psql port.", registry=registry)
        self._open = Gauge("discreet_psql_connections_open", "Connections to it that are open.", registry=registry)
        self._refused = Counter("discreet_psql_logins_refused", "Logins there that were refused.", registry=registry)
        self._questions = Counter("discreet_psql_questions", "Questions over it.", ("status",), registry=registry)

    @contextmanager
    def connection(self) -> Iterator[None]:
        """Counts a connection, as long as it is open."""
        self._connections.inc()
        number, begin = next(self._numbers), time.monotonic()
        try:
            with self._open.track_inprogress():
                yield
        finally:
            _logged(number, "psql", "connection", "ended", None, time.monotonic() - begin)

    def login_refused(self) -> None:
        """Counts a login that was refused."""
        self._refused.inc()
        _logged(next(self._numbers), "psql", "login", "refused", None, 0.0)

    @contextmanager
    def question(self) -> Iterator[None]:
        """Counts a question once it is answered, or is not: for a refusal, a fault, or a client that is gone."""
        number, begin, status = next(self._numbers), time.monotonic(), "refused"
        try:
            yield
            status = "answered"
        finally:
            self._questions.labels(status).inc()
            _logged(number, "psql", "question", status, None, time.monotonic() - begin)


class _Present(Collector):
    """What holds at the moment somebody looks: of the ledger, and of what runs."""

    def __init__(
        self, curator: Curator, watch: ServiceWatch, load: Callable[[], tuple[int, int]], starts: Callable[[], int]
    ) -> None:
        self._curator, self._watch, self._load, self._starts = curator, watch, load, starts

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        running, waiting = self._load()
        yield GaugeMetricFamily("discreet_questions_running", "Questions that run, or wait for the engine.", running)
        yield GaugeMetricFamily("discreet_questions_waiting", "Questions that wait for one of these.", waiting)
        starts = self._starts()
        yield CounterMetricFamily("discreet_engine_starts", "Starts of the engine, or of workers.", value=starts)
        try:
            self._watch.ready()
        except Error:
            ready = 0
        else:
            ready = 1
        yield GaugeMetricFamily("discreet_ready", "Whether questions can be charged: 0 or 1.", ready)
        try:
            budget, last, tables = self._curator.budget, self._curator.ledger.last, self._curator.ledger.tables()
        except Error:
            return
        used = budget.used / 100  # it is a percentage
        yield GaugeMetricFamily("discreet_budget_used_ratio", "How much of the whole budget is used.", used)
        yield CounterMetricFamily("discreet_ledger_entries", "Entries of the ledger.", value=last.seq)
        failures = sum(table.failures for table in tables.values())
        yield GaugeMetricFamily("discreet_failures", "Failures in the present snapshots.", failures)
        frozen = sum(table.frozen for table in tables.values())
        yield GaugeMetricFamily("discreet_tables_frozen", "Tables that are frozen until `discreet refresh`.", frozen)
        suspended = len({name for table in tables.values() for name in table.suspended})
        yield GaugeMetricFamily("discreet_analysts_suspended", "Analysts who wait for `discreet lift`.", suspended)


# the log


def log_to_standard_error(form: str) -> None:
    """From now on each request has a line on standard error, in one of FORMS, and so has whatever else is logged."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormatter(form))
    logging.getLogger().handlers[:] = [handler]
    _requests.setLevel(logging.INFO)


class LogFormatter(logging.Formatter):
    """A line for each record. Of others' loggers only which they are: their words, and what they raise, may quote."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        """As `logging.Formatter`."""
        moment = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        facts = getattr(record, "facts", None)
        if record.name == _requests.name and facts is not None:
            if self._form == "json":
                return json.dumps({"moment": moment, **facts})
            words = "{method} {path} {status} {seconds:.3f} s".format_map(facts)
            return f"{moment} request {facts['request']}: {words}" + (f" {facts['code']}" if facts["code"] else "")
        ours = record.name == "discreet"  # what is told of questions, `discreet.question`, quotes them
        message = " ".join(record.getMessage().split()) if ours else f"{record.name} logged something"
        if self._form == "json":
            return json.dumps({"moment": moment, "level": record.levelname.lower(), "message": message})
        return f"{moment} {record.levelname.lower()}: {message}"
