"""The console's routes: who may see which page, logging in and out, and what every reply has in common."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from discreet.console import analyst, owner, publishing, requests, streams
from discreet.console.pages import HTML, JSON, as_json, rendered, replied, static, wants_json
from discreet.console.sessions import ConsoleSession, Sessions
from discreet.console.visits import (
    FORM_FIELD,
    ConsolePage,
    Download,
    Page,
    Redirect,
    Reply,
    Visit,
    from_here,
    meant,
    sent,
    without_twice,
)
from discreet.service.accounts import PREFIX, Account, digest_of
from discreet.service.api import Service
from discreet.service.connections import KNOWN
from discreet.service.requests import RefusedRequest, bearer, unknown_token
from discreet.service.roles import Role
from discreet.service.serving import Address
from discreet.service.watching import CODE, PATH

PLACES: tuple[ConsolePage, ...] = (*owner.PLACES, *analyst.PLACES, *publishing.PLACES, *requests.PLACES)
"""The pages, in the order of the menu; where streams are declared, theirs come behind them."""

HOME = "/console"
LOGIN = "/console/login"
MOST_KEPT = 256
"""For how many tokens answers are kept in memory."""
MOST_BYTES = 1 << 26
"""How large all answers together are that are kept in memory, as the ledger stores them; one is kept in any case."""

SESSION, PRELIMINARY = "discreet", "discreet-login"


def pages(service: Service, where: Address) -> Sequence[BaseRoute]:
    """The routes of a service's pages."""
    places = (*PLACES, *streams.PLACES) if service.curator.declaration.streams else PLACES
    console = Console(service, where, places)
    return [
        Route("/", console.root, methods=["GET"]),
        Route(HOME, console.home, methods=["GET"]),
        Route(LOGIN, console.login, methods=["GET", "POST"]),
        Route("/console/logout", console.logout, methods=["POST"]),
        Route("/console/static/{name}", console.shared, methods=["GET"]),
        *(
            Route(
                one.path,
                partial(console.reply, one),
                methods=[m for m, f in (("GET", one.show), ("POST", one.act)) if f],
            )
            for one in places
        ),
    ]


class Console:
    """The `places` of one service. `where` says how it is called: over TLS cookies are the host's alone, and never sent
    without; on this machine's own plain HTTP, where other ports are other programs, their names have the port."""

    def __init__(self, service: Service, where: Address, places: Sequence[ConsolePage]) -> None:
        self._service, self._places = service, places
        self._secure = where.secure
        self._sessions = Sessions()
        self._kept: dict[bytes, dict[str, Any]] = {}

    # cookies

    def _cookie(self, request: Request, name: str) -> str:
        if self._secure:
            return f"__Host-{name}"
        return f"{name}-{request.scope['server'][1]}"

    def _set(self, reply: Response, request: Request, name: str, value: str) -> None:
        key, gone = self._cookie(request, name), not value
        reply.set_cookie(
            key, value, max_age=0 if gone else None, path="/", secure=self._secure, httponly=True, samesite="strict"
        )

    # what needs no login

    async def root(self, request: Request) -> Response:
        """Where a browser goes that was given the service's address; for programs there is nothing here."""
        if HTML in request.headers.get("accept", ""):
            return replied("", status=303, more={"location": "console"})
        return self._failed(
            request, RefusedRequest(404, "path", "there is nothing here", "request", "GET /openapi.json"), None
        )

    async def shared(self, request: Request) -> Response:
        """The style sheet, the script and the icon: the same for all, for as long as they are what they are."""
        request.scope[PATH] = "/console/static/{name}"
        found = static(request.path_params["name"])
        if found is None:
            return self._failed(request, _nothing(), None)
        kept = {"cache-control": "public, max-age=86400", "vary": "accept-encoding"}
        return replied(found[0], found[1], more=kept)

    async def login(self, request: Request) -> Response:
        """Takes a token once, and gives a session for it."""
        request.scope[PATH] = LOGIN
        if request.method != "POST":
            return self._login_page(request)
        try:
            said = await sent(request, ("token",))
            first = request.cookies.get(self._cookie(request, PRELIMINARY), "")
            same = hmac.compare_digest(
                first.encode("utf-8", "replace"), said.get(FORM_FIELD, "").encode("utf-8", "replace")
            )
            if not from_here(request) or not first or not same:
                return self._login_page(request, "This page had been open for too long. Log in again.", 403)
            token = said.get("token", "").strip()
            account, seconds = await self._service.holder_for(token)
            if seconds <= 0:  # it ends now, and is taken a little longer where clocks are apart
                raise unknown_token()
            if not self._home(account):
                return self._login_page(request, "This account has no pages: it is for programs that watch.", 403)
            made = await self._service.look(partial(self._service.accounts.made, account.name))
        except RefusedRequest as refused:
            words = "This token does not hold." if refused.status == 401 else refused.error.message
            return self._login_page(request, words, refused.status)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:
            return self._failed(request, error, None)
        self._end(request)  # nobody goes on in a session that was there before
        ours = token.startswith(PREFIX)
        cookie = self._sessions.begin(account, digest_of(token) if ours else None, made, seconds)
        reply = replied("", status=303, more={"location": HOME})
        self._set(reply, request, SESSION, cookie)
        self._set(reply, request, PRELIMINARY, "")
        return reply

    def _login_page(self, request: Request, fault: str = "", status: int = 200) -> Response:
        word = secrets.token_urlsafe(24)
        words = {"form": word, "fault": fault, "issued": self._service.curator.declaration.issuer is not None}
        reply = replied(
            rendered("login.html", {**self._shell(None, None, ""), "title": "Log in", **words}), status=status
        )
        self._set(reply, request, PRELIMINARY, word)
        return reply

    async def logout(self, request: Request) -> Response:
        """Ends the session, whoever's it is: it takes the session's own word."""
        request.scope[PATH] = "/console/logout"
        try:
            said = await sent(request, ())
        except RefusedRequest as refused:
            return self._failed(request, refused, None)
        except ClientDisconnect:
            return Response(status_code=400)
        session = self._session(request)
        if session is not None and not (from_here(request) and meant(request, session, said)):
            return self._failed(request, _forged(), None)
        self._end(request)
        reply = replied("", status=303, more={"location": LOGIN})
        self._set(reply, request, SESSION, "")
        return reply

    def _session(self, request: Request) -> ConsoleSession | None:
        return self._sessions.find(request.cookies.get(self._cookie(request, SESSION), ""))

    def _end(self, request: Request) -> None:
        session = self._session(request)
        if session is not None:
            self._sessions.end(session)

    # pages

    async def home(self, request: Request) -> Response:
        """The first page of whoever it is."""
        request.scope[PATH] = HOME
        try:
            account, _ = await self._who(request)
        except _LoggedOut:
            return replied("", status=303, more={"location": LOGIN})
        except Exception as error:
            return self._failed(request, error, None)
        return replied("", status=303, more={"location": self._home(account)})

    async def _who(self, request: Request) -> tuple[Account, ConsoleSession | None]:
        """Whose request it is, and in which session; without one where it has a token. Raises _LoggedOut,
        RefusedRequest."""
        if "authorization" in request.headers:
            return await self._service.holder(bearer(request)), None
        session = self._session(request)
        if session is None:
            raise _LoggedOut
        if session.token is None:
            account = await self._service.holder_of(session.account)
            made = await self._service.look(partial(self._service.accounts.made, session.account))
            if account is not None and (account.role is Role.OWNER or made != session.made):
                account = None  # one that is made anew under an old name is another account
        else:
            account = await self._service.still_holds(session.token)
        if account is None or account.name != session.account:
            self._sessions.end(session)
            raise _LoggedOut
        return account, session

    async def reply(self, place: ConsolePage, request: Request) -> Response:
        """What a page gives: to a browser as HTML, to a program as JSON."""
        request.scope[PATH] = place.path
        account: Account | None = None
        session: ConsoleSession | None = None
        try:
            account, session = await self._who(request)
            if account.role not in place.roles:
                raise RefusedRequest(
                    403, "role", f"this is not for the role {account.role}", place.path, "log in as another"
                )
            with self._service.one_of_few(account):
                request.scope[KNOWN]()
                act = request.method == "POST"
                without_twice(request, place.many)
                said: Mapping[str, str] = await sent(request, place.fields, many=place.many) if act else {}
                if act and session is not None and not (from_here(request) and meant(request, session, said)):
                    raise _forged()
                visit = Visit(self._service, request, account, session, self._kept_for(request, session), said)
                shown = place.act if act else place.show
                assert shown is not None
                return self._written(place, visit, await shown(visit))
        except _LoggedOut:
            if wants_json(request):
                return self._failed(
                    request, RefusedRequest(401, "token", "you are not logged in", "request", "log in"), None
                )
            return replied("", status=303, more={"location": LOGIN})
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:
            return self._failed(request, error, account, session, place)

    def _kept_for(self, request: Request, session: ConsoleSession | None) -> dict[str, Any]:
        """What is kept for whoever has this token, or this session of an issuer's: an account that is made anew under
        an old name is somebody else's."""
        key = digest_of(bearer(request)) if session is None else session.token or session.form.encode()
        kept = self._kept.pop(key, {})
        self._kept[key] = kept  # the latest last
        sizes = sum(map(analyst.size_of_answers, self._kept.values()))
        while len(self._kept) > MOST_KEPT or (sizes > MOST_BYTES and len(self._kept) > 1):
            sizes -= analyst.size_of_answers(self._kept.pop(next(iter(self._kept))))
        return kept

    def _written(self, place: ConsolePage, visit: Visit, came: Reply) -> Response:
        program = wants_json(visit.request)
        if isinstance(came, Download):
            return replied(came.content, came.kind, more={"content-disposition": f'attachment; filename="{came.name}"'})
        if program:
            data, status = came.data, came.status if isinstance(came, Page) else 200
            return replied(as_json(data), JSON, status)
        if isinstance(came, Redirect):
            return replied("", status=303, more={"location": came.path})
        words = {
            **self._shell(visit.account, visit.session, place.path),
            "title": place.title,
            **came.data,
            **came.words,
        }
        return replied(rendered(came.template, words), status=came.status)

    def _failed(
        self,
        request: Request,
        error: Exception,
        account: Account | None,
        session: ConsoleSession | None = None,
        place: ConsolePage | None = None,
    ) -> Response:
        """What is said of an error, in the words that this account may hear."""
        plain = self._service.problem_of(error, account)
        request.scope[CODE] = plain["code"]
        more = {"retry-after": "1"} if plain["status"] == 429 else {}
        if plain["status"] in (408, 413):
            more["connection"] = "close"
        if wants_json(request):
            return replied(as_json(plain), "application/problem+json", plain["status"], more)
        path = "" if place is None else place.path
        words = {**self._shell(account, session, path), "title": plain["title"], "problem": plain}
        return replied(rendered("error.html", words), status=plain["status"], more=more)

    def _home(self, account: Account) -> str:
        """The first page of an account; empty where it has none."""
        return next((one.path for one in self._places if one.menu and account.role in one.roles), "")

    def _shell(self, account: Account | None, session: ConsoleSession | None, path: str) -> dict[str, Any]:
        """What stands around each page: who this is, where one can go."""
        mine = [one for one in self._places if one.menu and account is not None and account.role in one.roles]
        here = [one.path for one in mine if path == one.path or path.startswith(f"{one.path}/")]
        return {
            "who": None if account is None else account.to_dict(),
            "form": "" if session is None else session.form,
            "menu": [(one.path, one.menu) for one in mine],
            "here": max(here, key=len) if here else "",
        }


class _LoggedOut(Exception):
    """There is no session any more."""


def _forged() -> RefusedRequest:
    fix = "open the page again, and send it from there; nothing was done"
    return RefusedRequest(403, "form", "this was not sent by a page of yours, or the page is too old", "request", fix)


def _nothing() -> RefusedRequest:
    return RefusedRequest(404, "path", "there is nothing here", "request", "go to /console")
