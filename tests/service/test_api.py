"""The service over a real socket: who may do what, what comes back, and what a request that is none gets."""

from __future__ import annotations

import csv
import io
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow.ipc
import pytest

import discreet
from discreet.errors import BudgetError, DeclarationError, EngineError, Fault, QuestionError
from discreet.release import Release
from discreet.service import requests
from discreet.service.accounts import Account
from discreet.service.api import HEADERS, OWNING, PATHS
from discreet.service.roles import Role
from face_tools import Data, spent
from service_tools import HOLDERS, Served, served
from waiting import until

COUNT = {"question": "SELECT city, COUNT(*) AS n FROM visits GROUP BY city", "epsilon": "0.1"}
MORE = {"epsilon": "0.5", "reason": "the second wave"}
UNKNOWN = {"approve": False, "reason": "there is none"}
NONE = {"table": "nothing"}
SHAPES = {
    "check": requests.QUESTION,
    "explain": requests.PRICED,
    "ask": requests.PRICED,
    "publish": requests.PUBLISH,
    "workload": requests.WORKLOAD,
    "request_more": requests.MORE,
    "decide": requests.DECIDED,
    "freeze": requests.ACT,
    "lift": requests.ACT,
    "refresh": requests.REFRESH,
    "add": requests.ACCOUNT,
    "end": requests.END,
    "new_token": requests.TOKEN,
    "revoke": requests.REVOKE,
}
"""What the body of each path may have."""

OPENAPI: Any = json.loads((files("discreet.service") / "openapi.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def service(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("service")
    (folder / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(folder) as found:
        yield found


def fits(value: Any, schema: Mapping[str, Any], where: str = "") -> None:
    """Holds a value against a schema: of JSON Schema what the document uses."""
    if "$ref" in schema:
        return fits(value, OPENAPI["components"]["schemas"][schema["$ref"].rpartition("/")[2]], where)
    if "anyOf" in schema:
        for one in schema["anyOf"]:
            try:
                return fits(value, one, where)
            except AssertionError:
                pass
        raise AssertionError(f"{where}: {value!r} fits none of {schema['anyOf']}")
    assert value in schema.get("enum", [value]), where
    kinds = schema.get("type", [])
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    name = names.get(type(value), "null")
    if kinds:
        assert {name, "number" if name == "integer" else name} & ({kinds} if isinstance(kinds, str) else set(kinds)), (
            f"{where}: {value!r} is no {kinds}"
        )
    if name == "array":
        for one in value:
            fits(one, schema.get("items", {}), f"{where}[]")
    if name == "object":
        known = schema.get("properties", {})
        assert set(schema.get("required", ())) <= set(value), f"{where}: {set(schema['required']) - set(value)}"
        for key, one in value.items():
            more = schema.get("additionalProperties", {})
            assert key in known or more is not False, f"{where}.{key}"
            fits(one, known.get(key, more if isinstance(more, dict) else {}), f"{where}.{key}")
    return None


def promised(path: str, method: str, status: int) -> Mapping[str, Any]:
    """What the document says of a reply."""
    said = OPENAPI["paths"][path][method.lower()]["responses"]
    assert str(status) in said, f"{method} {path}: {status} is not in the document"
    found = said[str(status)]
    if "$ref" in found:
        found = OPENAPI["components"]["responses"][found["$ref"].rpartition("/")[2]]
    return dict(found["content"])


def test_the_document_has_the_paths_and_what_they_take() -> None:
    told = {(path, method.upper()) for path, one in OPENAPI["paths"].items() for method in one}
    assert told == {(one.path, one.method) for one in PATHS}
    for one in PATHS:
        operation = OPENAPI["paths"][one.path][one.method.lower()]
        assert operation["operationId"] == one.name
        assert (operation.get("security") == []) is (not one.roles)
        if one.method == "POST":
            named = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
            assert set(OPENAPI["components"]["schemas"][named]["properties"]) == set(SHAPES[one.name])
    assert OPENAPI["paths"]["/ask"]["post"]["responses"]["200"]["content"].keys() == set(requests.FORMS)


@pytest.mark.parametrize("who", [*HOLDERS, None, "discreet_no-such-token"])
def test_who_may_do_what(service: Served, who: str | None) -> None:
    """Every path for every role: the status, and a body as the document has it."""
    for path in PATHS:
        others: dict[str, Any] = {"check": {"question": COUNT["question"]}, "publish": NONE, "workload": NONE}
        others |= {"request_more": MORE, "decide": UNKNOWN}
        said = None if path.method == "GET" else others.get(path.name, COUNT)
        reply = service.call(path.method, path.path.format(job="none", number=1, name="nobody"), who, said)
        role = HOLDERS.get(who or "")
        act = path.method == "POST" and path.roles == OWNING and path.name != "decide"
        found = 404 if "{job}" in path.path else 422 if said in (NONE, UNKNOWN) else 400 if act else 200
        wanted = found if not path.roles or role in path.roles else 401 if role is None else 403
        assert reply.status == wanted, (path.path, reply.content)
        kind = reply.headers["content-type"].split(";")[0]
        found = reply.content.decode() if kind == "text/plain" else reply.json
        fits(found, promised(path.path, path.method, reply.status)[kind]["schema"], path.path)
        assert HEADERS.items() <= reply.headers.items()
        assert "server" not in reply.headers
        if wanted == 401:
            assert reply.headers["www-authenticate"] == "Bearer"
            assert reply.json["code"] == "token"


def test_a_release_is_the_same_here_and_there(service: Served) -> None:
    question = "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY city"
    with service.connect("ana") as there:
        first = there.ask(question, epsilon="0.3", request="same")
        again = there.ask(question, epsilon=0.3, request="same")
        local = service.curator.ask(question, epsilon="0.3", analyst="ana")
        assert first.charged.epsilon == 0.3
        assert not again.charged
        assert (again.rows, again.intervals, again.simultaneous()) == (
            local.rows,
            local.intervals,
            local.simultaneous(),
        )
        assert again.to_json() == local.to_json()
        assert (repr(again), again._repr_html_()) == (repr(local), local._repr_html_())
        assert again.to_pandas().equals(local.to_pandas())
        mine = service.curator.explain(question, epsilon="0.3", analyst="ana")
        assert repr(there.explain(question, epsilon="0.3")) == repr(mine)
        assert there.explain(question, within={"n": 5}, together=True).price.epsilon > 0
        assert repr(there.tables) == repr(service.curator.tables)
        assert there.check_question(question) == ("visits",)
        assert there.budget == service.curator.budget.analysts["ana"]
    with service.connect("owner") as there:
        assert there.budget == service.curator.budget
        assert there.ledger["head"] == service.curator.ledger.head


def test_errors_are_the_same_here_and_there(service: Served) -> None:
    for question, price in [
        ("SELECT nothing FROM visits", "0.1"),
        ("SELECT COUNT(*) AS n FROM visits", "9"),
        ("SELECT COUNT(*) AS n FROM visits", "-1"),
        ("SELECT COUNT(*) AS n FROM visits", "1e999999999"),
        ("DROP TABLE visits", "0.1"),
    ]:
        with pytest.raises(discreet.Error) as local:
            service.curator.ask(question, epsilon=price, analyst="bob")
        with pytest.raises(discreet.Error) as there, service.connect("bob") as remote:
            remote.ask(question, epsilon=price)
        assert type(there.value) is type(local.value)
        assert str(there.value) == str(local.value)
        assert there.value.to_dict() == local.value.to_dict()
        status = 402 if isinstance(local.value, BudgetError) else 422
        reply = service.call("POST", "/ask", "bob", {"question": question, "epsilon": price})
        assert reply.status == status
        fits(reply.json, promised("/ask", "POST", status)["application/problem+json"]["schema"])


def test_forms_of_an_answer(service: Served) -> None:
    plain = service.call("POST", "/ask", "ana", COUNT)
    release = plain.json
    table = service.call("POST", "/ask", "ana", COUNT, Accept="application/json;q=0.5, text/csv")
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(table.content.decode())))
    assert [row["city"] for row in rows] == [row["city"] for row in release["rows"]]
    assert set(rows[0]) == {"city", "n", "n_low", "n_high"}
    arrow = service.call("POST", "/ask", "ana", COUNT, Accept="application/vnd.apache.arrow.stream")
    assert pyarrow.ipc.open_stream(arrow.content).read_all()["n"].to_pylist() == [row["n"] for row in release["rows"]]
    assert service.call("POST", "/ask", "ana", COUNT, Accept="*/*").headers["content-type"] == "application/json"


def post(service: Served, body: bytes, *headers: str, length: int | None = None) -> bytes:
    """The bytes of a question's request."""
    lines = [
        "POST /ask HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {service.tokens['ana']}",
        "Content-Type: application/json",
        f"Content-Length: {len(body) if length is None else length}",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


BODIES: list[tuple[int, str, bytes, dict[str, str]]] = [
    (400, "body", b"", {}),
    (400, "body", b"{", {}),
    (400, "body", b"[" * 60_000, {}),
    (400, "body", b"[]", {}),
    (400, "body", b"{}", {}),
    (400, "body", json.dumps(COUNT).encode("utf-16"), {}),
    (400, "body", b'{"question": "SELECT \xff"}', {}),
    (400, "body", b'{"question": "SELECT 1", "epsilon": NaN}', {}),
    (400, "body", b'{"question": ["SELECT 1"]}', {}),
    (400, "body", b'{"question": "SELECT 1", "epsilon": true}', {}),
    (400, "body", b'{"question": "SELECT 1", "within": {"n": [1]}}', {}),
    (400, "body", b'{"question": "SELECT 1", "analyst": "bob"}', {}),
    (400, "body", b'{"question": "SELECT 1", "request": "x"}', {}),
    (400, "body", b'{"question": "SELECT 1", "epsilon": "0.1", "epsilon": "3"}', {}),
    (400, "body", b'{"question": "SELECT 1", "within": {"n": 1, "n": 500}}', {}),
    (400, "request", b"{}", {"Idempotency_Key": "a b"}),
    (400, "request", b"{}", {"Idempotency_Key": "x" * 201}),
    (413, "size", b" " * 70_000, {}),
    (413, "size", b" " * 3_000_000, {}),
    (415, "type", b"{}", {"Content_Type": "text/plain"}),
    (415, "type", b"{}", {"Content_Encoding": "gzip"}),
    (422, "text", b'{"question": "SELECT COUNT(*) AS n FROM visits WHERE city = \'\\ud800\'"}', {}),
]


@pytest.mark.parametrize(("status", "code", "body", "headers"), BODIES)
def test_a_body_that_is_none(service: Served, status: int, code: str, body: bytes, headers: dict[str, str]) -> None:
    before = service.curator.ledger.head
    reply = service.call("POST", "/ask", "ana", body=body, **headers)
    assert reply.status == status, reply.content
    if code != "text":
        assert reply.json["code"] == code
    assert set(reply.json) == {"type", "title", "status", "detail", "code", "where", "fix"}
    fits(reply.json, promised("/ask", "POST", status)["application/problem+json"]["schema"])
    assert service.curator.ledger.head == before


@pytest.mark.parametrize("query", ["part=north", "epsilon=0.01", "rows=packed", "reuse=", "part", "&", ";"])
def test_what_takes_a_body_takes_no_query(service: Served, query: str) -> None:
    """What is written behind the path, where nobody reads it, is refused before anything is spent or done."""
    before, accounts = service.curator.ledger.head, service.call("GET", "/analysts", "owner").json["accounts"]
    said = {"question": COUNT["question"], "table": "visits", "reason": "why", "account": "new", "analyst": "ana"}
    said |= {"tables": ["visits"], "epsilon": "0.1", "token": 1, "approve": True, "days": 1}
    for path in PATHS:
        if path.method == "POST":
            shape = SHAPES[path.name]
            whole = {name: value for name, value in said.items() if name in shape}
            place = path.path.format(number=1, name="ana")
            who = "owner" if Role.OWNER in path.roles else "ana"
            refused = service.call("POST", f"{place}?{query}", who, whole)
            assert (refused.status, refused.json["code"], refused.json["where"]) == (400, "query", "query"), place
            fits(refused.json, promised(path.path, "POST", 400)["application/problem+json"]["schema"])
    assert service.curator.ledger.head == before
    assert service.call("GET", "/analysts", "owner").json["accounts"] == accounts
    assert service.call("POST", "/check?", "ana", {"question": COUNT["question"]}).status == 200


def test_half_a_body_and_a_slow_one(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    before = service.curator.ledger.head
    whole = json.dumps(COUNT).encode()
    assert b" 200 " not in service.raw(post(service, whole[:20], length=len(whole)), half=True)
    monkeypatch.setattr("discreet.service.requests.BODY_SECONDS", 0.1)
    reply = service.raw(post(service, whole[:20], length=len(whole)))
    assert reply.startswith(b"HTTP/1.1 408 ")
    assert b'"slow"' in reply
    assert b" 400 " in service.raw(b"nonsense\r\n\r\n")
    assert service.curator.ledger.head == before


def test_what_is_no_http_is_in_no_log(
    service: Served, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nor where it comes after a head that was, while a reply is made."""
    known = f"Host: localhost\r\nAuthorization: Bearer {service.tokens['ana']}\r\n"
    for said in (
        f"POST /ask HTTP/1.1\r\n{known}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        f"POST /secret HTTP/1.1\r\n{known}Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "POST /ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nsecret\r\n",
        f"POST /ask HTTP/1.1\r\n{known}Transfer-Encoding: gzip\r\n\r\nsecret",
        "secret\r\n\r\n",
    ):
        service.raw(said.encode(), half=True)
    assert service.call("GET", "/health", None).status == 200
    assert not caplog.messages
    assert not "".join(capfd.readouterr())


def test_paths_and_methods_that_are_none(service: Served) -> None:
    for method, path, status in [("GET", "/nothing", 404), ("GET", "/ask", 405), ("DELETE", "/tables", 405)]:
        reply = service.call(method, path, "ana")
        assert reply.status == status
        fits(reply.json, OPENAPI["components"]["schemas"]["Problem"])
    assert set(reply.headers["allow"].split(", ")) == {"GET", "HEAD"}
    for path in ("/ledger/", "//ledger", "/ledger%2f", "/%2fexample.org/", "/x/../ledger", "/LEDGER"):
        reply = service.call("GET", path, "owner")  # nothing leads elsewhere, and the token with it
        assert (reply.status, reply.headers.get("location")) == (404, None)


def test_a_header_that_stands_there_twice_says_nothing(service: Served) -> None:
    before = service.curator.ledger.head
    whole = json.dumps({"question": "SELECT COUNT(*) AS n FROM visits WHERE age > 14"}).encode()
    for again, status in [
        (f"Authorization: Bearer {service.tokens['owner']}", b"401"),
        ("Idempotency-Key: b", b"400"),
        ("Content-Type: application/json", b"415"),
        ("Content-Encoding: gzip", b"415"),
    ]:
        twice = ("Idempotency-Key: a", "Content-Encoding: identity", "Connection: close", again)
        assert service.raw(post(service, whole, *twice)).split()[1] == status, again
    assert service.curator.ledger.head == before


def test_a_request_is_charged_once_and_belongs_to_one_question(service: Served) -> None:
    asked = {"question": "SELECT COUNT(*) AS n FROM visits WHERE age > 3", "epsilon": 0.1}
    first = service.call("POST", "/ask", "ana", asked, Idempotency_Key="once").json
    again = service.call("POST", "/ask", "ana", asked, Idempotency_Key="once").json
    assert (first["charged"]["epsilon"], again["charged"]["epsilon"]) == (0.1, 0)
    assert first["rows"] == again["rows"]
    for other in ({**asked, "epsilon": 0.2}, {**asked, "question": asked["question"] + " "}):
        reply = service.call("POST", "/ask", "ana", other, Idempotency_Key="once")
        assert (reply.status, reply.json["code"]) == (422, "request")
    with pytest.raises(QuestionError, match="another question"), service.connect("ana") as there:
        there.ask("SELECT COUNT(*) AS m FROM visits", epsilon=0.1, request="once")
    elsewhere = {**asked, "question": "SELECT AVG(age) AS a FROM visits"}
    for question in (elsewhere, asked):
        assert service.call("POST", "/ask", "owner", question).status == 200
    assert service.call("POST", "/ask", "owner", asked, Idempotency_Key="once").status == 200  # a name is an account's


def test_accounts_of_one_analyst_have_names_of_requests_of_their_own(service: Served) -> None:
    bound = Account("ana.too", Role.ANALYST, "ana")
    service.accounts.add(bound, service.curator.ledger.enter)
    token, _ = service.accounts.new_token("ana.too", None, service.curator.ledger.enter)
    for who, age in (("ana", 11), (token, 12)):
        asked = {"question": f"SELECT COUNT(*) AS n FROM visits WHERE age > {age}", "epsilon": "0.05"}
        reply = service.call("POST", "/ask", who, asked, Idempotency_Key="of-both")
        assert reply.status == 200, reply.content
        assert reply.json["charged"]["epsilon"] == 0.05


def test_why_a_table_is_unfit_is_told_to_the_owner_alone(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def unfit(*_: object, **__: object) -> Release:
        raise DeclarationError([Fault("tables.visits.source", "visits.csv has a secret", "look")], code="source")

    monkeypatch.setattr(service.curator, "ask", unfit)
    asked = {"question": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.05"}
    assert b"secret" in service.call("POST", "/ask", "owner", asked).content
    reply = service.call("POST", "/ask", "ana", asked)
    assert (reply.status, reply.json["code"]) == (503, "tables")
    assert b"secret" not in reply.content
    assert b"csv" not in reply.content


def test_names_of_requests_are_never_those_of_a_question_s_parts(service: Served) -> None:
    """What a question of two tables measures has names too: a half of it is not charged and then refused."""
    parts = "(SELECT COUNT(*) AS n FROM visits WHERE age > {0}) AS a, (SELECT SUM(age) AS m FROM visits) AS b"
    for age, name in ((15, "first"), (16, "second//1")):
        single = {"question": f"SELECT COUNT(*) AS n FROM visits WHERE age = {age}", "epsilon": "0.01"}
        assert service.call("POST", "/ask", "owner", single, Idempotency_Key=f"{name}/2").status == 200
        several = {"question": f"SELECT a.n, b.m FROM {parts.format(age)}", "epsilon": "0.02"}
        reply = service.call("POST", "/ask", "owner", several, Idempotency_Key=name)
        assert reply.status == 200, reply.content


def test_a_refused_request_may_be_mended_under_its_name(service: Served) -> None:
    wrong = {"question": "SELECT nothing FROM visits", "epsilon": 0.1}
    assert service.call("POST", "/ask", "ana", wrong, Idempotency_Key="mended").status == 422
    right = {**wrong, "question": "SELECT COUNT(*) AS n FROM visits WHERE age > 4"}
    assert service.call("POST", "/ask", "ana", right, Idempotency_Key="mended").status == 200


def test_analysts_have_budgets_of_their_own(service: Served) -> None:
    bob, ana = (spent(service.curator, name) for name in ("bob", "ana"))
    asked = {"question": "SELECT COUNT(*) AS n FROM visits WHERE age > 7", "epsilon": "0.05"}
    assert service.call("POST", "/ask", "bob", asked).json["charged"]["epsilon"] == 0.05
    assert spent(service.curator, "bob") == bob + Fraction(1, 20)
    assert spent(service.curator, "ana") == ana
    reply = service.call("POST", "/ask", "bob", {**asked, "epsilon": "0.19"})
    assert (reply.status, reply.json["code"]) == (402, "budget")
    assert service.call("POST", "/ask", "ana", {**asked, "epsilon": "0.19"}).status == 200
    assert service.call("GET", "/balance", "bob").json["analyst"] == "bob"
    assert service.call("GET", "/balance", "bob").json["analysts"] == {}
    whole = service.call("GET", "/balance", "eve").json
    assert set(whole["analysts"]) == {"ana", "bob"}
    assert whole["whole"] is None
    own = service.call("GET", "/balance", "ana").json
    assert own["whole"] == {"epsilon": "10", "delta": "1e-6", "used": whole["used"]}  # as each answer says
    assert own["total"]["epsilon"] == "4"
    with service.connect("ana") as there:
        assert "; of the whole budget " in repr(there.budget)


def test_one_question_of_an_analyst_at_a_time(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one runs another of his is put off, at no cost; others are answered."""
    runs, ends, ask = threading.Event(), threading.Event(), service.curator.ask
    replies: list[int] = []

    def slowly(*arguments: Any, **said: Any) -> Any:
        runs.set()
        assert ends.wait(300)
        return ask(*arguments, **said)

    def first() -> None:
        question = {"question": "SELECT COUNT(*) AS n FROM visits WHERE age > 9"}
        replies.append(service.call("POST", "/ask", "ana", question).status)

    monkeypatch.setattr(service.curator, "ask", slowly)
    other = {"question": "SELECT COUNT(*) AS n FROM visits"}
    thread = threading.Thread(target=first)
    thread.start()
    try:
        assert runs.wait(300)
        reply = service.call("POST", "/check", "ana", other)
        assert (reply.status, reply.headers["retry-after"]) == (429, "1")
        fits(reply.json, promised("/ask", "POST", 429)["application/problem+json"]["schema"])
        with pytest.raises(EngineError) as caught, service.connect("ana") as there:
            there.explain(other["question"], epsilon=0.1)
        assert caught.value.code == "busy"
        assert service.call("POST", "/check", "bob", other).status == 200
    finally:
        ends.set()
        thread.join()
    assert replies == [200]
    assert service.call("POST", "/check", "ana", other).status == 200


def test_too_many_that_wait_are_put_off(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.service.api.MOST_WAITING", 0)
    reply = service.call("POST", "/ask", "ana", COUNT)
    assert (reply.status, reply.json["code"]) == (429, "busy")
    for path in ("/tables", "/balance", "/ledger", "/ready"):  # nobody waits for another's question there
        assert service.call("GET", path, "owner").status == 200


def test_few_requests_of_an_account_are_open_at_once(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is slow of one leaves room for others'."""
    monkeypatch.setattr("discreet.service.api.MOST_OPEN", 1)
    slow = post(service, b"", length=10)
    with socket.create_connection(("127.0.0.1", service.port), timeout=300) as connection:
        connection.sendall(slow.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
        assert b" 100 " in connection.recv(100)  # it is open
        reply = service.call("GET", "/balance", "ana")
        assert (reply.status, reply.json["code"]) == (429, "busy")
        fits(reply.json, promised("/balance", "GET", 429)["application/problem+json"]["schema"])
        assert service.call("GET", "/balance", "bob").status == 200
        assert service.call("GET", "/health", None).status == 200
        connection.shutdown(socket.SHUT_RDWR)
    until(lambda: service.call("GET", "/balance", "ana").status == 200)


def test_a_token_holds_until_it_is_revoked_or_expires(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    enter = service.curator.ledger.enter
    token, known = service.accounts.new_token("bob", 2, enter)
    assert service.call("GET", "/balance", token).status == 200
    for wrong in (token[:-1], token + "x", token.swapcase(), "x" * 5_000):
        assert service.call("GET", "/balance", wrong).status == 401
    for header in ("", "Bearer", f"Basic {token}", token, f"Bearer{token}"):
        assert service.call("GET", "/balance", None, Authorization=header).status == 401
    assert service.call("GET", f"/balance?token={token}", None).status == 401
    with monkeypatch.context() as later:
        assert known.expires is not None
        later.setattr("discreet.service.accounts.time.time", lambda: float(known.expires or 0))
        assert service.call("GET", "/balance", token).status == 401
    assert service.call("GET", "/balance", token).status == 200
    assert [one.number for one in service.accounts.revoke("bob", known.number, enter)] == [known.number]
    assert service.call("GET", "/balance", token).status == 401
    assert service.call("GET", "/balance", "bob").status == 200  # his other one


def test_what_fails_in_here_is_told_and_logged_without_its_words(
    service: Served,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("exact value 4711")

    monkeypatch.setattr(service.curator, "ask", fail)
    reply = service.call("POST", "/ask", "ana", COUNT)
    assert (reply.status, reply.json["code"]) == (500, "bug")
    assert caplog.messages == ["a fault of discreet itself, of the kind RuntimeError"]
    said = reply.content.decode() + "".join(capfd.readouterr()) + caplog.text
    assert "4711" not in said
    assert service.tokens["ana"] not in said


def test_whoever_has_no_token_learns_no_name_of_a_file(service: Served) -> None:
    service.accounts._path.chmod(0o644)
    try:
        reply = service.call("GET", "/balance", "ana")
    finally:
        service.accounts._path.chmod(0o600)
    assert (reply.status, reply.json["code"]) == (503, "unavailable")
    assert b"clinic" not in reply.content
    fits(reply.json, promised("/balance", "GET", 503)["application/problem+json"]["schema"])


def test_a_connection_that_was_closed_is_opened_again(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with service.connect("ana") as there:
        assert there.budget.used >= 0
        assert there._connection is not None
        there._connection.sock.close()  # as if it had ended meanwhile
        with pytest.raises(EngineError, match="no answer"):
            there.ask(COUNT["question"], epsilon="0.1")  # it might have been heard
        assert there.ask(COUNT["question"], epsilon="0.1").columns == ["city", "n"]
        monkeypatch.setattr("discreet.remote._KEPT_SECONDS", 0)
        there._connection.sock.close()
        assert there.ask(COUNT["question"], epsilon="0.1").columns == ["city", "n"]


def test_the_ledger_tells_of_accounts_and_never_of_tokens(service: Served) -> None:
    entries = service.call("GET", "/ledger", "eve").json["entries"]
    notes = [one["note"] for one in entries if one["kind"] == "service"]
    assert notes[:4] == [
        "account owner made: owner",
        "token 1 made for owner",
        "account ana made: analyst of ana",
        "token 2 made for ana",
    ]
    written = b"".join(path.read_bytes() for path in Path(service.accounts._path).parent.glob("clinic.*"))
    for token in service.tokens.values():
        assert token.encode() not in written
        assert token.removeprefix("discreet_").encode() not in written
    assert service.curator.ledger.verify().head == service.curator.ledger.head


def test_a_question_without_a_price_gets_what_is_stored(service: Served) -> None:
    said = {"question": "SELECT COUNT(*) AS n FROM visits WHERE age > 3"}
    paid = service.call("POST", "/ask", "ana", {**said, "epsilon": "0.02"})
    again = service.call("POST", "/ask", "ana", said)
    assert (again.status, again.json["rows"]) == (200, paid.json["rows"])
    explained = service.call("POST", "/explain", "ana", said)
    assert explained.json["stored"] is True
    assert service.call("POST", "/explain", "bob", said).json["price"]["epsilon"] == 0.1  # as declared
    fits(explained.json, promised("/explain", "POST", 200)["application/json"]["schema"], "/explain")


def test_an_analyst_asks_for_more_and_the_owner_decides(service: Served) -> None:
    hostile = "\x1b[2J<script>alert(1)</script>\u202e"
    asked = service.call("POST", "/requests", "ana", {"epsilon": "0.3", "reason": hostile}).json
    assert asked["reason"] == "\\x1b[2J<script>alert(1)</script>\\u202e"
    assert service.call("POST", "/requests", "ana", {"epsilon": 0.3, "reason": hostile}).json == asked
    for who in ("bob", "ana"):
        assert {one["analyst"] for one in service.call("GET", "/requests", who).json["requests"]} <= {who}
    for who in ("owner", "eve", "ana"):
        assert asked in service.call("GET", "/requests", who).json["requests"]
    path = f"/requests/{asked['number']}"
    said = {"approve": True, "epsilon": "0.1", "reason": "a third will do"}
    for who in ("ana", "bob", "eve", "max"):
        assert service.call("POST", path, who, said).status == 403
    decided = service.call("POST", path, "owner", said).json
    assert (decided["state"], decided["approved"], decided["decided_by"]) == ("approved", "0.1", "owner")
    assert service.call("POST", path, "owner", said).json == decided
    balance = service.call("GET", "/balance", "ana").json
    assert (balance["total"]["epsilon"], balance["approved"]) == ("4.1", "0.1")
    for other in ({"approve": False, "reason": "no"}, {**said, "epsilon": "0.2"}):
        refused = service.call("POST", path, "owner", other)
        assert (refused.status, refused.json["code"]) == (422, "decided")
    bad: tuple[dict[str, Any], ...] = (
        {"approve": False, "epsilon": "1", "reason": "no"},
        {"approve": "yes", "reason": "no"},
        {"reason": "no"},
        {"approve": True},
    )
    assert {service.call("POST", path, "owner", one).status for one in bad} == {400}


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "1e400", "inf", 1e-12, "x", "11", "9.9"])
def test_more_that_nobody_can_have(service: Served, epsilon: Any) -> None:
    head = service.curator.ledger.head
    assert service.call("POST", "/requests", "ana", {"epsilon": epsilon, "reason": "all"}).status == 422
    assert service.curator.ledger.head == head
