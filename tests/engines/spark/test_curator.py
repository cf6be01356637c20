"""A curator whose tables lie on a Spark server: answers, snapshots, limits, and what is left there."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import discreet
from discreet.engines.protocol import Stopped
from discreet.engines.spark import driver
from engine_tools import planned
from spark_tools import Spark, limits

pytestmark = [pytest.mark.outside, pytest.mark.filterwarnings("ignore")]

COLUMNS = {
    "p": {"type": "integer"},
    "g": {"type": "text", "values": ["x", "y"]},
    "w": {"type": "number", "min": 0, "max": 10},
}


GROUPED = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = 1) g, "
    "SUM(w, contribution_bounds_per_group => (0, 20)) AS s FROM t"
)


def written(folder: Path, rows: int = 4_000) -> Path:
    path = folder / "visits.parquet"
    frame = {
        "p": [i % 1_000 for i in range(rows)],
        "g": ["xy"[i % 2] for i in range(rows)],
        "w": [i % 11 / 1 for i in range(rows)],
    }
    pyarrow.parquet.write_table(pyarrow.table(frame), path)
    return path


def curator(
    spark: Spark, source: Any, ledger: Path, columns: Mapping[str, Any] = COLUMNS, **engine: Any
) -> discreet.Curator:
    table = {"source": str(source), "person": "p", "rows_per_person": 4, "columns": columns}
    known = discreet.catalog.declare(
        {
            "budget": {"epsilon": 10_000, "delta": 1e-6},
            "engine": {"kind": "spark", "remote": spark.remote, **engine},
            "ledger": str(ledger),
            "tables": {"t": table},
        }
    )
    return discreet.Curator.of(known)


def tables(one: Any) -> set[str]:
    return {row["tableName"] for row in one.sql("SHOW TABLES IN discreet").collect()}


def snapshots(one: Any) -> set[str]:
    return {name for name in tables(one) if name.startswith("t_")}


def mark(made: discreet.Curator) -> str:
    """How the names begin of what a curator builds beside its tables."""
    return f"x_{made._engine._sources._session.replace('-', '')}_"


@pytest.fixture(autouse=True)
def _looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each price the server is asked whether the copy is as it was."""
    monkeypatch.setattr(driver.Spark, "stands", 0.0)


def test_answers_snapshots_and_what_is_left(spark: Spark, one: Any, tmp_path: Path) -> None:
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


def test_a_table_of_the_catalog(spark: Spark, one: Any, tmp_path: Path) -> None:
    one.sql(f"CREATE TABLE visits USING parquet AS SELECT * FROM parquet.`{written(tmp_path)}`").collect()
    with curator(spark, "spark::default.visits", tmp_path / "b.ledger") as made:
        answer = made.ask("SELECT COUNT(*) AS n FROM t", epsilon=1_000)
        assert abs(answer.rows[0]["n"] - 4_000) < 50
    with pytest.raises(discreet.DeclarationError, match="is not there"):
        curator(spark, "spark::default.nothing", tmp_path / "c.ledger")
    one.sql("DROP TABLE visits").collect()


def test_questions_that_need_the_same_beside_a_table(spark: Spark, tmp_path: Path) -> None:
    """What is built for a question's trial is there for no other trial: each begins from the tables as they are."""
    table = discreet.Table(
        str(written(tmp_path)), person="p", rows_per_person=4, groups_per_person=1, columns={**COLUMNS, "p": int}
    )
    engine: dict[str, int | str] = {"kind": "spark", "remote": spark.remote}
    with discreet.Curator({"t": table}, epsilon=10**6, delta=1e-6, engine=engine) as made:
        for above in range(3):
            made.ask(f"SELECT g, COUNT(*), SUM(w) FROM t WHERE w > {above} GROUP BY g", epsilon=1)
            made.ask(f"{GROUPED} WHERE w > {above} GROUP BY g", epsilon=1)
            made.ask(f"{GROUPED} GROUP BY g", epsilon=2 + above)


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


NUMBERS = "SELECT SUM(id % 7) AS s FROM range(0, {}, 1, 1)"
LONG = NUMBERS.format(10**9)
"""Takes one processor of the server for long. Spark looks after each thousand of these rows whether it is to end; in a
join of large tables it does so after thousands of millions of pairs, and holds all processors until then."""


def test_what_takes_too_long_ends_the_child_and_the_question_on_the_server(spark: Spark, tmp_path: Path) -> None:
    with curator(spark, written(tmp_path), tmp_path / "f.ledger", seconds=3) as made:
        made.ask("SELECT COUNT(*) FROM t", epsilon=1)
        process = made._engine._process
        with pytest.raises(Stopped):
            process.call("run", LONG, seconds=30)
        assert not process.usable


COUNT = "SELECT COUNT(*) AS n FROM t WHERE w > {}"


def counted(made: discreet.Curator, above: int) -> int:
    """How many rows there are; asked otherwise each time, so that it is not the answer of before."""
    return int(made.ask(COUNT.format(above), epsilon=1_000).rows[0]["n"])


def paid(made: discreet.Curator) -> int:
    """How many of these questions were paid for."""
    return round(made.budget.used / 10)


AWAY = {
    "emptied": ["TRUNCATE TABLE discreet.{0}"],
    "written": ["INSERT INTO discreet.{0} SELECT * FROM discreet.{0} LIMIT 1"],
    "dropped": ["DROP TABLE discreet.{0}"],
    "replaced": [
        "CREATE TABLE discreet.other USING PARQUET TBLPROPERTIES ({1}) AS SELECT * FROM discreet.{0} LIMIT 9",
        "DROP TABLE discreet.{0}",
        "ALTER TABLE discreet.other RENAME TO discreet.{0}",
    ],
}
"""What others may do to a copy. What takes its place says of itself what the copy said."""


def done(one: Any, way: str, name: str) -> None:
    said = one.sql(f"SHOW TBLPROPERTIES discreet.{name}").collect()
    listed = ", ".join(f"'{row['key']}' = '{row['value']}'" for row in said if row["key"].startswith("discreet."))
    for statement in AWAY[way]:
        one.sql(statement.format(name, listed)).collect()


@pytest.mark.parametrize("way", AWAY)
def test_no_answer_is_given_over_what_is_not_the_snapshot(spark: Spark, one: Any, tmp_path: Path, way: str) -> None:
    """Where it is open before a price it is made anew, free of charge; in the middle of a question that one fails; at a
    later start it is made anew."""
    path, ledger, known = written(tmp_path), tmp_path / "a.ledger", snapshots(one)
    with curator(spark, path, ledger) as made:
        assert counted(made, -1) == 4_000
        (name,) = snapshots(one) - known
        done(one, way, name)
        spent = paid(made)
        assert counted(made, -2) == 4_000
        assert paid(made) - spent == 1
        done(one, way, name)
        with pytest.raises(Stopped):
            made._engine.run(planned(COUNT.format(-3), made.declaration).root, made.declaration.tables["t"])
    with curator(spark, path, ledger) as made:
        spent = paid(made)
        assert counted(made, -4) == 4_000
    done(one, way, name)
    with curator(spark, path, ledger) as made:
        assert counted(made, -5) == 4_000
        assert paid(made) - spent == 2


def test_a_session_that_ended_costs_nobody_anything(spark: Spark, tmp_path: Path) -> None:
    from pyspark.sql.connect.session import SparkSession

    with curator(spark, written(tmp_path), tmp_path / "a.ledger") as made:
        assert counted(made, -1) == 4_000
        spent, ended = paid(made), made._engine._sources._session
        SparkSession.builder.remote(f"{spark.remote}/;session_id={ended}").create().stop()
        assert counted(made, -2) == 4_000
        assert paid(made) - spent == 1


def test_two_declarations_on_one_ledger(spark: Spark, one: Any, tmp_path: Path) -> None:
    """The same rows, whose positions differ: neither reads the other's copy, nor drops it while that is read."""
    path, ledger, known = written(tmp_path), tmp_path / "a.ledger", snapshots(one)
    otherwise = {**COLUMNS, "w": {**COLUMNS["w"], "step": 1}}
    with curator(spark, path, ledger) as first:
        assert counted(first, -1) == 4_000
        with curator(spark, path, ledger, otherwise) as second:
            assert counted(second, -2) == 4_000
            assert len(snapshots(one) - known) == 2
            spent, child = paid(first), first._engine._process
            assert counted(first, -3) == 4_000
            assert (first._engine._process, paid(first) - spent) == (child, 1)


def test_another_s_refresh_leaves_what_is_read(spark: Spark, one: Any, tmp_path: Path) -> None:
    path, ledger, known = written(tmp_path), tmp_path / "a.ledger", snapshots(one)
    with curator(spark, path, ledger) as made:
        assert counted(made, -3) == 4_000
    with curator(spark, path, ledger) as reader, curator(spark, path, ledger) as other:
        assert counted(reader, -1) == 4_000
        (before,) = snapshots(one) - known
        written(tmp_path, 3_000)
        assert other.refresh("t") == ("t",)
        assert len(snapshots(one) - known) == 2
        plan = planned(COUNT.format(-1), reader.declaration)
        assert reader._engine.run(plan.root, reader.declaration.tables["t"]) == [((), (4_000,))]
        spent = paid(other)
        assert counted(reader, -2) == 3_000
        assert paid(other) - spent == 1
        assert before not in snapshots(one)  # nobody reads it any more
        assert len(snapshots(one) - known) == 1


def test_what_sessions_left_goes_and_what_others_use_stays(spark: Spark, one: Any, tmp_path: Path) -> None:
    """A process of this machine that has ended is seen at once; another's lease lasts, by the server's clock."""
    path = written(tmp_path)
    killed, living = curator(spark, path, tmp_path / "a.ledger"), curator(spark, path, tmp_path / "b.ledger")
    with killed, living:
        for made in (killed, living):
            made.ask("SELECT g, COUNT(*) FROM t GROUP BY g", epsilon=1)
            assert any(name.startswith(mark(made)) for name in tables(one))
        elsewhere = {f"x_{letter * 32}_": until for letter, until in {"a": "99999999999", "b": "1", "c": None}.items()}
        for name, until in elsewhere.items():
            if until is not None:
                said = f"'discreet.process' = 'elsewhere 1 1', 'discreet.until' = '{until}'"
                one.sql(f"CREATE TABLE discreet.{name}0 (n INT) USING PARQUET TBLPROPERTIES ({said})").collect()
            one.sql(f"CREATE TABLE discreet.{name}1 (n INT) USING PARQUET").collect()
        one.sql("CREATE TABLE discreet.x_of_somebody (n INT) USING PARQUET").collect()
        beginning = (mark(killed), mark(living), *elsewhere)
        killed._engine._process._child.end()
        with curator(spark, path, tmp_path / "c.ledger") as made:
            made.ask("SELECT COUNT(*) FROM t", epsilon=1)
        left = tables(one)
        assert [any(name.startswith(one) for name in left) for one in beginning] == [False, True, True, False, False]
        assert "x_of_somebody" in left
        assert counted(living, -1) == 4_000
    for name in ("x_of_somebody", *(f"x_{'a' * 32}_{number}" for number in (0, 1))):
        one.sql(f"DROP TABLE discreet.{name}").collect()


def test_what_a_session_elsewhere_reads_stays(spark: Spark, one: Any, tmp_path: Path) -> None:
    path, ledger, known, name = written(tmp_path), tmp_path / "a.ledger", snapshots(one), f"discreet.x_{'d' * 32}_0"
    with curator(spark, path, ledger) as made:
        assert counted(made, -1) == 4_000
        (before,) = snapshots(one) - known
        said = f"'discreet.process' = 'elsewhere 1 1', 'discreet.reads.discreet.{before}' = 'true'"
        for until, stays in {"99999999999": True, "1": False}.items():
            one.sql(f"DROP TABLE IF EXISTS {name}").collect()
            lease = f"{said}, 'discreet.until' = '{until}'"
            one.sql(f"CREATE TABLE {name} (n INT) USING PARQUET TBLPROPERTIES ({lease})").collect()
            written(tmp_path, 3_000 if stays else 2_000)
            made.refresh("t")
            assert (before in snapshots(one)) == stays


def test_a_demonstration_leaves_nothing(spark: Spark, one: Any, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("p,g,w\n" + "".join(f"{i % 1_000},x,{i % 11}.5\n" for i in range(4_000)))
    before = tables(one)
    with driver.example(spark.remote, tmp_path / "visits.csv") as source:
        with curator(spark, source, tmp_path / "a.ledger") as made:
            assert counted(made, -1) == 4_000
        assert len(snapshots(one) - before) == 1
    assert tables(one) <= before


@pytest.mark.parametrize("seconds", [0.001, 1])
def test_a_listing_that_takes_too_long_ends_nothing_else(spark: Spark, seconds: float) -> None:
    """Not even what runs in the same session at the same time. It ends also where the server is told before it knows
    of the request."""
    from pyspark.errors import PySparkException

    from discreet.engines.spark import leases
    from discreet.engines.spark.worker import SparkWorker

    worker = SparkWorker()
    worker.do_connect(limits(spark).remote, None, str(uuid.uuid4()), 60, False)
    try:
        with ThreadPoolExecutor(1) as others:
            other = others.submit(lambda: worker.session.sql(NUMBERS.format(2 * 10**8)).toArrow().num_rows)
            with pytest.raises(PySparkException):
                worker.do_listed(LONG, seconds)
            assert not other.done()
            assert other.result() == 1
    finally:
        leases.drop(worker.session, worker.mark)
        worker.session.stop()
