"""The minimum price of a measurement, so that no question is free, not even one with a useless answer."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import QuestionError
from discreet.trusted.ring_a.exact import ceiling, show
from discreet.trusted.ring_a.filter import PrivacyFilter
from discreet.trusted.ring_a.loss import Loss

SHARE, MOST = Fraction(1, 10_000), Fraction(1, 1_000)
"""Of the budget's ε, and never more than this, where no other least price is declared."""

_ROUNDING = Fraction(99, 100)


@dataclass(frozen=True)
class Least:
    """What a measurement costs at least: `epsilon` where its loss has a finite ε, else `mu_squared`.

    That a question was answered at all, and when, is known to whoever asks, and no price bounds what it tells. So the
    number of questions is bounded: at price 0 there would be no end of them. `mu_squared` is the same share of the
    budget's μ² as `epsilon` is of its ε, so the sum of prices admits as many at the least price as the Gaussian filter
    does of Gaussian ones: budget ε / least. Where the budget has a δ, that filter charges a small pure ε by about its
    square, and admits more of them: 5.5 million of ε 0.0001 at (1, 1e-6).

    Noise that is rounded up to a lattice may cost a little less than the price that was named: a hundredth is allowed.
    """

    epsilon: Fraction
    mu_squared: Fraction

    @staticmethod
    def of(budget: PrivacyFilter, epsilon: Fraction | None) -> Least:
        """Of a budget: the declared least ε, else its ten-thousandth, rounded up to three digits, at most `MOST`."""
        least = min(MOST, ceiling(budget.epsilon * SHARE, 3)) if epsilon is None else epsilon
        return Least(least, ceiling(budget.mu_squared * least / budget.epsilon, 3))

    def admits(self, loss: Loss) -> bool:
        """Whether the loss is large enough. Depends on prices alone."""
        return self._share(loss) >= _ROUNDING

    def met(self, loss: Loss) -> bool:
        """Whether the loss is the least there is."""
        return _ROUNDING <= self._share(loss) <= 1 / _ROUNDING

    def _share(self, loss: Loss) -> Fraction:
        if loss.pure is not None:
            return loss.pure / self.epsilon
        if loss.mu_squared is None or not self.mu_squared:
            return Fraction(1 << 60)  # no filter admits it
        return loss.mu_squared / self.mu_squared

    def check(self, loss: Loss) -> None:
        """Raises QuestionError where the loss is too small. Nothing is spent."""
        if self.admits(loss):
            return
        if loss.pure is not None:
            message = "the price is below the least of a measurement"
            fix = f"write epsilon = {show(self.epsilon)}, or more"
        else:
            message = "this Gaussian noise costs less than the least price of a measurement"
            fix = f"name a larger epsilon: its μ² must be at least {show(self.mu_squared)}"
        raise QuestionError("price", message, where="epsilon", fix=fix)
