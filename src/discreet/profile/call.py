"""`curator.profile`: histograms of what persons contribute, from the call to the content of the release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

from discreet.catalog import Declaration
from discreet.errors import refused
from discreet.intervals.noise import CONFIDENCE, half_width
from discreet.mechanisms import Laplace
from discreet.plan.profile import Histogram, Wanted, buckets, most, person_histogram
from discreet.procedures.arguments import columns_of, epsilon_of, table_about_people, with_owners
from discreet.procedures.run import declared, digest
from discreet.release.content import Cost, ReleaseContent
from discreet.release.left_out import rows_read
from discreet.trusted.ring_a.exact import Number, show
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_b.contributions import ContributionMeasurement

_refused = partial(refused, "profile")

PROFILE = "profile "
"""How the keys of profiles begin."""

MOST_HISTOGRAMS = 20
"""So many histograms share a price at most: each gets a part of it."""


def profile_key(table: Table, numbers: str, engine: str) -> str:
    """How the keys of a table's profiles begin, in one of its snapshots."""
    return f"{PROFILE}{digest(*declared(*table.bases), numbers, engine)} "


@dataclass(frozen=True)
class ProfileCall:
    """A checked call: the histograms, each at an equal share of the price. `name` is that of the declared table, and
    `table` is what is read of it: with those on the way where its persons are found along foreign keys."""

    name: str
    table: Table
    wanted: tuple[Wanted, ...]
    epsilon: Fraction

    @property
    def share(self) -> Fraction:
        """What each histogram costs."""
        return self.epsilon / len(self.wanted)

    @cached_property
    def measurement(self) -> ContributionMeasurement:
        """The measurement that the gate carries out."""
        return ContributionMeasurement(
            self.table, tuple(person_histogram(self.table, one, self.share) for one in self.wanted)
        )

    @property
    def cost(self) -> Cost:
        """Of all histograms together: pure ε, with no δ."""
        return Cost(epsilon=float(self.epsilon), delta=0.0)

    @property
    def question(self) -> str:
        """The call in words, for the ledger."""
        return f"profile of {self.name}: {'; '.join(one.words for one in self.wanted)}"

    @property
    def parts(self) -> tuple[str, ...]:
        """What decides the answer, beside the table."""
        return ("profile", repr(self.wanted), repr(self.epsilon))

    def key(self, numbers: str, engine: str) -> str:
        """What makes two calls the same."""
        return profile_key(self.table, numbers, engine) + digest(*self.parts)

    @property
    def shares(self) -> tuple[str, ...]:
        """How many histograms there are, and what each costs, in lines."""
        count = len(self.wanted)
        each = f"ε {show(self.share)}" + ("" if self.share * count == self.epsilon and _short(self.share) else " or so")
        words = "1 histogram" if count == 1 else f"{count} histograms, each at {each}"
        wide = Laplace(1 / self.share).half_width(CONFIDENCE)
        of = "; ".join(one.words for one in self.wanted)
        return (f"{words}: {of}", f"each number of persons: ±{wide:,} at {CONFIDENCE:.0%} confidence")

    def content(self, noisy: Sequence[Sequence[int]]) -> ReleaseContent:
        """The content of the release: a row for each bucket, with the number of persons in it."""
        found = self.histograms(noisy)
        rows: list[dict[str, Any]] = []
        intervals: list[dict[str, tuple[float, float]]] = []
        simultaneous: list[dict[str, tuple[float, float]]] = []
        cells = sum(len(one.buckets) for one in found)
        for one in found:
            noise = Laplace(one.scale)
            wide, all_wide = (half_width(noise, [1.0], (1 - CONFIDENCE) / many) for many in (1, cells))
            for place, count in enumerate(one.counts):
                low, high = one.ends(place)
                if not one.buckets[place] and place + 1 < len(one.counts):  # no value lies between, as of whole numbers
                    high = one.ends(place + 1)[0]
                rows.append({"of": one.wanted.words, "from": _number(low), "to": _number(high), "persons": count})
                intervals.append({"persons": (count - wide, count + wide)})
                simultaneous.append({"persons": (count - all_wide, count + all_wide)})
        return ReleaseContent(
            columns=["of", "from", "to", "persons"],
            types={"of": "text", "from": "number", "to": "number"},
            keys=["of", "from", "to"],
            drawn=["persons"],
            rows=rows,
            intervals=intervals,
            simultaneous=simultaneous,
            cost=self.cost,
            mechanisms=[self._described(one) for one in found],
            bounds=self.bounds,
            more={"histograms": [one.to_dict() for one in found], "proposed": proposed(self.table, found)},
        )

    def histograms(self, noisy: Sequence[Sequence[int]]) -> tuple[Histogram, ...]:
        """The noisy counts as values."""
        return tuple(
            Histogram(one, buckets(self.table, one), tuple(counts), 1 / self.share, most(self.table, one))
            for one, counts in zip(self.wanted, noisy, strict=True)
        )

    @property
    def bounds(self) -> tuple[str, ...]:
        """What changes how the numbers may be read."""
        rows = self.table.rows_per_person or 1
        read = (
            f"of {self.name}, rows of a person beyond {rows:,} are left out where it is read",
            "rows without a person are left out",
        )
        return (
            *(read if self.table.relation is None else rows_read(self.table)),
            "each person counts in one bucket; numbers next to a power of two may count beside it",
        )

    def _described(self, one: Histogram) -> dict[str, str]:
        return {
            "columns": one.wanted.words,
            "mechanism": Laplace(one.scale).describe(),
            "unit": "1 person",
            "sensitivity": "1: a person is in one bucket",
        }


def _short(number: Fraction) -> bool:
    """Whether a number is written whole in a few digits."""
    return (number * 10**6).denominator == 1


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def call(
    declaration: Declaration,
    table: object,
    epsilon: Number | None,
    keys: object = None,
    columns: Sequence[str] | None = None,
) -> ProfileCall:
    """The checked call. `keys` are sets of columns, each a list of names; `columns` those whose sizes are counted.

    Raises QuestionError.
    """
    if table is None:
        about = [one.name for one in declaration.tables.values() if not one.public and one.path is None]
        if len(about) != 1:
            raise _refused("there are several tables about people", "table", f"name one of {', '.join(about)}")
        table = about[0]
    known = table_about_people(declaration, table)
    if known.person is None or known.one_row_per_person or known.rows_per_person is None:
        fix = "ask: nothing is left out of one row a person"
        raise _refused("each person has one row here: there is no limit to choose", "table", fix)
    wanted = [Wanted("rows")]
    if isinstance(keys, str) or not isinstance(keys or (), Sequence):
        raise _refused("keys must be a list of lists of names", "keys", 'write keys=[["city"]]')
    for names in keys or ():  # type: ignore[attr-defined]
        chosen = columns_of(known, names, "keys")
        if known.path is None and any(column.name.casefold() == known.person.casefold() for column in chosen):
            raise _refused("groups of one person are not counted", "keys", f"leave out {known.person}")
        wanted.append(Wanted("groups", tuple(sorted(column.name for column in chosen))))
    for column in [] if columns is None else columns_of(known, columns, "columns"):
        if column.type is None or not column.type.numeric or column.name.casefold() == known.person.casefold():
            raise _refused(f"{column.name} holds no numbers", "columns", "name columns that are added up")
        wanted.append(Wanted("size", (column.name,)))
    if len(set(wanted)) < len(wanted):
        raise _refused("a set of keys is named twice", "keys", "name each once")
    if len(wanted) > MOST_HISTOGRAMS:
        raise _refused(f"{len(wanted)} histograms are too many for one price", "keys", "name fewer keys and columns")
    return ProfileCall(known.name, with_owners(declaration, known), tuple(wanted), epsilon_of(declaration, epsilon))


def released_histograms(content: ReleaseContent) -> tuple[Histogram, ...]:
    """The histograms of a profile that was released."""
    return tuple(map(Histogram.from_dict, content.more["histograms"]))


def proposed(table: Table, found: Sequence[Histogram]) -> list[str]:
    """Lines that a declaration may have by these numbers, beneath the table's: limits that nobody passes who can be
    told from noise."""
    lines, groups = [], 0
    for one in found:
        cells = len(one.buckets)
        bar = Laplace(one.scale).half_width(CONFIDENCE, cells) + 1
        seen = one.seen(bar)
        if seen is None:
            continue
        if one.wanted.what == "rows":
            lines.append(f"rows_per_person = {int(seen)}")
        elif one.wanted.what == "groups":
            groups = max(groups, int(seen))
        else:
            (name,) = one.wanted.columns
            column = table.column(name)
            least = column.minimum if column is not None else None
            low = "0" if isinstance(least, int | Fraction) and least >= 0 else f"-{show(seen)}"
            lines.append(f"columns.{name}: min = {low}, max = {show(seen)}")
    if groups:
        lines.insert(1 if lines and lines[0].startswith("rows") else 0, f"groups_per_person = {groups}")
    return lines
