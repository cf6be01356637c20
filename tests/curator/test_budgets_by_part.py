"""A budget for each part: each person is in one part at most. Real tables, a real ledger, the real engine."""

from __future__ import annotations

import itertools
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.accounting import Pure
from discreet.catalog import read
from discreet.errors import BudgetError, DeclarationError, LedgerError, QuestionError
from discreet.ledger import TOTAL, Ledger
from discreet.trusted.ledger.accounts import PART
from kinds import some

Rows = Sequence[tuple[str, str]]
"""Persons with the clinic of each of their rows."""
COUNT = "SELECT COUNT(*) AS n FROM t"
TEXT = """
[budget]
epsilon = 1000
parts = "t.clinic"
[tables.t]
source = "t.csv"
person = "id"
rows_per_person = 2
[tables.t.columns]
id = { type = "text" }
clinic = { type = "text", values = ["north", "süd'; --", "3"] }
"""
SOUTH = "süd'; --"
SECOND = """
[tables.v]
source = "v.csv"
person = "id -> t.id"
rows_per_person = 3
[tables.v.columns]
id = { type = "text" }
"""
SEVERAL = TEXT.replace("rows_per_person = 2", "one_row_per_person = true") + SECOND


def write(folder: Path, rows: Rows, name: str = "t.csv") -> None:
    (folder / name).write_text("id,clinic\n" + "".join(f'{person},"{clinic}"\n' for person, clinic in rows), "utf-8")


def declared(folder: Path, text: str = TEXT) -> Path:
    path = folder / "ward.toml"
    path.write_text(text, "utf-8")
    return path


def held(one: discreet.Curator, part: str | None, table: str = "t") -> list[Any]:
    """The rows that the engine holds for a part, or for all: the owner's eyes, no release."""
    mine = one if part is None else one._about(part)
    mine._holdings.load()
    name = "t_" + table.encode().hex()
    engine: Any = mine._engine
    columns = "c0, c1" if table == "t" else "c0"
    return [tuple(row) for row in engine._sources.call("run", f"SELECT {columns} FROM {name} ORDER BY ALL")["rows"]]


def spent(ledger: Ledger) -> dict[str, Fraction]:
    """What was spent of each account in the pure part."""
    names = {"all": TOTAL, **ledger.parts}
    return {name: ledger.filter(account).spent.pure or Fraction(0) for name, account in names.items()}


def test_each_part_pays_for_itself_and_all_for_a_question_about_all(tmp_path: Path) -> None:
    write(tmp_path, [("ann", "north"), ("bob", "north"), ("cid", SOUTH), ("dan", ""), ("eve", "west")])
    with discreet.open(declared(tmp_path), owner=True) as one:
        north = one.ask(COUNT, epsilon=900, part="north")
        south = one.ask(COUNT, epsilon=800, part=SOUTH)
        whole = one.ask(COUNT, epsilon=90)
        assert [round(release.rows[0]["n"]) for release in (north, south, whole)] == [2, 1, 5]
        assert spent(one.ledger) == {"all": 90, "north": 990, SOUTH: 890, "3": 90}
        assert "of the part north alone: its own budget pays" in repr(north)
        assert "of all rows: the budgets of all 3 parts pay" in repr(whole)
        with pytest.raises(BudgetError, match="the budget of the part north does not allow"):
            one.ask(f"{COUNT} WHERE clinic = 'north'", epsilon=11)
        with pytest.raises(BudgetError, match="the budget of the part north does not allow"):
            one.ask(f"{COUNT} WHERE clinic = 'north'", epsilon=11, part="north")
        one.ask(f"{COUNT} WHERE clinic = 'north'", epsilon=110, part=SOUTH)
        assert spent(one.ledger) == {"all": 90, "north": 990, SOUTH: 1000, "3": 90}
        assert one.ask(COUNT, epsilon=900, part="north").rows == north.rows  # for nothing
        assert spent(one.ledger)["north"] == 990
        state = one.budget
        assert {name: part.used for name, part in state.parts.items()} == {"north": 99.0, SOUTH: 100.0, "3": 9.0}
        assert state.used == 100.0
        assert "part north: 99 % of ε 1000 used" in repr(state)
        one.ledger.verify()


def test_of_several_clinics_the_one_that_is_declared_first_counts(tmp_path: Path) -> None:
    write(tmp_path, [("ann", "3"), ("ann", "north"), ("bob", "west"), ("bob", SOUTH), ("cid", "")])
    with discreet.open(declared(tmp_path), owner=True) as one:
        assert (held(one, "north"), held(one, SOUTH), held(one, "3")) == ([("ann", "north")], [("bob", SOUTH)], [])
        assert len(held(one, None)) == 5
        write(tmp_path, [("ann", "3"), ("bob", "north"), ("bob", SOUTH), ("cid", "3")])
        one.refresh()
        assert (held(one, "north"), held(one, SOUTH), held(one, "3")) == ([], [("bob", SOUTH)], [("cid", "3")])


def test_a_person_is_in_one_part_whatever_comes_later(tmp_path: Path) -> None:
    write(tmp_path, [("ann", "north"), ("bob", SOUTH), ("cid", "west"), ("dan", "")])
    write(tmp_path, [(name, "") for name in ("ann", "ann", "bob", "cid", "eve")], "v.csv")
    path = declared(tmp_path, SEVERAL)
    with discreet.open(path, owner=True) as one:
        assert (held(one, "north"), held(one, SOUTH), held(one, "3")) == ([("ann", "north")], [("bob", SOUTH)], [])
        assert (held(one, "north", "v"), held(one, SOUTH, "v")) == ([("ann",), ("ann",)], [("bob",)])
        joined = "SELECT COUNT(*) AS n FROM v JOIN t ON v.id = t.id"
        assert round(one.ask(joined, epsilon=500, part="north").rows[0]["n"]) == 2
        write(tmp_path, [("ann", SOUTH), ("bob", "north"), ("cid", "3"), ("dan", SOUTH)])  # all have moved
        one.refresh()
        assert (held(one, "north"), held(one, SOUTH), held(one, "3")) == ([], [("dan", SOUTH)], [("cid", "3")])
        assert held(one, "north", "v") == [("ann",), ("ann",)]  # where she was first seen
        assert len(held(one, None)) == 4
        write(tmp_path, [("bob", SOUTH), ("dan", "")])
        one.refresh("t")
        assert (held(one, "north"), held(one, SOUTH), held(one, "3")) == ([], [("bob", SOUTH)], [])
        one.ledger.verify()
    with discreet.open(path, owner=True) as one:  # a restart holds the same
        assert (held(one, "north"), held(one, SOUTH), held(one, "3")) == ([], [("bob", SOUTH)], [])
        assert "ann" not in (tmp_path / "ward.ledger").read_bytes().decode("latin-1")


def test_of_rows_of_several_clinics_those_that_are_left_have_places_of_their_own(tmp_path: Path) -> None:
    """Else a limit would leave out persons whose rows of the part come late among all that they have."""
    write(tmp_path, [(f"p{number}", clinic) for number in range(60) for clinic in ("north", "3", "3")])
    limited = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed = 1) COUNT(*) AS n FROM t"
    with discreet.open(
        declared(tmp_path, TEXT.replace("rows_per_person = 2", "rows_per_person = 3")), owner=True
    ) as one:
        assert round(one.ask(limited, epsilon=500, part="north").rows[0]["n"]) == 60


def histories() -> Iterator[tuple[str, ...]]:
    """What clinics a person's rows name in each of three snapshots: nothing, one or two of them."""
    one: tuple[str, ...] = ("", "n", "s", "ns", "-", "-n")
    yield from itertools.product(one, repeat=3)


@pytest.mark.parametrize("apart", some([107, 19], pytest.mark.power))
def test_one_person_changes_the_rows_of_one_part_alone(tmp_path: Path, apart: int) -> None:
    """Exact: of histories, what is loaded for each part with and without the person differs in rows of that person, in
    one part, over all snapshots."""
    others: tuple[Rows, ...] = (
        [("a", "north"), ("b", SOUTH)],
        [("a", SOUTH), ("b", SOUTH), ("c", "north"), ("d", "")],
        [("a", "north"), ("c", SOUTH), ("d", "3")],
    )
    said = {"n": "north", "s": SOUTH, "-": "west"}

    def loaded(mine: tuple[str, ...]) -> list[dict[str, list[Any]]]:
        for file in tmp_path.glob("ward.ledger*"):
            file.unlink()
        found = []
        for place, (letters, rest) in enumerate(zip(mine, others, strict=True)):
            write(tmp_path, [*rest, *(("p", said[letter]) for letter in letters)])
            if place == 0:
                one = discreet.open(declared(tmp_path), owner=True)
            else:
                one.refresh()
            found.append({part: held(one, part) for part in ("north", SOUTH, "3")})
        one.close()
        return found

    without = loaded(("", "", ""))
    met: set[str] = set()
    for mine in itertools.islice(histories(), 1, None, apart):
        parts = set()
        for rows, rest in zip(loaded(mine), without, strict=True):
            for part, all_of in rows.items():
                assert [row for row in all_of if row[0] != "p"] == rest[part]
                if all_of != rest[part]:
                    parts.add(part)
                    assert {row for row in all_of if row[0] == "p"} == {("p", part)}
        assert len(parts) <= 1
        met |= parts
    assert met


def test_a_part_that_comes_later_begins_with_what_all_were_charged(tmp_path: Path) -> None:
    write(tmp_path, [("ann", "north"), ("bob", "west")])
    without = TEXT.replace('parts = "t.clinic"', "")
    with discreet.open(declared(tmp_path, without), owner=True) as one:
        one.ask(COUNT, epsilon=100)
        with pytest.raises(QuestionError, match="no such part"):
            one.ask(COUNT, epsilon=1, part="north")
    with discreet.open(declared(tmp_path), owner=True) as one:
        assert spent(one.ledger) == {"all": 100, "north": 100, SOUTH: 100, "3": 100}
        assert (held(one, "north"), held(one, SOUTH)) == ([("ann", "north")], [])
        one.ask(COUNT, epsilon=50, part="north")
        with pytest.raises(QuestionError, match="no such part"):
            one.ask(COUNT, epsilon=1, part="west")
    more = TEXT.replace('"3"', '"3", "west"')
    with discreet.open(declared(tmp_path, more), owner=True) as one:
        assert spent(one.ledger) == {"all": 100, "north": 150, SOUTH: 100, "3": 100, "west": 100}
        one.refresh()
        assert (held(one, "north"), held(one, "west")) == ([("ann", "north")], [("bob", "west")])
        one.ask(COUNT, epsilon=7)
    # who declares no parts, or another, is charged in all the same
    with discreet.open(declared(tmp_path, without), owner=True) as one:
        one.ask(f"{COUNT} WHERE clinic = '3'", epsilon=10)
        assert spent(one.ledger) == {"all": 117, "north": 167, SOUTH: 117, "3": 117, "west": 117}
        one.ledger.verify()


def test_the_owner_s_word_alone_raises_the_parts_budgets(tmp_path: Path) -> None:
    write(tmp_path, [("ann", "north")])
    with discreet.open(declared(tmp_path), owner=True) as one:
        one.ask(COUNT, epsilon=999, part="north")
    larger = declared(tmp_path, TEXT.replace("1000", "2000"))
    with pytest.raises(LedgerError, match="the budget is ε 1000 in the ledger"):
        discreet.open(larger, owner=True)
    with discreet.Curator.of(read(larger), raise_budget=True, owner=True) as one:
        one.ask(COUNT, epsilon=1001, part="north")
        assert {one.ledger.filter(name).epsilon for name in one.ledger.parts.values()} == {2000}
    without = declared(tmp_path, TEXT.replace("1000", "500").replace('parts = "t.clinic"', ""))
    with discreet.open(without, owner=True) as one:  # the smaller budget holds, whoever declares it
        assert {one.ledger.filter(name).epsilon for name in one.ledger.parts.values()} == {500}
        with pytest.raises(BudgetError, match="the budget of the part north"):
            one.ask(f"{COUNT} WHERE clinic = '3'", epsilon=1)
        one.ledger.verify()


def test_analysts_accounts_pay_in_every_part(tmp_path: Path) -> None:
    write(tmp_path, [("ann", "north"), ("bob", SOUTH)])
    with discreet.open(declared(tmp_path, TEXT + "[analysts.ana]\nepsilon = 500\n"), owner=True) as one:
        one.ask(COUNT, epsilon=300, part="north", analyst="ana")
        with pytest.raises(BudgetError, match="analyst ana's budget"):
            one.ask(COUNT, epsilon=300, part=SOUTH, analyst="ana")
        one.ask(COUNT, epsilon=200, part=SOUTH, analyst="ana")
        assert one.ask(COUNT, epsilon=300, part="north").charged.epsilon == 0
        assert spent(one.ledger) == {"all": 0, "north": 300, SOUTH: 200, "3": 0}
        assert one.budget.analysts["ana"].used == 100
        # a stranger with an account's name has none
        assert one.ledger.has_account("ana")
        assert not one.ledger.has_account(PART + "north")


def test_answers_of_parts_are_not_mixed(tmp_path: Path) -> None:
    write(tmp_path, [(f"n{number}", "north") for number in range(40)] + [(f"s{number}", SOUTH) for number in range(7)])
    by = "SELECT clinic, COUNT(*) AS n FROM t GROUP BY clinic"
    with discreet.open(declared(tmp_path), owner=True) as one:
        for part, most in (("north", 40), (SOUTH, 7), ("3", 0), (None, 47)):
            release = one.ask(by, epsilon=100, part=part)
            assert abs(sum(row["n"] for row in release.rows) - most) < 3
            assert one.ask(by, epsilon=100, part=part).charged.epsilon == 0
            assert abs(one.ask(COUNT, epsilon=50, part=part).rows[0]["n"] - most) < 3
            said = one.explain(by, part=part)
            assert "free" in repr(said)
        assert spent(one.ledger) == {"all": 150, "north": 300, SOUTH: 300, "3": 300}  # each was measured


def test_an_answer_is_kept_of_the_persons_who_were_in_the_part_when_it_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process assigns persons anew after the rows were looked at: what is measured of the old ones is not taken
    for an answer about the new ones."""
    write(tmp_path, [("ann", "north"), ("bob", "")])
    write(tmp_path, [(name, "") for name in ("ann", "bob", "bob")], "v.csv")
    question = "SELECT COUNT(*) AS n FROM v"
    with discreet.open(declared(tmp_path, SEVERAL), owner=True) as one, discreet.open(tmp_path / "ward.toml") as other:
        write(tmp_path, [("ann", "north"), ("bob", "north")])
        holdings = one._about("north")._holdings
        real = holdings.held

        def then_assigned(table: Any) -> Any:
            found = real(table)
            monkeypatch.setattr(holdings, "held", real)
            other.refresh("t")
            return found

        monkeypatch.setattr(holdings, "held", then_assigned)
        assert round(one.ask(question, epsilon=100, part="north").rows[0]["n"]) == 1
        assert round(one.ask(question, epsilon=100, part="north").rows[0]["n"]) == 3
        assert spent(one.ledger)["north"] == 200


PUBLISHED = TEXT.replace("epsilon = 1000", "epsilon = 1000\ndelta = 1e-6").replace(
    "[tables.t.columns]", '[tables.t.columns]\nkind = { type = "text", values = ["a", "b"] }'
)


def test_what_is_published_of_a_part_is_of_its_persons_and_its_budget_alone(tmp_path: Path) -> None:
    sizes = {"north": 60, SOUTH: 30, "": 8}
    lines = [
        f'{clinic}{number},"{clinic}",{"ab"[clinic == SOUTH]}'
        for clinic, size in sizes.items()
        for number in range(size)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["id,clinic,kind", *lines, ""]), "utf-8")
    with discreet.open(declared(tmp_path, PUBLISHED), owner=True) as one:
        made = {part: one.publish("t", epsilon=200, part=part, request=f"of {part}") for part in ("north", SOUTH)}
        for part, kind in (("north", "a"), (SOUTH, "b")):
            assert abs(len(made[part]) - sizes[part]) <= 3
            assert sum(row["kind"] == kind for row in made[part].rows) >= len(made[part]) - 3
            assert f"of the part {part} alone" in made[part].bounds
            assert any(f"of the part {part} alone: its own budget pays" in note for note in made[part].notes)
        used = {part: state.used for part, state in one.budget.parts.items()}
        assert used["north"] == used[SOUTH] > used["3"] == 0
        again = one.publish("t", epsilon=200, part="north")
        assert (again.rows, bool(again.charged)) == (made["north"].rows, False)
        for other in (SOUTH, None):
            with pytest.raises(QuestionError, match="asked under this request id before: of other rows"):
                one.publish("t", epsilon=200, part=other, request="of north")
        with pytest.raises(QuestionError, match="no such part"):
            one.publish("t", epsilon=200, part="west")
        assert {part: state.used for part, state in one.budget.parts.items()} == used
        whole = one.publish("t", epsilon=200)
        assert abs(len(whole) - 98) <= 3
        assert not any("of the part" in line for line in whole.bounds)
        assert one.budget.parts["3"].used > 0
        one.ledger.verify()


def test_public_totals_are_no_part_s(tmp_path: Path) -> None:
    write(tmp_path, [("ann", "north"), ("bob", SOUTH)])
    totals = '[tables.t]\ntotals = [{ by = ["clinic"], counts = { north = 1, "3" = 0, "süd\'; --" = 1 } }]'
    text = TEXT.replace("epsilon = 1000", "epsilon = 1000\ndelta = 1e-6").replace("[tables.t]", totals)
    with discreet.open(declared(tmp_path, text), owner=True) as one:
        head = one.ledger.head
        with pytest.raises(QuestionError, match="the public totals of t are of all rows"):
            one.publish("t", epsilon=40, part="north")
        assert one.ledger.head == head


@pytest.mark.storm
def test_two_processes_charge_two_parts_and_assign_once(tmp_path: Path) -> None:
    write(tmp_path, [("ann", "north"), ("bob", SOUTH)])
    path = declared(tmp_path)
    program = (
        "import sys, discreet\n"
        "one = discreet.open(sys.argv[1], owner=True)\n"
        f"for number in range(4): one.ask('{COUNT} WHERE id = ' + repr(str(number)), epsilon=10, part=sys.argv[2])\n"
        "one.close()\n"
    )
    started = [subprocess.Popen([sys.executable, "-c", program, str(path), part]) for part in ("north", SOUTH)]
    assert [one.wait() for one in started] == [0, 0]
    with discreet.open(path, owner=True) as one:
        assert spent(one.ledger) == {"all": 0, "north": 40, SOUTH: 40, "3": 0}
        assert [entry.kind for entry in one.ledger.entries()].count("assigned") == 1
        # one that holds rows of before goes on, of the same persons
        assert held(one, "north") == [("ann", "north")]
        with discreet.open(path, owner=True) as other:
            write(tmp_path, [("ann", SOUTH), ("bob", SOUTH), ("cid", "north")])
            other.refresh()
            assert (held(other, "north"), held(other, SOUTH)) == ([("cid", "north")], [("bob", SOUTH)])
        assert (held(one, "north"), held(one, SOUTH)) == ([("cid", "north")], [("bob", SOUTH)])
        one.ledger.verify()


@pytest.mark.storm
def test_a_kill_while_persons_are_assigned_leaves_all_of_it_or_nothing(tmp_path: Path) -> None:
    """Killed before the entry is durable, and after it before rows are prepared."""
    write(tmp_path, [("ann", "north"), ("bob", SOUTH)])
    path = declared(tmp_path)
    for number, place in enumerate(("_assigning", "_register", "_keep_part")):
        write(tmp_path, [("ann", "north"), ("bob", SOUTH), (f"new{number}", "north"), ("ann", SOUTH)])
        program = (
            "import os, signal, sys, discreet\nfrom discreet.holdings import Holdings\n"
            f"kept = Holdings.{place}\n"
            "def die(*given):\n    kept(*given)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
            "one = discreet.Curator.of(discreet.catalog.read(sys.argv[1]), owner=True, load=False)\n"
            f"Holdings.{place} = die\n"
            "one.refresh()\n"
        )
        done = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
        assert done.returncode == -signal.SIGKILL
        with discreet.open(path, owner=True) as one:
            one.refresh()
            rows = held(one, "north")
            assert ("ann", "north") in rows
            assert (f"new{number}", "north") in rows
            assert held(one, SOUTH) == [("bob", SOUTH)]
            one.ledger.verify()


def test_a_list_that_is_lost_or_changed_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, [("ann", "north")])
    path, ledger = declared(tmp_path), tmp_path / "ward.ledger"
    with discreet.open(path, owner=True) as one:
        one.ask(COUNT, epsilon=1, part="north")
    whole = ledger.read_bytes()
    for change in ("DELETE FROM entries WHERE kind = 'assigned'", "UPDATE entries SET answer = zeroblob(47)"):
        with closing(sqlite3.connect(ledger)) as file:
            file.execute("DROP TRIGGER no_update")
            file.execute("DROP TRIGGER no_delete")
            file.execute(change + (" WHERE kind = 'assigned'" if "UPDATE" in change else ""))
            for name, what in (("no_update", "UPDATE"), ("no_delete", "DELETE")):
                file.execute(
                    f"CREATE TRIGGER {name} BEFORE {what} ON entries BEGIN SELECT RAISE(ABORT, 'entries stay'); END"
                )
            file.commit()
        with pytest.raises(LedgerError):
            discreet.open(path, owner=True)
        ledger.write_bytes(whole)
    with discreet.open(path, owner=True) as one:
        one.ledger.verify()


def test_what_is_lost_is_charged_to_every_part(tmp_path: Path) -> None:
    write(tmp_path, [("ann", "north"), ("bob", SOUTH)])
    path, ledger = declared(tmp_path), tmp_path / "ward.ledger"
    with discreet.open(path, owner=True) as one:
        one.ask(COUNT, epsilon=5, part="north")
    before = ledger.read_bytes()
    with discreet.open(path, owner=True) as one:
        one.ask(COUNT, epsilon=100, part=SOUTH)
    ledger.write_bytes(before)
    with pytest.raises(LedgerError):
        discreet.open(path, owner=True)
    Ledger.spend_unknown(ledger, Pure(Fraction(100))).close()
    with discreet.open(path, owner=True) as one:
        assert spent(one.ledger) == {"all": 100, "north": 105, SOUTH: 100, "3": 100}
        one.ledger.verify()


def test_persons_stay_who_they_were(tmp_path: Path) -> None:
    write(tmp_path, [("ann", "north")])
    with discreet.open(declared(tmp_path), owner=True) as one:
        assert held(one, "north") == [("ann", "north")]
    other = TEXT.replace('id = { type = "text" }', 'id = { type = "integer" }')
    with pytest.raises(LedgerError, match="persons are assigned to parts in the ledger"):
        discreet.open(declared(tmp_path, other), owner=True)


def test_an_engine_of_a_part_that_was_killed_is_loaded_anew(tmp_path: Path) -> None:
    write(tmp_path, [("ann", "north"), ("bob", SOUTH)])
    with discreet.open(declared(tmp_path), owner=True) as one:
        held(one, "north")
        mine: Any = one._about("north")._engine
        os.kill(mine._process._process.pid if hasattr(mine._process, "_process") else mine._process.pid, 9)
        one.ask(COUNT, epsilon=5, part=SOUTH)
        one.ask(COUNT, epsilon=5, part="north")  # loaded anew
        one.ledger.verify()


BEGIN, END = "[budget]\nepsilon = 1\n", TEXT.split('parts = "t.clinic"\n')[1]
FAULTS: Mapping[str, tuple[str, str]] = {
    "not a column": ('parts = "t.ward"\n', "t.ward is no declared column of a table about people"),
    "no table": ('parts = "x.clinic"\n', "x.clinic is no declared column of a table about people"),
    "no dot": ('parts = "clinic"\n', "it must name a table and a column of it"),
    "no values": ('parts = "t.id"\n', "the parts must be declared, as texts or whole numbers"),
    "a number": ("parts = 3\n", "it must name a table and a column of it"),
    "renews": ('parts = "t.clinic"\nperiod = "1 month"\nrenews = "new persons"\n', "this budget renews"),
    "renews for all": ('parts = "t.clinic"\nperiod = "1 month"\nrenews = "everybody"\n', "this budget renews"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_cannot_be_parts_is_refused(tmp_path: Path, fault: str) -> None:
    write(tmp_path, [])
    said, words = FAULTS[fault]
    with pytest.raises(DeclarationError, match=words):
        read(declared(tmp_path, BEGIN + said + END))


def test_parts_need_persons_who_are_known_again(tmp_path: Path) -> None:
    nobody = TEXT.replace('person = "id"\nrows_per_person = 2', "one_row_per_person = true")
    with pytest.raises(DeclarationError, match="parts must know each person again"):
        read(declared(tmp_path, nobody))
    server = TEXT + '[engine]\nkind = "postgresql"\n'
    with pytest.raises(DeclarationError, match="with parts questions run in DuckDB here"):
        read(declared(tmp_path, server))
    several = TEXT + SECOND.replace("id -> t.id", "id")
    with pytest.raises(DeclarationError, match="parts needs one table that holds every person"):
        read(declared(tmp_path, several))
