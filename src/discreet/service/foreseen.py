"""What publishing a table would cost, what would be left, and how far off it would be: said before it begins, from the
declaration, the call and the ledger alone. No row is read, and nothing is spent."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

from discreet.accounting.balance import ends, percent_of
from discreet.curator import Curator
from discreet.ledger import TOTAL
from discreet.odds import best_guess
from discreet.service.accounts import Account
from discreet.service.jobs import publication_of

_SURE = NormalDist().inv_cdf(0.975)
"""Deviations of a normal distribution within which 95 of 100 draws lie."""


def foreseen(curator: Curator, account: Account, said: Mapping[str, Any]) -> dict[str, Any]:
    """The publication that a call says, as plain values.

    `columns` are those that will be in it, `found` those of them whose values are looked for among the rows, and
    `columns_left_out` says of the others why. `percent` is the part of the whole budget that it takes, or of that of
    the `part` whose rows alone it is of; `analyst` what it takes of the account of whoever asks, where that has one;
    where it `fits`, `after` says what it leaves.
    `expected_error` is in rows, at 95 % confidence: `value`, of the count of one value (or bin) of one column;
    `bounds`, what the table's own bound of an error comes to, half of the time or more, where there is no error: the
    finished rows are held against the real ones with noise. What columns are off together depends on the rows, and
    comes with the table. `steps` is how many measurements it has at most, `seconds` how long they take on the schedule
    of the service, None where it has none. Raises QuestionError.
    """
    from discreet.synthesis.bounds import DISTANCE

    given, call = publication_of(curator, said)
    loss, part = call.declared.loss, given.get("part")
    balance = curator.balance(account.asks_as or TOTAL, part)
    after = balance.after(loss)
    words = (after.left, ends(balance.total, after.total)) if after.alive else ()
    seconds = curator.declaration.limits.answer_seconds or None
    schedule = call.schedule
    least = NormalDist().inv_cdf(1 - 0.05 * DISTANCE)
    return {
        "table": call.table.name,
        "part": part,
        "columns": [*(one.column.name for one in call.columns), *(one.name for one, _ in call.sums)],
        "found": [one.column.name for one in call.columns if one.found],
        "columns_left_out": dict(call.left_out),
        "price": dict(call.cost),
        "percent": percent_of(balance.total, loss),
        "analyst": balance.account(loss),
        "fits": after.alive,
        "after": "; ".join(filter(None, words)),
        "odds": best_guess(loss),
        "expected_error": {
            "value": _SURE * float(schedule.single_sigma),
            "bounds": least * float(schedule.distance_sigma),
        },
        "rows_per_person": schedule.rows_per_person,
        "steps": call.steps,
        "seconds": None if seconds is None else call.steps * float(seconds),
    }
