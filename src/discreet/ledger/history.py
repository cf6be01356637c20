"""The history for people, and a replay that recomputes every state from what was released."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.errors import LedgerError
from discreet.ledger import chain
from discreet.ledger.chain import Key, Record
from discreet.ledger.look import stored_loss
from discreet.ledger.note import RESTORE
from discreet.ledger.states import TOTAL, Account, Caps, Snapshot, TableState, renewed, respent
from discreet.trusted.ring_a.loss import Loss
from discreet.trusted.ring_b.gdp_filter import CertifiedFilter as Filter

# μ comes from a floating-point guess that is then certified: another machine's may differ within this part of
# itself
TOLERANCE = Fraction(1, 10**6)


@dataclass(frozen=True)
class Entry:
    """One entry for people.

    `kind` is open, register, renew, snapshot, reserve, commit, repeat, failure, end, lift or unknown, questions whose
    entries are lost (and freeze in ledgers of older versions). `reserve_id` names the reserve that it belongs to,
    `charged` the accounts that it debited with `loss`. `status` is "committed" or "no answer" for a reserve (charged
    all the same), "repeated" for a repeat, else empty; `note` says in words what an owner's act did.
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
    status = {"reserve": "committed" if committed else "no answer", "repeat": "repeated"}.get(kind, "")
    return Entry(
        record.seq,
        body["time"],
        kind,
        body.get("reserve"),
        body.get("analyst") or "",
        body.get("question") or "",
        None if body.get("loss") is None else stored_loss(body["loss"]),
        debited(body),
        status,
        _note(body),
    )


def debited(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The accounts that an entry debits with its loss."""
    if body["kind"] == "unknown":
        return tuple(body["accounts"])
    own = () if body.get("account") is None else (str(body["account"]),)
    return (TOTAL, *own) if body["kind"] == "reserve" else own


def _note(body: Mapping[str, Any]) -> str:
    if body["kind"] == "register":
        return "; ".join(_change(*change) for change in body["changes"]) or "the declaration"
    if body["kind"] == "unknown":
        return "questions whose entries are lost"
    if body["kind"] == "renew":
        return "; ".join(
            f"{_whose(name)}: filters renewed, from now on {promise}" for name, promise in body["promises"]
        )
    if body["kind"] == "snapshot":
        return f"{body['table']}: snapshot {body['number']}"
    if body["kind"] == "failure":
        return f"entry {body['reserve']} failed: {asker(body['analyst'])} suspended on {', '.join(body['tables'])}"
    if body["kind"] == "end":
        return f"entry {body['reserve']} ends without an answer"
    if body["kind"] == "lift":
        return f"{asker(body['analyst'])} no longer suspended"
    return str(body["table"]) if body["kind"] == "freeze" else ""


def asker(analyst: str) -> str:
    """An analyst in words, with the verb."""
    return f"{analyst} is" if analyst != TOTAL else "those who name no analyst are"


def _change(name: str, old: Mapping[str, str] | None, new: Mapping[str, str]) -> str:
    before = "" if old is None else f"{Caps.from_json(old)} → "
    return f"{_whose(name)}: {before}{Caps.from_json(new)}"


def _whose(name: str) -> str:
    return "the budget" if name == TOTAL else name


class Replay:
    """Follows a history, and holds every recorded state against one computed from the entries alone.

    Raises LedgerError where a state charges less than the losses, an account is over its caps, a reserve is
    answered twice, or an answer is not the one that was committed. Entries must come in order, each read
    through `chain.read`.
    """

    def __init__(self) -> None:
        self.seq = 0
        self.hash = chain.START
        self.answered: dict[int, bool] = {}  # by reserve
        self.states: dict[Key, str] = {}
        self._accounts: dict[str, Account] = {}
        self._losses: dict[str, list[Loss]] = {}  # by account; equal ones are one object
        self._known: dict[Loss, Loss] = {}

    def follow(self, record: Record, digest: str | None) -> None:
        """Take the next entry; `digest` is the SHA-256 of the answer that is stored with it."""
        body = record.body
        if record.seq != self.seq + 1 or (body["kind"] == "open") != (record.seq == 1):
            raise chain.broken(self.seq + 1)
        recorded = {(kind, name): state for kind, name, state in body["states"]}
        expected = self._expected(record, recorded)
        if recorded.keys() != expected.keys():
            raise chain.broken(record.seq)
        for key, state in expected.items():
            if recorded[key] != state and not (key[0] == "account" and _enough(recorded[key], state)):
                raise chain.broken(record.seq)
            self._set(key, recorded[key])
        self._follow_answer(record, digest)
        if chain.balances(self.states) != body["balances"]:
            raise chain.broken(record.seq)
        self.seq, self.hash = record.seq, record.hash

    def verification(self) -> Verification:
        """What was found, once all entries were followed."""
        unanswered = sum(not answered for answered in self.answered.values())
        return Verification(self.seq, self.hash.hex(), unanswered, self._filters())

    def _filters(self) -> dict[str, Filter]:
        return {name: account.filter() for name, account in self._accounts.items()}

    def _set(self, key: Key, state: Any) -> None:
        self.states[key] = chain.canonical(state)
        if key[0] == "account":
            self._accounts[key[1]] = Account.from_json(state)

    def _expected(self, record: Record, recorded: Mapping[Key, Any]) -> dict[Key, Any]:
        """The states that the entry must have set, from its own fields and the states before it."""
        body = record.body
        match body["kind"]:
            case "register":
                return self._registered(record)
            case "renew":
                return self._renewed(record)
            case "snapshot":
                state = TableState(Snapshot(body["number"], body["fingerprint"]), False)
                return {("table", body["table"]): state.to_json()}
            case "freeze":
                before = self._table(body["table"])
                return {("table", body["table"]): replace(before, frozen=True).to_json()}
            case "failure":
                return {("table", name): self._failed(name, body) for name in body["tables"]}
            case "lift":
                return {("table", name): self._table(name).lifted(body["analyst"]).to_json() for name in body["tables"]}
            case "reserve" | "repeat" | "unknown" if debited(body):
                loss, admitted = stored_loss(body["loss"]), body["kind"] != "unknown"
                found = ((("account", name), name) for name in debited(body))
                return {key: self._charged(record.seq, name, loss, recorded.get(key), admitted) for key, name in found}
        return {}

    def _table(self, name: str) -> TableState:
        return TableState.from_json(json.loads(self.states.get(("table", name), "null")))

    def _failed(self, name: str, body: Mapping[str, Any]) -> Any:
        counted, limit = name in body["counted"], body["limit"]
        return self._table(name).failed(body["analyst"], counted=counted, limit=limit).to_json()

    def _registered(self, record: Record) -> dict[Key, Any]:
        declaration = hashlib.sha256(record.body["declaration"].encode()).hexdigest()
        states: dict[Key, Any] = {("declaration", ""): declaration}
        states |= {("unit", table): person for table, person in record.body.get("units", ())}
        for name, old, new in record.body["changes"]:
            account = self._accounts.get(name)
            if (None if account is None else account.caps.to_json()) != old:
                raise chain.broken(record.seq)
            family = None if account is None else account.spent.family
            states["account", name] = respent(Caps.from_json(new), self._losses.get(name, ()), family).to_json()
        return states

    def _renewed(self, record: Record) -> dict[Key, Any]:
        states: dict[Key, Any] = {}
        for name, promise in record.body["promises"]:
            account = self._accounts.get(name)
            if account is None:
                raise chain.broken(record.seq)
            after = renewed(account, self._losses.get(name, ()))
            if after is None or after.promise != promise:
                raise chain.broken(record.seq)
            states["account", name] = after.to_json()
        return states

    def _charged(self, seq: int, name: str, loss: Loss, recorded: Any, admitted: bool) -> Any:
        account = self._accounts.get(name)
        if account is None:
            raise chain.broken(seq)
        self._losses.setdefault(name, []).append(self._known.setdefault(loss, loss))
        caps, spent = account.caps, account.spent
        if spent.family is None and recorded is not None:  # the first charge says with which filters the account began
            begun = Account.from_json(recorded).spent.family
            if begun is not None and begun.moved:
                raise chain.broken(seq)
            spent = replace(spent, family=begun)
        slack = Filter(caps.epsilon * (1 + TOLERANCE), caps.delta, caps.keys_delta, spent)
        if admitted and not slack.admits(loss):
            message = f"entry {seq} charges more than its account allows"
            fix = f"answer nothing more from it, and {RESTORE}"
            raise LedgerError("corrupt", message, fix=fix)
        return Account(caps, caps.filter(spent).after(loss).spent).to_json()

    def _follow_answer(self, record: Record, digest: str | None) -> None:
        body = record.body
        if body["kind"] == "reserve":
            self.answered[record.seq] = False
        if body["kind"] == "repeat" and not self.answered.get(body["reserve"]):
            raise chain.broken(record.seq)
        if body["kind"] in ("failure", "end") and body["reserve"] not in self.answered:
            raise chain.broken(record.seq)
        if body["kind"] == "commit":
            if self.answered.get(body["reserve"]) is not False:
                raise chain.broken(record.seq)
            self.answered[body["reserve"]] = True
        if digest != body.get("answer"):
            raise chain.broken(record.seq)


def _enough(recorded: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """Whether a recorded account charges what the losses ask for: exactly, but for the tolerance of μ².

    A larger μ² is right too: a later version of the accounting may find a smaller one for the same release. An earlier
    version went on adding to a μ² above its cap, which is as dead as None.
    """
    found, wanted = Account.from_json(recorded), Account.from_json(expected)
    if found.spent.nothing:
        return found.caps == wanted.caps and wanted.spent.nothing
    exact = replace(wanted, spent=replace(wanted.spent, mu_squared=found.spent.mu_squared))
    if found != exact or found.spent.mu_squared is None or found.filter().residue is None:
        return found == exact
    least = wanted.spent.mu_squared
    return least is not None and found.spent.mu_squared >= least * (1 - TOLERANCE)
