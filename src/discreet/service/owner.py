"""The owner's acts from another machine: who is frozen, new snapshots, accounts; and who has what.

Each act is an entry of the ledger with the account that it came from, and why. What would let somebody promise more, or
become an owner, is done on the machine alone: budgets, and accounts of the role owner.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from discreet.accounting.pace import LONGEST, Pace, pace
from discreet.curator import Curator
from discreet.errors import QuestionError, refused
from discreet.holdings import Refreshed
from discreet.ledger import TOTAL
from discreet.ledger.words import reasoned
from discreet.service.accounts import Account, Accounts, bound
from discreet.service.log import Log
from discreet.service.roles import Role
from discreet.trusted.ring_a.loss import Loss

STOP_SECONDS = 60
"""How long the end of a service waits for a refresh."""

_log = logging.getLogger("discreet")
_Charges = Mapping[str, Sequence[tuple[date, Loss]]]


class Owner:
    """What an owner does to a service, and sees of it. `problem` says an error as an account is told it."""

    def __init__(
        self, curator: Curator, accounts: Accounts, problem: Callable[[Exception, Account], dict[str, Any]]
    ) -> None:
        self._curator, self._accounts, self._problem = curator, accounts, problem
        self.log = Log(curator.ledger)
        self._lock = threading.Lock()
        self._running: threading.Thread | None = None
        self._last: dict[str, Any] = {"state": "none"}

    # who may ask

    def freeze(self, account: Account, said: Mapping[str, Any]) -> dict[str, Any]:
        """Freezes an analyst, or everybody, for all tables or for those named. Raises QuestionError, LedgerError."""
        analyst, tables = self._known(said.get("analyst")), said.get("tables", [])
        new = self._curator.freeze(analyst, tables=tables, reason=said.get("reason", ""), by=account.name)
        return {"analyst": analyst, "frozen": True, "new": new, "tables": list(tables)}

    def lift(self, account: Account, said: Mapping[str, Any]) -> dict[str, Any]:
        """Lets an analyst ask again, or those who name none and everybody who was frozen; with tables, about these
        alone. Raises QuestionError, LedgerError."""
        analyst = self._known(said.get("analyst"))
        named = said.get("tables", [])
        tables = self._curator.lift(analyst, tables=named, reason=said.get("reason", ""), by=account.name)
        return {"analyst": analyst, "frozen": analyst in self._curator.frozen, "tables": list(tables)}

    def _known(self, analyst: str | None) -> str | None:
        """The name of an analyst who is declared, has an account or is frozen. Raises QuestionError."""
        known = {*self._names(), *self._curator.frozen, *self._curator.frozen_tables}
        if analyst is None or analyst in known:
            return analyst
        fix = f"name one of {', '.join(self._names()) or 'nobody'}; or leave it out, for everybody"
        raise QuestionError("analyst", "there is no such analyst", where="analyst", fix=fix)

    def _names(self) -> list[str]:
        """The declared analysts; where none are declared, those who have accounts."""
        declared = self._curator.declaration.analysts
        asking = [account.asks_as for account, _ in self._accounts.known() if account.role is Role.ANALYST]
        return list(declared) or [name for name in asking if name is not None]

    def add(self, account: Account, said: Mapping[str, Any]) -> dict[str, Any]:
        """Makes an account with a token, which is given this once. Raises QuestionError, LedgerError."""
        role, days = _role(said.get("role", Role.ANALYST.value)), _days(said.get("days"))
        facts = reasoned(said.get("reason", ""), account.name)
        made = Account(said["account"], role, bound(self._curator.declaration, role, said.get("analyst")))
        self._accounts.add(made, partial(self._curator.ledger.enter, **facts))
        return self._with_token(made, days, {"by": account.name})

    def new_token(self, account: Account, name: str, said: Mapping[str, Any]) -> dict[str, Any]:
        """Makes one more token of an account, which is given this once, and revokes none. Raises QuestionError,
        LedgerError."""
        days, facts = _days(said.get("days")), reasoned(said.get("reason", ""), account.name)
        known = self._accounts.named(name)
        if known is None:
            fix = "GET /analysts has them; POST /accounts makes one"
            raise refused("account", "there is no such account", "account", fix)
        _role(known.role.value)
        return self._with_token(known, days, facts)

    def _with_token(self, account: Account, days: int | None, facts: Mapping[str, str]) -> dict[str, Any]:
        entered = partial(self._curator.ledger.enter, **facts)
        secret, token = self._accounts.new_token(account.name, days, entered)
        return {**account.to_dict(), "token": token.to_dict(), "secret": secret}

    def end(self, account: Account, name: str, said: Mapping[str, Any]) -> dict[str, Any]:
        """Ends another's account with all its tokens. Raises QuestionError, LedgerError."""
        if name == account.name:
            fix = "another owner's account ends it, or `discreet account end` on the machine"
            raise refused("account", "this is the account that you ask with", name, fix)
        facts = reasoned(said.get("reason", ""), account.name)
        ended = self._accounts.end(name, partial(self._curator.ledger.enter, **facts))
        return {"account": name, "ended": True, "revoked": [one.number for one in ended]}

    def revoke(self, account: Account, name: str, number: int, said: Mapping[str, Any]) -> dict[str, Any]:
        """Ends a single token of an account, from now on; the others go on to hold. One that was revoked before changes
        nothing. Raises QuestionError, LedgerError."""
        facts = reasoned(said.get("reason", ""), account.name)
        if name == account.name:
            tokens = next((tokens for one, tokens in self._accounts.known() if one.name == name), [])
            if [one.number for one in tokens if one.holds] == [number]:
                message, fix = "this is the last token of the account that you ask with", "make another one before"
                raise refused("account", message, f"token {number}", f"{fix}: `discreet token new`, on the machine")
        ended = self._accounts.revoke(name, number, partial(self._curator.ledger.enter, **facts))
        return {"account": name, "revoked": [one.number for one in ended]}

    # who has what

    def analysts(self) -> dict[str, Any]:
        """Every analyst with accounts, caps, what is used, how long it lasts, and what was asked today."""
        budget, frozen, by_table = self._curator.budget, self._curator.frozen, self._curator.frozen_tables
        known = [(account, tokens) for account, tokens in self._accounts.known()]
        suspended = self._suspended()
        asked, charges = self._lately()
        paces = self._paces(charges)
        found = []
        for name in self._names():
            state = budget.analysts.get(name)
            found.append(
                {
                    "analyst": name,
                    "accounts": [account.name for account, _ in known if account.asks_as == name],
                    "frozen": name in frozen,
                    "frozen_tables": list(by_table.get(name, ())),
                    "suspended": suspended.get(name, []),
                    "today": asked[name],
                    "budget": None if state is None else state.to_dict(),
                    "pace": None if state is None else paces[name].to_dict(),
                }
            )
        return {
            "analysts": found,
            "frozen": None in frozen,
            "frozen_tables": list(by_table.get(None, ())),
            "accounts": [
                {**account.to_dict(), "tokens": [token.to_dict() for token in tokens]} for account, tokens in known
            ],
        }

    def _suspended(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for table, state in self._curator.ledger.tables().items():
            for name in state.suspended:
                found.setdefault(name, []).append(table)
        return found

    def pace(self) -> dict[str, Any]:
        """How long the whole budget lasts, as it was spent on lately."""
        return self._paces(self._lately()[1])[TOTAL].to_dict()

    def _lately(self) -> tuple[Counter[str], _Charges]:
        """How much each analyst has asked today, and what was charged to each account lately."""
        today = datetime.now(UTC).date()
        asked: Counter[str] = Counter()
        charges: dict[str, list[tuple[date, Loss]]] = {}
        for entry in self._curator.ledger.since((today - timedelta(LONGEST)).isoformat()):
            day = date.fromisoformat(entry.time[:10])
            asked[entry.analyst] += entry.kind in ("reserve", "repeat") and day >= today
            if entry.loss is not None:
                for name in entry.charged:
                    charges.setdefault(name, []).append((day, entry.loss))
        return asked, charges

    def _paces(self, charges: _Charges) -> dict[str, Pace]:
        today, balance = datetime.now(UTC).date(), self._curator.balance()
        whole = charges.get(self._curator.ledger.fullest, ())
        found = {TOTAL: pace(balance.total, whole, today, kept=balance.kept)}
        for name in self._curator.declaration.analysts:
            found[name] = pace(self._curator.ledger.filter(name), charges.get(name, ()), today)
        return found

    # new snapshots

    def refresh(self, account: Account, said: Mapping[str, Any]) -> dict[str, Any]:
        """Begins to take tables as their sources are now, each named with the number of the snapshot that it replaces:
        sent again, it is refused. Raises QuestionError, LedgerError."""
        facts = reasoned(said.get("reason", ""), account.name)
        fix = 'write {"tables": {"visits": 1}}, with the numbers that GET /refresh has'
        wanted: dict[str, int] = {}
        for given, number in (said.get("tables") or {}).items():
            table = self._curator.declaration.table(given)
            if table is None:
                names = ", ".join(self._curator.declaration.tables)
                raise QuestionError("table", "this table is not declared", where="tables", fix=f"name some of {names}")
            wanted[table.name] = int(number)
        if not wanted:
            raise QuestionError("table", "name the tables to take anew", where="tables", fix=fix)
        with self._lock:
            if self._running is not None:
                raise QuestionError(
                    "running", "a refresh is running", where="refresh", fix="GET /refresh says how it ends"
                )
            known = self._numbers()
            if old := [name for name, number in wanted.items() if known[name] != number]:
                message = f"{old[0]} has the snapshot {known[old[0]]} by now"
                raise QuestionError("snapshot", message, where="tables", fix=fix)
            self._curator.ledger.enter("refresh", tables=[*wanted], **facts)
            begun = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            self._last = {"state": "running", "tables": [*wanted], "begun": begun, **facts}
            self._running = threading.Thread(target=self._carry_out, args=(account, [*wanted]), daemon=True)
            self._running.start()
        return self.refreshed()

    def refreshed(self) -> dict[str, Any]:
        """The tables' snapshots, and the last refresh of this service: whether it runs, and what it has changed."""
        return {**self._last, "snapshots": self._numbers()}

    def _numbers(self) -> dict[str, int]:
        known = self._curator.ledger.tables()
        return {name: known[name].number if name in known else 0 for name in self._curator.declaration.tables}

    def _carry_out(self, account: Account, tables: Sequence[str]) -> None:
        ended: dict[str, Any]
        try:
            ended = {"state": "done", **_in_words(self._curator.refresh(*tables))}
        except Exception as error:
            ended = {"state": "failed", "problem": self._problem(error, account)}
        self._last, self._running = {**self._last, **ended}, None

    def stop(self) -> None:
        """Waits for a refresh that runs; one that takes longer ends with the curator, and nothing of it holds."""
        running = self._running
        if running is not None:
            running.join(STOP_SECONDS)


def _in_words(done: Refreshed) -> dict[str, Any]:
    """What a refresh has done, for the owner alone: what changed depends on rows."""
    return {"changed": list(done), "done": {name: str(state) for name, state in done.tables.items()}}


def _role(name: str) -> Role:
    """The role of who gets a token. Raises QuestionError: whoever has an owner's token for a moment makes no other."""
    allowed = [role.value for role in Role if role is not Role.OWNER]
    if name == Role.OWNER:
        message = "an owner's account, and its tokens, are made on the machine"
        raise refused("account", message, "role", "run `discreet account add` or `discreet token new` there")
    if name not in allowed:
        raise refused("account", "there is no such role", "role", f"write one of {', '.join(allowed)}")
    return Role(name)


def token_number(number: Decimal | str) -> int:
    """The number of a token, as it was sent. Raises QuestionError."""
    text = str(number)
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise refused("account", "the number of a token is a whole number", "token", "GET /analysts has them")
    return int(text)


def _days(days: Decimal | None) -> int | None:
    """For how many days a token holds. Raises QuestionError."""
    if days is not None and not (days == days.to_integral_value() and 1 <= days <= 36_500):
        raise refused("account", "a token holds for whole days", "days", "write 1 to 36500, or nothing")
    return None if days is None else int(days)
