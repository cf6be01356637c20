"""Which form a plan takes, what is kept beside a table for it, and what the locked child builds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from discreet.catalog import declare
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.process import Failed
from discreet.errors import DeclarationError, EngineError
from discreet.trusted.ring_a.statement import statement, table_name
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_a.windows import Salt
from discreet.trusted.ring_b.held_groups import MOST_HELD, held, name_of
from windows_tools import CLIP, Bench, Row, known, planned

ROWS = [Row(person, group, bit) for person in (1, 2, 3) for bit, group in enumerate("abc")]
RANKED, WINDOWED = "rank_of_person", "word_of_person"


@pytest.mark.parametrize(
    ("question", "beside", "how"),
    [
        ("SELECT COUNT(*) FROM t", None, WINDOWED),
        ("SELECT bit, SUM(v), COUNT(*) FROM t WHERE bit < 3 GROUP BY bit", None, WINDOWED),
        ("SELECT COUNT(DISTINCT p) FROM t", None, ""),
        ("SELECT r, COUNT(DISTINCT p) FROM t GROUP BY r", "totals_", WINDOWED),
        ("SELECT r, COUNT(DISTINCT p) FROM t WHERE bit < 3 GROUP BY r", "place_", WINDOWED),
        (f"SELECT r, SUM(v, {CLIP}) FROM t GROUP BY r", "totals_", WINDOWED),
        # rows are limited by a window first; of what is left, groups by rank
        (f"SELECT r, SUM(v, {CLIP}), COUNT(*) FROM t GROUP BY r", None, RANKED),
    ],
)
def test_the_form_follows_from_the_plan(question: str, beside: str | None, how: str) -> None:
    declaration = known(5, 2)
    plan = planned(question, declaration).root
    table = declaration.tables["t"]
    needed = name_of(table_name(table), plan)
    assert (None if needed is None else needed[: len(beside or "")]) == beside
    assert needed is None or held(plan, table).name == needed
    text = DUCKDB.text(statement(plan, table, Salt.of("salt")))
    assert how in text
    assert (RANKED in text) == (how == RANKED)


def test_bounds_of_counts_and_limits_share_what_is_stored() -> None:
    names = set()
    for most, bound in ((1, 3), (2, 3), (2, 9)):
        declaration = known(5, most)
        question = f"SELECT r, COUNT(*, contribution_bounds_per_group => (0, {bound})) FROM t GROUP BY r"
        names.add(name_of("t", planned(question, declaration).root))
    assert len(names) == 1


def columns(bench: Bench, table: Table) -> set[str]:
    """Tables and columns that stand in the engine beside the table's own."""
    list_of = (
        f"list(column_name) FILTER (table_name = '{table_name(table)}' AND column_name LIKE 'place%\\_%' ESCAPE '\\')"
    )
    tables = "list(DISTINCT table_name) FILTER (table_name LIKE 'totals\\_%' ESCAPE '\\')"
    both = bench.scalar(f"SELECT [coalesce({list_of}, []), coalesce({tables}, [])] FROM duckdb_columns()")
    return {name for names in both for name in names} - {"place_of_row"}


@pytest.fixture
def locked() -> Iterator[tuple[Bench, Table, Mapping[str, Any]]]:
    """An engine with one table, locked as the curator locks it."""
    bench = Bench()
    declaration = known(5, 1)
    table = bench.load(declaration.tables["t"], ROWS)
    bench.engine.lock()
    yield bench, table, declaration
    bench.close()


@pytest.mark.parametrize("where", ["", "WHERE v >= 0"])
def test_without_what_is_kept_ready_ring_a_limits_groups_by_itself(
    locked: tuple[Bench, Table, Any], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three persons with three groups each, one group counts of each, in both forms."""
    bench, table, declaration = locked
    question = f"SELECT r, COUNT(DISTINCT p) FROM t {where} GROUP BY r"
    for ready in (True, False):
        if not ready:
            monkeypatch.setattr("discreet.trusted.ring_a.statement._READY", [])
        plan = planned(question, declaration)
        text = DUCKDB.text(statement(plan.root, table, Salt.of("salt")))
        assert (RANKED in text) is not ready
        for salt in "0123":
            assert sum(count for (count,) in bench.totals(plan, table, salt).values()) == 3


@pytest.mark.parametrize("groups", ["r", "r, bit"])
def test_sums_of_persons_are_clamped_once_in_either_form(groups: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In what is kept ready when that is built; else by the statement itself, also where groups are not limited."""
    clamped = "CASE WHEN a0 > "
    for limit in (1, 5):
        declaration = known(5, limit)
        plan = planned(f"SELECT {groups}, SUM(v, {CLIP}) FROM t GROUP BY {groups}", declaration).root
        table = declaration.tables["t"]
        text = DUCKDB.text(statement(plan, table, Salt.of("salt")))
        if name_of(table_name(table), plan) is not None:
            (build,) = held(plan, table).build
            assert clamped in DUCKDB.text(build)
            assert clamped not in text
            with monkeypatch.context() as patched:
                patched.setattr("discreet.trusted.ring_a.statement._READY", [])
                text = DUCKDB.text(statement(plan, table, Salt.of("salt")))
        assert clamped in text


KEYS = ("r", "bit", "r, bit", "q", "q, r", "q, bit")


def test_a_locked_child_builds_what_is_needed_once_and_makes_room(locked: tuple[Bench, Table, Any]) -> None:
    bench, table, declaration = locked
    seen: list[frozenset[str]] = []
    for keys in KEYS:
        for where in ("", "WHERE v > 0"):
            question = f"SELECT {keys}, COUNT(DISTINCT p) FROM t {where} GROUP BY {keys}"
            plan = planned(question, declaration)
            first = bench.totals(plan, table, "0")
            after = columns(bench, table)
            assert bench.totals(plan, table, "0") == first
            assert columns(bench, table) == after
            assert len(bench.engine._child.held[table.name]) <= MOST_HELD
            seen.append(frozenset(after))
    assert len(set(seen)) == len(seen)
    stored = {name for one in bench.engine._child.held[table.name] for name in [one.name]}
    assert stored == {name for name in columns(bench, table) if name.startswith(("totals_", "place_"))}


def test_a_build_that_fails_leaves_everything_as_it_was(locked: tuple[Bench, Table, Any]) -> None:
    bench, table, declaration = locked
    plan = planned("SELECT r, COUNT(DISTINCT p) FROM t GROUP BY r", declaration)
    before = bench.totals(plan, table, "0")
    process = bench.engine._process
    assert process is not None
    name = table_name(table)
    for statements in (
        [f"DROP TABLE {name}", "CREATE TABLE other AS SELECT no_such_column"],
        [f"CREATE OR REPLACE TABLE {name} AS SELECT error('no') AS x FROM {name}"],
        [f"DROP TABLE {name}; DROP TABLE {name}"],
        ["SELECT 1"],
        ["SET memory_limit = '1TB'"],
        ["ATTACH 'x.duckdb'"],
        [f"COPY {name} TO 'x.csv'"],
        ["CREATE TABLE other AS SELECT * FROM read_csv('x.csv')"],
        [f"DELETE FROM {name}"],
        [f"UPDATE {name} SET c0 = NULL"],
    ):
        with pytest.raises(Failed):
            process.call("build", statements, seconds=300)
    assert bench.totals(plan, table, "0") == before


def test_a_build_that_fails_is_an_engine_error(
    locked: tuple[Bench, Table, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, table, declaration = locked
    text = "SELECT r, COUNT(DISTINCT p) FROM t GROUP BY r"
    with monkeypatch.context() as patched:
        patched.setattr("discreet.trusted.ring_b.held_groups.WORD", "no_such_column")
        with pytest.raises(EngineError):
            bench.totals(planned(text, declaration), table, "0")
    assert not bench.engine._child.held[table.name]
    assert len(bench.totals(planned(text, declaration), table, "0")) <= 3


def test_a_table_that_is_loaded_anew_is_placed_anew() -> None:
    bench = Bench()
    declaration = known(5, 3)
    plan = planned("SELECT r, COUNT(DISTINCT p) FROM t GROUP BY r", declaration)
    table = bench.load(declaration.tables["t"], ROWS)
    assert bench.totals(plan, table, "0") == {("a",): (3,), ("b",): (3,), ("c",): (3,)}
    bench.close()
    bench.count = 0
    table = bench.load(declaration.tables["t"], ROWS[:1])
    assert bench.totals(plan, table, "0") == {("a",): (1,)}
    bench.close()


def test_an_older_declarations_switch_is_taken_and_chooses_nothing() -> None:
    raw = {
        "budget": {"epsilon": 1},
        "tables": {"t": {"source": "t.csv", "one_row_per_person": True, "columns": {"a": {"type": "text"}}}},
    }
    assert declare(raw | {"engine": {"windows": False}}).limits == declare(raw).limits
    with pytest.raises(DeclarationError) as refused:
        declare(raw | {"engine": {"windows": "no"}})
    assert [fault.where for fault in refused.value.faults] == ["engine.windows"]
