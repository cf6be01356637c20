"""Whose word a service takes for who asks, beside its own tokens: an OpenID Connect issuer, as it is declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from discreet.errors import Fault

CLAIMS = ("sub", "email")
"""What a token may say that is the name of an account; the usual one first."""

_LONGEST = 1_000


@dataclass(frozen=True)
class Issuer:
    """An issuer of tokens: its address, for whom they must be, which claim names the account."""

    url: str
    audience: str
    claim: str = CLAIMS[0]


def read_issuer(where: str, raw: Mapping[str, Any]) -> Issuer | list[Fault]:
    """The declared issuer, or what is wrong with it."""
    url, audience, claim = raw.get("issuer"), raw.get("audience"), raw.get("claim", CLAIMS[0])
    faults = []
    if not _address(url):
        message = "it must be an address that begins with https://, without ? and #"
        faults.append(Fault(f"{where}.issuer", message, 'write issuer = "https://login.example.org"'))
    if not isinstance(audience, str) or not audience.strip() or len(audience) > _LONGEST:
        message = "it must say for whom the tokens are, as the issuer knows this service"
        faults.append(Fault(f"{where}.audience", message, 'write audience = "discreet"'))
    if claim not in CLAIMS:
        faults.append(Fault(f"{where}.claim", "this claim names no account", f"write one of {', '.join(CLAIMS)}"))
    return faults or Issuer(str(url), str(audience), str(claim))


def _address(url: Any) -> bool:
    if not isinstance(url, str) or len(url) > _LONGEST or not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        return (
            url.startswith("https://")
            and bool(parts.hostname)
            and parts.port != 0
            and not any(letter in url for letter in "?#@")
        )
    except ValueError:
        return False
