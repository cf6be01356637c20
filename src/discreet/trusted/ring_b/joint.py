"""K-norm mechanism: noise shaped like the ball that contains every row's contribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.trusted.ring_a.exact import figure
from discreet.trusted.ring_a.loss import Pure
from discreet.trusted.ring_b.k_norm import ball_noise


@dataclass(frozen=True)
class Ball:
    """Integer noise with P(Z = z) ∝ e^(−‖z‖/scale) on each group's vector (the K-norm mechanism of Hardt & Talwar
    2010, on the integers).

    ‖·‖ is the largest of the blocks' norms, `blocks` as in `ring_b.k_norm`: the ball holds every vector that one
    row can add, and hardly more, so less noise does than for each number by itself.

    Units: lattice steps. Neighbours: one person added or removed, so the exact vectors of all groups x, y have
    Σ_groups ‖x_g − y_g‖ ≤ sensitivity.
    Privacy: as the noise is integer and additive, P(x + Z = v) = c·Π_g e^(−‖v_g − x_g‖/scale) with a c that does not
    depend on x. By the triangle inequality of the norm, each group's ratio between y and x is at most
    e^(‖x_g − y_g‖/scale); groups are independent, the exponents add up to at most sensitivity/scale: pure differential
    privacy with that epsilon. Nothing else of the noise's law is used, so the loss is charged as any ε-DP release is.
    """

    scale: Fraction
    blocks: tuple[int, ...]

    name = "joint discrete Laplace"

    @property
    def coordinates(self) -> int:
        """How many numbers each group's vector has."""
        return sum(self.blocks)

    def norm(self, vector: Sequence[int]) -> int:
        """The norm of one group's vector."""
        found, place = 0, 0
        for block in self.blocks:
            found = max(found, sum(abs(value) for value in vector[place : place + block]))
            place += block
        return found

    def loss(self, sensitivity: int) -> Pure:
        """The loss on vectors of that sensitivity, in the norm of the ball."""
        return Pure(sensitivity / self.scale)

    def release(self, exact: Sequence[int]) -> list[int]:
        """The vectors with fresh noise. `exact` lists the first number of all groups, then the second, and so on."""
        groups, rest = divmod(len(exact), self.coordinates)
        if rest:
            raise ValueError("each group has one number for each coordinate")
        noise = ball_noise(self.scale, self.blocks, groups)
        return [exact[i * groups + g] + noise[g][i] for i in range(self.coordinates) for g in range(groups)]

    def describe(self) -> str:
        """The noise in words: how many numbers it is on, and its scale in lattice steps."""
        return f"{self.name} noise of {self.coordinates} numbers, scale {figure(self.scale)}"
