"""The rows of those persons alone who are in one part, as one clinic or region: a budget for each part.

A column of one table says in which part a person is, by values that the owner declares. Each person is in one part at
most, once and for good: the one whose value a row of theirs has in the first snapshot of that table in which they have
a row with a declared value; of several, the one that is declared first. A row with no value, or with another one,
assigns nobody. What is prepared of the tables for a part are the rows of its persons; where such a row is in the table
that says the part, and has another value, it is left out: the person was elsewhere.

A question about one part reads what was prepared for it, and is charged to that part's account. Any other question
reads all rows, of assigned persons and of others, and is charged to the accounts of all parts, and to that of the whole
(`trusted.ledger.accounts`). Each account is a filter of its own, with the whole budget.

**Claim.** Of all that is ever released, a person loses no more than the budget: the maximum over the parts, not the
sum.

*Proof.* Let two histories of the sources differ in one person p, all of whose rows, in every snapshot, are missing in
the other. When snapshots are taken follows from the clock and from what was released, never from rows.
1. The part that another person q is in follows from q's own rows alone: `assigning` looks at the rows of q, as they are
   stored, and for q's own keyed id among the known ones (two persons have one keyed id of 128 bits with a probability
   below n²/2^129). Which rows of q are stored, and which are kept for a part, follows from q's rows too (`storing`,
   `keeping`), and no row is about two persons: a person is the value of one column of the row itself.
2. So p is in one part k, or in none, and the tables prepared for every other part hold the same rows in both histories;
   those of part k are neighbours, and so are the tables with all rows.
3. What is released of another part is then drawn from equal rows, with noise of its own. Given all that was released
   before, it has one distribution in both histories: it loses nothing of p, and for whoever asks it is a part of how he
   chooses. Whether it is admitted, refused or failed follows from the filters, which follow from losses alone, and from
   what was drawn from those rows: none of it reads a source (whatever does is the owner's, and the same for all parts).
4. All that is left is what reads rows of p: releases of part k, and of all rows. Each is charged to the account of part
   k, with its whole loss, before it is drawn, and that account is a filter for measurements that are chosen adaptively,
   also by who has seen releases in between that lose nothing. For p in no part, every account has been charged. ∎

This is parallel composition (McSherry 2009, Theorem 4), where questions are chosen by what was released of all parts,
and losses too. Its conditions are known: for (ε, δ) it holds for interactive mechanisms where it does not follow from
releases in which part the person is, and may fail where it does and a mechanism's noise was drawn before (Henzinger,
Safavi, Vadhan 2024, arXiv 2411.03299: δ may add up over the parts). Step 4 holds even then: nothing of a part is
released with noise that was drawn before its charge. Streams and the synthetic state, which keep noise, read all rows
alone, and are charged everywhere.

What the proof stands on, and where it is held:
* What is charged to a part's account is drawn from rows that were prepared for it: `Engine.period` names the part whose
  rows are loaded, is None until nothing else is, and the door reserves for it and draws for it (`ring_a.gate`).
* A person stays where they are: the entry `assigned` stands in the ledger before rows are prepared by it, and
  of several entries the first one counts (`keeping`). A lost, an older or a foreign list is a lost, an older
  or a foreign ledger. Where the owner says what was lost (`spend_unknown`), that is charged to every part: who was
  assigned in what is lost may be assigned anew, as what was released of their part since is in it.
* One list knows every person of every declared table: all tables name one table's persons, with ids of one type, which
  the ledger keeps with the lists.
* A row of a source is of the same person in every snapshot: read in another way, the same letters are another id, and
  the person's rows would be those of somebody in another part. So how a table about people is read, its kind, its
  encoding and how it writes dates, stays as it was registered once something was charged, with parts or without them;
  of the tables that say who is a person and in which part, from the first list on. Ids that are declared as texts are
  texts in the source, at each load (`Holdings._check_ids`): a number may be written otherwise in the next snapshot. A
  table that comes later is a source of its own: its rows are, from its first snapshot on, of whom its ids name.
* No question has a source read for one part alone: whether it is what the snapshot took follows from rows of anybody.
  All parts are loaded with the whole, by the owner's act (no clock takes snapshots), or where some engine has ended;
  where one cannot be, none is, and every question, of whatever part, is answered alike.
* What failed in one part, and could not be written yet, shuts the doors of all, which share what is open and failed.
* An answer is of one set of persons: it is kept under the snapshot by which they were assigned last, too.
* A part that is declared later begins with all that was charged to the whole (`States.after`): its persons were in what
  reads all rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.trusted.renewal.first_seen import keyed, person
from discreet.trusted.ring_a.names import column_name, table_name
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_a.windows import PLACE, ROWS

KNOWN, HERE = "parts_known", "parts_here"
"""Tables of keyed ids, as two numbers a and b: of all persons who are in a part, with the number of the `list` that has
them and whether it has them `here`, in the part whose rows are kept; and of those who are in this part."""

_PAIR = (
    "CAST('0x' || substr(keyed, 1, 16) AS UBIGINT) AS a, CAST('0x' || substr(keyed, 17, 16) AS UBIGINT) AS b"  # of 32
)


def assigning(table: Table, column: str, values: Sequence[str], key: bytes) -> str:
    """The keyed ids of those persons who are in a part by their rows in this table and are not in KNOWN, each with the
    place of its value among these: the first of several."""
    places = " ".join(f"WHEN {_text(value)} THEN {place}" for place, value in enumerate(values))
    rows = (
        f"SELECT {person(table)} AS person, min(CASE {_value(table, column)} {places} END) AS place"
        f" FROM {table_name(table)} GROUP BY 1"
    )
    ids = f"SELECT place, {_PAIR} FROM (SELECT place, {keyed('person', key)} AS keyed FROM ({rows}))"
    known = f"SELECT 1 FROM {KNOWN} WHERE {KNOWN}.a = ids.a AND {KNOWN}.b = ids.b"
    return (
        f"SELECT a, b, CAST(place AS UBIGINT) AS place FROM ({ids}) AS ids"
        f" WHERE place IS NOT NULL AND NOT EXISTS ({known}) ORDER BY a, b"
    )


def keeping(tables: Sequence[Table], of: Table, column: str, value: str, key: bytes) -> list[str]:
    """What leaves in every table the rows of those persons alone whom the first list in KNOWN that has them has here,
    and in the table `of` those rows of them that have the part's value. The rows of a person that are left are numbered
    anew, in the order they had: windows read whole positions 1 … n (`ring_a.windows`)."""
    made = [f"CREATE TEMP TABLE {HERE} AS SELECT a, b FROM {KNOWN} GROUP BY a, b HAVING arg_min(here, list)"]
    for table in tables:
        name = table_name(table)
        persons = f"SELECT DISTINCT {person(table)} AS person FROM {name}"
        ids = f"SELECT person, {_PAIR} FROM (SELECT person, {keyed('person', key)} AS keyed FROM ({persons}))"
        here = f"SELECT person FROM ({ids}) AS ids JOIN {HERE} ON {HERE}.a = ids.a AND {HERE}.b = ids.b"
        own = f" AND {_value(table, column)} = {_text(value)}" if table.name == of.name else ""
        of_one = f"OVER (PARTITION BY {person(table)}"
        place = f"CAST(row_number() {of_one} ORDER BY {PLACE}) AS INT) AS {PLACE}"
        made += [
            f"CREATE TABLE part_rows AS SELECT * REPLACE ({place}, CAST(count(*) {of_one}) AS INT) AS {ROWS})"
            f" FROM {name} WHERE {person(table)} IN ({here}){own}",
            f"DROP TABLE {name}",
            f"ALTER TABLE part_rows RENAME TO {name}",
        ]
    return [*made, f"DROP TABLE {HERE}"]


def _value(table: Table, column: str) -> str:
    """A row's value in a column, as a text."""
    index = next(index for index, one in enumerate(table.columns) if one.name == column)
    return f"CAST({column_name(index)} AS VARCHAR)"


def _text(value: str) -> str:
    """A text as the engine reads it, whatever letters it has."""
    return f"decode(unhex('{value.encode().hex()}'))"
