"""The protocol byte by byte: who is let in, what is told to strangers, and what a message that is none gets."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.errors import QuestionError
from discreet.service import connections
from discreet.service.accounts import Account
from discreet.service.roles import Role
from discreet.wire import server as listening
from discreet.wire.line import LARGEST
from face_tools import Data, spent
from service_tools import LOOPBACK, Served, certificate, served
from waiting import until
from wire_tools import AT_ONCE, Client, cells, fields, frame, kinds, psql

COUNT = "SELECT COUNT(*) AS n FROM visits"


@contextlib.contextmanager
def client(service: Served, who: str | None = "ana", **options: str) -> Iterator[Client]:
    made = Client.of(service.psql)
    try:
        if who is not None:
            assert made.log_in(service, who, **options)[-1] == (b"Z", b"I")
        yield made
    finally:
        made.close()


# who is let in


def test_a_name_that_nobody_has_is_told_what_a_wrong_password_is(service: Served) -> None:
    said = []
    for user, password in (("ana", "wrong"), ("nobody", "wrong"), ("ana", service.tokens["bob"])):
        with client(service, None) as one:
            answer = one.first(user)
            assert len(answer.split(",")[1]) == len("s=") + 24
            kind, content = one.last(answer, password)
            assert kind == b"E"
            said.append(fields(content))
            assert one.hear() == (b"", b"")
    assert said[0] == said[1] == said[2]
    assert said[0]["C"] == "28P01"


def test_the_salt_of_a_name_stays_the_same(service: Served) -> None:
    def salt(user: str) -> str:
        with client(service, None) as one:
            return one.first(user).split(",")[1]

    assert salt("nobody") == salt("nobody") != salt("somebody") != salt("ana") == salt("ana")
    service.accounts.add(Account("gone", Role.ANALYST, "ana"), service.curator.ledger.enter)
    service.accounts.new_token("gone", None, service.curator.ledger.enter)
    held = salt("gone")
    service.accounts.end("gone", service.curator.ledger.enter)
    assert salt("gone") == held


@pytest.mark.parametrize("who", ["eve", "max"])
def test_who_may_not_ask_is_not_let_in(service: Served, who: str) -> None:
    with client(service, None) as one:
        one.last(one.first(who), service.tokens[who])
        assert fields(one.until(b"E")[-1][1])["C"] == "28000"


def test_the_owner_asks_too(service: Served) -> None:
    with client(service, "owner", options="-c discreet.epsilon=0.01") as one:
        assert any(kind == b"D" for kind, _ in one.query(COUNT))


def test_a_revoked_token_gets_no_more_answers(service: Served) -> None:
    token, made = service.accounts.new_token("ana", None, service.curator.ledger.enter)
    with client(service, None) as one:
        one.last(one.first("ana", **{"discreet.epsilon": "0.01"}), token)
        one.until(b"Z")
        assert any(kind == b"D" for kind, _ in one.query(COUNT))
        service.accounts.revoke("ana", made.number, service.curator.ledger.enter)
        (error,) = [fields(content) for kind, content in one.query(COUNT) if kind == b"E"]
        assert error["C"] == "42501"


def test_a_login_is_bound_to_its_certificate(data: Data, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    files = [Path(one) for one in certificate(tmp_path)]
    address = replace(LOOPBACK, certificate=files[0], key=files[1])
    with served(tmp_path, AT_ONCE, address) as found:
        place = f"host=127.0.0.1 port={found.psql} user=ana password={found.tokens['ana']} dbname=clinic"
        for more in ("sslmode=require channel_binding=require", f"sslmode=verify-full sslrootcert={files[0]}"):
            with psycopg.connect(f"{place} {more}") as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)
        for more in ("sslmode=disable", "sslmode=require ssl_max_protocol_version=TLSv1.1"):
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(f"{place} {more}")
        with client(found, None) as one:  # what comes with the request for TLS came from anybody
            one.say(struct.pack("!ii", 8, 80877103) + b"\x16\x03\x01")
            assert not one.connection.recv(1).startswith(b"S")


def test_beyond_this_machine_it_needs_a_certificate() -> None:
    with pytest.raises(QuestionError, match="TLS"):
        replace(LOOPBACK, host="0.0.0.0").check()


def test_without_a_certificate_tls_is_declined(service: Served) -> None:
    with client(service, None) as one:
        for code in (80877103, 80877104):
            one.say(struct.pack("!ii", 8, code))
            assert one.connection.recv(1) == b"N"
        assert one.log_in(service, "ana")[-1] == (b"Z", b"I")
    said = psql(service, "ana", "SELECT 1", PGSSLMODE="require")
    assert "server does not support SSL" in said.stderr


def test_a_newer_version_hears_which_one_is_spoken(service: Served) -> None:
    with client(service, None) as one:
        content = struct.pack("!i", (3 << 16) + 2) + b"user\0ana\0_pq_.new\0on\0\0"
        one.say(struct.pack("!i", len(content) + 4) + content)
        assert one.hear() == (b"v", struct.pack("!ii", 3 << 16, 1) + b"_pq_.new\0")


# what is said


def test_an_answer_whose_client_went_away_is_free_when_asked_again(service: Served) -> None:
    text = f"{COUNT} WHERE age > 11"
    before = spent(service.curator)
    with client(service, options="-c discreet.epsilon=0.01") as one:
        one.say(frame(b"Q", f"{text}\0".encode()))
        one.connection.shutdown(socket.SHUT_WR)
    until(lambda: spent(service.curator) != before)
    once = spent(service.curator)
    assert once > before
    found = []
    for _ in range(2):
        with client(service, options="-c discreet.epsilon=0.01") as one:
            found.append([cells(content) for kind, content in one.query(text) if kind == b"D"])
    assert found[0] == found[1]
    assert spent(service.curator) == once


def test_preparing_and_describing_charge_nothing(service: Served) -> None:
    before = spent(service.curator)
    with client(service, options="-c discreet.epsilon=0.01") as one:
        text = f"{COUNT} WHERE city = $1 AND age < $2"
        one.say(frame(b"P", f"s\0{text}\0".encode() + struct.pack("!h", 0)))
        one.say(frame(b"D", b"Ss\0"))
        bound = struct.pack("!h", 0) + struct.pack("!hi", 2, 5) + b"north" + struct.pack("!i", 1) + b"3"
        one.say(frame(b"B", b"\0s\0" + bound + struct.pack("!h", 0)) + frame(b"D", b"P\0") + frame(b"S"))
        said = one.until(b"Z")
        assert [kind for kind, _ in said] == [b"1", b"t", b"T", b"2", b"T", b"Z"]
        assert said[1][1] == struct.pack("!hII", 2, 25, 20)
        assert said[2][1] == said[4][1]
    assert spent(service.curator) == before


@pytest.mark.parametrize(
    ("text", "types"),
    [
        (
            "SELECT city, COUNT(*) AS n FROM visits WHERE age > 2 GROUP BY city HAVING COUNT(*) > 1000000",
            [25, 20, 20, 20],
        ),
        (
            "SELECT AVG(age) AS a, COUNT(*) AS n FROM visits WHERE age > 2 HAVING COUNT(*) > 1000000",
            [701] * 3 + [20] * 3,
        ),
        (
            "SELECT MAX(n) FROM (SELECT city, COUNT(*) AS n FROM visits WHERE age > 2 GROUP BY city) WHERE n > 10000",
            None,
        ),
    ],
)
def test_an_answer_without_values_has_the_types_of_its_plan(
    service: Served, text: str, types: list[int] | None
) -> None:
    """Asked at once as described before."""
    with client(service, options="-c discreet.epsilon=0.01 -c discreet.intervals=on") as one:
        one.say(frame(b"P", f"s\0{text}\0".encode() + struct.pack("!h", 0)) + frame(b"D", b"Ss\0") + frame(b"S"))
        (told,) = [content for kind, content in one.until(b"Z") if kind == b"T"]
        said = one.query(text)
        (first,) = [content for kind, content in said if kind == b"T"]
        assert first == told
        if types is not None:
            assert not any(kind == b"D" for kind, _ in said)
            assert kinds(first) == types
        one.say(frame(b"Q", f"COPY ({text}) TO STDOUT (FORMAT csv)\0".encode()))
        assert one.until(b"Z")[-1] == (b"Z", b"I")


def test_describing_waits_for_no_question(data: Data, tmp_path: Path) -> None:
    """Where answers come on a schedule a description comes at once, while a question of the same analyst runs."""
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    price = {"options": "-c discreet.epsilon=0.01"}
    with served(tmp_path, AT_ONCE.replace('"off"', "4")) as found, client(found, **price) as one:
        with client(found, **price) as other:
            one.say(frame(b"Q", f"{COUNT}\0".encode()))
            text = f"{COUNT} WHERE age > $1"
            other.say(frame(b"P", f"s\0{text}\0".encode() + struct.pack("!h", 0)) + frame(b"D", b"Ss\0") + frame(b"S"))
            assert [kind for kind, _ in other.until(b"Z")] == [b"1", b"t", b"T", b"Z"]
            one.connection.setblocking(False)
            with pytest.raises(BlockingIOError):
                one.connection.recv(1)
            one.connection.settimeout(60)
        assert any(kind == b"D" for kind, _ in one.until(b"Z"))


def test_portals_give_rows_in_parts(service: Served) -> None:
    text = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
    with client(service, options="-c discreet.epsilon=0.01") as one:
        one.say(frame(b"P", f"\0{text}\0".encode() + struct.pack("!h", 0)))
        one.say(frame(b"B", b"p\0\0" + struct.pack("!hhh", 0, 0, 0)))
        three = frame(b"E", b"p\0" + struct.pack("!i", 3))
        one.say(three + three + frame(b"C", b"Pp\0") + three + frame(b"S"))
        kinds = [kind for kind, _ in one.until(b"Z") if kind != b"N"]
        assert kinds == [b"1", b"2", *[b"D"] * 3, b"s", b"D", b"C", b"3", b"E", b"Z"]


def test_after_an_error_all_is_ignored_until_sync(service: Served) -> None:
    with client(service) as one:
        bad = frame(b"P", b"\0SELECT 'a\0" + struct.pack("!h", 0))
        one.say(bad + bad + frame(b"Q", b"SELECT 1\0") + frame(b"E", b"\0" + bytes(4)) + frame(b"S"))
        assert [kind for kind, _ in one.until(b"Z")] == [b"E", b"Z"]
        assert [kind for kind, _ in one.query("SELECT 1; SELECT 1; ; SELECT")] == [b"T", b"D", b"C"] * 2 + [b"E", b"Z"]
        assert [kind for kind, _ in one.query(" -- nothing")] == [b"I", b"Z"]


def test_a_cancelled_statement_ends_and_its_answer_is_stored(data: Data, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    slow = AT_ONCE.replace('"off"', "3")
    with served(tmp_path, slow) as found, client(found, options="-c discreet.epsilon=0.01") as one:
        with client(found, None) as other:
            other.last(other.first("ana"), found.tokens["ana"])
            (key,) = [content for kind, content in other.until(b"Z") if kind == b"K"]
            other.say(frame(b"Q", f"{COUNT}\0".encode()))
            for wrong in (key[:4] + b"\0\0\0\0", key):
                with client(found, None) as third:
                    third.say(struct.pack("!ii", 16, 80877102) + wrong)
                    assert third.hear() == (b"", b"")
            (error,) = [fields(content) for kind, content in other.until(b"Z") if kind == b"E"]
            assert error["C"] in ("57014", "P0001")
        assert any(kind == b"D" for kind, _ in one.query(COUNT))  # waits for its turn


@pytest.mark.storm
def test_what_is_cancelled_before_its_turn_is_never_asked(data: Data, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    price = {"options": "-c discreet.epsilon=0.01"}
    with served(tmp_path, AT_ONCE.replace('"off"', "5")) as found, client(found, **price) as one:
        with client(found, None) as other:
            other.last(other.first("ana", **price), found.tokens["ana"])
            (key,) = [content for kind, content in other.until(b"Z") if kind == b"K"]
            one.say(frame(b"Q", f"{COUNT}\0".encode()))
            until(lambda: spent(found.curator))  # its turn has come, and lasts
            other.say(frame(b"Q", f"{COUNT} WHERE age > 3\0".encode()))
            time.sleep(1)
            with client(found, None) as third:
                third.say(struct.pack("!ii", 16, 80877102) + key)
                assert third.hear() == (b"", b"")
            assert [fields(content)["C"] for kind, content in other.until(b"Z") if kind == b"E"] == ["57014"]
        assert any(kind == b"D" for kind, _ in one.until(b"Z"))
        assert any(kind == b"D" for kind, _ in one.query(COUNT))  # the turn after that
        assert spent(found.curator) == Fraction(1, 100)


# what is none


@pytest.mark.parametrize(
    "content",
    [
        frame(b"Q", b"SELECT 1"),
        frame(b"Q", b"SELECT 1\0\0"),
        frame(b"B", b"\0\0" + struct.pack("!hhi", 0, 1, -2)),
        frame(b"B", b"\0\0" + struct.pack("!hh", 0, 32767)),
        frame(b"B", b"\0\0" + struct.pack("!hhh", 1, 7, 0)),
        frame(b"D", b"X\0"),
        frame(b"D"),
        frame(b"p", b"once more\0"),
        frame(b"F", b"\0"),
        frame(b"\0"),
        b"Q\0\0\0\3",
        b"Q\xff\xff\xff\xff",
        b"Q" + struct.pack("!i", LARGEST + 1),
        b"\x16\x03\x01\x02\0\x01",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_a_message_that_is_none_ends_the_connection(service: Served, content: bytes) -> None:
    before = spent(service.curator)
    with client(service) as one:
        one.say(content)
        said = one.until(b"never")
        assert fields(said[-2][1])["C"] == "08P01"
        assert said[-1] == (b"", b"")
    with client(service, None) as one:
        one.say(content)
        one.connection.shutdown(socket.SHUT_WR)
        one.until(b"never")
    assert spent(service.curator) == before


def test_a_text_that_is_no_utf8_or_too_long_is_refused(service: Served) -> None:
    with client(service) as one:
        one.say(frame(b"Q", b"SELECT '\xff'\0"))
        assert fields(one.until(b"Z")[0][1])["C"] == "22021"
        assert fields(one.query("SELECT '" + "a" * 70_000 + "'")[0][1])["C"] == "54001"


@pytest.mark.parametrize("name", ["LATIN1", "WIN1252", "utf16", "nonsense"])
def test_another_encoding_is_refused_in_words(service: Served, name: str) -> None:
    with client(service) as one:
        for text in (f"SET client_encoding = '{name}'", f"SET NAMES '{name}'", f"SET client_encoding TO {name}",
                     f"SELECT set_config('client_encoding', '{name}', false)"):  # fmt: skip
            said = one.query(text)
            (error,) = [fields(content) for kind, content in said if kind == b"E"]
            assert (error["C"], error["M"]) == ("22023", "texts are in UTF8 here, and in no other encoding")
            assert not any(kind == b"S" for kind, _ in said)
        assert [cells(content) for kind, content in one.query("SHOW client_encoding") if kind == b"D"] == [[b"UTF8"]]
    with client(service, None) as one:
        one.last(one.first("ana", client_encoding=name), service.tokens["ana"])
        error = fields(one.until(b"E", b"Z")[-1][1])
        assert (error["C"], error["S"]) == ("22023", "FATAL")
        assert "PGCLIENTENCODING=UTF8" in error["H"]
    said = psql(service, "ana", "SELECT 1", PGCLIENTENCODING="LATIN1")
    assert "texts are in UTF8 here" in said.stderr


@pytest.mark.parametrize("name", ["UTF8", "utf-8", "UNICODE", "SQL_ASCII", "'utf8'"])
def test_utf8_by_all_its_names(service: Served, name: str) -> None:
    with client(service, client_encoding=name.strip("'")) as one:
        assert one.query(f"SET client_encoding = {name}" if "-" not in name else f"SET NAMES '{name}'")[-2][0] == b"C"


def test_set_config_sets(service: Served) -> None:
    with client(service) as one:
        one.query("SELECT set_config('discreet.epsilon', '0.25', false), set_config('discreet.delta', '1e-9', true)")
        assert [cells(content) for kind, content in one.query("SHOW discreet.epsilon") if kind == b"D"] == [[b"0.25"]]
        assert [cells(content) for kind, content in one.query("SHOW discreet.delta") if kind == b"D"] == [[b""]]
        for wrong in ("set_config('discreet.epsilon', 'much', false)", "set_config('server_version', '9', false)"):
            assert one.query(f"SELECT {wrong}")[0][0] == b"E"
        one.say(
            frame(b"P", b"s\0SELECT set_config('discreet.epsilon', '0.5', false)\0" + bytes(2)) + frame(b"D", b"Ss\0")
        )
        one.say(frame(b"S"))
        assert one.until(b"Z")[-1] == (b"Z", b"I")
        assert [cells(content) for kind, content in one.query("SHOW discreet.epsilon") if kind == b"D"] == [[b"0.25"]]


def test_statements_are_prepared_in_sql(service: Served) -> None:
    """PREPARE, EXECUTE and DEALLOCATE: what the same question costs and gives, whichever way it is asked."""
    with client(service, options="-c discreet.epsilon=0.01") as one:
        assert one.query(f"PREPARE p (text, bigint) AS {COUNT} WHERE city = $1 AND age > $2")[0] == (b"C", b"PREPARE\0")
        before = spent(service.curator)
        for wrong, code in (
            ("EXECUTE p", "42601"),
            ("EXECUTE p ('north')", "42601"),
            ("EXECUTE p ('north', 'x')", "22P02"),
            ("EXECUTE p ('north', 3 + 4)", "0A000"),
            ("EXECUTE p ('north', )", "0A000"),
            ("EXECUTE p ('north', 1) 2", "42601"),
            ("EXECUTE q", "26000"),
            ("EXECUTE", "26000"),
            ("PREPARE p AS SELECT 1", "42P05"),
            ("PREPARE q AS DROP TABLE visits", "0A000"),
            ("PREPARE q (nothing) AS SELECT $1", "42704"),
            ("PREPARE q", "42601"),
            ("PREPARE", "42601"),
            ("PREPARE q AS", "42601"),
            ("PREPARE q (text AS SELECT 1", "42601"),
        ):
            assert [fields(content)["C"] for kind, content in one.query(wrong) if kind == b"E"] == [code], wrong
        assert spent(service.curator) == before
        said = one.query("EXECUTE p ('north', -3::bigint)")
        assert [kind for kind, _ in said if kind != b"N"] == [b"T", b"D", b"C", b"Z"]
        once = spent(service.curator)
        assert once > before
        plain = one.query(f"{COUNT} WHERE city = 'north' AND age > -3")
        assert [one for one in plain if one[0] == b"D"] == [one for one in said if one[0] == b"D"]
        one.say(
            frame(b"P", b"\0EXECUTE p ('north', -3)\0" + bytes(2))
            + frame(b"D", b"S\0")
            + frame(b"B", b"\0\0" + bytes(6))
        )
        one.say(frame(b"D", b"P\0") + frame(b"E", b"\0" + bytes(4)) + frame(b"S"))
        again = one.until(b"Z")
        assert [kind for kind, _ in again if kind != b"N"] == [b"1", b"t", b"T", b"2", b"T", b"D", b"C", b"Z"]
        assert spent(service.curator) == once
        assert one.query("DEALLOCATE PREPARE p")[0][0] == b"C"
        assert one.query("EXECUTE p ('north', 3)")[0][0] == b"E"
        assert one.query("PREPARE c AS SELECT relname FROM pg_class WHERE relname = $1")[0][0] == b"C"
        assert [cells(content) for kind, content in one.query("EXECUTE c('visits')") if kind == b"D"] == [[b"visits"]]


def test_what_executes_itself_ends(service: Served) -> None:
    with client(service) as one:
        one.say(frame(b"P", b"p\0EXECUTE p\0" + bytes(2)) + frame(b"D", b"Sp\0") + frame(b"S"))
        assert [kind for kind, _ in one.until(b"Z")] == [b"1", b"E", b"Z"]
        assert [fields(content)["C"] for kind, content in one.query("EXECUTE p") if kind == b"E"] == ["0A000"]


def test_silence_half_messages_and_crowds_end(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as hasty:
        hasty.setattr(connections, "HEAD_SECONDS", 1)
        with client(service, None) as one:
            one.say(struct.pack("!i", 100))
            assert one.hear() == (b"", b"")
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(client(service)) for _ in range(listening.MOST_OF_ACCOUNT)]
        with client(service, None) as one:
            one.last(one.first("ana"), service.tokens["ana"])
            assert fields(one.until(b"E")[-1][1])["C"] == "53300"
        assert many[0].query("SELECT 1")[-1] == (b"Z", b"I")


def test_what_is_prepared_is_bounded(service: Served) -> None:
    with client(service) as one:
        for number in range(513):
            one.say(frame(b"P", f"s{number}\0SELECT {number}\0".encode() + struct.pack("!h", 0)))
        one.say(frame(b"S"))
        assert [kind for kind, _ in one.until(b"Z")] == [b"1"] * 512 + [b"E", b"Z"]


_NAMES = st.sampled_from([b"", b"a", b"b"])
_STATEMENTS = st.sampled_from(
    [
        b"SELECT 1",
        b"SELECT COUNT(*) AS n FROM visits WHERE age > $1",
        b"SELECT COUNT(*) FROM nothing",
        b"BEGIN",
        b"COMMIT",
        b"ROLLBACK",
        b"",
        b"DECLARE a CURSOR FOR SELECT COUNT(*) AS n FROM visits",
        b"FETCH 1 FROM a",
        b"FETCH RELATIVE 0 FROM a",
        b"MOVE ALL IN a",
        b"PREPARE a AS SELECT COUNT(*) AS n FROM visits WHERE age > $1",
        b"PREPARE b (text) AS SELECT $1",
        b"EXECUTE a (3)",
        b"EXECUTE b",
        b"SELECT set_config('discreet.intervals', 'on', false)",
        b"SELECT city, COUNT(*) AS n FROM visits GROUP BY city LIMIT $1",
        b"COPY (SELECT 1) TO STDOUT",
        b"SET discreet.intervals = on",
        b"SHOW discreet.budget",
        b"EXPLAIN SELECT COUNT(*) AS n FROM visits",
        b"DISCARD ALL",
        b"DEALLOCATE a",
        b"CLOSE ALL",
        b"(((",
    ]
)
_SMALL = st.integers(-2, 3).map(lambda number: struct.pack("!h", number))
_MESSAGES = st.one_of(
    st.builds(lambda text: frame(b"Q", text + b"\0"), _STATEMENTS),
    st.builds(lambda name, text, many: frame(b"P", name + b"\0" + text + b"\0" + many), _NAMES, _STATEMENTS, _SMALL),
    st.builds(
        lambda portal, name, values: frame(b"B", portal + b"\0" + name + b"\0\0\0" + values + b"\0\0"),
        _NAMES,
        _NAMES,
        st.sampled_from([b"\0\0", *(struct.pack("!hi", 1, 1) + one for one in (b"3", b"x", b"\xff"))]),
    ),
    st.builds(lambda kind, what, name: frame(kind, what + name + b"\0"), st.sampled_from([b"D", b"C"]),
              st.sampled_from([b"S", b"P", b"X"]), _NAMES),
    st.builds(lambda name, many: frame(b"E", name + b"\0" + struct.pack("!i", many)), _NAMES, st.integers(-1, 2)),
    st.sampled_from([frame(b"S"), frame(b"H"), frame(b"d", b"x"), frame(b"c"), frame(b"X")]),
    st.builds(frame, st.binary(min_size=1, max_size=1), st.binary(max_size=8)),
    st.binary(max_size=12),
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.lists(_MESSAGES, max_size=12), cut=st.integers(0, 3))
def test_whatever_is_said_the_service_goes_on(service: Served, said: list[bytes], cut: int) -> None:
    """At a price that no budget has, nothing is charged."""
    before = spent(service.curator)
    with client(service, options="-c discreet.epsilon=1000") as one:
        content = b"".join(said)
        with contextlib.suppress(ConnectionError):
            one.say(content[: len(content) - cut])
            one.connection.shutdown(socket.SHUT_WR)
        for kind, answer in one.until(b"never"):
            if kind == b"E":
                assert fields(answer)["C"] not in ("XX000", "58000"), answer
    assert spent(service.curator) == before
    with client(service) as one:
        assert one.query("SELECT 1")[-1] == (b"Z", b"I")
