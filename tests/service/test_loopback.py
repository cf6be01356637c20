"""Pages on the loopback address: whoever has the address gets in, and nobody else, by whatever way he comes."""

from __future__ import annotations

import http.client
import importlib.util
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from browser_tools import CHROMIUM, Browser
from discreet.look.headers import HEADERS
from discreet.service.loopback import Loopback, Message, Receive, Send

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("uvicorn") is None, reason="uvicorn is missing; nothing is served"
)


async def _echo(scope: Message, receive: Receive, send: Send) -> None:
    """Says which page was asked for, and how."""
    await receive()
    body = f"<title>here</title>{scope['method']} {scope['path'].removeprefix(scope['root_path'])}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def page() -> Iterator[Loopback]:
    with Loopback() as found:
        running = threading.Thread(target=found.run, args=(_echo,))
        running.start()
        assert ask(found, "/")[0] == 403  # it runs
        yield found
        found.stop()
        running.join()


def ask(page: Loopback, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of a reply. A header's name is written with _ for -."""
    host = page.address.split("/")[2]
    caller = http.client.HTTPConnection(host)
    caller.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    reply = caller.getresponse()
    found = reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read().decode()
    caller.close()
    return found


def opened(page: Loopback) -> str:
    """The cookie that the address gives."""
    status, headers, _ = ask(page, "/" + page.address.split("/", 3)[3])
    assert status == 200
    pair, *rest = headers["set-cookie"].split("; ")
    assert sorted(rest) == ["HttpOnly", f"Path={page.place}", "SameSite=Strict"]
    return pair


def test_the_address_lets_in_and_every_reply_has_the_headers(page: Loopback) -> None:
    cookie = opened(page)
    assert page.address.split("/")[-1] not in cookie
    assert page.place not in page.address
    status, headers, text = ask(page, page.place + "some", cookie=f"other=1; {cookie}")
    assert (status, text) == (200, "<title>here</title>GET /some")
    for reply in (headers, ask(page, "/")[1], ask(page, "/" + page.address.split("/", 3)[3])[1]):
        assert {name: reply.get(name) for name in HEADERS} == HEADERS


def test_nobody_else_gets_in(page: Loopback) -> None:
    cookie, host = opened(page), page.address.split("/")[2]
    secret = page.address.split("/")[-1]
    assert ask(page, page.place)[0] == 403
    for odd in ("discreet=", "discreet=é", f"other={cookie.split('=')[1]}", f"discreet={secret}", cookie[:-1], "[;="):
        assert ask(page, page.place, cookie=odd.encode("utf-8").decode("latin-1"))[0] == 403, odd
    for path in ("/", f"/open/{secret[:-1]}", f"/open/{secret}x", "/open/", "/open/%ff", page.place[:-1], "//"):
        status, headers, _ = ask(page, path, cookie=cookie)
        assert (status, "set-cookie" in headers) == (403, False), path
    assert ask(page, f"/open/{secret}", "POST")[0] == 403
    # a site of another name that leads to this machine
    for name in ("evil.example", f"evil.example:{host.split(':')[1]}", "127.0.0.1", f"localhost:{host.split(':')[1]}"):
        for path in (page.place, f"/open/{secret}"):
            assert ask(page, path, host=name, cookie=cookie)[0] == 421, name


def test_the_first_browser_alone_is_let_in(page: Loopback) -> None:
    way = "/" + page.address.split("/", 3)[3]
    assert ask(page, way, sec_purpose="prefetch;prerender")[0] == 403
    assert ask(page, way, "HEAD")[0] == 403
    cookie = opened(page)
    status, headers, text = ask(page, way)  # the first browser may open it once more: it has its cookie
    assert (status, "set-cookie" in headers, cookie.split("=")[1] in text) == (200, False, False)
    status, _, text = ask(page, page.place)
    assert (status, "opened its address first" in text) == (403, True)
    assert ask(page, page.place, cookie=cookie)[0] == 200


def test_cookies_of_other_programs_take_nothing_away(page: Loopback) -> None:
    cookie = opened(page)
    for others in (f'{cookie}; a[0]={{"b": 1}}', f"a(b)=1;{cookie}", f"{cookie}; discreet=another", f'{cookie}; "='):
        assert ask(page, page.place, cookie=others)[0] == 200, others


def test_silent_and_slow_connections_keep_nobody_out(page: Loopback) -> None:
    cookie, host = opened(page), page.address.split("/")[2]
    where = ("127.0.0.1", int(host.split(":")[1]))
    with ExitStack() as held:
        for number in range(300):
            one = held.enter_context(socket.create_connection(where))
            head = f"POST {page.place} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n"
            one.sendall([b"", b"GET / HT", head.encode(), f"{head}\r\n".encode()][number % 4])
        assert ask(page, page.place, cookie=cookie)[0] == 200
        assert len(os.listdir("/proc/self/fd")) < 300 + 200  # of ours 300, and few of those that are held against us


def test_what_changes_something_comes_from_its_own_pages(page: Loopback) -> None:
    cookie, host = opened(page), page.address.split("/")[2]
    own: list[dict[str, Any]] = [{"sec_fetch_site": "same-origin"}, {"origin": f"http://{host}"}]
    others: list[dict[str, Any]] = [
        {},
        *({"sec_fetch_site": site, "origin": f"http://{host}"} for site in ("cross-site", "same-site", "none")),
        *({"origin": site} for site in ("null", "http://evil.example", "http://127.0.0.1", f"https://{host}")),
    ]
    for said, status in (*((one, 200) for one in own), *((one, 403) for one in others)):
        assert ask(page, page.place, "POST", cookie=cookie, **said)[0] == status, said


@pytest.mark.outside
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing (Debian: chromium); no page is opened")
def test_a_browser_opens_it_from_a_file_and_its_line_opens_nothing(page: Loopback, tmp_path: Path) -> None:
    file = tmp_path / "open.html"
    file.write_text(f'<meta http-equiv="refresh" content="0; url={page.address}">', "utf-8")
    with Browser(tmp_path / "profile") as browser:
        browser.go(file.as_uri())
        browser.arrives("document.title === 'here'")
        assert browser.run("document.body.textContent") == "GET /"
        assert page.address.split("/")[-1] not in browser.run("location.href")
        assert browser.run("document.cookie") == ""
        line = browser.run("location.href")
    assert ask(page, "/" + line.split("/", 3)[3])[0] == 403
