"""What limits bought once are worth: the error of COUNT(*) and of SUM as declared, by a profile, at the best limits.

And that of published tables, with as many rows a person as declared, or as a profile proposes."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pandas

import discreet
from bench.tables import away, shares
from discreet.curator.options import AskOptions
from discreet.plan.measurement import Price
from discreet.plan.profile import Histogram, Wanted

PERSONS, LARGEST, SHARES, DRAWS = 500_000, 16_384, ("0.05", "0.0125"), 40
"""Heavy tails, and what a histogram gets where one, or four, share a profile of ε .05."""


def error(rows: np.ndarray, limit: int, epsilon: float) -> float:
    """E|left out + noise| of a count at a limit."""
    left, noise = float(np.maximum(rows - limit, 0).sum()), limit / epsilon
    return left + noise * math.exp(-left / noise)


def figures() -> list[tuple[str, float]]:
    """Over the error at the best limit, chosen in hindsight; of profiles the median of several."""
    random = np.random.default_rng(5)
    rows = np.floor((1 - random.random(PERSONS)) ** (-1 / 1.5)).astype(np.int64)
    exact = np.bincount(np.log2(np.minimum(rows, LARGEST)).astype(int))
    found = []
    for epsilon in (0.01, 0.1, 1.0):
        limits = [2**power for power in range(15)]
        best = min(error(rows, limit, epsilon) for limit in limits)
        for declared in (20, 200, LARGEST):
            found.append((f"ε {epsilon:g}, declared {declared:,}", error(rows, declared, epsilon) / best))
        for share in map(Fraction, SHARES):
            errors = []
            for _ in range(DRAWS):
                noisy = exact + random.laplace(0, float(1 / share), len(exact)).round().astype(np.int64)
                buckets = tuple(range(65, 65 + len(exact)))
                known = Histogram(Wanted("rows"), buckets, tuple(noisy.tolist()), 1 / share, Fraction(LARGEST))

                def expected(limit: int, known: Histogram = known, epsilon: float = epsilon) -> float:
                    left = known.beyond(limit)
                    return left + limit / epsilon * math.exp(-left * epsilon / limit)

                errors.append(error(rows, min(known.limits(), key=expected), epsilon))
            found.append((f"ε {epsilon:g}, a profile at ε {float(share):g}", float(np.median(errors)) / best))
    return found


BUYERS, ROWS, MOST_PAID, PROFILES = 100_000, 200, 10_000, 7
"""Persons with purchases; what their owner declares of rows and amounts; and how many profiles are drawn."""


def sums(paid: str = "0.05") -> Iterator[tuple[str, float]]:
    """The mean error of SUM(amount), in per cent of the sum: as declared, by a profile bought at this price (the median
    of several), and at the best of all limits, which nobody knows. Rows and amounts have heavy tails."""
    random = np.random.default_rng(5)
    rows = np.minimum(np.floor((1 - random.random(BUYERS)) ** (-1 / 1.5)), 2_000).astype(np.int64)
    person = np.repeat(np.arange(BUYERS), rows)
    amount = np.floor(np.exp(random.normal(3, 1.2, len(person)))).astype(np.int64)
    whole = float(amount.sum())

    def error(most: int, largest: int, epsilon: float) -> float:
        """Of noise, and what is left out on average over which rows of a person count."""
        kept = np.minimum(amount, largest) * np.minimum(1.0, most / rows)[person]
        left, noise = whole - float(kept.sum()), most * largest / epsilon
        return 100 * (left + noise * math.exp(-left / noise)) / whole

    table = discreet.Table(
        pandas.DataFrame({"person": person, "amount": amount}),
        person="person",
        rows_per_person=ROWS,
        columns={
            "person": {"type": "integer", "nulls": False},
            "amount": {"type": "integer", "min": 0, "max": MOST_PAID, "nulls": False},
        },
    )
    prices = ("0.01", "0.1", "1")
    limits: dict[str, list[tuple[int, int]]] = {price: [] for price in prices}
    for _ in range(PROFILES):
        with discreet.Curator({"buys": table}, epsilon=10) as one:
            one.profile(epsilon=paid, columns=["amount"])
            checked = one._planner.one_table("SELECT SUM(amount) AS s FROM buys")
            one._prices.answers.read()
            for price in prices:
                chosen = one._measurements.at(checked, Price(Fraction(price)), AskOptions().account).plan.chosen
                assert chosen is not None
                bounds = {name: high for name, _, high in chosen.columns}
                limits[price].append((chosen.rows or ROWS, int(bounds.get("amount", MOST_PAID))))
    for price in prices:
        epsilon = float(price)
        tried = [(one, 2**power) for one in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 200) for power in range(2, 14)]
        best = min(error(*one, epsilon) for one in tried)
        yield f"ε {price}, as declared, {ROWS} rows and amounts to {MOST_PAID:,}", error(ROWS, MOST_PAID, epsilon)
        bought = [error(*one, epsilon) for one in limits[price]]
        yield f"ε {price}, by a profile at ε {paid}", statistics.median(bought)
        yield f"ε {price}, by the worst of {PROFILES} such profiles", max(bought)
        yield f"ε {price}, at the best limits", best


VISITORS, MOST_VISITS, PUBLISHED = 4_000, 100, 3
"""Persons with four visits each on average; what is declared; and how often it is published."""


def published(paid: str = "0.1") -> Iterator[tuple[str, float]]:
    """The mean error of the three pairs of columns of a published table at ε 1, as an ℓ1 distance of shares, and its
    rows over the real ones: as declared, and with what a profile at this price proposes for `rows_per_person`."""
    random = np.random.default_rng(1)
    visits = np.minimum(random.geometric(0.25, VISITORS), MOST_VISITS)
    frame = pandas.DataFrame({"person": np.repeat(np.arange(VISITORS), visits)})
    frame["ward"] = random.integers(0, 8, len(frame))
    frame["kind"] = random.choice(["visit", "call", "mail"], len(frame), p=[0.6, 0.3, 0.1])
    frame["day"] = np.where(random.random(len(frame)) < 0.7, frame.ward % 5, random.integers(0, 5, len(frame)))
    names = ["ward", "kind", "day"]

    def curator(most: int) -> discreet.Curator:
        table = discreet.Table(
            frame,
            person="person",
            rows_per_person=most,
            columns={
                "person": {"type": "integer", "nulls": False},
                "ward": {"type": "integer", "min": 0, "max": 7, "nulls": False},
                "kind": {"type": "text", "values": ["visit", "call", "mail"], "nulls": False},
                "day": {"type": "integer", "min": 0, "max": 4, "nulls": False},
            },
        )
        return discreet.Curator({"visits": table}, epsilon=10, delta=Fraction(1, 10**6))

    with curator(MOST_VISITS) as one:
        (line,) = one.profile(epsilon=paid).content["proposed"]
    for words, most in (
        ("declared", MOST_VISITS),
        (f"by a profile at ε {paid}", int(line.removeprefix("rows_per_person = "))),
    ):
        errors, rows = [], []
        for _ in range(PUBLISHED):
            with curator(most) as one:
                made = one.publish("visits", epsilon=1).to_pandas()
            for pair in itertools.combinations(names, 2):
                errors.append(away(shares(frame, *pair), shares(made, *pair)))
            rows.append(len(made) / len(frame))
        yield f"{most} rows a person, {words}: pairs", statistics.fmean(errors)
        yield f"{most} rows a person, {words}: rows over the real ones", statistics.fmean(rows)
