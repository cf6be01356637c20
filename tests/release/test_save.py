"""An answer that is taken along: as a file, in words, and from a question in a file."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
import pytest

from discreet import Curator, QuestionError, Release
from discreet.intervals.noise import three_digits
from face_tools import Command, Data, visits

GROUPED = "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY city"


@pytest.fixture(scope="module")
def curator(data: Data) -> Iterator[Curator]:
    with Curator({"visits": visits(data.csv)}, epsilon="1e9", delta="0.01") as curator:
        yield curator


@pytest.fixture(scope="module")
def release(curator: Curator) -> Release:
    return curator.ask(GROUPED, epsilon=5)


def test_a_release_is_saved(release: Release, tmp_path: Path) -> None:
    assert release.save(tmp_path / "a.csv") == tmp_path / "a.csv"
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["city", "n", "a", "n_low", "n_high", "a_low", "a_high"]
    assert [(row["city"], int(row["n"]), int(row["n_low"])) for row in rows] == [
        (row["city"], row["n"], one["n"][0]) for row, one in zip(release.rows, release.intervals, strict=True)
    ]
    release.save(str(tmp_path / "a.json"))
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))["rows"] == release.rows
    release.save(tmp_path / "a.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "a.parquet").equals(release.to_arrow())
    for name, fix in (("a.txt", "end it in .csv"), ("a", "end it in .csv"), ("gone/a.csv", "make it first")):
        with pytest.raises(QuestionError, match=fix):
            release.save(tmp_path / name)


def test_numbers_stand_at_the_right(release: Release) -> None:
    head, *rows = repr(release).splitlines()[:5]
    assert len({len(row) for row in (head, *rows)}) == 1
    assert head.endswith(" a")
    assert [row.split()[0] for row in rows] == ["north", "south", "nowhere", "Zürich"]
    assert all(row[0] != " " for row in rows)
    html = release._repr_html_()
    assert html.count("text-align:right") == 2 * 5
    assert html.count("text-align:left") == 5


def test_large_errors_are_written_out(curator: Curator) -> None:
    assert [three_digits(error) for error in (0.01234, 12.345, 999.7, 1234.5, 1_234_567.0, 1e9)] == [
        "0.0123",
        "12.3",
        "1,000",
        "1,230",
        "1,230,000",
        "1,000,000,000",
    ]
    words = repr(curator.explain("SELECT SUM(cost) AS s FROM visits", epsilon="0.01"))
    assert re.search(r"^s: ±[1-9],\d\d0,000 at 95 % confidence$", words, re.MULTILINE)


def test_what_is_wanted_of_an_error_is_never_passed_over(curator: Curator) -> None:
    count = "SELECT COUNT(*) AS n FROM visits"
    wrong = [{"within": 100}, {"within": {}}, {"within": ["n"]}, {"within": {1: 2}}]
    for said in [*wrong, {"epsilon": 1, "confidence": 0.99}, {"epsilon": 1, "together": True}]:
        for call in (curator.ask, curator.explain, curator.left):
            with pytest.raises(QuestionError) as refused:
                call(count, **said)  # type: ignore[arg-type]
            assert (refused.value.code, refused.value.fix) == ("within", 'write within={"n": 100}, or --within n=100')


def test_a_question_from_a_file(cli: Command, clinic: Path) -> None:
    (clinic.parent / "question.sql").write_text("-- how many\nSELECT COUNT(*) AS n\nFROM visits\n", "utf-8")
    assert cli("explain", clinic, "-f", "question.sql").code == 0
    said = cli("ask", clinic, "--file", "question.sql", "--json")
    assert (said.code, said.json["columns"]) == (0, ["n"])
    for wrong in ([], ["SELECT 1", "-f", "question.sql"], ["-f", "gone.sql"]):
        said = cli("ask", clinic, *wrong)
        assert (said.code, said.out) == (2, "")
        assert "→ " in said.err


def test_published_rows_are_in_the_json(cli: Command, clinic: Path) -> None:
    options = ["--epsilon", "0.9", "--column", "city", "--column", "smoker", "--rows", "20", "-o", "made.json"]
    said = cli("publish", clinic, "visits", *options, "--json").json
    assert len(said["rows"]) == 20
    assert set(said["rows"][0]) == {"city", "smoker"}
    assert "table" not in said
    assert json.loads((clinic.parent / "made.json").read_text("utf-8")) == said
