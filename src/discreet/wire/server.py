"""Where the protocol of PostgreSQL is listened to, and who is let in: under TLS beyond this machine, by name and token.

It runs in the service's own process and event loop, beside HTTP. A stranger has ten seconds and a few kilobytes; of one
address and of one account there are so many connections, and where there is no room the ones that have said nothing for
longest end. What a stranger is told is the same whatever the name.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import secrets
import socket
import ssl
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from discreet.errors import Error
from discreet.release import Release
from discreet.service.accounts import Account, Accounts
from discreet.service.api import ASKING, Service
from discreet.service.connections import MOST, MOST_OF_ONE, Connections
from discreet.service.requests import RefusedRequest
from discreet.service.scram import salt_of
from discreet.service.serving import Address, loopback
from discreet.wire import messages
from discreet.wire.browsing import Browsing
from discreet.wire.line import LARGEST_LOGIN, Gone, Line
from discreet.wire.login import Login, end_point, refused
from discreet.wire.refusals import Trouble
from discreet.wire.results import ResultColumn, StatementResult
from discreet.wire.session import SessionFacts, WireSession
from discreet.wire.settings import Settings

MOST_OF_ACCOUNT = 32
"""How many sessions of one account there are."""

IDLE_SECONDS = 3_600
"""How long a session may say nothing: programs keep some for later."""

MOST_WAITING = 16
"""How many sessions of one analyst wait for a question of theirs."""

TURN_SECONDS = 120
"""How long they wait."""

FAILED_SECONDS = 0.1
"""When a failed login is answered."""

_log = logging.getLogger("discreet")


class Wire:
    """A port for the protocol of PostgreSQL, bound already, over a service that runs."""

    def __init__(
        self,
        service: Service,
        accounts: Accounts,
        bound: socket.socket,
        address: Address,
    ) -> None:
        self._service = service
        self._accounts = accounts
        self._bound = bound
        self._catalog = Browsing(service.tables, service.schema)
        self._connections = Connections(MOST if loopback(address.host) else MOST_OF_ONE, MOST // 2)
        self._context, self._certificate = _encrypting(address)
        self._tasks: set[asyncio.Task[None]] = set()
        self._lines: set[Line] = set()
        self._sessions: dict[int, tuple[bytes, WireSession]] = {}
        self._of_account: Counter[str] = Counter()
        self._turns: dict[tuple[str | None, str], _AccountTurn] = {}
        self._doors: anyio.CapacityLimiter | None = None
        self._server: asyncio.Server | None = None
        self._key: bytes | None = None
        self._ending = False

    async def start(self) -> None:
        """Listens from now on."""
        self._doors = anyio.CapacityLimiter(4)
        listening = self._connections.listening(self._bound)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Line(self._connected, self._tasks), sock=listening)

    async def stop(self) -> None:
        """Takes nobody more, and ends what is there: first what waits for its client, the rest once it is answered and
        the client has had a few seconds to take that."""
        self._ending = True
        if self._server is not None:
            self._server.close()
        self._connections.hasten()
        for _, session in self._sessions.values():
            session.end()
        for line in self._lines:
            line.hasten()
        while self._tasks:
            await asyncio.wait(set(self._tasks))
        self._catalog.close()

    # one connection

    async def _connected(self, line: Line) -> None:
        self._lines.add(line)
        if self._ending:
            line.hasten()
        try:
            with self._service.watch.psql.connection():
                await self._begun(line)
        except Gone:
            pass
        except Trouble as error:
            if error.code.startswith("28"):
                self._service.watch.psql.login_refused()
            line.write(messages.said(b"E", "FATAL", error))
        except asyncio.CancelledError:
            ending = Trouble("57P01", "the service ends", hint="connect again")
            line.write(messages.said(b"E", "FATAL", ending))
        except Exception as error:  # its words may hold anything
            _log.error("a fault of discreet itself, of the kind %s", type(error).__name__)
            line.write(messages.said(b"E", "FATAL", Trouble("XX000", "a fault of discreet itself")))
        finally:
            await line.close()
            self._lines.discard(line)

    async def _begun(self, line: Line) -> None:
        body = await line.startup()
        encrypted = False
        for _ in range(3):
            code = struct.unpack("!i", body.take(4))[0]
            if code == messages.CANCEL_REQUEST:
                self._cancel(body.int32(), body.rest())
                return
            if code == messages.SSL_REQUEST and self._context is not None and not encrypted:
                body.end()
                await line.encrypt(self._context)
                encrypted = True
            elif code in (messages.SSL_REQUEST, messages.GSS_REQUEST):
                body.end()
                line.write(b"N")
                await line.flush()
            else:
                break
            body = await line.startup()
        body.again()
        begun = messages.startup(body)
        if self._context is not None and not encrypted:
            hint = "connect with sslmode=require, or verify-full"
            raise Trouble("28000", "this server speaks TLS alone", hint=hint, fatal=True)
        await self._entered(line, begun, encrypted)

    async def _entered(self, line: Line, begun: messages.Startup, encrypted: bool) -> None:
        unknown = [name for name in begun.parameters if name.startswith("_pq_.")]
        if begun.minor or unknown:
            line.write(messages.negotiated(unknown))
        user = begun.parameters.get("user", "")
        if not user:
            raise Trouble("28000", "a user is named first", hint="the user is an account's name", fatal=True)
        if begun.parameters.get("replication", "off").lower() not in ("off", "false", "no", "0"):
            raise Trouble("0A000", "there is nothing to replicate here", fatal=True)
        token = await self._proved(line, user, self._certificate if encrypted else None)
        asked = _CheckedAccount(self, user, token)
        try:
            account = await asked.account()
        except (Error, RefusedRequest) as error:
            problem = self._service.problem_of(error, None)
            raise Trouble("28000", problem["detail"], hint=problem["fix"], fatal=True) from None
        if account.role not in ASKING:
            fix = "log in as an analyst, or as the owner"
            raise Trouble("28000", f"this is not for the role {account.role}", hint=fix, fatal=True)
        if self._of_account[user] >= MOST_OF_ACCOUNT or self._ending:
            raise Trouble("53300", "too many sessions of this account are open", hint="close some", fatal=True)
        settings = Settings()
        settings.begin(begun.parameters)
        process, key = self._new_key()
        database = begun.parameters.get("database", user)[:63]
        facts = SessionFacts(user, database, settings.kept(), process)
        session = WireSession(line, asked, facts, settings)
        peer = line.transport.get_extra_info("peername")
        session.idle = partial(self._idle, (str(peer[0]), int(peer[1])))
        line.write(messages.authentication(0))
        for name, value in settings.reported(user):
            line.write(messages.parameter(name, value))
        line.write(messages.message(b"K", struct.pack("!I", process) + key))
        self._of_account[user] += 1
        self._sessions[process] = key, session
        try:
            await session.run()
        finally:
            del self._sessions[process]
            self._of_account[user] -= 1

    def _idle(self, peer: tuple[str, int], waits: bool) -> None:
        self._connections.waits(peer, taken=not waits, seconds=IDLE_SECONDS)

    def _new_key(self) -> tuple[int, bytes]:
        while (process := secrets.randbelow(1 << 31)) in self._sessions:
            pass
        return process, secrets.token_bytes(4)

    def _cancel(self, process: int, key: bytes) -> None:
        known, session = self._sessions.get(process, (b"", None))
        if session is not None and hmac.compare_digest(known, key):
            session.cancel()

    async def _proved(self, line: Line, user: str, bound: bytes | None) -> str:
        """The verifier of the token that the client has proved to know."""
        started = asyncio.get_running_loop().time()
        try:
            salt, verifiers = await anyio.to_thread.run_sync(self._known, user, limiter=self._doors)
        except Error:  # whoever has no token learns no file's name
            raise Trouble("58000", "the service cannot answer now", hint="tell the owner", fatal=True) from None
        login = Login(salt, verifiers, bound)
        line.write(messages.authentication(10, b"".join(map(messages.zero_ended, login.mechanisms)) + b"\0"))
        await line.flush()
        try:
            body = await _password(line)
            mechanism = body.text()
            said = messages.utf8(body.take(body.int32()))
            body.end()
            line.write(messages.authentication(11, login.first(mechanism, said).encode()))
            await line.flush()
            answer, token = login.last(messages.utf8((await _password(line)).rest()))
        except Trouble as error:
            await asyncio.sleep(max(0, started + FAILED_SECONDS - asyncio.get_running_loop().time()))
            raise refused() if error.code == "28P01" else Trouble(error.code, error.message, fatal=True) from None
        line.write(messages.authentication(12, answer.encode()))
        return token

    def _known(self, user: str) -> tuple[bytes, Sequence[str]]:
        """An account's salt and the verifiers that hold; for a name that nobody has, a salt that stays the same."""
        salt, found = self._accounts.salted(user)
        if self._key is None:
            self._key = self._accounts.secret()
        decoy = hmac.digest(self._key, b"salt of " + user.encode("utf-8", "replace"), "sha256")[:16]
        return salt_of(salt) if salt is not None else decoy, found

    # what is asked

    async def held(self, user: str, token: str) -> Account:
        """The account of a session, as long as it holds, and the token that it was opened with. Raises
        RefusedRequest."""
        account = await self._service.holder_of(user)
        found = await anyio.to_thread.run_sync(self._accounts.verifiers, user, limiter=self._doors)
        if account is None or token not in found:
            fix = "ask the owner for another token"
            raise RefusedRequest(
                403, "account", "the account or the token of this session does not hold any more", "", fix
            )
        return account

    @contextlib.asynccontextmanager
    async def turn(self, account: Account, what: str = "question") -> Any:
        """Of an analyst one question after another. Raises RefusedRequest where too many wait."""
        turn = self._turns.setdefault((account.asks_as, what), _AccountTurn())
        if turn.waiting >= MOST_WAITING:
            raise _busy()
        turn.waiting += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                self._turns.pop((account.asks_as, what), None)

    @property
    def service(self) -> Service:
        return self._service

    @property
    def catalog(self) -> Browsing:
        return self._catalog


class _AccountTurn:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class _CheckedAccount:
    """What one session asks: each time, whether its account still holds."""

    def __init__(self, wire: Wire, user: str, token: str) -> None:
        self._wire = wire
        self._user = user
        self._token = token
        self._known: Account | None = None
        self.begun = False

    async def account(self) -> Account:
        self._known = None
        self._known = await self._wire.held(self._user, self._token)
        return self._known

    async def asked(self, said: Mapping[str, Any]) -> tuple[Release, Sequence[str]]:
        with self._wire.service.watch.psql.question():
            found: tuple[Release, Sequence[str]] = await self._in_turn(self._wire.service.asked, said)
        return found

    async def explained(self, said: Mapping[str, Any]) -> Any:
        return await self._in_turn(self._wire.service.explained, said)

    async def _in_turn(self, ask: Any, said: Mapping[str, Any]) -> Any:
        """Waits for questions of the same analyst that run elsewhere, as over HTTP."""
        self.begun = False
        account = await self.account()
        async with self._wire.turn(account):
            until = asyncio.get_running_loop().time() + TURN_SECONDS
            while True:
                account = await self.account()  # it may have ended while it waited
                self.begun = True
                try:
                    return await ask(account, said)
                except RefusedRequest as error:
                    self.begun = False
                    if error.error.code != "busy" or asyncio.get_running_loop().time() > until:
                        raise
                await asyncio.sleep(0.05)

    async def columns_of(self, said: Mapping[str, Any]) -> Mapping[str, str]:
        """Of an analyst one after another; nobody waits for questions that run."""
        self.begun = False
        account = await self.account()
        async with self._wire.turn(account, "columns"):
            return await self._wire.service.columns_of(account, said)

    async def balance(self) -> Mapping[str, Any]:
        return await self._wire.service.balance(await self.account())

    def tables(self) -> Mapping[str, Mapping[str, Any]]:
        return self._wire.service.tables

    def problem_of(self, error: Exception) -> Mapping[str, Any]:
        return self._wire.service.problem_of(error, self._known)

    async def catalog(self, text: str, parameters: Sequence[str | None], facts: SessionFacts) -> StatementResult | None:
        return await self._wire.catalog.answer(text, parameters, facts)

    async def catalog_described(
        self, text: str, facts: SessionFacts
    ) -> tuple[Sequence[int], Sequence[ResultColumn]] | None:
        return await self._wire.catalog.described(text, facts)

    async def probed(self, text: str, facts: SessionFacts) -> Sequence[tuple[str, int | None]] | None:
        return await self._wire.catalog.probed(text, facts)


async def _password(line: Line) -> messages.Body:
    kind, body = await line.message(LARGEST_LOGIN)
    if kind != b"p":
        raise messages.broken()
    return body


def _busy() -> RefusedRequest:
    return RefusedRequest(429, "busy", "too many questions of yours wait; nothing was spent", "", "ask again")


def _encrypting(address: Address) -> tuple[ssl.SSLContext | None, bytes | None]:
    """How TLS is spoken, where there is a certificate, and the hash of it that a login is bound to."""
    if address.certificate is None or address.key is None:
        return None, None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(address.certificate, address.key)
    return context, end_point(Path(address.certificate))
