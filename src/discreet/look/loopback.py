"""Pages for whoever has started the command: on this machine alone, behind a secret of 256 random bits."""

from __future__ import annotations

import hmac
import importlib
import os
import secrets
import socket
import sys
import tempfile
import webbrowser
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from html import escape
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any

from discreet.errors import QuestionError
from discreet.look.headers import HEADERS

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

HOST = "127.0.0.1"
_COOKIE = "discreet"
_MOVES = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>discreet</title>
<meta http-equiv="refresh" content="0; url={0}">
<main><h1>discreet</h1><a href="{0}">Open the page</a></main>
</html>
"""


class Loopback:
    """A port of this machine that nobody else reaches, and what lets in whoever has `address`.

    The address holds a secret. It gives the browser a cookie, another secret, for the pages below `place`: what stands
    in the browser's line afterwards opens nothing. A request must name this host and port, as one from a
    page of another site that has pointed its own name here does not; and what changes something must come from a page
    of ours. `close` frees the port. Raises QuestionError where the extra `server` is missing.
    """

    def __init__(self, where: str) -> None:
        try:
            self._uvicorn = importlib.import_module("uvicorn")
        except ImportError:
            fix = 'run pip install "discreet[server]"'
            raise QuestionError("extra", "this needs uvicorn", where=where, fix=fix) from None
        self._socket = socket.create_server((HOST, 0))
        self._host = f"{HOST}:{self._socket.getsockname()[1]}"
        self._secret, self._cookie = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self.place = f"/{secrets.token_urlsafe(16)}/"
        self._server: Any = None

    @property
    def address(self) -> str:
        """Gives what the user opens. Whoever else reads it gets in too."""
        return f"http://{self._host}/open/{self._secret}"

    def run(self, app: Application) -> None:
        """Serves `app` below `place` until it is interrupted, or `stop` is called."""
        more = {"access_log": False, "log_level": "error", "server_header": False, "lifespan": "off", "ws": "none"}
        config = self._uvicorn.Config(self.guarded(app), proxy_headers=False, timeout_graceful_shutdown=2, **more)
        self._server = self._uvicorn.Server(config)
        with _shown(self.address), suppress(KeyboardInterrupt):
            self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Ends `run` once what is asked already has its reply."""
        self._server.should_exit = True

    def close(self) -> None:
        """Frees the port."""
        self._socket.close()

    def __enter__(self) -> Loopback:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def guarded(self, app: Application) -> Application:
        """Makes an application of one that nobody but the user reaches; `place` is its root."""

        async def guard(scope: Message, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                return
            headers = [
                (bytes(name).lower().decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
            ]
            refused = self._refused(scope, headers)
            if refused is not None:
                await _reply(send, *refused)
                return
            await app({**scope, "root_path": self.place.rstrip("/")}, receive, _with_headers(send))

        return guard

    def _refused(self, scope: Message, headers: list[tuple[str, str]]) -> tuple[int, str, dict[str, str]] | None:
        """The reply to whoever is not let in, and to whoever comes with the secret; None for a request of a page."""

        def said(name: str) -> list[str]:
            return [value for known, value in headers if known == name]

        path, reads = scope["path"], scope["method"] in ("GET", "HEAD")
        if said("host") != [self._host]:
            return 421, "This page is asked for under its own address alone.\n", {}
        if reads and _same(path, f"/open/{self._secret}"):
            cookie = f"{_COOKIE}={self._cookie}; Path={self.place}; HttpOnly; SameSite=Strict"
            # a redirection would count as the step of whichever page led here, and go without the cookie
            return 200, _MOVES.format(escape(self.place)), {"set-cookie": cookie}
        if not path.startswith(self.place) or not any(_same(one, self._cookie) for one in _cookies(said("cookie"))):
            return 403, "This page is for whoever has started it: open the address that the command has written.\n", {}
        ours = said("sec-fetch-site") or said("origin")
        if not reads and ours not in (["same-origin"], [f"http://{self._host}"]):
            return 403, "This is taken from a page of this address alone.\n", {}
        return None


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())


def _cookies(headers: list[str]) -> Iterator[str]:
    for header in headers:
        try:
            found = SimpleCookie(header)
        except CookieError:
            continue
        if _COOKIE in found:
            yield found[_COOKIE].value


async def _reply(send: Send, status: int, text: str, more: dict[str, str]) -> None:
    kind = "text/html" if text.startswith("<") else "text/plain"
    body = text.encode()
    headers = {"content-type": f"{kind}; charset=utf-8", "content-length": str(len(body)), **more}
    started = {"type": "http.response.start", "status": status, "headers": _listed(headers)}
    guarded = _with_headers(send)
    await guarded(started)
    await guarded({"type": "http.response.body", "body": body})


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [pair for pair in message["headers"] if bytes(pair[0]).lower().decode("latin-1") not in HEADERS]
            message = {**message, "headers": [*own, *_listed(HEADERS)]}
        await send(message)

    return sent


def _listed(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


@contextmanager
def _shown(address: str) -> Iterator[None]:
    """Opens the browser of whoever sits at this machine, where somebody does. It gets a file that the user alone may
    read, which leads to the address: everybody at a machine sees which commands run there, and with which words."""
    if not sys.stdout.isatty() or not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="discreet-") as folder:
        file = Path(folder) / "open.html"
        file.write_text(_MOVES.format(escape(address)), "utf-8")
        webbrowser.open(file.as_uri())
        yield
