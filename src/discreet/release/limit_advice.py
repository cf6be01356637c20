"""Advice on contribution limits: the noise at other limits for the same price, from declarations alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.intervals.expected import expected_errors
from discreet.intervals.noise import three_digits
from discreet.plan.left_out import Limit, at_limit, limits
from discreet.plan.measurement import Measurement
from discreet.plan.outputs import OutputKind
from discreet.plan.split import measurement
from discreet.release.left_out import shown_from
from discreet.trusted.ring_a.table import Table

STEPS = (1, 2, 5, 10, 20, 50, 100, 1_000)
"""The limits that are tried below the declared one."""


@dataclass(frozen=True)
class LimitOption:
    """A limit that a question could have: the `option` of its clause that sets it to `limit`.

    `share` is the least part of a count of rows that would be there on average, None where that is not known;
    `expected_error` are the errors of its counts, sums and means at the question's price; with private keys a group of
    `shown_from` persons, or more, is shown with probability 95 %; `now` where it is as it is.
    """

    option: str
    limit: int
    share: float | None
    expected_error: Mapping[str, float]
    now: bool = False
    shown_from: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "option": self.option,
            "limit": self.limit,
            "share": self.share,
            "expected_error": dict(self.expected_error),
            "now": self.now,
            "shown_from": self.shown_from,
        }


def choices(priced: Measurement, table: Table) -> tuple[LimitOption, ...]:
    """For each limit of the question, the others that it could have, up to what is declared. A wider limit leaves less
    out, and takes more noise to hide."""
    found = []
    specials = {output.name for output in priced.plan.outputs if output.kind is OutputKind.SPECIAL}
    for own in limits(priced.plan, table):
        if own.what == "values":
            continue
        most = max(own.limit, own.declared or 0)
        for limit in sorted({own.limit, most, *(step for step in STEPS if step < most)}):
            other = at_limit(priced.plan, own.what, limit)
            repriced = measurement(other, priced.price)
            errors = expected_errors(repriced)
            share = Limit(own.what, limit, own.declared).share
            option = f"max_{own.what}_contributed"
            known = {name: error for name, error in errors.items() if name not in specials}
            part, now = None if share is None else float(share), other == priced.plan
            found.append(LimitOption(option, limit, part, known, now, shown_from(repriced)))
    return tuple(found)


def in_words(found: tuple[LimitOption, ...]) -> list[str]:
    """One line for each option, and how it is written: "max_rows_contributed = 2: n ±6; 8 (now): n ±24"."""
    lines = []
    for option in dict.fromkeys(one.option for one in found):
        texts = []
        for one in found:
            if one.option == option:
                errors = ", ".join(f"{name} ±{three_digits(error)}" for name, error in one.expected_error.items())
                shown = "" if one.shown_from is None else f", groups from {one.shown_from:,} persons"
                texts.append(f"{one.limit:,}{' (now)' if one.now else ''}: {errors or 'no error is known'}{shown}")
        lines.append(f"{option} = {'; '.join(texts)}")
    if lines:
        option, _, limit = lines[0].partition(":")[0].partition(" = ")
        written = f"{option} = {limit.removesuffix(' (now)')}"
        lines.append(f"a limit is written SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({written}) …")
    return lines
