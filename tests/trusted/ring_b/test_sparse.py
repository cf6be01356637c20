"""Above threshold: the exact distribution of its replies on neighbours, mutants, the run itself, and draws.

q1 and q2 are e^(−1/scale) of the threshold's and the answers' noise, as fractions: e^ε is then q1^(−Δ)·q2^(−w·limit·Δ).
The sum over the threshold's noise is cut at ±REACH, which leaves out less than 10^−9 of any probability compared.
"""

from __future__ import annotations

import copy
import math
import pickle
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import product

import pytest

from discreet import accounting
from discreet.trusted.ring_b import sparse
from discreet.trusted.ring_b.sparse import AboveThreshold, Watch
from kinds import some
from random_words import SeededWords
from textbook_tools import SMALLEST, changes, geometric, goodness, moved, power, ratio, two_sided

KIND = "exact"

ONE, HALF = Fraction(1), Fraction(1, 2)
REACH = 60
HAIR = 1 + Fraction(1, 10**9)

Tail = Callable[[int], Fraction]


def laplace_tail(q: Fraction) -> Tail:
    """P(V ≥ r) of discrete Laplace noise."""
    return cache(lambda r: q**r / (1 + q) if r > 0 else 1 - q ** (1 - r) / (1 + q))


def geometric_tail(q: Fraction) -> Tail:
    return cache(lambda r: q ** max(0, r))


def replies(answers: Sequence[int], bar: Mapping[int, Fraction], tail: Tail, limit: int) -> dict[tuple, Fraction]:
    """The probability of every sequence of replies at threshold 0."""
    found: dict[tuple, Fraction] = defaultdict(Fraction)
    for height, mass in bar.items():
        level = {(): mass}
        for answer in answers:
            following: dict[tuple, Fraction] = {}
            yes = tail(height - answer)
            for said, here in level.items():
                if sum(said) == limit:
                    found[said] += here
                    continue
                following[*said, True] = here * yes
                following[*said, False] = here * (1 - yes)
            level = following
        for said, here in level.items():
            found[said] += here
    return {said: mass for said, mass in found.items() if mass}


def noises(kind: str, q1: Fraction, q2: Fraction) -> tuple[dict[int, Fraction], Tail]:
    if kind == "laplace":
        return two_sided(q1, REACH), laplace_tail(q2)
    return geometric(q1, REACH), geometric_tail(q2)


@pytest.mark.parametrize("kind", ["laplace", "geometric"])
@pytest.mark.parametrize(
    ("limit", "monotone"), some([(1, False), (2, True), (1, True), (2, False)], pytest.mark.power, quick=2)
)
def test_the_loss_is_at_most_epsilon(kind: str, limit: int, monotone: bool) -> None:
    """Three answers around the threshold, all that one person can do to them."""
    moves = limit if monotone else 2 * limit
    bar, tail = noises(kind, HALF, HALF)
    find = cache(lambda answers: replies(answers, bar, tail, limit))
    worst = max(
        ratio(find(answers), find(moved(answers, change)))
        for answers in product(range(-1, 2), repeat=3)
        for change in changes(3, *((0, 1) if monotone else (-1, 0, 1)))
    )
    assert 2 ** (1 + moves) / 6 < worst <= 2 ** (1 + moves) * HAIR


def adversary(length: int, limit: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Many answers that rise by one while those that matter fall by one."""
    return (0,) * length + (1,) * limit, (1,) * length + (0,) * limit


def outcome(length: int, limit: int) -> tuple[bool, ...]:
    return (False,) * length + (True,) * limit


def probability(answers: Sequence[int], said: Sequence[bool], bar: Mapping[int, Fraction], tail: Tail) -> Fraction:
    """Of one sequence of replies."""
    total = Fraction(0)
    for height, mass in bar.items():
        for answer, count in Counter(zip(answers, said, strict=True)).items():
            yes = tail(height - answer[0])
            mass *= (yes if answer[1] else 1 - yes) ** count
        total += mass
    return total


def loss(q1: Fraction, q2: Fraction, limit: int, kind: str = "laplace", length: int = 200) -> Fraction:
    """The adversary's ratio."""
    bar, tail = noises(kind, q1, q2)
    first, second = (probability(answers, outcome(length, limit), bar, tail) for answers in adversary(length, limit))
    return max(first / second, second / first) if min(first, second) else Fraction(10**9)


@pytest.mark.parametrize("kind", ["laplace", "geometric"])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_an_adversary_comes_close_to_epsilon_and_not_above(kind: str, limit: int) -> None:
    """q1 = q2 = 1/2: e^ε = 2·4^limit; two hundred questions that say no and then `limit` that say yes."""
    found = loss(HALF, HALF, limit, kind)
    assert 2 * 4**limit * Fraction(9, 10) < found <= 2 * 4**limit * HAIR


def test_mutants_are_caught() -> None:
    """Each promises e^ε = 2·4^limit."""
    assert loss(HALF**2, HALF, 1) > 8 * HAIR  # half the noise on the threshold
    assert loss(HALF, HALF**2, 1) > 8 * HAIR  # half the noise on the answers: the factor 2 left out
    assert loss(HALF, HALF**2, 2) > 32 * HAIR  # the noise of limit 1 for limit 2
    assert loss(Fraction(0), HALF, 1) > 8 * HAIR  # a threshold without noise
    assert loss(HALF, Fraction(0), 1, length=3) > 8 * HAIR  # answers without noise
    assert loss(HALF, HALF, 2) > 8 * HAIR  # one yes more than the limit
    double = [tuple(2 * answer - 1 for answer in answers) for answers in adversary(200, 1)]  # sensitivity off by one
    first, second = (probability(answers, outcome(200, 1), *noises("laplace", HALF, HALF)) for answers in double)
    assert max(first / second, second / first) > 8 * HAIR


def test_the_noisy_answer_must_not_come_with_a_yes() -> None:
    """P(no, …, no, then yes at v) has V = v − q: its probability moves by q1·q2, and so do the noes, without a limit.

    As v is known, all the noes say of the threshold is that it is above what they had and at most v: the threshold's
    noise no longer hides them. The promise was 8.
    """
    bar, tail = noises("laplace", HALF, HALF)

    def given(answers: Sequence[int], value: int) -> Fraction:
        noes = (
            mass * (1 - tail(height - answers[0])) ** (len(answers) - 1)
            for height, mass in bar.items()
            if height <= value
        )
        return sum(noes, Fraction(0)) * HALF ** abs(value - answers[-1]) / 3

    first, second = (given(answers, -3) for answers in adversary(30, 1))
    assert first / second > 10**6


@pytest.mark.parametrize("kind", ["laplace", "geometric"])
def test_the_run_does_what_was_enumerated(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every noise value from −1, 0, 1 for the threshold and each of three answers, played to the run itself."""
    share = {-1: Fraction(1, 4), 0: Fraction(1, 2), 1: Fraction(1, 4)}
    tail = cache(lambda r: sum((mass for value, mass in share.items() if value >= r), Fraction(0)))
    script: list[int] = []
    monkeypatch.setattr(sparse, "sample", lambda _sampler, size, _words: [script.pop(0) for _ in range(size)])
    for answers, limit in product([(5, 5, 5), (4, 6, 5), (5, 4, 5)], [1, 2]):
        mechanism = AboveThreshold(5, ONE, limit=limit, one_sided=kind == "geometric")
        centre = round(mechanism.scales[0] - mechanism.scales[1]) if mechanism.one_sided else 0
        found: dict[tuple, Fraction] = defaultdict(Fraction)
        for drawn in product(share, repeat=4):
            script[:] = [drawn[0] + centre, *drawn[1:]]
            said = tuple(mechanism.release(answers))
            found[said] += math.prod((share[value] for value in drawn), start=ONE)
        assert dict(found) == replies([answer - 5 for answer in answers], share, tail, limit)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 10, 1000])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_the_scales_spend_epsilon_exactly(limit: int, sensitivity: int, monotone: bool) -> None:
    epsilon = Fraction(7, 10)
    first, second = AboveThreshold(0, epsilon, sensitivity, limit, monotone).scales
    moves = limit if monotone else 2 * limit
    assert sensitivity / first + moves * sensitivity / second == epsilon
    # the split that makes first² + second² least, to a part in 10^6
    float_split = 1 / (1 + moves ** (2 / 3))
    least = (sensitivity / (float_split * 0.7)) ** 2 + (moves * sensitivity / ((1 - float_split) * 0.7)) ** 2
    assert float(first**2 + second**2) == pytest.approx(least, rel=1e-6)


def test_a_run_halts() -> None:
    mechanism = AboveThreshold(0, Fraction(1000), limit=2)
    watch = mechanism.open()
    assert [watch.ask(answer) for answer in (-50, 50, -50, 50)] == [False, True, False, True]
    assert watch.halted
    with pytest.raises(ValueError, match="halted"):
        watch.ask(-50)
    assert mechanism.release([-50, 50, 50, 50, 50]) == [False, True, True]
    assert mechanism.loss() == accounting.Pure(Fraction(1000))


def test_a_run_cannot_be_copied_stored_or_carried_to_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = AboveThreshold(5, ONE).open()
    for store in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="copied or stored"):
            store(watch)
    assert repr(watch) == "<above threshold, open>"
    monkeypatch.setattr(sparse.os, "getpid", lambda: -1)
    with pytest.raises(ValueError, match="another process"):
        watch.ask(1)


def test_threads_share_the_limit() -> None:
    """Eight threads, 200 questions each, all far above: `limit` times yes in all."""
    watch, said = AboveThreshold(0, ONE, limit=5).open(), []

    def ask() -> None:
        for _ in range(200):
            try:
                said.append(watch.ask(10**6))
            except ValueError:
                return

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == [True] * 5


@pytest.mark.parametrize("one_sided", some([False, True], pytest.mark.power))
@pytest.mark.parametrize(("limit", "monotone"), some([(1, False), (2, True)], pytest.mark.power))
def test_draws_fit(limit: int, monotone: bool, one_sided: bool) -> None:
    """6,000 runs (p < 1e-6 fails); noise of .7 of the scale is found with probability above .99, and is."""
    mechanism = AboveThreshold(10, ONE, 1, limit, monotone, one_sided)
    answers = (8, 11, 10, 14)

    def law(mechanism: AboveThreshold) -> dict:
        q1, q2 = (Fraction(math.exp(-1 / scale)) for scale in mechanism.scales)
        bar, tail = noises("geometric" if one_sided else "laplace", q1, q2)
        centre = round(mechanism.scales[0] - mechanism.scales[1]) if one_sided else 0
        return replies([answer - 10 + centre for answer in answers], bar, tail, limit)

    def runs(mechanism: AboveThreshold, words: SeededWords | None = None) -> list[tuple]:
        return [tuple(mechanism.release(answers, words)) for _ in range(6000)]

    expected = law(mechanism)
    assert goodness(runs(mechanism), expected) > SMALLEST
    mutant = AboveThreshold(10, Fraction(10, 7), 1, limit, monotone, one_sided)
    assert power(expected, law(mutant), 6000) > 0.99
    assert goodness(runs(mutant, SeededWords(3)), expected) < SMALLEST


@pytest.mark.parametrize("one_sided", some([False, True], pytest.mark.power))
def test_half_width_holds(one_sided: bool) -> None:
    """1,000 runs of 20 questions at ±half_width around the threshold: at most 50 are expected to go wrong.

    More than 95 have a probability below 10^−8. One-sided noise allows a narrower width.
    """
    mechanism = AboveThreshold(0, ONE, limit=20, monotone=True, one_sided=one_sided)
    width = math.ceil(mechanism.half_width(0.95, 20))
    answers = [width + 1, -width - 1] * 10
    wrong = sum(mechanism.release(answers) != [True, False] * 10 for _ in range(1000))
    assert wrong <= 95
    if one_sided:
        assert width < AboveThreshold(0, ONE, limit=20, monotone=True).half_width(0.95, 20)


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": 1.0},
        {"epsilon": Fraction(0)},
        {"threshold": 0.5},
        {"sensitivity": 0},
        {"sensitivity": ONE},
        {"limit": 0},
        {"limit": True},
    ],
)
def test_bad_parameters(bad: dict) -> None:
    with pytest.raises(ValueError, match=r"epsilon|integers|at least 1"):
        AboveThreshold(**{"threshold": 0, "epsilon": ONE, **bad})


@pytest.mark.parametrize("answer", [1.0, True, ONE])
def test_answers_are_integers(answer: object) -> None:
    watch: Watch = AboveThreshold(0, ONE).open()
    with pytest.raises(ValueError, match="must be integers"):
        watch.ask(answer)
