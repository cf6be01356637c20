"""A form for a first declaration, served as the command serves it, and a browser's cookie without a browser."""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from discreet.beginning.app import Beginning
from discreet.beginning.serving import run
from discreet.cli.start import found
from discreet.service.loopback import Loopback
from service_tools import Reply

PATIENTS = "Id;GENDER;BIRTHDATE;Last Name;EXPENSES\n1;F;31.01.2020;Roe;3,5\n2;M;01.02.1980;Doe;777,25\n"
HOSTILE = "<script>alert(1)</script>"
VISITS = f'PATIENT,START,REASON,"{HOSTILE}"\n1,2020-01-02,flu,2\n'


@dataclass
class Form:
    """One form. `call` sends what a browser would, but for what is said otherwise."""

    url: str
    path: str
    beginning: Beginning
    running: threading.Thread
    cookie: str = ""
    word: str = ""

    @property
    def origin(self) -> str:
        return "http://" + urlsplit(self.url).netloc

    def call(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        sent = {"Accept": "text/html", "Cookie": self.cookie} | {k.replace("_", "-"): v for k, v in headers.items()}
        if body is not None:
            sent = {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.origin} | sent
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(self.url).port or 0, timeout=300)
        try:
            connection.request(method, path, body, {name: value for name, value in sent.items() if value})
            reply = connection.getresponse()
            return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())
        finally:
            connection.close()

    def open(self) -> str:
        """Opens it as the first browser does, and gives the page."""
        self.cookie = self.call("GET", urlsplit(self.url).path).headers["set-cookie"].partition(";")[0]
        reply = self.call("GET", self.path)
        assert reply.status == 200, reply.content
        page = reply.content.decode()
        self.word = unescape(re.findall(r'name="form" value="([^"]+)"', page)[0])
        return page

    def send(self, said: dict[str, str], act: str = "write", at: str = "", **headers: str) -> Reply:
        whole = {"form": self.word, **({} if at else {"act": act}), **said}
        return self.call("POST", self.path + at, urlencode(whole).encode(), **headers)


@contextmanager
def form(folder: Path, names: dict[str, str], target: str = "clinic.toml") -> Iterator[Form]:
    """A form for these files, which ends at the end."""
    for name, text in names.items():
        (folder / name).write_text(text, "utf-8")
    warnings: list[str] = []
    tables = found([str(folder / name) for name in names], folder, warnings.append)
    beginning = Beginning(tables, folder / target, ("1", "1e-6"), warnings)
    with Loopback() as page:
        thread = threading.Thread(target=run, args=(beginning, page))
        thread.start()
        one = Form(page.address, page.place, beginning, thread)
        try:
            assert one.call("GET", "/").status == 403  # it runs
            yield one
        finally:
            page.stop()
            thread.join()
