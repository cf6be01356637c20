"""Messages between two parties: frames of known kind and length, each bound to the session."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum

from discreet.errors import SessionError

_HEAD = 1 + 32 + 8  # kind, hash of the session, length of the body
_GOODBYE = 1.0  # seconds that closing a connection may take


class MessageKind(IntEnum):
    """The kind of a message. Each phase knows one kind and one length; END may come at any time."""

    HELLO = 1
    CHARGED = 2
    SHARES = 3
    HELD = 4
    ROSTER = 5
    COMMITMENT = 6
    SUM = 7
    OPENED = 8
    MPYC = 9
    END = 10


class PeerGone(Exception):
    """The other party is unreachable: its connection broke, or it did not answer in time."""


@dataclass(frozen=True)
class Link:
    """A connection with one party, whose certificate is the one of the session. `hash` is the session's."""

    name: str
    hash: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, kind: MessageKind, body: bytes) -> None:
        """Raises PeerGone."""
        try:
            self.put(kind, body)
            await self.writer.drain()
        except (OSError, RuntimeError):
            raise PeerGone(f"{self.name} stopped") from None

    def put(self, kind: MessageKind, body: bytes) -> None:
        """Sends without waiting for the line."""
        self.writer.write(bytes([kind]) + self.hash + len(body).to_bytes(8, "big") + body)

    async def receive(self, kind: MessageKind, length: int) -> bytes:
        """The body of the next message, which must be of this kind and length.

        Raises PeerGone, or SessionError where it is another message than the session's next one.
        """
        _, body = await self.receive_one({kind: (length, length)})
        return body

    async def receive_one(self, known: Mapping[MessageKind, tuple[int, int]]) -> tuple[MessageKind, bytes]:
        """The next message, which must be of a known kind and of a length between the two. No more than that is read.

        Raises as `receive` does.
        """
        try:
            head = await self.reader.readexactly(_HEAD)
            came, session, said = head[0], head[1:33], int.from_bytes(head[33:], "big")
            if session != self.hash:
                fix = "compare the hash of your documents, and let all take the same one"
                raise ended("document", f"{self.name} holds another session document", fix)
            if came == MessageKind.END:
                raise ended("ended", f"{self.name} ended the session", f"ask {self.name} why: its own command says it")
            if came not in known:
                what = (
                    f"sent {MessageKind(came).name} out of order"
                    if came in set(MessageKind)
                    else "sent what is not a valid message"
                )
                raise ended("malformed", f"{self.name} {what}")
            least, most = known[MessageKind(came)]
            if not least <= said <= most:
                raise ended("length", f"{self.name} sent {said:,} bytes where {most:,} were agreed")
            return MessageKind(came), await self.reader.readexactly(said)
        except (OSError, EOFError):
            raise PeerGone(f"{self.name} stopped") from None

    async def close(self, *, end: bool) -> None:
        """Says END where the session does, and lets the connection go."""
        try:
            with suppress(PeerGone, OSError, RuntimeError, TimeoutError):
                async with asyncio.timeout(_GOODBYE):
                    if end:
                        await self.send(MessageKind.END, b"")
                    self.writer.close()
                    await self.writer.wait_closed()
        finally:
            self.drop()

    def drop(self) -> None:
        """Lets the connection go at once, and says nothing."""
        if transport := self.writer.transport:
            transport.abort()


def ended(code: str, message: str, fix: str = "find out why, and agree on a new session") -> SessionError:
    """The end of a session; `protocol` adds what is true of the result."""
    return SessionError(code, message, where="together", fix=fix)


def context(server: bool, certificate: str, key: str, trusted: str) -> ssl.SSLContext:
    """TLS 1.3 with both sides' certificates, of which only those in `trusted` (PEM) are taken, whoever signed them.

    `certificate` and `key` are files. Raises SessionError where they do not fit each other.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.check_hostname = False  # the certificate itself is pinned, not a name that somebody vouches for
    made.verify_mode = ssl.CERT_REQUIRED
    made.verify_flags = ssl.VERIFY_X509_PARTIAL_CHAIN
    made.load_verify_locations(cadata=trusted)
    try:
        made.load_cert_chain(certificate, key, password=lambda: b"")
    except (OSError, ssl.SSLError):
        fix = "name the file of the private key, without a password, to the certificate in the session"
        raise ended("key", "the private key cannot be read, or belongs to another certificate", fix) from None
    return made
