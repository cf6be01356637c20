"""Noise in the shape of a ball: its distribution, and the loss of the mechanism made of it, by enumeration."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import pytest
from scipy import stats

from discreet.accounting import Pure
from discreet.mechanisms import Ball
from discreet.trusted.ring_b.k_norm import _inside, ball_noise, points

BLOCKS = [(1,), (1, 1), (2,), (1, 2), (1, 1, 2)]


class Counting:
    """Random bits that run through all places of a uniform choice in turn."""

    def __init__(self, place: int, count: int) -> None:
        self.place, self.count = place, count

    def big(self, bits: int) -> int:
        return -(-(self.place << bits) // self.count)


@pytest.mark.parametrize("block", [1, 2])
@pytest.mark.parametrize("radius", range(7))
def test_every_point_of_a_ball_has_one_place(block: int, radius: int) -> None:
    """All places of the uniform choice: each integer point within the radius once, and no other."""
    count = points(block, radius)
    found = [_inside(Counting(place, count), block, radius) for place in range(count)]  # type: ignore[arg-type]
    span = range(-radius, radius + 1)
    assert sorted(found) == [point for point in itertools.product(span, repeat=block) if norm(point) <= radius]


def norm(point: Sequence[int]) -> int:
    return sum(abs(value) for value in point)


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("scale", ["0.3", "0.9", "2"])
def test_the_noise_falls_off_with_the_norm(blocks: tuple[int, ...], scale: str) -> None:
    """Draws against e^(−‖z‖/scale), summed over the points of each norm."""
    ball, draws = Ball(Fraction(scale), blocks), 4_000
    seen = Counter(ball.norm(point) for point in ball_noise(scale, blocks, draws))
    inside = [math.prod(points(block, radius) for block in blocks) for radius in range(60)]
    sizes = [high - low for low, high in itertools.pairwise([0, *inside])]
    weights = [size * math.exp(-radius / float(scale)) for radius, size in enumerate(sizes)]
    expected = [draws * weight / sum(weights) for weight in weights]
    last = next(radius for radius in range(60) if sum(expected[radius + 1 :]) < 20)
    observed = [*(seen[radius] for radius in range(last)), sum(seen[radius] for radius in seen if radius >= last)]
    wanted = [*expected[:last], sum(expected[last:])]
    assert stats.chisquare(observed, wanted).pvalue > 1e-6 if last else observed == [draws]


def test_directions_are_even() -> None:
    """Points of one norm are equally likely: all eight of the square, all four of the diamond."""
    for blocks, count in [((1, 1), 8), ((2,), 4)]:
        ball = Ball(Fraction(1), blocks)
        drawn = [point for point in ball_noise(1, blocks, 8_000) if ball.norm(point) == 1]
        seen = Counter(drawn)
        assert len(seen) == count
        assert stats.chisquare(list(seen.values())).pvalue > 1e-6


@pytest.mark.parametrize("blocks", BLOCKS)
def test_the_loss_is_sensitivity_over_scale(blocks: tuple[int, ...]) -> None:
    """Every outcome and every move of a neighbour within the ball: the log ratio of the stated probabilities reaches
    the sensitivity over the scale, and never passes it."""
    ball = Ball(Fraction(3), blocks)
    span = range(-2, 3)
    moves = [move for move in itertools.product(span, repeat=ball.coordinates) if 0 < ball.norm(move) <= 2]
    for sensitivity in (1, 2):
        worst = max(
            ball.norm([value - step for value, step in zip(point, move, strict=True)]) - ball.norm(point)
            for move in moves
            if ball.norm(move) <= sensitivity
            for point in itertools.product(range(-2, 3), repeat=ball.coordinates)
        )
        assert worst == sensitivity
        assert ball.loss(sensitivity) == Pure(Fraction(worst, 3))


def test_a_release_keeps_numbers_and_groups_in_place() -> None:
    ball = Ball(Fraction(1, 10**6), (1, 2))
    assert ball.release(list(range(12))) == list(range(12))
    with pytest.raises(ValueError, match="each group"):
        ball.release([1, 2])


@pytest.mark.parametrize("blocks", [(), (3,), (1,) * 13])
def test_other_shapes_are_refused(blocks: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="a ball has blocks"):
        ball_noise(1, blocks, 1)
