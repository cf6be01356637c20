"""The answer itself: its numbers, how sure they are, what they cost, and every form they can be had in."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet import BudgetError, Curator, EngineError, QuestionError, Release, Table
from discreet import open as open_declaration
from face_tools import Data, spent, visits

GROUPED = "SELECT city, COUNT(*) AS n, SUM(cost) AS s, AVG(age) AS a FROM visits GROUP BY city"


@pytest.fixture(scope="module")
def release(curator: Curator) -> Release:
    return curator.ask(GROUPED, epsilon=5)


# numbers


def test_rows_and_intervals_go_together(release: Release) -> None:
    assert release.columns == ["city", "n", "s", "a"]
    assert [row["city"] for row in release.rows] == ["north", "south", "nowhere", "Zürich"]
    for row, interval, joint in zip(release.rows, release.intervals, release.simultaneous(), strict=True):
        assert list(row) == release.columns
        assert set(interval) == set(joint) == {"n", "s", "a"}
        for name, (low, high) in interval.items():
            assert joint[name][0] <= low <= row[name] <= high <= joint[name][1]
        assert all(isinstance(end, int) for end in (row["n"], *interval["n"], *joint["n"]))
        assert joint["n"][1] - joint["n"][0] > interval["n"][1] - interval["n"][0]
        assert 0 <= interval["a"][0] <= interval["a"][1] <= 20


def test_a_mean_of_nobody_may_be_anything(curator: Curator) -> None:
    low, high = curator.ask("SELECT AVG(age) AS a FROM visits WHERE city = 'nowhere'", epsilon="1e7").intervals[0]["a"]
    assert (low, high) == (0, 20)


def test_picked_rows_carry_the_simultaneous_intervals(curator: Curator) -> None:
    """Those of each row for itself would be false for rows that were picked by their noise."""
    question = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY n DESC"
    plain = curator.ask(question, epsilon=1, reuse=False)
    assert plain.intervals != plain.simultaneous()
    for rest in (" LIMIT 2", " LIMIT 4"):
        picked = curator.ask(question + rest, epsilon=1)
        assert picked.intervals == picked.simultaneous()
    picked = curator.ask(question.replace("ORDER BY n DESC", "HAVING n > -1000"), epsilon=1)
    assert picked.intervals == picked.simultaneous()
    assert len(picked.rows) == 4


@pytest.mark.power
def test_intervals_cover(curator: Curator) -> None:
    """600 draws of one count. At 95 %, 541 or fewer covered has a probability below 1e-6, as has 596 or more."""
    truth = 0
    covered, joint = 0, 0
    (whole,) = curator.ask("SELECT COUNT(*) AS n FROM visits WHERE city = 'nowhere'", epsilon="1e7").rows
    assert whole["n"] == truth
    question = "SELECT COUNT(*) AS n FROM visits WHERE city = 'nowhere' AND age <> {}"
    for number in range(600):
        release = curator.ask(question.format(number + 100), epsilon=1)
        low, high = release.intervals[0]["n"]
        covered += low <= truth <= high
        joint += release.simultaneous()[0]["n"] == (low, high)
    # noise is a whole number, so the interval covers a little more often than 95 %
    assert 541 < covered < 596
    assert joint == 600  # one cell alone


@pytest.mark.power
def test_simultaneous_intervals_cover_all_cells(curator: Curator) -> None:
    """150 answers of 21 empty groups each: all at once in 95 % of them or more (124 has a probability below 1e-6)."""
    question = "SELECT age, COUNT(DISTINCT person) AS n FROM visits WHERE cost = {} AND city = 'nowhere' GROUP BY age"
    whole, single = 0, 0
    for number in range(150):
        release = curator.ask(question.format(number + 1000), epsilon=1)
        whole += all(low <= 0 <= high for low, high in (cell["n"] for cell in release.simultaneous()))
        single += all(low <= 0 <= high for low, high in (cell["n"] for cell in release.intervals))
    assert whole > 124
    assert single < whole


# what it cost, and how it was made


def test_price_and_mechanisms(release: Release, curator: Curator) -> None:
    assert release.cost["epsilon"] == release.charged["epsilon"] == 5
    assert 0 < release.used <= curator.budget.used
    assert {column for one in release.mechanisms for column in one["columns"].split(", ")} == {"n", "s", "a"}
    assert all("Laplace" in one["mechanism"] for one in release.mechanisms)
    assert any(line.startswith("at most 40 rows of each person count, as declared; ") for line in release.bounds)
    assert "age is clamped to [0, 20], as declared" in release.bounds
    assert any(line.startswith("rows whose key is NULL or not declared are left out") for line in release.bounds)


def test_a_delta_may_buy_gaussian_noise(curator: Curator) -> None:
    question = "SELECT age, COUNT(DISTINCT person) AS n FROM visits GROUP BY age"
    pure = curator.ask(question, epsilon=1)
    bought = curator.ask(question, epsilon=1, delta="1e-3")
    assert "Laplace" in pure.mechanisms[0]["mechanism"]
    assert "Gaussian" in bought.mechanisms[0]["mechanism"]
    assert (bought.cost["epsilon"], bought.cost["delta"]) == (1, 1e-3)
    width = [high - low for low, high in (one.intervals[0]["n"] for one in (pure, bought))]
    assert width[1] < width[0]


def test_a_repeat_is_the_same_and_free(curator: Curator, release: Release) -> None:
    before = curator.ledger.head
    again = curator.ask(GROUPED, epsilon=5)
    assert again.content == release.content
    assert json.dumps(again.content) == json.dumps(release.content)
    assert release.charged
    assert not again.charged
    assert curator.ledger.head == before
    assert "free" in repr(again)
    other = curator.ask(GROUPED, epsilon="5.1")
    assert other.charged
    assert other.rows != release.rows


# forms


def test_json(release: Release) -> None:
    found = json.loads(release.to_json())
    assert {"columns", "rows", "intervals", "simultaneous", "cost", "charged", "used", "bounds", "mechanisms"} <= set(
        found
    )
    assert found["rows"] == release.rows
    assert [tuple(one["n"]) for one in found["intervals"]] == [one["n"] for one in release.intervals]


def test_frames(release: Release) -> None:
    names = ["city", "n", "s", "a"] + [f"{name}_{end}" for name in "nsa" for end in ("low", "high")]
    frames: list[Any] = [release.to_pandas(), release.to_polars(), release.to_arrow()]
    assert isinstance(frames[0], pd.DataFrame)
    assert isinstance(frames[1], pl.DataFrame)
    assert isinstance(frames[2], pa.Table)
    assert [sorted(frame.columns if index < 2 else frame.column_names) for index, frame in enumerate(frames)] == [
        sorted(names)
    ] * 3
    for rows in (frames[0].to_dict("records"), frames[1].to_dicts(), frames[2].to_pylist()):
        assert [{name: row[name] for name in release.columns} for row in rows] == release.rows
        assert [(row["n_low"], row["n_high"]) for row in rows] == [one["n"] for one in release.intervals]


def test_frames_keep_dates_and_moments(curator: Curator) -> None:
    days = curator.ask("SELECT day, COUNT(*) AS n FROM visits GROUP BY day", epsilon=1)
    assert [row["day"] for row in days.rows] == [*(datetime.date(2024, 1, day) for day in (1, 4, 5)), None]
    assert days.to_polars().schema["day"] == pl.Date
    assert days.to_arrow().schema.field("day").type == pa.date32()
    assert days.to_pandas()["day"].tolist() == [row["day"] for row in days.rows]


def test_a_column_that_is_named_as_an_interval(curator: Curator) -> None:
    release = curator.ask("SELECT COUNT(*) AS n, SUM(age) AS n_low FROM visits", epsilon=1)
    (row,) = release.to_polars().to_dicts()
    assert (row["n"], row["n_low"]) == (release.rows[0]["n"], release.rows[0]["n_low"])
    assert row["n_low_"] == release.intervals[0]["n"][0]
    assert row["n_low_low"] == release.intervals[0]["n_low"][0]


def test_words(release: Release) -> None:
    text = repr(release)
    head, *lines = text.splitlines()
    rows, footer, remarks = lines[:4], lines[4], lines[5:]
    assert remarks == [f"· {line}" for line in release.bounds]
    assert head.split() == ["city", "n", "s", "a"]
    assert [row.split()[0] for row in rows] == ["north", "south", "nowhere", "Zürich"]
    assert all(row.count("±") == 3 for row in rows)
    assert footer.startswith("price ε 5 · ")
    assert "ledger in memory" in footer
    html = release._repr_html_()
    assert html.startswith("<table>")
    assert html.count("<tr>") == 5
    assert "Zürich" in html


def test_words_of_an_odd_key(data: Data) -> None:
    keys = ["<script>alert(1)</script>", "a&b", "$x_1$ and $y", "長い名前", "two\nlines", "😀"]
    table = Table(data.parquet, columns={"note": keys}, one_row_per_person=True)
    with Curator({"t": table}, epsilon=1) as curator:
        release = curator.ask("SELECT note, COUNT(*) AS n FROM t GROUP BY note", epsilon=1)
    assert "<script>" not in release._repr_html_()
    assert "&lt;script&gt;" in release._repr_html_()
    assert len(repr(release).splitlines()) == 1 + len(keys) + 2 + len(release.bounds)
    assert [row["note"] for row in release.rows] == [*keys, None]
    release.plot(data.folder / "odd.png")


def test_no_group_is_shown(curator: Curator) -> None:
    release = curator.ask("SELECT note, COUNT(*) AS n FROM visits WHERE FALSE GROUP BY note", epsilon=1)
    assert release.rows == release.intervals == release.simultaneous() == []
    assert "(no group is shown: each has too few persons at this price, or there is none)" in repr(release)
    assert release.to_polars().is_empty()
    assert release.to_pandas().columns.tolist() == ["note", "n", "n_low", "n_high"]
    assert release._repr_html_().count("<tr>") == 1
    release.plot()


def test_pictures(release: Release, curator: Curator, tmp_path: Path) -> None:
    assert release.plot(tmp_path / "a.png") == tmp_path / "a.png"
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    release.plot(tmp_path / "a.svg")
    assert "<svg" in (tmp_path / "a.svg").read_text("utf-8")
    release.plot(str(tmp_path / "a.html"))
    page = (tmp_path / "a.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == 1
    figure = release.plot()
    assert [axis.get_xlabel() for axis in figure.axes] == [f"{name}, 95 % intervals" for name in "nsa"]
    with pytest.raises(QuestionError) as refused:
        release.plot(tmp_path / "a.pdf")
    assert (refused.value.code, refused.value.fix) == ("picture", "end it in .png, .svg or .html")
    curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1).plot(tmp_path / "one.png")
    curator.ask("SELECT note FROM visits GROUP BY note", epsilon=1).plot(tmp_path / "none.png")


# what an analyst may see


def test_nothing_of_the_owner_is_shown(clinic: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No path, no salt, no statement of the engine: in answers, in words, in errors, in logs."""
    caplog.set_level("DEBUG")
    text = clinic.read_text("utf-8") + f"[tables.calendar]\nsource = '{clinic.parent}/calendar.csv'\npublic = true\n"
    clinic.write_text(text, "utf-8")
    with open_declaration(clinic) as curator:
        release = curator.ask("SELECT note, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY note")
        explained = curator.explain("SELECT note, COUNT(*) AS n FROM visits GROUP BY note")
        seen = [release.to_json(), repr(release), release._repr_html_(), str(release.to_dict()), repr(explained)]
        seen += [str(explained.to_dict()), repr(curator), repr(curator.budget)]
        for question in ("SELECT COUNT(*) FROM calendar", "SELECT COUNT(*) FROM nobody", "SELECT x FROM visits", "x"):
            with pytest.raises(QuestionError) as refused:
                curator.ask(question)
            seen += [str(refused.value), str(refused.value.to_dict())]
        with pytest.raises(BudgetError) as poor:
            curator.ask("SELECT COUNT(*) FROM visits", epsilon=5)
        seen += [str(poor.value), str(poor.value.to_dict()), str(EngineError()), str(EngineError(frozen="visits"))]
        salt = curator.ledger.salt().hex()
        owners = [str(clinic.parent), "visits.csv", "calendar.csv", ".ledger", salt, "t_76", "place_of_row", "bounded"]
        owners += ["hash(", "HASH(", "BIGINT", "TRY_CAST"]
        for word in owners:
            assert not [one for one in seen if word in one], word
        assert "a_fresh_factor" in curator.engine_sql("SELECT note, COUNT(*) FROM visits GROUP BY note")
        assert "note" not in caplog.text
        assert "SELECT" not in caplog.text
        assert "reserve" in caplog.text


# analysts


def test_analysts_pay_from_their_own(clinic: Path) -> None:
    clinic.write_text(
        clinic.read_text("utf-8") + "[analysts.ana]\nepsilon = 0.3\n[analysts.bob]\nepsilon = 0.1\n", "utf-8"
    )
    question = "SELECT COUNT(*) AS n FROM visits"
    with open_declaration(clinic, owner=True) as curator:
        first = curator.ask(question, analyst="ana")
        assert [spent(curator, name) * 10 for name in ("", "ana", "bob")] == [1, 1, 0]
        again = curator.ask(question, analyst="ana")
        assert not again.charged
        other = curator.ask(question, analyst="bob")
        assert other.content == first.content
        assert other.charged["epsilon"] == 0.1
        assert other.used == pytest.approx(10)  # the whole budget is not charged for a repeat
        assert [spent(curator, name) * 10 for name in ("", "ana", "bob")] == [1, 1, 1]
        with pytest.raises(BudgetError) as refused:
            curator.ask("SELECT SUM(age) FROM visits", analyst="bob", epsilon="0.05")
        assert refused.value.message == "analyst bob's budget does not allow this question: asked ε 0.05, left ε 0"
        assert refused.value.fits == "nothing is left"
        with pytest.raises(BudgetError) as refused:
            curator.ask("SELECT SUM(age) FROM visits", analyst="ana", epsilon="0.25")
        assert (refused.value.asked, refused.value.left) == ("ε 0.25", "ε 0.2")
        assert refused.value.fits == "a price of at most ε 0.2"
        curator.ask("SELECT SUM(age) FROM visits", analyst="ana", epsilon="0.2")
        curator.ask("SELECT SUM(age) FROM visits WHERE TRUE", epsilon="0.7")
        with pytest.raises(BudgetError, match="the budget does not allow"):
            curator.ask("SELECT SUM(cost) FROM visits", epsilon="0.0001")
        curator.ask(question)  # what was paid for stays free


def test_a_request_is_charged_once(clinic: Path) -> None:
    question = "SELECT COUNT(*) AS n FROM visits"
    with open_declaration(clinic) as curator:
        first = curator.ask(question, request="r1", analyst="ana")
    with open_declaration(clinic) as curator:
        again = curator.ask(question, request="r1", analyst="ana")
        assert again.content == first.content
        assert not again.charged
        fix = "use a new request id"
        for other, said in (
            ({"question": question + " WHERE TRUE"}, fix),
            ({"question": question, "epsilon": "0.2"}, f"{fix}: it is measured anew, and charged"),
        ):
            with pytest.raises(QuestionError) as refused:
                curator.ask(**other, request="r1", analyst="ana")
            assert (refused.value.code, refused.value.fix) == ("request", said)
        curator.ask(question + " WHERE TRUE", request="r1", analyst="bob")  # an id is its analyst's own
        assert spent(curator) * 10 == 2


# the budget in words


def test_the_budget_in_words(data: Data) -> None:
    with Curator({"visits": visits(data.csv)}, epsilon=3, delta="1e-6") as curator:
        assert curator.budget.used == 0
        assert curator.left("SELECT COUNT(*) FROM visits", epsilon="0.5") == 6
        curator.ask("SELECT COUNT(*) FROM visits", epsilon="0.5")
        assert curator.budget.used == pytest.approx(16.666, abs=0.01)
        assert curator.left("SELECT COUNT(*) FROM visits", epsilon="0.5") == 5
        expected = "left: either ε 2.5 in questions or ε 2 in published tables (of ε 3, δ 1e-6); "
        assert curator.budget.left.startswith(expected)
        assert "the ledger is in memory and ends with this object" in curator.budget.left
        assert repr(curator).startswith("Curator of visits: 17 % used; ")
        explained = curator.explain("SELECT COUNT(*) AS n FROM visits", epsilon="0.5")
        assert (explained.more, round(explained.percent, 1)) == (5, 16.7)
        assert explained.expected_error["n"] == pytest.approx(40 * 5.99, rel=0.02)
