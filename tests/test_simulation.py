"""What a published table would be at other prices: simulated on its made-up rows, for nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import discreet
from discreet import simulation
from discreet.cli import main
from discreet.errors import Error, QuestionError
from discreet.synthesis.synthetic import Synthetic
from related_tables import NAMES, curator, shop


@pytest.fixture(scope="module")
def holder() -> Iterator[discreet.Curator]:
    places = np.arange(2_000)
    rows = pd.DataFrame({"sex": places % 2, "age": 20 + places % 60, "job": places % 3, "own": places // 2})
    rows["sex"], rows["job"] = rows.sex.map({0: "F", 1: "M"}), rows.job.map({0: "a", 1: "b", 2: None})
    columns = {
        "sex": {"type": "text", "values": ["F", "M"], "nulls": False},
        "age": {"type": "integer", "min": 20, "max": 79},
        "job": {"type": "text"},
        "own": {"type": "integer"},
    }
    table = discreet.Table(rows, person="own", rows_per_person=2, columns=columns)
    with discreet.Curator({"t": table}, epsilon=50, delta=1e-4) as one:
        yield one


@pytest.fixture(scope="module")
def release(holder: discreet.Curator) -> Synthetic:
    return holder.publish("t", epsilon=40, columns=["sex", "age", "job"], method="independent", rows=500)


def test_each_price_has_its_noise_and_nothing_is_spent(holder: discreet.Curator, release: Synthetic) -> None:
    before = str(holder)
    told: list[simulation.SimulatedPrice] = []
    found = discreet.simulate(release, ["0.2", 40], method="independent", tell=told.append)
    assert str(holder) == before
    assert tuple(told) == found.prices
    low, high = found.prices
    assert (low.epsilon, low.delta) == (0.2, pytest.approx(release.cost.delta / 200))
    assert high.columns is not None
    assert low.columns is not None
    assert max(high.columns, low.columns) < 2
    assert high.columns < 0.05
    low_sigma, high_sigma = (one.release.measured[0]["sigma"] for one in (low, high))
    assert low_sigma > 20 * high_sigma
    assert high.pairs is not None
    assert high.triples is not None
    assert high.columns < high.pairs < high.triples < 0.3
    assert len(high.release) == pytest.approx(release.total, abs=50)  # as many as the real table seems to hold
    assert str(found).startswith("price")
    assert json.loads(found.to_json())["prices"][1]["columns"] == high.columns


def test_persons_have_as_many_rows_as_the_real_ones(release: Synthetic) -> None:
    """Then noise is as wide: twice that of tables with one row a person."""
    found = discreet.simulate(release, [40], method="independent").prices[0].release
    assert "at most 2 rows count" in found.bounds[0]
    sigmas = [{one["sigma"] for one in made.measured} for made in (release, found)]
    assert sigmas[0] == sigmas[1]


def test_a_column_that_is_lost_at_a_small_price_is_named(release: Synthetic) -> None:
    found = discreet.simulate(release, [0.01], method="independent")
    assert found.prices[0].left_out == ("job",)
    assert str(found).split("\n")[1].endswith("job")


def test_distances_are_sums_over_all_cells() -> None:
    same = simulation._coded(["a", "b", None], ["a", "b", None])
    assert simulation._distance([same]) == 0
    apart = simulation._coded([1.0, 2.0], [3.0, 3.0])
    assert simulation._distance([apart]) == 2
    first = simulation._coded(["a", "b"], ["a", "b"])
    crossed = simulation._coded(["a", "b"], ["b", "a"])
    assert simulation._distance([crossed]) == 0
    assert simulation._distance([first, crossed]) == 2
    tenths = simulation._coded([float(place) for place in range(100)], [None, 5.0])
    assert len(tenths.names) == simulation.BINS + 1
    assert simulation._distance([tenths]) == pytest.approx(0.9 + 0.4 + 0.5)


def test_a_page_a_picture_and_a_file(release: Synthetic, tmp_path: Path) -> None:
    release.save(tmp_path / "made.json")
    again = discreet.published(tmp_path / "made.json")
    found = discreet.simulate(again, [5, 40], method="independent")
    page = found.plot(tmp_path / "prices.html")
    text = page.read_text("utf-8")
    assert "Which price is enough?" in text
    assert "columns left out" in text
    assert found.plot(tmp_path / "prices.png").stat().st_size > 10_000
    with pytest.raises(QuestionError, match=r"end it in \.png, \.svg or \.html"):
        found.plot(tmp_path / "prices.pdf")


def test_the_command(release: Synthetic, tmp_path: Path) -> None:
    made = release.save(tmp_path / "made.json")
    given = ["simulate", str(made), "--epsilon", "40", "--method", "independent"]
    plain = CliRunner().invoke(main, [*given, "--plot", str(tmp_path / "prices.html")])
    assert plain.exit_code == 0, plain.output
    assert "ε 40" in plain.output
    assert (tmp_path / "prices.html").exists()
    (price,) = json.loads(CliRunner().invoke(main, [*given, "--json"]).output)["prices"]
    assert price["epsilon"] == 40
    assert price["left_out"] == []


def test_a_column_may_be_called_person_and_columns_may_be_sums() -> None:
    rows = pd.DataFrame({"Person": ["F", "M"] * 300, "a": [1, 2, 3] * 200, "b": [4] * 600, "who": range(600)})
    columns = {
        "Person": {"type": "text", "values": ["F", "M"]},
        "a": {"type": "integer", "min": 0, "max": 5},
        "b": {"type": "integer", "min": 4, "max": 4},
        "c": {"type": "integer"},
        "who": {"type": "integer"},
    }
    table = discreet.Table(
        rows.assign(c=rows.a + rows.b), person="who", rows_per_person=2, columns=columns, sums={"c": ["a", "b"]}
    )
    with discreet.Curator({"t": table}, epsilon=50, delta=1e-4) as one:
        made = one.publish("t", epsilon=40, columns=["Person", "a", "b", "c"])
    assert made.columns[-1] == "c"
    (found,) = discreet.simulate(made, [40]).prices
    assert found.left_out == ()
    assert found.columns is not None
    assert found.columns < 0.2


def test_a_file_that_somebody_wrote_is_refused_or_bounded(
    release: Synthetic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation, "rows_that_fit", lambda _: 700)
    whole = json.loads(release.to_json())
    given = [
        {"cost": {}},
        {"cost": {"epsilon": 0, "delta": 1e-6}},
        {"cost": {"epsilon": "a", "delta": 1e-6}},
        {"total": float("inf")},
        {"total": "many"},
        {"rows_drawn": 10**400},
        {"rows": []},
        {"rows": whole["rows"][:-1]},
        {"rows": [{**one, "age": 2**63} for one in whole["rows"]]},
        {"rows": [{**one, "age": "old"} for one in whole["rows"]]},
        {"rows": [{**one, "age": float("nan")} for one in whole["rows"]]},
        {"types": {**whole["types"], "age": "text"}},
        {"declaration": whole["declaration"].replace("age", "size")},
        {"rows_per_person": "x"},
    ]
    for place, changed in enumerate(given):
        (tmp_path / f"{place}.json").write_text(json.dumps({**whole, **changed}), "utf-8")
        with pytest.raises(Error):
            discreet.simulate(discreet.published(tmp_path / f"{place}.json"), [5], method="independent")
    (tmp_path / "large.json").write_text(json.dumps({**whole, "total": 1e12}), "utf-8")
    (found,) = discreet.simulate(discreet.published(tmp_path / "large.json"), [5], method="independent").prices
    assert len(found.release) == 700


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        ([], "no list of prices"),
        ("1", "no list of prices"),
        ([1, "x"], "finite number"),
        ([0], "above 0 and at most"),
    ],
)
def test_prices_that_are_none(release: Synthetic, epsilon: list[float], message: str) -> None:
    with pytest.raises(QuestionError, match=message):
        discreet.simulate(release, epsilon)


def test_only_a_table_that_was_published_by_itself(release: Synthetic) -> None:
    with curator(shop(100)) as holder:
        several = holder.publish(NAMES, epsilon=8)
    for one in (several, several.tables[NAMES[0]]):
        with pytest.raises(QuestionError, match="published by itself"):
            discreet.simulate(one, [1])
    more = {name: value for name, value in release.holds.more.items() if name != "rows_per_person"}
    with pytest.raises(QuestionError, match="an earlier version made it"):
        discreet.simulate(replace(release, holds=replace(release.holds, more=more)), [1])
