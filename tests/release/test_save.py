"""An answer that is taken along: as a file, in words, and from a question in a file."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import openpyxl
import pandas as pd
import pyarrow.parquet
import pytest

from discreet import Curator, QuestionError, Release, Table
from discreet.intervals.noise import three_digits
from face_tools import Command, Said

GROUPED = "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY city"


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


def test_a_sheet_has_the_table_and_what_to_know(curator: Curator, release: Release, tmp_path: Path) -> None:
    book = openpyxl.load_workbook(release.save(tmp_path / "a.xlsx"))
    head, *rows = book["answer"].iter_rows(values_only=True)
    assert list(head) == list(release.to_columns())
    assert [row[:2] for row in rows] == [(row["city"], row["n"]) for row in release.rows]
    assert [row[3:5] for row in rows] == [one["n"] for one in release.intervals]
    words = [row[0] for row in book["about"].iter_rows(values_only=True)]
    assert words[0] == "ε 5, one person, added or removed with all rows"
    assert words[1:] == release.bounds
    days = curator.ask("SELECT day, COUNT(*) AS n FROM visits GROUP BY day", epsilon=5)
    _, *rows = openpyxl.load_workbook(days.save(tmp_path / "days.xlsx"))["answer"].iter_rows(values_only=True)
    assert [None if row[0] is None else row[0].date() for row in rows] == [row["day"] for row in days.rows]


SIGNS = ["=1+1", "+1", "-1", "@SUM(A1)", "{=1}", "https://example.org", "a\nb", "", "x" * 40_000, "1", "TRUE"]


def test_a_text_stays_a_text_whatever_it_looks_like(tmp_path: Path) -> None:
    frame = pd.DataFrame({"key": SIGNS * 50})
    table = Table(frame, one_row_per_person=True, columns={"key": str})
    with Curator({"t": table}, epsilon=1e6, delta=0.01) as curator:
        release = curator.ask("SELECT key, COUNT(*) AS n FROM t GROUP BY key", epsilon=1000)
        release.save(tmp_path / "signs.xlsx")
        release.save(tmp_path / "signs.html")
    sheet = openpyxl.load_workbook(tmp_path / "signs.xlsx")["answer"]
    cells = [row[0] for row in sheet.iter_rows(min_row=2)]
    assert {cell.data_type for cell in cells} <= {"s", "n"}  # an empty text is an empty cell
    assert {cell.value or "" for cell in cells} == {row["key"][:32_767] for row in release.rows}
    assert len(cells) == len(SIGNS)
    assert not any(cell.hyperlink for cell in cells)


def test_a_page_has_all_rows_and_the_picture(tmp_path: Path) -> None:
    frame = pd.DataFrame({"code": [f"<b>{place % 80}" for place in range(2000)]})
    codes = {"type": "text", "values": [f"<b>{place}" for place in range(80)], "nulls": False}
    with Curator({"t": Table(frame, one_row_per_person=True, columns={"code": codes})}, epsilon=10) as curator:
        release = curator.ask("SELECT code, COUNT(*) AS n FROM t GROUP BY code", epsilon=5)
    page = release.save(tmp_path / "a.html").read_text("utf-8")
    assert page.count("<tr>") == 81
    assert "<b>" not in page
    assert page.count("<svg") == 1
    assert release._repr_html_().count("<tr>") == 61
    assert "… 20 more rows" in release._repr_html_()
    assert "src=" not in page  # nothing is loaded from elsewhere


def test_what_cannot_be_written_is_refused_in_words(release: Release, tmp_path: Path) -> None:
    (tmp_path / "folder.xlsx").mkdir()
    for ending in ("csv", "xlsx", "html", "json", "parquet"):
        (tmp_path / f"folder.{ending}").mkdir(exist_ok=True)
        with pytest.raises(QuestionError, match="cannot be written: "):
            release.save(tmp_path / f"folder.{ending}")


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


WRITTEN = "\ufeff-- für alle\nSELECT COUNT(*) AS n FROM visits;\n".encode()


def test_a_question_from_standard_input(cli: Command, clinic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*arguments: str, text: bytes) -> Said:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text), "utf-8"))
        return cli("ask", clinic, *arguments, "--json")

    for arguments in (["-"], ["--file", "-"], ["-f", "-"]):
        said = asked(*arguments, text=WRITTEN)
        assert said.code == 0, said.err
        assert said.json["columns"] == ["n"]
    for text in (b"", b"\xff\xfe", b"SELECT " * 300_000):
        said = asked("-", text=text)
        assert said.code == 2
        assert "fix" in said.json


def test_a_question_through_a_pipe(clinic: Path) -> None:
    command = [Path(sys.executable).with_name("discreet"), "ask", clinic, "-", "--json"]
    said = subprocess.run(command, input=WRITTEN, capture_output=True, cwd=clinic.parent, check=False)
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout)["columns"] == ["n"]


def test_an_answer_in_every_kind_of_file(cli: Command, clinic: Path) -> None:
    for ending in ("csv", "parquet", "xlsx", "html", "json"):
        said = cli("ask", clinic, "SELECT city, COUNT(*) AS n FROM visits GROUP BY city", "-o", f"a.{ending}")
        assert said.code == 0, said.err
        assert (clinic.parent / f"a.{ending}").stat().st_size > 100


def test_published_rows_are_in_the_json(cli: Command, clinic: Path) -> None:
    options = ["--epsilon", "0.9", "--column", "city", "--column", "smoker", "--rows", "20", "-o", "made.json"]
    said = cli("publish", clinic, "visits", *options, "--json").json
    assert len(said["rows"]) == 20
    assert set(said["rows"][0]) == {"city", "smoker"}
    assert "table" not in said
    assert json.loads((clinic.parent / "made.json").read_text("utf-8")) == said
