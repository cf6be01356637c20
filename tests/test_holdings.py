"""The owner takes a table's source as it is now: its answers cost anew, those of other tables stay; and what is drawn
from one snapshot is never the answer about another."""

from __future__ import annotations

import threading
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars
import pytest

from discreet import Curator, DeclarationError, EngineError, QuestionError, Table
from discreet import open as open_declaration
from discreet.accounting import Pure
from discreet.holdings import Holdings
from discreet.ledger import Ledger, Stored
from face_tools import Command

EXACT = 1e6
PEOPLE = "SELECT COUNT(*) AS n FROM people"
VISITS = "SELECT COUNT(*) AS n FROM visits"
BOTH = "SELECT COUNT(*) AS n FROM people JOIN visits ON people.id = visits.id"


def people(rows: int) -> Table:
    return Table(pd.DataFrame({"id": range(rows)}), columns={"id": int}, person="id", one_row_per_person=True)


def visits(rows: int) -> Table:
    return Table(pd.DataFrame({"id": range(rows)}), columns={"id": int}, person="id", rows_per_person=2)


def tables(*, in_people: int = 50, in_visits: int = 40) -> dict[str, Table]:
    return {"people": people(in_people), "visits": visits(in_visits)}


def holder(ledger: Path, **rows: int) -> Curator:
    return Curator(tables(**rows), epsilon=1e8, ledger=ledger)


def count(curator: Curator, question: str) -> tuple[int, bool]:
    release = curator.ask(question, epsilon=EXACT)
    return release.rows[0]["n"], bool(release.charged)


def numbers(curator: Curator) -> dict[str, int]:
    return {name: state.number for name, state in curator.ledger.tables().items()}


def test_only_what_is_named_costs_anew(tmp_path: Path) -> None:
    with holder(tmp_path / "a.ledger") as curator:
        for question in (PEOPLE, VISITS, BOTH):
            assert count(curator, question)[1]
        assert curator.refresh("People") == ()  # nothing changed, and a new number all the same
        assert numbers(curator) == {"people": 2, "visits": 1}
        assert [count(curator, question)[1] for question in (PEOPLE, VISITS, BOTH)] == [True, False, True]
        assert curator.refresh("visits", "people") == ()
        assert numbers(curator) == {"people": 3, "visits": 2}
        assert count(curator, VISITS)[1]
        curator.refresh()
        assert numbers(curator) == {"people": 4, "visits": 3}
        curator.ledger.verify()


def test_a_frame_that_is_another_than_the_ledger_knows(tmp_path: Path) -> None:
    with holder(tmp_path / "a.ledger") as curator:
        count(curator, VISITS)
    with holder(tmp_path / "a.ledger", in_people=51) as curator:
        assert curator.explain(PEOPLE, epsilon=EXACT).price["epsilon"] == EXACT
        for question in (PEOPLE, VISITS):
            with pytest.raises(DeclarationError) as changed:
                curator.ask(question, epsilon=EXACT)
            (fault,) = changed.value.faults
            assert (changed.value.code, fault.where) == ("changed", "tables.people")
            assert fault.fix == 'write curator.refresh("people"): it is the new snapshot, and the budget goes on'
        with pytest.raises(DeclarationError, match=r"tables\.people"):
            curator.refresh("visits")  # it says nothing of people
        assert numbers(curator) == {"people": 1, "visits": 1}
        assert curator.refresh("people") == ("people",)
        assert count(curator, PEOPLE) == (51, True)
        assert count(curator, VISITS) == (40, False)


def test_every_changed_source_is_named_at_once(tmp_path: Path) -> None:
    holder(tmp_path / "a.ledger").close()
    with holder(tmp_path / "a.ledger", in_people=51, in_visits=41) as curator:
        with pytest.raises(DeclarationError) as changed:
            curator.ask(PEOPLE, epsilon=1)
        assert [fault.where for fault in changed.value.faults] == ["tables.people", "tables.visits"]
        assert curator.refresh("people", "visits") == ("people", "visits")


def test_it_thaws_what_is_named_alone(tmp_path: Path) -> None:
    with holder(tmp_path / "a.ledger") as curator:
        for name in ("people", "visits"):
            given = curator.ledger.reserve(Pure(Fraction(1)), question="q", key=name, tables=[name])
            assert not isinstance(given, Stored)
            curator.ledger.fail(given.reserve_id)
        curator.refresh("visits")
        assert count(curator, VISITS)[1]
        with pytest.raises(EngineError) as frozen:
            curator.ask(PEOPLE, epsilon=1)
        assert frozen.value.code == "frozen"


@pytest.mark.parametrize("name", ["cats", 3, None])
def test_a_table_that_is_not_declared(tmp_path: Path, name: Any) -> None:
    with holder(tmp_path / "a.ledger") as curator:
        with pytest.raises(QuestionError) as wrong:
            curator.refresh("people", name)
        assert (wrong.value.code, wrong.value.fix) == ("table", "name some of people, visits")
        assert numbers(curator) == {"people": 1, "visits": 1}


def written(folder: Path, people: int, visits: int) -> Path:
    for name, rows in (("people", people), ("visits", visits)):
        folder.joinpath(f"{name}.csv").write_text("\n".join(["id", *map(str, range(rows))]) + "\n", "utf-8")
    file = folder / "clinic.toml"
    file.write_text(
        "[budget]\nepsilon = 1e8\n"
        '[tables.people]\nsource = "people.csv"\nperson = "id"\none_row_per_person = true\n'
        'columns = { id = { type = "integer" } }\n'
        '[tables.visits]\nsource = "visits.csv"\nperson = "id"\nrows_per_person = 2\n'
        'columns = { id = { type = "integer" } }\n',
        "utf-8",
    )
    return file


def test_on_the_command_line(cli: Command, tmp_path: Path) -> None:
    file = written(tmp_path, 5, 7)
    was = "its source was read\n"
    assert cli("refresh", file).out == f"people: snapshot 1; {was}visits: snapshot 1; {was}"
    written(tmp_path, 6, 7)
    said = cli("ask", file, PEOPLE, "--epsilon", 1)
    assert (said.code, said.out) == (2, "")
    assert "run `discreet refresh clinic.toml people`" in said.err
    assert 'curator.refresh("people") in Python' in said.err
    assert cli("refresh", file, "people").out == f"people: snapshot 2, changed; {was}visits: snapshot 1, kept; {was}"
    said = cli("refresh", file, "visits", "--json").json
    assert said["snapshots"] == {"people": 2, "visits": 2}
    assert said["changed"] == []
    state = {"snapshot": 2, "bytes": None, "changed": False, "anew": False, "read": True, "loaded": True}
    state |= {"server": False, "added": None}
    assert said["tables"] == {"people": state, "visits": {**state, "anew": True}}
    assert cli("refresh", file).out == f"people: snapshot 3, as it was; {was}visits: snapshot 3, as it was; {was}"
    assert cli("refresh", file, "cats").code == 2


def test_a_snapshot_that_is_taken_between_price_and_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key speaks of the old rows, the engine has the new ones by then: nothing is answered, and nothing failed."""
    written(tmp_path, 50, 7)
    with open_declaration(tmp_path / "clinic.toml") as curator, open_declaration(tmp_path / "clinic.toml") as other:
        reserve = Ledger.reserve

        def late(self: Ledger, *given: Any, **named: Any) -> Any:
            monkeypatch.setattr(Ledger, "reserve", reserve)
            written(tmp_path, 51, 7)
            other.refresh("people")
            asking = threading.Thread(target=curator._holdings.load)  # another thread's question
            asking.start()
            asking.join()
            return reserve(self, *given, **named)

        monkeypatch.setattr(Ledger, "reserve", late)
        with pytest.raises(EngineError, match="the price stays charged"):
            curator.ask(PEOPLE, epsilon=EXACT)
        assert curator.ledger.tables()["people"].failures == 0
        assert count(curator, PEOPLE) == (51, True)
        assert count(other, PEOPLE) == (51, False)


def test_public_keys_are_of_the_snapshot_that_rows_about_people_are_of(tmp_path: Path) -> None:
    """Public tables are loaded once more, for what reads them alone: from a source that may have changed."""
    (tmp_path / "wards.csv").write_text("ward\na\nb\n")
    frame = pd.DataFrame({"id": range(60), "ward": ["a", "b", "c"] * 20})
    known = {
        "visits": Table(frame, columns={"id": int, "ward": str}, person="id", one_row_per_person=True),
        "wards": Table(tmp_path / "wards.csv", public=True, columns={"ward": str}),
    }
    by_ward = (
        "SELECT w.ward, COUNT(v.id) AS n FROM visits AS v RIGHT JOIN wards AS w ON v.ward = w.ward GROUP BY w.ward"
    )
    with Curator(known, epsilon=1e8, delta=0.1, keys_delta=0.05, ledger=tmp_path / "l") as curator:
        assert curator.ask(VISITS, epsilon=EXACT).rows == [{"n": 60}]
        (tmp_path / "wards.csv").write_text("ward\na\nz\n")
        for _ in range(2):
            with pytest.raises(DeclarationError, match="differs from snapshot 1"):
                curator.ask(by_ward, epsilon=EXACT)
        spent = curator.budget.used
        (tmp_path / "wards.csv").write_text("ward\na\nb\n")
        assert [row["ward"] for row in curator.ask(by_ward, epsilon=EXACT).rows] == ["a", "b"]
        assert curator.budget.used > spent
        (tmp_path / "wards.csv").write_text("ward\na\nz\n")
        curator.refresh("wards")
        assert [row["ward"] for row in curator.ask(by_ward, epsilon=EXACT).rows] == ["a", "z"]


def test_public_keys_follow_a_snapshot_that_another_process_takes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the rows about people and the public tables by themselves."""
    (tmp_path / "wards.csv").write_text("ward\na\nb\n")
    wards = Table(tmp_path / "wards.csv", public=True, columns={"ward": str})
    load = Holdings.load_public

    def late(self: Holdings) -> None:
        monkeypatch.setattr(Holdings, "load_public", load)
        (tmp_path / "wards.csv").write_text("ward\na\nz\n")
        with Curator({"people": people(20), "wards": wards}, epsilon=1e8, ledger=tmp_path / "l") as other:
            other.refresh("wards")
        load(self)

    with Curator({"people": people(20), "wards": wards}, epsilon=1e8, ledger=tmp_path / "l") as curator:
        count(curator, PEOPLE)
        monkeypatch.setattr(Holdings, "load_public", late)
        found = curator.ask("SELECT w.ward FROM wards AS w ORDER BY w.ward").rows
        assert [row["ward"] for row in found] == ["a", "z"]


def test_keys_that_sources_write_differently_are_refused(tmp_path: Path) -> None:
    """As texts 1 and 1.0 are no match: no row would be found, and a person with rows in two tables would be two."""
    kinds = {"whole": polars.Int64, "unsigned": polars.UInt64, "part": polars.Float64}
    for name, dtype in kinds.items():
        polars.DataFrame({"id": [1, 2]}, {"id": dtype}).write_parquet(tmp_path / f"{name}.parquet")

    def opened(kind: Any, one: str, other: str, **how: Any) -> None:
        persons = Table(tmp_path / f"{one}.parquet", person="id", one_row_per_person=True, columns={"id": kind})
        rows = Table(tmp_path / f"{other}.parquet", rows_per_person=2, columns={"id": kind}, **how)
        Curator({"p": persons, "r": rows}, epsilon=1).close()

    for how in ({"person": "id"}, {"person": "id -> p.id"}):
        for pair in (("whole", "part"), ("part", "whole")):
            with pytest.raises(
                DeclarationError, match=r"tables\.r\.person: id is written like 1.* declare both with one"
            ):
                opened(str, *pair, **how)
            opened(int, *pair, **how)
        for pair in (("part", "part"), ("unsigned", "whole"), ("whole", "unsigned")):  # written alike
            opened(str, *pair, **how)


def test_keys_are_compared_also_where_the_first_table_states_no_types(tmp_path: Path) -> None:
    polars.DataFrame({"id": ["1", "2"]}).write_csv(tmp_path / "first.csv")
    polars.DataFrame({"id": [1, 2]}).write_parquet(tmp_path / "whole.parquet")
    polars.DataFrame({"id": [1.0, 2.0]}).write_parquet(tmp_path / "part.parquet")
    files = ("first.csv", "whole.parquet", "part.parquet")
    tables = {
        name.partition(".")[0]: Table(tmp_path / name, person="id", one_row_per_person=True, columns={"id": str})
        for name in files
    }
    with pytest.raises(
        DeclarationError, match=r"tables\.part\.person: id is written like 1\.0 .* and whole\.id like 1"
    ):
        Curator(tables, epsilon=1)


def test_a_step_that_a_source_states_is_no_fault_of_the_owner(tmp_path: Path) -> None:
    """Of a DECIMAL(10, 0) all values lie at the bounds, where these hold no whole number."""
    with duckdb.connect() as engine:
        engine.execute(f"COPY (SELECT 1::DECIMAL(10, 0) AS x) TO '{tmp_path / 'd.parquet'}'")
    bounds = {"type": "number", "min": Decimal("0.2"), "max": Decimal("0.8")}
    table = Table(tmp_path / "d.parquet", columns={"x": bounds}, one_row_per_person=True)
    with Curator({"t": table}, epsilon=10**6) as one:
        assert one.ask("SELECT AVG(x) AS m FROM t", epsilon=10**5).rows[0]["m"] == pytest.approx(0.8, abs=0.01)
