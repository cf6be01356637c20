"""Pages for whoever has started the command: on this machine alone, behind a secret of 256 random bits."""

from __future__ import annotations

import hmac
import os
import secrets
import signal
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from html import escape
from pathlib import Path
from typing import Any

from discreet.look.headers import HEADERS
from discreet.service.serving import Address, configured, needed

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

HERE = Address(port=0)
"""Where it listens: at a port that nobody has."""

ENDING_SECONDS = 2
"""How long what is asked already may take once the page ends."""

_COOKIE = "discreet"
_MOVES = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>discreet</title>
<meta http-equiv="refresh" content="0; url={0}">
<main><h1>discreet</h1><a href="{0}">Open the page</a></main>
</html>
"""
_UNOPENED = "This page is for whoever has started it: open the address that the command has written.\n"
_TAKEN = (
    "This page is for the browser that opened its address first: go on there. "
    "If that was not you, end the command with Ctrl-C and start it again.\n"
)


class Loopback:
    """A port of this machine that nobody else reaches, and what lets in whoever has `address`.

    The address holds a secret. The browser that opens it first gets a cookie, another secret, for the pages below
    `place`: what stands in the browser's line afterwards opens nothing, and neither does the address to whoever reads
    it later. A request must name this host and port, as one from a page of another site that has pointed its own name
    here does not; and what changes something must come from a page of ours. Connections on which nothing is asked
    take nobody's place. `close` frees the port. Raises QuestionError where the extra `server` is missing, or there is
    no port.
    """

    def __init__(self) -> None:
        needed()
        self._open = ExitStack()
        self._socket = self._open.enter_context(HERE.bound())
        self._host = f"{HERE.host}:{self._socket.getsockname()[1]}"
        self._secret, self._cookie = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._taken = False
        self.place = f"/{secrets.token_urlsafe(16)}/"
        self._server: Any = None

    @property
    def address(self) -> str:
        """Gives what the user opens. Whoever else reads it gets in too."""
        return f"http://{self._host}/open/{self._secret}"

    def run(self, app: Application) -> None:
        """Serves `app` below `place` until `stop` is called, or it is interrupted, which ends the `with` too."""
        from discreet.service.connections import Connections, Server, WatchedApplication

        connections = Connections()
        watched = WatchedApplication(self.guarded(app), connections)
        config = configured(watched, HERE, lifespan="off", timeout_graceful_shutdown=ENDING_SECONDS)
        self._server = Server(config, connections, [_Interruptible()])
        with _shown(self.address), _uninterrupted():
            self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Ends `run` once what is asked already has its reply."""
        self._server.should_exit = True

    def close(self) -> None:
        """Frees the port."""
        self._open.close()

    def __enter__(self) -> Loopback:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        self.close()
        return kind is KeyboardInterrupt  # which ends the page, also before it is served

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

        path, method = scope["path"], scope["method"]
        if said("host") != [self._host]:
            return 421, "This page is asked for under its own address alone.\n", {}
        if method == "GET" and _same(path, f"/open/{self._secret}"):
            return self._opened(fetched_before=any("prefetch" in one for one in said("sec-purpose")))
        if not path.startswith(self.place) or not any(_same(one, self._cookie) for one in _cookies(said("cookie"))):
            return 403, _TAKEN if self._taken else _UNOPENED, {}
        ours = said("sec-fetch-site") or said("origin")
        if method not in ("GET", "HEAD") and ours not in (["same-origin"], [f"http://{self._host}"]):
            return 403, "This is taken from a page of this address alone.\n", {}
        return None

    def _opened(self, *, fetched_before: bool) -> tuple[int, str, dict[str, str]]:
        """The reply to whoever has the address: the first one gets the cookie, all others only the way to the pages,
        where the first browser goes on. What a browser fetches before somebody wants it opens nothing."""
        if fetched_before:
            return 403, _UNOPENED, {}
        # a redirection would count as the step of whichever page led here, and go without the cookie
        moves = _MOVES.format(escape(self.place))
        if self._taken:
            return 200, moves, {}
        self._taken = True
        return 200, moves, {"set-cookie": f"{_COOKIE}={self._cookie}; Path={self.place}; HttpOnly; SameSite=Strict"}


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until the server hears it: an event loop that is being made would print what it interrupts."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


class _Interruptible:
    """Beside the server, which has handlers of its own once it starts: from then on Ctrl-C is heard."""

    async def start(self) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

    async def stop(self) -> None:
        """Nothing is left to do."""


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())


def _cookies(headers: list[str]) -> Iterator[str]:
    """Each cookie of our name. Other programs of this machine have cookies in the same header, of whatever form."""
    for header in headers:
        for pair in header.split(";"):
            name, _, value = pair.strip().partition("=")
            if name == _COOKIE:
                yield value


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
    if not sys.stderr.isatty() or not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="discreet-") as folder:
        file = Path(folder) / "open.html"
        file.write_text(_MOVES.format(escape(address)), "utf-8")
        # some browsers return only once they are closed
        threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
        yield
