"""What the public functions accept, and what they return."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import noise
from discreet.noise import discrete_laplace, rounded_gaussian
from discreet.trusted.ring_a import gaussian, laplace
from discreet.trusted.ring_a.sampler import BLOCK

KIND = "exact"

both = pytest.mark.parametrize("draw", [discrete_laplace, rounded_gaussian])
Draw = Callable[..., np.ndarray]


@both
@pytest.mark.parametrize("width", [1, 2.5, "2.5", Decimal("2.5"), Fraction(5, 2), 100, "1e20"])
@pytest.mark.parametrize("size", [0, 1, 7, (), (3,), (2, 3), (0, 4), (2, 2, 2)])
def test_shape_and_type(draw: Draw, width: Any, size: Any) -> None:
    values = draw(width, size)
    assert values.shape == np.empty(size).shape
    assert values.dtype == (object if width == "1e20" else np.int64)


@both
@pytest.mark.parametrize(
    "width",
    [
        0,
        -1,
        0.0,
        "-1",
        "0",
        float("nan"),
        float("inf"),
        "nan",
        "sNaN",
        "Infinity",
        "",
        "one",
        True,
        None,
        [1],
        b"1",
        "1e61",
    ],
)
def test_a_width_must_be_a_positive_number(draw: Draw, width: Any) -> None:
    with pytest.raises(ValueError, match=r"^(scale|sigma) must be"):
        draw(width, 3)


@both
@pytest.mark.parametrize("size", [-1, (2, -1), 1.0, "3", None, True, (True,), (1.5,), [3], np.array([2, 3])])
def test_a_size_must_be_a_shape(draw: Draw, size: Any) -> None:
    with pytest.raises(ValueError, match="size must"):
        draw(1, size)


@both
def test_numpy_integers_are_sizes(draw: Draw) -> None:
    assert draw(1, np.int32(4)).shape == (4,)
    assert draw(1, (np.int64(2), 3)).shape == (2, 3)


@both
def test_a_float_is_taken_as_written(draw: Draw) -> None:
    module = laplace if draw is discrete_laplace else gaussian
    draw(0.1, 1)
    hits = module.sampler.cache_info().hits
    draw(Fraction(1, 10), 1)
    draw("0.10", 1)
    assert module.sampler.cache_info().hits == hits + 2


@both
def test_there_is_no_seed(draw: Draw) -> None:
    assert len(inspect.signature(draw).parameters) == 2
    assert sorted(noise.__all__) == ["discrete_laplace", "rounded_gaussian"]


@both
@pytest.mark.parametrize("size", [511, 512, 513, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3])
def test_every_cell_is_filled(draw: Draw, size: int) -> None:
    """At width 10^6, two equal neighbours, or an untouched stretch, would be rare: at most 20 of 131,075."""
    values = draw(10**6, size)
    assert values.shape == (size,)
    assert (values[1:] == values[:-1]).sum() <= 20
    assert (values == 0).sum() <= 20


@both
def test_two_draws_differ(draw: Draw) -> None:
    assert draw(1000, 50).tolist() != draw(1000, 50).tolist()


@both
def test_cells_are_uncorrelated(draw: Draw) -> None:
    """Neighbours, and cells one block apart: a correlation of 0.01 is 10 standard deviations, 0.006 fails."""
    for lag, size in ((1, 10**6), (BLOCK, 10**6 + BLOCK)):
        values = draw(1000, size).astype(float)
        assert abs(np.corrcoef(values[:-lag], values[lag:])[0, 1]) < 0.006


@both
def test_results_may_be_written_to(draw: Draw) -> None:
    values = draw(5, 10)
    values += 1
    assert values.flags.writeable
