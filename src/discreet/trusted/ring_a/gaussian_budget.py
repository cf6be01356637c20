"""The remaining Gaussian budget after one more release.

The state is r², r ≥ 0: whatever has been released, all that may still come must be r-GDP. A release with trade-off
curve f is admitted if some s ≥ 0 is proved to satisfy f ⊗ G_s ≥ G_r, where G_μ tells N(0, 1) from N(μ, 1) and ⊗ is
composition; then s² is the new state, and r² − s² is what the release has cost. By induction from the last release
backwards the whole interaction is r₀-GDP, however each release is chosen from earlier answers: after f, whatever came
out, the rest is G_s, so f-DP's composition gives f ⊗ G_s ≥ G_r (Dong, Roth & Su 2019, Theorem 3.2; Regehr et al. 2026).
If no s exists, the state is None, for good.

A price says what one release costs at a state. Each price is proved by itself, so prices of several sources may follow
each other. The plain one, `squares`, needs no more than the loss's own μ; `gdp_filter` proves lower ones.

Monotone. If f ⊗ G_s ≥ G_r, then for r̃ ≥ r and t² = r̃² − r², f ⊗ G_√(s²+t²) = f ⊗ G_s ⊗ G_t ≥ G_r ⊗ G_t = G_r̃. So
the charge r² − s² proved at r is a valid charge at every larger r: few certificates, kept, serve all states, and the
cost of a release never rises with what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from discreet.trusted.ring_a.loss import Batch, Loss

_UNIT = 1 << 128  # states and charges are multiples of 1/_UNIT

Price = tuple[Fraction, Fraction]
"""What a release costs at some r², and down to which r² it costs the same."""
Pricing = Callable[[Loss, Fraction], Price | None]
"""The price of one release, no batch, at this r²; None where nothing is proved."""


def squares(loss: Loss, _left: Fraction, /) -> Price | None:
    """What is μ-GDP costs μ², at any r ≥ μ: G_μ ⊗ G_s = G_r for s² = r² − μ² (Dong, Roth & Su 2019, Corollary 3.3)."""
    return None if loss.mu_squared is None else (up(loss.mu_squared), Fraction(0))


def charge(pricing: Pricing, loss: Loss, left: Fraction | None) -> Fraction | None:
    """The state after one more release: the r² that is proved to be left of this r², or None where nothing is proved.

    None stays None: a release that another filter admitted cannot be taken back. What costs a δ of its own is charged
    here for its ε; its δ is the caller's to count. A batch is charged for its parts, the largest first.
    """
    for part in parts_of(loss):
        found = None if left is None else pricing(part, left)
        left = down(left - found[0]) if left is not None and found is not None and found[0] <= left else None
    return left


def parts_of(loss: Loss) -> list[Loss]:
    """A batch's parts, the largest ε first and what has none last; any other loss by itself."""
    if not isinstance(loss, Batch):
        return [loss]
    return sorted(loss.parts, key=lambda part: Fraction(-1) if part.pure is None else part.pure, reverse=True)


def down(value: Fraction) -> Fraction:
    """The largest multiple of 2^−128 that is not above it."""
    return Fraction(value.numerator * _UNIT // value.denominator, _UNIT)


def up(value: Fraction) -> Fraction:
    """The smallest multiple of 2^−128 that is not below it."""
    return -down(-value)
