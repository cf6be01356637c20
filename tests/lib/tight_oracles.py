"""Slow and plain computations that the tests compare with: mpmath, exact rationals, enumeration."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np

Atoms = list[tuple[mp.mpf, mp.mpf]]


def normal_tail(x):
    return mp.erfc(x / mp.sqrt(2)) / 2


def gaussian_curve(e, mu):
    """H at e^e of N(0, 1) against N(μ, 1)."""
    if mu == 0:
        return max(mp.mpf(0), 1 - mp.e**e)
    return normal_tail(e / mu - mu / 2) - mp.e**e * normal_tail(e / mu + mu / 2)


def lattice_atoms(epsilon: Fraction, steps: int) -> Atoms:
    """Losses and P-masses of discrete Laplace noise of scale steps/ε moved by `steps`, straight from its two tails."""
    epsilon = mp.mpf(epsilon.numerator) / epsilon.denominator
    q = mp.e ** (-epsilon / steps)
    scale = (1 - q) / (1 + q)
    inner = [(epsilon * (1 - mp.mpf(2 * k) / steps), scale * q**k) for k in range(1, steps)]
    return [(epsilon, 1 / (1 + q)), *inner, (-epsilon, q**steps / (1 + q))]


def laplace_atoms(epsilon: Fraction, cells: int, nodes: int = 8) -> Atoms:
    """Continuous Laplace noise; what lies between the ends by Gauss–Legendre rules."""
    epsilon = mp.mpf(epsilon.numerator) / epsilon.denominator
    places, weights = np.polynomial.legendre.leggauss(nodes)
    half = epsilon / cells
    atoms = [(epsilon, mp.mpf(1) / 2), (-epsilon, mp.e**-epsilon / 2)]
    for cell in range(cells):
        middle = -epsilon + (2 * cell + 1) * half
        for place, weight in zip(places.tolist(), weights.tolist(), strict=True):
            loss = middle + half * place
            atoms.append((loss, half * weight * mp.e ** ((loss - epsilon) / 2) / 4))
    return atoms


def composed_curve(atoms: Atoms, e, mu):
    """H at e^e of the atoms together with N(0, 1) against N(μ, 1)."""
    return mp.fsum(mass * gaussian_curve(e - loss, mu) for loss, mass in atoms)


def geometric_curve(shifts: tuple[int, ...], q: Fraction, x: Fraction) -> Fraction:
    """H_x, exactly, of independent discrete Laplace noises (mass ∝ q^|k|), each moved by its own shift."""
    pieces: dict[int, Fraction] = {0: Fraction(1)}  # mass under P, by the loss in units of −ln q
    for shift in filter(None, shifts):
        step: dict[int, Fraction] = {shift: 1 / (1 + q)}
        step[-shift] = step.get(-shift, Fraction(0)) + q**shift / (1 + q)
        for k in range(1, shift):
            step[shift - 2 * k] = step.get(shift - 2 * k, Fraction(0)) + (1 - q) / (1 + q) * q**k
        total: dict[int, Fraction] = {}
        for loss, mass in pieces.items():
            for more, factor in step.items():
                total[loss + more] = total.get(loss + more, Fraction(0)) + mass * factor
        pieces = total
    return sum((mass * max(Fraction(0), 1 - x * q**loss) for loss, mass in pieces.items()), Fraction(0))


def response_delta(epsilons: list[float], target: float) -> float:
    """δ at `target` of randomised responses together, by enumeration of the losses with multiplicities, 40 digits."""
    with mp.workdps(40):
        pieces = {(): mp.mpf(1)}
        distinct = sorted(set(epsilons))
        for epsilon in distinct:
            n, e = epsilons.count(epsilon), mp.mpf(epsilon)
            yes = mp.e**e / (1 + mp.e**e)
            pieces = {
                (*key, 2 * k - n): mass * mp.binomial(n, k) * yes**k * (1 - yes) ** (n - k)
                for key, mass in pieces.items()
                for k in range(n + 1)
            }
        losses = [
            (sum((c * mp.mpf(e) for c, e in zip(key, distinct, strict=True)), mp.mpf(0)), mass)
            for key, mass in pieces.items()
        ]
        return float(mp.fsum(mass * max(mp.mpf(0), 1 - mp.e ** (target - loss)) for loss, mass in losses))


def numbers(values, start: float, stop: float, count: int) -> list[float]:
    """Evenly spaced places between two ends, with a little unevenness drawn from `values`."""
    width = (stop - start) / count
    return [start + width * (k + values.random()) for k in range(count)]


def float_curve(e: np.ndarray, mu: float) -> np.ndarray:
    """The Gaussian curve in floating point, for the attacker."""
    from scipy.special import ndtr

    if mu <= 0:
        return np.maximum(0.0, -np.expm1(e))
    return ndtr(mu / 2 - e / mu) - np.exp(e) * ndtr(-mu / 2 - e / mu)


def response(epsilon: float) -> list[tuple[float, float]]:
    return [(epsilon, 1 / (1 + math.exp(-epsilon))), (-epsilon, 1 / (1 + math.exp(epsilon)))]
