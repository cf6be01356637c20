"""Privacy loss events beyond those of single questions: for the exponential mechanism, declared batches and
comparison."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from attrs import field, frozen

from discreet.trusted.ring_a.curves import mu_of_pure
from discreet.trusted.ring_a.exact import fraction
from discreet.trusted.ring_a.loss import Pure, Single, amount, stored


@stored
@frozen
class LaplaceLoss(Pure):
    """Continuous Laplace noise of scale (ℓ1 sensitivity)/epsilon on a vector (Dwork & Roth 2014, Theorem 3.6).

    The curator never draws it; it is the ideal that discrete noise comes near to, and the yardstick of accounting.

    The shift of one coordinate by the whole sensitivity dominates every other way to move the vector: let w be the
    distribution of the loss ℓ with density √(dP dQ), for a shift of loss a: e^(−a/2) times half an atom at either end
    ±a and the density 1/4 between them. The density between the ends ±(a+b) of two shifts together is at least
    e^(−(a+b)/2)/4, that of one shift by both; at the ends it is the other way round. So the difference of the two
    hockey-stick divergences is concave between the ends, zero beyond them, hence nowhere negative.
    """

    event: ClassVar[str] = "laplace"


@stored
@frozen
class BoundedRange(Pure):
    """An ε-bounded-range release, as the exponential mechanism is: there is an s with every outcome's log ratio in
    [s, s + ε] (Durfee & Rogers 2019). ε-DP, and ε²/8-zCDP (Cesar & Rogers 2021); the filters charge the former."""

    event: ClassVar[str] = "bounded_range"


def mu_of_range(epsilon: Fraction) -> Fraction:
    """A μ such that every release of bounded range ε is μ-GDP: `mu_of_pure` of half of it, and no less will do.

    The log ratios of such a release lie in some [t − ε, t]. Then it tells at most what two outcomes with these ratios
    do (Zhu, Dong & Wang 2022, Proposition 10): the first has probability p in one world and q in the other, with
    p/q = e^t and (1 − p)/(1 − q) = e^(t − ε), so the log odds of p and q differ by ε, whatever t is. As in `mu_of_pure`
    it is enough that μ ≥ Φ⁻¹(p) − Φ⁻¹(q) = g(x + ε/2) − g(x − ε/2), x the middle of the log odds, g(x) = Φ⁻¹(1/(1 +
    e^(−x))). g is odd, and its slope falls with |x|: so the difference is largest at x = 0, where p = e^(ε/2)/(1 +
    e^(ε/2)) and q = 1 − p, the response of `mu_of_pure` at ε/2.

    That the slope falls: the inverse of g is ln(Φ(z)/Φ(−z)), with slope φ/(Φ(z)·Φ(−z)), φ the density. For z > 0 that
    rises where φ/Φ(−z) − φ/Φ(z) ≥ z, which is f = 4φD − z(1 − D²) ≥ 0 with D = Φ(z) − Φ(−z). f is 0 at z = 0 and at
    ∞, and f′ = 8φ² − 1 + D² is 8/2π − 1 > 0 at 0 and 0 at ∞, with slope 4φ(D − 4zφ). D − 4zφ is 0 at 0, falls until
    z² = 1/2 and rises from there on to 1. So f′ falls at first and rises to 0 afterwards: it is positive, then
    negative, and f, which rises and then falls to 0, is nowhere below 0.
    """
    return mu_of_pure(epsilon / 2)


@stored
@frozen
class SubsampledGaussian(Single):
    """A run of `steps` sums, each over a fresh Poisson sample of the persons at this `rate`, each person's part at
    most 1 long, with Gaussian noise of deviation `sigma`; neighbours differ by one person added or removed.

    A step is dominated by the pair (1 − rate)·N(0, σ²) + rate·N(1, σ²) and N(0, σ²) (Zhu, Dong & Wang 2022). Being
    joint-convex in the pair, its loss is at most that of the step without sampling: `mu_squared` = steps/σ².
    """

    event: ClassVar[str] = "subsampled_gaussian"
    sigma: Fraction = field(converter=fraction)
    rate: Fraction = field(converter=fraction)
    steps: int = field(converter=int)

    def __attrs_post_init__(self) -> None:
        if self.sigma <= 0 or not 0 < self.rate <= 1 or self.steps < 1:
            raise ValueError("a run needs sigma > 0, 0 < rate <= 1 and at least one step")

    @property
    def mu_squared(self) -> Fraction | None:
        return self.steps / self.sigma**2


@stored
@frozen
class ZeroConcentrated(Single):
    """A ρ-zCDP release of which nothing else is known (Bun & Steinke 2016): Rényi divergence of every order α at most
    α·ρ. No μ follows from it, so only a filter for ρ admits it, and never the ledger's."""

    event: ClassVar[str] = "zero_concentrated"
    rho: Fraction = field(converter=amount)
