"""The rows of those persons alone who were first seen in the present period: a budget that renews for new persons.

Each person is assigned to one period, once and for good: the one in which the owner's refresh first reads a row of
theirs, in any of the tables that it takes anew. What is prepared of a table for a period are the rows of that period's
persons. Later rows of a person of an earlier period are left out, whatever else the source holds, and so are those of
whom no refresh has seen yet.

**Claim.** Of all that is ever released, in all periods together, a person loses no more than the budget of one.

*Proof.* Let two histories of the sources differ in one person p, all of whose rows, at every refresh, are missing in
the other. When the owner refreshes follows from the clock and from what was released, never from the rows; and a
refresh that p's rows make fail, as by a text that is none in the declared encoding, is mended before the period ends:
what is not read in one period is first seen in the next.
1. The period to which another person q is assigned follows from q's own rows and from the clock: `statements` looks
   for q's own keyed id among the known ones, and nothing else. (Two persons have one keyed id of 128 bits with a
   probability below n²/2^129.) Which rows of q are stored follows from q's rows too (`storing`), and no row is about
   two persons: a person is the value of one column of the row itself, never found along further rows.
2. So the tables prepared for every period but the one that p is assigned to hold the same rows in both histories, and
   those of p's period are neighbours: one holds p's rows, cut as ever, the other none of them.
3. What is released in the other periods is then computed from equal rows, with noise of its own: for the measurements
   of p's period it is part of the one who asks, however he chooses. These measurements are charged to the accounts of
   that period alone, and these are filters for measurements that are chosen adaptively. ∎

What the proof stands on, and where it is held:
* A person is assigned before anything is asked of the rows, and stays so: the entry `persons` is written in the one
  transaction that registers the snapshots (`Ledger.register_snapshots`), and until then nothing is measured, since the
  engine's `period` is None. The keyed ids lie in the ledger itself, hashed into its chain like an answer, so a lost, an
  older or a foreign list is a lost, an older or a foreign ledger; `listed.seen` gives all of them or fails.
* What is charged in a period is drawn from rows that were prepared for it (`trusted.ledger.periods`).
* One list knows every person of every declared table: all tables name one table's persons, with ids of one type, and
  who that is stays as declared once something was charged (`BudgetLedger.register_accounts`).
* No lost entry is forgotten: `spend_unknown` does not serve such a ledger.

An id is what the engine makes of it, typed, with NULL left out: '1' and ' 1', 'a' and 'A' are different persons.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

from discreet.trusted.ring_a.names import column_name, table_name
from discreet.trusted.ring_a.table import Table

BEFORE, NOW, NEW = "seen_before", "seen_now", "seen_new"
"""Tables of keyed ids, as two numbers a and b: of earlier periods, of this one, and of persons first seen now."""

_BLOCK = 64  # bytes, of SHA-256


def secret(salt: bytes, who: str) -> bytes:
    """The key of the ids of these persons, of the ledger's own secret."""
    return hashlib.sha256(b"persons" + salt + who.encode()).digest()


def statements(tables: Sequence[Table], anew: Collection[str], key: bytes) -> list[str]:
    """What makes NEW of the persons in those tables that are taken `anew`, and leaves in every table the rows of the
    persons in NOW and NEW alone. BEFORE and NOW are there, and the tables as `storing` has made them."""
    persons = " UNION ALL ".join(
        f"SELECT DISTINCT {person(table)} AS person, {table.name in anew} AS anew FROM {table_name(table)}"
        for table in tables
    )
    known = "EXISTS (SELECT 1 FROM {0} WHERE {0}.a = persons.a AND {0}.b = persons.b)".format
    made = [
        "CREATE TEMP TABLE persons AS SELECT person, anew, CAST('0x' || substr(keyed, 1, 16) AS UBIGINT) AS a,"
        " CAST('0x' || substr(keyed, 17, 16) AS UBIGINT) AS b FROM (SELECT person, bool_or(anew) AS anew,"
        f" {keyed('person', key)} AS keyed FROM ({persons}) GROUP BY person)",
        f"CREATE TEMP TABLE {NEW} AS SELECT a, b FROM persons"
        f" WHERE anew AND NOT {known(BEFORE)} AND NOT {known(NOW)} ORDER BY a, b",
        f"CREATE TEMP TABLE present AS SELECT person FROM persons WHERE {known(NOW)} OR {known(NEW)}",
    ]
    for table in tables:
        name = table_name(table)
        made += [
            f"CREATE TABLE present_rows AS SELECT * FROM {name} WHERE {person(table)} IN (SELECT person FROM present)",
            f"DROP TABLE {name}",
            f"ALTER TABLE present_rows RENAME TO {name}",
        ]
    return [*made, "DROP TABLE persons", "DROP TABLE present"]


def person(table: Table) -> str:
    """A row's person as a text: different persons have different ones, as ids of all tables have one type."""
    index = next(index for index, column in enumerate(table.columns) if column.name == table.person)
    return f"CAST({column_name(index)} AS VARCHAR)"


def keyed(text: str, key: bytes) -> str:
    """HMAC-SHA256 (RFC 2104) of a text, in hexadecimal digits."""
    inner, outer = (bytes(byte ^ pad for byte in key.ljust(_BLOCK, b"\0")).hex() for pad in (0x36, 0x5C))
    return f"sha256(unhex('{outer}') || unhex(sha256(unhex('{inner}') || encode({text}))))"
