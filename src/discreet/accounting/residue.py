"""What is left of a Gaussian budget after one more release: the certified residue filter.

The state is r: whatever has been released, all that may still come must be r-GDP. A release with trade-off curve f is
admitted if some s ≥ 0 is proved to satisfy f ⊗ G_s ≥ G_r, where G_μ tells N(0,1) from N(μ,1) and ⊗ is composition;
then s is the new state. By induction from the last release backwards the whole interaction is r₀-GDP, however each
release is chosen from earlier answers: after f, whatever came out, the rest is G_s, so f-DP's composition gives f ⊗
G_s ≥ G_r (Dong, Roth & Su 2019; Regehr et al. 2026). If no s exists, the state is None, for good.

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

Monotone. If f ⊗ G_s ≥ G_r, then for r̃ ≥ r and t² = r̃² − r², f ⊗ G_√(s²+t²) = f ⊗ G_s ⊗ G_t ≥ G_r ⊗ G_t = G_r̃. So
the charge r² − s² proved at r is a valid charge at every larger r: few certificates, kept, serve all states, and the
cost of a release never rises with what is left.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt

from discreet.accounting.curves import mu_of_budget
from discreet.accounting.loss import Batch, DiscreteLaplace, Laplace, Loss
from discreet.accounting.shape import Shape
from discreet.exact import Number, fraction

_UNIT = 1 << 128  # states and charges are multiples of 1/_UNIT
_NEAR = 4  # below r = 4ε each state has its own certificate
_FAR = 64  # from r = 64ε on the charge is within 10^−4 of its limit
_SMALL, _LARGE = Fraction(1, 10**9), 64  # outside these ε the plain Gaussian rule serves
_MANY = 10**9


def opening(epsilon: Number, delta: Number) -> Fraction:
    """The first state of a budget: a μ², rounded down, whose μ-GDP implies (ε, δ)-DP."""
    return _down(mu_of_budget(fraction(epsilon), fraction(delta)) ** 2)


def charge(loss: Loss, left: Fraction | None) -> Fraction | None:
    """The state after one more release: the r² that is proved to be left of this r², or None where nothing is proved.

    None stays None: a release that another filter admitted cannot be taken back. What costs a δ of its own is charged
    here for its ε; its δ is the caller's to count. A batch is charged for its parts, the largest first.
    """
    for part in _parts(loss):
        found = None if left is None else _cost(part, left)
        left = _down(left - found[0]) if left is not None and found is not None and found[0] <= left else None
    return left


def times(loss: Loss, left: Fraction | None, most: int = _MANY) -> int:
    """How many releases of this loss, one after another, `charge` would admit; at most `most`."""
    count = 0
    while left is not None and count < most:
        found = [_cost(part, left) for part in _parts(loss)]
        steps = [step for step in found if step is not None]
        if len(steps) < len(found):
            return count
        total = sum((cost for cost, _ in steps), Fraction(0))
        if total == 0:
            return most
        enough = max(until for _, until in steps) + total  # as long as this is left, the next release costs the same
        if left >= enough:
            rounds = min(most - count, (left - enough) // total + 1)
            left -= rounds * total
            count += rounds
        else:
            left = charge(loss, left)
            count += left is not None
    return count


def shape_of(loss: Loss) -> Shape:
    """The family that dominates a loss with a finite ε > 0: randomised response where nothing more is known."""
    epsilon = loss.pure or Fraction(0)
    if isinstance(loss, Laplace):
        return Shape(epsilon, None)
    if isinstance(loss, DiscreteLaplace):
        return Shape(epsilon, max(1, loss.sensitivity))
    return Shape(epsilon, 1)


def _parts(loss: Loss) -> list[Loss]:
    if not isinstance(loss, Batch):
        return [loss]
    return sorted(loss.parts, key=lambda part: Fraction(-1) if part.pure is None else part.pure, reverse=True)


def _cost(loss: Loss, left: Fraction) -> tuple[Fraction, Fraction] | None:
    """The charge of this loss at r² = left, and down to which r² the same charge is used.

    Where no certificate is found the plain rule holds: what is μ-GDP costs μ². None where no μ is known.
    """
    if loss.mu_squared is None:
        return None
    if loss.pure is None:
        return _up(loss.mu_squared), Fraction(0)
    epsilon = loss.pure
    if epsilon == 0:
        return Fraction(0), Fraction(0)
    if _SMALL <= epsilon <= _LARGE:
        shape, grid = shape_of(loss), _grid(left / epsilon**2)
        if grid and (cost := _kept(shape, grid)) is not None:
            return cost, (grid * epsilon) ** 2
        root = _root_below(left, epsilon)
        if root and (proved := shape.charge(root)) is not None:
            return _up(proved), left
    return _up(loss.mu_squared), Fraction(0)


@lru_cache(maxsize=65536)
def _kept(shape: Shape, grid: Fraction) -> Fraction | None:
    cost = shape.charge(grid * shape.epsilon)
    return None if cost is None else _up(cost)


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


def _down(value: Fraction) -> Fraction:
    return Fraction(value.numerator * _UNIT // value.denominator, _UNIT)


def _up(value: Fraction) -> Fraction:
    return -_down(-value)
