"""A connection's bytes: read with limits of size and time, written no faster than they are taken."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from collections.abc import Callable, Coroutine
from typing import Any, cast

from discreet.wire.messages import Body, broken
from discreet.wire.refusals import Trouble

LARGEST_STARTUP = 10_000
LARGEST_LOGIN = 4_000
LARGEST = 131_072
"""Bytes of a message: a text of 64 kB, and as much again for parameters."""

MESSAGE_SECONDS = 10
"""How long a message may take from its first bytes to its last."""

TAKEN_SECONDS = 120
"""How long a client may leave what was sent to it."""

ENDING_SECONDS = 5
"""How long it may take altogether what is sent once the service ends."""

_ENOUGH = 65_536
"""Bytes that wait on either side."""


class Gone(Exception):
    """Nobody is there any more."""


class Line(asyncio.Protocol):
    """One connection. `begun` is what happens on it."""

    def __init__(self, begun: Callable[[Line], Coroutine[Any, Any, None]], tasks: set[asyncio.Task[None]]) -> None:
        self._begun = begun
        self._tasks = tasks
        self._transport: asyncio.Transport | None = None
        self._came = bytearray()
        self._written = bytearray()
        self._waiting: asyncio.Future[None] | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._paused = False
        self._gone = False
        self._ending = False
        self._until: float | None = None
        self._taking: asyncio.Timeout | None = None

    # as asyncio calls it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_ENOUGH)
        task = asyncio.get_running_loop().create_task(self._begun(self))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def data_received(self, data: bytes) -> None:
        self._came += data
        if len(self._came) > LARGEST + _ENOUGH and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        self._gone = True
        self._wake()
        return False

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self._gone = True
        self._room.set()
        self._wake()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    # for whoever speaks on it

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    async def _exactly(self, length: int) -> bytes:
        """Raises Gone where they do not come."""
        while len(self._came) < length:
            if self._gone:
                raise Gone
            if self._paused:
                self._paused = False
                self.transport.resume_reading()
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        taken = bytes(self._came[:length])
        del self._came[:length]
        return taken

    async def startup(self) -> Body:
        """A message of those that begin a connection, which have a length alone."""
        (length,) = struct.unpack("!I", await self._exactly(4))
        if not 8 <= length <= LARGEST_STARTUP:
            raise broken()
        return Body(await self._exactly(length - 4))

    async def message(self, largest: int = LARGEST) -> tuple[bytes, Body]:
        """The next message: waits for its first byte as long as the connection is there. Raises Trouble where it is
        larger, or comes too slowly."""
        kind = await self._exactly(1)
        try:
            async with asyncio.timeout(MESSAGE_SECONDS):
                (length,) = struct.unpack("!I", await self._exactly(4))
                if not 4 <= length <= largest:
                    words = f"a message has at most {largest:,} bytes here"
                    raise Trouble("08P01", words, fatal=True) if length >= 4 else broken()
                return kind, Body(await self._exactly(length - 4))
        except TimeoutError:
            raise Trouble("08P01", "the rest of a message did not come", fatal=True) from None

    def write(self, content: bytes) -> None:
        """It goes with the next `flush`."""
        self._written += content

    async def send(self, content: bytes) -> None:
        """Writes it, and waits where much has been written. Raises Gone where it is not taken in time."""
        self._written += content
        if len(self._written) >= _ENOUGH:
            await self.flush()

    async def flush(self) -> None:
        """Sends what was written. Raises Gone where it is not taken in time."""
        if self._gone or self.transport.is_closing():
            raise Gone
        if self._written:
            self.transport.write(bytes(self._written))
            self._written.clear()
        if not self._room.is_set():
            try:
                async with asyncio.timeout_at(self._taken_until()) as self._taking:
                    await self._room.wait()
            except TimeoutError:
                self.transport.abort()
                raise Gone from None
            finally:
                self._taking = None

    def hasten(self) -> None:
        """The service ends: what is sent from now on is taken soon, or the line ends."""
        self._ending = True
        if self._taking is not None:
            self._taking.reschedule(self._taken_until())

    def _taken_until(self) -> float:
        """When a client must have taken what is sent now."""
        now = asyncio.get_running_loop().time()
        if not self._ending:
            return now + TAKEN_SECONDS
        if self._until is None:  # counted once: who takes a little now and then has no more time
            self._until = now + ENDING_SECONDS
        return self._until

    async def encrypt(self, context: ssl.SSLContext) -> None:
        """Speaks TLS from now on. Whatever came before it does is nobody's word: raises Trouble."""
        if self._came:
            raise broken()
        self.write(b"S")
        await self.flush()
        self.transport.pause_reading()
        try:
            loop = asyncio.get_running_loop()
            made = await loop.start_tls(self.transport, self, context, server_side=True)
        except (OSError, ssl.SSLError):
            raise Gone from None
        if made is None:
            raise Gone
        self._transport = made
        self._transport.set_write_buffer_limits(high=_ENOUGH)

    async def close(self) -> None:
        """Sends what was written, and ends."""
        with contextlib.suppress(Gone):
            await self.flush()
        self.transport.close()
