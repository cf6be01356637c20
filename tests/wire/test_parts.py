"""Questions about a part of the persons, over PostgreSQL's protocol: what is set when a statement is executed holds."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator

import pytest

from part_tools import ALL, COUNT, NO_PART, SIZES, declared
from service_tools import Served, served
from wire_tools import Client, cells, fields, frame, psql

Said = list[tuple[bytes, bytes]]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("parts")
    with served(folder, declared(folder, len(SIZES))) as found:
        yield found


@contextlib.contextmanager
def client(service: Served, **said: str) -> Iterator[Client]:
    made = Client.of(service.psql)
    try:
        made.log_in(service, "ana", **{"discreet.epsilon": "5", **said})
        yield made
    finally:
        made.close()


def rows(said: Said) -> list[list[str]]:
    return [[(cell or b"").decode() for cell in cells(content)] for kind, content in said if kind == b"D"]


def told(said: Said, kind: bytes = b"N") -> list[str]:
    return [fields(content)["M"] for one, content in said if one == kind]


def part_of(said: Said) -> str:
    """The part that an answer is about, by its size, which the notices name."""
    assert not told(said, b"E"), told(said, b"E")
    ((count,),) = rows(said)
    part = min(["", *SIZES], key=lambda name: abs(SIZES.get(name, ALL) - int(count)))
    words = f"of the part {part} alone: its own budget pays" if part else "of all rows: the budgets of all 7 parts pay"
    assert words in told(said)
    return part


def refused(said: Said) -> str:
    (code,) = [fields(content)["C"] for kind, content in said if kind == b"E"]
    return code


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def prepare(name: str, text: str) -> bytes:
    return frame(b"P", f"{name}\0{text}\0".encode() + struct.pack("!h", 0))


def bind(portal: str, name: str, *values: bytes) -> bytes:
    given = b"".join(struct.pack("!i", len(one)) + one for one in values)
    return frame(b"B", f"{portal}\0{name}\0".encode() + struct.pack("!hh", 0, len(values)) + given + bytes(2))


def execute(portal: str) -> bytes:
    return frame(b"E", portal.encode() + b"\0" + bytes(4))


DESCRIBED, SYNC = {kind: frame(b"D", kind + b"x\0") for kind in (b"S", b"P")}, frame(b"S")


def extended(one: Client, *said: bytes) -> Said:
    one.say(b"".join(said) + SYNC)
    return one.until(b"Z")


def test_a_part_is_set_to_the_letter(service: Served) -> None:
    with client(service) as one:
        assert part_of(one.query(COUNT)) == ""
        for part in SIZES:
            one.query(f"SET discreet.part = {quoted(part)}")
            assert rows(one.query("SHOW discreet.part")) == [[part]]
            assert part_of(one.query(COUNT)) == part
            assert [f"· of the part {part} alone: its own budget pays"] in rows(one.query(f"EXPLAIN {COUNT}"))
        for said, part in (("NORTH", "NORTH"), ('"NORTH"', "NORTH"), ("north", "north"), ("-3", "-3"), ("''", "")):
            one.query(f"SET discreet.part TO {said}")
            assert part_of(one.query(COUNT)) == part
        budget = dict(rows(one.query("SHOW discreet.budget")))
        for part in SIZES:
            assert budget[f"part {part}"].startswith(f"{service.curator.budget.parts[part].used:.2g} % of ε 1000 used")
        one.query("SET discreet.part = 'north'")
        for wrong in ("north, south", "nor th", "'no' 'rth'", "E'no\\x72th'", "U&'north'", quoted("n" * 1_001)):
            assert refused(one.query(f"SET discreet.part = {wrong}")) == "22023"
        assert part_of(one.query(COUNT)) == "north"
        before = service.curator.ledger.head
        for wrong in ("west", "North", "north ", "\u00fc"):
            one.query(f"SET discreet.part = {quoted(wrong)}")
            for text in (
                COUNT,
                f"EXPLAIN {COUNT}",
                f"{COUNT} LIMIT 0",
                "SELECT * FROM t LIMIT 0",
                f"COPY ({COUNT}) TO STDOUT",
            ):
                said = one.query(text)
                assert (refused(said), told(said, b"E")) == ("22023", [NO_PART])
        assert service.curator.ledger.head == before


def test_what_brings_a_part_back(service: Served) -> None:
    with client(service, options="-c discreet.part=south -c discreet.epsilon=5") as one:
        assert part_of(one.query(COUNT)) == "south"
        for back in ("RESET discreet.part", "SET discreet.part TO DEFAULT", "RESET ALL", "DISCARD ALL"):
            one.query("SET discreet.part = north")
            assert part_of(one.query(COUNT)) == "north"
            one.query(back)
            assert part_of(one.query(COUNT)) == "south"  # as at the connection's beginning
        for end, after in (("ROLLBACK", "south"), ("COMMIT", "north")):
            one.query("BEGIN")
            one.query("SET discreet.part = north")
            assert part_of(one.query(COUNT)) == "north"
            one.query(end)
            assert part_of(one.query(COUNT)) == after
        one.query("BEGIN")
        one.query("SET LOCAL discreet.part = '-3'")
        assert part_of(one.query(COUNT)) == "-3"
        one.query("COMMIT")
        assert part_of(one.query(COUNT)) == "north"
        assert refused(one.query("SET LOCAL discreet.part = '-3'")) == "25P01"


def test_what_is_undone_sets_no_part(service: Served) -> None:
    with client(service) as one:
        one.query("SET discreet.part = north")
        for kept in ("DISCARD PLANS", "DISCARD TEMP", "DISCARD SEQUENCES"):
            assert not told(one.query(kept), b"E")
            assert part_of(one.query(COUNT)) == "north"
        one.query("BEGIN")
        one.query("SAVEPOINT first")
        one.query("SET discreet.part = south")
        one.query('SAVEPOINT "First"')
        one.query("SET discreet.part = '-3'")
        assert part_of(one.query(COUNT)) == "-3"
        one.query('ROLLBACK TO SAVEPOINT "First"')
        assert part_of(one.query(COUNT)) == "south"
        assert refused(one.query("ROLLBACK TO nowhere")) == "3B001"
        one.query("ROLLBACK TO first")
        assert part_of(one.query(COUNT)) == "north"
        assert refused(one.query('RELEASE "First"')) == "3B001"
        one.query("ROLLBACK")
        assert refused(one.query("SAVEPOINT first")) == "25P01"
        assert refused(one.query("SET discreet.part = south; SELECT nonsense FROM t")) != ""
        assert part_of(one.query(COUNT)) == "north"  # one message is done as a whole, or not at all
        assert refused(one.query("BEGIN; SET discreet.part = south; COMMIT; SELECT nonsense FROM t")) != ""
        assert part_of(one.query(COUNT)) == "south"
    with client(service, **{"discreet.part": " north"}) as one:
        assert part_of(one.query(COUNT)) == " north"


def test_what_set_config_does_not_set_it_does_not_seem_to_set(service: Served) -> None:
    with client(service) as one:
        assert rows(one.query("SELECT set_config('discreet.part', 'south', false)")) == [["south"]]
        for wrong in ("'north', true", "NULL, false", "'no' || 'rth', false", "'north', 't'", "'north', 1 = 1"):
            assert refused(one.query(f"SELECT set_config('discreet.part', {wrong})"))
            assert part_of(one.query(COUNT)) == "south"
        said = extended(
            one,
            prepare("x", "SELECT set_config('discreet.part', $1, false)") + DESCRIBED[b"S"],
            bind("", "x", b"north"),
            execute(""),
        )
        assert rows(said) == [["north"]]
        assert part_of(one.query(COUNT)) == "north"
        assert rows(one.query("SELECT current_setting('discreet.part')")) == [["north"]]


def test_a_prepared_question_is_about_the_part_that_is_set_when_it_is_executed(service: Served) -> None:
    with client(service) as one:
        one.query("SET discreet.part = north")
        said = extended(one, prepare("x", COUNT), DESCRIBED[b"S"], bind("x", "x"), DESCRIBED[b"P"], execute("x"))
        assert part_of(said) == "north"
        for part in ("south", "-3", ""):
            one.query(f"SET discreet.part = {quoted(part)}")
            assert part_of(extended(one, bind("x", "x"), DESCRIBED[b"P"], execute("x"))) == part
        one.query(f"PREPARE z AS {COUNT}")
        for part in ("north", "south", ""):
            one.query(f"SET discreet.part = {quoted(part)}")
            assert part_of(one.query("EXECUTE z")) == part
        one.query("BEGIN")  # bound and described about one, executed about another
        one.query("SET discreet.part = north")
        extended(one, bind("x", "x"), DESCRIBED[b"P"])
        one.query("SET discreet.part = south")
        assert part_of(extended(one, execute("x"))) == "south"
        one.query("COMMIT")


def test_a_cursor_goes_on_with_what_it_was_opened_about(service: Served) -> None:
    by = "SELECT clinic, COUNT(*) AS n FROM t GROUP BY clinic"
    with client(service) as one:
        one.query("SET discreet.part = north")
        opened = one.query(f"DECLARE c CURSOR WITH HOLD FOR {by}")
        assert "of the part north alone: its own budget pays" in told(opened)
        one.query("SET discreet.part = south")
        found = dict(rows(one.query("FETCH ALL FROM c")))
        assert abs(int(found["north"]) - SIZES["north"]) <= 5
        assert abs(int(found["south"])) <= 5
        copied = one.query(f"COPY ({by}) TO STDOUT (FORMAT csv)")
        assert "of the part south alone: its own budget pays" in told(copied)
        assert dict(line.decode().strip().split(",") for kind, line in copied if kind == b"d")["south"] in "45678910"


def test_a_question_without_a_price_is_answered_of_its_part_alone(service: Served) -> None:
    question = f"{COUNT} WHERE id <> 'unpriced'"
    with client(service) as one:
        one.query("SET discreet.part = south")
        answered = one.query(question)
        one.query("SET discreet.epsilon = ''")
        assert rows(one.query(question)) == rows(answered)  # it is stored
        one.query(f"PREPARE z AS {question}")
        for part in ("north", ""):
            one.query(f"SET discreet.part = {quoted(part)}")
            assert refused(one.query(question)) == "P0001"
            assert refused(one.query("EXECUTE z")) == "P0001"
            assert refused(extended(one, prepare("", question), frame(b"D", b"S\0"))) == "P0001"
        one.query("SET discreet.part = south")
        assert rows(one.query("EXECUTE z")) == rows(answered)


def test_psql_and_the_owner_s_freeze(service: Served) -> None:
    said = psql(service, "ana", "SET discreet.epsilon = 5", "SET discreet.part = 'o''\"<b>&'", COUNT)
    assert "NOTICE:  of the part o'\"<b>& alone: its own budget pays" in said.stderr
    with client(service) as one:
        one.query("SET discreet.part = north")
        one.query(COUNT)
        service.call("POST", "/freeze", "owner", {"analyst": "ana", "tables": ["t"], "reason": "audit"})
        before = service.curator.ledger.last.seq
        for part in ("north", "south", ""):
            one.query(f"SET discreet.part = {quoted(part)}")
            assert "the owner has frozen this analyst's questions about this table" in told(one.query(COUNT), b"E")
        assert service.curator.ledger.last.seq == before
        service.call("POST", "/lift", "owner", {"analyst": "ana", "tables": ["t"], "reason": "audit"})


def test_where_no_part_is_declared_none_can_be_asked_about(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("none")
    with served(folder, declared(folder, 0)) as service, client(service, **{"discreet.part": "north"}) as one:
        before = service.curator.ledger.head
        said = one.query(COUNT)
        assert (refused(said), told(said, b"E")) == ("22023", [NO_PART])
        assert service.curator.ledger.head == before
        one.query("SET discreet.part = ''")
        assert len(rows(one.query(COUNT))) == 1
        assert not [name for name, _ in rows(one.query("SHOW discreet.budget")) if name.startswith("part")]
