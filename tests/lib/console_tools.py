"""Somebody at the console, without a browser: a connection for each request, with the cookies that were set."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import urlencode

from service_tools import Reply, Served


@dataclass
class Visitor:
    """One browser's cookies, and the word that its pages' forms have."""

    service: Served
    cookies: dict[str, str] = field(default_factory=dict)
    word: str = ""

    def get(self, path: str, **headers: str) -> Reply:
        return self.send("GET", path, None, **headers)

    def post(self, path: str, said: dict[str, str] | None = None, **headers: str) -> Reply:
        headers = {"Origin": self.service.url, **headers}
        return self.send("POST", path, {"form": self.word, **(said or {})}, **headers)

    def send(self, method: str, path: str, said: dict[str, str] | None, **headers: str) -> Reply:
        sent = {"Accept": "text/html", **headers}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        body = None if said is None else urlencode(said).encode()
        if body is not None:
            sent.setdefault("Content-Type", "application/x-www-form-urlencoded")
        reply = self.service.call(method, path, None, body=body, **sent)
        for name, value in re.findall(
            r"(?:^|, )([\w-]+)=([^;]*); (?:HttpOnly|Max-Age)", reply.headers.get("set-cookie", "")
        ):
            if value in ('""', ""):
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        found = re.search(r'name="form" value="([^"]+)"', reply.content.decode("utf-8", "replace"))
        self.word = unescape(found[1]) if found else self.word
        return reply


def logged_in(service: Served, who: str) -> Visitor:
    """Somebody who has just logged in."""
    visitor = Visitor(service)
    visitor.get("/console/login")
    reply = visitor.post("/console/login", {"token": service.tokens[who]})
    assert (reply.status, reply.headers["location"]) == (303, "/console"), reply.content
    assert visitor.get("/console").status == 303
    visitor.get("/console/tables")
    return visitor
