"""The login: SCRAM-SHA-256 (RFC 5802, 7677) with the verifiers of an account's tokens, and with the certificate bound
to it where there is one (RFC 5929, tls-server-end-point).

A name that nobody has is answered as one that somebody has: with a salt of its own that stays the same, after the same
work, in the same words.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from discreet.service.scram import ITERATIONS
from discreet.wire.messages import broken
from discreet.wire.refusals import Trouble

PLAIN, PLUS = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"

_FIRST = re.compile(r"(n|y|p=tls-server-end-point),,(n=[^,]*,r=([\x21-\x2b\x2d-\x7e]{1,256}))")
_FINAL = re.compile(r"(c=([A-Za-z0-9+/=]{1,512}),r=([\x21-\x2b\x2d-\x7e]{1,512})),p=([A-Za-z0-9+/=]{44})")
_HASHES = {
    "2a864886f70d010105": hashlib.sha256,  # where a certificate was signed with SHA-1, SHA-256 is taken
    "2a864886f70d01010b": hashlib.sha256,
    "2a864886f70d01010c": hashlib.sha384,
    "2a864886f70d01010d": hashlib.sha512,
    "2a8648ce3d040302": hashlib.sha256,
    "2a8648ce3d040303": hashlib.sha384,
    "2a8648ce3d040304": hashlib.sha512,
}
"""The hash of a certificate's signature, by the algorithm's number."""


def refused() -> Trouble:
    """One text for every login that fails."""
    fix = "the user is an account's name, the password its token; the owner makes one with `discreet token new`"
    return Trouble("28P01", "the user and the password do not go together (any more)", hint=fix, fatal=True)


@dataclass(frozen=True)
class Verifier:
    """What is kept of a token."""

    text: str
    stored: bytes
    server: bytes

    @staticmethod
    def read(text: str) -> Verifier:
        """A token's verifier as it is stored: the two keys stand in base64 behind its last $."""
        keys = text.split("$")[2].split(":")
        return Verifier(text, *(base64.b64decode(one) for one in keys))


class Login:
    """One login: what the server says, from what the client said. `salt` is the account's, or a decoy; `verifiers` are
    those that hold, or none. `bound` is the hash of the certificate under TLS, where the login may be bound to it."""

    def __init__(self, salt: bytes, verifiers: Sequence[str], bound: bytes | None) -> None:
        self._salt = salt
        # where there is none, the same is worked out with keys that nobody has
        self._verifiers = [Verifier.read(one) for one in verifiers]
        self._decoy = Verifier("", secrets.token_bytes(32), secrets.token_bytes(32))
        self._bound = bound
        self._header = b""
        self._first = self._nonce = ""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """What the server offers, first what binds the certificate."""
        return (PLAIN,) if self._bound is None else (PLUS, PLAIN)

    def first(self, mechanism: str, said: str) -> str:
        """What is said to the client's first message. Raises Trouble where it is none."""
        found = _FIRST.fullmatch(said)
        if found is None or mechanism not in self.mechanisms:
            raise broken()
        flag = found[1]
        if (mechanism == PLUS) != flag.startswith("p=") or (flag == "y" and self._bound is not None):
            raise broken()  # with "y", somebody between us has left out what was offered
        self._header = f"{flag},,".encode() + (self._bound or b"" if mechanism == PLUS else b"")
        self._nonce = found[3] + base64.b64encode(secrets.token_bytes(18)).decode()
        answer = f"r={self._nonce},s={base64.b64encode(self._salt).decode()},i={ITERATIONS}"
        self._first = f"{found[2]},{answer}"
        return answer

    def last(self, said: str) -> tuple[str, str]:
        """What is said to the client's last message, and the verifier of the token that it has proved to know. Raises
        Trouble where it does not."""
        found = _FINAL.fullmatch(said)
        if found is None:
            raise broken()
        whole = f"{self._first},{found[1]}".encode()
        try:
            header, proof = (base64.b64decode(one, validate=True) for one in (found[2], found[4]))
        except ValueError:
            raise broken() from None
        honest = hmac.compare_digest(header, self._header) and found[3] == self._nonce
        known: Verifier | None = None
        for one in (*self._verifiers, self._decoy):
            signature = hmac.digest(one.stored, whole, "sha256")
            key = bytes(a ^ b for a, b in zip(proof, signature, strict=False))
            if hmac.compare_digest(hashlib.sha256(key).digest(), one.stored) and len(proof) == 32:
                known = one
        if known is None or not honest:
            raise refused()
        return f"v={base64.b64encode(hmac.digest(known.server, whole, 'sha256')).decode()}", known.text


def end_point(certificate: Path) -> bytes | None:
    """The hash of a certificate that a login is bound to; None where its signature's kind has none."""
    found = re.search(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", certificate.read_text("ascii"), re.S)
    if found is None:
        return None
    der = ssl.PEM_cert_to_DER_cert(found[0])
    try:
        whole, _ = _inside(der, 0)
        _, behind = _inside(der, whole)
        algorithm, _ = _inside(der, behind)
        start, end = _inside(der, algorithm)
    except IndexError:
        return None
    kind = _HASHES.get(der[start:end].hex())
    return None if kind is None else kind(der).digest()


def _inside(der: bytes, at: int) -> tuple[int, int]:
    """Where the content of the value at `at` begins and ends."""
    length, start = der[at + 1], at + 2
    if length >= 0x80:
        start += length & 0x7F
        length = int.from_bytes(der[at + 2 : start], "big")
    return start, start + length
