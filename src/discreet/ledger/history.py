"""The history for people, and which stored answers a question may be answered from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.trusted.ledger.accounts import PART, TOTAL, Caps, debited, stored_loss
from discreet.trusted.ledger.chain import Record
from discreet.trusted.ledger.periods import Period
from discreet.trusted.ledger.transaction import Transaction
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.loss import Loss
from discreet.trusted.ring_b.gdp_filter import CertifiedFilter as Filter


@dataclass(frozen=True)
class Entry:
    """One entry for people.

    `kind` is open, register, renew, period, persons, assigned, snapshot, reserve, commit, repeat, failure, end, lift,
    service (an account of the service or a token, made or ended; what the service does) or unknown, questions whose
    entries are lost (and freeze in ledgers of older versions). `reserve_id` names the reserve that it belongs to,
    `charged` the accounts that it debited with `loss`. `status` is "committed" or "no answer" for a reserve (charged
    all the same), "repeated" for a repeat, "computed" for one that names a question which is computed from it and
    others, else empty; `note` says in words what an owner's act did. `tables` are those about people that it reads,
    that failed, or that an act is about; `by` the account that an act came from, where that was kept, and `names` the
    accounts and analysts that it is about.
    """

    seq: int
    time: str
    kind: str
    reserve_id: int | None
    analyst: str
    question: str
    loss: Loss | None
    charged: tuple[str, ...]
    status: str
    note: str
    tables: tuple[str, ...] = ()
    by: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verification:
    """A ledger whose whole history holds together.

    `entries` were walked up to `head`; `unanswered` reserves have no answer and stay charged; `accounts` are
    the filters that the history amounts to.
    """

    entries: int
    head: str
    unanswered: int
    accounts: Mapping[str, Filter]


def entry(record: Record, committed: bool) -> Entry:
    """The entry for people; `committed` says whether its reserve has an answer."""
    body = record.body
    kind = body["kind"]
    repeated = "computed" if body.get("computed") else "repeated"
    status = {"reserve": "committed" if committed else "no answer", "repeat": repeated}.get(kind, "")
    return Entry(
        record.seq,
        body["time"],
        kind,
        body.get("reserve"),
        body.get("analyst") or "",
        body.get("question") or "",
        None if body.get("loss") is None else stored_loss(body),
        debited(body),
        status,
        _note(body),
        _tables(body),
        body.get("facts", body).get("by") or "",
        _names(body),
    )


def _tables(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The tables that an entry is about."""
    if "table" in body:
        return (str(body["table"]),)
    return tuple(body.get("facts", body).get("tables", ()))


def _names(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The accounts and analysts that an act is about, each once."""
    if body["kind"] == "register":
        found = [one[0] for one in (*body["changes"], *body.get("allowances", ()))]
    else:
        facts = body.get("facts", {})
        found = [facts.get(key) for key in ("analyst", "name", "bound")]
    return tuple(dict.fromkeys(str(name) for name in found if name and name != TOTAL and not name.startswith(PART)))


def _note(body: Mapping[str, Any]) -> str:
    if body["kind"] == "register":
        changes = [_change(name, old, new) for name, old, new in body["changes"]]
        allowed = [_change(name, old, new, length) for name, length, old, new in body.get("allowances", ())]
        renews = [_renewal(body["renewal"])] if "renewal" in body else []
        stays = [
            f"{account_name(name)}: ε {show(Fraction(epsilon))} without what was approved"
            for name, epsilon in body.get("lasting", ())
            if epsilon is not None
        ]
        return "; ".join(changes + allowed + stays + renews) or "the declaration"
    if body["kind"] == "unknown":
        return "questions whose entries are lost"
    if body["kind"] == "renew":
        return "; ".join(
            f"{account_name(name)}: filters renewed, from now on {promise}" for name, promise in body["promises"]
        )
    if body["kind"] == "period":
        return f"period {Period(body['length'], body['start']).name} begins: every account has its budget anew"
    if body["kind"] == "assigned":
        return "persons who are in a part for the first time are listed"
    if body["kind"] == "persons":
        return f"persons first seen in period {body['period']} are listed"
    if body["kind"] == "snapshot":
        return f"{body['table']}: snapshot {body['number']}"
    if body["kind"] == "failure":
        return f"entry {body['reserve']} failed: {asker(body['analyst'])} suspended on {', '.join(body['tables'])}"
    if body["kind"] == "end":
        return f"entry {body['reserve']} ends without an answer"
    if body["kind"] == "lift":
        return f"{asker(body['analyst'])} no longer suspended{_by(body)}"
    if body["kind"] == "service":
        return _act(body["act"], body["facts"]) + _by(body["facts"])
    return str(body["table"]) if body["kind"] == "freeze" else ""


def _act(act: str, facts: Mapping[str, Any]) -> str:
    """What was done to the service's accounts, and about requests for more."""
    if act == "request":
        return f"{facts['analyst']} asks for ε {show(Fraction(facts['epsilon']))} more"
    if act in ("approve", "deny"):
        given = f"approved with ε {show(Fraction(facts['epsilon']))} more" if act == "approve" else "denied"
        return f"request {facts['request']} of {facts['analyst']} {given}"
    if act == "account":
        whose = f" of {facts['bound']}" if facts["bound"] else ""
        return f"account {facts['name']} made: {facts['role']}{whose}"
    if act == "token":
        until = f", until {facts['expires']}" if facts["expires"] else ""
        return f"token {facts['token']} made for {facts['name']}{until}"
    if act == "serve":
        seconds, issuer = facts["answer_seconds"], facts["issuer"]
        when = f"after {seconds} s" if seconds else "as soon as they are made"
        return f"service: answers {when}" + (f"; logins of {issuer['url']} by {issuer['claim']}" if issuer else "")
    if act in ("freeze", "thaw"):
        about = f" for {', '.join(facts['tables'])}" if "tables" in facts else ""
        return f"{facts['analyst'] or 'everybody'} {'frozen' if act == 'freeze' else 'no longer frozen'}{about}"
    if act == "refresh":
        return f"new snapshots asked for: {', '.join(facts['tables'])}"
    tokens = ", ".join(map(str, facts["tokens"])) or "none"
    if act == "end":
        return f"account {facts['name']} ended, with token {tokens}"
    return f"revoked of {facts['name']}: token {tokens}"


def _by(facts: Mapping[str, Any]) -> str:
    """Who did it and why, where that was said."""
    whose = f", by {facts['by']}" if facts.get("by") else ""
    return whose + (f": {facts['reason']}" if facts.get("reason") else "")


def asker(analyst: str) -> str:
    """An analyst in words, with the verb."""
    return f"{analyst} is" if analyst != TOTAL else "those who name no analyst are"


def _change(name: str, old: Mapping[str, str] | None, new: Mapping[str, str] | None, window: str = "") -> str:
    before = "" if old is None else f"{Caps.from_json(old)} → "
    whose = account_name(name) + (f" a {window}" if window else "")
    return f"{whose}: {before}{'no cap' if new is None else Caps.from_json(new)}"


def _renewal(renewal: Mapping[str, str] | None) -> str:
    if renewal is None:
        return "the budget renews no more"
    return f"the budget renews each {renewal['length']}, for {renewal['persons']}"


def account_name(name: str) -> str:
    """An account in words."""
    if name.startswith(PART):
        return f"the part {name.removeprefix(PART)}"
    return "the budget" if name == TOTAL else name


def part_of(charged: Sequence[str]) -> str | None:
    """The part whose account alone these are, beside an analyst's own; None where all pay."""
    parts = [name.removeprefix(PART) for name in charged if name.startswith(PART)]
    return parts[0] if parts and TOTAL not in charged else None


@dataclass(frozen=True)
class Written:
    """What an index of stored answers is told of an entry: a "reserve", a "commit" with the first bytes of its answer,
    or a "repeat". Nothing of it was verified: whoever uses an answer reads it by its key."""

    seq: int
    kind: str
    reserve: int
    key: str
    analyst: str
    account: str | None
    request: str | None
    begins: bytes


BEGINNING = 4_000
"""So many bytes of an answer say what is in it."""


def written_after(transaction: Transaction, after: int) -> list[Written]:
    """The entries behind one that an index of stored answers is made of, in order."""
    rows = transaction.connection.execute(
        "SELECT seq, kind, reserve, key, analyst, account, request,"
        f" CASE WHEN kind = 'commit' THEN substr(answer, 1, {BEGINNING}) END"
        " FROM entries WHERE seq > $1 AND kind IN ('reserve', 'commit', 'repeat') ORDER BY seq",
        (after,),
    ).fetchall()
    return [
        Written(seq, kind, reserve, key or "", analyst or "", account, request, bytes(begins or b""))
        for seq, kind, reserve, key, analyst, account, request, begins in rows
    ]


def answered_keys(
    transaction: Transaction, prefix: str, account: str | None, count: int, asker: str | None = None
) -> list[tuple[str, str]]:
    """The keys that begin so, and the questions, of reserves with an answer, the oldest first; with an `account`, of
    those that it was debited for, with an `asker`, of those that were made for him."""
    rows = transaction.connection.execute(
        "SELECT c.reserve, c.key FROM entries AS c"
        " WHERE c.kind = 'commit' AND c.key >= $1 AND c.key < $2 AND (EXISTS"
        " (SELECT 1 FROM entries AS d WHERE d.account = $3 AND d.key = c.key AND d.reserve = c.reserve) OR $3 IS NULL)"
        " AND (EXISTS (SELECT 1 FROM entries AS r WHERE r.seq = c.reserve AND r.analyst = $4) OR $4 IS NULL)"
        " ORDER BY c.seq LIMIT $5",
        (prefix, prefix + chr(0x10FFFF), account, asker, count),
    ).fetchall()
    found = [transaction.entry(seq, kind="reserve", key=key, reserve=seq).body for seq, key in rows]
    return list(dict.fromkeys((str(body["key"]), str(body["question"])) for body in found))
