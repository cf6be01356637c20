"""An analyst who plans with dynamic programming, on budgets guarded by the residue.

At every step the attacker knows the loss so far and the state, and takes the release that is best for the final event:
E[(1 − e^(ε − L))⁺] under the first table is the least δ at ε of the whole interaction. At the end all that is left goes
into one Gaussian release, which for an attacker without other moves reaches exactly the budget's δ. Wrong rules must
exceed it: the mutants below.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from discreet.trusted.ring_a.loss import DiscreteLaplace, Loss, Pure
from discreet.trusted.ring_b.further_losses import LaplaceLoss
from discreet.trusted.ring_b.gdp_filter import charge, opening
from kinds import some
from tight_oracles import float_curve

KIND = "exact"

Charge = Callable[[Loss, Fraction | None], Fraction | None]
Menu = list[tuple[Loss, list[tuple[int, float]]]]  # a release, and its losses in units of the lattice with their masses


def discrete(unit: float, half_steps: int, steps: int) -> tuple[Loss, list[tuple[int, float]]]:
    """Discrete Laplace noise whose losses are `half_steps` units apart, on a lattice of `unit`."""
    epsilon = Fraction(str(unit)) * half_steps * steps / 2
    q = float(np.exp(-float(epsilon) / steps))
    masses = [(steps, 1 / (1 + q)), (-steps, q**steps / (1 + q))]
    masses += [(steps - 2 * k, (1 - q) / (1 + q) * q**k) for k in range(1, steps)]
    return DiscreteLaplace(epsilon, steps), [(place * half_steps // 2, mass) for place, mass in masses]


def value(rule: Charge, menu: Menu, epsilon: float, unit: float, left: Fraction, depth: int) -> float:
    """The best attack's δ at ε."""
    widest = max(abs(place) for _, atoms in menu for place, _ in atoms)
    memory: dict[tuple[Fraction, int], np.ndarray] = {}

    def best(state: Fraction, rounds: int) -> np.ndarray:
        """For every loss so far, −size to size units."""
        if (state, rounds) in memory:
            return memory[state, rounds]
        size = widest * (depth - rounds)
        e = epsilon - unit * np.arange(-size, size + 1)
        found = float_curve(e, float(state) ** 0.5)
        for loss, atoms in menu if rounds else []:
            after = rule(loss, state)
            if after is None:
                continue
            later = best(after, rounds - 1)
            middle = widest * (depth - rounds + 1) - size
            moved = sum(mass * later[middle + place : middle + place + len(found)] for place, mass in atoms)
            found = np.maximum(found, moved)
        memory[state, rounds] = found
        return found

    return float(best(left, depth)[0])


def menus(seed: int) -> tuple[float, Menu]:
    """A lattice, and three or four kinds of release on it."""
    values = random.Random(seed)
    unit = values.choice([0.01, 0.02, 0.05])
    kinds = [discrete(unit, 2, 1), discrete(unit, 2 * values.randint(2, 5), 1)]
    kinds.append(discrete(unit, 2, values.randint(2, 5)))
    if values.random() < 0.5:
        kinds.append(discrete(unit, 2 * values.randint(3, 12), 1))
    return unit, kinds


@pytest.mark.parametrize("seed", some(range(12), pytest.mark.power, quick=2))
def test_no_adaptive_attack_exceeds_the_budget(seed: int) -> None:
    unit, menu = menus(seed)
    values = random.Random(seed)
    epsilon, delta = values.choice([(1.0, 1e-6), (0.1, 0.1), (1.0, 0.3), (3.0, 1e-4), (0.3, 0.05)])
    reached = value(charge, menu, epsilon, unit, opening(epsilon, delta), 6)
    assert reached <= delta * (1 + 1e-7)
    assert reached >= delta * 0.999  # the attacker can always use all of it


def test_a_long_game() -> None:
    menu = [discrete(0.1, 2, 1), discrete(0.1, 2, 3)]
    assert value(charge, menu, 1.0, 0.1, opening(1, "0.001"), 9) <= 0.001 * (1 + 1e-7)


def scaled(factor: Fraction) -> Charge:
    def rule(loss: Loss, left: Fraction | None) -> Fraction | None:
        after = charge(loss, left)
        return None if after is None or left is None else left - (left - after) * factor

    return rule


def for_continuous_noise(loss: Loss, left: Fraction | None) -> Fraction | None:
    """The wrong charge: the noise is discrete, with one step of sensitivity."""
    assert isinstance(loss, Pure)
    return charge(LaplaceLoss(loss.epsilon), left)


def never_dead(loss: Loss, left: Fraction | None) -> Fraction | None:
    """The wrong rule: what cannot be charged leaves the state as it is."""
    return charge(loss, left) or left


@pytest.mark.parametrize(
    ("rule", "unit", "sizes", "epsilon", "delta", "ratio"),
    [
        (scaled(Fraction(98, 100)), 0.1, (2, 6), 0.1, 0.1, 1.004),
        (scaled(Fraction(9, 10)), 0.1, (2, 6), 0.1, 0.1, 1.03),
        (for_continuous_noise, 0.1, (2, 6), 0.1, 0.1, 1.03),
        (for_continuous_noise, 0.2, (10,), 1.0, 0.3, 1.15),
        (never_dead, 0.1, (2, 6), 1.0, 0.001, 50.0),
    ],
)
def test_wrong_rules_are_caught(
    rule: Charge, unit: float, sizes: tuple[int, ...], epsilon: float, delta: float, ratio: float
) -> None:
    menu = [discrete(unit, size, 1) for size in sizes]
    left = opening(epsilon, delta)
    assert value(charge, menu, epsilon, unit, left, 8) <= delta * (1 + 1e-7)
    assert value(rule, menu, epsilon, unit, left, 8) > delta * ratio
