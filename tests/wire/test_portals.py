"""Portals and cursors half-way: what gives no row is decided at each execution, and where a cursor stands."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from face_tools import spent
from ledger_places import KEEPER, Server
from postgres_tools import PASSWORD
from service_tools import Served
from wire_tools import Client, cells, fields, frame

GROUPS = "SELECT city, COUNT(*) AS n FROM visits"
ROWS = "SELECT * FROM (VALUES (1), (2), (3), (4)) AS t (n)"


@contextlib.contextmanager
def client(service: Served, **said: str) -> Iterator[Client]:
    made = Client.of(service.psql)
    try:
        made.log_in(service, "ana", **{"discreet.epsilon": "0.01", **said})
        yield made
    finally:
        made.close()


def bound(value: bytes, statement: bytes = b"s", portal: bytes = b"") -> bytes:
    return frame(b"B", portal + b"\0" + statement + b"\0" + struct.pack("!hhi", 0, 1, len(value)) + value + bytes(2))


def executed(portal: bytes = b"", most: int = 0) -> bytes:
    return frame(b"E", portal + b"\0" + struct.pack("!i", most))


def kinds_of(said: list[tuple[bytes, bytes]]) -> list[bytes]:
    return [kind for kind, _ in said if kind not in (b"N", b"S")]


@pytest.mark.parametrize(
    ("text", "oid", "none", "some"),
    [
        (f"{GROUPS} WHERE age > 26 GROUP BY city LIMIT $1", 20, b"0", b"10"),
        (f"{GROUPS} WHERE 1 = $1 AND age > 21 GROUP BY city", 20, b"0", b"1"),
        (f"{GROUPS} WHERE $1 AND age > 22 GROUP BY city", 16, b"f", b"t"),
        (f"{GROUPS} WHERE age > 23 AND NOT $1 GROUP BY city", 16, b"t", b"f"),
        (f"{GROUPS} WHERE age > 24 AND ('a' = $1) GROUP BY city", 25, b"b", b"a"),
        (f"SELECT * FROM ({GROUPS} WHERE age > 25 GROUP BY city) AS g FETCH FIRST $1 ROWS ONLY", 20, b"0", b"2"),
    ],
)
def test_whether_there_is_a_row_is_decided_at_each_execution(
    service: Served, text: str, oid: int, none: bytes, some: bytes
) -> None:
    """One prepared statement, described once: nothing is charged that gives no row, nothing is free that gives some."""
    with client(service) as one:
        one.say(frame(b"P", b"s\0" + text.encode() + b"\0" + struct.pack("!hI", 1, oid)) + frame(b"D", b"Ss\0"))
        one.say(frame(b"S"))
        assert kinds_of(one.until(b"Z")) == [b"1", b"t", b"T", b"Z"]
        before = spent(service.curator)
        for _ in range(2):
            one.say(bound(none) + frame(b"D", b"P\0") + frame(b"S"))
            assert kinds_of(one.until(b"Z")) == [b"2", b"T", b"Z"]
            one.say(bound(none) + executed() + frame(b"S"))
            assert kinds_of(one.until(b"Z")) == [b"2", b"C", b"Z"]
            assert spent(service.curator) == before
        one.say(bound(some) + executed() + frame(b"S"))
        assert kinds_of(one.until(b"Z")).count(b"D") > 0
        after = spent(service.curator)
        assert after > before
        one.say(bound(none) + executed() + bound(some) + executed() + frame(b"S"))
        assert kinds_of(one.until(b"Z"))[:4] == [b"2", b"C", b"2", b"D"]
        assert spent(service.curator) == after


def test_columns_that_settings_change_are_found_before_the_charge(service: Served) -> None:
    """Those of intervals come or go, and the client would read the answer as it was described."""
    text = f"{GROUPS} WHERE age > $1 GROUP BY city"
    with client(service) as one:
        one.say(frame(b"P", f"s\0{text}\0".encode() + bytes(2)) + frame(b"D", b"Ss\0") + frame(b"S"))
        one.until(b"Z")
        before = spent(service.curator)
        one.query("SET discreet.intervals = on")
        one.say(bound(b"31") + executed() + frame(b"S"))
        (error,) = [fields(content) for kind, content in one.until(b"Z") if kind == b"E"]
        assert (error["C"], error["M"]) == ("0A000", "cached plan must not change result type")
        assert spent(service.curator) == before
        one.query("SET discreet.intervals = off")
        one.say(bound(b"31") + executed() + frame(b"S"))
        assert b"D" in kinds_of(one.until(b"Z"))


def test_a_portal_that_is_asked_for_more_than_it_has(service: Served) -> None:
    with client(service) as one:
        one.say(frame(b"P", f"\0{ROWS}\0".encode() + bytes(2)) + frame(b"B", b"p\0\0" + bytes(6)))
        one.say(executed(b"p", 3) + executed(b"p", 0) + executed(b"p", 0) + executed(b"p", 5) + frame(b"S"))
        said = [content for kind, content in one.until(b"Z") if kind in (b"s", b"C")]
        assert said == [b"", b"SELECT 1\0", b"SELECT 0\0", b"SELECT 0\0"]
        one.say(executed(b"p") + frame(b"S"))  # it ended with what it was opened in
        assert [fields(content)["C"] for kind, content in one.until(b"Z") if kind == b"E"] == ["34000"]
        one.query("BEGIN")
        one.say(frame(b"B", b"p\0\0" + bytes(6)) + executed(b"p", 1) + frame(b"S"))
        assert kinds_of(one.until(b"Z")) == [b"2", b"D", b"s", b"Z"]
        one.say(frame(b"C", b"Pp\0") + executed(b"p") + frame(b"S"))
        assert kinds_of(one.until(b"Z")) == [b"3", b"E", b"Z"]


_HOW = st.one_of(
    st.sampled_from(["", "NEXT", "ALL", "FORWARD", "FORWARD ALL", "0", "FORWARD 0", "RELATIVE 0"]),
    st.integers(1, 6).map(str),
    st.integers(1, 6).map(lambda number: f"FORWARD {number}"),
    st.integers(1, 6).map(lambda number: f"RELATIVE {number}"),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.sampled_from(["FETCH", "MOVE"]), _HOW), max_size=8))
def test_a_cursor_stands_where_postgresqls_would(
    service: Served, at_server: Server, steps: list[tuple[str, str]]
) -> None:
    """The same steps, there and here."""
    with client(service) as one, psycopg.connect(at_server[0].url(KEEPER), password=PASSWORD) as there:
        for text in ("BEGIN", f"DECLARE c CURSOR FOR {ROWS}"):
            assert one.query(text)[-1] == (b"Z", b"T")
        there.execute(f"DECLARE c CURSOR FOR {ROWS}")
        for step, how in steps:
            text = f"{step} {how} FROM c"
            expected = there.execute(text)
            rows = [str(row[0]) for row in expected.fetchall()] if step == "FETCH" else []
            said = one.query(text)
            assert [cells(content)[0] for kind, content in said if kind == b"D"] == [row.encode() for row in rows], text
            (tag,) = [content for kind, content in said if kind == b"C"]
            assert tag == f"{expected.statusmessage}\0".encode(), (text, steps)


def test_a_cancel_in_any_state_leaves_the_state(service: Served) -> None:
    """Only what runs can be cancelled; what comes afterwards is heard as before."""

    def cancel(key: bytes) -> None:
        with contextlib.closing(Client.of(service.psql)) as other:
            other.say(struct.pack("!ii", 16, 80877102) + key)
            assert other.hear() == (b"", b"")

    with contextlib.closing(Client.of(service.psql)) as one:
        one.last(one.first("ana", **{"discreet.epsilon": "0.01"}), service.tokens["ana"])
        (key,) = [content for kind, content in one.until(b"Z") if kind == b"K"]
        cancel(key)
        assert kinds_of(one.query("SELECT 1")) == [b"T", b"D", b"C", b"Z"]
        one.query("BEGIN")
        cancel(key)
        assert one.query(f"DECLARE c CURSOR FOR {ROWS}")[-1] == (b"Z", b"T")
        cancel(key)
        assert one.query("FETCH 2 FROM c")[-2] == (b"C", b"FETCH 2\0")
        one.say(frame(b"P", f"\0{ROWS}\0".encode() + bytes(2)) + frame(b"B", b"p\0\0" + bytes(6)) + executed(b"p", 1))
        one.say(frame(b"H"))
        assert kinds_of(one.until(b"s"))[-1] == b"s"
        cancel(key)
        one.say(executed(b"p") + frame(b"P", b"\0SELECT '\0" + bytes(2)) + frame(b"H"))
        assert kinds_of(one.until(b"E")) == [b"D", b"D", b"D", b"C", b"E"]
        cancel(key)
        one.say(executed(b"p") + frame(b"S"))
        assert one.until(b"Z")[-1] == (b"Z", b"E")
        cancel(key)
        assert one.query("ROLLBACK")[-1] == (b"Z", b"I")
        assert kinds_of(one.query("SELECT 1")) == [b"T", b"D", b"C", b"Z"]
