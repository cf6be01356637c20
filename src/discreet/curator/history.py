"""The ledger as plain values: used, left, accounts, tables, and who asked what."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice
from typing import Any

from discreet.accounting.balance import price_of
from discreet.curator.procedures import Curator
from discreet.explanation import BudgetState
from discreet.ledger import TOTAL, Entry, Verification
from discreet.ledger.history import account_name
from discreet.trusted.ring_a.exact import show


def as_dict(curator: Curator, verification: Verification | None) -> dict[str, Any]:
    """The ledger for a machine."""
    budget = curator.budget
    result: dict[str, Any] = {
        "budget": dict(budget.total),
        "used": budget.used,
        "keys_used": budget.keys_used,
        "more": more_like_the_last(curator),
        "left": budget.room,
        "period": None if budget.period is None else dict(budget.period),
        "older_filters": curator.ledger.filter(TOTAL).renewable is not None,
        "analysts": {
            name: {
                **own.total,
                "used": own.used,
                "approved": own.approved,
                "left": own.room,
                "more": more_like_the_last(curator, name),
                "windows": {length: dict(one) for length, one in own.windows.items()},
            }
            for name, own in budget.analysts.items()
        },
        **({"parts": {name: used_of(one) for name, one in budget.parts.items()}} if budget.parts else {}),
        "tables": tables(curator),
        "head": curator.ledger.head,
        "entries": [as_entry(curator, entry) for entry in curator.ledger.entries()],
    }
    if verification is not None:
        result["verified"] = {"entries": verification.entries, "unanswered": verification.unanswered}
    return result


def used_of(one: BudgetState) -> dict[str, Any]:
    """A part's budget: what is promised, the percent used, and what is left in words."""
    return {**one.total, "used": one.used, "left": one.room}


def as_page(curator: Curator, after: int, limit: int) -> dict[str, Any]:
    """So many entries of the ledger behind one; `next` is where the following page begins, None at the end."""
    found = list(islice(curator.ledger.entries(after), limit + 1))
    return {
        "head": curator.ledger.head,
        "entries": [as_entry(curator, entry) for entry in found[:limit]],
        "next": found[limit - 1].seq if len(found) > limit else None,
    }


def tables(curator: Curator) -> dict[str, dict[str, Any]]:
    """Of each table that was opened: its snapshot, what failed in it, how many failures freeze it, who is suspended:
    null for those who name no analyst."""
    return {
        name: {
            "snapshot": state.number,
            "frozen": state.frozen,
            "failures": state.failures,
            "limit": curator.declaration.limits.failures,
            "suspended": [analyst or None for analyst in state.suspended],
        }
        for name, state in sorted(curator.ledger.tables().items())
    }


def as_entry(curator: Curator, entry: Entry) -> dict[str, Any]:
    """One entry as plain values."""
    return {
        "entry": entry.seq,
        "time": entry.time,
        "kind": entry.kind,
        "analyst": entry.analyst,
        "question": entry.question,
        "price": price(curator, entry) if entry.kind in ("reserve", "repeat", "unknown") else "",
        "loss": entry.loss.to_json() if entry.loss is not None else None,
        "charged": [account_name(name) for name in entry.charged],
        "status": entry.status,
        "note": entry.note,
    }


def price(curator: Curator, entry: Entry) -> str:
    """What an entry charged, as a price in words."""
    if entry.loss is None or entry.loss.pure == 0:  # a period of a stream, which was paid when it began
        return "free"
    whole = curator.ledger.filter(TOTAL)
    if entry.loss.pure is None and whole.delta:
        epsilon, share = price_of(whole, entry.loss.mu_squared or Fraction(0), bool(entry.loss.keys_delta))
        return f"ε {show(epsilon)}, δ {show(share, 3)}"
    if entry.loss.pure is None:
        return f"μ² {show(entry.loss.mu_squared or Fraction(0), 3)}"
    delta = f", δ {show(entry.loss.keys_delta, 3)}" if entry.loss.keys_delta else ""
    return f"ε {show(entry.loss.pure)}{delta}"


def more_like_the_last(curator: Curator, account: str = TOTAL) -> int | None:
    """How many more fit of the last price that anybody paid."""
    last = None
    for entry in curator.ledger.entries():
        last = last if entry.loss is None or entry.loss.pure == 0 else entry.loss
    return None if last is None else curator.balance(account).more(last)
