"""How many questions a budget admits, how long a charge takes, and what composing and calibrating cost.

The other libraries are measured in the same run where they can be imported; nothing depends on them.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from time import perf_counter
from types import ModuleType
from typing import Any

from discreet.accounting.room import times
from discreet.reference.calibrate import gaussian_sigma, laplace_epsilon, subsampled_sigma
from discreet.trusted.ring_a.curves import mu_of_pure
from discreet.trusted.ring_a.exact import exp_bounds, normal_cdf_bounds
from discreet.trusted.ring_a.loss import DiscreteLaplace, GaussianLoss, Loss, Pure
from discreet.trusted.ring_b.further_losses import LaplaceLoss, SubsampledGaussian
from discreet.trusted.ring_b.gdp_filter import _kept, charge, opening
from discreet.trusted.ring_c.batch import compose

BUDGETS = ((1, "0.01"), (1, "0.1"), (3, "0.1"), (3, "0.05"), (10, "0.1"))
DELTA = "1e-6"
ROUNDS = 5


def importable(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def seconds(task: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The best of a few rounds."""
    taken = []
    for _ in range(rounds):
        start = perf_counter()
        task()
        taken.append(perf_counter() - start)
    return min(taken)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The least over orders of e^((a−1)(aρ−ε))·(1−1/a)^a/(a−1) (Canonne, Kamath & Steinke 2020)."""
    low, high = 1 + 1e-9, (epsilon + 1) / (2 * rho) + 2
    for _ in range(100):
        order = (low + high) / 2
        low, high = (order, high) if (2 * order - 1) * rho - epsilon + math.log1p(-1 / order) < 0 else (low, order)
    return math.exp((low - 1) * (low * rho - epsilon) + low * math.log1p(-1 / low)) / (low - 1)


def last(fits: Callable[[int], bool]) -> int:
    """The largest count that fits, if all smaller ones do."""
    high = 1
    while fits(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def advanced(each: float, epsilon: int, count: int) -> bool:
    """Whitehouse, Ramdas, Rogers & Wu 2023: √(2 ln(1/δ)·Σε²) + Σε²/2 ≤ ε."""
    squares = count * each * each
    return math.sqrt(2 * math.log(1 / float(DELTA)) * squares) + squares / 2 <= epsilon


def concentrated(each: float, epsilon: int, count: int) -> bool:
    """The zCDP filter with the tight conversion; ρ of Laplace noise is ε + e^(−ε) − 1 (Harrison & Manurangsi 2026)."""
    return zcdp_delta(count * (each + math.exp(-each) - 1), epsilon) <= float(DELTA)


def declared(each: Fraction, epsilon: int, count: int) -> bool:
    return compose({LaplaceLoss(each): count}).epsilon(DELTA) <= epsilon


def admitted() -> list[tuple[str, int, int, int, int, int, int, int]]:
    """Laplace releases one by one by each rule, discrete ones of one step by ours, and those of one declared batch."""
    found = []
    for epsilon, each in BUDGETS:
        exact, left = Fraction(each), opening(epsilon, DELTA)
        found.append(
            (
                f"({epsilon}, {DELTA}) by Laplace({each})",
                int(epsilon / exact),
                last(partial(advanced, float(exact), epsilon)),
                last(partial(concentrated, float(exact), epsilon)),
                int(left / mu_of_pure(exact) ** 2),
                times(DiscreteLaplace(exact, 1), left),
                times(LaplaceLoss(exact), left),
                last(partial(declared, exact, epsilon)),
            )
        )
    return found


def forget() -> None:
    for memory in (_kept, exp_bounds, normal_cdf_bounds):
        memory.cache_clear()


def first(loss: Pure, opened: Fraction) -> None:
    forget()
    charge(loss, opened)


def whole(loss: Pure, opened: Fraction) -> None:
    forget()
    left: Fraction | None = opened
    while left is not None:
        left = charge(loss, left)


def latency() -> list[tuple[str, float]]:
    """Milliseconds a charge: the first of a kind, the mean of a whole budget, and after many entries."""
    figures = []
    opened = opening(1, DELTA)
    kinds: list[tuple[str, Pure]] = [("Laplace(0.01)", LaplaceLoss("0.01"))]
    kinds += [(f"DiscreteLaplace(0.01, {n})", DiscreteLaplace(Fraction(1, 100), n)) for n in (1, 73, 2**20)]
    for name, loss in kinds:
        figures.append((f"{name}, the first charge, ms", 1e3 * seconds(partial(first, loss, opened))))
        mean = seconds(partial(whole, loss, opened), 2) / times(loss, opened)
        figures.append((f"{name}, the mean of a whole budget, ms", 1e3 * mean))
    small = LaplaceLoss("0.0001")
    after = charge(small, opened)
    assert after is not None
    for entries in (10, 1_000_000):
        state = opened - entries * (opened - after)
        figures.append((f"a charge after {entries} entries, ms", 1e3 * seconds(partial(charge, small, state))))
    return figures


def compositions() -> list[tuple[str, float, float]]:
    """For each task and program: the ε at δ = 10^−6 that it states, and its seconds."""
    cases: list[tuple[str, dict[Loss, int]]] = [
        ("1000 x Laplace(0.01)", {LaplaceLoss("0.01"): 1000}),
        ("1000 x Gauss(50)", {GaussianLoss(Fraction(1, 50)): 1000}),
        ("50 x Laplace(0.05), 50 x Gauss(30)", {LaplaceLoss("0.05"): 50, GaussianLoss(Fraction(1, 30)): 50}),
        ("1000 steps of SGD, sigma 1.1, rate 0.01", {SubsampledGaussian("1.1", "0.01", 1000): 1}),
    ]
    figures = []
    for name, losses in cases:
        figures.append((f"{name}: ours", spent(losses), seconds(partial(spent, losses))))
        low, _ = compose(losses).epsilon_bounds(DELTA)
        figures.append((f"{name}: ours, both bounds, the lower", low, seconds(partial(both, losses))))
        figures += [(f"{name}: {program}", *figure) for program, figure in theirs(name).items()]
    different: dict[Loss, int] = {LaplaceLoss(Fraction(1000 + k, 10**6)): 1 for k in range(0, 9000, 9)}
    figures.append(("1000 different Laplace: ours", *timed(partial(spent, different))))
    return figures


def spent(losses: dict[Loss, int]) -> float:
    return compose(losses).epsilon(DELTA)


def both(losses: dict[Loss, int]) -> tuple[float, float]:
    return compose(losses).epsilon_bounds(DELTA)


def theirs(name: str) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    if importable("dp_accounting") is not None:
        pld = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
        for interval in (1e-3, 1e-4):
            found[f"dp-accounting {interval:g}"] = timed(partial(google, name, pld, interval))
    if (prv := importable("prv_accountant")) is not None and "SGD" not in name:
        found["prv-accountant 0.01"] = timed(partial(microsoft, name, prv))
    return found


def timed(task: Callable[[], float]) -> tuple[float, float]:
    start = perf_counter()
    value = task()
    return value, perf_counter() - start


def google(name: str, pld: ModuleType, interval: float) -> float:
    """Its pessimistic estimate."""

    def laplace(epsilon: float, count: int) -> Any:
        return pld.from_laplace_mechanism(1 / epsilon, value_discretization_interval=interval).self_compose(count)

    def gaussian(sigma: float, count: int, rate: float = 1.0) -> Any:
        one = pld.from_gaussian_mechanism(sigma, value_discretization_interval=interval, sampling_prob=rate)
        return one.self_compose(count)

    composed = {
        "1000 x Laplace(0.01)": lambda: laplace(0.01, 1000),
        "1000 x Gauss(50)": lambda: gaussian(50, 1000),
        "50 x Laplace(0.05), 50 x Gauss(30)": lambda: laplace(0.05, 50).compose(gaussian(30, 50)),
        "1000 steps of SGD, sigma 1.1, rate 0.01": lambda: gaussian(1.1, 1000, 0.01),
    }[name]()
    return float(composed.get_epsilon_for_delta(float(DELTA)))


def microsoft(name: str, prv: ModuleType) -> float:
    """The upper end of its bracket."""
    variables = {
        "1000 x Laplace(0.01)": ([prv.LaplaceMechanism(mu=0.01)], [1000]),
        "1000 x Gauss(50)": ([prv.GaussianMechanism(noise_multiplier=50.0)], [1000]),
        "50 x Laplace(0.05), 50 x Gauss(30)": (
            [prv.LaplaceMechanism(mu=0.05), prv.GaussianMechanism(noise_multiplier=30.0)],
            [50, 50],
        ),
    }[name]
    accountant = prv.PRVAccountant(
        prvs=variables[0], max_self_compositions=variables[1], eps_error=0.01, delta_error=1e-10
    )
    return float(accountant.compute_epsilon(delta=float(DELTA), num_self_compositions=variables[1])[2])


def calibrations() -> list[tuple[str, float, float]]:
    """What is found for (1, 10^−6), and the seconds it takes."""
    return [
        ("sigma of 1000 Gaussian releases", *timed(lambda: float(gaussian_sigma(1, DELTA, 1000)))),
        ("epsilon of each of 100 Laplace releases", *timed(lambda: float(laplace_epsilon(1, DELTA, 100)))),
        ("epsilon of each of 1000 Laplace releases", *timed(lambda: float(laplace_epsilon(1, DELTA, 1000)))),
        ("sigma of 1000 steps of SGD, rate 0.01", *timed(lambda: float(subsampled_sigma(1, DELTA, "0.01", 1000)))),
    ]


def main() -> None:
    columns = ("sum", "advanced", "zCDP", "Gaussian", "ours, discrete", "ours", "one batch")
    print(f"{'questions admitted':<34}" + "".join(f"{column:>15}" for column in columns))
    for name, *counts in admitted():
        print(f"{name:<34}" + "".join(f"{count:>15}" for count in counts))
    for title, figures in (("epsilon, seconds", compositions()), ("calibrated, seconds", calibrations())):
        print(f"\n{title}")
        for name, value, taken in figures:
            print(f"  {name:<62} {value:>14.7f} {taken:>9.4f}")
    print("\ncharges")
    for name, value in latency():
        print(f"  {name:<62} {value:>9.4f}")


if __name__ == "__main__":
    main()
