"""What a server keeps of a password to check a login by SCRAM-SHA-256 (RFC 5802, 7677), as PostgreSQL writes it:
`SCRAM-SHA-256$4096:salt$stored key:server key`. Whoever has it can check the password, and cannot log in."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

ITERATIONS = 4096
"""The least that RFC 7677 allows, about two milliseconds. They make the guessing of passwords slow: a token has 256
random bits, and is not guessed."""

_KIND = "SCRAM-SHA-256"


def verifier(password: str, salt: bytes) -> str:
    """The verifier of a password in ASCII, which SASLprep leaves as it is."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, ITERATIONS)
    stored = hashlib.sha256(_keyed(salted, b"Client Key")).digest()
    written = (_written(one) for one in (salt, stored, _keyed(salted, b"Server Key")))
    return "{}${}:{}${}:{}".format(_KIND, ITERATIONS, *written)


def salt_of(text: str | None) -> bytes:
    """The salt of a verifier; where there is none, a new one."""
    return secrets.token_bytes(16) if text is None else base64.b64decode(text.split("$")[1].partition(":")[2])


def _keyed(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _written(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")
