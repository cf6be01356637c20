"""The session document that parties agree on in advance; every message carries its hash."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import math
import re
import secrets
import ssl
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from discreet.errors import refused
from discreet.trusted.ring_c.shares import LaplaceShares, LargestShares

_refused = partial(refused, "session")

VERSION = 1
MOST_PARTIES, MOST_CELLS, MOST_SECONDS, LONGEST = 64, 1_000_000, 86_400, 100_000


@dataclass(frozen=True)
class Party:
    """One data holder: where it listens, and its own certificate, which nobody else vouches for."""

    name: str
    host: str
    port: int
    certificate: str = field(repr=False)
    """In PEM, as `openssl req -x509` writes it."""

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the certificate, in hexadecimal digits. Raises ValueError on one that is none."""
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(self.certificate)).hexdigest()


@dataclass(frozen=True)
class Session:
    """One sum over the tables of several parties, opened once.

    `question` is what each asks its own table; `keys` with their `types`, `column` and `cells` are its shape, with the
    groups in their order, `step` the unit of what is added up, and `sensitivity` how many steps one person can move in
    all cells. `epsilon` is what each party's ledger is charged. The noise holds though `colluding` parties pool all
    they know and lie, and `absent` others drop out; one party that looks by itself counts, as it sees the total and
    knows its own noise. `absent` is at most `most_absent`, so that there is one total. It `opens` the noisy "totals",
    or the place of the "largest" alone, with the `sensitivity` of one cell. Each phase takes at most `seconds`. `nonce`
    makes the hash of each session its own.

    Raises QuestionError where it is no session that could be held.
    """

    question: str
    keys: tuple[str, ...]
    types: tuple[str, ...]
    column: str
    cells: tuple[tuple[Any, ...], ...] = field(repr=False)
    step: Fraction
    sensitivity: int
    epsilon: Fraction
    colluding: int
    absent: int
    parties: tuple[Party, ...]
    opens: str = "totals"
    seconds: int = 60
    nonce: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)

    def __post_init__(self) -> None:
        fault = _fault(self)
        if fault is not None:
            where, message, fix = fault
            raise _refused(message, where, fix)

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of the document, in hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @cached_property
    def mechanism(self) -> LaplaceShares:
        """What each party does with its exact vector."""
        kind = LargestShares if self.opens == "largest" else LaplaceShares
        return kind(self.epsilon, self.sensitivity, len(self.parties), self.colluding, self.absent)

    @property
    def names(self) -> list[str]:
        """The names of the parties, in their order."""
        return [party.name for party in self.parties]

    @property
    def words(self) -> str:
        """The description that each party's ledger stores."""
        return f"{self.question} · together with {', '.join(self.names)} · session {self.hash}"

    def place(self, name: str) -> int:
        """Finds the index of a party. Raises QuestionError where there is none of that name."""
        if name not in self.names:
            raise _refused("this session has no such party", "party", f"name one of {', '.join(self.names)}")
        return self.names.index(name)

    def to_json(self) -> str:
        """Writes the document, the same for everybody to the last byte."""
        written = asdict(self) | {"version": VERSION, "step": str(self.step), "epsilon": str(self.epsilon)}
        return json.dumps(written, ensure_ascii=False, sort_keys=True, allow_nan=False)


def read(path: str | Path) -> Session:
    """Reads the session in a file. Raises QuestionError where there is none, or it is not what it must be."""
    try:
        raw = json.loads(Path(path).read_text("utf-8"))
    except OSError:
        raise _refused("the session's file cannot be read", "session", "check its path") from None
    except (ValueError, RecursionError):
        raise _refused(
            "the session's file is not JSON", "session", "take the file that the parties agreed on"
        ) from None
    return from_dict(raw)


def from_dict(raw: Any) -> Session:
    """Reads the session that `to_json` wrote. Raises QuestionError on anything else."""
    known = set(Session.__dataclass_fields__) | {"version"}
    if not isinstance(raw, Mapping) or set(raw) != known or raw["version"] != VERSION:
        fix = "take the file that the parties agreed on, and the same version of this program"
        raise _refused("the document does not have the keys of a session", "session", fix)
    try:
        given = {name: value for name, value in raw.items() if name != "version"}
        given |= {name: tuple(_text(text) for text in raw[name]) for name in ("keys", "types")}
        given["cells"] = tuple(tuple(cell) for cell in raw["cells"])
        given["parties"] = tuple(Party(**party) for party in raw["parties"])
        given["step"], given["epsilon"] = (_fraction(raw[name]) for name in ("step", "epsilon"))
    except (TypeError, ValueError, ZeroDivisionError):
        raise _refused("a value of the document is not of its type", "session", "write it anew") from None
    return Session(**given)


Fault = tuple[str, str, str]


def _fault(session: Session) -> Fault | None:
    """Where, what is wrong, and what to write; None where nothing is."""
    for name in ("question", "column", "nonce"):
        if not isinstance(getattr(session, name), str) or not 0 < len(getattr(session, name)) <= LONGEST:
            return name, f"{name} must be text", "write it anew"
    for name, least, most in (
        ("sensitivity", 1, 2**80),
        ("colluding", 1, MOST_PARTIES),
        ("absent", 0, MOST_PARTIES),
        ("seconds", 1, MOST_SECONDS),
    ):
        value = getattr(session, name)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            return name, f"{name} must be a whole number from {least} to {most}", f"write {name} = {max(1, least)}"
    if not Fraction(1, 10**9) <= session.epsilon <= 10**30 or session.step <= 0:
        return "epsilon", "epsilon must lie between 1e-9 and 1e30, and step above 0", "write epsilon = 0.5"
    try:
        session.hash  # noqa: B018 - worked out to see whether it can be
    except (ValueError, TypeError):  # lone surrogates, and what JSON does not hold
        return "document", "it cannot be written as JSON", "write the session anew"
    if session.opens not in ("totals", "largest"):
        return "opens", "a session opens totals or largest", "write totals"
    if len(session.nonce) != 64:
        return "nonce", "a nonce has 64 hexadecimal digits", "write the session anew"
    return _fault_of_cells(session) or _fault_of_parties(session)


def _fault_of_cells(session: Session) -> Fault | None:
    keys, cells = session.keys, session.cells
    if len(session.types) != len(keys) or len({*keys, session.column}) != len(keys) + 1:
        return "keys", "each column has one name, and each key a type", "write the session anew"
    if any(len(cell) != len(keys) or not all(map(_is_value, cell)) for cell in cells):
        return "cells", "a cell has one value for each key", "write the session anew"
    if not 1 <= len(cells) <= MOST_CELLS or len(set(cells)) != len(cells):
        return "cells", f"there must be 1 to {MOST_CELLS:,} different cells", "name each group once"
    return None


def _fault_of_parties(session: Session) -> Fault | None:
    parties = session.parties
    if not 2 <= len(parties) <= MOST_PARTIES:
        return "parties", f"there must be 2 to {MOST_PARTIES} parties", "name each data holder"
    for party in parties:
        fault = _fault_of(party)
        if fault is not None:
            return f"parties.{party.name}"[:80], fault, "write name=host:port with the party's certificate"
    for what in ("name", "fingerprint"):
        if len({getattr(party, what) for party in parties}) != len(parties):
            return "parties", f"two parties have the same {what}", "name each data holder once"
    if len({(party.host, party.port) for party in parties}) != len(parties):
        return "parties", "two parties have the same address", "give each a port of its own"
    if session.colluding >= len(parties):
        message = "colluding + absent must leave at least one honest party"
        return "colluding", message, f"write colluding = {len(parties) - 1} or less"
    most = most_absent(len(parties), session.colluding)
    if session.absent > most:
        message = "if so many may be absent, parties that lie could have two totals opened, over different parties"
        return "absent", message, f"write absent = {most} or less"
    if session.opens == "largest" and (2 * session.colluding >= len(parties) or session.absent):
        message = "the largest is found only where less than half of the parties collude, and all are there"
        return "opens", message, f"write colluding = {(len(parties) - 1) // 2} or less, and absent = 0"
    return None


def most_absent(parties: int, colluding: int) -> int:
    """The largest d with 2(parties − d) > parties + colluding: then any two rosters share an honest party (`protocol`
    argues what follows), and all have parties − colluding − d ≥ 1 honest ones."""
    return (parties - colluding - 1) // 2


def _fault_of(party: Party) -> str | None:
    """What is wrong with one party. Listening is on one named address, never on all."""
    if not all(isinstance(value, str) for value in (party.name, party.host, party.certificate)):
        return "name, host and certificate must be text"
    if not 0 < len(party.name) <= 80 or not party.name.isprintable():
        return "a name has 1 to 80 letters"
    if isinstance(party.port, bool) or not isinstance(party.port, int) or not 1 <= party.port <= 65_535:
        return "a port is a number from 1 to 65535"
    if not party.host or len(party.host) > 253 or not party.host.isprintable() or " " in party.host:
        return "the host must be named"
    try:
        address = ipaddress.ip_address(party.host.strip("[]"))
    except ValueError:
        address = None
    if address is not None and (address.is_unspecified or address.is_multicast):
        return "the host must be one address, not all of them"
    return None if _is_certificate(party.certificate) else "the certificate is none"


def _is_certificate(text: str) -> bool:
    """Whether this is one certificate in PEM, and nothing else."""
    try:
        ssl.PEM_cert_to_DER_cert(text)
        store = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        store.load_verify_locations(cadata=text)
    except (ValueError, Base64Error, ssl.SSLError):
        return False
    return store.cert_store_stats()["x509"] == 1


def _is_value(value: object) -> bool:
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _fraction(value: object) -> Fraction:
    """As `str` of a Fraction writes it, and not so long that it could not be computed with."""
    if re.fullmatch(r"-?\d{1,200}(/\d{1,200})?", _text(value)) is None:
        raise ValueError("no fraction")
    return Fraction(str(value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    return value
