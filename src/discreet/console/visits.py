"""One request of somebody who is logged in: who it is, what was sent, and what comes of it."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request

from discreet.console.sessions import ConsoleSession
from discreet.service.accounts import Account
from discreet.service.api import Service
from discreet.service.requests import JSON, LARGEST, RefusedRequest, body, kind_of, texts, without_query
from discreet.service.roles import Role
from discreet.texts import visible

FORM = "application/x-www-form-urlencoded"
MOST_FIELDS = 200
MOST_BOXES = 5_000
"""Fields of a form with boxes, one for each column of a table."""

FORM_FIELD, FORM_HEADER = "form", "x-form"
"""Where a request that changes something has the session's word, which pages of other places cannot read."""


@dataclass(frozen=True)
class Visit:
    """A request. `session` is None where a program asks with a token; `said` is what was sent, as texts. `kept` is what
    the console keeps in memory for the account: which is its own alone."""

    service: Service
    request: Request
    account: Account
    session: ConsoleSession | None
    kept: dict[str, Any]
    said: Mapping[str, str] = field(default_factory=dict)

    def word(self, name: str) -> str:
        """A field that was sent, without blanks around it; empty where it was not."""
        return self.said.get(name, "").strip()

    def lines(self, name: str) -> list[str]:
        """The lines of a field that was sent, of `ConsolePage.many`; none where it was not."""
        return [line for line in self.said.get(name, "").split("\n") if line]

    def query(self, name: str) -> str:
        """What stands behind the question mark under this name; empty where nothing does."""
        return self.request.query_params.get(name, "").strip()


@dataclass(frozen=True)
class Page:
    """What a request gets: a template and its data, which are also its JSON. `words` are further ones for the template
    alone; a page where something was refused has the `status` of that."""

    template: str
    data: Mapping[str, Any]
    words: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True)
class Redirect:
    """What was done stands on another page, which is opened. A program gets `data`."""

    path: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Download:
    """A file."""

    name: str
    kind: str
    content: bytes


Reply = Page | Redirect | Download
Shown = Callable[[Visit], Awaitable[Reply]]


@dataclass(frozen=True)
class ConsolePage:
    """A page of the console: its path, for whom it is, and what a GET and a POST of it give. With a `menu`, it stands
    in the ways of those it is for, under this name."""

    path: str
    title: str
    roles: frozenset[Role]
    show: Shown | None = None
    act: Shown | None = None
    menu: str = ""
    fields: tuple[str, ...] = ()
    """What a POST may have."""
    many: tuple[str, ...] = ()
    """Those of the fields that may be there several times, as boxes of which some are ticked: a line for each."""


async def sent(
    request: Request, known: tuple[str, ...], largest: int = LARGEST, many: tuple[str, ...] = ()
) -> dict[str, str]:
    """The fields of a form, or of a JSON object, as texts; of `many` each may be there several times, and is a line.
    What stands behind the question mark is none of them. Raises RefusedRequest."""
    without_query(request)
    known = (*known, FORM_FIELD)
    if kind_of(request) == JSON:
        return texts(await body(request, JSON, largest), known)
    text = await body(request, FORM, largest)
    try:
        pairs = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(text),
            errors="strict",
            max_num_fields=max(MOST_BOXES if many else MOST_FIELDS, len(known)),
        )
    except ValueError:
        raise RefusedRequest(400, "body", "the form cannot be read", "body", "send it from the page") from None
    once = [name for name, _ in pairs if name not in many]
    if len(set(once)) < len(once) or not dict(pairs).keys() <= set(known):
        raise RefusedRequest(
            400, "body", "a field is not known, or stands there twice", "body", "send it from the page"
        )
    lines: dict[str, list[str]] = {}
    for name, value in pairs:
        lines.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return {name: "\n".join(values) for name, values in lines.items()}


def without_twice(request: Request, many: tuple[str, ...] = ()) -> None:
    """Raises RefusedRequest 400 where a name stands behind the question mark twice that is none of `many`: which of the
    two is meant is not said."""
    names = [name for name, _ in request.query_params.multi_items() if name not in many]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            words = f"{visible(name[:60])} stands twice behind the question mark"
            raise RefusedRequest(400, "query", words, "query", "write it once")


def from_here(request: Request) -> bool:
    """Whether a browser says that a page of ours sent this: what it says, a page of another place cannot forge."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin", "")
    if site is not None:
        return site == "same-origin"
    try:
        return bool(origin) and urlsplit(origin).netloc == request.headers.get("host")
    except ValueError:
        return False


def meant(request: Request, session: ConsoleSession, said: Mapping[str, str]) -> bool:
    """Whether the session's own page sent this."""
    word = request.headers.get(FORM_HEADER) or said.get(FORM_FIELD, "")
    return hmac.compare_digest(word.encode("utf-8", "replace"), session.form.encode())
