"""Bounds cover as often as they say, after adaptive selection."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from discreet.markov import Domain, MarginalMeasurement
from discreet.mechanisms import Gaussian
from discreet.synthesis import adaptive, bounds, candidates
from discreet.synthesis import schedule as schedules
from discreet.synthesis.adaptive import synthesise
from discreet.synthesis.bounds import DISTANCE, MEASURED, ROWS, Distance, Evidence, largest, norm
from memory_measurer import Memory, counts, planned

DOMAIN = Domain.of({"a": 4, "b": 3, "c": 3})
RUNS = 200


def table(seed: int):
    generator = np.random.default_rng(seed)
    a = generator.integers(0, 4, 1500)
    b = (a + generator.integers(0, 2, 1500)) % 3
    c = np.where(generator.random(1500) < 0.7, b, generator.integers(0, 3, 1500))
    return np.stack([a, b, c], axis=1)


@pytest.mark.power
def test_whole_runs_are_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 runs with three pairs and four selections each. A bound may fail in 5 % of runs. The mean over the three
    of a run of 'failed' lies in [0, 1] and has mean at most .05: by Hoeffding's inequality it is above .235 over 200
    runs with a chance below e^(−2·200·.185²) < 1.2·10^−6. Bounds that forgot the noise would fail in half of all."""
    # bounds hold for rough models and short schedules too
    for room, name, rough in ((candidates, "ROWS", 300), (adaptive, "BETWEEN", 3), (adaptive, "LAST", 10)):
        monkeypatch.setattr(room, name, rough)
    monkeypatch.setattr(schedules, "ROUNDS", 1)
    data = table(0)
    schedule = planned("adaptive", DOMAIN, 2, Fraction(1, 10**6), workload=[("a", "b"), ("b", "c"), ("a", "c")])
    failed = tight = total = 0
    for _ in range(RUNS):
        result = synthesise(schedule, DOMAIN, Memory(data, DOMAIN))
        scale = result.model.total / max(1, len(result.rows))
        for clique in schedule.workload:
            bound = result.bounds[clique]
            difference = np.abs(counts(data, DOMAIN, clique) - scale * counts(result.rows, DOMAIN, clique))
            failed += bool(difference.sum() > bound.l1 or difference.max() > bound.cell)
            tight += bound.l1 < 1500
            total += 1
    assert total == 3 * RUNS
    assert failed / total < 0.235
    assert tight == total


ONE = Domain.of({"a": 1, "b": 3, "c": 2})
TIMES = 6


def adversary(generator) -> tuple[MarginalMeasurement, ...]:
    """Measures ("a", "b") until the average on a is off by more than its probable error, then something else: what is
    kept was stopped where it looks worst. The table is empty."""
    found: list[MarginalMeasurement] = []
    for _ in range(TIMES):
        sums = [one.values.sum() for one in found if "a" in one.clique]
        off = bool(sums) and abs(np.mean(sums)) > 0.6745 * 10 * math.sqrt(3 / len(sums))
        clique = ("b", "c") if off else ("a", "b")
        found.append(
            MarginalMeasurement(clique, np.rint(generator.normal(0, 10, ONE.shape(clique))).astype(int), Fraction(10))
        )
    return tuple(found)


def test_choices_that_follow_the_noise_are_covered() -> None:
    """2,000 runs at 50 % confidence of the measured bound alone. Intervals made as if the number of measurements had
    been fixed fail in about 80 % of them; ours may in 50 %, and above 59 % has a chance below e^(−32).

    A bound on |0 − answer| fails if it is below that; far answers on either side show the interval's ends.
    """
    generator = np.random.default_rng(0)
    failed = naive = 0
    for _ in range(2000):
        found = adversary(generator)
        evidence = Evidence(ONE, found, 0, TIMES, (("a", "b"), ("b", "c")), {})
        ends = [evidence.measured(("a",), np.array([end]), 0.5) for end in (-1e6, 1e6)]
        failed += any(cell < 1e6 for _, cell in ends)
        sums = [one.values.sum() for one in found if "a" in one.clique]
        naive += abs(np.mean(sums)) > 0.6745 * 10 * math.sqrt(3 / len(sums))
    assert naive > 1500
    assert failed < 0.59 * 2000


def test_the_noise_itself_is_covered() -> None:
    """Norm and largest cell of rounded Gaussian noise, summed over 5 cells each, averaged over two deviations: 400
    draws at 20 % miss; above 33.2 % with a chance below e^(−2·400·.132²) < 10^−6. Noise of deviation 0.4, where
    rounding is nearly all there is, too."""
    for small in (Fraction(2, 5), Fraction(7)):
        weights = np.array([0.8, 0.2])
        sigmas = [small, 2 * small]
        variance = sum(float(w * s) ** 2 * 5 for w, s in zip(weights, sigmas, strict=True))
        rounding = math.sqrt(sum(5 * w * w for w in weights))
        failed = [0, 0]
        for _ in range(400):
            parts = [np.array(Gaussian(s).release([0] * 60)).reshape(12, 5).sum(1) for s in sigmas]
            noise = np.abs(weights @ np.array(parts))
            failed[0] += noise.sum() > norm(12, variance, rounding, 0.2)
            failed[1] += noise.max() > largest(12, variance, rounding, 0.2)
        assert max(failed) < 0.332 * 400


def test_a_distance_bounds_other_answers_too() -> None:
    answer = np.full((4, 3), 10)
    evidence = Evidence(DOMAIN, (), 0, 0, (), {("a", "b"): Distance(answer, 30, Fraction(5))})
    same = evidence.bound(("a", "b"), answer.astype(float))
    miss = 0.05 * DISTANCE
    assert same.source == "distance"
    assert 30 + 5 * 1.6 < same.l1 < 30 + 5 * 2.2
    assert evidence.bound(("a", "b"), answer + 1.0).l1 == same.l1 + 12
    assert evidence.distance(("a", "c"), np.zeros((4, 3)), miss) == math.inf
    assert evidence.distance(("a", "b"), answer.astype(float), miss) == same.l1


def test_a_distance_that_noise_made_negative_is_bounded_by_the_noise() -> None:
    """It used to give 0, as if the table were known to be right: no distance is below 0, so the bound still holds."""
    answer = np.arange(12).reshape(4, 3)
    found = []
    for rows in (-1_000, -60, 0, 7):
        evidence = Evidence(DOMAIN, (), 0, 0, (), {("a", "b"): Distance(answer, rows, Fraction(40))})
        found.append(evidence.distance(("a", "b"), answer.astype(float), 0.05))
    least = NormalDist().inv_cdf(0.95) * 40
    assert found[0] == found[1] == found[2] == pytest.approx(least + 0.5)
    assert found[3] == pytest.approx(least + 7.5)


def test_nothing_known_bounds_nothing() -> None:
    evidence = Evidence(DOMAIN, (), 0, 0, (), {})
    bound = evidence.bound(("a",), np.ones(4))
    assert bound.l1 == math.inf
    assert bound.source in ("distance", "measured", "trivial")


def test_more_measurements_never_bound_worse_than_the_best_of_them_by_much() -> None:
    """Twenty measurements of a pair: the average's bound is below half of the single one's."""
    generator = np.random.default_rng(0)
    many = tuple(
        MarginalMeasurement(("a", "b"), np.rint(generator.normal(0, 20, (4, 3))).astype(np.int64), Fraction(20))
        for _ in range(20)
    )
    shapes = (("a", "b"),)
    answer = np.zeros((4, 3))
    one = Evidence(DOMAIN, many[:1], 0, 20, shapes, {}).measured(("a", "b"), answer, MEASURED * 0.05)
    all_adaptive = Evidence(DOMAIN, many, 0, 20, shapes, {}).measured(("a", "b"), answer, MEASURED * 0.05)
    certain = Evidence(DOMAIN, many, 20, 0, shapes, {}).measured(("a", "b"), answer, MEASURED * 0.05)
    assert certain[0] < all_adaptive[0] < one[0]
    assert certain[1] < all_adaptive[1] < one[1]


def some_evidence(generator: np.random.Generator) -> Evidence:
    """Up to 30 measurements of any cliques of four columns, some of merged cells, any number of them certain."""
    domain = Domain.of({name: int(generator.integers(1, 5)) for name in "abcd"})
    cliques = [part for size in range(1, 4) for part in itertools.combinations(domain.names, size)]
    found = []
    for _ in range(generator.integers(0, 31)):
        clique = cliques[generator.integers(len(cliques))]
        merged = tuple(
            tuple(i // 2 for i in range(n)) if generator.random() < 0.2 else None for n in domain.shape(clique)
        )
        shape = [n if one is None else max(one) + 1 for n, one in zip(domain.shape(clique), merged, strict=True)]
        sigma = Fraction(int(generator.integers(1, 400)), 10)
        values = generator.integers(-50, 1000, shape)
        found.append(
            MarginalMeasurement(clique, values, sigma, merged if generator.random() < 0.5 or any(merged) else ())
        )
        found[-1].check(domain)
    certain = int(generator.integers(0, 1 + len(found) + 3 * (generator.random() < 0.2)))
    shapes = tuple(one for one in cliques if generator.random() < 0.7)
    distances = {
        one: Distance(generator.integers(0, 500, domain.shape(one)), int(generator.integers(-20, 900)), Fraction(9))
        for one in cliques
        if generator.random() < 0.3
    }
    return Evidence(domain, tuple(found), certain, int(generator.integers(0, 40)), shapes, distances)


def plainly(one: Evidence, clique: tuple[str, ...], answer: np.ndarray, miss: float) -> tuple[float, float]:
    """What `measured` says, each average made anew from its own measurements."""
    cells = one.domain.cells(clique)
    sure, more = [], []
    for place, measured in enumerate(one.measurements):
        merged = dict(zip(measured.clique, measured.merged or [None] * 4, strict=False))
        if all(name in merged and merged[name] is None for name in clique):
            (sure if place < one.certain else more).append(measured)
    more.sort(key=lambda each: each.values.size * float(each.sigma) ** 2)
    kinds = {one.domain.cells(shape) for shape in one.shapes if set(clique) <= set(shape)}
    found = [(math.inf, math.inf)]
    for count in range(min(8, len(more)) + 1):
        if not (used := sure + more[:count]):
            continue
        part = 0.5 if count == 0 else 0.5**count / 2 / max(1, len(kinds)) ** count
        share = miss * part / math.comb(max(one.rounds, len(more)), count)
        repeats = np.array([each.values.size / cells for each in used])
        variances = repeats * np.array([float(each.sigma) ** 2 for each in used])
        variance = 1 / (1 / variances).sum()
        average = np.zeros(one.domain.shape(clique))
        for each, v in zip(used, variances, strict=True):
            away = tuple(axis for axis, name in enumerate(each.clique) if name not in clique)
            average = average + each.values.sum(axis=away) * (variance / v)
        rounding = math.sqrt((repeats * (variance / variances) ** 2).sum())
        off = np.abs(average - answer)
        noise = norm(cells, variance, rounding, share), largest(cells, variance, rounding, share)
        found.append((off.sum() + noise[0], off.max() + noise[1]))
    return min(norm_bound for norm_bound, _ in found), min(cell for _, cell in found)


def test_running_sums_say_what_averages_made_anew_say() -> None:
    """40 pieces of evidence, all cliques of each in any order, at one confidence, another, and the first again: equal
    to 10^−12."""
    generator = np.random.default_rng(0)
    sources: Counter[str] = Counter()
    for _ in range(40):
        one = some_evidence(generator)
        cliques = [part for size in range(4) for part in itertools.combinations(one.domain.names, size)]
        for confidence in (0.95, 0.5, 0.95):
            miss = 1 - confidence
            rows, _ = plainly(one, (), np.zeros(()), ROWS * miss)
            for place in generator.permutation(len(cliques)):
                clique = cliques[place]
                answer = generator.integers(0, 1500, one.domain.shape(clique)).astype(float)
                norm_bound, cell = plainly(one, clique, answer, MEASURED * miss)
                assert one.measured(clique, answer, MEASURED * miss) == pytest.approx((norm_bound, cell), rel=1e-12)
                least = min(one.distance(clique, answer, DISTANCE * miss), norm_bound, rows + answer.sum())
                bound = one.bound(clique, answer, confidence)
                assert (bound.l1, bound.cell) == pytest.approx((least, min(cell, least)), rel=1e-12)
                sources[bound.source] += 1
    assert min(sources[source] for source in ("distance", "measured", "trivial")) > 100


def test_each_measurement_is_summed_once_for_each_clique(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nine averages hold it; and what all cliques need of the number of rows is computed once."""
    summed: Counter[tuple[MarginalMeasurement, tuple[str, ...]]] = Counter()
    onto = bounds._onto

    def noted(one: MarginalMeasurement, clique: tuple[str, ...]):
        summed[one, clique] += 1
        return onto(one, clique)

    monkeypatch.setattr(bounds, "_onto", noted)
    many = tuple(MarginalMeasurement(("a", "b"), np.ones((4, 3), np.int64), Fraction(3)) for _ in range(20))
    evidence = Evidence(DOMAIN, many, 5, 15, (("a", "b"),), {})
    for clique in (("a",), ("b",), ("a", "b")):
        evidence.bound(clique, np.ones(DOMAIN.shape(clique)))
    assert set(summed.values()) == {1}
    assert len(summed) == 4 * (5 + 8)
