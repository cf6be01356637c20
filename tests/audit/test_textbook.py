"""Every wrong version is found, every right one passes: with the same attacks, draws and levels.

A right version is blamed with a chance below 1e-6 in each test. Attacks that compute need no draws and never miss.
Where draws decide, their number is such that a wrong version is missed with a chance below 1e-6: the distance to the
level is at least five standard deviations beyond what is needed, as said at each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest

import mutants
from discreet.audit import textbook
from discreet.audit.claims import FALSE_ALARM, Result
from discreet.audit.targets import Target, run
from discreet.audit.textbook import DrawCounts
from discreet.mechanisms import AboveThreshold, Gaussian, Laplace, NoisyMax, laplace_threshold
from discreet.reference.partition import PartitionSelection
from discreet.reference.response import randomised_response
from discreet.trusted.ring_a import additive
from kinds import some

ONE = Fraction(1)
SIZES = DrawCounts(pair=3_000, fit=12_000)


def findings(targets: Sequence[Target], *ways: str) -> list[Result]:
    """What was found, in these ways or in any."""
    return [one for one in run(targets, FALSE_ALARM) if one.broken and (not ways or one.how in ways)]


def test_every_right_mechanism_passes() -> None:
    targets = textbook.everything(DrawCounts(pair=600, fit=2_000))
    assert findings(targets) == []


@pytest.mark.parametrize("how", ["sampled", "fit"])
def test_half_the_noise(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """From outside, 1,500 test draws prove an ε of 1.60 ± .05. The fit sees P(x = 0) = .76 where .46 is right: tens of
    standard deviations."""
    monkeypatch.setattr(additive, "discrete_laplace", mutants.smaller(Fraction(1, 2)))
    assert findings(textbook.additive(Laplace(ONE), 1, SIZES), how)


def test_noise_of_four_fifths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws fit badly: P(x = 0) = .555 where .462 is right, 20 standard deviations of 12,000 draws."""
    monkeypatch.setattr(additive, "discrete_laplace", mutants.smaller(Fraction(4, 5)))
    assert findings(textbook.additive(Laplace(ONE), 1, SIZES), "fit")


@pytest.mark.power
def test_noise_of_four_fifths_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """25,000 test draws prove an ε of 1.171 ± .008 of the true 1.25."""
    monkeypatch.setattr(additive, "discrete_laplace", mutants.smaller(Fraction(4, 5)))
    assert findings(textbook.additive(Laplace(ONE), 1, DrawCounts(50_000, 100)), "sampled")


@pytest.mark.parametrize("how", ["sampled", "fit"])
def test_half_the_gaussian_noise(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(additive, "rounded_gaussian", mutants.smaller(Fraction(1, 2), real=additive.rounded_gaussian))
    assert findings(textbook.additive(Gaussian(2 * ONE), 2, DrawCounts(6_000, 12_000)), how)


def test_a_sensitivity_that_is_too_small() -> None:
    """The charge is for one step less than a person can move: exactly."""

    class Stingy(Laplace):
        def loss(self, sensitivity: int) -> object:
            return super().loss(sensitivity - 1)

    assert findings(textbook.additive(Stingy(3 * ONE), 3, DrawCounts(100, 100)), "exact")  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["sampled", "fit"])
def test_noise_in_floating_point(how: str) -> None:
    """About every tenth draw of 0 + noise lies in (0, 1/4) off the lattice of 2^−53, none of 1 + noise does: 1,500 test
    draws prove an ε of 1.76 ± .09."""
    assert findings(textbook.additive(mutants.FloatLaplace(ONE), 1, SIZES), how)


def test_the_lattice_is_what_betrays_floating_point() -> None:
    (found,) = findings(textbook.additive(mutants.FloatLaplace(ONE), 1, SIZES)[:1])
    assert found.event.startswith("off the lattice")


def test_noise_that_is_cut_to_integers() -> None:
    assert findings(textbook.additive(mutants.Truncated(ONE), 1, SIZES), "fit")


def test_one_noise_value_for_a_whole_vector() -> None:
    """(0, 0) and (1, 2) keep their differences, 0 and 1: nothing in common."""
    assert findings(textbook.additive(mutants.OnceForAll(3 * ONE), 3, DrawCounts(400, 100)), "sampled")


def test_a_threshold_without_noise() -> None:
    """Groups of a person less and of one more than the threshold: shown never, and always."""
    right = laplace_threshold(2 * ONE, Fraction(1, 20), 1)
    bare = mutants.BareThreshold(right.noise, right.threshold, 1, right.delta)
    assert findings(textbook.groups(bare, DrawCounts(400, 400)), "sampled")
    assert findings(textbook.groups(bare, DrawCounts(400, 4_000)), "fit")


def test_a_threshold_rounded_as_for_continuous_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.mechanisms.laplace_threshold", mutants.continuous_threshold)
    (found,) = [one for one in findings(textbook.thresholds(DrawCounts(100, 100))) if one.claim.of_delta]
    assert found.found is not None
    assert found.found > 1.75 * found.claim.delta


def test_a_threshold_that_is_one_too_low() -> None:
    right = laplace_threshold(2 * ONE, Fraction(1, 20), 2)
    low = mutants.LowThreshold(right.noise, right.threshold - 1, 2, right.delta)
    assert findings(textbook.groups(low, DrawCounts(100, 100)), "exact")


@pytest.mark.power
def test_a_threshold_that_is_one_too_low_from_outside() -> None:
    """P(shown) = .12 where δ is .05, and never on the other table: 10,000 test draws prove an ε of 3.55 ± .04."""
    right = laplace_threshold(2 * ONE, Fraction(1, 20), 1)
    low = mutants.LowThreshold(right.noise, right.threshold - 1, 1, right.delta)
    assert findings(textbook.groups(low, DrawCounts(20_000, 400)), "sampled")


def test_partition_selection_that_pays_for_one_group_and_shows_two() -> None:
    """A person in two groups, each with the whole price."""

    class Careless(PartitionSelection):
        @property
        def table(self) -> tuple[int, ...]:
            return PartitionSelection(self.epsilon, self.delta).table

    assert findings(textbook.groups(Careless(ONE, Fraction(1, 20), cells=2), DrawCounts(100, 100)), "exact")


@pytest.mark.parametrize("wrong", some([mutants.WinnersCount, mutants.PlainGap], pytest.mark.power))
def test_more_than_place_and_gap(wrong: Callable[[Fraction], NoisyMax]) -> None:
    """The draws are not those of place and gap: the winner's count is 0 in four of ten where the gap would be."""
    assert findings(textbook.largest(wrong(ONE), SIZES), "fit")


def test_the_winners_count_from_outside() -> None:
    """Counts (0, 0) and (1, 1): the winner's noisy count is 0 with probability .4, and never. 500 test draws prove an
    ε of 2.2 ± .14."""
    target = textbook.choice(
        "winner's count",
        textbook.Claim.of(NoisyMax(ONE).loss()),
        mutants.WinnersCount(ONE).release_with_gap,
        lambda _: {},
        ((), ()),
        ((0, 0), (1, 1)),
        DrawCounts(1_000, 0),
    )[1]
    assert findings([target], "sampled")


def test_answers_without_noise_above_a_noisy_threshold() -> None:
    targets = textbook.watch(mutants.Unwatched(0, ONE), DrawCounts(400, 400))
    assert findings(targets, "exact")
    assert not findings(textbook.watch(AboveThreshold(0, ONE), DrawCounts(400, 400)))


def test_randomised_response_that_forgets_the_number_of_choices() -> None:
    """The truth with e^ε/(1 + e^ε) among four: ε is 2.1, not 1; 1,500 test draws prove 1.61 ± .07."""
    assert findings(textbook.response(mutants.louder_response(ONE, 4), SIZES), "exact")
    assert findings(textbook.response(mutants.louder_response(ONE, 4), SIZES), "sampled")
    assert not findings(textbook.response(randomised_response(ONE, 4), SIZES))


def test_draws_that_all_fail_are_no_pass() -> None:
    class Broken(Laplace):
        def release(self, exact: Sequence[int]) -> list[int]:
            raise OSError(len(exact))

    with pytest.raises(RuntimeError, match="every draw failed"):
        run(textbook.additive(Broken(ONE), 1, DrawCounts(10, 10))[:1], FALSE_ALARM)


def test_an_error_is_an_outcome() -> None:
    """A mechanism that fails for one neighbour only gives it away."""

    class Fussy(Laplace):
        def release(self, exact: Sequence[int]) -> list[int]:
            if exact[0]:
                raise ValueError
            return super().release(exact)

    assert findings(textbook.additive(Fussy(ONE), 1, DrawCounts(400, 100))[:1])
