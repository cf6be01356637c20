"""Connects the parties of a session: one TLS connection between every two, each with its pinned certificate."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ipaddress
import ssl
import tempfile
from pathlib import Path

from discreet.errors import SessionError
from discreet.together.session import Party, Session
from discreet.together.wire import Link, MessageKind, PeerGone, context, ended

_HANDSHAKE = 10.0  # seconds for TLS: a stranger may not hold a connection longer
_AGAIN = 0.05  # seconds between two tries to reach a party that does not listen yet
_WAITING = 64  # connections that may wait to be taken

Links = dict[str, Link]


class Meeting:
    """One party's connections. The later of two parties in the document calls the earlier one."""

    def __init__(self, session: Session, name: str, key: Path) -> None:
        """`key` is the file of the private key. Raises QuestionError or SessionError."""
        self.session = session
        self.place = session.place(name)
        self.me = session.parties[self.place]
        self.links: Links = {}
        self._hash = bytes.fromhex(session.hash)
        self._by_fingerprint = {party.fingerprint: party for party in session.parties}
        trusted = "".join(party.certificate for party in session.parties)
        with tempfile.TemporaryDirectory() as folder:
            certificate = Path(folder) / "certificate.pem"
            certificate.write_text(self.me.certificate, "utf-8")
            self._server_tls, self._client_tls = (
                context(server, str(certificate), str(key), trusted) for server in (True, False)
            )
        self._changed = asyncio.Event()
        self._failure: SessionError | None = None
        self._over = False
        self._refused: set[str] = set()

    async def meet(self) -> None:
        """Connects with all parties that come in time; each must hold the same document.

        Raises SessionError where fewer come than the session needs, one comes twice, or holds another document.
        """
        server = await self._listen() if self.place + 1 < len(self.session.parties) else None
        callers = [asyncio.create_task(self._call(party)) for party in self.session.parties[: self.place]]
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.session.seconds):
                    while self._failure is None and len(self.links) + 1 < len(self.session.parties):
                        await self._changed.wait()
                        self._changed.clear()
        finally:
            self._over = True
            for caller in callers:
                caller.cancel()
            await asyncio.gather(*callers, return_exceptions=True)
            if server is not None:
                server.close()
        if self._failure is not None:
            raise self._failure
        self._enough()

    def _enough(self) -> None:
        missing = [name for name in self.session.names if name not in self.links and name != self.me.name]
        if len(missing) > self.session.absent:
            fix = "start all parties within that time; nothing was charged here"
            message = f"{', '.join(missing)} did not come within {self.session.seconds} seconds"
            if self._refused:
                message += (
                    f"; where {', '.join(sorted(self._refused))} should be, another certificate is, or an old one"
                )
            raise ended("missing", message, fix)

    async def _listen(self) -> asyncio.Server:
        """On the party's own address, and no other."""
        host, port = self.me.host, self.me.port
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port)
            address = str(found[0][4][0])
            if ipaddress.ip_address(address.partition("%")[0]).is_unspecified:
                raise OSError("every address")
            return await asyncio.start_server(
                self._came, address, port, ssl=self._server_tls, ssl_handshake_timeout=_HANDSHAKE, backlog=_WAITING
            )
        except OSError:
            fix = "stop what listens there already, or agree on another address; nothing was charged here"
            raise ended("address", f"{self.me.name} cannot listen at {host}:{port}", fix) from None

    async def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        party = self._by_fingerprint.get(fingerprint(writer))
        if party is None or self.session.place(party.name) <= self.place:
            await Link("", self._hash, reader, writer).close(end=False)  # no caller of ours: as if it had not come
            return
        with contextlib.suppress(asyncio.CancelledError):
            await self._greet(Link(party.name, self._hash, reader, writer))

    async def _call(self, party: Party) -> None:
        while party.name not in self.links and self._failure is None:
            try:
                reader, writer = await asyncio.open_connection(
                    party.host, party.port, ssl=self._client_tls, ssl_handshake_timeout=_HANDSHAKE
                )
            except OSError as error:
                if isinstance(error, ssl.SSLCertVerificationError):
                    self._refused.add(party.name)
                await asyncio.sleep(_AGAIN)
                continue
            link = Link(party.name, self._hash, reader, writer)
            if fingerprint(writer) != party.fingerprint:
                self._refused.add(party.name)
                await link.close(end=False)
                await asyncio.sleep(_AGAIN)
                continue
            if not await self._greet(link):
                await asyncio.sleep(_AGAIN)

    async def _greet(self, link: Link) -> bool:
        """Whether the other party is in the same session. What it does wrong ends the session."""
        try:
            async with asyncio.timeout(_HANDSHAKE):
                await link.send(MessageKind.HELLO, b"")
                await link.receive(MessageKind.HELLO, 0)
            if self._over:
                raise PeerGone("too late")
            if link.name in self.links:
                raise ended("twice", f"{link.name} came twice")
        except (PeerGone, TimeoutError):
            await link.close(end=False)
            return False
        except asyncio.CancelledError:  # the time is over
            link.drop()
            raise
        except SessionError as error:
            self._failure = error
            await link.close(end=True)
        else:
            self.links[link.name] = link
        self._changed.set()
        return True

    async def close(self, *, end: bool) -> None:
        """Lets all connections go; with `end` each party is told that the session ends."""
        await asyncio.gather(*(link.close(end=end) for link in self.links.values()))


def fingerprint(writer: asyncio.StreamWriter) -> str:
    """The SHA-256 of the certificate that the other side proved to hold; "" where there is none."""
    tls: ssl.SSLObject | None = writer.get_extra_info("ssl_object")
    certificate = tls.getpeercert(binary_form=True) if tls is not None else None
    return hashlib.sha256(certificate).hexdigest() if certificate else ""
