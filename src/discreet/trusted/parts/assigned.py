"""The lists of persons who were assigned to parts, as the ledger keeps them: entries `assigned`, each with the keyed
ids of one snapshot as its answer, hashed into the chain like any other.

An entry says in words who counts as a person, the same in all of them, and the parts' accounts in their order. Its
answer has for each person the keyed id and the place of the part's account, after some bytes of chance, by which nobody
sees at its hash that it is empty. How many entries there are is a state of its own, so that one that is missing is
noticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.errors import LedgerError
from discreet.trusted.ledger import chain
from discreet.trusted.ledger.accounts import PARTS, Beside, States
from discreet.trusted.ledger.chain import Key
from discreet.trusted.ledger.transaction import Transaction

ID, PLACE = 16, 8
"""The bytes of a person's keyed id, and of the place that follows it, little-endian."""
PERSON = ID + PLACE

_LISTS = "SELECT seq, answer FROM entries WHERE kind = 'assigned' ORDER BY seq"


class Assigned(Beside):
    """How many entries say who is in which part, and who counts as a person in them."""

    kinds = ("assigned",)

    def after(self, states: States, body: Mapping[str, Any]) -> Mapping[Key, Any]:
        """One more after each list, which is of the same kind of persons and of parts that have accounts."""
        if body["kind"] != "assigned":
            return {}
        if who(states) not in (None, body["who"]) or not {*body["accounts"]} <= {*states.parts}:
            raise ValueError("lists are of one kind of persons, and of parts that have accounts")
        return {("assigned", ""): {"who": body["who"], "entries": lists(states) + 1}}


def lists(states: States) -> int:
    """How many lists there are."""
    state = states.state("assigned", "")
    return 0 if state is None else int(state["entries"])


def who(states: States) -> str | None:
    """Who counts as a person in the lists, in words; None where there is none."""
    state = states.state("assigned", "")
    return None if state is None else str(state["who"])


def persons(transaction: Transaction) -> list[tuple[list[str], bytes]]:
    """All persons who are in a part, list by list: the parts' accounts, and for each person keyed id and place. All of
    them, or LedgerError."""
    found = []
    for seq, data in list(transaction.connection.execute(_LISTS)):
        body = transaction.entry(seq, kind="assigned").body
        if not isinstance(data, bytes) or chain.digest(data) != body["answer"]:
            raise chain.broken(seq)
        found.append(([*map(str, body["accounts"])], data[len(data) % PERSON :]))
    LedgerError.unless(len(found) == lists(transaction), "damaged")
    return found


PARTS.append(Assigned())
