"""The form's pages over HTTP, until the declaration is written; `service.loopback` says who reaches them.

Names of columns and what the owner says are all that is here: no row, and nothing that follows from one.
"""

from __future__ import annotations

import hmac
import secrets
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from discreet.beginning.draft import (
    DATES,
    LENGTHS,
    MANY,
    NOBODY,
    ONE,
    Draft,
    analysts,
    drafted,
    fields,
    first,
)
from discreet.catalog import Type
from discreet.catalog.suggest import Suggested, identifies, write_new
from discreet.console import pages
from discreet.console.pages import JSON, as_json, replied, wants_json
from discreet.console.visits import FORM_FIELD, sent
from discreet.errors import DeclarationError
from discreet.odds import best_guess_of_budget, chance
from discreet.service.requests import RefusedRequest

LARGEST = 1 << 20
"""Bytes of a form, where it has few fields."""

OF_A_FIELD = 100
"""Bytes of each field, on average, where there are many columns."""

WORDS = {
    Type.INTEGER: "whole number",
    Type.NUMBER: "number, with decimals",
    Type.TEXT: "text",
    Type.BOOLEAN: "yes or no",
    Type.DATE: "date",
    Type.TIMESTAMP: "date and time",
}

EXAMPLES = (("0.1", "nobody's mind is changed"), ("1", "a usual choice for health records"), ("3", "weak"))
"""What some ε mean, beside the attacker's odds."""

_PACKAGE = "discreet.beginning"


class Beginning:
    """One form. `ended` is called once there is nothing more to do."""

    def __init__(
        self, tables: Sequence[Suggested], target: Path, budget: tuple[str, str], warnings: Sequence[str] = ()
    ) -> None:
        self.written: bool | None = None
        """Whether it was written or ended without; None before."""
        self.ended: Callable[[], None] = lambda: None
        self._tables = tuple(tables)
        self._target = target
        self._known = ("act", *fields(tables))
        self._first = first(tables, *budget)
        self._warnings = tuple(warnings)
        self._word = secrets.token_urlsafe(32)

    def app(self) -> ASGIApp:
        """Gives the application."""
        return Starlette(
            routes=[
                Route(path, partial(_reply, shown), methods=methods)
                for path, shown, methods in (
                    ("/", self._form, ["GET", "POST"]),
                    ("/check", self._check, ["POST"]),
                    ("/static/{name}", self._shared, ["GET"]),
                    ("/{path:path}", _nothing, ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
                )
            ]
        )

    async def _said(self, request: Request) -> Mapping[str, str]:
        """What the form's own page sent. Raises RefusedRequest."""
        said = await sent(request, self._known, max(LARGEST, OF_A_FIELD * len(self._known)))
        word = said.pop(FORM_FIELD, "").encode("utf-8", "replace")
        if not hmac.compare_digest(word, self._word.encode()):
            raise _refused(403, "form", "this was not sent by the form's page", "request", "send it from there")
        return said

    # what it shows

    async def _form(self, request: Request) -> Response:
        if request.method != "POST":
            return self._end(request) if self.written is not None else self._page(request, self._first)
        said = dict(await self._said(request))
        act = said.pop("act", "")
        if self.written is not None:
            return self._end(request)
        if act == "cancel":
            return self._done(request, written=False)
        if act == "more":
            return self._page(request, said | {"analysts": str(analysts(said) + 1)})
        draft = self._drafted(said)
        if act != "write" or draft.lacks:
            return self._page(request, said, draft, 400 if act == "write" else 200)
        try:
            write_new(self._target, draft.text)
        except DeclarationError as error:
            return self._page(request, said, draft, 409, error)
        return self._done(request, written=True)

    async def _check(self, request: Request) -> Response:
        """What the fields come to, while they are filled in."""
        draft = self._drafted(await self._said(request))
        if wants_json(request):
            return replied(as_json(self._plain(draft)), JSON)
        return _shown("check.html", self._words(draft))

    async def _shared(self, request: Request) -> Response:
        found = _static(request.path_params["name"])
        if found is None:
            raise _refused(404, "path", "there is nothing here", "request", "open the address that was printed")
        return replied(*found)

    def _drafted(self, said: Mapping[str, str]) -> Draft:
        return drafted(self._tables, said, self._target.parent)

    def _page(
        self,
        request: Request,
        said: Mapping[str, str],
        draft: Draft | None = None,
        status: int = 200,
        problem: DeclarationError | None = None,
    ) -> Response:
        """The form, with what was said in it. What is only not said yet stands beside a field once it is written."""
        seen = draft or self._drafted(said)
        faults = {} if draft is None else {one.field: one for one in seen.lacks if status == 400 or not one.unsaid}
        plain = self._plain(seen)
        if wants_json(request):
            shapes = [_shape(table) for table in self._tables]
            return replied(
                as_json(
                    {**plain, "warnings": self._warnings, "tables": shapes, "form": self._word, "fields": dict(said)}
                ),
                JSON,
                status,
            )
        words = {
            **self._words(seen),
            "title": f"Write {self._target.name}",
            "tables": [_shape(table) for table in self._tables],
            "warnings": self._warnings,
            "said": {name: said.get(name, "") for name in self._known},
            "faults": faults,
            "refused": status == 400,
            "problem": None if problem is None else _problem(problem, "This could not be written", status),
            "words": {kind.value: words for kind, words in WORDS.items()},
            "lengths": LENGTHS,
            "about": (ONE, MANY, NOBODY),
            "analysts": analysts(said),
            "examples": [(one, chance(_odds(one)), what) for one, what in EXAMPLES],
            "csv": any(table.dialect.kind == "csv" for table in self._tables),
        }
        return _shown("form.html", words, status)

    def _words(self, draft: Draft) -> dict[str, Any]:
        """What the templates need of a draft."""
        found = draft.declaration
        renewal = None if found is None else found.budget.renewal
        return {
            "form": self._word,
            "target": str(self._target),
            "name": self._target.name,
            "lacks": draft.lacks,
            "text": None if draft.lacks else draft.text,
            "odds": None if found is None else chance(best_guess_of_budget(found.budget.epsilon, found.budget.delta)),
            "period": renewal.length if renewal else None,
            "renewal": renewal and renewal.in_words(found.budget.epsilon, found.budget.delta) if found else None,
        }

    def _plain(self, draft: Draft) -> dict[str, Any]:
        """The same for a program."""
        known = self._words(draft)
        shown = {key: known[key] for key in ("target", "text", "odds", "period", "renewal")}
        return {**shown, "lacks": [asdict(one) for one in draft.lacks]}

    def _done(self, request: Request, *, written: bool) -> Response:
        self.written = written
        self.ended()
        return self._end(request)

    def _end(self, request: Request) -> Response:
        """The last page."""
        name = shlex.quote(str(self._target))
        following = [f"discreet check {name}", f"discreet serve {name}"] if self.written else []
        if wants_json(request):
            return replied(as_json({"written": self.written, "target": str(self._target), "next": following}), JSON)
        words = {"title": "Written" if self.written else "Nothing was written", "target": str(self._target)}
        return _shown("end.html", {**words, "written": self.written, "next": following})


def _shape(table: Suggested) -> dict[str, Any]:
    """What is known of a table: its name, where it is, and its columns."""
    forms = sorted({*DATES, *table.dates}, key=lambda form: (form not in table.dates, form))
    return {
        "name": table.name,
        "source": table.source,
        "csv": table.dialect.kind == "csv",
        "dates": [{"form": form, "example": _example(form), "fits": form in table.dates} for form in forms],
        "columns": [
            {
                "name": name,
                "type": kind.value if kind is not None and name not in table.looks else None,
                "looks": WORDS[table.looks[name]] if name in table.looks else None,
                "identifies": identifies(name),
            }
            for name, kind in table.types.items()
        ],
    }


def _example(form: str) -> str:
    """The last day of January 2020, in this form."""
    return form.replace("%Y", "2020").replace("%m", "01").replace("%d", "31")


def _odds(epsilon: str) -> float:
    from fractions import Fraction

    return best_guess_of_budget(Fraction(epsilon), Fraction(0))


@cache
def _static(name: str) -> tuple[bytes, str] | None:
    """A file that the pages share, and its kind."""
    if name == "beginning.js":
        return (files(_PACKAGE) / name).read_bytes(), "text/javascript; charset=utf-8"
    return pages.static(name) if name in ("style.css", "icon.svg") else None


def _shown(template: str, words: Mapping[str, Any], status: int = 200) -> Response:
    return replied(pages.rendered(template, words, _PACKAGE), status=status)


def _refused(status: int, code: str, message: str, where: str, fix: str) -> RefusedRequest:
    return RefusedRequest(status, code, message, where, fix, DeclarationError)


async def _reply(shown: Callable[[Request], Awaitable[Response]], request: Request) -> Response:
    """What a request gets."""
    try:
        return await shown(request)
    except RefusedRequest as refused:
        return _failed(request, refused)
    except ClientDisconnect:
        return Response(status_code=400)


async def _nothing(request: Request) -> Response:  # noqa: ARG001
    fix = "open the whole address that the command printed"
    raise _refused(404, "path", "there is nothing here", "request", fix)


def _problem(error: Any, title: str, status: int) -> dict[str, Any]:
    return {
        "title": title,
        "detail": error.message,
        "where": "" if error.where == "request" else error.where,
        "fix": error.fix,
        "code": error.code,
        "status": status,
    }


def _failed(request: Request, refused: RefusedRequest) -> Response:
    problem = _problem(refused.error, "This cannot be shown", refused.status)
    more = {"connection": "close"} if refused.status in (408, 413) else {}
    if wants_json(request):
        return replied(as_json(problem), "application/problem+json", refused.status, more)
    words = {"title": problem["title"], "problem": problem}
    page = pages.rendered("failed.html", words, _PACKAGE)
    return replied(page, status=refused.status, more=more)
