"""A batch of releases that is fixed before the first of them, and the one loss that a filter is charged for it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from discreet.trusted.ring_a.exact import ceiling, sqrt_ceiling
from discreet.trusted.ring_a.loss import Approximate, Batch, EquivalentGaussian, GaussianLoss, Loss, Pure, Single
from discreet.trusted.ring_b.further_losses import BoundedRange, mu_of_range
from discreet.trusted.ring_c.batch import compose
from discreet.trusted.ring_c.equivalent import gaussian_equivalent


@dataclass(frozen=True)
class Declared:
    """These releases, each made at most once, in any order, of whatever the ones before suggest.

    `event_delta` is the probability of the event outside which the whole counts as one Gaussian release; a batch of
    Gaussian releases alone needs none.
    """

    parts: tuple[Single, ...]
    event_delta: Fraction

    def __post_init__(self) -> None:
        if type(self.parts) is not tuple:
            raise ValueError("a batch is fixed before the first of its releases")

    @cached_property
    def loss(self) -> Loss:
        """The loss that stands for the batch: as long as none of the parts' own δ strikes, which add up, the batch is
        that of the other pairs (each part is (1 − δ)(P′, Q′) + δ(P″, Q″)). Each of those tells no more than a Gaussian
        release, and their μ² add up (Dong, Roth & Su 2019, Corollary 3.3). Composed they mostly tell no more than one
        of a smaller μ, but with probability `event_delta` (`gaussian_equivalent`, which finds none from μ of about 12
        on, where floating point cannot tell the batch from certainty).

        Raises ValueError where a part is no such release.
        """
        plain = tuple(_plain(part) for part in self.parts)
        failure_delta = sum((part.keys_delta for part in self.parts), Fraction(0))
        whole = compose(plain)
        mu = ceiling(sqrt_ceiling(sum(map(_mu_squared, plain), Fraction(0))), 12)
        one = GaussianLoss(mu)
        if whole.only_gaussian is None and self.event_delta:
            with suppress(ValueError):
                mu = min(mu, gaussian_equivalent(whole, self.event_delta))
            one = EquivalentGaussian(mu, self.event_delta)
        return Batch((one, Approximate(Fraction(0), failure_delta))) if failure_delta else one


def _plain(part: Single) -> Single:
    """A part as it is while its δ does not strike."""
    if isinstance(part, Approximate):
        return Pure(part.epsilon)
    return GaussianLoss(part.mu) if isinstance(part, EquivalentGaussian) else part


def _mu_squared(part: Single) -> Fraction:
    """A μ² of a part alone. Raises ValueError where it has none."""
    if isinstance(part, BoundedRange):
        return mu_of_range(part.epsilon) ** 2
    if part.mu_squared is None:
        raise ValueError("this part has no equivalent Gaussian loss")
    return part.mu_squared
