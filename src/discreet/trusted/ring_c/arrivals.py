"""What each person adds to a stream in a period: the rows that are there and not counted yet, within limits that are
remembered for ever.

One rule: in a period a person adds the difference between the rows that he has and those that were counted of him, at
most `rows` of it, unless he has added something in `periods` periods already. So

* what was counted stays counted in its period: nothing here changes an earlier one;
* a row that comes late counts when it comes, and one that goes, or moves to another group, is a negative count in the
  period in which that is seen;
* what a person has beyond `rows` in one period counts in the next, as long as there are periods left to him.

Privacy: what a person adds follows from his own rows and from his own memory alone. So with all outputs so far the
same, the tables with him and without differ in his own part Δ alone, with ‖Δ_t‖₁ ≤ rows in at most `periods` periods,
whatever his rows do from one snapshot to the next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Cells = dict[int, int]
"""How many rows in which group; those without any are left out."""


@dataclass(frozen=True)
class Person:
    """In how many periods a person has added something, and what all together."""

    periods: int = 0
    counted: Cells = field(default_factory=dict, repr=False)


Memory = Mapping[str, Person]
"""Whoever has added something, by a keyed hash of the id."""


def keyed(person: int | str, key: bytes) -> str:
    """The name of a person in the memory: 128 bits that tell nothing without the key. Ids of two types are two."""
    text = f"{type(person).__name__} {person}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, key=key, digest_size=16).hexdigest()


def arrived(
    memory: Memory, present: Mapping[str, Cells], groups: int, rows: int, periods: int
) -> tuple[list[int], Memory]:
    """What all persons add to each group in a period, and the memory after it."""
    total, after = [0] * groups, dict(memory)
    for name in memory.keys() | present.keys():
        known, has = memory.get(name, Person()), present.get(name, {})
        if known.periods >= periods:
            continue
        added = within(rows, {cell: has.get(cell, 0) - known.counted.get(cell, 0) for cell in known.counted | has})
        if added:
            counted = {cell: known.counted.get(cell, 0) + added.get(cell, 0) for cell in known.counted | added}
            after[name] = Person(known.periods + 1, {cell: one for cell, one in counted.items() if one})
            for cell, one in added.items():
                total[cell] += one
    return total, after


def within(rows: int, wanted: Cells) -> Cells:
    """What is wanted of a person, or at most so many rows of it: of each group its share rounded down, and what is
    left over to the groups that rounding took most from, in order."""
    whole = sum(map(abs, wanted.values()))
    if whole <= rows:
        return {cell: one for cell, one in wanted.items() if one}
    shares = {cell: divmod(abs(one) * rows, whole) for cell, one in sorted(wanted.items())}
    left = rows - sum(share for share, _ in shares.values())
    more = set(sorted(shares, key=lambda cell: -shares[cell][1])[:left])
    sizes = {cell: share + (cell in more) for cell, (share, _) in shares.items()}
    return {cell: size if wanted[cell] > 0 else -size for cell, size in sizes.items() if size}


def present(persons: Iterable[int | str], cells: Iterable[int], key: bytes) -> dict[str, dict[int, int]]:
    """How many rows each person has in which group, from a list of rows."""
    found: dict[int | str, dict[int, int]] = {}
    for person, cell in zip(persons, cells, strict=True):
        own = found.setdefault(person, {})
        own[cell] = own.get(cell, 0) + 1
    return {keyed(person, key): own for person, own in found.items()}
