"""Who asks, by the word of the declared issuer (OpenID Connect): signed tokens, held against the issuer's public keys.

A token is taken where it is signed by one of the keys that the issuer publishes, with an algorithm that needs the
issuer's private key, is the issuer's, is for this service, and holds now. It names an account that the owner has made.
What else it says of keys (`jwk`, `jku`, `x5u`) is not looked at.

Keys are had over TLS, from the addresses that the issuer's own document names, with no redirects, and kept for an hour
at most. Nobody makes the service ask often: a key that is not known leads to one request at a time, and to none for
half a minute after the last. Where keys cannot be had, nobody is let in. Nothing of a token is in an error or a log.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import ssl
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from discreet.catalog import Declaration
from discreet.catalog.issuer import Issuer
from discreet.errors import EngineError, QuestionError
from discreet.service.requests import RefusedRequest, unknown_token

if TYPE_CHECKING:
    from jwt import PyJWK

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Each with a private and a public key: with one that both know, whoever reads the public key could sign."""

TYPES = ("jwt", "at+jwt", "application/at+jwt")
"""What a token may say that it is, in any case of letters; other kinds are signed with the same keys."""

LONGEST = 8_192
"""Letters of a token."""

LARGEST = 131_072
"""Bytes of a document of the issuer's."""

FETCH_SECONDS = 5
"""How long both documents may take together."""

BETWEEN_SECONDS = 30
"""How long nothing is asked of the issuer after it was asked."""

FRESH_SECONDS, KEPT_SECONDS = 600, 3_600
"""How old keys are when they are asked for anew beside the requests, and when they count no more."""

LEEWAY_SECONDS = 30
"""How far clocks may be apart."""

_log = logging.getLogger("discreet")


def needed(declaration: Declaration) -> None:
    """Raises QuestionError where an issuer is declared and the extra is missing."""
    if declaration.issuer is not None:
        try:
            importlib.import_module("jwt")
            importlib.import_module("cryptography")
        except ImportError:
            fix = 'run pip install "discreet[oidc]"'
            raise QuestionError("extra", "an issuer needs pyjwt and cryptography", where="serve", fix=fix) from None


def issued(declaration: Declaration) -> Issued | None:
    """What reads the tokens of the declared issuer; None where none is declared. Raises QuestionError."""
    needed(declaration)
    return None if declaration.issuer is None else Issued(declaration.issuer)


class Issued:
    """The tokens of an issuer, for the loop of one server."""

    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer
        self._tls = ssl.create_default_context()
        self._keys: Mapping[tuple[str, str], PyJWK] = {}
        self._had = self._asked = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    async def holder(self, token: str) -> tuple[str, float]:
        """What a token says that its holder is called, and for how many seconds it holds from now on. Raises
        RefusedRequest 401, and 503 where no keys are to be had."""
        import jwt

        if len(token) > LONGEST:
            raise unknown_token()
        try:
            header = jwt.get_unverified_header(token)
            key = await self._key(str(header.get("kid", "")), str(header.get("alg", "")))
            said = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=self._issuer.audience,
                issuer=self._issuer.url,
                leeway=LEEWAY_SECONDS,
                options={"require": ["iss", "aud", "exp", "iat"], "enforce_minimum_key_length": True},
            )
        except RefusedRequest:
            raise
        except Exception:  # whatever a library makes of what a stranger wrote: it is no token
            raise unknown_token() from None
        named = said.get(self._issuer.claim)
        known = str(header.get("typ", "jwt")).lower() in TYPES and "events" not in said  # a logout is an event
        verified = self._issuer.claim != "email" or said.get("email_verified") in (True, "true")
        if not known or not verified or not isinstance(named, str):
            raise unknown_token()
        return named, float(said["exp"]) - time.time()

    async def _key(self, kid: str, algorithm: str) -> PyJWK:
        """The issuer's key of this name. Raises RefusedRequest."""
        if not kid or algorithm not in ALGORITHMS:
            raise unknown_token()
        if self._age < FRESH_SECONDS and (kid, algorithm) in self._keys:
            return self._keys[kid, algorithm]
        fetching = self._anew()
        if fetching is not None and not (self._age < KEPT_SECONDS and (kid, algorithm) in self._keys):
            await asyncio.shield(fetching)  # who stops waiting does not stop it for others
        if self._age >= KEPT_SECONDS:
            fix = "ask again later, or with a token that `discreet token new` made"
            raise RefusedRequest(
                503, "issuer", "the issuer's keys cannot be had now", "Authorization", fix, EngineError
            )
        if (kid, algorithm) not in self._keys:
            raise unknown_token()
        return self._keys[kid, algorithm]

    @property
    def _age(self) -> float:
        return time.monotonic() - self._had

    def _anew(self) -> asyncio.Task[None] | None:
        """The one request for keys that runs, begun here where that is due."""
        if self._asking is None and time.monotonic() - self._asked >= BETWEEN_SECONDS:
            self._asked = time.monotonic()
            self._asking = asyncio.create_task(self._ask())
        return self._asking

    async def _ask(self) -> None:
        """Asks for the keys. Where that fails, those that are known stay, until they are too old."""
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                url = self._issuer.url.rstrip("/") + "/.well-known/openid-configuration"
                document = json.loads(await _get(url, self._tls))
                if document["issuer"] != self._issuer.url:
                    raise ValueError
                found = json.loads(await _get(document["jwks_uri"], self._tls))
            self._keys, self._had = _usable(found), time.monotonic()
        except Exception as error:  # its words may hold anything
            _log.warning("the issuer's keys could not be had (%s)", type(error).__name__)
        finally:
            self._asking, self._asked = None, time.monotonic()


def _usable(found: Any) -> dict[tuple[str, str], PyJWK]:
    """The keys of a set that sign tokens, by name and algorithm."""
    import jwt

    keys = jwt.PyJWKSet.from_dict(found).keys
    return {
        (one.key_id, one.algorithm_name): one
        for one in keys
        if isinstance(one.key_id, str)
        and one.key_id
        and one.algorithm_name in ALGORITHMS
        and one.public_key_use in (None, "sig")
    }


async def _get(url: str, tls: ssl.SSLContext) -> bytes:
    """A document over TLS. Raises where there is none, or it is too large. The caller limits the time."""
    import h11

    parts = urlsplit(url)
    if parts.scheme != "https" or parts.hostname is None:
        raise ValueError
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 443, ssl=tls)
    try:
        connection, found = h11.Connection(h11.CLIENT), bytearray()
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = [("Host", parts.netloc), ("Accept", "application/json"), ("Connection", "close")]
        head = connection.send(h11.Request(method="GET", target=target, headers=headers))
        writer.write((head or b"") + (connection.send(h11.EndOfMessage()) or b""))
        while True:
            match connection.next_event():
                case h11.NEED_DATA:
                    connection.receive_data(await reader.read(65_536))
                case h11.Response() as response if response.status_code != 200:
                    raise ConnectionError
                case h11.Data() as piece:
                    found += piece.data
                    if len(found) > LARGEST:
                        raise OverflowError
                case h11.EndOfMessage():
                    return bytes(found)
                case h11.PAUSED | h11.ConnectionClosed():
                    raise ConnectionError
    finally:
        writer.transport.abort()
