"""An attacker with sessions that go on for days: a stream's releases, questions, repeats and what is made of answers.

As in `test_sessions` each group has persons of its own, so one session on two tables that differ in one person of each
group is as many sessions on neighbours. What is said beside the numbers must be the same; and no event of the numbers
of a group may tell the neighbours apart by more than what was charged for these: no event of the stream's releases by
more than its μ, and none of all numbers by more than all charges together. The stream is (ε, δ(ε))-DP for each ε, so
with the ε of the questions added the session is (ε + theirs, δ(ε))-DP.

That he finds what he looks for is tried on wrong streams.
"""

from __future__ import annotations

import csv
import datetime
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from numpy.typing import NDArray

import discreet
from discreet.audit.bound import epsilon_bound, mu_bound
from discreet.audit.exact import gaussian_delta
from discreet.ledger import TOTAL
from discreet.mechanisms import Gaussian
from discreet.trusted.ring_a.loss import GaussianLoss
from discreet.trusted.ring_c import continual
from kinds import some
from stream_tools import advance

CELLS, PARTS = 1_000, "abcd"
GROUPS = CELLS * len(PARTS)
DAYS = 4
MISS = 1e-6
START = datetime.date(2026, 1, 1)
DECLARATION = f"""[budget]
epsilon = 4.0
delta = 0.2

[tables.people]
source = "people.csv"
one_row_per_person = true
[tables.people.columns]
cell = {{ type = "integer", min = 0, max = {CELLS - 1}, nulls = false }}
part = {{ type = "text", values = {list(PARTS)}, nulls = false }}

[tables.visits]
source = "visits.csv"
person = "patient"
rows_per_person = 4
groups_per_person = 1
[tables.visits.columns]
patient = {{ type = "text" }}
day = {{ type = "date" }}
cell = {{ type = "integer", min = 0, max = {CELLS - 1}, nulls = false }}
part = {{ type = "text", values = {list(PARTS)}, nulls = false }}

[streams.daily]
table = "visits"
date = "day"
keys = ["cell", "part"]
start = {START}
every = "1 day"
horizon = {DAYS}
rows_per_period = 1
periods_per_person = 2
epsilon = 1.0
delta = 0.05
key = "keys/daily.key"
"""
EACH = "SELECT cell, part, COUNT(*) AS n FROM people GROUP BY cell, part"
SESSION: list[tuple[int, list[tuple[str, str]]]] = [
    (
        1,
        [
            (EACH, "0.1"),
            (EACH, "0.1"),
            ("SELECT COUNT(*) AS n FROM people WHERE part = 'a' AND cell IN (3, 4)", "0.01"),
        ],
    ),
    (2, [("SELECT cell, part, COUNT(DISTINCT patient) AS n FROM visits GROUP BY cell, part", "0.1")]),
    (4, [(EACH.replace(" n ", " m "), "0.1"), ("SELECT COUNT(*) AS n FROM people WHERE cell > 9", "9")]),
]
"""How many periods are over, and what is asked then; a process of its own each time, and rows that grow."""
QUESTIONS = 0.3
"""What the questions cost: all others are free or refused."""
OTHERS = (2, 0, 0, 0)
"""Rows of each group without the person, by the day on which they come; the person has one on each day."""
Numbers = NDArray[numpy.float64]


def _write(folder: Path, over: int, *, without: bool) -> None:
    with (folder / "people.csv").open("w", newline="") as people, (folder / "visits.csv").open("w", newline="") as file:
        who, visits = csv.writer(people), csv.writer(file)
        who.writerow(["cell", "part"])
        visits.writerow(["patient", "day", "cell", "part"])
        for cell, part in itertools.product(range(CELLS), PARTS):
            for number in range(3 - without):
                who.writerow([cell, part])
                for day in range(over if number == 2 else 1):
                    visits.writerow([f"{cell} {part} {number}", START + datetime.timedelta(day), cell, part])


def _session(folder: Path, *, without: bool) -> tuple[list[Any], Numbers, discreet.streams.stream.Stream]:
    """What is to be the same for everybody; of each group its noisy numbers; and the stream."""
    (folder / "keys").mkdir(parents=True)
    (folder / "clinic.toml").write_text(DECLARATION)
    said: list[Any] = []
    asked: list[list[int]] = []
    for over, questions in SESSION:
        _write(folder, over, without=without)
        with discreet.open(folder / "clinic.toml") as curator:
            curator.refresh()
            stream = curator.stream("daily")
            released = advance(curator, stream, over)
            assert advance(curator, stream, over) == released
            latest = stream.latest(1)
            said.append(({high - low for one in latest.intervals for low, high in one.values()}, latest.columns))
            for text, epsilon in questions:
                said.append(str(curator.explain(text, epsilon=epsilon)))
                try:
                    release = curator.ask(text, epsilon=epsilon)
                except discreet.BudgetError as error:
                    said.append(str(error))
                    continue
                said.append((dict(release.charged), tuple(release.bounds), str(release.cost)))
                if len(release) == GROUPS and release.charged:
                    asked.append([row[release.columns[-1]] for row in release.rows])
            said.append([(one.kind, one.question, one.loss, one.status) for one in curator.ledger.entries()])
            said.append(curator.ledger.filter(TOTAL).spent)
    return said, numpy.array([*released, *asked], dtype=float).T, stream


def _found(folder: Path) -> str:
    """What the attacker finds; empty where nothing."""
    (said, one, stream), (other, two, _) = (_session(folder / str(out), without=out) for out in (False, True))
    whole: continual.Continual = stream._priced.whole
    charged = [entry[2] for entry in said[-2] if entry[0] == "reserve"]
    assert sum(float(loss.pure) for loss in charged if loss.pure is not None) == pytest.approx(QUESTIONS)
    if repr(said) != repr(other):
        return "what is said differs"
    mu, half = float(whole.loss.mu), GROUPS // 2
    claims = [(QUESTIONS + epsilon, gaussian_delta(mu, epsilon)) for epsilon in (0.0, 0.5, 1.0, 2.0, 3.0)]

    def beyond(hits: list[int], size: int, miss: float, *, alone: bool) -> float:
        """By how much what is proved is above what was charged, for the stream alone or for all."""
        if alone:
            return mu_bound(*hits, size, 0, miss) - mu
        return max(epsilon_bound(*hits, size, delta, miss) - epsilon for epsilon, delta in claims)

    for alone in (True, False):
        tried = [
            (name, feature, at)
            for name, feature in _features(whole, alone=alone)
            for at in numpy.quantile(feature(numpy.concatenate([one, two])), numpy.arange(0.04, 1, 0.04))
        ]
        counts = [[int((feature(rows[:half]) >= at).sum()) for rows in (one, two)] for _, feature, at in tried]
        name, feature, at = tried[int(numpy.argmax([beyond(hits, half, MISS, alone=alone) for hits in counts]))]
        hits = [int((feature(rows[half:]) >= at).sum()) for rows in (one, two)]
        proved = beyond(hits, GROUPS - half, MISS / len(claims), alone=alone)
        if proved > 0:
            return f"{name}: {proved:.3g} more than was charged"
    return ""


def _features(whole: continual.Continual, *, alone: bool) -> Iterator[tuple[str, Callable[[Numbers], Numbers]]]:
    """What events are made of: each number of a group; how far its releases lie in the direction in which the person
    moves them, if he counts in two periods or in all; and that with the likelihood of what was asked."""
    sizes = numpy.array([[whole.column[t - s] if s <= t else 0 for s in range(DAYS)] for t in range(DAYS)], float)
    centre, sigma = sizes @ numpy.array(OTHERS), float(whole.sigma)
    for place in range(DAYS) if alone else range(DAYS, DAYS + 3):
        yield f"number {place}", lambda rows, place=place: rows[:, place]
    for counts in ((1, 1, 0, 0), (1, 1, 1, 1)):
        moved = sizes @ numpy.array(counts) / sigma
        weight = 0.0 if alone else 0.2
        yield (
            f"the direction of {counts}",
            lambda rows, moved=moved, weight=weight: (
                (rows[:, :DAYS] - centre) / sigma @ moved + weight * numpy.clip(rows[:, DAYS:] - 2, 0, 1).sum(axis=1)
            ),
        )


def test_a_session_with_a_stream_tells_no_more_than_was_charged(tmp_path: Path) -> None:
    """Of 4,000 sessions on each table."""
    assert _found(tmp_path) == ""


def _halved(patch: pytest.MonkeyPatch) -> None:
    real = Gaussian.release
    patch.setattr(Gaussian, "release", lambda own, exact: real(Gaussian(own.sigma / 2), exact))


def _forgets_persons(patch: pytest.MonkeyPatch) -> None:
    real: Any = continual.arrived
    patch.setattr(continual, "arrived", lambda memory, there, groups, rows, _: real(memory, there, groups, rows, DAYS))


def _charged_a_quarter(patch: pytest.MonkeyPatch) -> None:
    real = Gaussian.loss
    patch.setattr(Gaussian, "loss", lambda own, square: GaussianLoss(real(own, square).mu / 4))


CHANGES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "the noise of the stream is halved": _halved,
    "persons count in more periods than are declared": _forgets_persons,
    "the stream is charged a quarter of its loss": _charged_a_quarter,
}


@pytest.mark.parametrize("wrong", some(CHANGES, pytest.mark.power))
def test_wrong_streams_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wrong: str) -> None:
    """The stream has μ = .75, and what is proved of it a deviation of .04: the first is found with ten of them to
    spare, the second, in which a person moves 1.6 times as much, with four, the third with six."""
    CHANGES[wrong](monkeypatch)
    assert _found(tmp_path) != ""
