"""Limits of connections: of those that say nothing, speak slowly, or do not take what they asked for.

How many there are is counted where they are accepted, before TLS and HTTP. Whoever asks is waited for; whoever does not
has so long, and goes before where there is no room: silence takes nobody's place.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import resource
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEAD_SECONDS = 10
"""How long a connection may take until it has asked something: the handshake of TLS and the head of a request."""

TAKEN_SECONDS = 120
"""How long an answer may take to be taken, and how long a connection may take until it asks something more."""

MOST = min(512, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
"""How many connections there are."""

MOST_OF_ONE = 64
"""How many there are of one address, of those that nothing is asked on."""

KNOWN = "discreet.known"
AT_ONCE = 32
"""How many are accepted before something else is done."""

_Peer = tuple[str, int]
_log = logging.getLogger("discreet")


@dataclass(eq=False)
class _ClientConnection:
    """One of them. `until`: when it is ended, unless it speaks; None while an account's question is answered."""

    counted: _CountedSocket
    whose: str
    until: float | None


class Connections:
    """The connections of one port: at most `most`, or MOST; of one address `of_one` that nothing is asked on."""

    def __init__(self, of_one: int = MOST_OF_ONE, most: int | None = None) -> None:
        self._of_one = of_one
        self._most = most
        self._open: dict[_Peer, _ClientConnection] = {}
        self._sweeping: asyncio.TimerHandle | None = None
        self._hastening = False

    def listening(self, bound: socket.socket) -> socket.socket:
        """The same listening socket; its connections are counted until they are closed."""
        return _Listening(self, os.dup(bound.fileno()))

    def accepted(self, taken: socket.socket, peer: Any) -> socket.socket:
        """A connection that was accepted. Where there is no room, the one that has said nothing for longest ends, or,
        where all of them ask, this one. Raises ConnectionAbortedError where it does."""
        whose = _whose(str(peer[0]))
        silent = [(one.until, place, one) for place, one in enumerate(self._open.values()) if one.until is not None]
        own = [one for one in silent if one[2].whose == whose]
        if len(own) >= self._of_one or len(self._open) >= (self._most or MOST):
            if not silent:
                taken.close()
                raise ConnectionAbortedError
            self._end(min(own if len(own) >= self._of_one else silent)[2])
        counted = _CountedSocket(self, (str(peer[0]), int(peer[1])), taken)
        self._open[counted.peer] = _ClientConnection(counted, whose, time.monotonic() + HEAD_SECONDS)
        if self._sweeping is None:
            self._sweep()
        return counted

    def closed(self, counted: _CountedSocket) -> None:
        """It is closed, by whomever."""
        if counted.peer in self._open and self._open[counted.peer].counted is counted:
            del self._open[counted.peer]

    def _end(self, one: _ClientConnection) -> None:
        """Ends it in both directions: whoever reads or writes on it hears so, TLS too, and closes it."""
        self.closed(one.counted)
        with contextlib.suppress(OSError):
            one.counted.shutdown(socket.SHUT_RDWR)

    def waits(self, peer: _Peer, *, taken: bool, seconds: float | None = None) -> None:
        """Whether what was sent on it is taken, so that it waits for us; or we wait for it, so long."""
        if peer in self._open:
            seconds = HEAD_SECONDS if self._hastening else TAKEN_SECONDS if seconds is None else seconds
            self._open[peer].until = None if taken else time.monotonic() + seconds

    def hasten(self) -> None:
        """The service ends: what has an answer takes it soon."""
        self._hastening = True
        for one in self._open.values():
            if one.until is not None:
                one.until = min(one.until, time.monotonic() + HEAD_SECONDS)

    def _sweep(self) -> None:
        """Ends what had its time, each second, as long as there is something."""
        now = time.monotonic()
        for one in list(self._open.values()):
            if one.until is not None and one.until < now:
                self._end(one)
        self._sweeping = asyncio.get_running_loop().call_later(1, self._sweep)


class _Unheard(Exception):
    """Nobody can be told any more."""


class WatchedApplication:
    """An application whose connections are watched: who takes what is sent, and who asks, which it says itself: what
    is in the scope as KNOWN is called once an account is known. What a stranger asks takes nobody's place either."""

    def __init__(self, app: ASGIApp, connections: Connections) -> None:
        self._app = app
        self._connections = connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":  # the server's own: nobody's connection
            await self._app(scope, receive, send)
            return
        peer = scope["client"]

        async def sent(message: Message) -> None:
            self._connections.waits(peer, taken=False)
            try:
                await send(message)
            except Exception:  # what came after the head was no HTTP, and the server has said so
                raise _Unheard from None
            self._connections.waits(peer, taken=True)

        self._connections.waits(peer, taken=False)
        scope[KNOWN] = partial(self._connections.waits, peer, taken=True)
        try:
            await self._app(scope, receive, sent)
        except _Unheard:
            pass
        except Exception as error:  # the server would write its words and trace, which may hold anything
            _log.error("a fault of discreet itself, of the kind %s", type(error).__name__)
        finally:
            self._connections.waits(peer, taken=False)


class BackgroundTask(Protocol):
    """What runs in the same process and event loop, from the server's start to its end."""

    async def start(self) -> None:
        """Begins."""
        ...

    async def stop(self) -> None:
        """Ends, once what it has is answered."""
        ...


class Server(uvicorn.Server):  # type: ignore[misc]
    """A server whose connections are counted, and what runs beside it."""

    def __init__(self, config: uvicorn.Config, connections: Connections, beside: Sequence[BackgroundTask] = ()) -> None:
        super().__init__(config)
        self._connections = connections
        self._beside = beside

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins what runs beside it, and then takes connections, counted."""
        for one in self._beside:
            await one.start()
        await super().startup([self._connections.listening(one) for one in sockets or ()])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Hastens what is open, ends what runs beside it, and then the server."""
        self._connections.hasten()
        for one in self._beside:
            await one.stop()
        await super().shutdown(sockets)


class _Listening(socket.socket):
    def __init__(self, connections: Connections, number: int) -> None:
        super().__init__(fileno=number)
        self._connections = connections
        self._at_once = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """The next one. Raises BlockingIOError after some: those that were ended for them are closed in between."""
        if not self._at_once:
            asyncio.get_running_loop().call_soon(self._go_on)
        if self._at_once >= AT_ONCE:
            raise BlockingIOError
        self._at_once += 1
        taken, peer = super().accept()
        return self._connections.accepted(taken, peer), peer

    def _go_on(self) -> None:
        self._at_once = 0


class _CountedSocket(socket.socket):
    def __init__(self, connections: Connections, peer: _Peer, taken: socket.socket) -> None:
        super().__init__(taken.family, taken.type, taken.proto, taken.detach())
        self._connections = connections
        self.peer = peer

    def close(self) -> None:
        self._connections.closed(self)
        super().close()


def _whose(host: str) -> str:
    """Whose address it is: with IPv6 one has as many as one likes that begin alike."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return str(address) if address.version == 4 else str(ipaddress.ip_network((address.packed[:8] + bytes(8), 64)))
