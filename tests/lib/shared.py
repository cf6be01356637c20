"""The fixtures that tests of several folders ask for: small real files, curators with a budget that makes noise vanish,
engines for tests with tables of their own, and the command line in this process."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import duckdb
import pytest

import discreet
import relation_tools
from discreet.cli import run
from engine_tools import Bench
from face_tools import BUDGET, CLINIC, COLUMNS, TRUTH, VISITS, Command, Data, Said, visits


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    """One engine for all tests that bring their own tables."""
    made = Bench()
    yield made
    made.close()


@pytest.fixture(scope="session")
def several() -> Iterator[relation_tools.Bench]:
    """One engine for all tests of several tables."""
    made = relation_tools.Bench()
    yield made
    made.close()


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Data]:
    folder = tmp_path_factory.mktemp("data")
    with duckdb.connect(str(folder / "visits.duckdb")) as connection:
        connection.execute(VISITS)
        connection.execute(f"COPY visits TO '{folder / 'visits.csv'}' (HEADER)")
        connection.execute(f"COPY visits TO '{folder / 'visits.parquet'}'")
    with duckdb.connect() as truth:
        truth.execute(f"ATTACH '{folder / 'visits.duckdb'}' AS raw (READ_ONLY)")
        truth.execute("SET ieee_floating_point_ops = false; SET error_on_division_by_zero = false")  # x / 0 is NULL
        truth.execute(TRUTH)
        truth.execute("CREATE VIEW single AS FROM visits")
        truth.execute("DETACH raw")
        yield Data(folder, truth)


@pytest.fixture(scope="session")
def exact(data: Data) -> Iterator[discreet.Curator]:
    """A curator of the visits, and of each visit as one person, whose budget makes noise vanish."""
    tables = {
        "visits": visits(data.csv),
        "single": discreet.Table(data.csv, columns=COLUMNS, one_row_per_person=True),
    }
    with discreet.Curator(tables, epsilon=BUDGET, delta="0.5", keys_delta="0.4") as curator:
        yield curator


@pytest.fixture(scope="session")
def adult(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The census that comes with the package, unpacked."""
    path = tmp_path_factory.mktemp("adult") / "adult.csv"
    path.write_bytes(gzip.decompress((files("discreet") / "data" / "adult.csv.gz").read_bytes()))
    return path


@pytest.fixture
def clinic(data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A declaration beside its file, in the working directory."""
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    path = tmp_path / "clinic.toml"
    path.write_text(CLINIC, "utf-8")
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`discreet …` in this process."""

    def call(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["discreet", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            run()
        heard = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return Said(end.value.code, heard.out, heard.err)

    return call
