"""What is saved of one part's rows says so by itself: answers, workloads, published tables."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import discreet
from discreet.release import Release
from part_tools import COUNT, declared

WORDS = "of the part north alone"


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[discreet.Curator]:
    folder = tmp_path_factory.mktemp("parts")
    path = folder / "ward.toml"
    path.write_text(declared(folder).replace("[budget]", "[budget]\ndelta = 1e-6"), "utf-8")
    with discreet.open(path, owner=True) as found:
        yield found


def workload() -> discreet.Workload:
    return discreet.Workload("t").marginals("clinic")


def said(release: Release, folder: Path) -> dict[str, bool]:
    """Which files of a release name the part."""
    found = {"json": json.loads(release.save(folder / "made.json").read_text("utf-8")).get("part") == "north"}
    found["html"] = WORDS in release.save(folder / "made.html").read_text("utf-8")
    with zipfile.ZipFile(release.save(folder / "made.xlsx")) as book:
        found["xlsx"] = WORDS in book.read("xl/sharedStrings.xml").decode()
    schema = pytest.importorskip("pyarrow.parquet").read_schema(release.save(folder / "made.parquet"))
    found["parquet"] = (schema.metadata or {}).get(b"discreet.part") == b"north"
    return found


def test_files_of_an_answer_name_its_part(curator: discreet.Curator, tmp_path: Path) -> None:
    pytest.importorskip("xlsxwriter")
    for ask in (
        lambda part: curator.ask(COUNT, epsilon=1, part=part),
        lambda part: curator.ask(f"SELECT n * 2 AS m FROM ({COUNT}) AS x", epsilon=1, part=part),
        lambda part: curator.answer(workload(), epsilon=1, delta=0, part=part),
    ):
        for _ in range(2):  # also once it is stored
            assert said(ask("north"), tmp_path) == dict.fromkeys(("json", "html", "xlsx", "parquet"), True)
        whole = ask(None)
        assert said(whole, tmp_path) == dict.fromkeys(("json", "html", "xlsx", "parquet"), False)
        assert "part" not in whole.to_dict()


def test_files_of_a_published_table_name_its_part(curator: discreet.Curator, tmp_path: Path) -> None:
    pytest.importorskip("xlsxwriter")
    parquet = pytest.importorskip("pyarrow.parquet")
    made, whole = (curator.publish("t", columns=["clinic"], epsilon=20, part=part) for part in ("north", None))
    for release, named in ((made, True), (whole, False)):
        assert said(release, tmp_path) == dict.fromkeys(("json", "html", "xlsx", "parquet"), named)
        again = discreet.published(release.save(tmp_path / "made.json"))
        assert (again.known.part, WORDS in again.bounds) == (("north" if named else ""), named)
        told = parquet.read_table(release.save(tmp_path / "made.parquet")).schema.metadata[b"discreet"]
        assert json.loads(told)["synthetic"].get("part") == ("north" if named else None)
        with duckdb.connect(str(release.save(tmp_path / f"made{named}.duckdb")), read_only=True) as database:
            ((comment,),) = database.execute("SELECT comment FROM duckdb_tables()").fetchall()
        assert json.loads(comment)["synthetic"].get("part") == ("north" if named else None)
        assert release.known.title == ("t of the part north alone" if named else "t")
        with discreet.Curator({"made": discreet.Table(release, public=True)}, epsilon=1) as other:
            (words,) = other.ask(COUNT.replace("FROM t", "FROM made")).bounds
            assert words.startswith("made of the part north alone: made-up rows" if named else "made: made-up rows")
        page = release.plot(tmp_path / "made.html")
        assert (WORDS in page.read_text("utf-8")) is named


def test_a_part_that_an_earlier_version_wrote_among_the_bounds_alone_stays_with_the_files(
    curator: discreet.Curator, tmp_path: Path
) -> None:
    pytest.importorskip("xlsxwriter")
    made = curator.publish("t", columns=["clinic"], epsilon=20, part="north")
    plain = json.loads(made.save(tmp_path / "made.json").read_text("utf-8"))
    assert plain.pop("part") == "north"
    assert WORDS in plain["bounds"]
    (tmp_path / "earlier.json").write_text(json.dumps(plain), "utf-8")
    again = discreet.published(tmp_path / "earlier.json")
    assert said(again, tmp_path) == dict.fromkeys(("json", "html", "xlsx", "parquet"), True)
    assert again.known.part == "north"
