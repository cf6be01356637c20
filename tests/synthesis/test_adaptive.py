"""Whole runs on made-up tables: what is spent, what is learnt, interruptions, bad input."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting import BoundedRange, compose
from discreet.errors import QuestionError
from discreet.markov import Domain, MarginalMeasurement
from discreet.markov.measurement import averages, total_rows
from discreet.synthesis import adaptive
from discreet.synthesis.adaptive import EndedEarly, SeenCounts, synthesise
from discreet.synthesis.candidates import weights
from discreet.synthesis.schedule import METHODS, closure
from discreet.synthesis.tails import falling
from kinds import some
from memory_measurer import Memory, counts, planned

DELTA = Fraction(1, 10**9)
DOMAIN = Domain.of({"a": 6, "b": 5, "c": 4, "d": 3, "e": 2})


def chain(rows: int, seed: int = 0):
    """Each column depends on the one before."""
    generator = np.random.default_rng(seed)
    columns = [generator.choice(6, rows, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])]
    for size in DOMAIN.sizes[1:]:
        kept = generator.random(rows) < 0.8
        columns.append(np.where(kept, columns[-1] % size, generator.integers(0, size, rows)))
    return np.stack(columns, axis=1)


def error(result, table, size: int) -> float:
    """The mean ℓ1 distance of the shares, over all marginals of so many columns."""
    found = [
        np.abs(counts(result.rows, DOMAIN, c) / len(result.rows) - counts(table, DOMAIN, c) / len(table)).sum()
        for c in itertools.combinations(DOMAIN.names, size)
    ]
    return float(np.mean(found))


@pytest.mark.parametrize("method", METHODS)
def test_every_step_is_one_that_the_schedule_declared(method) -> None:
    """Also with three rows a person, and nothing is spent twice."""
    schedule = planned(method, DOMAIN, 1, DELTA, rows_per_person=3)
    measurer = Memory(chain(2000), DOMAIN, 3)
    result = synthesise(schedule, DOMAIN, measurer)
    assert result.complete
    assert not Counter(measurer.spent) - Counter(schedule.parts)
    assert len(measurer.spent) >= len(schedule.parts) - 2 * len(schedule.rounds)
    assert [one.step for one in result.log] == list(range(1, len(result.log) + 1))
    assert set(schedule.workload) <= set(result.bounds)


def test_dependence_is_learnt_and_independence_is_not_enough() -> None:
    """20,000 rows, epsilon 5: errors of about 0.02 (adaptive), 0.02 (tree), 0.03 (all pairs), 0.5 (alone)."""
    table = chain(20_000)
    found = {}
    for method in METHODS:
        pairs = tuple(itertools.combinations(DOMAIN.names, 2))
        schedule = planned(method, DOMAIN, 5, DELTA, workload=pairs if method == "workload" else None)
        found[method] = error(synthesise(schedule, DOMAIN, Memory(table, DOMAIN)), table, 2)
    assert found["adaptive"] < 0.06
    assert found["mst"] < 0.08
    assert found["workload"] < 0.08
    assert found["independent"] > 0.3


def test_a_tree_of_pairs_is_what_mst_measures() -> None:
    schedule = planned("mst", DOMAIN, 1, DELTA)
    result = synthesise(schedule, DOMAIN, Memory(chain(5000), DOMAIN))
    pairs = [one.clique for one in result.measurements if len(one.clique) == 2]
    assert len(pairs) == len(set(pairs)) == 4
    assert result.model.tree.cells <= sum(DOMAIN.cells(pair) for pair in pairs)


def test_columns_that_a_rule_is_about_are_not_joined_by_it() -> None:
    """What is impossible says nothing of what else a pair has: it is measured like others."""
    impossible = np.zeros((3, 2), bool)
    impossible[2, 0] = True
    table = chain(5000)
    table = table[(table[:, 3] != 2) | (table[:, 4] != 0)]
    measurer, schedule = Memory(table, DOMAIN), planned("mst", DOMAIN, 1, DELTA)
    result = synthesise(schedule, DOMAIN, measurer, zeros={("d", "e"): impossible})
    assert len([one for one in result.measurements if len(one.clique) == 2]) == 4
    assert Counter(measurer.spent) == Counter(schedule.parts)


def test_what_is_known_already_is_used_and_not_measured_again() -> None:
    table = chain(5000)
    known = [MarginalMeasurement((name,), counts(table, DOMAIN, (name,)), Fraction(1)) for name in DOMAIN.names]
    measurer = Memory(table, DOMAIN)
    schedule = planned("independent", DOMAIN, 1, DELTA, singles=())
    result = synthesise(schedule, DOMAIN, measurer, initial=known)
    assert not [one for one in measurer.spent if one in schedule.parts[:-1]]
    assert result.model.total == pytest.approx(5000)
    assert np.abs(counts(result.rows, DOMAIN, ("a",)) - counts(table, DOMAIN, ("a",))).max() <= 3


def test_counts_of_found_values_are_fitted_and_no_bound_follows_from_them() -> None:
    """Five cells of six are known to a row, where noise of a count is 165 rows of 5,000 (without them the shares are
    off by .13). How many rows there are in all is what was measured of all cells."""
    table = chain(5000)
    exact = counts(table, DOMAIN, ("a",)).astype(np.int64)
    seen = SeenCounts(exact, np.array([True] * 5 + [False]), Fraction(1))
    measurer, schedule = Memory(table, DOMAIN), planned("adaptive", DOMAIN, Fraction(1, 5), DELTA)
    result = synthesise(schedule, DOMAIN, measurer, counted={"a": [seen]})
    made = counts(result.rows, DOMAIN, ("a",))[:5]
    assert np.abs(made / made.sum() - exact[:5] / exact[:5].sum()).sum() < 0.06
    assert result.model.total == pytest.approx(total_rows(result.measurements), abs=1)
    assert not Counter(measurer.spent) - Counter(schedule.parts)
    assert all(one.sigma > 20 for one in result.evidence.measurements)


def test_the_highest_cells_fall_in_the_model_and_no_bound_follows_from_that() -> None:
    """Noise makes 30 and 25 of cells that hold nobody; what is said of them is held closer than what was measured."""
    domain, found = Domain.of({"n": 9, "x": 2}), {"n": [320, 160, 80, 9, -10, 30, -20, 25, 500], "x": [594, 500]}

    class Fixed(Memory):
        def measure(self, clique, sigma):
            super().measure(clique, sigma)
            return np.array(found[clique[0]], np.int64)

    schedule = planned("independent", domain, Fraction(1, 5), DELTA)
    measurer = Fixed(np.zeros((1094, 2), np.int64), domain)
    result = synthesise(schedule, domain, measurer, tails={"n": np.ones(8, np.int64)})
    model = result.model.marginal(("n",))
    said = falling(
        averages([one for one in result.measurements if one.clique == ("n",)])[0], np.ones(8, np.int64), 1094
    )
    assert said is not None
    tail = slice(9 - len(said.values), 8)
    assert np.abs(model[tail] - said.values[1:]).max() < 2 * said.sigma
    assert result.model.total == pytest.approx(1094, abs=1)
    assert [one.sigma for one in result.measurements] == [schedule.single_sigma] * 2
    assert list(result.evidence.measurements) == list(result.measurements)


@pytest.mark.parametrize("how", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("after", [1, 5, 7])
def test_an_interruption_keeps_what_was_measured(how, after) -> None:
    def tell(progress) -> None:
        if progress.step == after:
            raise how

    schedule = planned("adaptive", DOMAIN, 1, DELTA)
    measurer = Memory(chain(3000), DOMAIN)
    result = synthesise(schedule, DOMAIN, measurer, tell=tell)
    assert not result.complete
    assert len(result.log) == after
    assert result.log[-1].spent <= 1
    assert len(result.rows) == round(result.model.total)
    assert {bound.source for bound in result.bounds.values()} <= {"measured", "trivial"}


def test_an_interrupted_measurement() -> None:
    class Interrupted(Memory):
        def measure(self, clique, sigma):
            if len(clique) > 1:
                raise EndedEarly
            return super().measure(clique, sigma)

        def distances(self, *_):
            raise AssertionError("nothing is measured after the user has interrupted")

    schedule = planned("adaptive", DOMAIN, 1, DELTA)
    result = synthesise(schedule, DOMAIN, Interrupted(chain(3000), DOMAIN))
    assert not result.complete
    assert len(result.measurements) == 5


def test_an_interruption_that_does_not_wait_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As while the last model is fitted: whoever wants what there is raises `EndedEarly` in place of the next step."""
    original = adaptive.fit

    def interrupted(*given, iterations: int, **named):
        if iterations == adaptive.LAST:
            raise KeyboardInterrupt
        return original(*given, iterations=iterations, **named)

    monkeypatch.setattr(adaptive, "fit", interrupted)
    schedule = planned("mst", DOMAIN, 1, DELTA)
    with pytest.raises(KeyboardInterrupt):
        synthesise(schedule, DOMAIN, Memory(chain(500), DOMAIN))


def test_zeros_hold_in_the_rows_and_contradictions_cost_nothing() -> None:
    table = chain(3000)
    impossible = np.zeros((3, 2), bool)
    impossible[2, 0] = True
    schedule = planned("adaptive", DOMAIN, 1, DELTA)
    rows = synthesise(schedule, DOMAIN, Memory(table, DOMAIN), zeros={("d", "e"): impossible}).rows
    assert not ((rows[:, 3] == 2) & (rows[:, 4] == 0)).any()
    measurer = Memory(table, DOMAIN)
    with pytest.raises(QuestionError, match="no row possible"):
        synthesise(schedule, DOMAIN, measurer, zeros={("d", "e"): np.ones((3, 2), bool)})
    assert not measurer.spent


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rows", some([0, 1, 30], pytest.mark.power))
def test_small_tables_at_a_small_price(method, rows) -> None:
    """Totals come out negative half the time: no error, whatever is drawn."""
    schedule = planned(method, DOMAIN, "0.01", DELTA)
    result = synthesise(schedule, DOMAIN, Memory(chain(rows), DOMAIN), rows=50)
    assert result.rows.shape == (50, 5)
    assert (result.rows < DOMAIN.sizes).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "sizes", some([{"a": 1}, {"a": 3, "b": 3000}, {"a": 4}, {"a": 1, "b": 1}], pytest.mark.power, quick=2)
)
def test_odd_domains(method, sizes) -> None:
    domain = Domain.of(sizes)
    table = np.stack([np.random.default_rng(3).integers(0, size, 800) for size in sizes.values()], axis=1)
    result = synthesise(planned(method, domain, 2, DELTA), domain, Memory(table, domain))
    assert result.rows.shape[1] == len(sizes)
    assert all(bound.l1 >= 0 for bound in result.bounds.values())


def test_what_does_not_fit_into_memory_is_refused_before_anything_is_spent() -> None:
    domain = Domain(tuple("abcdefgh"), (30,) * 8)
    measurer = Memory(np.zeros((10, 8), np.int64), domain)
    schedule = planned("workload", domain, 1, DELTA, workload=tuple(itertools.combinations(domain.names, 2)))
    with pytest.raises(QuestionError, match=r"656,100,000,000 cells, above the limit of 2,000,000"):
        synthesise(schedule, domain, measurer)
    large = Domain.of({"a": 1000, "b": 1000, "c": 1000})
    with pytest.raises(QuestionError, match=r"1,000,000,000 cells, above 67,108,864"):
        synthesise(planned("adaptive", large, 1, DELTA, workload=[large.names]), large, measurer)
    wide = Domain.of({"a": 3_000_000, "b": 2})
    with pytest.raises(QuestionError, match=r"3,000,002 cells"):
        synthesise(planned("adaptive", wide, 1, DELTA), wide, measurer)
    assert not measurer.spent


def test_the_model_never_grows_above_its_limit() -> None:
    schedule = planned("adaptive", DOMAIN, 20, DELTA)
    result = synthesise(schedule, DOMAIN, Memory(chain(20_000), DOMAIN), limit=60)
    assert result.model.tree.cells <= 60


def test_candidates_and_their_weights() -> None:
    domain = Domain.of({"a": 2, "b": 2, "c": 2})
    workload = [("a", "b"), ("b", "c")]
    candidates = closure(domain, workload)
    assert candidates == (("a",), ("b",), ("c",), ("a", "b"), ("b", "c"))
    assert weights(domain, candidates, workload) == [1, 2, 1, 3, 3]


def test_selections_are_paid_at_what_they_may_tell() -> None:
    """The batch holds one selection of bounded range for each round, and costs more than its measurements alone."""
    parts = planned("adaptive", DOMAIN, 1, DELTA).parts
    chosen = [part for part in parts if isinstance(part, BoundedRange)]
    assert len(chosen) == len(planned("adaptive", DOMAIN, 1, DELTA).rounds)
    alone = compose([part for part in parts if not isinstance(part, BoundedRange)]).epsilon(DELTA)
    assert alone < 0.99


def test_no_more_rows_are_made_than_fit_and_bounds_stay_about_all() -> None:
    domain = Domain.of({"a": 2, "b": 3})
    rows = np.random.default_rng(1).integers(0, 2, (4000, 2))
    result = synthesise(
        planned("independent", domain, 4, Fraction(1, 10**9)), domain, Memory(rows, domain), most_rows=100
    )
    assert len(result.rows) == 100
    assert abs(result.model.total - 4000) < 200
