"""The certified filter for Gaussian differential privacy, which charges a release at most its own μ².

`gaussian_budget` admits a release with trade-off curve f at r if some s ≥ 0 is proved to satisfy f ⊗ G_s ≥ G_r. For
Gaussian noise s² = r² − μ² is the largest there is. Here it is proved for discrete Laplace noise, for continuous
Laplace noise and for randomised response, which stands for every other ε-DP release (Regehr et al. 2026).

Theorem. Let f be symmetric with loss bounded by ε, let w be its measure √(dP dQ) over the loss ℓ, and let one of
these hold: (a) w is two atoms at ±ε of equal weight and a constant density between them; (b) w has atoms at n + 1
equally spaced losses from −ε to ε, and v(ℓ) = w(ℓ)·e^(−ℓ²/2s²) satisfies v(ε) ≥ ½·Σ v(ℓ) over the inner atoms. Then
for 0 < s < r: f ⊗ G_s ≥ G_r if and only if the total variation of f ⊗ G_s is at most that of G_r,
which is 2Φ(r/2) − 1.

Proof. Let D(x) = H_x(G_r) − H_x(f ⊗ G_s), where H_x(P, Q) = ∫ (dP − x·dQ)⁺. The claim is D ≥ 0 for all x > 0, and the
condition is D(1) ≥ 0. All pairs are symmetric, so D(x) = x·D(1/x): x ≥ 1 is enough, and D′(1) = D(1)/2. With x = e^u,
x²·H″ is the density of the loss at u, and times e^(−u/2) the density of √(dP dQ); so with positive constants c₁, c₂
    x²·D″·e^(−u/2) = c₁·N(u; 0, r²) − c₂·∫ N(u; ℓ, s²) w(dℓ) = −e^(−u²/2s²)·c₃·∫ e^(uℓ/s²)·e^(−ℓ²/2s²) g(dℓ),
where g = c₂·w − c₁·N(0, r² − s²), since N(0, r²) is N(0, s²) smoothed by N(0, r² − s²). It is even in u.
(a) From left to right g is negative, positive at −ε, then (a constant less a bell) of at most the signs + − +,
positive at ε, negative: at most four changes of sign. By Descartes' rule for such transforms (Pólya & Szegő V, 80; by
Rolle: e^(−ua) times the integral, differentiated by u, has one change of sign less), the integral has at most four
real zeros: at most two for u > 0.
(b) Let F(u) = Σ v(ℓ)·e^(uℓ). On the imaginary axis F(iy) = 2v(ε)·cos(εy) + (inner terms) has the sign of (−1)^j at y
= jπ/ε (or is 0 there, which is the limit of larger ends). So it changes sign n times while y grows by nπ/ε, a period
of e^(2iεy/n), in which F is a polynomial of degree n but for a factor without zeros: all zeros are imaginary. F is
even and of order one, so F(u) = F(0)·Π(1 + u²/y²) over its zeros ±iy, and (ln F)′/u = Σ 2/(y² + u²) decreases for u >
0. The quotient of the two terms above is a constant times F(u/s²)·e^(−κu²/2), κ = 1/s² − 1/r²; its logarithm
therefore rises and then falls, or only falls, and is 0 at most twice for u > 0.
In both cases D″ > 0 for large x, as r > s. Its signs on x > 1 are thus +, or − +, or + − +. On the last stretch D is
convex and D, D′ → 0 at infinity, so D ≥ 0 there. On a middle or first stretch − it is concave, and so not below the
smaller of its ends. On a first stretch + it is convex with D(1) ≥ 0 and D′(1) = D(1)/2 ≥ 0, so D ≥ D(1) ≥ 0. Hence
D(1) ≥ 0 is enough; it is plainly needed. ∎

So one inequality, proved in integers for one s, proves the admission for every ε. Floating point only guesses s.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt

from discreet.trusted.ring_a import gaussian_budget
from discreet.trusted.ring_a.curves import mu_of_budget
from discreet.trusted.ring_a.exact import Number, fraction
from discreet.trusted.ring_a.filter import PrivacyFilter
from discreet.trusted.ring_a.gaussian_budget import Price, down, squares, up
from discreet.trusted.ring_a.loss import DiscreteLaplace, Loss
from discreet.trusted.ring_b.further_losses import LaplaceLoss
from discreet.trusted.ring_b.shape import SymmetricLoss

_NEAR = 4  # below r = 4ε each state has its own certificate
_FAR = 64  # from r = 64ε on the charge is within 10^−4 of its limit
_SMALL, _LARGE = Fraction(1, 10**9), 64  # outside these ε the plain Gaussian rule serves


def certified(loss: Loss, left: Fraction, /) -> Price | None:
    """The price of one release at r² = left. Where no certificate is found the plain rule holds, `squares`."""
    plain, epsilon = squares(loss, left), loss.pure
    if plain is None or epsilon is None or not _SMALL <= epsilon <= _LARGE:
        return plain
    shape, grid = shape_of(loss), _grid(left / epsilon**2)
    if grid and (cost := _kept(shape, grid)) is not None:
        return cost, (grid * epsilon) ** 2
    root = _root_below(left, epsilon)
    if root and (proved := shape.charge(root)) is not None:
        return up(proved), left
    return plain


def opening(epsilon: Number, delta: Number) -> Fraction:
    """The first state of a budget: a μ², rounded down, whose μ-GDP implies (ε, δ)-DP."""
    return down(mu_of_budget(fraction(epsilon), fraction(delta)) ** 2)


def charge(loss: Loss, left: Fraction | None) -> Fraction | None:
    """`gaussian_budget.charge` at certified prices."""
    return gaussian_budget.charge(certified, loss, left)


def shape_of(loss: Loss) -> SymmetricLoss:
    """The family that dominates a loss with a finite ε > 0: randomised response where nothing more is known."""
    epsilon = loss.pure or Fraction(0)
    if isinstance(loss, LaplaceLoss):
        return SymmetricLoss(epsilon, None)
    if isinstance(loss, DiscreteLaplace):
        return SymmetricLoss(epsilon, max(1, loss.sensitivity))
    return SymmetricLoss(epsilon, 1)


@lru_cache(maxsize=65536)
def _kept(shape: SymmetricLoss, grid: Fraction) -> Fraction | None:
    cost = shape.charge(grid * shape.epsilon)
    return None if cost is None else up(cost)


def _grid(square: Fraction) -> Fraction | None:
    """The largest kept r/ε, sixteen to an octave from `_NEAR` to `_FAR`, that is not above √square."""
    if square < _NEAR**2:
        return None
    if square >= _FAR**2:
        return Fraction(_FAR)
    unit = _NEAR
    while square >= (2 * unit) ** 2:
        unit *= 2
    return Fraction(isqrt(int(square * 256 / unit**2)) * unit, 16)


def _root_below(square: Fraction, epsilon: Fraction) -> Fraction:
    """A rational at most √square, less than ε·2^−60 below it."""
    bits = 64 + max(0, epsilon.denominator.bit_length() - epsilon.numerator.bit_length())
    return Fraction(isqrt((square.numerator << (2 * bits)) // square.denominator), 1 << bits)


class CertifiedFilter(PrivacyFilter):
    """The filter that ledgers keep: its Gaussian part pays as `certified` says. Immutable, as `PrivacyFilter` is."""

    price = staticmethod(certified)
