"""A client of PostgreSQL's protocol that says whatever a test wants it to say."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import socket
import struct
import subprocess
from dataclasses import dataclass

from service_tools import CLINIC, Served

AT_ONCE = f'[engine]\nanswer_seconds = "off"\n{CLINIC}'
"""Answers come as soon as they are there. A price is declared for persons who name none; this protocol takes none."""
assert "[question]\nepsilon = 0.1\n" in AT_ONCE


def frame(kind: bytes, content: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(content) + 4) + content


def begin(**parameters: str) -> bytes:
    pairs = "".join(f"{name}\0{value}\0" for name, value in parameters.items())
    content = struct.pack("!i", 3 << 16) + pairs.encode() + b"\0"
    return struct.pack("!i", len(content) + 4) + content


@dataclass
class Client:
    """One connection, byte by byte."""

    connection: socket.socket
    left: bytes = b""

    @classmethod
    def of(cls, port: int) -> Client:
        return cls(socket.create_connection(("127.0.0.1", port), timeout=300))

    def say(self, content: bytes) -> None:
        self.connection.sendall(content)

    def hear(self) -> tuple[bytes, bytes]:
        """The next message; two times nothing where the server has ended the connection."""
        while len(self.left) < 5 or len(self.left) < 1 + struct.unpack("!i", self.left[1:5])[0]:
            try:
                piece = self.connection.recv(65_536)
            except ConnectionResetError:
                piece = b""
            if not piece:
                return b"", b""
            self.left += piece
        (length,) = struct.unpack("!i", self.left[1:5])
        kind, content = self.left[:1], self.left[5 : 1 + length]
        self.left = self.left[1 + length :]
        return kind, content

    def until(self, *kinds: bytes) -> list[tuple[bytes, bytes]]:
        """All that comes until one of these, or the end."""
        found = [self.hear()]
        while found[-1][0] not in (*kinds, b""):
            found.append(self.hear())
        return found

    def first(self, user: str, **options: str) -> str:
        """Names a user. Gives what the server says of the salt."""
        self.say(begin(user=user, **options))
        kind, content = self.hear()
        assert (kind, content[:4]) == (b"R", struct.pack("!i", 10)), (kind, content)
        said = b"n,,n=,r=nonce"
        self.say(frame(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(said)) + said))
        kind, content = self.hear()
        assert (kind, content[:4]) == (b"R", struct.pack("!i", 11)), (kind, content)
        return content[4:].decode()

    def last(self, answer: str, password: str, *, header: bytes = b"n,,") -> tuple[bytes, bytes]:
        """Proves to know a password. Gives what the server says."""
        facts = dict(one.split("=", 1) for one in answer.split(","))
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(facts["s"]), int(facts["i"]))
        key = hmac.digest(salted, b"Client Key", "sha256")
        final = f"c={base64.b64encode(header).decode()},r={facts['r']}"
        whole = f"n=,r=nonce,{answer},{final}".encode()
        signature = hmac.digest(hashlib.sha256(key).digest(), whole, "sha256")
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        self.say(frame(b"p", f"{final},p={base64.b64encode(proof).decode()}".encode()))
        return self.hear()

    def log_in(self, served: Served, user: str, **options: str) -> list[tuple[bytes, bytes]]:
        kind, content = self.last(self.first(user, **options), served.tokens[user])
        assert (kind, content[:4]) == (b"R", struct.pack("!i", 12)), (kind, content)
        return self.until(b"Z", b"E")

    def query(self, text: str) -> list[tuple[bytes, bytes]]:
        self.say(frame(b"Q", text.encode() + b"\0"))
        return self.until(b"Z")

    def close(self) -> None:
        self.connection.close()


def fields(content: bytes) -> dict[str, str]:
    """What an error or a notice says."""
    return {one[:1].decode(): one[1:].decode() for one in content.split(b"\0") if one}


def cells(content: bytes) -> list[bytes | None]:
    """The values of a row."""
    (count,) = struct.unpack("!h", content[:2])
    found: list[bytes | None] = []
    at = 2
    for _ in range(count):
        (length,) = struct.unpack("!i", content[at : at + 4])
        found.append(None if length < 0 else content[at + 4 : at + 4 + length])
        at += 4 + max(0, length)
    return found


def kinds(content: bytes) -> list[int]:
    """The types of the columns that are described."""
    (count,) = struct.unpack("!h", content[:2])
    found, at = [], 2
    for _ in range(count):
        at = content.index(b"\0", at) + 1
        found.append(struct.unpack("!I", content[at + 6 : at + 10])[0])
        at += 18
    return found


def psql(
    served: Served, who: str, *commands: str, password: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """What psql says to these commands."""
    given = [part for one in commands for part in ("-c", one)]
    place = ["-h", "127.0.0.1", "-p", str(served.psql), "-U", who, "clinic"]
    known = {**os.environ, "PGPASSWORD": password or served.tokens[who], **environment}
    return subprocess.run(["psql", "-X", *place, *given], capture_output=True, text=True, env=known, timeout=300)
