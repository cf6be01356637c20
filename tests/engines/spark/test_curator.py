"""A curator whose tables lie on a Spark server: answers, snapshots, limits, and what is left there."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import discreet
from discreet.engines.protocol import Stopped
from spark_tools import Spark

pytestmark = [pytest.mark.outside, pytest.mark.filterwarnings("ignore")]

COLUMNS = {
    "p": {"type": "integer"},
    "g": {"type": "text", "values": ["x", "y"]},
    "w": {"type": "number", "min": 0, "max": 10},
}


def written(folder: Path, rows: int = 4_000) -> Path:
    path = folder / "visits.parquet"
    frame = {
        "p": [i % 1_000 for i in range(rows)],
        "g": ["xy"[i % 2] for i in range(rows)],
        "w": [i % 11 / 1 for i in range(rows)],
    }
    pyarrow.parquet.write_table(pyarrow.table(frame), path)
    return path


def curator(spark: Spark, source: Any, ledger: Path, **engine: Any) -> discreet.Curator:
    table = {"source": str(source), "person": "p", "rows_per_person": 4, "columns": COLUMNS}
    known = discreet.catalog.declare(
        {
            "budget": {"epsilon": 10_000, "delta": 1e-6},
            "engine": {"kind": "spark", "remote": spark.remote, **engine},
            "ledger": str(ledger),
            "tables": {"t": table},
        }
    )
    return discreet.Curator.of(known)


def session(spark: Spark) -> Any:
    from pyspark.sql.connect.session import SparkSession

    return SparkSession.builder.remote(spark.remote).create()


def tables(one: Any) -> set[str]:
    return {row["tableName"] for row in one.sql("SHOW TABLES IN discreet").collect()}


def test_answers_snapshots_and_what_is_left(spark: Spark, tmp_path: Path) -> None:
    one = session(spark)
    path, ledger = written(tmp_path), tmp_path / "a.ledger"
    with curator(spark, path, ledger) as made:
        answer = made.ask("SELECT g, COUNT(*) AS n, AVG(w) AS a FROM t GROUP BY g", epsilon=1_000)
        assert [round(row["n"], -2) for row in answer.rows][:2] == [2_000, 2_000]
        assert made.ask("SELECT g, SUM(w) FROM t WHERE w > 1 GROUP BY g", epsilon=1_000).rows
        with pytest.raises(discreet.QuestionError, match="exp does not run on this engine"):
            made.ask("SELECT COUNT(*) FROM t WHERE EXP(w) > 3", epsilon=1)
        held = tables(one)
        assert any(name.startswith("t_") for name in held)
    assert not any(name.startswith("x_") for name in tables(one))
    path.unlink()  # the snapshot is read again, and not the file
    with curator(spark, path.parent / "visits.parquet", ledger) as made:
        assert made.ask("SELECT COUNT(*) AS n FROM t WHERE w < 5", epsilon=1_000).rows
    one.stop()


def test_a_table_of_the_catalog(spark: Spark, tmp_path: Path) -> None:
    one = session(spark)
    one.sql(f"CREATE TABLE visits USING parquet AS SELECT * FROM parquet.`{written(tmp_path)}`").collect()
    with curator(spark, "spark::default.visits", tmp_path / "b.ledger") as made:
        answer = made.ask("SELECT COUNT(*) AS n FROM t", epsilon=1_000)
        assert abs(answer.rows[0]["n"] - 4_000) < 50
    with pytest.raises(discreet.DeclarationError, match="is not there"):
        curator(spark, "spark::default.nothing", tmp_path / "c.ledger")
    one.sql("DROP TABLE visits").collect()
    one.stop()


def test_a_text_declared_as_a_number_is_refused(spark: Spark, tmp_path: Path) -> None:
    path = tmp_path / "texts.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"p": [1], "g": ["x"], "w": ["1_000"]}), path)
    with pytest.raises(discreet.DeclarationError, match="it is no number in the source"):
        curator(spark, path, tmp_path / "d.ledger")


def test_rows_that_no_column_tells_apart_train_nothing(spark: Spark, tmp_path: Path) -> None:
    raw = {
        "budget": {"epsilon": 100, "delta": 1e-6},
        "engine": {"kind": "spark", "remote": spark.remote},
        "tables": {"t": {"source": str(written(tmp_path)), "one_row_per_person": True, "columns": COLUMNS}},
    }
    refused = pytest.raises(discreet.QuestionError, match="have no order on this engine")
    with discreet.Curator.of(discreet.catalog.declare(raw)) as made, refused:
        made.fit("t", target="g", features=["w"], epsilon=1)


def test_a_csv_file_is_refused(spark: Spark, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("p,g,w\n1,x,2\n")
    with pytest.raises(discreet.DeclarationError, match="is not read by Spark"):
        curator(spark, tmp_path / "x.csv", tmp_path / "e.ledger")


def test_what_takes_too_long_ends_the_child_and_the_question_on_the_server(spark: Spark, tmp_path: Path) -> None:
    with curator(spark, written(tmp_path), tmp_path / "f.ledger", seconds=3) as made:
        made.ask("SELECT COUNT(*) FROM t", epsilon=1)
        process = made._engine._process
        slow = "SELECT SUM(a.id % 7 + b.id % 5) FROM range(4000000) AS a CROSS JOIN range(4000000) AS b"
        with pytest.raises(Stopped):
            process.call("run", slow, seconds=30)
        assert not process.usable


def test_a_copy_that_was_emptied_or_replaced_is_made_anew(spark: Spark, tmp_path: Path) -> None:
    """No answer is ever given over what is not the snapshot: neither where it is open, nor at a later start."""
    one, path, ledger = session(spark), written(tmp_path), tmp_path / "a.ledger"
    one.sql("CREATE SCHEMA IF NOT EXISTS discreet").collect()
    known = tables(one)
    count = "SELECT COUNT(*) AS n FROM t WHERE w > {}"
    with curator(spark, path, ledger) as made:
        first = made.ask(count.format(-1), epsilon=1_000).rows[0]["n"]
        (name,) = (one for one in tables(one) - known if one.startswith("t_"))
        one.sql(f"TRUNCATE TABLE discreet.{name}").collect()
        time.sleep(1.5)
        assert made.ask(count.format(-2), epsilon=1_000).rows[0]["n"] == first == 4_000
    with curator(spark, path, ledger) as made:
        assert made.ask(count.format(-3), epsilon=1_000).rows[0]["n"] == 4_000
    one.sql(f"TRUNCATE TABLE discreet.{name}").collect()
    with curator(spark, path, ledger) as made:
        assert made.ask(count.format(-4), epsilon=1_000).rows[0]["n"] == 4_000
    one.stop()
