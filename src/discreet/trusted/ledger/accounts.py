"""The state that follows from the ledger's history: accounts with caps and spending, and tables' snapshots; and the one
rule by which an entry changes it.

`States.after` is that rule. Whoever writes an entry says what happened, never what follows: the balances follow from
the states before and from what the entry says, in `Transaction.append` when it is written and in `HistoryReplay` when
it is verified. A charge that an account does not admit has no states after it.

**What holds in one period alone** ends with it, whoever begins the next. Where the owner gives an account more than is
declared, the entry that raises the cap says the ε that stays (`States.lasting`), and so does each declaration that is
registered meanwhile. The next period's own entry sets every such cap to it, from this state and from no declaration:
processes may hold older ones, or such as do not name the account. It never raises a cap: it takes the smaller of both.
No promise is larger for it, as each period's account begins anew under caps that are within those of its own.

**A budget for each part** has an account for each, with the caps of the whole. A charge is for the rows of one part's
persons, and debits that part's account alone; or for any rows, and debits the account of the whole and those of all
parts. So each part's account is a filter for all that was drawn from rows of its persons (`trusted.parts.rows`). A part
that comes later begins with all that the account of the whole was debited with.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any

from discreet.errors import BudgetError, LedgerError
from discreet.trusted.ledger.chain import Key, digest
from discreet.trusted.ledger.periods import Period
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.filter import Family, Spent
from discreet.trusted.ring_a.loss import Loss, loss_from_json
from discreet.trusted.ring_b.gdp_filter import CertifiedFilter as Filter

TOTAL = ""  # the account of the whole budget
PART = "\x1d"  # so the accounts of parts begin: no analyst has one of such a name

THEIRS = ("day", "month", "persons", "assigned")
"""The kinds of states that parts beside the ledger keep (`Beside`). No account and no table follows from one."""


@dataclass(frozen=True)
class Caps:
    """The budget of an account."""

    epsilon: Fraction
    delta: Fraction
    keys_delta: Fraction

    @staticmethod
    def of(account: Filter) -> Caps:
        """The budget of this account, whatever was spent of it."""
        return Caps(account.epsilon, account.delta, account.keys_delta)

    def filter(self, spent: Spent | None = None) -> Filter:
        """The filter of these caps. Raises ValueError unless epsilon > 0 and 0 ≤ keys_delta ≤ delta < 1."""
        return Filter(self.epsilon, self.delta, self.keys_delta, spent)

    def after(self, losses: Iterable[Loss], family: Family | None) -> Filter:
        """The account that these releases, one after another, would have left under these caps, admitted or not. Of
        `family`: whatever its caps, an account keeps the filters that it began with; None before its first charge."""
        return reduce(Filter.after, losses, self.filter(Spent(family)))

    def to_json(self) -> dict[str, str]:
        """The three amounts by name, each as the text of an exact fraction."""
        return {name: str(amount) for name, amount in vars(self).items()}

    @staticmethod
    def from_json(caps: Mapping[str, str]) -> Caps:
        """The caps that `to_json` wrote, exactly."""
        return Caps(Fraction(caps["epsilon"]), Fraction(caps["delta"]), Fraction(caps["keys_delta"]))

    def within(self, other: Caps) -> bool:
        """Whether these are nowhere larger: not in ε, not in the δ for keys, not in the δ for all else."""
        mine, its = self.delta - self.keys_delta, other.delta - other.keys_delta
        return self.epsilon <= other.epsilon and self.keys_delta <= other.keys_delta and mine <= its

    def __str__(self) -> str:
        return f"ε {show(self.epsilon)}" + (f" δ {show(self.delta)}" if self.delta else "")


def account_to_json(account: Filter) -> dict[str, Any]:
    """An account's caps and what was spent of them, for `account_from_json`."""
    return {"caps": Caps.of(account).to_json(), "spent": account.spent.to_json()}


def account_from_json(state: Mapping[str, Any]) -> Filter:
    """The account that was written. Raises LedgerError "newer" for filters that this version does not know."""
    try:
        return Caps.from_json(state["caps"]).filter(Spent.from_json(state["spent"]))
    except ValueError:
        raise LedgerError.of("newer filters") from None


def promise(account: Filter) -> str:
    """The guarantee for all releases of an account, in words."""
    return str(replace(Caps.of(account), delta=account.promised_delta))


def renewed(account: Filter, losses: Iterable[Loss]) -> Filter | None:
    """The account with the present filters, charged anew, where it began with others and something would be left."""
    family = account.renewable
    after = None if family is None else Caps.of(account).after(losses, family)
    return after if after is not None and after.alive else None


class Overdrawn(BudgetError):
    """An account does not admit a loss, or not with the reserved part of its budget. `whole` is the whole budget before
    it. With `window`, the account is what it may spend in this one ("day")."""

    def __init__(self, name: str, account: Filter, whole: Filter, keep: Loss | None = None, window: str = "") -> None:
        super().__init__("the budget does not allow this question", asked="more", left="less", fits="ask for less")
        self.name, self.account, self.whole, self.keep, self.window = name, account, whole, keep, window


@dataclass(frozen=True)
class TableState:
    """A table's snapshot (number 0 before the first), whether it is frozen until the next, how many measurements failed
    in it, which analysts are suspended on it since one of theirs did ("" for those who name none), and since when it is
    (older versions did not write it)."""

    number: int = 0
    fingerprint: str = ""
    frozen: bool = False
    failures: int = 0
    suspended: tuple[str, ...] = ()
    since: str = ""

    def failed(self, analyst: str, *, counted: bool, limit: int) -> TableState:
        """After a failed measurement. One that is `counted` may be the last before the table is frozen."""
        failures = self.failures + counted
        suspended = tuple(sorted({*self.suspended, analyst}))
        return replace(self, frozen=self.frozen or failures >= limit, failures=failures, suspended=suspended)

    def lifted(self, analyst: str) -> TableState:
        """After the owner has lifted an analyst's suspension. What failed stays counted."""
        return replace(self, suspended=tuple(name for name in self.suspended if name != analyst))

    def to_json(self) -> dict[str, Any]:
        """Failures and suspensions are left out where there are none, as older versions wrote it."""
        return {name: one for name, one in vars(self).items() if one or name in ("number", "fingerprint", "frozen")}

    @staticmethod
    def from_json(state: Mapping[str, Any]) -> TableState:
        """The state that `to_json` wrote."""
        return TableState(**{**state, "suspended": tuple(state.get("suspended", ()))})


def debited(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The accounts that an entry debits with its loss."""
    if body["kind"] == "unknown":
        return tuple(body["accounts"])
    own = () if body.get("account") is None else (str(body["account"]),)
    return (*body.get("parts", (TOTAL,)), *own) if body["kind"] == "reserve" else own


def stored_loss(body: Mapping[str, Any]) -> Loss:
    """The loss of an entry. Raises LedgerError "newer" for an event that this version does not know."""
    try:
        return loss_from_json(body["loss"])
    except ValueError:
        raise LedgerError.of("newer loss") from None


Charge = tuple[str, Loss, int]
"""The day of a charge (by the clock, where no part beside asked for it), its loss, and in how many periods from now on
it counts: none of an earlier period's."""


def follow(charges: dict[str, list[Charge]], body: Mapping[str, Any]) -> None:
    """What an entry makes of each account's charges."""
    if body["kind"] == "period":
        for name, known in charges.items():
            charges[name] = [(day, loss, max(0, periods - 1)) for day, loss, periods in known]
    for name, old, _ in body.get("changes", ()):
        if old is None and name.startswith(PART):
            charges[name] = [*charges.get(TOTAL, ())]
    periods = 2 if body["kind"] == "unknown" else 1  # what was lost may have been asked in the next one
    for name in debited(body):
        charges.setdefault(name, []).append((str(body.get("day") or body["time"]), stored_loss(body), periods))


class States(ABC):
    """All states at one entry, by kind and name, as canonical JSON."""

    def __init__(self) -> None:
        self.texts: dict[Key, str] = {}

    @abstractmethod
    def charges(self, name: str) -> Iterable[Charge]:
        """Every loss that an account was debited with, in order (`follow`)."""

    def losses(self, name: str) -> list[Loss]:
        """The losses of those charges that count in the present period."""
        return [loss for _, loss, periods in self.charges(name) if periods > 0]

    @property
    def period(self) -> str:
        """The name of the present period; nothing where budgets never renewed."""
        state = self.state("period", "")
        return "" if state is None else Period(state["length"], state["start"]).name

    @property
    def charged_ever(self) -> bool:
        """Whether anything was charged, in this period or before."""
        state = self.state("period", "")
        accounts = [self.account(name) for name in (TOTAL, *self.parts) if self.caps(name)]
        return bool(state and state["charged"]) or not all(account.spent.nothing for account in accounts)

    @property
    def parts(self) -> list[str]:
        """The accounts of parts, in order."""
        return sorted(name for kind, name in self.texts if kind == "account" and name.startswith(PART))

    def state(self, kind: str, name: str) -> Any:
        """The state's JSON, or None."""
        return json.loads(self.texts.get((kind, name), "null"))

    def account(self, name: str) -> Filter:
        """An account's caps and what was spent of them. Raises LedgerError "account" where it was never registered."""
        LedgerError.unless(("account", name) in self.texts, "account")
        return account_from_json(self.state("account", name))

    def caps(self, name: str) -> Caps | None:
        """The caps of an account; None where it was never registered."""
        return Caps.of(self.account(name)) if ("account", name) in self.texts else None

    def lasting(self, name: str) -> Caps:
        """An account's caps from the next period on: with less ε, where some of it holds in this one alone."""
        caps, said = Caps.of(self.account(name)), self.state("lasting", name)
        return caps if said is None else replace(caps, epsilon=min(caps.epsilon, Fraction(said)))

    def table(self, name: str) -> TableState:
        """The state of a table; of one without any, that of number 0, before the first snapshot."""
        return TableState.from_json(self.state("table", name) or {})

    def after(self, body: Mapping[str, Any]) -> dict[Key, Any]:
        """The states that an entry sets, as JSON, from what it says and the states before it.

        Raises Overdrawn where an account does not admit a charge; LedgerError or ValueError where what is said does not
        go with the states.
        """
        accounts: dict[str, Filter] = {}
        tables: dict[str, TableState] = {}
        others: dict[Key, Any] = {}
        match body["kind"]:
            case "register":
                others["declaration", ""] = digest(body["declaration"].encode())
                others |= {("unit", table): person for table, person in body.get("units", ())}
                for name, old, new in body["changes"]:
                    known = self.caps(name)
                    if (known and known.to_json()) != old:
                        raise ValueError("the account has other caps")
                    begun = TOTAL if name.startswith(PART) and not known else name
                    family = self.account(begun).spent.family if self.caps(begun) else None
                    accounts[name] = Caps.from_json(new).after(self.losses(begun), family)
                for name, epsilon in body.get("lasting", ()):
                    if name == TOTAL or not (epsilon is None or Fraction(epsilon) > 0):
                        raise ValueError("a cap is above 0, and the whole budget's holds until it is changed")
                    others["lasting", name] = epsilon
                if "renewal" in body:
                    others["renewal", ""] = body["renewal"]
            case "period":
                others["period", ""] = self._begun(Period(body["length"], body["start"]))
                for _, name in [key for key in self.texts if key[0] == "account"]:
                    carried = [loss for _, loss, periods in self.charges(name) if periods > 1]
                    ended = self.period and self.state("lasting", name)  # before the first one: it counts in that
                    others |= {("lasting", name): None} if ended else {}
                    accounts[name] = (self.lasting(name) if ended else Caps.of(self.account(name))).after(carried, None)
            case "renew":
                for name, words in body["promises"]:
                    after = renewed(self.account(name), self.losses(name))
                    if after is None or promise(after) != words:
                        raise ValueError("the account is not renewed so")
                    accounts[name] = after
            case "snapshot":
                tables[body["table"]] = TableState(body["number"], body["fingerprint"], since=body.get("since", ""))
            case "freeze":  # older versions wrote it
                tables[body["table"]] = replace(self.table(body["table"]), frozen=True)
            case "failure":
                for name in body["tables"]:
                    counted, limit = name in body["counted"], body["limit"]
                    tables[name] = self.table(name).failed(body["analyst"], counted=counted, limit=limit)
            case "lift":
                tables = {name: self.table(name).lifted(body["analyst"]) for name in body["tables"]}
            case "reserve" | "repeat":
                whole = body.get("parts", [TOTAL])
                if body["kind"] == "reserve" and whole not in ([TOTAL, *self.parts], *([one] for one in self.parts)):
                    raise ValueError("a charge is for one part, or for all")
                for name in debited(body):
                    accounts[name] = self.charged(("account", name), self.account(name), stored_loss(body))
            case "unknown":  # it has happened, admitted or not
                accounts = {name: self.account(name).after(stored_loss(body)) for name in debited(body)}
        theirs = {key: state for part in PARTS for key, state in part.after(self, body).items()}
        if any(kind not in THEIRS for kind, _ in theirs):
            raise ValueError("a part beside the ledger sets no state but its own")
        changed: dict[Key, Any] = {("account", name): account_to_json(account) for name, account in accounts.items()}
        return theirs | changed | {("table", name): table.to_json() for name, table in tables.items()} | others

    def charged(self, key: Key, account: Filter, loss: Loss) -> Filter:
        """An account after a loss that it admits; the state `key` says what it is an account of."""
        after = account.after(loss)
        if not after.alive:
            raise Overdrawn(key[1], account, self.account(TOTAL), window=key[0] if key[0] in THEIRS else "")
        return after

    def _begun(self, period: Period) -> dict[str, Any]:
        """The state of a period that begins: of the declared length, and after the one before."""
        before, renewal = self.state("period", ""), self.state("renewal", "")
        right = renewal is not None and renewal["length"] == period.length
        if not right or Period.of(period.length, period.start) != period:
            raise ValueError("no such period is declared")
        if before is not None and period.start <= before["start"]:
            raise ValueError("a period begins after the one before it")
        return {**vars(period), "persons": renewal["persons"], "charged": self.charged_ever}


class Beside:
    """A part beside the ledger, read by whom it concerns. It may refuse an entry, and keep states of its own kinds
    (`THEIRS`): `States.after` holds it to that, so whatever it does, no account and no table is another for it.

    A program that lacks the part that keeps these `kinds` opens no ledger that has some: it would charge past them."""

    kinds: tuple[str, ...] = ()

    def said(self, states: States, account: str | None) -> Mapping[str, object]:  # noqa: ARG002
        """What an entry that charges an account says besides."""
        return {}

    def after(self, states: States, body: Mapping[str, Any]) -> Mapping[Key, Any]:  # noqa: ARG002
        """The states of its own that an entry sets. Raises as `States.after` does."""
        return {}


PARTS: list[Beside] = []
"""Those of this program: `discreet.ledger` names them."""


def lacking(kinds: Iterable[str]) -> set[str]:
    """Those of these kinds of states that a part keeps which this program lacks."""
    return {*kinds} & {*THEIRS} - {kind for part in PARTS for kind in part.kinds}
