"""What could put one person into two parts, or tell of a source's rows: each is refused, or is the same for all."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas
import pytest

import discreet
from discreet.catalog import read
from discreet.errors import DeclarationError, EngineError, LedgerError
from discreet.holdings import Holdings
from discreet.ledger import TOTAL

COUNT = "SELECT COUNT(*) AS n FROM v"
BUDGET = """
[budget]
epsilon = 1000
parts = "v.clinic"
"""
PERSONS = """
[tables.p]
source = "p.csv"
person = "id"
one_row_per_person = true
[tables.p.columns]
id = { type = "KIND" }
"""
VISITS = """
[tables.v]
source = "v.csv"
csv = { OPTION = "READING" }
person = "id -> p.id"
rows_per_person = 2
[tables.v.columns]
id = { type = "KIND" }
clinic = { type = "text", values = ["north", "south"] }
"""
OTHERS = """
[tables.w]
source = "w.csv"
csv = { OPTION = "READING" }
person = "id -> p.id"
rows_per_person = 2
[tables.w.columns]
id = { type = "KIND" }
"""
ONE = """
[tables.v]
source = "v.csv"
person = "id"
rows_per_person = 2
[tables.v.columns]
id = { type = "text" }
clinic = { type = "text", values = ["north", "south"] }
"""


def declared(folder: Path, text: str, **words: str) -> Path:
    for word, said in words.items():
        text = text.replace(word, said)
    path = folder / "ward.toml"
    path.write_text(text, "utf-8")
    return path


def write(folder: Path, table: str, *rows: str) -> None:
    head = "id" if table == "w" or (table == "p" and "," not in rows[0]) else "id,clinic"
    (folder / f"{table}.csv").write_text("\n".join([head, *rows]) + "\n", "utf-8")


def killed(one: Any) -> None:
    """Ends an engine's process."""
    process = one._engine._process
    os.kill((process._process if hasattr(process, "_process") else process).pid, 9)


DATES = {"KIND": "date", "OPTION": "dates"}
TEXTS = {"KIND": "text", "OPTION": "encoding"}


@pytest.mark.parametrize(
    ("persons", "words", "first", "then"),
    [(["Jürg"], TEXTS, "latin-1", "utf-8"), (["2000-01-02", "2000-02-01"], DATES, "%m/%d/%Y", "%d/%m/%Y")],
    ids=["encoding", "dates"],
)
def test_the_table_that_says_the_part_is_read_as_before(
    tmp_path: Path, persons: list[str], words: dict[str, str], first: str, then: str
) -> None:
    """Read in another way, a row is of another person: whoever is in north by it would be in south, too."""
    row = "Jürg" if words is TEXTS else "02/01/2000"
    write(tmp_path, "p", *persons)
    write(tmp_path, "v", f"{row},north")
    text = BUDGET + PERSONS + VISITS
    discreet.open(declared(tmp_path, text, READING=first, **words), owner=True).close()
    with pytest.raises(LedgerError, match="persons are assigned to parts in the ledger"):
        discreet.open(declared(tmp_path, text, READING=then, **words), owner=True)
    with discreet.open(declared(tmp_path, text, READING=first, **words), owner=True) as one:
        one.ask(COUNT, epsilon=900, part="north")
    write(tmp_path, "v", f"{row},south")
    with pytest.raises(LedgerError, match=r"tables\.v: persons are known again in parts"):
        discreet.open(declared(tmp_path, text, READING=then, **words), owner=True)


def test_any_table_about_people_is_read_as_before_once_something_is_charged(tmp_path: Path) -> None:
    write(tmp_path, "p", "2000-01-02,north", "2000-02-01,south")
    write(tmp_path, "w", "01/02/2000")
    parts = 'id = { type = "KIND" }\nclinic = { type = "text", values = ["north", "south"] }'
    text = BUDGET.replace("v.", "p.") + PERSONS.replace('id = { type = "KIND" }', parts) + OTHERS
    discreet.open(declared(tmp_path, text, READING="%d/%m/%Y", **DATES), owner=True).close()
    count = COUNT.replace("v", "w")
    with discreet.open(declared(tmp_path, text, READING="%m/%d/%Y", **DATES), owner=True) as one:
        one.refresh("w")  # nothing is charged yet
        assert [round(one.ask(count, epsilon=900, part=part).rows[0]["n"]) for part in ("north", "south")] == [1, 0]
    other = declared(tmp_path, text, READING="%d/%m/%Y", **DATES)
    with pytest.raises(LedgerError, match=r"tables\.w: persons are known again in parts"):
        discreet.open(other, owner=True)
    # nor by way of a declaration without parts
    without = text.replace('parts = "p.clinic"\n', "")
    discreet.open(declared(tmp_path, without, READING="%d/%m/%Y", **DATES), owner=True).close()
    with pytest.raises(LedgerError, match=r"tables\.w: persons are known again in parts"):
        discreet.open(declared(tmp_path, text, READING="%d/%m/%Y", **DATES), owner=True)


def test_no_question_about_a_part_reads_a_source(tmp_path: Path) -> None:
    """A row that is written after the tables were loaded changes nothing of what comes of a question."""
    write(tmp_path, "v", "a,north", "b,south")
    with discreet.open(declared(tmp_path, BUDGET + ONE), owner=True) as one:
        write(tmp_path, "v", "a,north", "b,south", "p,north")
        for part in ("south", "north"):
            assert round(one.ask(COUNT, epsilon=100, part=part).rows[0]["n"]) == 1
        one.refresh()
        write(tmp_path, "v", "a,north")
        assert round(one.ask(COUNT, epsilon=100, part="north").rows[0]["n"]) == 2


@pytest.mark.parametrize("asked", ["north", "south", None])
def test_where_a_part_cannot_be_loaded_anew_no_question_is_answered(tmp_path: Path, asked: str | None) -> None:
    """The same is said of every question, whatever part it is about, until the owner takes the source as it is."""
    write(tmp_path, "v", "a,north", "b,south")
    with discreet.open(declared(tmp_path, BUDGET + ONE), owner=True) as one:
        killed(one._about("north"))
        write(tmp_path, "v", "a,north", "b,south", "p,south")
        said = set()
        for part in (asked, "north", "south", None):
            with pytest.raises(DeclarationError, match="differs from snapshot 1") as error:
                one.ask(COUNT, epsilon=1, part=part)
            said.add(str(error.value))
        assert len(said) == 1
        one.refresh()
        assert [round(one.ask(COUNT, epsilon=200, part=part).rows[0]["n"]) for part in ("north", "south")] == [1, 2]
        one.ledger.verify()


@pytest.mark.parametrize("loaded", [0, 1])
@pytest.mark.parametrize("end", [KeyboardInterrupt, LedgerError.of("full"), MemoryError])
def test_a_refresh_that_ends_between_two_parts_leaves_none_on_another_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded: int, end: Any
) -> None:
    """Whatever is asked next, and by whom: the whole and its parts are of the snapshot that was taken, once more where
    they were not loaded yet."""
    write(tmp_path, "v", "ann,north", "bob,south")
    path = declared(tmp_path, BUDGET + ONE)
    real, done = Holdings._keep_part, []

    def interrupted(holdings: Holdings, *said: Any) -> None:
        if holdings._part is not None:
            if len(done) == loaded:
                monkeypatch.setattr(Holdings, "_keep_part", real)
                raise end
            done.append(holdings)
        real(holdings, *said)

    with discreet.open(path, owner=True) as one, discreet.open(path, owner=True) as other:
        write(tmp_path, "v", "ann,north", "bob,south", "cid,north", "dan,south", "eve,south")
        monkeypatch.setattr(Holdings, "_keep_part", interrupted)
        with pytest.raises((KeyboardInterrupt, LedgerError, MemoryError)) as ended:
            one.refresh()
        assert ended.type is (end if isinstance(end, type) else LedgerError)
        for curator in (one, other):
            for part, size in (("south", 3), ("north", 2), (None, 5)):
                release = curator.ask(COUNT, epsilon=100, part=part, reuse=False)
                assert round(release.rows[0]["n"]) == size
            held = [each._holdings._snapshots for each in (curator, *curator._of_parts.values())]
            assert held[0]["v"].number == 2
            assert held[0] == held[1] == held[2]
        assert one.budget.parts["north"].used == one.budget.parts["south"].used == 20  # each once


def test_a_failure_of_a_part_that_could_not_be_written_shuts_the_door_of_all(tmp_path: Path) -> None:
    """Every engine fails, and the ledger cannot be written: nothing is opened in any part until the failure is."""
    write(tmp_path, "v", "a,north", "b,south")
    with discreet.open(declared(tmp_path, BUDGET + ONE + "[engine]\nfailures = 1\n"), owner=True) as one:
        for part in ("north", "south"):
            one.ask(COUNT, epsilon=1, part=part)
        north: Any = one._about("north")
        ledger: Any = one._ledger

        def failing(*_: object) -> None:
            raise RuntimeError

        def busy(*_: object) -> None:
            raise LedgerError.of("busy")

        north._engine.run = failing
        ledger.fail = busy
        with pytest.raises(EngineError, match="the engine could not answer"):
            one.ask(COUNT, epsilon=2, part="north")
        for asked in ("south", None):
            with pytest.raises(LedgerError):
                one.ask(COUNT, epsilon=3, part=asked)
        assert {str(part): one.ledger.filter(name).spent.pure for part, name in one.ledger.parts.items()} == {
            "north": 3,
            "south": 1,
        }
        del ledger.fail
        for asked in ("south", None, "north"):
            with pytest.raises(EngineError, match="frozen"):
                one.ask(COUNT, epsilon=3, part=asked)


def test_who_is_in_a_part_since_the_last_answer_is_in_the_next(tmp_path: Path) -> None:
    """A refresh of the table that says the part changes who is in it, and so the rows of other tables."""
    write(tmp_path, "p", *(f"u{number},north" for number in range(10)))
    write(tmp_path, "w", *(f"u{number}" for number in range(100)))
    parts = 'id = { type = "KIND" }\nclinic = { type = "text", values = ["north", "south"] }'
    text = BUDGET.replace("v.", "p.") + PERSONS.replace('id = { type = "KIND" }', parts) + OTHERS
    count = COUNT.replace("v", "w")
    with discreet.open(declared(tmp_path, text, READING="utf-8", **TEXTS), owner=True) as one:
        assert round(one.ask(count, epsilon=100, part="north").rows[0]["n"]) == 10
        whole = one.ask(count, epsilon=100).rows
        write(tmp_path, "p", *(f"u{number},north" for number in range(100)))
        one.refresh("p")
        assert round(one.ask(count, epsilon=100, part="north").rows[0]["n"]) == 100
        assert round(one.ask(count, epsilon=50, part="north").rows[0]["n"]) == 100
        again = one.ask(count, epsilon=100)
        assert (again.rows, again.charged.epsilon) == (whole, 0)  # of all, the rows of this table are the same


def test_a_late_part_keeps_the_charges_of_the_whole_under_other_caps(tmp_path: Path) -> None:
    """What was spent is reckoned anew from every charge when a cap changes: of a late part, also from those of all
    before it was there."""
    write(tmp_path, "v", "a,north")
    without = BUDGET.replace('parts = "v.clinic"\n', "")
    with discreet.open(declared(tmp_path, without + ONE), owner=True) as one:
        one.ask(COUNT, epsilon=100)
    with discreet.open(declared(tmp_path, BUDGET + ONE), owner=True) as one:
        one.ask(COUNT, epsilon=50, part="north")
    larger = read(declared(tmp_path, BUDGET.replace("1000", "2000") + ONE))
    with discreet.Curator.of(larger, raise_budget=True, owner=True) as one:
        spent = {name: one.ledger.filter(account).spent.pure for name, account in one.ledger.parts.items()}
        assert spent == {"north": Fraction(150), "south": Fraction(100)}
        assert one.ledger.filter(TOTAL).spent.pure == 100
        one.ledger.verify()


def test_no_charge_is_admitted_for_rows_before_they_are_the_part_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the rows of others are left out, the engine names no part: whatever is opened then is refused."""
    write(tmp_path, "v", "a,north", "b,south")
    kept, seen = Holdings._keep_part, list[tuple[str | None, str | None]]()

    def looking(one: Holdings, *given: Any) -> None:
        before = one._engine.period
        kept(one, *given)
        seen.append((before, one._engine.period))

    monkeypatch.setattr(Holdings, "_keep_part", looking)
    with discreet.open(declared(tmp_path, BUDGET + ONE), owner=True) as one:
        assert [one._about(part)._engine.period for part in ("north", "south")] == [*one.ledger.parts.values()]
        assert len(seen) == 3
        assert {*seen[1:]} == {(None, None)}


def test_no_clock_takes_snapshots_of_parts(tmp_path: Path) -> None:
    """Each part reads the source once more: a question by the clock would be refused where a row came in between."""
    with pytest.raises(DeclarationError) as told:
        read(declared(tmp_path, f'{BUDGET}{ONE}[engine]\nevery = "1 day"\n'))
    assert [fault.where for fault in told.value.faults] == ["engine.every"]


def test_ids_that_are_numbers_of_the_source_are_no_texts(tmp_path: Path) -> None:
    """Of pandas, one row without an id makes 1 of all snapshots before 1.0: everybody would be assigned anew."""
    path = declared(tmp_path, f"{BUDGET}{ONE}".replace("v.csv", "v.parquet"))
    pandas.DataFrame({"id": ["1", "2"], "clinic": ["north", "north"]}).to_parquet(tmp_path / "v.parquet")
    with discreet.open(path, owner=True) as one:
        one.ask(COUNT, epsilon=900, part="north")
        for ids in ([1, 2], [1, 2, None]):
            pandas.DataFrame({"id": ids, "clinic": ["south"] * len(ids)}).to_parquet(tmp_path / "v.parquet")
            with pytest.raises(DeclarationError, match="no texts there"):
                one.refresh()
        pandas.DataFrame({"id": ["1", "2"], "clinic": ["south", "south"]}).to_parquet(tmp_path / "v.parquet")
        one.refresh()
        assert round(one.ask(COUNT, epsilon=900, part="south").rows[0]["n"]) == 0
