"""The curator over HTTP: who asks is who the token says, and what comes of it is what a local curator says."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import math
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from discreet.catalog.listing import Tables
from discreet.curator import Curator
from discreet.curator.history import as_dict, as_page
from discreet.curator.warned import listening
from discreet.errors import BudgetError, DeclarationError, EngineError, Error, LedgerError, QuestionError
from discreet.explanation import Explanation
from discreet.ledger import TOTAL
from discreet.release import Release
from discreet.release.save import write_csv
from discreet.release.told import heard, told
from discreet.service import requests
from discreet.service.accounts import PREFIX, Account, Accounts
from discreet.service.connections import KNOWN
from discreet.service.jobs import Job, JobCall, Jobs, answering, busy, named, publishing
from discreet.service.oidc import issued
from discreet.service.others import for_others
from discreet.service.owner import Owner, token_number
from discreet.service.publication_costs import foreseen, related_tables
from discreet.service.requests import (
    ACCOUNT,
    ACT,
    ARROW,
    CSV,
    DECIDED,
    END,
    JSON,
    MORE,
    PRICED,
    PUBLISH,
    QUESTION,
    REFRESH,
    REVOKE,
    TOKEN,
    WORKLOAD,
    RefusedRequest,
    Shape,
    bearer,
    body,
    called,
    digest,
    fields,
    form,
    page,
    request_name,
    rows_packed,
    said_of_more,
    unknown_token,
    without_query,
)
from discreet.service.roles import Role
from discreet.service.watching import CODE, CONTENT_TYPE, PATH, ServiceWatch
from discreet.service.workers import Answerer

if TYPE_CHECKING:
    from discreet.synthesis.synthetic import Synthetic
    from discreet.synthesis.synthetic_tables import SyntheticTables

HEADERS = {
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
"""With every reply."""

THREADS = 16
"""How many questions run, or wait for the engine, at once."""

MOST_WAITING = 64
"""How many are taken beyond the answer of others; whoever comes then asks again."""

MOST_OPEN = 32
"""How many requests of one account are open at once."""

MOST_CELLS = 20_000_000
"""Cells of a synthetic table that is written out row by row."""

PROBLEM = "application/problem+json"
TITLES: Mapping[type[Error], str] = {
    BudgetError: "The budget does not allow it",
    QuestionError: "The question cannot be answered",
    DeclarationError: "The tables are not as they were declared",
    EngineError: "The engine could not answer",
    LedgerError: "The ledger cannot be used",
}

_log = logging.getLogger("discreet")
_Result = TypeVar("_Result")
_P = ParamSpec("_P")
Calling = Callable[[Curator, Account, Mapping[str, Any]], JobCall]
"""Checks what a job is asked to do, for an account."""

OWNING = frozenset({Role.OWNER})
ASKING = frozenset({Role.OWNER, Role.ANALYST})
AUDITING = frozenset({Role.OWNER, Role.AUDITOR})
WATCHING = frozenset({Role.OWNER, Role.MONITOR})
ALL = ASKING | AUDITING


@dataclass(frozen=True)
class Path:
    """What is done at a path, and for whom: nobody in particular where `roles` is empty."""

    path: str
    method: str
    roles: frozenset[Role]
    name: str


PATHS = (
    Path("/tables", "GET", ALL, "tables"),
    Path("/check", "POST", ASKING, "check"),
    Path("/explain", "POST", ASKING, "explain"),
    Path("/ask", "POST", ASKING, "ask"),
    Path("/publish", "POST", ASKING, "publish"),
    Path("/workload", "POST", ASKING, "workload"),
    Path("/jobs", "GET", ASKING, "jobs"),
    Path("/jobs/{job}", "GET", ASKING, "job"),
    Path("/jobs/{job}/events", "GET", ASKING, "events"),
    Path("/jobs/{job}/answer", "GET", ASKING, "released"),
    Path("/balance", "GET", ALL, "balance"),
    Path("/requests", "GET", ALL, "requests"),
    Path("/requests", "POST", frozenset({Role.ANALYST}), "request_more"),
    Path("/requests/{number}", "POST", frozenset({Role.OWNER}), "decide"),
    Path("/ledger", "GET", AUDITING, "ledger"),
    Path("/ledger/{number}", "GET", AUDITING, "entry"),
    Path("/analysts", "GET", OWNING, "analysts"),
    Path("/freeze", "POST", OWNING, "freeze"),
    Path("/lift", "POST", OWNING, "lift"),
    Path("/refresh", "POST", OWNING, "refresh"),
    Path("/refresh", "GET", OWNING, "refreshed"),
    Path("/accounts", "POST", OWNING, "add"),
    Path("/accounts/{name}/end", "POST", OWNING, "end"),
    Path("/accounts/{name}/token", "POST", OWNING, "new_token"),
    Path("/accounts/{name}/revoke", "POST", OWNING, "revoke"),
    Path("/metrics", "GET", WATCHING, "metrics"),
    Path("/health", "GET", frozenset(), "health"),
    Path("/ready", "GET", frozenset(), "ready"),
    Path("/openapi.json", "GET", frozenset(), "openapi"),
)


class Service:
    """A curator, opened as its owner's, for the accounts of a file. Questions are for `workers`, where there are some.

    Of an analyst one question is answered at a time; all that is asked runs in threads, of which there are so many.
    What is logged of a request (`watching`) is not who asks, nor what.
    """

    def __init__(self, curator: Curator, accounts: Accounts, workers: Answerer | None = None) -> None:
        self._curator = curator
        self._asked = workers or curator
        self._accounts = accounts
        self._issued = issued(curator.declaration)
        self._asking: set[str | None] = set()
        self._waiting = 0
        self.watch = ServiceWatch(curator, self._load, lambda: self._asked.engine_starts)
        self._open: Counter[str] = Counter()
        self._threads: anyio.CapacityLimiter | None = None
        self._looking: anyio.CapacityLimiter | None = None
        self._showing: anyio.CapacityLimiter | None = None
        self._doors: anyio.CapacityLimiter | None = None
        self._writing: anyio.CapacityLimiter | None = None
        self.jobs = Jobs(curator, accounts, _as_told)
        self.owner = Owner(curator, accounts, _as_told)
        self._document = (files("discreet.service") / "openapi.json").read_bytes()

    @property
    def curator(self) -> Curator:
        """The curator, opened as its owner's."""
        return self._curator

    @property
    def accounts(self) -> Accounts:
        """Who may ask."""
        return self._accounts

    def app(self, pages: Sequence[BaseRoute] = ()) -> Starlette:
        """The application, for a server of ASGI, with `pages` beside the paths of programs."""
        routes: list[BaseRoute] = [Route(one.path, partial(self._reply, one), methods=[one.method]) for one in PATHS]
        routes += pages
        app = Starlette(routes=routes, exception_handlers={HTTPException: _no_path}, lifespan=self._lifespan)
        app.router.redirect_slashes = False  # a redirect would go to plain HTTP, behind a proxy, and a token with it
        return app

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """The service ends once its jobs have."""
        yield
        await anyio.to_thread.run_sync(self.jobs.stop)
        await anyio.to_thread.run_sync(self.owner.stop)

    async def _reply(self, path: Path, request: Request) -> Response:
        request.scope[PATH] = path.path
        account: Account | None = None
        try:
            if path.roles:
                account = await self._holder(request)
                if account.role not in path.roles:
                    fix = "ask with another account's token"
                    raise RefusedRequest(403, "role", f"this is not for the role {account.role}", path.path, fix)
            if path.method == "POST":
                without_query(request)
            handler: Callable[..., Awaitable[Response]] = getattr(self, f"_{path.name}")
            if account is None:
                return await handler()
            with self.one_of_few(account):
                request.scope[KNOWN]()
                return await handler(account, request)
        except RefusedRequest as refused:
            return _problem(refused.status, refused.error)
        except ClientDisconnect:  # nobody hears it
            return Response(status_code=400, headers=HEADERS)
        except Error as error:
            if account is None:  # whoever has no token learns no file's name
                return _problem(503, _unavailable())
            return _problem_reply(_as_told(error, account))
        except Exception as error:
            return _problem_reply(_as_told(error, account))

    async def _holder(self, request: Request) -> Account:
        """Whose token it is. Raises RefusedRequest 401, and 403 where its analyst is not declared."""
        return await self.holder(bearer(request))

    async def holder(self, token: str) -> Account:
        """Whose token this is. Raises RefusedRequest 401, and 403 where its analyst is not declared."""
        return (await self.holder_for(token))[0]

    async def holder_for(self, token: str) -> tuple[Account, float]:
        """The same, and for how many seconds the token says that it holds: without end, where it says nothing."""
        seconds = math.inf
        if self._doors is None:
            self._doors = anyio.CapacityLimiter(4)
        if self._issued is not None and not token.startswith(PREFIX):
            named, seconds = await self._issued.holder(token)
            found = await anyio.to_thread.run_sync(self._accounts.named, named, limiter=self._doors)
            if found is None or found.role is Role.OWNER:  # whoever runs the issuer becomes no owner
                fix = "the owner makes an account of the name that the issuer gives: `discreet account add`"
                raise RefusedRequest(
                    403, "account", "there is no account for the holder of this token", "Authorization", fix
                )
        else:
            found = await anyio.to_thread.run_sync(self._accounts.holder, token, limiter=self._doors)
        if found is None:
            raise unknown_token()
        if not self._bound(found):
            fix = "the owner makes an account that is bound to a declared analyst"
            raise RefusedRequest(403, "account", "the analyst of this account is not declared", "[analysts]", fix)
        return found, seconds

    async def still_holds(self, token: bytes) -> Account | None:
        """Whose token it is that has this digest: None where it does not hold any more."""
        found = await self.look(partial(self._accounts.holder_by, token))
        return found if found is not None and self._bound(found) else None

    def _bound(self, account: Account) -> bool:
        """Whether the analyst of an account is declared, where any is."""
        declared = self._curator.declaration.analysts
        return account.role is not Role.ANALYST or not declared or account.asks_as in declared

    # what is asked, by whatever protocol

    @property
    def tables(self) -> Tables:
        """The tables, as they are declared."""
        return self._curator.tables

    @property
    def schema(self) -> str:
        """The name of the schema that they are in."""
        return self._curator.declaration.schemas[0]

    async def holder_of(self, name: str) -> Account | None:
        """The account of this name, for whoever has proved to be called so: None where it was ended, or its analyst is
        no longer declared."""
        found = await self.look(partial(self._accounts.named, name))
        return found if found is not None and self._bound(found) else None

    async def asked(
        self, account: Account, said: Mapping[str, Any], request: str | None = None
    ) -> tuple[Release, Sequence[str]]:
        """The answer to a question, said as `Curator.ask` takes it, and what is warned of; `request` names it.

        Raises an Error, or RefusedRequest 429 where another question of the account's runs or too many wait:
        `problem_of` is what the account may hear of both."""
        with self._turn(account):
            return await self._run(self._answer, account, said, request)

    async def explained(self, account: Account, said: Mapping[str, Any]) -> Explanation:
        """What a question would cost, and give. Nothing is spent. Raises as `asked`."""
        with self._turn(account):
            return await self._run(partial(self._asked.explain, analyst=account.asks_as, **said))

    async def columns_of(self, account: Account, said: Mapping[str, Any]) -> Mapping[str, str]:
        """The columns that a question's answer has, each with its type. It is no question: nobody waits for it. Raises
        as `asked`."""
        return await self._run(partial(self._asked.columns_of, analyst=account.asks_as, **said))

    async def publishable(self) -> dict[str, dict[str, Any]]:
        """Which tables can be published, and which of their columns (`synthesis.columns.publishable`)."""
        from discreet.synthesis.columns import publishable

        return await self.look(partial(publishable, self._curator.declaration))

    async def connected(self) -> dict[str, tuple[str, ...]]:
        """Which tables can be published together, and what the rows of each refer to (`synthesis.related`)."""
        from discreet.synthesis.related import connected

        return await self.look(partial(connected, self._curator.declaration))

    async def related(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """How several tables are published together (`service.publication_costs`). Raises QuestionError where they
        cannot be."""
        return await self.look(partial(related_tables, self._curator, names))

    async def foreseen(self, account: Account, said: Mapping[str, Any]) -> dict[str, Any]:
        """What a publication would cost, leave and be off by (`service.publication_costs`). Nothing is spent. Raises as
        `asked`."""
        with self._turn(account):
            return await self._run(foreseen, self._curator, account, said)

    async def begun(self, account: Account, calling: Calling, said: Mapping[str, Any], name: str | None) -> Job:
        """Begins a job, or gives the one that this name belongs to. Raises as `asked`."""
        with self._turn(account):
            call = await self._run(calling, self._curator, account, said)
            return await self._run(self.jobs.start, account, call, name, digest({"job": call.kind, **said}))

    async def released(self, function: Callable[[], _Result]) -> _Result:
        """Reads what a job has released, or writes it out: of all accounts one at a time, as synthetic rows may be
        many."""
        if self._writing is None:
            self._writing = anyio.CapacityLimiter(1)
        return await anyio.to_thread.run_sync(function, limiter=self._writing)

    def synthetic(self, account: Account, number: str) -> Synthetic | SyntheticTables:
        """What a publication of the account's has released, a table or several; in a thread, as of `released`. Raises
        RefusedRequest 404 where there is none of this number, 409 while it runs; EngineError where the owner has frozen
        this account's questions about one of the tables."""
        job, answer = self.jobs.answer(account, number)
        if job.kind != "publish" or not answer:
            raise RefusedRequest(404, "job", "there is no such table", "job", "open the list of your published tables")
        return self._synthetic(account, job, answer)

    def _synthetic(self, account: Account, job: Job, answer: bytes) -> Synthetic | SyntheticTables:
        from discreet.synthesis.synthetic import Synthetic
        from discreet.synthesis.synthetic_tables import SyntheticTables

        release = heard(json.loads(answer))
        self._curator.ledger.hold_open(job.tables, account.asks_as or TOTAL)
        return SyntheticTables.of(release) if len(job.tables) > 1 else Synthetic.of(release)

    async def hold_open(self, account: Account, question: str) -> None:
        """Raises EngineError where the owner has frozen this account's questions about what this one reads: its answer
        is not given again. Nobody waits for that where nobody is frozen who could ask it."""
        ledger, name = self._curator.ledger, account.asks_as or TOTAL
        if any(whose in (TOTAL, name) for whose, _ in await self.look(lambda: ledger.stopped)):
            tables = await self._run(partial(self._asked.check_question, question))
            await self.look(partial(ledger.hold_open, tables, name))

    async def balance(self, account: Account) -> dict[str, Any]:
        """What was spent and what is left of an analyst's own budget; the whole, for the others."""
        mine, curator = account.asks_as if account.role is Role.ANALYST else None, self._curator
        own = mine if mine in curator.declaration.analysts else None
        budget = await self.look(lambda: curator.budget if own is None else curator.budget_of(own))
        found = {"analyst": mine, **budget.to_dict()}
        return found | ({"pace": await self.look(self.owner.pace)} if account.role is Role.OWNER else {})

    def problem_of(self, error: Exception, account: Account | None) -> dict[str, Any]:
        """What an account hears of anything that was raised: as RFC 9457 has it, with the code, where and the fix."""
        if isinstance(error, RefusedRequest):
            return _plain_problem(error.status, error.error)
        if account is None:
            return _plain_problem(503, _unavailable())
        return _as_told(error, account)

    # what is asked over HTTP

    async def _ask(self, account: Account, request: Request) -> Response:
        wanted, name = form(request), request_name(request)
        release, warnings = await self.asked(account, fields(await body(request), PRICED), name)
        return await self._run(_written, release, wanted, warnings)

    def _answer(self, account: Account, said: Mapping[str, Any], name: str | None) -> tuple[Release, Sequence[str]]:
        """The answer, and what is warned of. A name that was used before belongs to what was asked under it."""
        own = named(account, name)
        same = b"" if name is None else digest(said)
        if name is not None and self._accounts.body_of(account.name, name) not in (None, same):
            fix = "use a new request id"
            raise QuestionError("request", "this request id belongs to another question", where="request", fix=fix)
        try:
            with listening() as warnings:
                release = self._asked.ask(**said, analyst=account.asks_as, request=own)
        except EngineError as error:
            if name is not None and error.code == "engine":
                self._accounts.keep_body(account.name, name, same)
            raise
        if name is not None:
            self._accounts.keep_body(account.name, name, same)
        return release, warnings

    async def _explain(self, account: Account, request: Request) -> Response:
        return _json((await self.explained(account, fields(await body(request), PRICED))).to_dict())

    async def _check(self, account: Account, request: Request) -> Response:
        said = fields(await body(request), QUESTION)
        with self._turn(account):
            return _json({"tables": list(await self._run(partial(self._asked.check_question, **said)))})

    # jobs

    async def _publish(self, account: Account, request: Request) -> Response:
        return await self._begun(account, request, publishing, PUBLISH)

    async def _workload(self, account: Account, request: Request) -> Response:
        return await self._begun(account, request, partial(answering, self.jobs.planning), WORKLOAD)

    async def _begun(self, account: Account, request: Request, call: Calling, shape: Shape) -> Response:
        job = await self.begun(account, call, called(await body(request), shape), request_name(request))
        return _json(job.to_dict(self.jobs.pace), HEADERS | {"location": f"/jobs/{job.job}"}, 202)

    async def _jobs(self, account: Account, request: Request) -> Response:  # noqa: ARG002
        found = await self.look(partial(self.jobs.all, account))
        return _json({"jobs": [one.to_dict(self.jobs.pace) for one in found]})

    async def _job(self, account: Account, request: Request) -> Response:
        job = await self.look(partial(self.jobs.of, account, request.path_params["job"]))
        return _json(job.to_dict(self.jobs.pace))

    async def _events(self, account: Account, request: Request) -> Response:
        job = await self.look(partial(self.jobs.of, account, request.path_params["job"]))
        stream = self.jobs.listen(account, job, lambda: self._holder(request))
        stream.headers.update(HEADERS)
        return stream

    async def _released(self, account: Account, request: Request) -> Response:
        wanted, packed = form(request), rows_packed(request)
        given = partial(self._given, account, request.path_params["job"], wanted, packed)
        return await self.released(given)

    def _given(self, account: Account, number: str, wanted: str, packed: bool) -> Response:
        """What a job has released, or why it has not."""
        from discreet.synthesis.synthetic import Synthetic

        job, answer = self.jobs.answer(account, number)
        problem = job.to_dict(self.jobs.pace)["problem"]
        if problem is not None:
            return _problem_reply(problem)
        if job.kind != "publish":
            self._curator.ledger.hold_open(job.tables, account.asks_as or TOTAL)
            return _written(heard(json.loads(answer)), wanted, ())
        made = self._synthetic(account, job, answer)
        if packed and wanted == JSON:
            return Response(answer, media_type=JSON, headers=HEADERS)
        if wanted != JSON and not isinstance(made, Synthetic):
            raise RefusedRequest(422, "output", "several tables are not one table", "Accept", f"take {JSON}")
        hold_small(*each_table(made).values())
        if not isinstance(made, Synthetic) or wanted == JSON:
            return Response(made.to_json().encode("utf-8", "replace"), media_type=JSON, headers=HEADERS)
        return _written(made, wanted, ())

    # what is known

    async def _tables(self, account: Account, request: Request) -> Response:  # noqa: ARG002
        return _json(dict(self._curator.tables))

    async def _balance(self, account: Account, request: Request) -> Response:  # noqa: ARG002
        return _json(await self.balance(account))

    async def _ledger(self, account: Account, request: Request) -> Response:  # noqa: ARG002
        part = page(request)
        if part is None:
            return _json(await self.look(partial(as_dict, self._curator, None)))
        return _json(await self.look(partial(as_page, self._curator, *part)))

    # requests for more

    async def _requests(self, account: Account, request: Request) -> Response:  # noqa: ARG002
        mine = account.asks_as if account.role is Role.ANALYST else None
        found = await self.look(partial(self._curator.ledger.requests, mine))
        return _json({"requests": [one.to_dict() for one in found]})

    async def _request_more(self, account: Account, request: Request) -> Response:
        said = said_of_more(await body(request), MORE)
        call = partial(self._curator.request_more, analyst=account.asks_as, by=account.name, **said)
        return _json((await self.look(call)).to_dict())

    async def _decide(self, account: Account, request: Request) -> Response:
        said = said_of_more(await body(request), DECIDED)
        number = _number(request)
        decide = self._curator.approve if said.pop("approve") else self._curator.deny
        if decide == self._curator.deny and said.pop("epsilon", None) is not None:
            raise RefusedRequest(400, "body", "a request is denied without an amount", "epsilon", "leave it out")
        return _json((await self.look(partial(decide, number, by=account.name, **said))).to_dict())

    async def _entry(self, account: Account, request: Request) -> Response:  # noqa: ARG002
        place = _number(request)
        found = (await self.look(partial(as_page, self._curator, place - 1, 1)))["entries"] if place > 0 else []
        if not found:
            raise RefusedRequest(404, "entry", "the ledger has no such entry", "ledger", "GET /ledger has the entries")
        return _json(found[0])

    # what the owner does

    async def _analysts(self, account: Account, request: Request) -> Response:  # noqa: ARG002
        return _json(await self.look(self.owner.analysts))

    async def _freeze(self, account: Account, request: Request) -> Response:
        return await self._done(partial(self.owner.freeze, account), request, ACT, "reason")

    async def _lift(self, account: Account, request: Request) -> Response:
        return await self._done(partial(self.owner.lift, account), request, ACT, "reason")

    async def _refresh(self, account: Account, request: Request) -> Response:
        return await self._done(partial(self.owner.refresh, account), request, REFRESH, "tables", "reason", status=202)

    async def _refreshed(self, account: Account, request: Request) -> Response:  # noqa: ARG002
        return _json(await self.look(self.owner.refreshed))

    async def _add(self, account: Account, request: Request) -> Response:
        return await self._done(partial(self.owner.add, account), request, ACCOUNT, "account", "reason", status=201)

    async def _new_token(self, account: Account, request: Request) -> Response:
        act = partial(self.owner.new_token, account, request.path_params["name"])
        return await self._done(act, request, TOKEN, "reason", status=201)

    async def _revoke(self, account: Account, request: Request) -> Response:
        def act(said: Mapping[str, Any]) -> dict[str, Any]:
            return self.owner.revoke(account, request.path_params["name"], token_number(said["token"]), said)

        return await self._done(act, request, REVOKE, "token", "reason")

    async def _end(self, account: Account, request: Request) -> Response:
        return await self._done(partial(self.owner.end, account, request.path_params["name"]), request, END, "reason")

    async def _done(
        self,
        act: Callable[[Mapping[str, Any]], dict[str, Any]],
        request: Request,
        shape: Shape,
        *needed: str,
        status: int = 200,
    ) -> Response:
        """An act of the owner's, as its body says it."""
        said = requests.told(await body(request), shape, *needed)
        return _json(await self.look(partial(act, said)), status=status)

    async def _health(self) -> Response:
        return _json({"status": "ok"})

    async def _ready(self) -> Response:
        await self.look(self.watch.ready)
        return _json({"status": "ready"})

    async def _metrics(self, account: Account, request: Request) -> Response:  # noqa: ARG002
        return Response(await self.look(self.watch.text), headers=HEADERS | {"content-type": CONTENT_TYPE})

    async def _openapi(self) -> Response:
        return Response(self._document, media_type=JSON, headers=HEADERS)

    # how it runs

    def _load(self) -> tuple[int, int]:
        """How many questions run, or wait for the engine, and how many wait for one of these."""
        running = self._threads.borrowed_tokens if self._threads is not None else 0
        return running, max(0, self._waiting - running)

    async def _run(self, function: Callable[_P, _Result], *arguments: _P.args, **said: _P.kwargs) -> _Result:
        """Runs in a thread. Raises RefusedRequest 429 where too many wait."""
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(THREADS)
        if self._waiting >= MOST_WAITING:
            raise busy("too many questions wait")
        self._waiting += 1
        try:
            return await anyio.to_thread.run_sync(partial(function, *arguments, **said), limiter=self._threads)
        finally:
            self._waiting -= 1

    async def look(self, function: Callable[[], _Result]) -> _Result:
        """Looks something up, in other threads than those of questions: nobody waits for another's question, or hears
        that one runs."""
        if self._looking is None:
            self._looking = anyio.CapacityLimiter(4)
        return await anyio.to_thread.run_sync(function, limiter=self._looking)

    async def write(self, function: Callable[[], _Result]) -> _Result:
        """Writes out what may be long, in other threads than those of what is looked up: logins do not wait for it."""
        if self._showing is None:
            self._showing = anyio.CapacityLimiter(2)
        return await anyio.to_thread.run_sync(function, limiter=self._showing)

    @contextlib.contextmanager
    def one_of_few(self, account: Account) -> Iterator[None]:
        """Of an account so many requests are open at once, whatever they are: slow ones leave room for others'."""
        if self._open[account.name] >= MOST_OPEN:
            raise busy("too many requests of yours are open")
        self._open[account.name] += 1
        try:
            yield
        finally:
            self._open[account.name] -= 1

    @contextlib.contextmanager
    def _turn(self, account: Account) -> Iterator[None]:
        """One question of an analyst at a time, whatever his accounts."""
        if account.asks_as in self._asking:
            raise busy("a question of yours is running")
        self._asking.add(account.asks_as)
        try:
            yield
        finally:
            self._asking.discard(account.asks_as)


def each_table(made: Synthetic | SyntheticTables) -> dict[str, Synthetic]:
    """The tables of a publication by name."""
    from discreet.synthesis.synthetic import Synthetic

    return {str(made.holds.more["name"]): made} if isinstance(made, Synthetic) else made.tables


def hold_small(*made: Synthetic) -> None:
    """Raises RefusedRequest where synthetic tables have more cells than are written out row by row."""
    if sum(len(one) * len(one.columns) for one in made) > MOST_CELLS:
        what, fewer = ("the tables have", "") if len(made) > 1 else ("the table has", "publish fewer rows; or ")
        fix = f"{fewer}read it with discreet.connect, which takes ?rows=packed"
        raise RefusedRequest(422, "size", f"{what} more than {MOST_CELLS:,} cells", "Accept", fix)


def _unavailable() -> Error:
    return LedgerError("unavailable", "the service cannot answer now", fix="tell the owner")


def _number(request: Request) -> int:
    """The number in a path; 0 where it is none."""
    number = request.path_params["number"]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 16 else 0


def status(error: Error) -> int:
    """The status of an error of the closed list."""
    if isinstance(error, QuestionError):
        return 422
    if isinstance(error, BudgetError):
        return 402
    if isinstance(error, EngineError) and error.code in ("suspended", "stopped"):
        return 403
    return 422 if error.code == "pending" else 503


def _problem(status: int, error: Error) -> Response:
    return _problem_reply(_plain_problem(status, error))


def _as_told(error: Exception, account: Account | None) -> dict[str, Any]:
    """What an account is told of what went wrong."""
    if not isinstance(error, Error):  # its words and its trace may hold anything
        _log.error("a fault of discreet itself, of the kind %s", type(error).__name__)
        return _plain_problem(500, Error("bug", "a fault of discreet itself", fix="tell whoever runs the service"))
    return _plain_problem(status(error), error if account and account.role is Role.OWNER else for_others(error))


def _plain_problem(status: int, error: Error) -> dict[str, Any]:
    """An error as RFC 9457 has it; its title is its kind's, its detail the message."""
    kind = type(error)
    return {
        "type": f"urn:discreet:{kind.__name__}",
        "title": TITLES.get(kind, "A fault of discreet itself"),
        "status": status,
        "detail": error.message,
        "code": error.code,
        "where": error.where,
        "fix": error.fix,
    }


def _problem_reply(plain: Mapping[str, Any]) -> Response:
    status, code = plain["status"], plain["code"]
    more = {"retry-after": "1"} if code in ("busy", "running") else {}
    if status == 401:
        more["www-authenticate"] = "Bearer"
    if status in (408, 413):
        more["connection"] = "close"
    content = json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace")
    return _Problem(code, content, status, HEADERS | more)


class _Problem(Response):
    """An error's reply, which leaves the error's code to whoever watches."""

    def __init__(self, code: str, content: bytes, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(content, status, headers, PROBLEM)
        self._code = code

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[CODE] = self._code
        await super().__call__(scope, receive, send)


async def _no_path(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        refused = RefusedRequest(405, "method", "this cannot be done here", "request", "see the header Allow")
    else:
        refused = RefusedRequest(404, "path", "there is nothing here", "request", "GET /openapi.json has the paths")
    reply = _problem(refused.status, refused.error)
    reply.headers.update(error.headers or {})
    return reply


def _json(plain: Mapping[str, Any], headers: Mapping[str, str] = HEADERS, status: int = 200) -> Response:
    content = json.dumps(plain, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    return Response(content, status, media_type=JSON, headers=headers)


def _written(release: Release, wanted: str, warnings: Sequence[str]) -> Response:
    """An answer in one of FORMS; JSON alone has room for warnings."""
    headers = HEADERS | {"vary": "accept"}
    if wanted == CSV:
        text = io.StringIO(newline="")
        write_csv(release, text)
        return Response(text.getvalue().encode("utf-8", "replace"), media_type=f"{CSV}; charset=utf-8", headers=headers)
    if wanted == ARROW:
        table, stream = release.to_arrow(), io.BytesIO()
        with importlib.import_module("pyarrow.ipc").new_stream(stream, table.schema) as writer:
            writer.write_table(table)
        return Response(stream.getvalue(), media_type=ARROW, headers=headers)
    return _json({**told(release), "warnings": list(warnings)}, headers)
