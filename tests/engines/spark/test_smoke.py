"""As much of Spark as every run of the tests begins: the demonstration's words where no server is. One question
waits, as its server takes longer than all others to start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

import discreet
from spark_tools import Spark

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.power
def test_a_question(spark: Spark, tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    frame = {"p": [i % 100 for i in range(400)], "g": ["xyz"[i % 3] for i in range(400)]}
    pyarrow.parquet.write_table(pyarrow.table(frame), path)
    columns = {"p": int, "g": ["x", "y", "z"]}
    table = discreet.Table(str(path), person="p", rows_per_person=4, columns=columns)
    engine: dict[str, int | str] = {"kind": "spark", "remote": spark.remote}
    with discreet.Curator({"visits": table}, epsilon=10**6, ledger=tmp_path / "a.ledger", engine=engine) as curator:
        answer = curator.ask("SELECT g, COUNT(*) AS n FROM visits GROUP BY g", epsilon=10**5)
    assert [row["n"] for row in answer.rows][:3] == [134, 133, 133]


def test_a_demonstration_without_a_server(tmp_path: Path) -> None:
    words = ["demo", "--engine", "spark", "--server", "sc://127.0.0.1:9", "--output", str(tmp_path)]
    done = subprocess.run([sys.executable, "-m", "discreet", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, "no server answers there" in done.stderr) == (2, True)
