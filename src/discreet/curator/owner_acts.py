"""The owner's acts on what may be asked: new snapshots, and who is stopped. They cost nothing."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.catalog import Declaration
from discreet.errors import QuestionError
from discreet.holdings import Holdings, Refreshed
from discreet.ledger import Ledger
from discreet.ledger.store import EVERY_TABLE
from discreet.ledger.words import check_text, reasoned
from discreet.locks import Lock


def refresh(declaration: Declaration, holdings: Holdings, turn: Lock, tables: Sequence[str]) -> Refreshed:
    """Takes the sources of these tables, or of all, for their new snapshots. Raises QuestionError."""
    known = [declaration.table(name) if isinstance(name, str) else None for name in tables]
    anew = [table.name for table in known if table is not None]
    if len(anew) < len(known):
        fix = f"name some of {', '.join(declaration.tables)}"
        raise QuestionError("table", "this table is not declared", where="refresh", fix=fix)
    with turn:  # after the question that is running
        return holdings.refresh(anew or declaration.tables)


def freeze(
    declaration: Declaration, ledger: Ledger, account: str, tables: Sequence[str], reason: str, by: str | None
) -> bool:
    """Stops an account, about these tables or all. Gives False where it is stopped already. Raises QuestionError."""
    about = [one.name for one in declaration.tables.values() if not one.public]
    return bool(ledger.stop(account, _chosen(declaration, tables, about), **reasoned(reason, by)))


def lift(
    declaration: Declaration, ledger: Ledger, account: str, tables: Sequence[str], reason: str | None, by: str | None
) -> tuple[str, ...]:
    """Lets an account ask again, about these tables or all that it was stopped or suspended on, also of those that are
    declared no more; gives their names. Raises QuestionError."""
    said = reasoned(reason, by)
    check_text(account)
    known = {*declaration.tables, *ledger.tables(), *(table for _, table in ledger.stopped)}
    chosen = _chosen(declaration, tables, sorted(known - {EVERY_TABLE}))
    suspended = ledger.lift(account, chosen, **said)
    thawed = ledger.go(account, chosen, **said)
    return tuple(sorted({*suspended, *thawed} - {EVERY_TABLE}))


def _chosen(declaration: Declaration, tables: Sequence[str], known: Sequence[str]) -> list[str]:
    """Tables by their names as they are declared. Raises QuestionError where one is none of the known ones."""
    named = [None] if isinstance(tables, str) or not isinstance(tables, Sequence) else tables
    found = [declaration.table(name) if isinstance(name, str) else None for name in named]
    chosen = [name if table is None else table.name for name, table in zip(named, found, strict=True)]
    if not all(isinstance(name, str) and name in known for name in chosen):
        fix = f"give a list of some of {', '.join(known)}"
        raise QuestionError("table", "no table about people has this name", where="tables", fix=fix)
    return list(dict.fromkeys(map(str, chosen)))
