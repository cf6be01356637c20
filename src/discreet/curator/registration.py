"""What a declaration registers in the ledger: budgets, who counts as a person, periods and parts."""

from __future__ import annotations

import logging

from discreet.catalog import Budget, Declaration, Table
from discreet.catalog.model import Renewal, Renews
from discreet.holdings import PersonsInParts
from discreet.ledger import TOTAL, Caps, Ledger, Unit
from discreet.trusted.ledger.accounts import PART
from discreet.trusted.ring_a.table import SourceKind

_log = logging.getLogger("discreet")

_KNOWN_AGAIN = Renewal("", Renews.NEW_PERSONS)
"""How persons are to be known who are known again later, as those in parts are."""


def register(ledger: Ledger, declaration: Declaration, *, raising: bool) -> None:
    """Registers the budgets, and who counts as a person. Raises LedgerError, and DeclarationError on a larger budget
    without `raising`."""
    accounts = {TOTAL: declaration.budget, **declaration.analysts}
    about = [table for table in declaration.tables.values() if not table.public]
    parts = declaration.budget.parts
    begins = ledger.register(
        {name: caps_of(budget) for name, budget in accounts.items()},
        repr(dict(declaration.tables)),
        units={table.name.casefold(): _unit(table, declaration.budget.renewal) for table in about},
        raising=raising,
        persons={}
        if parts is None
        else {PART + table.name.casefold(): [_unit(table, _KNOWN_AGAIN).person] for table in about},
        allowances={name: allowances_of(budget) for name, budget in declaration.analysts.items()},
        renewal=renewal_of(declaration),
        parts=() if parts is None else parts.values,
    )
    if begins and declaration.ledger is not None:
        whole = caps_of(declaration.budget)
        _log.warning("%s is a new ledger: nothing is spent yet of the budget of %s", declaration.ledger.name, whole)


def _unit(table: Table, renewal: Renewal | None) -> Unit:
    """Who counts as a person. Where the budget renews for new ones, how a source is read is a part of that: read in
    another way, an id is another, and whoever was seen seems new."""
    person = table.column(table.person) if table.person is not None and not table.path else None
    kind = [str(person.type)] if person is not None else []
    if renewal is not None and renewal.persons is Renews.NEW_PERSONS:
        source = table.source
        kind += [f"from {source.kind}", *([source.dates, source.encoding] if source.kind is SourceKind.CSV else [])]
    return Unit(table.unit, table.rows_per_person or 1, ", ".join(kind))


def assigning_of(declaration: Declaration) -> PersonsInParts | None:
    """By which column persons are assigned to parts; None where one budget is for all. How a source is read is a part
    of who counts as a person: `_unit`."""
    parts = declaration.budget.parts
    if parts is None or parts.who is None:
        return None
    about = dict.fromkeys((parts.who, parts.table))
    who = "; ".join(f"{name.casefold()}.{_unit(declaration.tables[name], _KNOWN_AGAIN).person}" for name in about)
    return PersonsInParts(declaration.tables[parts.table], parts.column, parts.values, who)


def caps_of(budget: Budget) -> Caps:
    """The caps of a declared budget."""
    return Caps(budget.epsilon, budget.delta, budget.keys_delta)


def allowances_of(budget: Budget) -> dict[str, Caps]:
    """What an analyst may spend in one window of each declared length: so much ε, and as much δ as ever."""
    lengths = {"day": budget.day, "month": budget.month}
    return {name: Caps(most, budget.delta, budget.keys_delta) for name, most in lengths.items() if most is not None}


def renewal_of(declaration: Declaration) -> dict[str, str] | None:
    """How a declared budget renews, as the ledger has it."""
    renewal = declaration.budget.renewal
    if renewal is None:
        return None
    said = {"length": renewal.length, "persons": str(renewal.persons)}
    if renewal.who is None:
        return said
    return said | {"who": f"{renewal.who.casefold()}.{_unit(declaration.tables[renewal.who], renewal).person}"}
