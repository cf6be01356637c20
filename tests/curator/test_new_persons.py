"""A budget that renews for new persons: each is in one period alone. Real tables, a real ledger, the real engine."""

from __future__ import annotations

import hmac
import itertools
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.accounting import Pure
from discreet.catalog import read
from discreet.errors import BudgetError, DeclarationError, EngineError, LedgerError
from discreet.ledger import Ledger
from discreet.trusted.ledger import chain
from discreet.trusted.renewal.first_seen import secret

Clock = Callable[[str], None]
Rows = Mapping[str, int]
"""The persons of a source, each with a number of rows."""
COUNT = "SELECT COUNT(*) AS n FROM t"
TEXT = """
[budget]
epsilon = 1000
period = "1 month"
renews = "new persons"
[tables.t]
source = "t.csv"
person = "id"
rows_per_person = 2
[tables.t.columns]
id = {{ type = "{kind}" }}
v = {{ type = "integer", min = 0, max = 9 }}
"""
SECOND = """
[tables.p]
source = "p.csv"
person = "id"
one_row_per_person = true
[tables.p.columns]
id = {{ type = "{kind}" }}
"""
LINKED = TEXT.replace('person = "id"', 'person = "id -> p.id"') + SECOND


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Sets the clock to noon of a day."""
    return lambda day: monkeypatch.setattr(chain, "now", lambda: f"{day}T12:00:00Z")


def write(folder: Path, rows: Rows, name: str = "t.csv") -> None:
    lines = "".join(f"{person},{n}\n" for person, number in rows.items() for n in range(number))
    (folder / name).write_text("id,v\n" + lines, "utf-8")


def ward(folder: Path, text: str = TEXT, kind: str = "text") -> Path:
    path = folder / "ward.toml"
    path.write_text(text.format(kind=kind), "utf-8")
    return path


def held(one: discreet.Curator, table: str = "t") -> list[Any]:
    """The persons of the rows that the engine holds, with how many each has: the owner's eyes, no release."""
    one._holdings.load()
    table_name = "t_" + table.encode().hex()
    engine: Any = one._engine
    rows = engine._sources.call("run", f"SELECT c0, count(*) FROM {table_name} GROUP BY c0 ORDER BY c0")["rows"]
    return [tuple(row) for row in rows]


def test_each_person_is_in_the_period_in_which_they_are_first_seen(tmp_path: Path, clock: Clock) -> None:
    clock("2026-10-30")
    write(tmp_path, {"ann": 2, "bob": 1})
    with discreet.open(ward(tmp_path), owner=True) as one:
        assert held(one) == [("ann", 2), ("bob", 1)]
        release = one.ask(COUNT, epsilon=900)
        assert "each person is in the budget of one month alone, in which they are first seen" in repr(release)
        write(tmp_path, {"ann": 2, "bob": 2, "cid": 1})
        one.refresh()
        assert held(one) == [("ann", 2), ("bob", 2), ("cid", 1)]  # seen in October too
        clock("2026-11-02")
        write(tmp_path, {"ann": 2, "dan": 2, "cid": 5, "": 3})
        one.refresh()
        assert held(one) == [("dan", 2)]
        assert one.budget.used == 0
        assert "ann" not in (tmp_path / "ward.ledger").read_bytes().decode("latin-1")
        clock("2026-12-02")
        one.refresh()
        assert held(one) == []
        one.ledger.verify()
    with discreet.open(ward(tmp_path), owner=True) as one:  # a restart holds the same
        assert held(one) == []


def histories() -> Iterator[tuple[tuple[Rows, ...], str]]:
    """All histories of three refreshes of a person p with 0 to 2 rows at each, beside others who come and go."""
    others: tuple[Rows, ...] = ({"a": 1, "b": 2}, {"a": 1, "b": 1, "c": 2}, {"a": 2, "c": 1, "d": 1})
    for numbers in itertools.product((0, 1, 2), repeat=3):
        yield tuple({**rest, "p": number} for rest, number in zip(others, numbers, strict=True)), "p"


def test_one_person_changes_the_rows_of_one_period_alone(tmp_path: Path, clock: Clock) -> None:
    """Exact: of every history, what is loaded with and without the person differs in that person's rows, in one
    period."""
    days = ("2026-10-30", "2026-11-02", "2026-12-02")
    path, ledger = ward(tmp_path), tmp_path / "ward.ledger"

    def loaded(history: tuple[Rows, ...]) -> list[list[Any]]:
        for file in (ledger, ledger.with_name("ward.ledger.head")):
            file.unlink(missing_ok=True)
        found = []
        clock(days[0])
        write(tmp_path, history[0])
        with discreet.open(path, owner=True) as one:
            for place, (day, rows) in enumerate(zip(days, history, strict=True)):
                clock(day)
                write(tmp_path, rows)
                if place:
                    one.refresh()
                found.append(held(one))
        return found

    without = loaded(tuple({name: n for name, n in rows.items() if name != "p"} for rows in next(histories())[0]))
    for history, person in itertools.islice(histories(), 1, None, 4):
        differs = []
        for place, (rows, rest) in enumerate(zip(loaded(history), without, strict=True)):
            mine = [row for row in rows if row[0] == person]
            assert [row for row in rows if row[0] != person] == rest
            if mine:
                differs.append(place)
                assert mine == [(person, history[place][person])]
        first = [place for place, rows in enumerate(history) if rows[person]]
        assert differs == first[:1]


def test_several_tables_know_one_list_of_persons(tmp_path: Path, clock: Clock) -> None:
    clock("2026-10-30")
    write(tmp_path, {"ann": 1, "zoe": 1})
    write(tmp_path, {"ann": 1, "bob": 1}, "p.csv")
    with discreet.open(ward(tmp_path, LINKED), owner=True) as one:
        assert (held(one), held(one, "p")) == ([("ann", 1), ("zoe", 1)], [("ann", 1), ("bob", 1)])
        clock("2026-11-02")
        write(tmp_path, {"bob": 1, "cid": 1, "zoe": 1})
        write(tmp_path, {"ann": 1, "bob": 1, "cid": 1, "zoe": 1}, "p.csv")
        one.refresh("p")  # all tables, with the new period
        assert (held(one), held(one, "p")) == ([("cid", 1)], [("cid", 1)])
        joined = "SELECT COUNT(*) AS n FROM t JOIN p ON t.id = p.id"
        assert abs(one.ask(joined, epsilon=500).rows[0]["n"] - 1) < 1
        # a refresh of one table lists its persons alone, and the other table stays what it was
        write(tmp_path, {"cid": 1, "bob": 1, "eve": 1})
        write(tmp_path, {"ann": 1, "bob": 1, "cid": 1, "zoe": 1}, "p.csv")
        one.refresh("t")
        assert (held(one), held(one, "p")) == ([("cid", 1), ("eve", 1)], [("cid", 1)])
        one.ledger.verify()


def test_a_restart_lists_nobody(tmp_path: Path, clock: Clock) -> None:
    clock("2026-10-30")
    write(tmp_path, {"ann": 1})
    with discreet.open(ward(tmp_path), owner=True) as one:
        one.ask(COUNT, epsilon=1)
    clock("2026-11-02")
    write(tmp_path, {"ann": 1, "bob": 1})
    with discreet.open(ward(tmp_path), owner=True) as one:  # nobody refreshed: October goes on, without Bob
        assert held(one) == [("ann", 1)]
        with pytest.raises(BudgetError):
            one.ask(f"{COUNT} WHERE v > 1", epsilon="999.5")
        one.refresh()
        assert held(one) == [("bob", 1)]


@pytest.mark.parametrize(
    ("kind", "written", "alike"),
    [
        ("text", ("1", " 1", "01", "A", "a", "é", "e\u0301", "x;y"), 8),
        ("integer", ("1", "01", "+1", "2", "-9223372036854775808", "x", ""), 2),
        ("date", ("2020-01-31", "2020-1-31", "2020-01-30", "x", ""), 2),
    ],
)
def test_ids_are_as_the_engine_makes_them(
    tmp_path: Path, clock: Clock, kind: str, written: tuple[str, ...], alike: int
) -> None:
    """What is one person for the engine is one in the list: none comes back under another spelling."""
    clock("2026-10-30")
    write(tmp_path, dict.fromkeys(written, 1))
    with discreet.open(ward(tmp_path, kind=kind), owner=True) as one:
        assert len(held(one)) == alike
        ((period, ids),) = one.ledger.seen()
        assert (period, len(ids)) == ("2026-10", 16 * alike)
        key = secret(one.ledger.salt(), f"t.id ({kind}, from csv, %Y-%m-%d, utf-8)")
        persons = [str(person).encode() for person, _ in held(one)]
        digests = [hmac.digest(key, person, "sha256") for person in persons]
        pairs = sorted(tuple(int.from_bytes(one[at : at + 8]) for at in (0, 8)) for one in digests)
        assert ids == b"".join(number.to_bytes(8, "little") for pair in pairs for number in pair)
        clock("2026-11-02")
        one.refresh()
        assert held(one) == []


def test_once_something_was_charged_it_neither_begins_nor_ends(tmp_path: Path, clock: Clock) -> None:
    clock("2026-10-30")
    write(tmp_path, {"ann": 1})
    everybody = TEXT.replace("new persons", "everybody")
    with discreet.open(ward(tmp_path, everybody), owner=True) as one:
        one.ask(COUNT, epsilon=1)
    for raising in (False, True):
        with pytest.raises(LedgerError, match="neither begins, changes nor ends"):
            discreet.Curator.of(discreet.catalog.read(ward(tmp_path)), raise_budget=raising)
    (tmp_path / "ward.ledger").unlink()
    (tmp_path / "ward.ledger.head").unlink()
    declared = discreet.catalog.read(ward(tmp_path))
    with discreet.Curator.of(declared, load=False, owner=True) as late:
        discreet.Curator.of(discreet.catalog.read(ward(tmp_path, everybody)), load=False).close()
        with pytest.raises(LedgerError, match="renews otherwise"):  # it was changed after this curator was opened
            late.ask(COUNT, epsilon=1)
    with discreet.open(ward(tmp_path), owner=True), pytest.raises(LedgerError, match="something was charged or listed"):
        discreet.open(ward(tmp_path, everybody))
    ward(tmp_path)
    with discreet.open(ward(tmp_path), owner=True) as one:
        one.ask(COUNT, epsilon=1)
        clock("2026-11-02")
        one.refresh()  # nothing is charged in November yet
    for other in (
        everybody,
        TEXT.replace("1 month", "1 week"),
        TEXT.replace('person = "id"', 'person = "v"').replace('integer", min = 0, max = 9', 'text"'),
    ):
        with pytest.raises(LedgerError, match=r"neither begins, changes nor ends|a person was"):
            discreet.Curator.of(discreet.catalog.read(ward(tmp_path, other)), raise_budget=True)
    with pytest.raises(LedgerError):
        discreet.open(ward(tmp_path, kind="integer"))
    with pytest.raises(LedgerError, match="stood in the lost entries"):
        Ledger.spend_unknown(tmp_path / "ward.ledger", Pure(1))


def test_the_lists_lie_in_the_ledger_and_are_missed_as_it_is(tmp_path: Path, clock: Clock) -> None:
    """An older copy of the ledger, which lacks a list, is refused; so is one whose list was changed."""
    clock("2026-10-30")
    write(tmp_path, {"ann": 1})
    path, ledger = ward(tmp_path), tmp_path / "ward.ledger"
    with discreet.open(path, owner=True) as one:
        one.ask(COUNT, epsilon=1)
    shutil.copy(ledger, tmp_path / "older")
    write(tmp_path, {"ann": 1, "bob": 1})
    with discreet.open(path, owner=True) as one:
        one.refresh()
        one.ask(COUNT, epsilon=1)
    shutil.copy(ledger, tmp_path / "newer")
    shutil.copy(tmp_path / "older", ledger)
    with pytest.raises(LedgerError, match="noted history is missing"):
        discreet.open(path)
    for change in (
        "UPDATE entries SET answer = zeroblob(31) WHERE kind = 'persons'",
        "DELETE FROM entries WHERE kind = 'persons'",
        "UPDATE entries SET kind = 'person' WHERE kind = 'persons'",
    ):
        shutil.copy(tmp_path / "newer", ledger)
        with closing(sqlite3.connect(ledger)) as file:
            dropped = [sql for (sql,) in file.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'")]
            file.execute("DROP TRIGGER no_update")
            file.execute("DROP TRIGGER no_delete")
            file.execute(change)
            for sql in dropped:
                file.execute(sql)
            file.commit()
        with pytest.raises(LedgerError), discreet.open(path, owner=True) as one:
            held(one)


def test_a_kill_between_any_two_entries_lists_all_or_none(tmp_path: Path, clock: Clock) -> None:
    clock("2026-10-30")
    write(tmp_path, {"ann": 1})
    path = ward(tmp_path)
    with discreet.open(path, owner=True) as one:
        one.ask(COUNT, epsilon=1)
    clock("2026-11-02")
    write(tmp_path, {"ann": 1, "bob": 1})
    for steps in (1, 2, 3):
        child = os.fork()
        if not child:
            append, made = chain.append, []

            def dying(*said: Any, append: Any = append, made: Any = made, steps: int = steps) -> Any:
                made.append(append(*said))
                if len(made) == steps:
                    os.kill(os.getpid(), signal.SIGKILL)
                return made[-1]

            chain.append = dying
            try:
                discreet.open(path, owner=True).refresh()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        with discreet.open(path, owner=True) as one:
            assert held(one) == [("ann", 1)]
            assert one.ledger.turn().before == "2026-10"
            one.ledger.verify()
    clock("2026-12-02")  # whom nobody was asked about is first seen later
    with discreet.open(path, owner=True) as one:
        one.refresh()
        assert held(one) == [("bob", 1)]


def test_two_refreshes_at_once_list_each_person_once(tmp_path: Path, clock: Clock) -> None:
    clock("2026-10-30")
    write(tmp_path, {"ann": 1})
    path = ward(tmp_path)
    with discreet.open(path, owner=True) as one, discreet.open(path, owner=True) as other:
        write(tmp_path, {"ann": 1, "bob": 1})
        registered = one._holdings._first_seen

        def late(*said: Any) -> Any:
            found = registered(*said)
            if one.ledger.snapshot("t").number == 1:  # type: ignore[union-attr]
                other.refresh()
            return found

        one._holdings._first_seen = late  # type: ignore[method-assign]
        one.refresh()
        assert len(b"".join(ids for _, ids in one.ledger.seen())) == 32
        assert held(one) == held(other) == [("ann", 1), ("bob", 1)]
        one.ledger.verify()


def test_an_engine_killed_on_the_way_lists_nobody(tmp_path: Path, clock: Clock) -> None:
    clock("2026-10-30")
    write(tmp_path, {"ann": 1})
    with discreet.open(ward(tmp_path), owner=True) as one:
        engine: Any = one._engine
        first_seen, write_ = engine.first_seen, write
        write_(tmp_path, {"ann": 1, "bob": 1})

        def killed(*said: Any) -> Any:
            engine._process.kill()
            return first_seen(*said)

        engine.first_seen = killed
        with pytest.raises(DeclarationError):
            one.refresh()
        engine.first_seen = first_seen
        assert engine.period != "2026-10" or not engine.has("t")
        write_(tmp_path, {"ann": 1})
        assert held(one) == [("ann", 1)]
        assert len(b"".join(ids for _, ids in one.ledger.seen())) == 16


def test_nothing_is_measured_until_the_list_is_written(tmp_path: Path, clock: Clock) -> None:
    """A run that names no rows finds the engine with rows of all persons while they are loaded."""
    clock("2026-10-30")
    write(tmp_path, {"ann": 1})
    with discreet.open(ward(tmp_path), owner=True) as one:
        run = one.above_threshold(1, epsilon=1, limit=9, sensitivity=2)
        engine: Any = one._engine
        first_seen, met = engine.first_seen, []

        def meanwhile(*said: Any) -> Any:
            for at in range(2):
                met.append(engine.period)
                with pytest.raises((EngineError, LedgerError)):
                    run._watching._grant.guarded(lambda: "measured", one.declaration.table("t"))
                with pytest.raises(LedgerError, match="a new period has begun"):
                    one.ledger.reserve(Pure(1), question="q", key="q", period=engine.period)
                if not at:
                    found = first_seen(*said)
            return found

        engine.first_seen = meanwhile
        one.refresh()
        assert met == [None, None]
        assert engine.period == "2026-10"


def test_a_load_beside_a_refresh_begins_again(tmp_path: Path, clock: Clock) -> None:
    """Who is listed while another process loads is in its rows too; it does not say that the source has changed."""
    clock("2026-10-30")
    write(tmp_path, {"ann": 1})
    path = ward(tmp_path)
    with discreet.open(path, owner=True) as one, discreet.open(path, owner=True) as other:
        assert held(one) == held(other)
        write(tmp_path, {"ann": 1, "bob": 1})
        one.refresh()
        engine: Any = other._engine
        original = engine.first_seen

        def meanwhile(*said: Any) -> Any:
            engine.first_seen = original
            write(tmp_path, {"ann": 1, "bob": 1, "cid": 1})
            one.refresh()
            return original(*said)

        engine.first_seen = meanwhile
        assert held(other) == [("ann", 1), ("bob", 1), ("cid", 1)]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (TEXT + SECOND, ["tables.p.person"]),
        (TEXT.replace('person = "id"\nrows_per_person = 2', "one_row_per_person = true"), ["tables.t.person"]),
        (TEXT + '[engine]\nstore = "file"\n', ["engine.store"]),
        (TEXT + '[engine]\nkind = "spark"\nremote = "sc://localhost:1"\n', ["engine.kind"]),
        (
            TEXT.replace('person = "id"', 'person = "v -> p.id"')
            + SECOND.replace('"id"', '"who"', 1)
            + 'who = {{ type = "text" }}\n',
            ["tables.t.person"],
        ),
    ],
)
def test_what_does_not_know_persons_again_is_refused(tmp_path: Path, text: str, where: list[str]) -> None:
    with pytest.raises(DeclarationError) as refused:
        discreet.catalog.read(
            ward(
                tmp_path,
                text.replace('v = {{ type = "integer", min = 0, max = 9 }}', 'v = {{ type = "text" }}')
                if "-> p" in text
                else text,
            )
        )
    assert [fault.where for fault in refused.value.faults] == where


@pytest.mark.parametrize("csv", ['encoding = "latin-1"', 'dates = "%d.%m.%Y"'])
def test_how_ids_are_read_stays_as_it_is_once_somebody_is_listed(csv: str, tmp_path: Path, clock: Clock) -> None:
    """Read in another way the same ids would be others, and their persons would seem new."""
    clock("2026-10-30")
    write(tmp_path, {"ann": 1, "bob": 1})
    other = TEXT.replace('person = "id"', f'person = "id"\ncsv = {{{{ {csv} }}}}')
    with discreet.open(ward(tmp_path), owner=True) as one:
        one.refresh()
    for raising in (False, True):
        with pytest.raises(LedgerError, match="neither begins, changes nor ends"):
            discreet.Curator.of(read(ward(tmp_path, other)), owner=True, raise_budget=raising)
