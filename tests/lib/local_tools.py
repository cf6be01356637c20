"""What the tests of local collections share: scripted randomness, and respondents by the thousand."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import BudgetError
from discreet.local import Client, Collection, Collector, Report
from discreet.local.channels import Projective, Response
from discreet.local.draws import fresh
from discreet.local.report import randomised
from discreet.trusted.ring_a.bits import SystemWords

WINDOW = "2026-11"
SMALL = [
    Response(2, (3, 1)),
    Response(5, (7, 2)),
    Projective(7, (3, 1), 2, 3),
    Projective(12, (5, 2), 3, 3),
    Projective(15, (3, 1), 2, 4),
    Projective(20, (4, 3), 5, 3),
]


class Places:
    """Instead of randomness: the next numbers of a list."""

    def __init__(self, *values: int) -> None:
        self.values = list(values)

    def big(self, bits: int) -> int:
        return self.values.pop(0) if bits else 0


def channel_of(draw: Callable[[Any], int], wholes: Sequence[int]) -> dict[int, Fraction]:
    """The distribution of a draw that takes one uniform number below each of `wholes`."""
    found: Counter[int] = Counter()
    cases = [[]]
    for whole in wholes:
        cases = [[*case, value] for case in cases for value in range(whole)]
    for case in cases:
        found[draw(Places(*case))] += 1
    return {report: Fraction(count, len(cases)) for report, count in found.items()}


def collected(collection: Collection, answers: Sequence[object], public: Sequence[dict[str, str]] = ()) -> list[Report]:
    """A report of each answer, each of a respondent of its own."""
    reports = []
    for place, answer in enumerate(answers):
        token, part, report = randomised(collection, os.urandom(32), WINDOW, answer, fresh())
        extra = public[place] if public else {}
        reports.append(Report(collection.hash, WINDOW, token, part, report, extra))
    return reports


def collector(collection: Collection, folder: Path, answers: Sequence[object] = (), **more: Any) -> Collector:
    found = Collector(collection, folder / "reports.duckdb")
    if answers:
        found.add(collected(collection, answers, **more))
    return found


def draws(weights: Sequence[int], count: int, runs: int) -> np.ndarray:
    """How often each report comes in each of some runs, of `count` reports from a channel's row, drawn in bulk.

    For statistics of estimates only: its numbers are doubles.
    """
    seed = SystemWords().big(128)
    chances = np.array(weights, float)
    return np.random.default_rng(seed).multinomial(count, chances / chances.sum(), runs)


def spend_all(path: str, results: multiprocessing.Queue[int]) -> None:
    """In a process of its own: how many reports a client may still make."""
    fine = Collection("fine", "How?", ["a", "b"], epsilon=1, each="0.1", cap=3)
    given = 0
    with Client(fine, path, cap=2) as client:
        for _ in range(30):
            try:
                client.report("a")
                given += 1
            except BudgetError:
                break
    results.put(given)
