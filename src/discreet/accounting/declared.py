"""A batch of releases that is fixed before the first of them, and the one loss that a filter is charged for it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from discreet.accounting.batch import compose
from discreet.accounting.equivalent import gaussian_equivalent
from discreet.accounting.loss import Approximate, Batch, EquivalentGaussian, Gaussian, Loss, Pure, Single


@dataclass(frozen=True)
class Declared:
    """These releases, each made at most once, in any order, of whatever the ones before suggest.

    `event_delta` is the probability of the event outside which the whole counts as one Gaussian release; a batch of
    Gaussian releases alone needs none.
    """

    parts: tuple[Single, ...]
    event_delta: Fraction

    @cached_property
    def loss(self) -> Loss:
        """The loss that stands for the batch: as long as none of the parts' own δ strikes, which add up, the batch is
        that of the other pairs (each part is (1 − δ)(P′, Q′) + δ(P″, Q″)), and composed tells no more than one
        Gaussian release but with probability `event_delta` (`gaussian_equivalent`).

        Raises ValueError where no Gaussian release stands for it.
        """
        plain = tuple(_plain(part) for part in self.parts)
        struck = sum((part.keys_delta for part in self.parts), Fraction(0))
        whole = compose(plain)
        known = whole.only_gaussian is not None
        mu = gaussian_equivalent(whole, self.event_delta or Fraction(1, 2) if known else self.event_delta)
        one = Gaussian(mu) if known else EquivalentGaussian(mu, self.event_delta)
        return Batch((one, Approximate(Fraction(0), struck))) if struck else one


def _plain(part: Single) -> Single:
    """A part as it is while its δ does not strike."""
    if isinstance(part, Approximate):
        return Pure(part.epsilon)
    return Gaussian(part.mu) if isinstance(part, EquivalentGaussian) else part
