"""The settings of a session: what its questions cost, and what clients set by themselves.

SET discreet.epsilon = 0.1        the price of each question from now on; so delta, within and confidence
SET discreet.within = 'n = 100'   instead: the smallest price at which the error of column n is at most 100
SET discreet.intervals = on       two columns beside each estimate: its interval
SET discreet.reuse = off          measured afresh, whatever earlier answers hold; the same question stays free
SET discreet.part = 'north'       about the persons of this part alone, whose own budget pays
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from discreet.wire.refusals import Trouble

OURS = {
    "discreet.epsilon": "",
    "discreet.delta": "",
    "discreet.within": "",
    "discreet.confidence": "0.95",
    "discreet.intervals": "off",
    "discreet.reuse": "on",
    "discreet.part": "",
}
_SWITCHES = ("discreet.intervals", "discreet.reuse")
_REPORTED = {
    "server_version": f"15.0 (discreet {version('discreet')})",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "application_name": "",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "Etc/UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "is_superuser": "off",
    "in_hot_standby": "off",
    "default_transaction_read_only": "off",
}
"""What a server tells each client at the beginning."""

_FIXED = {
    "client_encoding": {"utf8", "unicode", "sqlascii"},
    "standard_conforming_strings": {"on", "true", "1"},
    "datestyle": {"iso", "iso, mdy", "iso,mdy", "iso, ymd", "iso, dmy"},
    "intervalstyle": {"postgres"},
}
"""What a client may set, and we do whatever it sets."""

_READ_ONLY = {"server_version", "server_encoding", "integer_datetimes", "is_superuser", "in_hot_standby"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?")
_ON = {"on", "true", "yes", "1", "t"}
_OFF = {"off", "false", "no", "0", "f", ""}
_PAIR = re.compile(r'(?:"([^"]{1,200})"\s*|([^=",]{1,200}))=(.{1,100})', re.DOTALL)
_MOST = 64
_LONGEST = 1_000


class Settings:
    """What is set in one session. What its beginning set, `RESET` brings back."""

    def __init__(self) -> None:
        self._names = {name.lower(): name for name in _REPORTED}
        self._first = {name.lower(): value for name, value in {**_REPORTED, **OURS}.items()}
        self._now: dict[str, str] = dict(self._first)

    def begin(self, parameters: Mapping[str, str]) -> None:
        """Takes those of the connection's beginning. Raises Trouble where one of ours is not as it must be."""
        for name, value in parameters.items():
            if name in ("user", "database", "replication") or name.startswith("_pq_."):
                continue
            for one, given in _options(value) if name == "options" else [(name, value)]:
                if one.lower() != "datestyle" or _fits(one.lower(), given):
                    self.set(one, given)
        self._first = dict(self._now)

    def reported(self, user: str) -> list[tuple[str, str]]:
        """What each client is told at the beginning."""
        return [*((name, self._now[name.lower()]) for name in _REPORTED), ("session_authorization", user)]

    def set(self, name: str, value: str | None) -> list[tuple[str, str]]:
        """Sets one; None is what it was at first. Gives what the client has to be told of it. Raises Trouble."""
        low = name.lower()
        if not _NAME.fullmatch(name) or (low.startswith("discreet.") and low not in OURS):
            raise Trouble("42704", "this setting is not known here", hint=f"set some of {', '.join(OURS)}")
        if value is None:
            value = self._first.get(low, "")
        elif low in _READ_ONLY:
            raise Trouble("55P02", "this cannot be set")
        if len(value) > _LONGEST or (low not in self._now and len(self._now) >= _MOST):
            raise Trouble("22023", "this is too long, or too much is set")
        if low == "client_encoding" and not _fits(low, value):
            hint = "SET client_encoding = 'UTF8', or connect with PGCLIENTENCODING=UTF8"
            raise Trouble("22023", "texts are in UTF8 here, and in no other encoding", hint=hint)
        if not _fits(low, value):
            raise Trouble("22023", f"{name} cannot be set to this here", hint=f"it stays {self._first.get(low, '')}")
        if low in OURS:
            _check(low, value)
        if low in _SWITCHES:
            value = "on" if value.lower() in _ON else "off"
        if low in _FIXED and low in self._first:
            value = self._first[low]
        self._now[low] = value
        return [(self._names[low], value)] if low in self._names else []

    def reset(self) -> list[tuple[str, str]]:
        """Brings all back to what they were at first."""
        self._now = dict(self._first)
        return [(name, self._now[low]) for low, name in self._names.items()]

    def get(self, name: str) -> str | None:
        """What one is set to, in whatever case its name is written; None where there is none of that name."""
        return self._now.get(name.lower())

    def kept(self) -> dict[str, str]:
        """All of them, for `restore`."""
        return dict(self._now)

    def restore(self, kept: Mapping[str, str]) -> list[tuple[str, str]]:
        """Brings them back. Gives what the client has to be told."""
        told = [(name, kept[low]) for low, name in self._names.items() if kept[low] != self._now[low]]
        self._now = dict(kept)
        return told

    @property
    def intervals(self) -> bool:
        return self._now["discreet.intervals"] == "on"

    @property
    def quiet(self) -> bool:
        """Whether the client wants no notices."""
        return self._now.get("client_min_messages", "notice").lower() in ("warning", "error", "fatal", "panic")

    @property
    def reuse(self) -> bool:
        """Whether earlier answers may answer a question."""
        return self._now["discreet.reuse"] == "on"

    @property
    def part(self) -> dict[str, Any]:
        """The part that questions are about, as `Curator.ask` takes it: nothing where they are about all."""
        part = self._now["discreet.part"]
        return {"part": part} if part else {}

    def price(self) -> dict[str, Any]:
        """The price, as `Curator.ask` takes it: nothing where none is set."""
        said: dict[str, Any] = {}
        for name in ("epsilon", "delta"):
            if value := self._now[f"discreet.{name}"]:
                said[name] = value
        if within := self._now["discreet.within"]:
            said |= {"within": _within(within), "confidence": self._now["discreet.confidence"]}
        return said


def _fits(low: str, value: str) -> bool:
    said = value.strip().lower()
    if low == "client_encoding":  # PostgreSQL looks at nothing else in its name, and programs write it in many ways
        said = re.sub(r"[^a-z0-9]", "", said)
    return low not in _FIXED or said in _FIXED[low]


def _check(low: str, value: str) -> None:
    """Raises Trouble where a value cannot be one of ours: a price that cannot be read buys nothing."""
    if low in _SWITCHES:
        fine = value.lower() in _ON | _OFF
    elif low == "discreet.within":
        fine = not value or bool(_within(value))
    elif low == "discreet.part":
        fine = True  # which there are, the curator knows: it refuses others before anything is charged
    else:
        fine = not value or bool(
            re.fullmatch(r"[0-9]{0,20}(\.[0-9]{0,20})?([eE]-?[0-9]{1,2})?|[0-9]{1,20}/[0-9]{1,20}", value)
        )
    if not fine:
        raise Trouble("22023", f"{low} cannot be this", hint="write SET discreet.epsilon = 0.1")


def _within(text: str) -> dict[str, str]:
    """n = 100, "mean income" = 5 %. Raises Trouble."""
    found: dict[str, str] = {}
    for part in text.split(","):
        pair = _PAIR.fullmatch(part.strip())
        name, value = ("", "") if pair is None else (pair[1] or pair[2].strip(), pair[3].strip())
        if not name or not value:
            raise Trouble("22023", "discreet.within cannot be this", hint="write SET discreet.within = 'n = 100'")
        found[name] = value
    return found


def _options(text: str) -> list[tuple[str, str]]:
    r"""What `options` of a connection set: `-c name=value`, `--name=value`, with blanks written as `\ `."""
    words = [re.sub(r"\\(.)", r"\1", one) for one in re.findall(r"(?:\\.|[^\s\\])+", text, re.DOTALL)]
    found, place = [], 0
    while place < len(words):
        word = words[place]
        if word == "-c" and place + 1 < len(words):
            place += 1
            word = words[place]
        elif word.startswith("-c"):
            word = word[2:]
        elif word.startswith("--"):
            word = word[2:].replace("-", "_")
        else:
            raise Trouble("22023", "these options are not known here", hint="write -c discreet.epsilon=0.1", fatal=True)
        name, _, value = word.partition("=")
        found.append((name, value))
        place += 1
    return found
