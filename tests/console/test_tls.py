"""Cookies where TLS is spoken, by the service itself or by a proxy before it: sent over TLS alone, to this host alone,
from its own pages alone."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode

import pytest

from browser_tools import CHROMIUM, Browser
from face_tools import Data
from service_tools import CLINIC, LOOPBACK, Served, certificate, served


@dataclass(frozen=True)
class Secure:
    """A service that is called over TLS, at a port, with a certificate."""

    service: Served
    port: int
    certificate: Path

    def call(
        self, method: str, path: str, said: dict[str, str] | None = None, **headers: str
    ) -> tuple[int, list[str], str]:
        """The status, the cookies that are set, and the page."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=300, context=context)
        sent = {"Accept": "text/html", "Origin": f"https://127.0.0.1:{self.port}", **headers}
        if said is not None:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            connection.request(method, path, None if said is None else urlencode(said), sent)
            reply = connection.getresponse()
            return reply.status, reply.headers.get_all("set-cookie") or [], reply.read().decode()
        finally:
            connection.close()


@contextmanager
def proxy(folder: Path, port: int) -> Iterator[int]:
    """A proxy that speaks TLS, and hands on to a port what it hears. Gives its own port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    listening = socket.create_server(("127.0.0.1", 0))

    def hand_on(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(65_536):
                target.sendall(piece)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def answer(raw: socket.socket) -> None:
        with (
            suppress(OSError),
            context.wrap_socket(raw, server_side=True) as outside,
            socket.create_connection(("127.0.0.1", port)) as inside,
        ):
            back = threading.Thread(target=hand_on, args=(inside, outside), daemon=True)
            back.start()
            hand_on(outside, inside)
            back.join()

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.close()


@pytest.fixture(scope="module", params=["proxy", "service"])
def secure(request: pytest.FixtureRequest, data: Data, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    folder = tmp_path_factory.mktemp("tls")
    (folder / "visits.csv").write_bytes(data.csv.read_bytes())
    files = [Path(one) for one in certificate(folder)]
    if request.param == "service":
        with served(folder, CLINIC, replace(LOOPBACK, certificate=files[0], key=files[1])) as found:
            yield Secure(found, found.port, files[0])
        return
    with served(folder, CLINIC, replace(LOOPBACK, behind_proxy=True)) as found, proxy(folder, found.port) as port:
        yield Secure(found, port, files[0])


def attributes(cookie: str) -> set[str]:
    """What a cookie says beside its name and value, in small letters."""
    return {one.strip().lower() for one in cookie.split(";")[1:]}


def test_cookies_over_tls_are_the_hosts_alone(secure: Secure) -> None:
    status, first, page = secure.call("GET", "/console/login")
    assert status == 200
    word = re.search(r'name="form" value="([^"]+)"', page)
    assert word is not None
    said = {"form": word[1], "token": secure.service.tokens["ana"]}
    status, then, _ = secure.call("POST", "/console/login", said, Cookie=first[0].split(";")[0])
    assert status == 303
    session = next(one for one in then if "max-age=0" not in attributes(one))
    for cookie in (*first, *then):
        assert cookie.startswith("__Host-")  # so browsers take it from this host over TLS alone, for all its paths
        assert attributes(cookie) >= {"secure", "httponly", "samesite=strict", "path=/"}
        assert not any(one.startswith("domain") for one in attributes(cookie))
    name, _, value = session.split(";")[0].partition("=")
    assert secure.call("GET", "/console/tables", Cookie=f"{name}={value}")[0] == 200
    for other in (
        f"discreet-{secure.port}",
        f"discreet-{secure.service.port}",
        name.removeprefix("__Host-"),
        "discreet",
    ):
        assert secure.call("GET", "/console/tables", Cookie=f"{other}={value}")[0] == 303, other


@pytest.mark.outside
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_keeps_them_so(secure: Secure, tmp_path: Path) -> None:
    here = f"https://127.0.0.1:{secure.port}"
    with Browser(tmp_path / "profile", "--ignore-certificate-errors") as browser:
        browser.go(f"{here}/console/login")
        browser.arrives("document.activeElement && document.activeElement.id === 'token'")
        browser.press(secure.service.tokens["ana"])
        browser.press("Enter")
        browser.arrives("location.pathname !== '/console/login' && document.readyState === 'complete'")
        (cookie,) = browser.cookies()
        assert cookie["name"].startswith("__Host-")
        assert (cookie["domain"], cookie["path"], cookie["sameSite"]) == ("127.0.0.1", "/", "Strict")
        assert (cookie["secure"], cookie["httpOnly"], cookie["session"]) == (True, True, True)
        assert browser.run("document.cookie") == ""
        browser.go(f"{here}/console/tables")
        browser.arrives("location.pathname === '/console/tables' && document.readyState === 'complete'")

        # another host of the same machine is another site: its pages come without the session
        there = f"https://localhost:{secure.port}/console/login"
        browser.go(there)
        browser.arrives("location.hostname === 'localhost' && document.readyState === 'complete'")
        browser.run(f"void (location.href = '{here}/console/tables')")
        browser.arrives("location.hostname === '127.0.0.1' && document.readyState === 'complete'")
        assert browser.run("location.pathname") == "/console/login"
        browser.go(there)
        browser.arrives("location.hostname === 'localhost' && document.readyState === 'complete'")
        script = f"fetch('{here}/console/tables', {{credentials: 'include', mode: 'no-cors'}}).then(() => 1, () => 0)"
        browser.run(script)
        assert sum(one["name"] == cookie["name"] and one["domain"] == "127.0.0.1" for one in browser.cookies()) == 1
        browser.go(f"{here}/console/tables")
        browser.arrives("location.pathname === '/console/tables' && document.readyState === 'complete'")
