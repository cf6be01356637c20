"""How far an answer may lie from the truth that above threshold has let pass: a public number, no noisy one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.trusted.ring_a.exact import figure

if TYPE_CHECKING:  # it stands on an extra
    from discreet.trusted.ring_c.interactive import Interactive


@dataclass(frozen=True)
class Watched:
    """The error of an answer of a synthetic state. Nothing draws it: it says how far answers may be from the truth once
    their questions were found not hard, all answers of the state's life at once."""

    of: Interactive

    @property
    def scale(self) -> Fraction:
        """The scale of the noise by which questions were found hard or not."""
        return self.of.watch.scales[1]

    def release(self, exact: Sequence[int], /) -> list[int]:  # noqa: ARG002
        """Raises ValueError: such an answer is not drawn."""
        raise ValueError("an answer of a synthetic state is not drawn from exact numbers")

    def describe(self) -> str:
        """In words, the threshold up to which answers were found right, in rows, and the scale of the noise."""
        return (
            f"the synthetic state (private multiplicative weights), found right to within {self.of.threshold:,} rows by"
            f" above threshold with noise of scale {figure(self.scale)}"
        )


def half_width(error: Watched, weights: Sequence[Fraction], miss: float) -> float:
    """What such an answer, times its weight, is within but for a probability `miss`."""
    (weight,) = weights
    return abs(float(weight)) * error.of.half_width(miss)
