"""What an analyst may say to stop the others, or to fill the memory; and what looks free, and is."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.engines.process import EngineProcess
from discreet.sql import limits
from discreet.wire import catalog, line
from discreet.wire.refusals import Trouble
from discreet.wire.settings import Settings
from discreet.wire.statements import MOST_WORDS, beside, statements
from face_tools import Data, spent
from service_tools import Served, served
from waiting import until
from wire_tools import AT_ONCE, Client, fields, frame

COUNT = "SELECT COUNT(*) AS n FROM visits WHERE age > 17"
NOTHING = bytes(6)


@contextlib.contextmanager
def client(service: Served, token: str | None = None) -> Iterator[Client]:
    made = Client.of(service.psql)
    try:
        made.last(made.first("ana", **{"discreet.epsilon": "0.01"}), token or service.tokens["ana"])
        assert made.until(b"Z")[-1][0] == b"Z"
        yield made
    finally:
        made.close()


def prepared(name: str, text: str) -> bytes:
    return frame(b"P", f"{name}\0{text}\0".encode() + bytes(2))


@pytest.mark.parametrize("number", ["32768", "65536", "0000019999999999999", "1" * 5_000, "0"])
def test_a_parameter_has_a_number_that_the_protocol_counts_to(number: str) -> None:
    with pytest.raises(Trouble):
        statements(f"SELECT ${number}")
    assert statements("SELECT $32767")[0].parameters == 32_767


def test_a_long_list_of_parameters_is_read_once() -> None:
    (one,) = statements(f"SELECT COUNT(*) FROM t WHERE age IN ({','.join(['$1'] * (MOST_WORDS // 2 - 6))})")
    assert beside(one) == {1: ("column", "age")}


def test_a_text_with_its_parameters_is_bounded() -> None:
    (one,) = statements(f"SELECT {','.join(['$1'] * (MOST_WORDS // 2))}")
    assert len(one.filled(["'a'"])) < 1 << 20
    with pytest.raises(Trouble):
        one.filled(["'" + "a" * 60_000 + "'"])


def test_a_text_of_very_many_words_is_read_no_further() -> None:
    """Others' messages wait while it is read. A question of so many words is refused too."""
    assert MOST_WORDS == limits.MOST_WORDS
    assert len(statements("a " * MOST_WORDS)[0].words) == MOST_WORDS
    for text in ("a " * (MOST_WORDS + 1), "a," * 32_000 + "'", "SELECT 1;" * 7_000):
        with pytest.raises(Trouble) as refused:
            statements(text)
        assert refused.value.code in ("54000", "54001")


def test_what_within_says_is_read_once() -> None:
    blank = " " * 200
    for text in (f"{blank}={blank}x{blank}x", f"{blank}x{blank}", " = 1", "n = ", f'"n"{blank}'):
        with pytest.raises(Trouble):
            Settings().set("discreet.within", text)
    one = Settings()
    one.set("discreet.within", ' n = 100 , "mean income" = 5 %')
    assert one.price()["within"] == {"n": "100", "mean income": "5 %"}


@pytest.mark.parametrize(
    "text",
    [
        f"COPY ({COUNT}) TO STDOUT (FORMAT csv, DELIMITER ';')",
        f"COPY ({COUNT}) TO STDOUT DELIMITER ';'",
        f"COPY ({COUNT}) TO STDOUT (FORMAT parquet)",
    ],
)
def test_what_cannot_be_copied_is_not_charged(service: Served, text: str) -> None:
    before = spent(service.curator)
    with client(service) as one:
        assert [kind for kind, _ in one.query(text)] == [b"E", b"Z"]
    assert spent(service.curator) == before


PROBES = {
    f"{COUNT} LIMIT 0": "n",
    f"{COUNT} LIMIT 0 OFFSET 3 -- no rows": "n",
    f"SELECT * FROM ({COUNT}) AS t LIMIT 0": "n",
    f"SELECT * FROM ({COUNT}) AS t WHERE 1=0": "n",
    "SELECT * FROM visits LIMIT 0": "person city smoker age cost note",
    'SELECT "v".* FROM "public"."visits" AS "v" FETCH FIRST 0 ROWS ONLY': "person city smoker age cost note",
    "SELECT age, city AS c FROM visits WHERE (0 = 1)": "age c",
    "SELECT age FROM visits WHERE false": "age",
    'SELECT TRUE AS "_" FROM "public"."visits" WHERE 1 <> 1 LIMIT 0': "_",
    "SELECT 1 AS one, LOWER(city) FROM visits WHERE age > 3 AND 'a' = 'b'": "one lower",
    "SELECT city, COUNT(*) AS n FROM visits WHERE 1=0 GROUP BY city": "city n",
    "SELECT * FROM (SELECT age, cost FROM visits) AS virtual_table LIMIT 0": "age cost",
    "WITH v AS (SELECT age FROM visits) SELECT * FROM v LIMIT 0": "age",
}


def names(content: bytes) -> list[str]:
    """The names of the columns that a description says."""
    (count,) = struct.unpack("!h", content[:2])
    found, at = [], 2
    for _ in range(count):
        end = content.index(b"\0", at)
        found.append(content[at:end].decode())
        at = end + 19
    return found


@pytest.mark.parametrize("price", ["", "0.01"])
def test_what_gives_no_row_is_neither_asked_nor_charged(service: Served, price: str) -> None:
    before = spent(service.curator), list(service.curator.ledger.entries())
    with client(service) as one:
        one.query(f"SET discreet.epsilon = '{price}'")
        for text, columns in PROBES.items():
            said = one.query(text)
            assert [kind for kind, _ in said] == [b"T", b"C", b"Z"], (text, said)
            assert names(said[0][1]) == columns.split(), text
            one.say(prepared("", text) + frame(b"D", b"S\0") + frame(b"B", bytes(8)) + frame(b"D", b"P\0"))
            one.say(frame(b"E", bytes(5)) + frame(b"S"))
            said = one.until(b"Z")
            assert [kind for kind, _ in said] == [b"1", b"t", b"T", b"2", b"T", b"C", b"Z"], (text, said)
            assert names(said[2][1]) == names(said[4][1]) == columns.split()
        text = "SELECT * FROM visits LIMIT 0"
        assert [kind for kind, _ in one.query(f"COPY ({text}) TO STDOUT (FORMAT csv, HEADER)")] == [
            b"H",
            b"d",
            b"c",
            b"C",
            b"Z",
        ]
        said = one.query(f"BEGIN; DECLARE c CURSOR FOR {text}; FETCH 10 FROM c; COMMIT")
        assert [kind for kind, _ in said] == [b"C", b"C", b"T", b"C", b"C", b"Z"]
    assert (spent(service.curator), list(service.curator.ledger.entries())) == before


def test_no_row_may_be_what_a_parameter_says(service: Served) -> None:
    before = spent(service.curator)
    with client(service) as one:
        one.query("SET discreet.epsilon = ''")
        for text, columns in ((f"{COUNT} LIMIT $1", ["n"]), ("SELECT age FROM visits WHERE 1 = $1", ["age"])):
            for number, kinds in ((b"0", [b"1", b"2", b"T", b"C", b"Z"]), (b"1", [b"1", b"2", b"E", b"Z"])):
                one.say(frame(b"P", f"\0{text}\0".encode() + struct.pack("!hI", 1, 20)))
                one.say(frame(b"B", b"\0\0" + struct.pack("!hhi", 0, 1, 1) + number + bytes(2)))
                one.say(frame(b"D", b"P\0") + frame(b"E", bytes(5)) + frame(b"S"))
                said = one.until(b"Z")
                assert [kind for kind, _ in said] == kinds, said
                assert number == b"1" or names(said[2][1]) == columns
    assert spent(service.curator) == before


@pytest.mark.parametrize(
    ("text", "code"),
    {
        "SELECT nothing FROM visits LIMIT 0": "42703",
        "SELECT * FROM nowhere LIMIT 0": "42P01",
        "SELECT unheard_of(age) FROM visits LIMIT 0": "0A000",
        "SELECT COUNT(*) FROM visits WHERE 1=0": "P0001",
        "SELECT age FROM visits WHERE smoker = FALSE": "42803",
        "SELECT city, COUNT(*) FROM visits WHERE false GROUP BY ROLLUP (city)": "",
        "SELECT * FROM visits LIMIT 1": "0A000",
    }.items(),
)
def test_what_may_give_a_row_is_a_question(service: Served, text: str, code: str) -> None:
    with client(service) as one:
        one.query("SET discreet.epsilon = ''")
        said = [(kind, fields(content)) for kind, content in one.query(text) if kind != b"Z"]
        assert [kind for kind, _ in said] == [b"E"]
        assert said[0][1]["C"] == (code or said[0][1]["C"])


def test_what_could_not_be_looked_at_in_time_is_not_charged(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    before = spent(service.curator), list(service.curator.ledger.entries())
    call = EngineProcess.call

    def hanging(process: EngineProcess, *request: Any, seconds: float) -> Any:
        if request[0] == "probe":
            os.kill(process.pid, signal.SIGSTOP)  # it hangs, however quick the machine is
        return call(process, *request, seconds=seconds)

    monkeypatch.setattr(EngineProcess, "call", hanging)
    monkeypatch.setattr("discreet.wire.catalog.SECONDS", 0.1)
    with client(service) as one:
        one.query("SET discreet.epsilon = '0.01'")
        said = one.query(f"{COUNT} LIMIT 0")
        assert [kind for kind, _ in said] == [b"E", b"Z"]
        assert fields(said[0][1])["C"] == "57014"
    assert (spent(service.curator), list(service.curator.ledger.entries())) == before


def test_blanks_in_the_name_of_a_setting_are_read_once(service: Served) -> None:
    with client(service) as one:
        assert fields(one.query(f"SHOW a{' ' * 60_000}b c")[0][1])["C"] == "42704"


def test_prepared_texts_are_kept_without_their_words(service: Served) -> None:
    with client(service) as one:
        text = "SELECT " + "word " * (MOST_WORDS - 1)
        one.say(prepared("first", text) + frame(b"H"))
        assert one.hear()[0] == b"1"
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        for place in range(2):
            one.say(prepared(f"s{place}", text) + frame(b"B", f"p{place}\0s{place}\0".encode() + bytes(6)))
            one.say(frame(b"H"))
            assert [one.hear()[0], one.hear()[0]] == [b"1", b"2"]
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert kept - before < 1_000_000


def test_who_takes_nothing_does_not_hold_up_the_end(
    data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "TAKEN_SECONDS", 3_600)
    monkeypatch.setattr(line, "ENDING_SECONDS", 0.2)
    monkeypatch.setattr(catalog, "SECONDS", 60.0)  # the answer is long, and others may use the machine
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    much = "SELECT a.*, c.relname FROM pg_attribute a, pg_class c LIMIT 40000"
    with contextlib.ExitStack() as later, served(tmp_path, AT_ONCE) as found:
        one = later.enter_context(client(found))  # is there until the service has ended
        one.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        one.say(frame(b"Q", f"{much}\0".encode()))
        assert one.hear()[0] == b"T"  # and nobody takes the rest


def test_formats_that_are_too_few_are_an_error(service: Served) -> None:
    with client(service) as one:
        one.say(prepared("", "SELECT city, smoker, COUNT(*) AS n FROM visits GROUP BY city, smoker"))
        one.say(frame(b"B", NOTHING + struct.pack("!hhh", 2, 0, 0)) + frame(b"E", bytes(5)) + frame(b"S"))
        said = one.until(b"Z")
        assert [kind for kind, _ in said if kind != b"N"] == [b"1", b"2", b"E", b"Z"]
        assert fields(said[-2][1])["C"] == "08P01"


def test_a_portal_is_described_before_another_is_executed(service: Served) -> None:
    with client(service) as one:
        one.say(prepared("", "SHOW discreet.epsilon"))
        one.say(frame(b"B", b"a\0" + bytes(7)) + frame(b"B", b"b\0" + bytes(7)))
        one.say(frame(b"D", b"Pa\0") + frame(b"E", b"b\0" + bytes(4)) + frame(b"S"))
        assert [kind for kind, _ in one.until(b"Z")] == [b"1", b"2", b"2", b"T", b"D", b"C", b"Z"]


def test_answers_that_nobody_asked_to_flush_do_not_gather(service: Served) -> None:
    with client(service) as one:
        one.say(prepared("s", "SHOW discreet.epsilon") + frame(b"D", b"Ss\0") * 4_000)
        heard = [one.hear()[0] for _ in range(1_000)]  # without Sync
        assert heard[:3] == [b"1", b"t", b"T"]


def test_a_token_that_ends_while_its_question_waits_gets_no_answer(data: Data, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(tmp_path, AT_ONCE.replace('"off"', "5")) as found:
        token, made = found.accounts.new_token("ana", None, found.curator.ledger.enter)
        with client(found) as one, client(found, token) as other:
            one.say(frame(b"Q", f"{COUNT}\0".encode()))
            until(lambda: spent(found.curator))  # it has the turn, for seconds
            other.say(frame(b"Q", b"SELECT COUNT(*) AS n FROM visits\0"))
            time.sleep(0.3)
            found.accounts.revoke("ana", made.number, found.curator.ledger.enter)
            assert any(kind == b"D" for kind, _ in one.until(b"Z"))
            once = spent(found.curator)
            (error,) = [fields(content) for kind, content in other.until(b"Z") if kind == b"E"]
            assert error["C"] == "42501"
            assert spent(found.curator) == once
