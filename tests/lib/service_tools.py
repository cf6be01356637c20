"""A service for tests: the real server, over a real curator and socket, in a thread of this process."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import discreet
import face_tools
from discreet.catalog import read
from discreet.console.app import pages
from discreet.curator import Curator
from discreet.service.accounts import Account, Accounts, bound
from discreet.service.roles import Role
from discreet.service.serving import Address, server
from discreet.service.workers import Workers, several
from discreet.wire.server import Wire

CLINIC = f"""{face_tools.CLINIC.replace("epsilon = 1.0", "epsilon = 10")}
[analysts.ana]
epsilon = 4

[analysts.bob]
epsilon = 0.2
"""

LOOPBACK = Address(port=0)

HOLDERS = {"owner": Role.OWNER, "ana": Role.ANALYST, "bob": Role.ANALYST, "eve": Role.AUDITOR, "max": Role.MONITOR}


@dataclass(frozen=True)
class Reply:
    """What came of a request."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return face_tools.strict(self.content)


@dataclass(frozen=True)
class Served:
    """A service that runs, with a token of each account."""

    port: int
    curator: Curator
    accounts: Accounts
    tokens: Mapping[str, str]
    workers: Workers | None = None
    psql: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self, who: str) -> discreet.RemoteCurator:
        return discreet.connect(self.url, token=self.tokens[who])

    def call(
        self, method: str, path: str, who: str | None, said: Any = None, *, body: bytes | None = None, **headers: str
    ) -> Reply:
        """One request, on a connection of its own; `who` names an account, or is a token."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if who is not None:
            sent.setdefault("Authorization", f"Bearer {self.tokens.get(who, who)}")
        if said is not None:
            body = json.dumps(said).encode()
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            connection.request(method, path, body, sent)
            reply = connection.getresponse()
            found: dict[str, str] = {}
            for name, value in reply.getheaders():
                before = found.get(name.lower())
                found[name.lower()] = value if before is None else f"{before}, {value}"
            return Reply(reply.status, found, reply.read())
        finally:
            connection.close()

    def raw(self, content: bytes, *, half: bool = False) -> bytes:
        """What comes after these bytes, until the server closes; `half` says no more before."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=300) as connection:
            connection.sendall(content)
            if half:
                connection.shutdown(socket.SHUT_WR)
            found = b""
            while piece := connection.recv(65_536):
                found += piece
            return found


def certificate(folder: Path) -> tuple[str, str]:
    """A certificate for this machine, and its key."""
    files = str(folder / "server.pem"), str(folder / "server.key")
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    command = [*made.split(), "-addext", "subjectAltName=IP:127.0.0.1", "-out", files[0], "-keyout", files[1]]
    subprocess.run(command, check=True, capture_output=True)
    return files


@contextmanager
def served(
    folder: Path,
    text: str = CLINIC,
    address: Address = LOOPBACK,
    workers: int = 1,
    tokens: Mapping[str, str] | None = None,
) -> Iterator[Served]:
    """The declaration `text` in `folder`, served, by so many workers, over PostgreSQL's protocol too. With `tokens` it
    has accounts already."""
    declaration = folder / "clinic.toml"
    declaration.write_text(text, "utf-8")
    found = read(declaration)
    accounts = Accounts.of(found)
    with (
        Curator.of(found, load=workers == 1, owner=True) as curator,
        several(curator, workers) as asked,
        LOOPBACK.bound() as listening,
        LOOPBACK.bound() as psql,
    ):
        if tokens is None:
            tokens = {}
            for name, role in HOLDERS.items():
                whose = name if role is Role.ANALYST and found.analysts else None
                accounts.add(Account(name, role, bound(found, role, whose)), curator.ledger.enter)
                tokens[name], _ = accounts.new_token(name, None, curator.ledger.enter)
        beside = partial(Wire, accounts=accounts, bound=psql, address=address)
        running = server(curator, accounts, address, asked, pages, beside)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not running.started:
                time.sleep(0.005)
            yield Served(listening.getsockname()[1], curator, accounts, tokens, asked, psql.getsockname()[1])
        finally:
            running.should_exit = True
            thread.join()


@contextmanager
def running(clinic: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """The process, its address and what it has printed so far."""
    command = [sys.executable, "-m", "discreet", "serve", str(clinic), "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=clinic.parent)
    assert process.stderr is not None
    said: list[str] = []
    address = ""
    try:
        while not address:
            line = process.stderr.readline()
            assert line, said
            said.append(line)
            address = next(iter(re.findall(r"https?://\S+", line)), "")
        yield process, address, said
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]
        process.stderr.close()


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Ends it as its owner does."""
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=300)
    assert process.returncode in (0, 128 + signal.SIGTERM), err
    return out, err
