"""The lists of persons who were first seen, as the ledger keeps them: entries `persons`, each with the keyed ids of one
refresh as its answer, hashed into the chain like any other.

How many lists there are is a state of its own, so that one that is missing is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.errors import LedgerError
from discreet.trusted.ledger import chain
from discreet.trusted.ledger.accounts import PARTS, Beside, States
from discreet.trusted.ledger.chain import Key
from discreet.trusted.ledger.periods import NEW_PERSONS
from discreet.trusted.ledger.transaction import Transaction

ID = 16
"""The bytes of a person's keyed id."""

_LISTS = "SELECT seq, answer FROM entries WHERE kind = 'persons' ORDER BY seq"


class Lists(Beside):
    """How many entries say which persons were first seen."""

    kinds = ("persons",)

    def after(self, states: States, body: Mapping[str, Any]) -> Mapping[Key, Any]:
        """One more after each list, which is of the present period."""
        if body["kind"] != "persons":
            return {}
        if body["period"] != states.period or states.state("renewal", "")["persons"] != NEW_PERSONS:
            raise ValueError("persons are first seen in the present period, where the budget renews for them")
        return {("persons", ""): {"entries": lists(states) + 1}}


def lists(states: States) -> int:
    """How many lists there are."""
    state = states.state("persons", "")
    return 0 if state is None else int(state["entries"])


def seen(transaction: Transaction) -> list[tuple[str, bytes]]:
    """The keyed ids of all persons who were seen, by the names of the periods that they are in. All of them, or
    LedgerError."""
    found = []
    for seq, data in list(transaction.connection.execute(_LISTS)):
        body = transaction.entry(seq, kind="persons").body
        if not isinstance(data, bytes) or chain.digest(data) != body["answer"]:
            raise chain.broken(seq)
        found.append((str(body["period"]), data[len(data) % ID :]))
    LedgerError.unless(len(found) == lists(transaction), "damaged")
    return found


PARTS.append(Lists())
