"""Running totals over days: the deviation of the noise on the last total, beside other ways to spend the same budget.

In units of one release at the whole budget. Fresh noise each day shares the budget over all days; the binary tree
(Dwork, Naor, Pitassi & Rothblum 2010; Chan, Shi & Song 2011) has a noisy count in each node, and adds up the nodes of a
total: of the totals so far, the worst. A person adds something in one day, or in 7 or 30.
"""

from __future__ import annotations

import math

from discreet.streams.estimates import StreamEstimates
from discreet.trusted.ring_c.factorisation import BITS, coefficients, squared_sensitivity

HORIZONS = (30, 365, 3_650)


def figures() -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for horizon in HORIZONS:
        column = coefficients(horizon)
        levels = horizon.bit_length()
        worst = max(total.bit_count() for total in range(1, horizon + 1))
        for days in (1, 7, 30):
            sigma = math.sqrt(squared_sensitivity(column, 1, days))
            ours = StreamEstimates(column, sigma)
            who = f"total of day {horizon:,}, a person in {days} day{'s' if days > 1 else ''}"
            found.append((f"{who}: fresh noise each day", math.sqrt(horizon) * days))
            if days == 1:
                found.append((f"{who}: binary tree, at worst", math.sqrt(levels * worst)))
            found.append((f"{who}: square root", float(ours.deviations(horizon, None)[-1])))
        ours = StreamEstimates(column, math.sqrt(squared_sensitivity(column, 1, 1)))
        for periods in (1, 7, 28):
            last = float(ours.deviations(horizon, periods)[-1])
            found.append((f"the last {periods} of {horizon:,} days: square root", last))
    return found


if __name__ == "__main__":
    print(f"lattice of 2^-{BITS}")
    for name, value in figures():
        print(f"{name:<72} {value:>12,.4g}")
