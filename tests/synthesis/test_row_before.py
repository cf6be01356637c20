"""Rows that follow one another: whole runs over the real engine and ledger, and what is made of the rows before."""

from __future__ import annotations

import datetime
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.catalog import declare
from discreet.errors import DeclarationError, QuestionError
from discreet.markov import Domain, MarginalMeasurement
from discreet.synthesis.related import related
from discreet.synthesis.row_before import ExpectedBefore, RowSequences
from discreet.synthesis.several import several
from discreet.synthesis.synthetic_tables import SyntheticTables
from kinds import some

NAMES = ["patients", "visits"]
STATES = ["new", "tested", "treated", "well"]
FIRST, LAST = datetime.date(2024, 1, 1), datetime.date(2025, 12, 31)
COLUMNS: dict[str, dict[str, Any]] = {
    "patients": {"id": {"type": "text"}, "sex": {"type": "text", "values": ["F", "M"], "nulls": False}},
    "visits": {
        "patient": {"type": "text"},
        "day": {"type": "date", "min": FIRST, "max": LAST, "nulls": False},
        "until": {"type": "date", "min": FIRST, "max": LAST, "nulls": False},
        "state": {"type": "text", "values": STATES, "nulls": False},
    },
}


def clinic(patients: int, seed: int = 1) -> dict[str, pd.DataFrame]:
    """Visits of whom women go one state on each time, and men stay where they are half the time. No two are on a day,
    and they do not stand in their order."""
    rng = np.random.default_rng(seed)
    sex, rows = rng.choice(["F", "M"], patients), []
    for one in range(patients):
        day, state = FIRST + datetime.timedelta(days=int(rng.integers(0, 300))), 0
        for _ in range(rng.integers(1, 7)):
            rows.append((f"p{one}", day, day + datetime.timedelta(days=int(rng.integers(0, 9))), STATES[state]))
            state = min(3, state + int(sex[one] == "F" or rng.random() < 0.5))
            day += datetime.timedelta(days=int(rng.integers(1, 60)))
    visits = pd.DataFrame(rows, columns=list(COLUMNS["visits"])).sample(frac=1, random_state=seed, ignore_index=True)
    return {"patients": pd.DataFrame({"id": [f"p{one}" for one in range(patients)], "sex": sex}), "visits": visits}


def curator(known: dict[str, pd.DataFrame], **more: Any) -> discreet.Curator:
    said: dict[str, dict[str, Any]] = {
        "patients": {"person": "id", "one_row_per_person": True},
        "visits": {"person": "patient", "rows_per_person": 6, "time": "day", **more},
    }
    tables = {name: discreet.Table(known[name], columns=COLUMNS[name], **said[name]) for name in NAMES}
    return discreet.Curator(tables, epsilon=100, delta=1e-5, engine={"memory_gib": 4})


def steps(visits: pd.DataFrame) -> Counter[tuple[Any, Any]]:
    """How often which state follows which: as the rows stand, of each patient."""
    before = visits.groupby("patient").state.shift(1).fillna("")
    return Counter(zip(visits.state, before, strict=True))


def made(release: SyntheticTables) -> pd.DataFrame:
    visits: pd.DataFrame = release.tables["visits"].to_pandas()
    return visits


def rises(visits: pd.DataFrame) -> bool:
    return all(rows.day.is_monotonic_increasing for _, rows in visits.groupby("patient", sort=False))


def kept(visits: pd.DataFrame) -> float:
    """The part of the rows after another that go on by one state, or stay."""
    found = steps(visits)
    after = {(state, before): many for (state, before), many in found.items() if before}
    right = sum(many for (state, before), many in after.items() if STATES.index(state) - STATES.index(before) in (0, 1))
    return right / max(1, sum(after.values()))


def test_rows_follow_the_row_before_and_times_do_not_fall() -> None:
    real = clinic(800)
    truth = steps(real["visits"].sort_values(["patient", "day"]))
    with curator(real) as holder:
        release = holder.publish(NAMES, epsilon=8)
        visits = made(release)
        assert set(visits.patient) <= set(release.tables["patients"].to_pandas().id)
        assert rises(visits)
        assert kept(visits) > 0.85
        assert visits.groupby("patient").state.first().eq("new").mean() > 0.85
        bounds = {tuple(one["columns"]): one for one in release.tables["visits"].marginals}
        assert bounds["state", "state before"]["about"] == "before"
        found = steps(visits)
        off = sum(abs(truth[cell] - found[cell]) for cell in {*truth, *found})
        assert off < len(real["visits"]) / 4
        assert any("in the order of day" in line for line in release.tables["visits"].bounds)
        assert list(visits.columns) == list(COLUMNS["visits"])
        assert "before" not in release.tables["visits"].declaration
        assert release.rows[1]["row before"] is not None
        assert release.rows[0]["row before"] is None
    with curator(real, time=None) as holder:
        assert kept(made(holder.publish(NAMES, epsilon=8)).sort_values(["patient", "day"], kind="stable")) < 0.8


def test_orders_of_columns_hold_beside_the_order_of_rows() -> None:
    with curator(clinic(300), orders=[["day", "until"]]) as holder:
        visits = made(holder.publish(NAMES, epsilon=3))
    assert rises(visits)
    assert (visits.day <= visits.until).all()


ODD: dict[str, tuple[int, list[tuple[Any, ...]]]] = {
    "nobody": (0, []),
    "no visits": (30, []),
    "one visit each": (30, [(f"p{one}", FIRST, FIRST, "new") for one in range(30)]),
    "all on one day": (30, [(f"p{one % 9}", LAST, LAST, STATES[one % 4]) for one in range(90)]),
    "no days": (30, [(f"p{one % 9}", None, None, None) for one in range(90)]),
}


@pytest.mark.parametrize(("patients", "rows"), some(ODD.values(), pytest.mark.power, quick=5), ids=ODD)
def test_odd_tables_are_published_too(patients: int, rows: list[tuple[Any, ...]]) -> None:
    ids = pd.array([f"p{one}" for one in range(patients)], "string")
    sexes, columns = pd.array(["F"] * patients, "string"), list(zip(*rows, strict=True)) or [[]] * 4
    visits = pd.DataFrame(
        {
            name: pd.array(list(values), "object" if name in ("day", "until") else "string")
            for name, values in zip(COLUMNS["visits"], columns, strict=True)
        }
    )
    with curator({"patients": pd.DataFrame({"id": ids, "sex": sexes}), "visits": visits}) as holder:
        release = holder.publish(NAMES, epsilon=2)
        assert rises(made(release))
        assert repr(release)


@pytest.mark.power
def test_bounds_of_steps_hold_as_often_as_they_say() -> None:
    """20 publications, each bound at 95 %: 9 misses or more have probability 2e-7."""
    real, misses = clinic(150), 0
    truth = steps(real["visits"].sort_values(["patient", "day"]))
    for _ in range(20):
        with curator(real) as holder:
            release = holder.publish(NAMES, epsilon=2)
        bounds = {tuple(one["columns"]): one["rows"] for one in release.tables["visits"].marginals}
        found = steps(made(release))
        scale = release.tables["visits"].total / max(1, sum(found.values()))
        off = sum(abs(truth[cell] - scale * found[cell]) for cell in {*truth, *found})
        misses += off > bounds["state", "state before"]
    assert misses < 9


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"time": "hour"}, "hour is not declared"),
        ({"time": "state"}, "state is no date, time or number with bounds"),
        ({"time": ["day"]}, "not a column"),
        ({"time": "until", "orders": [["day", "until"]]}, "larger than another column"),
    ],
)
def test_what_cannot_order_rows_is_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        curator(clinic(3), **more)


def test_another_time_is_another_release(tmp_path: Path) -> None:
    known, kept = clinic(200), tmp_path / "clinic.ledger"
    charged = []
    for time in ("day", "until", "day"):
        tables = {
            "patients": discreet.Table(
                known["patients"], columns=COLUMNS["patients"], person="id", one_row_per_person=True
            ),
            "visits": discreet.Table(
                known["visits"], columns=COLUMNS["visits"], person="patient", rows_per_person=6, time=time
            ),
        }
        with discreet.Curator(tables, epsilon=10, delta=1e-5, ledger=kept) as one:
            release = one.publish(NAMES, epsilon=2)
        charged.append(bool(release.charged))
        rows = made(release)
        assert all(each[time].is_monotonic_increasing for _, each in rows.groupby("patient", sort=False))
        saved = tmp_path / "made.json"
        release.save(saved)
        discreet.published(saved).save(tmp_path / "again.json")
        assert discreet.published(tmp_path / "again.json").tables["visits"].rows == release.tables["visits"].rows
    assert charged == [True, True, False]


def test_long_texts_of_many_rows_are_refused_before_the_price() -> None:
    """Windows hold whole values: how many letters they have counts as work."""
    known = clinic(20)
    known["visits"]["note"] = "x"
    columns = COLUMNS["visits"] | {"note": {"type": "text", "length": 100_000}}
    tables = {
        "patients": discreet.Table(
            known["patients"], columns=COLUMNS["patients"], person="id", one_row_per_person=True
        ),
        "visits": discreet.Table(known["visits"], columns=columns, person="patient", rows_per_person=400, time="day"),
    }
    with discreet.Curator(tables, epsilon=10, delta=1e-5) as one:
        with pytest.raises(QuestionError, match="one person's rows of visits can take as long as"):
            one.publish(NAMES, epsilon=2)
        assert one.budget.used == 0


def test_a_time_of_very_many_cells_is_not_held_against_the_one_before() -> None:
    """The owner's rules may cut a time into thousands of cells, and pairs of these are more than a model holds."""
    for cells, held in ((10, True), (400, False)):
        domain = Domain.of({"day": cells, "day before": cells + 1})
        assert bool(RowSequences(domain, {"day": "day before"}, "day", np.array([0])).zeros) == held


def test_a_table_with_one_row_a_person_and_a_public_one_have_no_time() -> None:
    day = {"day": {"type": "integer", "min": 0, "max": 9}}
    for said in ({"one_row_per_person": True}, {"public": True}):
        table = {"source": "a.csv", "columns": day, "time": "day", **said}
        with pytest.raises(DeclarationError, match=r"none before it|is for tables about people"):
            declare({"budget": {"epsilon": 1, "delta": 1e-6}, "tables": {"a": table}})


def test_where_one_row_counts_there_is_no_row_before() -> None:
    tables = {name: {"source": f"{name}.csv", "columns": COLUMNS[name]} for name in NAMES}
    tables["patients"] |= {"person": "id", "one_row_per_person": True}
    for most, before in ((1, {}), (2, {name: f"{name} before" for name in ("day", "until", "state")})):
        tables["visits"] |= {"person": "patient", "rows_per_person": most, "time": "day"}
        known = declare({"budget": {"epsilon": 1, "delta": 1e-6}, "tables": tables})
        assert dict(related(known, NAMES)[1].before) == before
    tables["visits"]["columns"] = {**COLUMNS["visits"], "State before": {"type": "boolean"}}
    known = declare({"budget": {"epsilon": 1, "delta": 1e-6}, "tables": tables})
    with pytest.raises(QuestionError, match="would be called state before"):
        several(known, NAMES, 1, None)


FOLLOWED = RowSequences(
    Domain(("day", "state", "day before", "state before"), (4, 2, 4, 3)),
    {"day": "day before", "state": "state before"},
    "day",
    np.array([2, 2, 2, 5, 7, 7]),
)
TABLE = {"day": np.array([2, 3, 1, 3, 0, 0]), "state": np.array([0, 1, 0, 1, 1, 0])}


def test_rows_are_sorted_in_their_groups_and_know_the_row_before() -> None:
    """The last cell of the day is NULL, which comes first; the first row of a group has none before."""
    table = FOLLOWED.sorted(TABLE)
    assert table["day"].tolist() == [3, 1, 2, 3, 0, 0]
    assert table["state"].tolist() == [1, 0, 0, 1, 1, 0]
    behind = FOLLOWED.behind(table)
    assert behind["day before"].tolist() == [3, 3, 1, 3, 3, 0]
    assert behind["state before"].tolist() == [2, 1, 0, 2, 2, 1]
    assert [turn.tolist() for turn in FOLLOWED.turns()] == [[0, 3, 4], [1, 5], [2]]
    (empty,) = FOLLOWED.zeros.values()
    for now, before in np.ndindex(4, 4):
        assert empty[now, before] == (before < 3 and (now == 3 or now < before))
    some = FOLLOWED.some(3, np.random.default_rng(1))
    assert set(np.unique(FOLLOWED.group[some], return_counts=True)[1]) <= {1, 2, 3}
    assert FOLLOWED.only(np.array([3, 4, 5])).turns()[0].tolist() == [0, 1]


def test_times_inside_a_cell_rise_and_are_lowered_where_another_column_moved_one() -> None:
    codes = np.array([3, 1, 1, 1, 0, 0])
    values = np.array([9, 5, 4, 5, 8, 6])
    rising = FOLLOWED.rising(codes, values)
    assert rising.tolist() == [9, 4, 5, 5, 6, 8]
    assert FOLLOWED.lowered(codes, np.array([9, 5, 2, 1, 8, 6])).tolist() == [9, 2, 2, 1, 6, 6]


def test_what_is_expected_of_the_row_before_is_the_column_without_last_rows() -> None:
    known = MarginalMeasurement(("state",), np.array([60, -2]), 3)  # type: ignore[arg-type]
    (found,) = ExpectedBefore(FOLLOWED, 0.5).today([known])
    assert found.clique == ("state before",)
    assert found.values.tolist() == [30, 0, 30]
    assert float(found.sigma) ** 2 == pytest.approx(9 + 30**2 / 3)
    assert ExpectedBefore(FOLLOWED, 0.5).today([]) == ()
