"""What an analyst may say to stop the others, or to fill the memory; and what looks free, and is."""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.wire.refusals import Trouble
from discreet.wire.settings import Settings
from discreet.wire.statements import beside, statements
from face_tools import Data, spent
from service_tools import Served, served
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
    (one,) = statements(f"SELECT COUNT(*) FROM t WHERE age IN ({','.join(['$1'] * 20_000)})")
    assert beside(one) == {1: ("column", "age")}


def test_a_text_with_its_parameters_is_bounded() -> None:
    (one,) = statements(f"SELECT {','.join(['$1'] * 10_000)}")
    assert len(one.filled(["'a'"])) < 1 << 20
    with pytest.raises(Trouble):
        one.filled(["'" + "a" * 60_000 + "'"])


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
        f"{COUNT} LIMIT 0",
        f"SELECT * FROM ({COUNT}) AS t LIMIT 0",
    ],
)
def test_what_gives_no_answer_is_not_charged(service: Served, text: str) -> None:
    before = spent(service.curator)
    with client(service) as one:
        kinds = [kind for kind, _ in one.query(text)]
    assert kinds == ([b"E", b"Z"] if text.startswith("COPY") else [b"T", b"C", b"Z"])
    assert spent(service.curator) == before


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
    with served(tmp_path, AT_ONCE.replace('"off"', "2")) as found:
        token, made = found.accounts.new_token("ana", None, found.curator.ledger.enter)
        with client(found) as one, client(found, token) as other:
            one.say(frame(b"Q", f"{COUNT}\0".encode()))
            time.sleep(0.5)
            other.say(frame(b"Q", b"SELECT COUNT(*) AS n FROM visits\0"))
            time.sleep(0.5)
            found.accounts.revoke("ana", made.number, found.curator.ledger.enter)
            assert any(kind == b"D" for kind, _ in one.until(b"Z"))
            once = spent(found.curator)
            (error,) = [fields(content) for kind, content in other.until(b"Z") if kind == b"E"]
            assert error["C"] == "42501"
            assert spent(found.curator) == once
