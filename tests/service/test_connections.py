"""Connections that say nothing, speak slowly or take nothing, over real sockets: they take nobody's place."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from discreet.service import connections
from discreet.service.connections import Connections
from discreet.service.serving import Address
from face_tools import Data
from service_tools import Served, certificate, served

HEAD = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def service(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("connections")
    (folder / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(folder) as found:
        yield found


def opened(service: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", service.port), timeout=300)


def ends(connection: socket.socket) -> bool:
    """Whether the other side ends it, after whatever it says; waits for it."""
    try:
        while connection.recv(65_536):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def asks(connection: socket.socket, service: Served) -> None:
    """A question whose body, of 9 bytes, is still to come; it is waited for."""
    connection.sendall(b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
    connection.sendall(f"Authorization: Bearer {service.tokens['ana']}\r\n".encode())
    connection.sendall(b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n")
    assert b" 100 " in connection.recv(100)


@pytest.mark.parametrize("said", [b"", HEAD])
def test_silence_takes_nobody_s_place(service: Served, monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    """There are few, and who has been silent for longest goes: whoever asks is answered."""
    monkeypatch.setattr(connections, "MOST", 20)
    with ExitStack() as stack, closing(opened(service)) as slow:
        asks(slow, service)  # it stays
        silent = []
        for _ in range(60):
            silent.append(stack.enter_context(closing(opened(service))))
            silent[-1].sendall(said)
        assert service.call("GET", "/balance", "bob").status == 200
        assert all(ends(one) for one in silent[:40])
        silent[-1].sendall(b"\r\n" if said else HEAD + b"\r\n")
        assert silent[-1].recv(20).startswith(b"HTTP/1.1 200")
        slow.sendall(b"{} nonse}")
        assert slow.recv(20).startswith(b"HTTP/1.1 400")


def test_where_all_ask_who_comes_next_is_refused(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(opened(service)) as slow:
        asks(slow, service)
        monkeypatch.setattr(connections, "MOST", 1)
        with closing(opened(service)) as another:
            assert ends(another)
        slow.sendall(b"{} nonse}")
        assert slow.recv(20).startswith(b"HTTP/1.1 400")


def test_what_a_stranger_asks_takes_nobody_s_place(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes until it is known that nobody knows him."""
    entered, ends_now, holder = threading.Semaphore(0), threading.Event(), service.accounts.holder

    def slowly(token: str) -> object:
        entered.release()
        assert ends_now.wait(300)
        return holder(token)

    monkeypatch.setattr(connections, "MOST", 2)
    with monkeypatch.context() as slow, ExitStack() as stack:
        slow.setattr(service.accounts, "holder", slowly)
        strangers = [stack.enter_context(closing(opened(service))) for _ in range(2)]
        for one in strangers:
            one.sendall(b"GET /balance HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer discreet_none\r\n\r\n")
            assert entered.acquire(timeout=300)
        assert service.call("GET", "/health", None).status == 200
        ends_now.set()
        assert ends(strangers[0])
    assert service.call("GET", "/balance", "bob").status == 200


def test_an_address_has_a_part_of_the_places() -> None:
    """Whoever opens many ends his own."""
    with ExitStack() as stack:
        connected = Connections(2)
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

        async def taken() -> list[socket.socket]:
            counted = stack.enter_context(connected.listening(listening))
            found = []
            for host in ("127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.1"):
                source = socket.create_connection(listening.getsockname(), 60, source_address=(host, 0))
                found.append(stack.enter_context(closing(source)))
                stack.enter_context(counted.accept()[0])
            return found

        first, other, *later = asyncio.run(taken())
        assert ends(first)
        for one in (other, *later):
            one.setblocking(False)
            with pytest.raises(BlockingIOError):
                one.recv(1)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%lo", "fe80::2%lo", True),
    ],
)
def test_whose_an_address_is(one: str, other: str, same: bool) -> None:
    assert (connections._whose(one) == connections._whose(other)) is same


def test_what_is_silent_for_too_long_ends(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a question, in the middle of its head, after an answer, and in a body that nobody reads."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0)
    monkeypatch.setattr(connections, "TAKEN_SECONDS", 0)
    with ExitStack() as stack:
        silent = [stack.enter_context(closing(opened(service))) for _ in range(4)]
        for one, said in zip(silent, (b"", HEAD, HEAD + b"\r\n", HEAD + b"Content-Length: 99\r\n\r\n1"), strict=True):
            one.sendall(said)
        assert all(ends(one) for one in silent)


def test_half_a_handshake_ends(data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    pem, key = certificate(tmp_path)
    monkeypatch.setattr(connections, "MOST", 2)
    with served(tmp_path, address=Address(certificate=Path(pem), key=Path(key))) as service:
        trusted = ssl.create_default_context(cafile=pem)
        with ExitStack() as stack:
            silent = [stack.enter_context(closing(opened(service))) for _ in range(4)]
            for one in silent[:2]:
                one.sendall(b"\x16\x03\x01\x02\x00\x01")
            with trusted.wrap_socket(opened(service), server_hostname="127.0.0.1") as whole:
                whole.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert whole.recv(20).startswith(b"HTTP/1.1 200")
            assert all(ends(one) for one in silent[:3])
            monkeypatch.setattr(connections, "HEAD_SECONDS", 0)
            with closing(opened(service)) as late:
                late.sendall(b"\x16\x03\x01\x02\x00\x01")
                assert ends(late)


def test_who_takes_no_answer_does_not_hold_the_end(data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    with ExitStack() as stack:
        with served(tmp_path) as service:
            greedy = stack.enter_context(closing(opened(service)))
            greedy.settimeout(0.2)
            with contextlib.suppress(TimeoutError):
                while True:  # until nothing more is read, as no answer is taken
                    greedy.sendall((HEAD + b"\r\n") * 100)
            assert service.call("GET", "/balance", "ana").status == 200
            monkeypatch.setattr(connections, "HEAD_SECONDS", 0)
        greedy.settimeout(60)
        assert ends(greedy)  # and the service has ended
