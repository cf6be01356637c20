"""Hiding among clones: bounds that are certified, tight where that is known, and claimed only if somebody mixes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import comb
from pathlib import Path

import pytest

from discreet.errors import QuestionError
from discreet.local import Collection, Number
from discreet.local.shuffle import Clones, central, weights
from discreet.trusted.ring_a.exact import exp_bounds
from kinds import some
from local_tools import collected, collector

MILLIONTH = Fraction(1, 10**6)
YES = {epsilon: Collection("a", "b", ["no", "yes"], epsilon=epsilon) for epsilon in (1, 2, 4)}


def exact_delta(clones: Clones, others: int, factor: Fraction) -> Fraction:
    """The hockey-stick divergence of the two sides, summed over all outcomes with fractions."""
    likely, unlikely = clones.odds
    high, low = Fraction(likely, likely + unlikely), Fraction(unlikely, likely + unlikely)
    total = Fraction(0)
    for count in range(others + 1):
        chance = comb(others, count) * clones.rate**count * (1 - clones.rate) ** (others - count)
        for place in range(count + 2):
            with_one, without = (
                Fraction(comb(count, k), 2**count) if k >= 0 else Fraction(0) for k in (place - 1, place)
            )
            first, second = high * with_one + low * without, low * with_one + high * without
            total += chance * max(Fraction(0), first - factor * second)
    return total * clones.seen


@pytest.mark.parametrize("others", [0, 1, 5, 40])
@pytest.mark.parametrize("factor", ["1", "1.1", "1.5", "3"])
def test_the_bound_is_above_the_sum_over_all_outcomes_and_close(others: int, factor: str) -> None:
    for clones in (
        Clones((3, 1), Fraction(1, 2), Fraction(1)),
        Clones((7, 2), Fraction(2, 7), Fraction(1)),
        Clones((5, 2), Fraction(1, 9), Fraction(2, 3)),
    ):
        true, found = exact_delta(clones, others, Fraction(factor)), clones.delta(others, Fraction(factor))
        assert true <= found <= true * Fraction(101, 100) + Fraction(1, 1 << 50)


def binary(others: int, odds: tuple[int, int], factor: Fraction) -> Fraction:
    """Yes or no, when all others say no: how far apart the totals of yes are for one person's two answers."""
    likely, unlikely = odds
    chance = Fraction(unlikely, likely + unlikely)
    noise = [comb(others, k) * chance**k * (1 - chance) ** (others - k) for k in range(others + 1)]
    at = lambda k: noise[k] if 0 <= k <= others else Fraction(0)  # noqa: E731
    return max(
        sum(
            max(Fraction(0), a * at(k) + b * at(k - 1) - factor * (b * at(k) + a * at(k - 1)))
            for k in range(others + 2)
        )
        for a, b in ((1 - chance, chance), (chance, 1 - chance))
    )


def test_what_shuffled_answers_really_show_stays_below() -> None:
    clones = Clones.of(Collection("a", "b", ["no", "yes"], epsilon="ln 3"))
    assert clones == Clones((3, 1), Fraction(1, 2), Fraction(1))
    for others in (1, 10, 60):
        for factor in (Fraction(11, 10), Fraction(3, 2), Fraction(2)):
            assert binary(others, (3, 1), factor) <= clones.delta(others, factor)


@pytest.mark.parametrize(
    ("epsilon", "reports", "known"),
    some(
        [(2, 10_000, 0.1145), (1, 1_000_000, 0.0035), (1, 10_000, 0.0432), (4, 100_000, 0.1183)],
        pytest.mark.power,
        quick=2,
    ),
)
def test_known_values(epsilon: int, reports: int, known: float) -> None:
    assert central(YES[epsilon], reports, MILLIONTH, "x").epsilon == pytest.approx(known, abs=6e-5)


def test_the_general_bound_for_what_has_no_simple_shape() -> None:
    found = central(Collection("a", "b", Number(0, 100), epsilon=1), 10_000, MILLIONTH, "x")
    assert found.epsilon == pytest.approx(0.0531, abs=6e-5)


def test_reports_of_one_memory_are_clones_of_each_other_only_as_far_as_they_are_fresh() -> None:
    """Two respondents, three reports of each; one of them changes the last answer. What the six show after mixing is
    summed over all memories: with epsilon 0.5 and each 4, it is far more than epsilon 0.5 would allow."""
    often = Collection("a", "b", ["no", "yes"], epsilon="0.5", each=4, cap=12)
    first, again = often.parts[0][1].channel, often.again(often.parts[0][1])

    def yes_counts(memories: Sequence[int]) -> list[Fraction]:
        law = [Fraction(1)]
        for memory in memories:
            yes = again.truth if memory else again.other
            law = [(1 - yes) * a + yes * b for a, b in zip([*law, Fraction(0)], [Fraction(0), *law], strict=True)]
        return law

    def shown(changed: bool) -> list[Fraction]:
        total = [Fraction(0)] * 7
        for own, other, new in product((0, 1), repeat=3):
            chance = Fraction(1)
            for memory, answer in ((own, 1), (other, 1), (new, 0)):
                chance *= first.truth if memory == answer else first.other
            law = yes_counts([other] * 3 + [own] * 2 + [new if changed else own])
            total = [a + chance * b for a, b in zip(total, law, strict=True)]
        return total

    one, two = shown(False), shown(True)
    for factor, breaks in ((exp_bounds(often.epsilon, 64)[1], True), (Fraction(*often.each_odds), False)):
        delta = max(
            sum(max(Fraction(0), a - factor * b) for a, b in zip(*pair, strict=True))
            for pair in ((one, two), (two, one))
        )
        assert (delta > Fraction(1, 10)) == breaks
        assert delta <= Clones.of(often).delta(5, factor)
    assert central(often, 6, MILLIONTH, "x").epsilon > 3
    rarely = Collection("a", "b", ["no", "yes"], epsilon=10, each="0.5", cap=5)
    assert central(rarely, 10_000, MILLIONTH, "x").epsilon < 0.1


def test_reports_hide_only_among_those_that_nothing_tells_apart(tmp_path: Path) -> None:
    """What is sent as it is, and with `each` what a report is about, which is the same for all of a respondent's."""
    public = Collection("a", "b", ["no", "yes"], epsilon=1, public=["country", "sex"])
    people = (
        [{"country": "DE", "sex": "f"}] * 40
        + [{"country": "DE", "sex": "m"}] * 30
        + [{"country": "FR", "sex": "f"}] * 7
    )
    for folder in ("public", "None", "0.5"):
        (tmp_path / folder).mkdir()
    with collector(public, tmp_path / "public", ["yes"] * 77, public=people) as found:
        assert found.central_epsilon("1e-6", shuffled_by="us").reports == 7
    several = {"x": ["no", "yes"], "y": ["no", "yes"]}
    answers = [{"x": "no", "y": "no"}] * 60
    for each, all_ in ((None, True), ("0.5", False)):
        record = Collection("a", "b", several, epsilon=1, each=each)
        with collector(record, tmp_path / str(each), answers) as found:
            assert (found.central_epsilon("1e-6", shuffled_by="us").reports == 60) == all_
            assert found.central_epsilon("1e-6", shuffled_by="us", window="2026-10").reports == 0


def test_never_more_than_the_local_loss() -> None:
    for reports in (0, 1, 2, 30):
        assert central(YES[1], reports, Fraction(1, 10**12), "x").epsilon <= 1 + 1e-9


def test_the_epsilon_is_rounded_up() -> None:
    found = central(YES[1], 5_000, MILLIONTH, "x")
    factor = exp_bounds(Fraction(found.epsilon), 64)[0]
    assert Clones.of(YES[1]).delta(4_999, factor) <= MILLIONTH


@pytest.mark.parametrize(
    ("count", "rate"), [(60, Fraction(1, 2)), (200, Fraction(1, 37)), (0, Fraction(1, 2)), (5, Fraction(9, 10))]
)
def test_binomial_bounds_enclose(count: int, rate: Fraction) -> None:
    lows, highs = weights(count, rate)
    mode = next(place for place in lows if lows[place] == highs[place] == max(highs.values()))
    unit = comb(count, mode) * rate**mode * (1 - rate) ** (count - mode)
    for place in lows:
        true = comb(count, place) * rate**place * (1 - rate) ** (count - place) / unit * (1 << 192)
        assert lows[place] <= true <= highs[place]
    left_out = 1 - sum(comb(count, k) * rate**k * (1 - rate) ** (count - k) for k in lows)
    assert left_out < Fraction(1, 1 << 60)


def test_only_if_somebody_is_said_to_mix(tmp_path: Path) -> None:
    with collector(YES[1], tmp_path, ["yes"] * 50) as found:
        for wrong in ("", " ", None):
            with pytest.raises(QuestionError):
                found.central_epsilon("1e-6", shuffled_by=wrong)
        for delta in (0, 1, -1, "x", "1e-20"):
            with pytest.raises(QuestionError):
                found.central_epsilon(delta, shuffled_by="us")
        known = found.central_epsilon("1e-6", shuffled_by="the mix server")
        assert (known.reports, known.shuffled_by) == (50, "the mix server")
        assert collected(YES[1], ["no"])[0].report in (0, 1)


def test_importing_the_room_imports_no_engine() -> None:
    code = "import sys, discreet.local; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "discreet.local.collector" in loaded
    rooms = {name.split(".")[1] for name in loaded if name.startswith("discreet.")}
    assert rooms == {"accounting", "errors", "local", "locks", "look", "texts", "trusted"}
    assert not any(name.startswith(("discreet.trusted.ledger", "sqlglot", "duckdb")) for name in loaded)
    assert not {"duckdb", "sqlglot", "pandas"} & set(loaded)
