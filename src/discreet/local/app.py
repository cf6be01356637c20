"""A tiny collector over HTTP: takes reports, and shows respondents what will be done to their answers (ASGI 3)."""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import Awaitable, Callable, MutableMapping
from importlib.resources import files
from typing import Any, Protocol

from discreet.errors import Error, QuestionError
from discreet.local.collection import Collection, today
from discreet.local.page import page
from discreet.local.report import LARGEST, Report, refused
from discreet.look import style

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
"""With every reply. The page may load and ask its own origin, and nothing else."""

BODY_SECONDS = 30
"""How long a report may take to arrive."""

RECEIVED = {"status": "received"}
"""The reply to every report that could be one: new or not, whatever it says."""


class Receiver(Protocol):
    """What takes the reports of a collection."""

    @property
    def collection(self) -> Collection: ...

    def add(self, reports: Report, /) -> int: ...


class App:
    """The paths: / (a page), /collection.json, /client.mjs, /page.mjs, /style.css, /page.css,
    and POST /reports.

    Nothing is logged. A report is taken for the windows of yesterday, today and tomorrow (of UTC), since clocks differ.
    Only JSON is taken, which a page of another origin cannot send without asking; it is never allowed to.
    """

    def __init__(self, collector: Receiver) -> None:
        self._collector = collector
        collection = collector.collection
        own = files("discreet.local")
        self._pages = {
            "/": ("text/html", page(collection)),
            "/style.css": ("text/css", style()),
            "/collection.json": ("application/json", collection.to_json()),
            **{
                f"/{name}": (kind, (own / name).read_text("utf-8"))
                for name, kind in (
                    ("client.mjs", "text/javascript"),
                    ("page.mjs", "text/javascript"),
                    ("page.css", "text/css"),
                )
            },
        }

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            status, kind, body, more = await self._reply(scope, receive)
            await _send(send, status, kind, body, more, empty=scope["method"] == "HEAD")

    async def _reply(self, scope: Message, receive: Receive) -> tuple[int, str, str, dict[str, str]]:
        path, method = scope["path"], scope["method"]
        if path == "/reports":
            return await self._take(scope, receive) if method == "POST" else _failed(405, "method", "POST")
        if path not in self._pages:
            return _failed(404, "path")
        if method not in ("GET", "HEAD"):
            return _failed(405, "method", "GET, HEAD")
        kind, text = self._pages[path]
        return 200, kind, text, {}

    async def _take(self, scope: Message, receive: Receive) -> tuple[int, str, str, dict[str, str]]:
        headers = {bytes(name).lower(): bytes(value) for name, value in scope["headers"]}
        if headers.get(b"content-type", b"").split(b";")[0].strip().lower() != b"application/json":
            return _failed(415, "type")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _body(receive)
        except TimeoutError:
            return _failed(408, "slow")
        if body is None:
            return _failed(413, "size")
        try:
            report = Report.from_json(body)
            collection, day = self._collector.collection, today()
            near = [collection.window_of(day + datetime.timedelta(days=days)) for days in (-1, 0, 1)]
            if report.window not in near:
                raise refused("its window is over, or has not begun", "look at the clock of the device")
            self._collector.add(report)
        except QuestionError as error:
            return 400, "application/json", json.dumps(error.to_dict()), {}
        except Error:
            return _failed(503, "store")
        return 202, "application/json", json.dumps(RECEIVED), {}


_MESSAGES = {
    "path": ("there is nothing here", "ask for /, or send a report to /reports"),
    "method": ("this cannot be done here", "see the header Allow"),
    "type": ("a report is JSON", "send it with Content-Type: application/json"),
    "size": (f"a report has at most {LARGEST:,} bytes", "send what Client.report gives"),
    "slow": ("the report took too long to arrive", "send it again: the same one, which costs nothing"),
    "store": ("the report could not be stored", "send it again later: the same one, which costs nothing"),
}


def _failed(status: int, code: str, allow: str = "") -> tuple[int, str, str, dict[str, str]]:
    message, fix = _MESSAGES[code]
    error = QuestionError(code, message, where="request", fix=fix)
    return status, "application/json", json.dumps(error.to_dict()), {"allow": allow} if allow else {}


async def _body(receive: Receive) -> bytes | None:
    """The whole body, or None where it is too large; what comes after the limit is read and dropped."""
    body, size = b"", 0
    while True:
        message = await receive()
        piece = message.get("body", b"")
        size += len(piece)
        if size <= LARGEST:
            body += piece
        if message["type"] == "http.disconnect" or size > 64 * LARGEST or not message.get("more_body"):
            return body if size <= LARGEST else None


async def _send(send: Send, status: int, kind: str, body: str, more: dict[str, str], *, empty: bool) -> None:
    data = body.encode("utf-8")
    headers = {"content-type": f"{kind}; charset=utf-8", "content-length": str(len(data)), **HEADERS, **more}
    listed = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": b"" if empty else data})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
