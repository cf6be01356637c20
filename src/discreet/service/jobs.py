"""Jobs: publications and workloads that run on when the connection closes, and are found again.

Each job is a row of the accounts' file, with what it released; so every process of the service knows of it, and it
outlasts them. What it charges is in the ledger alone: a job of a process that has ended is `lost`, and the same
request, sent again, finds what was stored, is told that it was charged without an answer, or runs for the first time.
Nothing is charged twice.

What is told before the end. How many steps a job has follows from the declaration and the call. When one of them is
done is time, which rows decide; so it is never told. `done` goes by the clock: one step in every `answer_seconds`, or
where none are declared in every `PACE` seconds, and it stops before the last. The end is told when it comes, as that
of a question is; with `answer_seconds` at a moment that was fixed when the job began: after so many times the seconds
as it has steps, or where it is not ready then, because others ask or rows are many, after twice as long, four times,
and so on. Which of these it was tells one bit for each, no more than asking again for what came late would tell.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from discreet.catalog.price import hold_part
from discreet.curator import Curator
from discreet.errors import EngineError, Error, QuestionError
from discreet.release import Release
from discreet.release.told import told
from discreet.release.values import finite
from discreet.service.accounts import Account, Accounts
from discreet.service.planning import Planning
from discreet.service.requests import RefusedRequest
from discreet.trusted.ledger.processes import lives, this_process

if TYPE_CHECKING:
    from discreet.synthesis.publication import Publication
    from discreet.synthesis.several import SeveralPublication

MOST_RUNNING = 4
"""Jobs that run at once, one of each analyst."""

MOST_ROWS = 1_000_000
"""Rows that whoever asks may have a publication make: they are made in the service's memory, 10,000,000 in 2 GB."""

MOST_ANSWERS = 50_000
"""Answers of a workload: they are written and read at once, and everybody waits meanwhile, a second for 200,000."""

MOST_KEPT = 20
"""Jobs of an account that are kept, the latest."""

MOST_BYTES = 64 << 20
"""Bytes of what an account's jobs released that are kept, the latest; the last job's whatever its size."""

PACE = 0.2
"""Seconds that a step takes by the clock, where no `answer_seconds` are declared."""

STOP_SECONDS = 60
"""How long the end of the service waits for jobs. Then publications measure no more, and are made of what there is."""

STREAMS, STREAMS_EACH = 64, 4
"""How many hear of jobs as they run, and how many of one account."""

BEAT = 5.0
"""Seconds between lines that say nothing, so that whoever no longer listens is found; the token is looked at again."""

_ELSEWHERE = 1.0  # seconds between looks at a job that another process runs
_TABLE = """CREATE TABLE IF NOT EXISTS jobs (
    job TEXT PRIMARY KEY,
    account TEXT NOT NULL,
    analyst TEXT,
    request TEXT,
    body BLOB NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    steps INTEGER NOT NULL,
    process TEXT NOT NULL,
    begun REAL NOT NULL,
    ended INTEGER NOT NULL DEFAULT 0,
    problem TEXT,
    answer BLOB,
    UNIQUE (account, request)
) STRICT"""
_COLUMNS = "job, account, analyst, request, body, kind, source, steps, process, begun, ended, problem"

_log = logging.getLogger("discreet")


Attempt = tuple[str, str, float]
"""A job's number, its process, and when it began: one that failed or was lost may be tried again under its number."""


@dataclass(frozen=True)
class JobCall:
    """What a job does. `run` takes the name of its request, and what hears of each step; `waits` says that it ends on
    the schedule by itself. `part` is that whose rows it is of alone, None where it is of all."""

    kind: str
    tables: tuple[str, ...]
    steps: int
    run: Callable[[str | None, Callable[[object], None]], Release]
    waits: bool
    part: str | None = None


@dataclass(frozen=True)
class About:
    """The tables that a job reads, and the part whose rows alone it reads of them; None where it reads all."""

    tables: tuple[str, ...]
    part: str | None = None

    @property
    def written(self) -> str:
        """As its row keeps it: one table by its name, as ever; else as JSON."""
        if self.part is not None:
            return json.dumps({"tables": self.tables, "part": self.part})
        return self.tables[0] if len(self.tables) == 1 and self.tables[0][:1] not in "[{" else json.dumps(self.tables)

    @classmethod
    def read(cls, source: str) -> About:
        """What `written` gave, or an older version: that kept every name as it is, whatever it begins with."""
        try:
            found = json.loads(source) if source[:1] in "[{" else source
        except (ValueError, RecursionError):
            found = source
        match found:
            case [str(), *_] if all(isinstance(one, str) for one in found):
                return cls(tuple(found))
            case {"tables": [*tables], "part": str(part)}:
                return cls(tuple(tables), part)
        return cls((source,))


@dataclass(frozen=True)
class Job:
    """A job as its row says it. `lost`: the process that ran it has ended."""

    job: str
    account: str
    analyst: str | None
    request: str | None
    body: bytes
    kind: str
    about: About
    steps: int
    process: str
    begun: float
    ended: bool
    problem: Mapping[str, Any] | None
    lost: bool

    @property
    def attempt(self) -> Attempt:
        """Which attempt at the job it is."""
        return self.job, self.process, self.begun

    @property
    def tables(self) -> tuple[str, ...]:
        return self.about.tables

    @property
    def part(self) -> str | None:
        return self.about.part

    @property
    def state(self) -> str:
        """In one word: running, done, failed, or lost."""
        if self.ended:
            return "done" if self.problem is None else "failed"
        return "lost" if self.lost else "running"

    def done(self, pace: float) -> int:
        """How many steps are done, by the clock."""
        if self.state != "running":
            return self.steps if self.state == "done" else 0
        return max(0, min(self.steps - 1, int((time.time() - self.begun) / pace)))

    def to_dict(self, pace: float) -> dict[str, Any]:
        """What its account is told of it."""
        return {
            "job": self.job,
            "kind": self.kind,
            "table": ", ".join(self.tables),
            "part": self.part,
            "state": self.state,
            "steps": self.steps,
            "done": self.done(pace),
            "request": self.request,
            "begun": datetime.fromtimestamp(self.begun, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "problem": _LOST if self.state == "lost" else self.problem,
        }


_LOST: Mapping[str, Any] = {
    "type": "urn:discreet:EngineError",
    "title": "The engine could not answer",
    "status": 503,
    "detail": "the service ended while this ran; if its price was reserved, it stays charged",
    "code": "lost",
    "where": "",
    "fix": "send the same request again, with its Idempotency-Key: what was stored is given, and nothing charged twice",
}


def publication_of(curator: Curator, said: Mapping[str, Any]) -> tuple[dict[str, Any], Publication]:
    """What a call of a publication says, as `Curator.publish` takes it, and the same checked against the declaration
    alone: no row is read. Raises QuestionError."""
    from discreet.synthesis.publication import PublishOptions, hold_without_totals, publication
    from discreet.workload.told import heard_bins, number

    table = curator.declaration.table(said["table"])
    given: dict[str, Any] = {
        name: str(value) if name in ("epsilon", "delta") else value for name, value in said.items()
    }
    if "rows" in given:
        given["rows"] = number(given["rows"])
    if "bins" in given:
        given["bins"] = heard_bins(given["bins"], table)
    part = _part(curator, given)
    call = publication(curator.declaration, PublishOptions(**given))
    if part:
        hold_without_totals(call)
    given |= part
    if call.rows is not None and call.rows > MOST_ROWS:
        raise QuestionError(
            "rows", f"a service makes at most {MOST_ROWS:,} rows", where="rows", fix=f"write rows={MOST_ROWS}"
        )
    return given, call


def call_of(
    curator: Curator, said: Mapping[str, Any]
) -> tuple[dict[str, Any], Publication | SeveralPublication, tuple[Publication, ...]]:
    """As `publication_of`, of one table or of several; and what is done of each."""
    if isinstance(said["table"], list):
        given, several = several_of(curator, said)
        return given, several, several.each
    given, one = publication_of(curator, said)
    return given, one, (one,)


def publishing(curator: Curator, account: Account, said: Mapping[str, Any]) -> JobCall:
    """A publication, checked against the declaration alone: no row is read. Raises QuestionError."""
    given, call, each = call_of(curator, said)

    def run(request: str | None, hear: Callable[[object], None]) -> Release:
        made: Release = curator.publish(**given, tell=hear, analyst=account.asks_as, request=request)
        return made

    names = tuple(one.table.name for one in each)
    return JobCall("publish", names, call.steps, run, waits=False, part=given.get("part"))


def several_of(curator: Curator, said: Mapping[str, Any]) -> tuple[dict[str, Any], SeveralPublication]:
    """As `publication_of`, of a call that publishes several tables together."""
    from discreet.synthesis.publication import hold_without_totals
    from discreet.synthesis.several import hold_single, several

    priced = {name: str(said[name]) for name in ("epsilon", "delta") if name in said}
    more = {name: value for name, value in said.items() if name not in ("table", *priced)}
    part = _part(curator, more)
    hold_single({name: value for name, value in more.items() if (name, value) != ("method", "adaptive")})
    names = said["table"]
    call = several(curator.declaration, names, priced.get("epsilon"), priced.get("delta"))
    for one in call.each if part else ():
        hold_without_totals(one)
    return {"table": names, **priced, **part}, call


def _part(curator: Curator, said: dict[str, Any]) -> dict[str, Any]:
    """Takes the part out of what is said, if there is one. Raises QuestionError where it is not declared."""
    if "part" not in said:
        return {}
    hold_part(curator.declaration, said["part"])
    return {"part": said.pop("part")}


def answering(planning: Planning, curator: Curator, account: Account, said: Mapping[str, Any]) -> JobCall:
    """A workload, checked against the declaration alone: no row is read. How it is measured is planned by the job.
    Raises QuestionError."""
    from discreet.workload.answers import checked
    from discreet.workload.told import heard

    workload = heard(said, curator.declaration.table(said["table"]))
    epsilon, delta = (None if said.get(name) is None else str(said[name]) for name in ("epsilon", "delta"))
    call, part = checked(curator.declaration, workload, epsilon, delta), said.get("part")
    if part is not None:
        hold_part(curator.declaration, part)
    if call.coded.answers > MOST_ANSWERS:
        words = f"the workload has {call.coded.answers:,} answers; a service gives at most {MOST_ANSWERS:,}"
        raise QuestionError("workload", words, where="questions", fix="ask for less at once: fewer columns, or bins")

    def run(request: str | None, _: Callable[[object], None]) -> Release:
        planning.plan(call)
        return curator.answer(
            workload, epsilon=epsilon, delta=delta, analyst=account.asks_as, request=request, part=part
        )

    return JobCall("workload", (call.table.name,), 1, run, waits=True, part=part)


class Jobs:
    """The jobs of a service. `problem` says an error as an account is told it."""

    def __init__(
        self, curator: Curator, accounts: Accounts, problem: Callable[[Exception, Account], dict[str, Any]]
    ) -> None:
        self._accounts, self._problem = accounts, problem
        self._seconds = curator.declaration.limits.answer_seconds or None  # 0: none, on the owner's word
        self._running: dict[Attempt, threading.Thread | None] = {}
        self._stopping, self._hurrying = threading.Event(), threading.Event()
        self._streams: Counter[str] = Counter()
        self.planning = Planning()
        self._looks: anyio.CapacityLimiter | None = None
        self.ending: Callable[[], bool] = self._stopping.is_set
        """Whether the service ends: then whoever listens is let go."""
        with accounts.transaction(write=True) as file:
            file.execute(_TABLE)

    @property
    def pace(self) -> float:
        """Seconds of a step, by the clock."""
        return PACE if self._seconds is None else float(self._seconds)

    # what is asked of them

    def start(self, account: Account, call: JobCall, name: str | None, body: bytes) -> Job:
        """Begins a job, or gives the one that has this name and is, or was, not in vain.

        Raises QuestionError where the name belongs to something else, RefusedRequest 429 where too many run.
        """
        number = secrets.token_urlsafe(16)
        with ExitStack() as undone:
            with self._accounts.transaction(write=True) as file:
                if self._stopping.is_set():
                    raise busy("the service ends")
                known = self._under(file, account, name, body)
                if known is not None and known.state in ("running", "done"):
                    return known
                rows = file.execute(f"SELECT {_COLUMNS} FROM jobs WHERE ended = 0")
                running = [one for one in map(self._told, rows) if one.state == "running"]
                if any(one.analyst == account.asks_as for one in running):
                    raise busy("a job of yours is running")
                if len(running) >= MOST_RUNNING:
                    raise busy("too many jobs run")
                if known is not None:  # it has failed, or is lost: this is another attempt at the same
                    number = known.job
                    file.execute("DELETE FROM jobs WHERE job = ?", (number,))
                begun = (call.steps, this_process(), time.time())
                said = (number, account.name, account.asks_as, name, body, call.kind)
                about = About(call.tables, call.part)
                made = Job(*said, about, *begun, ended=False, problem=None, lost=False)
                self._running[made.attempt] = None  # before anybody can see its row
                undone.callback(self._running.pop, made.attempt)
                row = (*said, about.written, *begun)
                file.execute(f"INSERT INTO jobs ({_COLUMNS}) VALUES (?{', ?' * 9}, 0, NULL)", row)
                self._forget(file, account.name)
            thread = threading.Thread(target=self._carry_out, args=(made, account, call), daemon=True)
            self._running[made.attempt] = thread
            thread.start()
            undone.pop_all()
        return made

    def _under(self, file: Any, account: Account, name: str | None, body: bytes) -> Job | None:
        """The account's job of this name. Raises QuestionError where the name belongs to something else."""
        if name is None:
            return None
        mine = (account.name, name)
        row = file.execute(f"SELECT {_COLUMNS} FROM jobs WHERE account = ? AND request = ?", mine).fetchone()
        known = None if row is None else self._told(row)
        used = file.execute("SELECT body FROM requests WHERE account = ? AND request = ?", mine).get
        bodies = {used, None if known is None or known.state == "failed" else known.body}
        if not bodies <= {None, body}:
            fix = "use a new request id"
            raise QuestionError("request", "this request id belongs to another question", where="request", fix=fix)
        return known

    def of(self, account: Account, number: str) -> Job:
        """A job of the account. Raises RefusedRequest 404 where it has none of this number, whoever else has."""
        found = self._read("job = ? AND account = ?", number, account.name)
        if not found:
            raise RefusedRequest(404, "job", "there is no such job", "job", "GET /jobs has yours")
        return found[0]

    def all(self, account: Account) -> list[Job]:
        """Those of the account that are kept, the latest first."""
        return self._read("account = ? ORDER BY begun DESC, job", account.name)

    def _read(self, which: str, *values: str) -> list[Job]:
        """Jobs by their rows. One may end between its row and the look at what runs. So what seems lost is lost if its
        row, read once more after that look, is that of the same attempt and still says nothing of its end: a job ends
        there before it ends anywhere else."""
        select = f"SELECT {_COLUMNS} FROM jobs WHERE {which}"
        with self._accounts.transaction() as file:
            rows = file.execute(select, values).fetchall()
        gone = {_attempt(row) for row in rows if self._gone(row)}
        if gone:
            with self._accounts.transaction() as file:
                rows = file.execute(select, values).fetchall()
        return [_job(row, lost=_attempt(row) in gone) for row in rows]

    def answer(self, account: Account, number: str) -> tuple[Job, bytes]:
        """What a job has released, as `release.told` has it; nothing where it failed or is lost. Raises RefusedRequest
        404, and 409 where it still runs."""
        job = self.of(account, number)
        if job.state == "running":
            raise RefusedRequest(409, "running", "this job still runs", "job", "ask again when it has ended")
        with self._accounts.transaction() as file:
            found = file.execute("SELECT answer FROM jobs WHERE job = ? AND account = ?", (number, account.name)).get
        return job, found or b""

    # how they run

    def _carry_out(self, job: Job, account: Account, call: JobCall) -> None:
        begun = time.monotonic()
        answer, problem, mine = None, None, False
        try:
            release = call.run(named(account, job.request), self._hear)
            answer = json.dumps(finite(told(release)), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
            mine = True
        except Exception as error:
            answer, problem = None, json.dumps(self._problem(error, account), ensure_ascii=False)
            mine = isinstance(error, EngineError) and error.code == "engine"
        if self._seconds is not None and not call.waits:
            self._stopping.wait(left(call.steps * self._seconds, time.monotonic() - begun))
        try:
            with self._accounts.transaction(write=True) as file:
                row = (problem, answer, job.job)
                file.execute("UPDATE jobs SET ended = 1, problem = ?, answer = ? WHERE job = ?", row)
                if job.request is not None and mine and file.changes():  # its account may have been ended meanwhile
                    file.execute(
                        "INSERT OR IGNORE INTO requests VALUES (?, ?, ?)", (job.account, job.request, job.body)
                    )
                self._forget(file, job.account)
        except Error as error:  # it is told as lost, and found in the ledger
            _log.error("a job could not be kept: %s", error.code)
        finally:
            self._running.pop(job.attempt)

    def _hear(self, _: object) -> None:
        """A step is done. Raises where no more may be measured."""
        if self._hurrying.is_set():
            raise InterruptedError

    def stop(self) -> None:
        """Waits for what runs, `STOP_SECONDS`; and as long again for what is made of what was measured until then. What
        still runs after that ends with the curator: charged, without an answer."""
        self._stopping.set()
        self.planning.stop()
        for last in (self._stopping, self._hurrying):
            last.set()
            end = time.monotonic() + STOP_SECONDS
            for thread in list(self._running.values()):
                if thread is not None:
                    thread.join(max(0.0, end - time.monotonic()))

    def _gone(self, row: Sequence[Any]) -> bool:
        """Whether nothing runs a job that has not ended. In a transaction that writes it is so: there no job ends."""
        process, ended = row[8], row[10]
        return not ended and not (_attempt(row) in self._running if process == this_process() else lives(process))

    def _told(self, row: Sequence[Any]) -> Job:
        """A job by its row, in a transaction that writes."""
        return _job(row, lost=self._gone(row))

    def _forget(self, file: Any, account: str) -> None:
        """Lets go of what is beyond the limits, the oldest first."""
        said = f"SELECT {_COLUMNS}, length(answer) FROM jobs WHERE account = ? ORDER BY begun DESC, job"
        size = 0
        for place, (*row, length) in enumerate(file.execute(said, (account,)).fetchall()):
            size += length or 0
            if (place >= MOST_KEPT or (place and size > MOST_BYTES)) and self._told(row).state != "running":
                file.execute("DELETE FROM jobs WHERE job = ?", (row[0],))

    # who listens

    def listen(self, account: Account, job: Job, holds: Callable[[], Awaitable[object]]) -> EventStream:
        """What is told of a job until it ends, as server-sent events; until the account's token `holds` no longer.

        Raises RefusedRequest 429 where too many listen.
        """
        if self._streams.total() >= STREAMS or self._streams[account.name] >= STREAMS_EACH:
            raise busy("too many listen")
        self._streams[account.name] += 1
        return EventStream(self._events(account, job, holds), lambda: self._streams.subtract([account.name]))

    async def _events(self, account: Account, job: Job, holds: Callable[[], Awaitable[object]]) -> AsyncIterator[bytes]:
        if self._looks is None:
            self._looks = anyio.CapacityLimiter(4)
        last, beat, look = -1, time.monotonic(), time.monotonic()
        while True:
            here = job.attempt in self._running
            if not here and (job.state != "running" or time.monotonic() >= look):
                try:
                    job = await anyio.to_thread.run_sync(self.of, account, job.job, limiter=self._looks)
                except (RefusedRequest, Error):  # it is kept no more, or cannot be looked up
                    return
                look = time.monotonic() + _ELSEWHERE
            plain = job.to_dict(self.pace)
            if job.state != "running":
                yield _event("end", plain)
                return
            if plain["done"] != last:
                last = plain["done"]
                yield _event("progress", {name: plain[name] for name in ("job", "done", "steps")})
            if self.ending():
                return
            if time.monotonic() - beat > BEAT:
                beat = time.monotonic()
                try:
                    await holds()
                except (RefusedRequest, Error):
                    return
                yield b":\n\n"
            await asyncio.sleep(min(self.pace, 0.2))


class EventStream(StreamingResponse):
    """Events, as long as somebody listens; then `ended` is called."""

    def __init__(self, events: AsyncIterator[bytes], ended: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


def _event(name: str, plain: Mapping[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(plain, ensure_ascii=False)}\n\n".encode("utf-8", "replace")


def left(slot: float, passed: float) -> float:
    """How long it is until the end of the slot, or of two, four, eight …"""
    while slot < passed:
        slot *= 2
    return slot - passed


def named(account: Account, name: str | None) -> str | None:
    """A request's name in the ledger: the account's own."""
    return None if name is None else f"{account.name}:{name}"


def busy(message: str) -> RefusedRequest:
    """What is put off, at no cost."""
    return RefusedRequest(429, "busy", f"{message}; nothing was spent", "", "ask again", EngineError)


def _attempt(row: Sequence[Any]) -> Attempt:
    return row[0], row[8], row[9]


def _job(row: Sequence[Any], *, lost: bool) -> Job:
    ended, problem = bool(row[10]), row[11]
    facts: list[Any] = [*row[:6], About.read(row[6]), *row[7:10]]
    told = None if problem is None else json.loads(problem)
    kept: dict[str, Any] = {"ended": ended, "problem": told, "lost": lost and not ended}
    return Job(*facts, **kept)
