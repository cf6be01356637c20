"""Whatever a cell can hold has a result, with and without the person who holds it: nothing is read that fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from discreet import Curator, Release, Table

EDGES = {
    "x": ["'inf'", "'-inf'", "'nan'", "-0.0", "0.0", "1.7976931348623157e308", "5e-324", "0.1", "NULL"],
    "d": ["'infinity'", "'-infinity'", "'0044-03-15 (BC)'", "'9999-12-31'::DATE + 1", "'0001-01-01'", "NULL"],
    "t": ["'infinity'", "'-infinity'", "'0044-03-15 (BC) 00:00:00'", "'9999-12-31 23:59:59.999999'", "'1969-12-31'"],
    "n": ["9223372036854775807", "-9223372036854775808", "0", "NULL"],
    "s": ["''", "chr(0) || 'a'", "'e' || chr(769)", "chr(233)", "chr(1114111)", "repeat('x', 70000)", "'NULL'", "NULL"],
    "b": ["true", "false", "NULL"],
}
TYPES = {"x": "DOUBLE", "d": "DATE", "t": "TIMESTAMP", "n": "BIGINT", "s": "VARCHAR", "b": "BOOLEAN"}
CROWD = 40  # persons who hold each value
QUESTIONS = [
    *(f"SELECT {name}, COUNT(*) AS c FROM people GROUP BY {name}" for name in ("d", "t", "n", "s", "b")),
    "SELECT FLOOR(x) AS k, COUNT(*) AS c FROM people GROUP BY k",
    "SELECT CEIL(x * 1e299) AS k, COUNT(*) AS c FROM people GROUP BY k",
    "SELECT x, COUNT(*) AS c, MEDIAN(n) AS m FROM listed GROUP BY x",
    "SELECT COUNT(DISTINCT x) AS c FROM people",
    "SELECT COUNT(DISTINCT d) AS c, COUNT(DISTINCT t) AS c2, COUNT(DISTINCT s) AS c3 FROM people",
    "SELECT MEDIAN(x) AS m, MIN(n) AS low, MAX(x * 10) AS high FROM people",
    "SELECT SUM(x * x) AS a, AVG(1 / x) AS b, VARIANCE(x) AS c, SUM(n) AS d FROM people",
    "SELECT COUNT(*) AS c FROM people WHERE x IN (SELECT x FROM opened)",
    *(
        f"SELECT o.{name}, COUNT(*) AS c FROM people p RIGHT JOIN (SELECT DISTINCT {name} FROM opened) o"
        f" ON p.{name} = o.{name} GROUP BY o.{name}"
        for name in ("x", "d", "t", "n", "s")
    ),
]
OPTIONS = "epsilon=1000, delta=1e-5, max_groups_contributed=1, "


def written(question: str) -> str:
    options = "group_selection_strategy=PUBLIC_GROUPS" if "RIGHT" in question else "min_privacy_units_per_group=2"
    listed = "RIGHT" in question or "FROM listed" in question
    clause = f"WITH DIFFERENTIAL_PRIVACY OPTIONS ({OPTIONS}{options})" if listed else ""
    return question.replace("SELECT ", f"SELECT {clause} ", 1)


def rows(name: str, edge: str, first: int, count: int) -> str:
    columns = [f"TRY_CAST({edge if one == name else 'NULL'} AS {kind}) AS {one}" for one, kind in TYPES.items()]
    return f"SELECT i AS p, {', '.join(columns)} FROM range({first}, {first + count}) AS a(i)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("edges")
    edges = [(name, edge) for name, known in EDGES.items() for edge in known]
    crowd = [rows(name, edge, place * CROWD, CROWD) for place, (name, edge) in enumerate(edges)]
    alone = [rows(name, edge, 100_000 + place, 1) for place, (name, edge) in enumerate(edges)]
    for file, parts in (("without", crowd), ("with", crowd + alone), ("only", alone)):
        duckdb.execute(f"COPY ({' UNION ALL '.join(parts)}) TO '{folder / file}.parquet'")
    return folder


def curator(folder: Path, file: str) -> Curator:
    columns: dict[str, object] = dict.fromkeys(["p", *TYPES])
    people = Table(folder / f"{file}.parquet", columns=columns, one_row_per_person=True)
    listed = Table(
        folder / f"{file}.parquet",
        columns={"p": None, "x": {"values": [0, 0.1, 1]}, "n": None},
        one_row_per_person=True,
    )
    opened = Table(folder / "with.parquet", public=True, columns=dict.fromkeys(TYPES))
    tables = {"people": people, "listed": listed, "opened": opened}
    return Curator(tables, epsilon=10**6, delta="0.1", keys_delta="0.09")


@pytest.fixture(scope="module", params=["with", "without", "only"])
def holder(folder: Path, request: pytest.FixtureRequest) -> Iterator[Curator]:
    with curator(folder, request.param) as made:
        yield made


@pytest.mark.parametrize("question", QUESTIONS, ids=range(len(QUESTIONS)))
def test_every_value_has_a_result(holder: Curator, question: str) -> None:
    price = {} if "DIFFERENTIAL" in written(question) else {"epsilon": 1000, "delta": "1e-5"}
    release: Release = holder.ask(written(question), **price)  # type: ignore[arg-type]
    assert len({str(row) for row in release.rows}) == len(release.rows)
    assert "nfinity" not in release.to_json()
    assert repr(release)
    assert not holder.ledger.tables()["people"].failures


def test_what_stands_there(folder: Path) -> None:
    """Each group once, dates clamped to those that have a name, no group that is called infinite."""
    with curator(folder, "without") as one:
        dates = one.ask(QUESTIONS[0], epsilon=1000, delta="1e-5").rows
        assert dates.pop()["d"] is None
        assert [(str(row["d"]), row["c"]) for row in dates] == [("0001-01-01", 3 * CROWD), ("9999-12-31", 2 * CROWD)]
        numbers = one.ask(written("SELECT x, COUNT(*) AS c FROM listed GROUP BY x")).rows
        assert numbers.pop()["x"] is None
        assert [(row["x"], row["c"]) for row in numbers] == [
            (0, 2 * CROWD),
            (5e-324, CROWD),
            (0.1, CROWD),
            (1.7976931348623157e308, CROWD),
        ]
        assert one.ask("SELECT COUNT(DISTINCT x) AS c FROM people", epsilon=1000).rows == [{"c": 6}]
        texts = one.ask(QUESTIONS[3], epsilon=1000, delta="1e-5").rows
        assert len(texts) == len(EDGES["s"])
