"""How often the audit finds what is wrong, by how wrong it is and how much is drawn: detections of 20 audits.

A finding here is what it is in `discreet audit`: a chance below 1e-6 that right code is blamed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from discreet.audit.claims import FALSE_ALARM, Claim
from discreet.audit.events import NUMBER
from discreet.audit.pmf import gaussian_law, laplace_law
from discreet.audit.targets import Fitted, SampledAttack, Target
from discreet.mechanisms import Gaussian, Laplace

ROUNDS = 20
FACTORS = ("0.5", "0.8", "0.9", "0.95", "1")
PAIRS = (1_000, 4_000, 20_000)
FITS = (1_000, 10_000, 100_000)


def sampled(mechanism: Laplace | Gaussian, claim: Claim, step: int, draws: int) -> Target:
    """The attack from outside: values on two neighbours a step apart."""

    def one(value: int) -> int:
        return mechanism.release([value])[0]

    return SampledAttack(mechanism.name, claim, (0, step), one, NUMBER, draws)


def fitted(mechanism: Laplace | Gaussian, claim: Claim, width: float, draws: int) -> Target:
    """The attack from inside: draws against the distribution that was paid for."""
    law = gaussian_law(width) if isinstance(mechanism, Gaussian) else laplace_law(width)
    return Fitted(mechanism.name, claim, lambda count: mechanism.release([0] * count), draws, law)


def detections(target: Target) -> int:
    """Findings of 20 attacks."""
    return sum(target.attack(FALSE_ALARM).broken for _ in range(ROUNDS))


Row = tuple[str, str, int, int]
"""What was claimed, what was wrong, draws on either neighbour or for the fit, detections of 20."""


def table(factors: Sequence[str] = FACTORS, pairs: Sequence[int] = PAIRS, fits: Sequence[int] = FITS) -> list[Row]:
    """Noise of a part of its width, for discrete Laplace at ε = 1 and rounded Gaussian at μ = 1."""
    kinds: list[tuple[str, Claim, int, Callable[[Fraction], Laplace | Gaussian], int]] = [
        ("discrete Laplace, ε 1", Claim(1.0), 1, lambda factor: Laplace(factor), 1),
        ("rounded Gaussian, μ 1", Claim(mu=1.0), 4, lambda factor: Gaussian(4 * factor), 4),
    ]
    rows: list[Row] = []
    for name, claim, step, make, width in kinds:
        for factor in factors:
            wrong = make(Fraction(factor))
            for draws in pairs:
                rows.append(
                    (name, f"noise × {factor}, from outside", draws, detections(sampled(wrong, claim, step, draws)))
                )
            for draws in fits:
                rows.append((name, f"noise × {factor}, fit", draws, detections(fitted(wrong, claim, width, draws))))
    return rows


def power() -> list[tuple[str, float]]:
    """The table as figures, for `make bench`."""
    return [
        (f"{name}: {wrong}, {draws:,} draws: detections of {ROUNDS}", found) for name, wrong, draws, found in table()
    ]


def run() -> None:
    """Prints the table."""
    for name, wrong, draws, found in table():
        print(f"{name:<24}{wrong:<28}{draws:>9,}{found:>4} of {ROUNDS}", flush=True)


if __name__ == "__main__":
    run()
