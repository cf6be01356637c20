"""`discreet ledger`: used, left, accounts, and who asked what."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.exact import show
from discreet.ledger import TOTAL, Entry, Verification
from discreet.release.show import percent

if TYPE_CHECKING:
    from discreet.curator import Curator


def as_dict(curator: Curator, verification: Verification | None) -> dict[str, Any]:
    """The ledger for a machine."""
    budget = curator.budget
    result: dict[str, Any] = {
        "budget": dict(budget.total),
        "used": budget.used,
        "keys_used": budget.keys_used,
        "more": _more(curator),
        "analysts": {name: _used(curator, name) for name in curator.declaration.analysts},
        "head": curator.ledger.head,
        "entries": [_entry(entry) for entry in curator.ledger.entries()],
    }
    if verification is not None:
        result["verified"] = {"entries": verification.entries, "unanswered": verification.unanswered}
    return result


def as_text(curator: Curator, verification: Verification | None) -> str:
    """The ledger for people."""
    budget = curator.budget
    lines = [f"{percent(budget.used)} of ε {budget.total['epsilon']}, δ {budget.total['delta']} used"]
    more = _more(curator)
    if more is not None:
        lines[0] += f" · about {more:,} more like the last"
    if budget.keys_used:
        lines[0] += f" · {percent(budget.keys_used)} of what finds private keys used"
    for name in curator.declaration.analysts:
        lines.append(f"analyst {name}: {percent(_used(curator, name))} used")
    asked = [entry for entry in curator.ledger.entries() if entry.kind in ("reserve", "repeat")]
    rows = [("entry", "time", "analyst", "price", "status", "question")]
    for entry in asked:
        question = " ".join(entry.question.split())
        shown = question if len(question) <= 80 else question[:79] + "…"
        rows.append((str(entry.seq), entry.time, entry.analyst or "–", _price(entry), entry.status, shown))
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.append(f"head {curator.ledger.head}")
    if verification is not None:
        lines.append(
            f"verified: {verification.entries} entries, chain and balances intact; "
            f"{verification.unanswered} charged without an answer"
        )
    return "\n".join(lines)


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "entry": entry.seq,
        "time": entry.time,
        "kind": entry.kind,
        "analyst": entry.analyst,
        "question": entry.question,
        "loss": entry.loss.to_json() if entry.loss is not None else None,
        "charged": ["the budget" if name == TOTAL else name for name in entry.charged],
        "status": entry.status,
        "note": entry.note,
    }


def _price(entry: Entry) -> str:
    if entry.loss is None:
        return "free"
    if entry.loss.pure is None:
        return f"μ² {show(entry.loss.mu_squared or Fraction(0), 3)}"
    delta = f", δ {show(entry.loss.keys_delta, 3)}" if entry.loss.keys_delta else ""
    return f"ε {show(entry.loss.pure)}{delta}"


def _more(curator: Curator) -> int | None:
    last = None
    for entry in curator.ledger.entries():
        last = entry.loss or last
    return None if last is None else curator.ledger.filter(TOTAL).left(last)


def _used(curator: Curator, account: str) -> float:
    return min(1.0, float(curator.ledger.filter(account).used())) * 100
