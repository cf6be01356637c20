"""`discreet ledger`: used, left, accounts, and who asked what."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from fractions import Fraction
from typing import Any

from discreet.accounting import Approximate, Loss, Pure
from discreet.catalog import Budget, read
from discreet.curator.registration import allowances_of, caps_of
from discreet.errors import QuestionError
from discreet.explanation import above, running, spans
from discreet.ledger import TOTAL, Caps, Ledger
from discreet.ledger.requests import with_approved
from discreet.odds import best_guess_of_budget, chance
from discreet.release.render import aligned, percent, wrapped
from discreet.texts import visible
from discreet.trusted.ledger import note
from discreet.trusted.ring_a.exact import fraction, show

SHORTEST, LONGEST = 20, 80
"""Letters of a question in the ledger's table."""


def spent_unknown(declaration: str, amount: str) -> None:
    """Charge a declaration's ledger for questions that it lacks: ε, or ε and δ with a comma."""
    path, loss = read(declaration).ledger, unknown_loss(amount)
    assert path is not None
    Ledger.spend_unknown(path, loss).close()


def unknown_loss(amount: str) -> Loss | None:
    """An amount as a loss: ε, or ε and δ with a comma; None where it is 0."""
    epsilon, delta = _amounts(amount)
    return Approximate(epsilon, delta) if delta else Pure(epsilon) if epsilon else None


def raised(declaration: str) -> list[str]:
    """What a declaration would raise in its ledger, each with an attacker's odds before and after; nothing is written.
    Nothing where no account would be larger, or no ledger is there yet, or this machine has not used it."""
    declared = read(declaration)
    if declared.beside is None or not (declared.beside.exists() or note.place(declared.beside).exists()):
        return []
    renewal = declared.budget.renewal
    after_all = "after all of it" if renewal is None else f"after all of one {renewal.length}'s"
    with closing(Ledger(declared.ledger)) as ledger:
        known, more = ledger.verify().accounts, ledger.approved()
        lines = []
        for name, budget in {TOTAL: declared.budget, **declared.analysts}.items():
            before, after = known.get(name), with_approved(caps_of(budget), more.get(name), declared.budget.epsilon)
            if before is not None and not after.within(Caps.of(before)):
                whose = f"analyst {visible(name)}" if name else "the budget"
                odds = [chance(best_guess_of_budget(one.epsilon, one.delta)) for one in (Caps.of(before), after)]
                lines.append(
                    f"{whose}: {Caps.of(before)} → {after}; an attacker who knows everyone else is right at most"
                    f" {odds[0]} → {odds[1]} of the time {after_all}"
                )
            elif name and before is not None and budget.epsilon > (stays := ledger.lasting(name)):
                more_later = f"ε {show(stays)} → ε {show(budget.epsilon)} without what was approved"
                lines.append(f"analyst {visible(name)}: {more_later}")
            allowed = allowances_of(budget)
            for length, one in ledger.allowances(name).items() if name else ():
                cap = allowed.get(length)
                if cap is None or not cap.within(Caps.of(one.account)):
                    lines.append(f"analyst {visible(name)}: {Caps.of(one.account)} → {cap or 'no cap'} a {length}")
        declares = None if renewal is None else [renewal.length, renewal.persons]
        if declares != (ledger.renewal and [ledger.renewal["length"], ledger.renewal["persons"]]):
            words = "for ever, and renews no more; what earlier periods took comes on top of it, and is not counted"
            lines.append(f"the budget: from now on {words if renewal is None else _over_a_year(declared.budget)}")
        elif renewal is not None and any(line.startswith("the budget") for line in lines):
            lines.append(_over_a_year(declared.budget))
    if any(line.startswith("the budget") for line in lines):
        lines.append("what was answered stays answered, and what is promised from now on is the larger budget")
    return lines


def _over_a_year(budget: Budget) -> str:
    """What a budget that renews promises over a year, and an attacker's odds then."""
    assert budget.renewal is not None
    odds = chance(best_guess_of_budget(*budget.renewal.in_a_year(budget.epsilon, budget.delta)))
    promise = budget.renewal.in_words(budget.epsilon, budget.delta)
    return f"{promise}; an attacker who knows everyone else is right at most {odds} of the time then"


def _amounts(amount: str) -> tuple[Fraction, Fraction]:
    try:
        epsilon, *rest = map(fraction, amount.split(","))
        (delta,) = rest or (Fraction(0),)
        if epsilon < 0 or not 0 <= delta < 1:
            raise ValueError
    except ValueError:
        message, fix = f"{amount[:60]!r} is not a valid price", "write --spend-unknown 0.5, or 0.5,1e-8 with a delta"
        raise QuestionError("price", message, where="--spend-unknown", fix=fix) from None
    return epsilon, delta


def as_text(ledger: Mapping[str, Any], width: int | None = None) -> str:
    """The ledger for people, of what `as_dict` gave. Where a terminal's `width` is given, words are broken to it and
    questions cut."""
    total = ledger["budget"]
    lines = [f"{percent(ledger['used'])} of ε {total['epsilon']}, δ {total['delta']} used"]
    if ledger["more"] is not None:
        lines[0] += f" · about {ledger['more']:,} more like the last"
    if ledger["keys_used"]:
        lines[0] += f" · {percent(ledger['keys_used'])} of what finds private keys used"
    lines[0] += f" · {ledger['left']}"
    lines += running(ledger["period"])
    if ledger["older_filters"]:
        lines.append("older filters: large questions end publishing; `discreet ledger --renew-filters` ends that")
    for name, one in ledger.get("parts", {}).items():
        lines.append(visible(f"part {name}: {percent(one['used'])} of ε {one['epsilon']} used · {one['left']}"))
    for name, own in ledger["analysts"].items():
        used = (
            f"{percent(own['used'])} of ε {own['epsilon']}{above(own.get('approved', '0'))} used{spans(own['windows'])}"
        )
        lines.append(visible(f"analyst {name}: {used} · {own['left']}"))
    for name, table in ledger["tables"].items():
        if table["failures"] or table["frozen"]:
            lines.append(f"{visible(name)}: {_state(table)}")
    lines = [wrapped(line, width) for line in lines]
    rows = [("entry", "time", "analyst", "price", "status", "question")]
    for entry in ledger["entries"]:
        if entry["kind"] in ("reserve", "repeat", "unknown"):
            question = visible(" ".join((entry["question"] or entry["note"]).split()))
            who = visible(entry["analyst"]) or "–"
            rows.append((str(entry["entry"]), entry["time"], who, entry["price"], entry["status"], question))
    head, *rest = _cut(rows, width)
    lines += aligned(head, rest, [True, *[False] * (len(head) - 1)])
    lines.append(f"head {ledger['head']}")
    if verified := ledger.get("verified"):
        whole = f"verified: {verified['entries']} entries, chain and balances intact"
        lines.append(wrapped(f"{whole}; {verified['unanswered']} charged without an answer", width))
    return "\n".join(lines)


def _cut(rows: Sequence[tuple[str, ...]], width: int | None) -> list[tuple[str, ...]]:
    """Rows whose last cell, a question, is no longer than there is room for."""
    from rich.cells import cell_len, set_cell_size

    most = LONGEST
    if width is not None and rows:
        before = sum(2 + max(map(cell_len, column)) for column in list(zip(*rows, strict=True))[:-1])
        most = max(SHORTEST, min(LONGEST, width - before))
    return [
        row if cell_len(row[-1]) <= most else (*row[:-1], set_cell_size(row[-1], most - 1).rstrip() + "…")
        for row in rows
    ]


def _state(table: Mapping[str, Any]) -> str:
    failures = f"{table['failures']} of {table['limit']} failures in snapshot {table['snapshot']}"
    if table["frozen"]:
        return f"{failures}; frozen for everybody until `discreet refresh`"
    who = ", ".join(visible(analyst or "") or "whoever names no analyst" for analyst in table["suspended"])
    return f"{failures}; {who} suspended until `discreet lift`" if who else failures


def renewed(promises: Mapping[str, str]) -> str:
    """What an owner promises after the filters were renewed."""
    if not promises:
        return "no filters to renew, or nothing would be left with new ones"
    whose = {name: f"analyst {visible(name)}" if name else "the budget" for name in promises}
    return "\n".join(f"{whose[name]}: new filters; everything together is now {promises[name]}" for name in promises)


def one_entry(ledger: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The entry with this number. Raises QuestionError where there is none."""
    entries = ledger["entries"]
    found: dict[str, Any] | None = next((entry for entry in entries if entry["entry"] == number), None)
    if found is None:
        first_and_last = f"name one from {entries[0]['entry']} to {entries[-1]['entry']}" if entries else ""
        fix = first_and_last or "ask something first"
        raise QuestionError("entry", "the ledger has no such entry", where=f"entry {number}", fix=fix)
    return found


def entry_text(entry: Mapping[str, Any]) -> str:
    """One entry, whole."""
    facts = {**entry, "loss": None if entry["loss"] is None else json.dumps(entry["loss"])}
    facts["charged"] = ", ".join(visible(name) for name in facts["charged"])
    lines = [(name, [visible(line) for line in str(value).splitlines()]) for name, value in facts.items() if value]
    width = max(len(name) for name, _ in lines) + 2
    return "\n".join(f"{name:<{width}}" + ("\n" + " " * width).join(value) for name, value in lines)
