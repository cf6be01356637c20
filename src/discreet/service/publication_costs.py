"""What publishing a table would cost, what would be left, and how far off it would be: said before it begins, from the
declaration, the call and the ledger alone. No row is read, and nothing is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from discreet.accounting.balance import ends, percent_of
from discreet.curator import Curator
from discreet.ledger import TOTAL
from discreet.odds import best_guess
from discreet.service.accounts import Account
from discreet.service.jobs import call_of

if TYPE_CHECKING:
    from discreet.synthesis.publication import Publication
    from discreet.synthesis.related import RelatedTable

_SURE = NormalDist().inv_cdf(0.975)
"""Deviations of a normal distribution within which 95 of 100 draws lie."""


def foreseen(curator: Curator, account: Account, said: Mapping[str, Any]) -> dict[str, Any]:
    """The publication that a call says, of one table or of several, as plain values.

    `percent` is the part of the whole budget that it takes, or of that of the `part` whose rows alone it is of;
    `analyst` what it takes of the account of whoever asks, where that has one; where it `fits`, `after` says what it
    leaves. `steps` is how many measurements it has at most, `seconds` how long they take on the schedule of the
    service, None where it has none.

    Of each of its `tables`, `columns` are those that will be measured in it, `found` those of them whose values are
    looked for among the rows, and `columns_left_out` says of others why. `expected_error` is in rows, at 95 %
    confidence: `value`, of the count of one value (or bin) of one column, or where the table is measured `evenly` of
    its weight in persons, a person's rows weighing one together; `bounds`, what the table's own bound of an error comes
    to, half of the time or more, where there is no error: the finished rows are held against the real ones with noise.
    What columns are off together depends on the rows, and comes with the table. Raises QuestionError.
    """
    from discreet.synthesis.several import SeveralPublication

    given, call, each = call_of(curator, said)
    related = call.tables if isinstance(call, SeveralPublication) else (None,)
    loss, part = call.declared.loss, given.get("part")
    balance = curator.balance(account.asks_as or TOTAL, part)
    after = balance.after(loss)
    words = (after.left, ends(balance.total, after.total)) if after.alive else ()
    seconds = curator.declaration.limits.answer_seconds or None
    return {
        "tables": [_table(one, beside) for one, beside in zip(each, related, strict=True)],
        "part": part,
        "price": dict(call.cost),
        "percent": percent_of(balance.total, loss),
        "analyst": balance.account(loss),
        "fits": after.alive,
        "after": "; ".join(filter(None, words)),
        "odds": best_guess(loss),
        "steps": call.steps,
        "seconds": None if seconds is None else call.steps * float(seconds),
    }


def _table(one: Publication, related: RelatedTable | None) -> dict[str, Any]:
    from discreet.synthesis.bounds import DISTANCE

    schedule, evenly = one.schedule, related is not None and related.evenly
    least = NormalDist().inv_cdf(1 - 0.05 * DISTANCE)
    columns = one.columns if related is None else related.columns
    return {
        "table": one.table.name,
        "columns": [*(each.column.name for each in columns), *(each.name for each, _ in one.sums)],
        "found": [each.column.name for each in columns if each.found],
        "columns_left_out": dict(one.left_out),
        "expected_error": {
            "value": _SURE * float(schedule.single_sigma) / (schedule.moved if evenly else 1),
            "bounds": least * float(schedule.distance_sigma),
        },
        "evenly": evenly,
        "rows_per_person": schedule.rows_per_person,
    }


def related_tables(curator: Curator, names: Sequence[str]) -> list[dict[str, Any]]:
    """Of each of several tables that are published together: its `columns`, and those `left_out` and why; the tables
    `below`, whose rows refer to its rows; which columns are `keys`, made anew; and how many rows of a person count at
    most. Raises QuestionError where they do not go together."""
    from discreet.synthesis.several import together

    return [
        {
            "table": one.table.name,
            "columns": [*(each.column.name for each in one.columns), *(each.name for each, _ in one.sums)],
            "left_out": dict(one.left_out),
            "below": list(one.below),
            "keys": [each.name for each in one.table.columns if each.name in (*one.keys, one.reference)],
            "rows_per_person": one.rows,
        }
        for one in together(curator.declaration, names)
    ]
