"""Who is logged in, in a browser: sessions, in the memory of one process.

A session is found by a cookie of 256 random bits, of which only the SHA-256 is kept. It ends with its account or its
token, after so long without a request, after so long at all, and with the process.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from discreet.service.accounts import Account

IDLE_SECONDS = 30 * 60
LONGEST_SECONDS = 8 * 60 * 60

ISSUED_SECONDS = 60 * 60
"""How long a session lasts at most that was begun with a token of an issuer: whether it was taken back is not asked."""

MOST_OF_ONE = 8
"""How many sessions an account has; whoever begins one more ends the one that was not used for longest."""

MOST = 1_000
"""How many there are."""


@dataclass(eq=False)
class ConsoleSession:
    """One login. `token`: the digest of the token that it was begun with, None for an issuer's; `made`: when its
    account was; `form` stands in each of its forms, where no page of another place can read it."""

    account: str
    token: bytes | None
    made: str | None
    until: float
    used: float
    form: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)


class Sessions:
    """The sessions of one service. `now` is a clock that never goes back."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._open: dict[bytes, ConsoleSession] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(
        self, account: Account, token: bytes | None, made: str | None = None, seconds: float = LONGEST_SECONDS
    ) -> str:
        """Begins one, which lasts so many `seconds` at most, and gives the cookie of it this once."""
        now = self._now()
        self._open = {key: one for key, one in self._open.items() if self._lives(one, now)}
        own = [key for key, one in self._open.items() if one.account == account.name]
        for full, keys in ((len(own) >= MOST_OF_ONE, own), (len(self._open) >= MOST, list(self._open))):
            if full:
                self._open.pop(min(keys, key=lambda key: self._open[key].used if key in self._open else now), None)
        cookie = secrets.token_urlsafe(32)
        longest = ISSUED_SECONDS if token is None else LONGEST_SECONDS
        self._open[_digest(cookie)] = ConsoleSession(account.name, token, made, now + min(longest, seconds), now)
        return cookie

    def find(self, cookie: str) -> ConsoleSession | None:
        """The session of this cookie, which is in use from now on; None where there is none any more."""
        if len(cookie) > 100:
            return None
        now, key = self._now(), _digest(cookie)
        found = self._open.get(key)
        if found is None or not self._lives(found, now):
            self._open.pop(key, None)
            return None
        found.used = now
        return found

    def end(self, session: ConsoleSession) -> None:
        """Ends it."""
        self._open = {key: one for key, one in self._open.items() if one is not session}

    def _lives(self, session: ConsoleSession, now: float) -> bool:
        return now < session.until and now - session.used < IDLE_SECONDS


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode("utf-8", "surrogatepass")).digest()
