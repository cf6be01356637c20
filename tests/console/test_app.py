"""Logging in and out, who sees which page, and what every reply has: over the real socket."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape

import pytest

from console_tools import Visitor, logged_in
from discreet.console import analyst
from discreet.console.app import PLACES
from discreet.look.headers import HEADERS
from discreet.release import Release
from discreet.service.accounts import Account
from discreet.service.roles import Role
from face_tools import Data
from page_tools import ROOT, blocks
from service_tools import CLINIC, HOLDERS, Served, served

QUESTION = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"


@pytest.fixture(scope="module")
def service(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("console")
    (folder / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(folder, CLINIC) as found:
        yield found


def test_every_reply_has_the_headers(service: Served) -> None:
    ana = logged_in(service, "ana")
    replies = [
        ana.get("/"),
        ana.get("/console"),
        ana.get("/console/login"),
        ana.get("/console/nothing"),
        ana.get("/console/answers/none"),
        ana.post("/console/ask", {"question": "no SQL"}),
        ana.post("/console/ask", {"unknown": "field"}),
        *(ana.get(one.path) for one in PLACES if "{" not in one.path and one.show),
    ]
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert "http" not in policy
    for reply in replies:
        if reply.status != 404 or b"urn:discreet" not in reply.content:  # the API's own, stricter still
            assert {name: reply.headers.get(name) for name in HEADERS} == HEADERS, reply
        assert b"style=" not in reply.content
        assert b"<script>" not in reply.content
        assert b"onclick" not in reply.content


def test_the_shared_files_are_kept_by_browsers_until_they_change(service: Served) -> None:
    page = service.call("GET", "/console/login", None, Accept="text/html").content.decode()
    for name in ("style.css", "console.js", "icon.svg"):
        address = next(part for part in page.split('"') if part.startswith(f"/console/static/{name}?"))
        reply = service.call("GET", address, None)
        assert reply.status == 200
        assert "max-age" in reply.headers["cache-control"]
    assert service.call("GET", "/console/static/app.py", None, Accept="text/html").status == 404


def test_a_browser_is_sent_on_from_the_root_and_a_program_is_not(service: Served) -> None:
    reply = service.call("GET", "/", None, Accept="text/html,*/*")
    assert (reply.status, reply.headers["location"]) == (303, "console")
    assert service.call("GET", "/", None).status == 404
    assert service.call("GET", "/tables", "ana").status == 200
    for path in ("/console", "/console/tables"):
        reply = service.call("GET", path, None, Accept="text/html")
        assert (reply.status, reply.headers["location"]) == (303, "/console/login")
    reply = service.call("GET", "/console/tables", None, Accept="application/json")
    assert (reply.status, reply.json["code"]) == (401, "token")


@pytest.mark.parametrize("who", HOLDERS)
def test_each_role_has_its_pages(service: Served, who: str) -> None:
    if HOLDERS[who] is Role.MONITOR:
        visitor = Visitor(service)
        visitor.get("/console/login")
        assert visitor.post("/console/login", {"token": service.tokens[who]}).status == 403
        return
    visitor = logged_in(service, who)
    for one in PLACES:
        if "{" in one.path or one.show is None:
            continue
        mine = HOLDERS[who] in one.roles
        page, plain = visitor.get(one.path), service.call("GET", one.path, who, Accept="application/json")
        assert (page.status, plain.status) == ((200, 200) if mine else (403, 403)), one.path
        if mine and one.path.endswith(".csv"):
            assert plain.headers["content-type"].startswith("text/csv")
            continue
        assert plain.headers["content-type"].startswith("application/")
        assert isinstance(plain.json, dict)


def test_a_token_that_does_not_hold_and_a_page_that_is_too_old(service: Served) -> None:
    visitor = Visitor(service)
    visitor.get("/console/login")
    for wrong in ("", "discreet_none", "x" * 10_000, "\x00", "é"):
        reply = visitor.post("/console/login", {"token": wrong})
        assert (reply.status, b"does not hold" in reply.content) == (401, True)
        assert wrong not in ("discreet_none", "é") or wrong.encode() not in reply.content
    for word, origin in (("", service.url), ("other", service.url), (visitor.word, "https://evil.example")):
        reply = visitor.post("/console/login", {"token": service.tokens["ana"], "form": word}, Origin=origin)
        assert reply.status == 403
    assert all("login" in name for name in visitor.cookies)


def test_a_cookie_is_the_hosts_alone_and_a_login_takes_a_new_one(service: Served) -> None:
    visitor = Visitor(service, {f"discreet-{service.port}": "chosen-by-somebody-else"})
    visitor.get("/console/login")
    reply = visitor.post("/console/login", {"token": service.tokens["ana"]})
    assert "chosen" not in visitor.cookies[f"discreet-{service.port}"]
    assert all(word in reply.headers["set-cookie"] for word in ("HttpOnly", "SameSite=strict", "Path=/"))
    assert "Domain" not in reply.headers["set-cookie"]
    before = dict(visitor.cookies)
    visitor.get("/console/login")
    visitor.post("/console/login", {"token": service.tokens["ana"]})
    assert Visitor(service, before).get("/console/tables").status == 303  # the session of before has ended


def test_what_changes_something_needs_the_sessions_own_word_and_page(service: Served) -> None:
    ana, bob = logged_in(service, "ana"), logged_in(service, "bob")
    said = {"question": QUESTION, "epsilon": "0.001", "request": "forged"}
    head = service.curator.ledger.head
    mine = ana.word
    for word, headers in (
        ("", {}),
        ("wrong", {}),
        (bob.word, {}),
        (mine, {"Origin": "https://evil.example"}),
        (mine, {"Origin": "null"}),
        (mine, {"Origin": ""}),
        (mine, {"Sec-Fetch-Site": "cross-site"}),
        (mine, {"Sec-Fetch-Site": "same-site"}),
        (mine, {"Sec-Fetch-Site": "none"}),
    ):
        for path in ("/console/ask", "/console/check", "/console/logout"):
            fields = {"form": word} if path.endswith("logout") else {**said, "form": word}
            assert ana.post(path, fields, **headers).status in (400, 403), (word, headers)
    assert service.curator.ledger.head == head
    assert ana.get("/console/tables").status == 200
    assert ana.post("/console/logout", {"form": mine}).status == 303
    assert ana.get("/console/tables").status == 303


def test_a_session_ends_with_its_token_its_account_and_its_logout(service: Served) -> None:
    accounts, enter = service.accounts, service.curator.ledger.enter
    token, made = accounts.new_token("eve", None, enter)
    visitor = Visitor(service)
    visitor.get("/console/login")
    visitor.post("/console/login", {"token": token})
    assert visitor.get("/console/tables").status == 200
    stolen = dict(visitor.cookies)
    accounts.revoke("eve", made.number, enter)
    assert visitor.get("/console/tables").status == 303
    assert Visitor(service, stolen).get("/console/tables").status == 303
    assert logged_in(service, "eve").get("/console/tables").status == 200


def test_a_form_sent_twice_is_one_question(service: Served) -> None:
    ana = logged_in(service, "ana")
    said = {"question": QUESTION, "by": "epsilon", "epsilon": "0.01", "request": "one"}
    first = ana.post("/console/ask", said)
    head = service.curator.ledger.head
    second = ana.post("/console/ask", said)
    assert first.status == second.status == 303
    assert first.headers["location"] == second.headers["location"]
    assert service.curator.ledger.head == head
    page = ana.get(first.headers["location"])
    assert page.status == 200
    for form, begin in (("csv", b"city,n"), ("json", b"{"), ("html", b"<!doctype"), ("parquet", b"PAR1")):
        reply = ana.get(f"{first.headers['location']}/{form}")
        assert reply.content.lower().startswith(begin.lower())
        assert reply.headers["content-disposition"] == f'attachment; filename="answer.{form}"'
    assert ana.get(f"{first.headers['location']}/exe").status == 404
    assert logged_in(service, "bob").get(first.headers["location"]).status == 404
    assert service.curator.ledger.head == head
    listed = service.call("GET", "/console/history", "ana", Accept="application/json").json
    assert listed["entries"][0]["question"] == QUESTION
    assert QUESTION not in logged_in(service, "bob").get("/console/history").content.decode()


def test_the_history_has_the_whole_of_a_question_that_is_computed(service: Served) -> None:
    """Its measured tables are questions of their own in the ledger; it stands there too, to be opened again."""
    ana = logged_in(service, "ana")
    question = f"SELECT MAX(n) AS most FROM ({QUESTION}) AS x"
    assert ana.post("/console/ask", {"question": question, "epsilon": "0.01", "request": "computed"}).status == 303
    (entry,) = [
        one
        for one in service.call("GET", "/console/history", "ana", Accept="application/json").json["entries"]
        if one["question"] == question
    ]
    assert (entry["status"], entry["price"]) == ("computed", "free")
    assert "computed from measured tables" in ana.get("/console/history").content.decode()
    page = logged_in(service, "owner").get(f"/console/log/{entry['entry']}").content.decode()
    assert "computed from measured tables" in page
    assert "asked before" not in page


def test_an_account_that_is_made_anew_sees_nothing_of_before(service: Served) -> None:
    accounts, enter = service.accounts, service.curator.ledger.enter
    for turn in range(2):
        accounts.add(Account("guest", Role.ANALYST, "ana"), enter)
        token, _ = accounts.new_token("guest", None, enter)
        visitor = Visitor(service)
        visitor.get("/console/login")
        visitor.post("/console/login", {"token": token})
        page = visitor.get("/console/history").content.decode()
        assert "all_of_it" not in page, turn
        asked = visitor.post(
            "/console/ask",
            {"question": "SELECT COUNT(*) AS all_of_it FROM visits", "epsilon": "0.01", "request": str(turn)},
        )
        assert asked.status == 303
        assert "all_of_it" in visitor.get("/console/history").content.decode()
        assert visitor.get(asked.headers["location"]).status == 200
        accounts.end("guest", enter)
        assert visitor.get(asked.headers["location"]).headers["location"] == "/console/login"
        time.sleep(1.1)  # the ledger's moments are seconds


def test_answers_are_kept_up_to_so_many_bytes(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(who: Visitor, request: str) -> str:
        reply = who.post("/console/ask", {"question": QUESTION, "epsilon": "0.01", "request": request})
        return reply.headers["location"]

    ana, bob = logged_in(service, "ana"), logged_in(service, "bob")
    first, second = asked(ana, "small"), asked(ana, "smaller")
    assert [ana.get(one).status for one in (first, second)] == [200, 200]
    with monkeypatch.context() as patch:
        patch.setattr("discreet.console.analyst.MOST_BYTES", 1)
        third = asked(ana, "smallest")  # the latest is kept in any case
        assert [ana.get(one).status for one in (first, second, third)] == [404, 404, 200]
    with monkeypatch.context() as patch:
        patch.setattr("discreet.console.app.MOST_BYTES", 1)
        of_bob = asked(bob, "small")
        assert bob.get(of_bob).status == 200
        assert ana.get(third).status == 404


def test_a_space_where_no_line_ends_stays_in_a_question(service: Served) -> None:
    ana = logged_in(service, "ana")
    said = "SELECT COUNT(*) AS n FROM visits WHERE city = 'a\u00a0b\u202f\u202e'"
    page = ana.post("/console/ask", {"question": said, "epsilon": "-1"}).content.decode()
    assert "a\u00a0b\u202f\\u202e" in page


def test_what_is_refused_is_said_beside_the_question_which_stays(service: Served) -> None:
    ana = logged_in(service, "ana")
    reply = ana.post("/console/ask", {"question": "SELECT nonsense FROM\n  visits", "epsilon": "0.1"})
    assert reply.status == 422
    assert b"SELECT nonsense FROM\n  visits</textarea>" in reply.content
    assert b'role="alert"' in reply.content
    for said in (
        {},
        {"question": "x" * 30_000},
        {"question": QUESTION, "by": "within"},
        {"question": QUESTION, "epsilon": "-1"},
    ):
        assert ana.post("/console/ask", said).status in (413, 422)
    check = ana.post("/console/check", {"question": QUESTION, "by": "within", "column": "n", "error": "100"})
    assert check.status == 200
    assert "±" in check.content.decode()
    plain = service.call(
        "POST", "/console/check", "ana", {"question": QUESTION, "epsilon": 0.1}, Accept="application/json"
    )
    assert plain.json["price"]["epsilon"] == 0.1


def test_the_line_for_a_shell_on_its_page(service: Served) -> None:
    (block,) = blocks(ROOT / "docs" / "console.md")
    said = {**os.environ, "URL": service.url, "TOKEN": service.tokens["ana"], "NO_PROXY": "127.0.0.1"}
    run = subprocess.run(["bash", "-c", block.body], env=said, capture_output=True, text=True, check=True)
    assert json.loads(run.stdout)["analyst"] == "ana"


def test_long_answers_of_one_hold_up_nobody_elses_pages(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    ana, bob = logged_in(service, "ana"), logged_in(service, "bob")
    asked = ana.post("/console/ask", {"question": QUESTION, "epsilon": "0.01", "request": "long"})
    written, go_on, begun = analyst.saved, threading.Event(), []

    def slow(release: Release, form: str) -> bytes:
        begun.append(form)
        assert go_on.wait(300)
        return written(release, form)

    monkeypatch.setattr(analyst, "saved", slow)
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(ana.get, f"{asked.headers['location']}/csv") for _ in range(8)]
        try:
            while not begun:
                time.sleep(0.01)
            for path in ("/console/balance", "/console/history"):
                assert bob.get(path).status == 200  # it would come after all of them
            assert len(begun) == 1
        finally:
            go_on.set()
        assert {one.result().status for one in waiting} == {200}


def test_a_question_without_a_name_is_asked_anew(service: Served) -> None:
    said = {"question": QUESTION, "epsilon": "0.02"}
    first, again = (service.call("POST", "/console/ask", "ana", said, Accept="application/json").json for _ in range(2))
    assert (again["rows"], again["charged"]["epsilon"]) == (first["rows"], 0)
    assert again["answer"] != first["answer"]  # what is kept is not taken for what the data say now


def test_a_tick_measures_afresh(service: Served) -> None:
    def charged(question: str, epsilon: str, **more: str) -> float:
        said = {"question": question, "epsilon": epsilon, **more}
        reply = service.call("POST", "/console/ask", "ana", said, Accept="application/json").json
        return float(reply["charged"]["epsilon"])

    where = "FROM visits WHERE age > 20 GROUP BY city"
    assert charged(f"SELECT city, COUNT(*) AS n, SUM(age) AS s {where}", "0.02") == 0.02
    assert charged(f"SELECT city, COUNT(*) AS n {where}", "0.005") == 0
    assert charged(f"SELECT city, COUNT(*) AS n {where}", "0.005", afresh="yes") == 0.005
    page = logged_in(service, "ana").get("/console/ask?afresh=yes").content.decode()
    assert 'name="afresh" value="yes" checked' in page


def test_a_draft_comes_back_as_it_was_written(service: Served) -> None:
    ana = logged_in(service, "ana")
    page = ana.get("/console/ask?question=SELECT+'a%09b'%0AFROM+visits").content.decode()
    assert "SELECT &#39;a\tb&#39;\nFROM visits</textarea>" in page
    said = {"question": 'SELECT COUNT(*) AS "a\u00a0b" FROM visits', "by": "epsilon", "epsilon": "0.1"}
    check = ana.post("/console/check", said).content.decode()
    plain = json.loads(unescape(check.partition('data-plain="')[2].partition('"')[0]))
    assert list(plain["errors"]) == ["a\u00a0b"]
    assert service.call("HEAD", "/console/login", None, Accept="text/html").status == 200
