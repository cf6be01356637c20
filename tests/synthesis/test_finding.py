"""How values of columns that declare none are found: who is shown, at which price, and what is told of them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.catalog import declare
from discreet.catalog.model import Declaration, EngineLimits
from discreet.engines.duckdb.driver import DuckDB
from discreet.mechanisms import Gaussian, Threshold, gaussian_threshold
from discreet.reference.partition import PartitionSelection
from discreet.synthesis.columns import published
from discreet.synthesis.publication import PublishOptions, finder_of, publication
from discreet.trusted.ring_a.table import Source, SourceKind
from discreet.trusted.ring_b.questions import noisy_answer

DELTA, PERSONS, RUNS = Fraction(1, 50), 400, 10


def declaration(**more: Any) -> Declaration:
    columns = {"town": {"type": "text"}, "job": {"type": "text"}, "who": {"type": "text"}}
    table = {"source": "t.csv", "columns": columns, **more}
    return declare({"budget": {"epsilon": 10, "delta": Fraction(1, 10**6)}, "tables": {"t": table}})


def shown(frame: pd.DataFrame, runs: int, **more: Any) -> list[dict[Any, int]]:
    """What finding the towns of this table releases, at μ² = 1 and a δ so large that it is seen to strike."""
    known = declaration(**more)
    table = replace(known.tables["t"], source=Source(SourceKind.FRAME, frame=frame))
    town = table.column("town")
    assert town is not None
    column = published(town)
    assert column is not None
    _, finder = finder_of(known, table, column, Fraction(1), DELTA)
    engine = DuckDB(EngineLimits(memory_gib=4))
    engine.load(table, b"salt")
    try:
        answers = [noisy_answer(engine, finder, table) for _ in range(runs)]
    finally:
        engine.close()
    return [
        dict(zip([keys[0] for keys in one.keys], one.parts[0][0] if one.keys else (), strict=True)) for one in answers
    ]


def test_a_value_of_one_person_alone_is_shown_as_rarely_as_delta_says() -> None:
    """Neighbours: each of 400 persons has a town that nobody else has, so the tables with and without the person differ
    in it, and nothing else. 4,000 such towns, of which at most 80 are expected; 130 or more have a probability below
    10^−6. A threshold lower by one would show 267."""
    frame = pd.DataFrame({"town": [f"t{one}" for one in range(PERSONS)], "job": "x", "who": "y"})
    assert sum(map(len, shown(frame, RUNS, one_row_per_person=True))) < 130


def test_a_person_with_rows_in_several_groups_shares_delta_among_them() -> None:
    """Each of 200 persons has two towns alone: at most δ for both together, so 40 of 2,000 persons, or 80 towns if both
    always came at once; the threshold is higher than that of one row."""
    towns, who = [f"t{one}" for one in range(PERSONS)], [f"p{one // 2}" for one in range(PERSONS)]
    frame = pd.DataFrame({"town": towns, "job": "x", "who": who})
    assert sum(map(len, shown(frame, RUNS, person="who", rows_per_person=2))) < 80


def test_a_lowered_threshold_is_no_mechanism_and_less_noise_is_another_price() -> None:
    call = publication(declaration(one_row_per_person=True), PublishOptions(table="t", epsilon=1, columns=["town"]))
    mechanism = call.finders["town"].parts[0].mechanism
    assert isinstance(mechanism, Threshold)
    assert isinstance(mechanism.noise, Gaussian)
    with pytest.raises(ValueError, match="above delta"):
        replace(mechanism, threshold=mechanism.threshold - 2)
    halved = replace(mechanism, noise=Gaussian(mechanism.noise.sigma / 2))
    assert mechanism.loss() in call.declared.parts
    assert halved.loss() not in call.declared.parts


@pytest.mark.parametrize(("mu", "delta"), [(Fraction(1, 24), Fraction(2, 10**9)), (Fraction(1, 2), Fraction(1, 10**8))])
def test_a_threshold_shows_values_of_fewer_persons_than_optimal_selection_of_a_pure_loss(
    mu: Fraction, delta: Fraction
) -> None:
    """At the same μ², which ε² is about; and it shows as much as any selection of its loss may, but for rounding."""
    mechanism = gaussian_threshold(mu**2, delta, 1)
    other = PartitionSelection(mu, delta)
    half = next(n for n in range(1, 10_000) if other.chance(n) >= Fraction(1, 2))
    assert half > 1.8 * mechanism.threshold
    best = 1 - NormalDist().inv_cdf(float(delta)) / float(mu)  # persons at which the best is shown half the time
    assert best - 1 <= mechanism.threshold <= best + 2


def test_persons_are_not_taken_for_rows() -> None:
    """Of 300 persons each, one town has three rows a person and the other one: a share of .75 of 1,200 rows, where that
    of persons is .5: as further counts of the column they would make it .73. Noise is a share of .002."""
    who = [f"a{one // 3}" for one in range(900)] + [f"b{one}" for one in range(300)]
    frame = pd.DataFrame({"town": ["A"] * 900 + ["B"] * 300, "who": who})
    columns = {"town": {"type": "text", "nulls": False}, "who": {"type": "text"}}
    table = discreet.Table(frame, columns=columns, person="who", rows_per_person=3)
    with discreet.Curator({"t": table}, epsilon=10, delta=1e-5) as holder:
        made = holder.publish("t", epsilon=8, columns=["town"]).to_pandas()
    assert (made.town == "A").mean() == pytest.approx(0.75, abs=0.01)


def test_marginals_of_columns_with_many_found_values_are_made_of_the_most_frequent() -> None:
    """How many values are found follows from rows, and none of these may make a publication fail that is paid: 200
    values in each of three columns are too many together."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({name: rng.integers(200, size=20_000).astype(str) for name in "abc"})
    table = discreet.Table(frame, one_row_per_person=True, columns={name: {"type": "text"} for name in "abc"})
    with discreet.Curator({"t": table}, epsilon=100, delta=1e-5) as holder:
        made = holder.publish("t", epsilon=30, method="workload", workload=[["a", "b", "c"]])
        assert 20 < len(made.domain["a"]) < 130
        alone = holder.publish("t", epsilon=30, columns=["a"], method="independent")
        assert len(alone.domain["a"]) > 190
