"""What of an analyst's own budget may be spent in one day, or in one month, in UTC.

No promise rests on these caps: whatever they allow, the account's own cap and the whole budget hold. They let a budget
last. Each is a filter of its own, which begins anew with each window, and is part of the states that follow from an
entry: a charge is held against it in the one transaction that writes it, so that two processes never exceed it
together. The entry names its day, and `renewing` takes no day before the latest that the account has seen: a clock
that goes back opens no window anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from discreet.errors import LedgerError
from discreet.trusted.ledger import chain
from discreet.trusted.ledger.accounts import (
    PARTS,
    TOTAL,
    Beside,
    Caps,
    States,
    account_from_json,
    account_to_json,
    debited,
    stored_loss,
)
from discreet.trusted.ledger.chain import Key
from discreet.trusted.ledger.periods import Period
from discreet.trusted.ring_b.gdp_filter import CertifiedFilter as Filter

LENGTHS = ("day", "month")


class Allowances(Beside):
    """The caps of accounts by day and month, as states of these kinds."""

    kinds = LENGTHS

    def said(self, states: States, account: str | None) -> Mapping[str, object]:
        """The day of the charge, where a cap holds."""
        return {"day": day(states, account)} if account is not None and allowed(states, account) else {}

    def after(self, states: States, body: Mapping[str, Any]) -> Mapping[Key, Any]:
        """What may be spent under new caps, and after a charge that the caps admit."""
        changed: dict[Key, Any] = {}
        if body["kind"] == "register":
            for name, length, old, new in body.get("allowances", ()):
                changed[length, name] = _allowed(states, name, length, old, new, body["day"])
        if body["kind"] in ("reserve", "repeat"):
            for name in debited(body):
                changed |= _spent(states, name, body)
        return changed


def registered(
    states: States, names: Iterable[str], allowances: Mapping[str, Mapping[str, Caps]], raising: bool
) -> dict[str, object]:
    """What an entry says that registers these accounts: their caps that differ from what is registered. Of an account
    that `allowances` does not name, none holds. Raises LedgerError "raised" where one must not be larger, or end."""
    changes = []
    for name in sorted(names):
        known = allowed(states, name)
        for length in LENGTHS:
            before = Caps.of(known[length][0]) if length in known else None
            after = allowances.get(name, {}).get(length)
            if before is not None and not (after is not None and after.within(before)):
                LedgerError.unless(raising, "raised", account=name, known=before, wanted=after, window=length)
            if before != after:
                changes.append((name, length, before and before.to_json(), after and after.to_json()))
    return {"allowances": changes, "day": chain.now()[:10]} if changes else {}


def allowed(states: States, name: str) -> dict[str, tuple[Filter, str]]:
    """What an account may spend in one window, by the window's length: the caps and what was spent of them, and the
    latest day on which something was."""
    found = ((length, states.state(length, name)) for length in LENGTHS)
    return {length: (account_from_json(state), state["day"]) for length, state in found if state is not None}


def day(states: States, name: str) -> str:
    """The present day: the clock's, or the latest that an account has seen."""
    return max(chain.now()[:10], *(last for _, last in allowed(states, name).values()), "")


def renewing(length: str, last: str, day: str) -> bool:
    """Whether a day begins a new window. Raises ValueError where it is before the `last` day that was seen."""
    if day < last:
        raise ValueError("a day before the last that was seen")
    return Period.of(length, day) != Period.of(length, last)


def _allowed(
    states: States, name: str, length: str, old: object, new: Mapping[str, str] | None, day: str
) -> dict[str, Any] | None:
    """What an account may spend in one window under new caps, None where no longer any: what it has spent in this one
    counts, also where a period ended in it. The window is that of the latest day that was seen."""
    known = allowed(states, name).get(length)
    if (known and Caps.of(known[0]).to_json()) != old or name == TOTAL:
        raise ValueError("the allowance has other caps")
    if new is None:
        return None
    day = max(day, known[1]) if known else day
    window = Period.of(length, day).name
    losses = [loss for on, loss, _ in states.charges(name) if on.startswith(window)]
    return account_to_json(Caps.from_json(new).after(losses, None)) | {"day": day}


def _spent(states: States, name: str, body: Mapping[str, Any]) -> dict[Key, Any]:
    """What an account may spend in its windows, after a charge that they admit."""
    spent: dict[Key, Any] = {}
    for length, (account, last) in allowed(states, name).items():
        day = body["day"]
        known = Caps.of(account).filter() if renewing(length, last, day) else account
        spent[length, name] = account_to_json(states.charged((length, name), known, stored_loss(body))) | {"day": day}
    return spent


PARTS.append(Allowances())
