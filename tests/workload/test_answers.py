"""Workloads as an analyst meets them: answers, intervals, prices, repeats, and what is refused."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import discreet
from discreet import Workload
from discreet.accounting import Batch, Gaussian
from discreet.ledger import TOTAL
from discreet.trusted.ring_a.curves import mu_of_budget
from discreet.trusted.ring_a.exact import fraction
from discreet.workload.answers import answering

EXACT = "1e20"
"""A price at which noise is too small to be seen."""

COLUMNS: dict[str, Any] = {
    "sex": {"type": "text", "values": ["F", "M"]},
    "age": {"type": "integer", "min": 0, "max": 9},
    "hours": {"type": "number", "min": 0, "max": 100},
    "day": {"type": "date"},
    "moment": {"type": "timestamp"},
    "member": {"type": "boolean", "nulls": False},
    "rate": {"type": "number", "values": [2, 0.5, 1]},
    "note": {"type": "text"},
    "large": {"type": "integer", "min": 0, "max": 10**6},
}


def rows(count: int = 400) -> pandas.DataFrame:
    made_up = np.random.default_rng(5)
    return pandas.DataFrame(
        {
            "sex": pandas.array(made_up.choice(["F", "M", "X", None], count, p=[0.5, 0.4, 0.05, 0.05]), "string"),
            "age": pandas.array(made_up.integers(0, 10, count), "Int64"),
            "hours": made_up.integers(0, 100, count).astype(float),
            "day": [datetime.date(2024, 1, 1) + datetime.timedelta(int(n)) for n in made_up.integers(0, 30, count)],
            "moment": [datetime.datetime(2024, 1, 1, int(n)) for n in made_up.integers(0, 24, count)],
            "member": made_up.integers(0, 2, count).astype(bool),
            "rate": made_up.choice([0.5, 1.0, 2.0, 3.0], count),
            "note": "x",
            "large": pandas.array(made_up.integers(0, 10**6, count), "Int64"),
        }
    )


def curator_of(frame: pandas.DataFrame, epsilon: Any = "1e25", delta: Any = "1e-6", **more: Any) -> discreet.Curator:
    table = discreet.Table(frame, one_row_per_person=True, columns=COLUMNS)
    public = discreet.Table(frame, public=True, columns={"note": str})
    return discreet.Curator({"t": table, "free": public}, epsilon=epsilon, delta=delta, **more)


@pytest.fixture(scope="module")
def frame() -> pandas.DataFrame:
    return rows()


@pytest.fixture(scope="module")
def curator(frame: pandas.DataFrame) -> Iterator[discreet.Curator]:
    with curator_of(frame) as curator:
        yield curator


def found(release: discreet.Release, of: str, **cells: str) -> float:
    (row,) = (
        row
        for row in release.rows
        if row["of"] == of and all(row[name] == cells.get(name, "(all)") for name in release.columns[1:-2])
    )
    return float(row["count"])


@pytest.mark.parametrize("delta", [0, "1e-7"])
def test_answers_are_those_of_the_table(curator: discreet.Curator, frame: pandas.DataFrame, delta: Any) -> None:
    """Every kind of question over every kind of column, at a price at which noise cannot be seen."""
    workload = (
        Workload("t", bins={"hours": [20, 40, 60.5], "day": [datetime.date(2024, 1, 11)]})
        .marginals(["AGE", "sex"], [], "member", ["rate", "hours"])
        .ranges("age", "hours")
        .prefixes("age", "day", "rate")
        .counts({"sex": "F", "age": (2, 5)}, {"sex": ["F", None], "hours": (20, 40)}, {"hours": (None, 60.5)})
        .counts({"day": (datetime.date(2024, 1, 11), None), "member": True}, {"rate": 2}, {"age": 3, "sex": "M"}, {})
        .counts({"moment": (datetime.datetime(2024, 1, 1, 6), datetime.date(2024, 1, 2)), "large": (10, 499_999)})
    )
    release = curator.answer(workload, epsilon=EXACT, delta=delta)

    def held(of: str, truth: Any, **cells: str) -> None:
        assert math.isclose(found(release, of, **cells), float(truth.sum()), abs_tol=1e-3), (of, cells)

    everybody = frame["age"] >= 0
    known = frame["sex"].fillna("X")
    for age in range(10):
        for sex in ("F", "M"):
            held("sex, age", (frame["age"] == age) & (known == sex), age=str(age), sex=sex)
        held("sex, age", (frame["age"] == age) & (known == "X"), age=str(age), sex="(none)")
        held("prefixes of age", frame["age"] <= age, age="0" if age == 0 else f"0 to {age}")
    held("ranges of age", frame["age"].between(3, 7), age="3 to 7")
    held("ranges of age", frame["age"] == 4, age="4")
    held("all rows", everybody)
    held("member", frame["member"], member="True")
    hours = frame["hours"]
    held("hours, rate", (frame["rate"] == 0.5) & (hours < 20), rate="0.5", hours="below 20")
    held("hours, rate", (frame["rate"] == 3) & (hours >= 60.5), rate="(none)", hours="from 60.5")
    held("ranges of hours", (hours >= 20) & (hours < 60.5), hours="from 20 below 60.5")
    held("ranges of hours", everybody, hours="all")
    held("prefixes of day", frame["day"] < datetime.date(2024, 1, 11), day="to 2024-01-10")
    held("prefixes of rate", frame["rate"] <= 1, rate="0.5 to 1")
    held("count", (known == "F") & frame["age"].between(2, 5), sex="F", age="2 to 5")
    held("count", known.isin(["F", "X"]) & (hours >= 20) & (hours < 40), sex="F or (none)", hours="from 20 below 40")
    held("count", hours < 60.5, hours="below 60.5")
    held("count", (frame["day"] >= datetime.date(2024, 1, 11)) & frame["member"], day="from 2024-01-11", member="True")
    held("count", frame["rate"] == 2, rate="2")
    held("count", (frame["age"] == 3) & (known == "M"), age="3", sex="M")
    held("count", everybody)
    late = frame["moment"] >= pandas.Timestamp(2024, 1, 1, 6)
    cells = {"moment": "from 2024-01-01 06:00:00 below 2024-01-02 00:00:00", "large": "from 10 to 499999"}
    held("count", late & frame["large"].between(10, 499_999), **cells)
    assert len(release.rows) == 33 + 1 + 2 + 20 + 55 + 10 + 10 + 2 + 3 + 8


def mixed() -> Workload:
    workload = (
        Workload("t", bins={"hours": [25, 50, 75]}).all_marginals(2, ["sex", "age", "hours"]).marginals("sex", [])
    )
    return workload.ranges("age").prefixes("hours").counts({"sex": "F", "age": (0, 4)}, {"age": (2, 3)})


@pytest.mark.parametrize("delta", [0, "1e-7"])
def test_noisy_answers_agree_with_each_other(frame: pandas.DataFrame, delta: Any) -> None:
    """They are linear functions of one table, whatever the noise: differences are below what doubles lose."""
    with curator_of(frame, epsilon=10) as curator:
        release = curator.answer(mixed(), epsilon=1, delta=delta)
    total = found(release, "all rows")
    answers = pandas.DataFrame(release.rows)
    for name in ("age, hours", "sex, age", "sex, hours", "sex"):
        assert math.isclose(answers[answers["of"] == name]["count"].sum(), total, abs_tol=1e-6)
    pairs = answers[answers["of"] == "sex, age"]
    for sex in ("F", "M", "(none)"):
        assert math.isclose(pairs[pairs["sex"] == sex]["count"].sum(), found(release, "sex", sex=sex), abs_tol=1e-6)
    early = pairs[(pairs["sex"] == "F") & pairs["age"].isin(["0", "1", "2", "3", "4"])]["count"].sum()
    assert math.isclose(early, found(release, "count", sex="F", age="0 to 4"), abs_tol=1e-6)
    assert math.isclose(
        found(release, "ranges of age", age="2 to 3"), found(release, "count", age="2 to 3"), abs_tol=1e-6
    )
    over = answers[answers["of"] == "age, hours"]
    low = over[over["hours"] == "below 25"]["count"].sum()
    assert math.isclose(low, found(release, "prefixes of hours", hours="below 25"), abs_tol=1e-6)


@pytest.mark.parametrize("delta", [0, "1e-7"])
def test_intervals_hold(curator: discreet.Curator, delta: Any) -> None:
    """200 draws about an empty table, 95 % intervals: of one answer 10 are expected outside, and more than 30 with
    p < 3e-8 (the binomial law), so for three kinds of answers p < 1e-7. Were the noise twice as large, 30 % would be
    outside. The mean error of every answer is within 6.5 deviations of zero: p < 1e-8 for all 130."""
    call = answering(curator.declaration, mixed(), 1, delta)
    measurements = call.strategy.measurements
    releases = [call.content([one.release(np.zeros(one.shape, np.int64)) for one in measurements]) for _ in range(200)]
    low, high = (np.array([[pair["count"][end] for pair in one.intervals] for one in releases]) for end in (0, 1))
    missed = ((low > 0) | (high < 0)).sum(axis=0)
    for kind in ("sex, age", "ranges of age", "count"):
        (place, *_) = (index for index, row in enumerate(releases[0].rows) if row["of"] == kind)
        assert missed[place] <= 30
    errors = np.array([[row["count"] for row in one.rows] for one in releases])
    variances = np.array([row["variance"] for row in releases[0].rows])
    assert (np.abs(errors.mean(axis=0)) <= 6.5 * np.sqrt(variances / 200)).all()
    assert 0.8 < (errors**2).mean() / variances.mean() < 1.25
    for wide, own in zip(releases[0].simultaneous, releases[0].intervals, strict=True):
        assert wide["count"][0] < own["count"][0]


def test_what_is_explained_is_what_is_released(frame: pandas.DataFrame, tmp_path: Path) -> None:
    with curator_of(frame, epsilon=10, ledger=tmp_path / "t.ledger") as curator:
        head = curator.ledger.head
        told = curator.explain(mixed(), epsilon=1, delta=0)
        assert curator.ledger.head == head
        assert told.price == {"epsilon": 1.0, "delta": 0.0}
        assert told.more >= 10
        assert list(told.expected_error)[:3] == ["sex, age", "sex, hours", "age, hours"]
        assert "count 1" in told.expected_error
        assert "one by one" in repr(told)
        release = curator.answer(mixed(), epsilon=1, delta=0)
        assert release.cost == told.price
        of = [place for place, row in enumerate(release.rows) if row["of"] == "ranges of age"]
        widest = max(release.intervals[place]["count"][1] - release.rows[place]["count"] for place in of)
        assert math.isclose(widest, told.expected_error["ranges of age"], rel_tol=1e-9)
        assert release.mechanisms == [dict(one) for one in told.mechanisms]
        assert release.bounds == list(told.bounds)
        with pytest.raises(discreet.QuestionError, match="not supported for workloads"):
            curator.explain(mixed(), within={"n": 4})


def test_the_same_again_is_free_and_lasts(frame: pandas.DataFrame, tmp_path: Path) -> None:
    ledger = tmp_path / "t.ledger"
    with curator_of(frame, epsilon=10, ledger=ledger) as curator:
        first = curator.answer(mixed(), epsilon=1)
        spent = curator.ledger.filter(TOTAL).spent
        again = curator.answer(mixed(), epsilon=1)
        assert (again.rows, bool(again.charged), bool(first.charged)) == (first.rows, False, True)
        same = curator.answer(Workload("T").marginals(["age", "SEX"], ["sex", "age"]), epsilon="0.5")
        other = curator.answer(Workload("t").marginals(["sex", "age"]), epsilon="0.5")
        assert (other.rows, bool(other.charged)) == (same.rows, False)
        assert curator.answer(mixed(), epsilon="1.5").charged
        assert curator.ledger.filter(TOTAL).spent != spent
    with curator_of(frame, epsilon=10, ledger=ledger) as curator:
        assert curator.answer(mixed(), epsilon=1).rows == first.rows
        assert curator.ledger.verify().unanswered == 0
        words = [entry.question for entry in curator.ledger.entries() if entry.question]
        assert words[0] == "workload of t: 5 marginals, 1 columns in ranges, 1 columns in prefixes, 2 counts"


def test_prices(frame: pandas.DataFrame) -> None:
    """Without δ it is four fifths of the budget's share; the noise that errs less is taken; the loss is the price."""
    tens = {"hours": [*range(10, 100, 10)], "large": [*range(10**5, 10**6, 10**5)]}
    columns = ["sex", "age", "member", "rate", "hours", "large"]
    many = Workload("t", bins=tens).all_marginals(2, columns).all_marginals(3, columns).ranges("age")
    few = Workload("t").marginals("sex")
    with curator_of(frame, epsilon=40, delta="1e-5") as curator:
        release = curator.answer(many, epsilon=1)
        loss = release.loss
        assert isinstance(loss, Gaussian)
        assert release.cost.delta == pytest.approx(0.8 * 0.9e-5 / 40)
        assert 0.999 * float(mu_of_budget(fraction(1), fraction("1.8e-7"))) < float(loss.mu)
        assert loss.mu <= mu_of_budget(fraction(1), fraction("1.8e-7"))
        pure = curator.answer(few, epsilon=1)
        assert isinstance(pure.loss, Batch)
        assert pure.loss.pure == 1
        assert pure.cost == {"epsilon": 1.0, "delta": 0.0}
        assert isinstance(curator.answer(many, epsilon=1, delta=0).loss, Batch)
        head = curator.ledger.head
        with pytest.raises(discreet.BudgetError):
            curator.answer(few, epsilon=50)
        assert curator.ledger.head == head
    with curator_of(frame, epsilon=4, delta=0) as curator:
        assert isinstance(curator.answer(many, epsilon=1, delta="1e-7").loss, Batch)
    with curator_of(frame, epsilon=4, analysts={"ana": 1}) as curator:
        assert curator.answer(few, epsilon="0.5", analyst="ana").charged
        with pytest.raises(discreet.QuestionError):
            curator.answer(few, epsilon="0.5", analyst="bob")


def test_rows_of_a_person_are_paid_for() -> None:
    """Ten rows a person: ten times the deviation of one."""
    frame = pandas.DataFrame({"p": range(50), "sex": ["F", "M"] * 25})
    columns = {"p": {"type": "integer"}, "sex": {"type": "text", "values": ["F", "M"]}}
    variances = []
    for limit in (1, 10):
        table = discreet.Table(frame, person="p", rows_per_person=limit, groups_per_person=2, columns=columns)
        with discreet.Curator({"t": table}, epsilon=10) as curator:
            release = curator.answer(Workload("t").marginals("sex").counts({"sex": "F"}), epsilon="0.1")
            variances.append(release.rows[0]["variance"])
            assert release.loss.pure == fraction("0.1")
            limited = f"at most {limit} rows a person; further rows are left out, at random"
            assert release.bounds[0] == limited
    assert variances[1] == pytest.approx(100 * variances[0], rel=0.01)


@pytest.mark.parametrize("count", [0, 1])
def test_hardly_any_rows(count: int) -> None:
    with curator_of(rows(5).iloc[:count]) as curator:
        release = curator.answer(mixed(), epsilon=EXACT)
        assert round(found(release, "all rows")) == count
        noisy = curator.answer(mixed(), epsilon=1)
        assert len(noisy.rows) == len(release.rows)


def test_the_release_in_other_forms(curator: discreet.Curator) -> None:
    release = curator.answer(Workload("t").marginals("sex").prefixes("age"), epsilon=1)
    shown = release.to_pandas()
    assert list(shown.columns) == ["of", "sex", "age", "count", "variance", "count_low", "count_high"]
    assert release.to_arrow().num_rows == release.to_polars().height == len(release.rows) == 13
    assert json.loads(release.to_json())["unit"] == "one person, added or removed with all rows"
    assert "prefixes of age" in repr(release)
    assert "<td " in release._repr_html_()


def test_columns_that_are_named_as_the_release_names_its_own() -> None:
    frame = pandas.DataFrame({"of": [True, False], "count": [True, True], "variance": [False, False]})
    table = discreet.Table(frame, one_row_per_person=True, columns={"of": bool, "count": bool, "variance": bool})
    with discreet.Curator({"t": table}, epsilon="1e25") as curator:
        release = curator.answer(Workload("t").all_marginals(1), epsilon=EXACT)
    assert release.columns == ["of_", "of", "count", "variance", "count_", "variance_"]
    assert round(release.rows[1]["count_"]) == 1


BINS = {"hours": [10, 20]}
MANY = {"hours": list(range(1, 900)), "large": list(range(1, 900))}


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ("SELECT 1", "not a valid workload"),
        (Workload("t"), "asks nothing"),
        (Workload("nobody").marginals("sex"), "not declared"),
        (Workload(None).marginals("sex"), "not declared"),  # type: ignore[arg-type]
        (Workload("free").marginals("note"), "public"),
        (Workload("t").marginals("nothing"), "no declared column"),
        (Workload("t").marginals(["sex", "SEX"]), "named twice"),
        (Workload("t").marginals(7), "lists"),  # type: ignore[arg-type]
        (Workload("t").marginals({"sex": 1}), "lists"),  # type: ignore[arg-type]
        (Workload("t").marginals("note"), "no declared values"),
        (Workload("t").marginals("hours"), "too many values"),
        (Workload("t").marginals("large"), "too many values"),
        (Workload("t").ranges("sex"), "no order"),
        (Workload("t").ranges("member"), "no order"),
        (Workload("t").ranges(["age"]), "need columns"),  # type: ignore[arg-type]
        (Workload("t").prefixes("nothing"), "no declared column"),
        (Workload("t").all_marginals(9), "ways"),
        (Workload("t").all_marginals(True), "ways"),
        (Workload("t").all_marginals(-1), "ways"),
        (Workload("t").all_marginals(1, ["note"]), "no declared values"),
        (Workload("t").all_marginals(1, []), "no column is named"),
        (Workload("t").all_marginals(1, "sex"), "list of names"),
        (Workload("t", bins=[1]).marginals("sex"), "bins must"),  # type: ignore[arg-type]
        (Workload("t", bins=BINS).marginals("sex"), "nothing is asked about hours"),
        (Workload("t", bins={"hours": []}).marginals("hours"), "list of 1"),
        (Workload("t", bins={"hours": "1"}).marginals("hours"), "list of 1"),
        (Workload("t", bins={"hours": [1, 1]}).marginals("hours"), "not in ascending order"),
        (Workload("t", bins={"hours": [2, 1]}).marginals("hours"), "not in ascending order"),
        (Workload("t", bins={"hours": [float("nan")]}).marginals("hours"), "not a valid number"),
        (Workload("t", bins={"hours": [float("inf")]}).marginals("hours"), "not a valid number"),
        (Workload("t", bins={"hours": [10**301]}).marginals("hours"), "out of range"),
        (Workload("t", bins={"large": [0.5]}).marginals("large"), "not a valid integer"),
        (Workload("t", bins={"large": [2**63]}).marginals("large"), "not a valid integer"),
        (Workload("t", bins={"sex": ["F"]}).marginals("sex"), "no order"),
        (Workload("t", bins={"nothing": [1]}).marginals("sex"), "no declared column"),
        (Workload("t", bins={"day": [datetime.datetime(2024, 1, 1)]}).marginals("day"), "not a valid date"),
        (Workload("t", bins={"hours": list(range(1001))}).marginals("hours"), "list of 1"),
        (Workload("t").counts("sex"), "maps columns"),  # type: ignore[arg-type]
        (Workload("t").counts({"sex": "X"}), "not declared"),
        (Workload("t").counts({"sex": 5}), "not a valid text"),
        (Workload("t").counts({"sex": []}), "no cell"),
        (Workload("t").counts({"sex": {"F": 1}}), "not a valid text"),
        (Workload("t").counts({"age": (5, 2)}), "empty"),
        (Workload("t").counts({"age": (50, 60)}), "no cell"),
        (Workload("t").counts({"age": True}), "not a valid integer"),
        (Workload("t").counts({"hours": 5}), "too many values"),
        (Workload("t").counts({"hours": (5, 5)}), "empty"),
        (Workload("t", bins=BINS).counts({"hours": (5, 20)}), "no bin of hours begins at 5"),
        (Workload("t", bins=BINS).counts({"hours": 10}), "counted in bins"),
        (Workload("t").counts({"member": None}), "no NULL"),
        (Workload("t").counts({"note": "x"}), "no declared values"),
        (Workload("t").counts({5: "x"}), "list of names"),  # type: ignore[dict-item]
        (Workload("t").counts({"moment": (datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), None)}), "time zone"),
        (Workload("t", bins={"hours": list(range(1, 900))}).ranges("hours"), "too many"),
        (Workload("t", bins=MANY).marginals(["hours", "large", "age"]), "too many"),
        (Workload("t", bins=MANY).prefixes("hours", "large"), "too many"),
        (Workload("t", bins={"hours": ["1"]}).marginals("hours"), "not a valid number"),
    ],
)  # fmt: skip
def test_what_is_refused_costs_nothing(workload: Any, message: str, curator: discreet.Curator) -> None:
    head = curator.ledger.head
    for ask in (curator.answer, curator.explain) if isinstance(workload, Workload) else (curator.answer,):
        with pytest.raises(discreet.QuestionError, match=message) as refused:
            ask(workload, epsilon=1)
        assert refused.value.fix
    assert curator.ledger.head == head


@pytest.mark.parametrize("wrong", [{"epsilon": 0}, {"epsilon": None}, {"delta": 1}, {"delta": -1}, {"delta": "x"}])
def test_prices_that_are_none(wrong: dict[str, Any], curator: discreet.Curator) -> None:
    head = curator.ledger.head
    with pytest.raises(discreet.QuestionError):
        curator.answer(Workload("t").marginals("sex"), **{"epsilon": 1, **wrong})
    assert curator.ledger.head == head


def test_a_failure_tells_nothing_and_stays_charged(frame: pandas.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    with curator_of(frame, epsilon=10) as curator:
        with monkeypatch.context() as patch:
            patch.setattr(type(curator._engine), "marginals", lambda *_: 1 / 0)
            with pytest.raises(discreet.EngineError) as failed:
                curator.answer(Workload("t").marginals("sex"), epsilon=1)
        assert failed.value.__context__ is None
        assert curator.ledger.verify().unanswered == 1
        assert curator.ledger.filter(TOTAL).spent.pure == 1
        curator.lift()
        assert curator.answer(Workload("t").marginals("sex"), epsilon=1).charged


def test_workloads_are_values() -> None:
    first = Workload("t")
    second = first.marginals("sex")
    assert first.asked == ()
    assert second == Workload("t").marginals("sex")
    assert second != second.ranges("age")
