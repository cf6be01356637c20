"""An attacker with whole sessions: questions, repeats, answers from what is stored, and what is put together.

He knows all but whether one person is in the table, sees what was free, what was charged, what was refused, how wide it
prints, and every noisy number. Each cell has persons of its own, so a session on two tables that differ in one person
of each cell is as many independent sessions on neighbours: the numbers of a cell depend on its own persons and noise
alone. What is charged and printed beside the numbers must be the same; and of the numbers no event may tell the
neighbours apart by more than all charges together allow, by Clopper-Pearson bounds that are wrong once in 10^6.

That he finds what he looks for is tried on wrong versions of the curator.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pandas
import pytest
from numpy.typing import NDArray

import discreet
from discreet.accounting import Batch, DiscreteLaplace
from discreet.audit.bound import epsilon_bound
from discreet.curator.lookup import Lookup
from discreet.errors import BudgetError
from discreet.ledger import TOTAL
from discreet.mechanisms import Laplace
from discreet.trusted.ring_a.gate import Door
from kinds import some

CELLS = 500
MISS = 1e-6
HALF = "SELECT cell, COUNT(*) AS n FROM t WHERE half = '{}' GROUP BY cell"
SESSION = [
    (HALF.format("a"), "1", None),  # all cells of both halves are measured
    (HALF.format("a"), "1", None),
    (HALF.format("b"), "1.5", "r"),  # what is missing is bought
    (HALF.format("b"), "1.5", "r"),
    (HALF.format("b"), "1.5", None),
    ("SELECT half, cell, COUNT(*) AS n FROM t GROUP BY half, cell", "0.1", None),  # free, from what was seen
    ("SELECT COUNT(*) AS n FROM t WHERE half = 'b' AND cell IN (3, 4)", "0.05", None),
    ("SELECT COUNT(*) AS n FROM t WHERE cell > 3", "7", None),  # refused
]
Numbers = NDArray[numpy.float64]


def _table(*, without: bool) -> discreet.Table:
    """Two persons in each cell; `without` one of them."""
    kept = [(cell, half) for cell in range(CELLS) for half in "ab" for _ in range(2 - without)]
    return discreet.Table(
        pandas.DataFrame(kept, columns=["cell", "half"]),
        one_row_per_person=True,
        columns={
            "cell": {"type": "integer", "min": 0, "max": CELLS - 1, "nulls": False},
            "half": {"values": ["a", "b"], "nulls": False},
        },
    )


def _session(table: discreet.Table) -> tuple[list[Any], float, Numbers]:
    """What is to be the same for everybody; the ε charged; and of each cell its noisy numbers, in their order."""
    said: list[Any] = []
    columns: list[list[float]] = []
    with discreet.Curator({"t": table}, epsilon=3) as curator:
        for text, epsilon, request in SESSION:
            explained = curator.explain(text, epsilon=epsilon)
            try:
                release = curator.ask(text, epsilon=epsilon, request=request)
            except BudgetError as error:
                said.append(str(error))
                continue
            widths = {high - low for low, high in (row["n"] for row in release.intervals)}
            said.append((str(explained), dict(release.charged), widths, tuple(release.bounds), release.used))
            values = [row["n"] for row in release.rows]
            columns += [values[place : place + CELLS] for place in range(0, len(values) - CELLS + 1, CELLS)]
        charged = float(curator.ledger.filter(TOTAL).spent.pure)
    return said, charged, numpy.array(columns, dtype=float).T


def _found(runs: int) -> str:
    """What the attacker finds in so many sessions on each table; empty where nothing."""
    tables = [_table(without=without) for without in (False, True)]
    sessions = [[_session(table) for table in tables] for _ in range(runs)]
    first = sessions[0][0]
    assert "instead of ε 1.5: put together with 1 earlier answer" in repr(first[0])
    if any(said != first[0] for pair in sessions for said, _, _ in pair):
        return "what is said differs"
    one, two = (numpy.concatenate([pair[which][2] for pair in sessions]) for which in (0, 1))
    half = len(one) // 2
    events = [
        lambda rows, of=of, at=at: of(rows) >= at for of in _features(one.shape[1]) for at in numpy.arange(-1, 4.1, 0.5)
    ]
    bounds = [
        epsilon_bound(int(event(one[:half]).sum()), int(event(two[:half]).sum()), half, 0, MISS) for event in events
    ]
    best = events[int(numpy.argmax(bounds))]
    proved = epsilon_bound(int(best(one[half:]).sum()), int(best(two[half:]).sum()), len(one) - half, 0, MISS)
    return f"ε {proved:.3g} where {first[1]:.3g} was charged" if proved > first[1] else ""


def _features(count: int) -> Iterator[Callable[[Numbers], Numbers]]:
    """What events are made of: each number of a cell, and the lesser of two. The numbers of the session: 0, 1 what was
    bought first, of half a; 2, 3, 4 the mean, of half b; 5, 6 what was bought then, of half a and of half b."""
    assert count == 7
    for place in range(count):
        yield lambda rows, place=place: rows[:, place]
    yield lambda rows: numpy.minimum(rows[:, 0], rows[:, 5])
    yield lambda rows: numpy.minimum(rows[:, 2], rows[:, 6])
    yield lambda rows: numpy.minimum((rows[:, 2] - 0.692 * rows[:, 6]) / 0.308, rows[:, 6])


def test_a_whole_session_tells_no_more_than_was_charged() -> None:
    """Of 1,000 sessions on each table; `test_more_sessions_tell_no_more` goes through more."""
    assert _found(2) == ""


@pytest.mark.power
def test_more_sessions_tell_no_more() -> None:
    assert _found(12) == ""


def _of_stored(mechanism: Any) -> bool:
    """Whether it is the noise of what is stored at first, of scale 1."""
    return isinstance(mechanism, Laplace) and mechanism.scale == 1


def _stored_exactly(patch: pytest.MonkeyPatch) -> None:
    real = Laplace.release
    patch.setattr(Laplace, "release", lambda own, exact: list(exact) if _of_stored(own) else real(own, exact))


def _halved_in_what_is_bought(patch: pytest.MonkeyPatch) -> None:
    real = Laplace.release
    patch.setattr(
        Laplace, "release", lambda own, exact: real(own if _of_stored(own) else Laplace(own.scale / 2), exact)
    )


def _charged_a_third(patch: pytest.MonkeyPatch) -> None:
    real = Door._priced

    def priced(door: Door, measured: Any) -> Any:
        loss = real(door, measured)
        if _of_stored(measured.measurement.mechanisms[0]):
            return loss
        return Batch(tuple(DiscreteLaplace(one.epsilon / 3, one.sensitivity) for one in loss.parts))

    patch.setattr(Door, "_priced", priced)


def _free_by_number(exact: bool) -> Callable[[pytest.MonkeyPatch], None]:
    """Whether a question is free follows from what its noisy numbers add up to, or from how many rows there are."""

    def change(patch: pytest.MonkeyPatch) -> None:
        real: Any = Lookup._found_as

        def found(lookup: Any, asked: Any, options: Any, **named: Any) -> Any:
            one = real(lookup, asked, options, **named)
            if one is None or one.look is None:
                return one
            kept = json.loads(lookup.ledger.answer(one.key, options.account))
            total = sum(kept["parts"][0][0])
            return None if (total > 3 * CELLS if exact else total % 2) else one

        patch.setattr(Lookup, "_found_as", found)

    return change


CHANGES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "what is stored is exact": _stored_exactly,
    "the noise of what is bought is halved": _halved_in_what_is_bought,
    "what is bought is charged a third of its loss": _charged_a_third,
    "noise decides what is free": _free_by_number(exact=False),
    "rows decide what is free": _free_by_number(exact=True),
}
RUNS = (2, 14, 12, 12, 1)
"""How many sessions on each table find each of these. Of ten tries each, the second and the third were found with six
deviations to spare; the fourth is missed where 24 coins fall alike."""


@pytest.mark.parametrize(("wrong", "runs"), some(zip(CHANGES, RUNS, strict=True), pytest.mark.power))
def test_wrong_curators_are_found(monkeypatch: pytest.MonkeyPatch, wrong: str, runs: int) -> None:
    CHANGES[wrong](monkeypatch)
    assert _found(runs) != ""
