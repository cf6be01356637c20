"""How fast noise is drawn, against OpenDP's vector samplers in the same run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from time import perf_counter

import opendp.prelude as dp

from discreet.noise import discrete_laplace, rounded_gaussian

WIDTHS = (1, 10, 100, 1000)
CELLS = 1_000_000
THEIR_CELLS = 20_000
ROUNDS = 5


def rate(draw: Callable[[], object], cells: int) -> float:
    """Cells a second, the best of a few rounds after one that builds what is kept."""
    draw()
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        draw()
        times.append(perf_counter() - start)
    return cells / min(times)


def rates() -> list[tuple[str, float, float]]:
    """For each distribution and width: its name, our cells a second, and theirs."""
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    zeros = [0] * THEIR_CELLS
    pairs = (
        (
            "discrete Laplace, scale",
            discrete_laplace,
            partial(dp.m.make_laplace, domain, dp.l1_distance(T=int)),
        ),
        (
            "rounded Gaussian, sigma",
            rounded_gaussian,
            partial(dp.m.make_gaussian, domain, dp.l2_distance(T=int)),
        ),
    )
    found = []
    for (name, ours, make), width in product(pairs, WIDTHS):
        mine = rate(partial(ours, width, CELLS), CELLS)
        theirs = rate(partial(make(scale=float(width)), zeros), THEIR_CELLS)
        found.append((f"{name} {width}", mine, theirs))
    return found


def ratios() -> list[tuple[str, float]]:
    """How many times as many cells a second as OpenDP, by distribution and width."""
    return [(name, ours / theirs) for name, ours, theirs in rates()]


if __name__ == "__main__":
    for name, ours, theirs in rates():
        print(f"{name:>28}: {ours / 1e6:6.1f} M/s against {theirs / 1e6:6.3f} M/s, {ours / theirs:5.0f} times")
