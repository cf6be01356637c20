"""Tokens of a declared issuer: over a real socket, with an issuer that publishes real keys over TLS."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

import discreet
from console_tools import Visitor
from discreet.catalog import declare
from discreet.catalog.issuer import Issuer
from discreet.errors import DeclarationError
from discreet.service import oidc
from discreet.service.accounts import PREFIX, Account
from discreet.service.requests import RefusedRequest
from discreet.service.roles import Role
from face_tools import Command, Data
from issuer_tools import AUDIENCE, TestIssuer, encoded, running
from service_tools import CLINIC, Served, served
from waiting import until

DEEP = b"[" * 3_000
OTHER = rsa.generate_private_key(65537, 2048)
SMALL = rsa.generate_private_key(65537, 1024)


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestIssuer]:
    with running(tmp_path_factory.mktemp("issuer")) as (one, pem), pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", pem)
        small, other = (
            jwt.get_algorithm_by_name("RS256").to_jwk(key.public_key(), as_dict=True) for key in (SMALL, OTHER)
        )
        one.more += [
            {"kty": "oct", "k": encoded(b"secret"), "kid": "shared", "alg": "HS256"},
            {**small, "kid": "small"},
            {**other, "kid": "for-encryption", "use": "enc"},
            {**other, "kid": 7},
            {"kty": "RSA", "kid": "broken", "n": "", "e": ""},
        ]
        yield one


def declared(issuer: TestIssuer, claim: str = "sub") -> str:
    return f'{CLINIC}\n[service]\nissuer = "{issuer.url}"\naudience = "{AUDIENCE}"\nclaim = "{claim}"\n'


@pytest.fixture(scope="module")
def service(issuer: TestIssuer, data: Data, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("service")
    (folder / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(folder, declared(issuer)) as one:
        one.accounts.add(Account("gone", Role.ANALYST, "bob"), one.curator.ledger.enter)
        one.accounts.end("gone", one.curator.ledger.enter)
        one.accounts.add(Account("undeclared", Role.ANALYST, "carl"), one.curator.ledger.enter)
        yield one


@pytest.fixture(autouse=True)
def nothing_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert not any("eyJ" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_a_token_of_the_issuer_is_its_account(service: Served, issuer: TestIssuer, algorithm: str) -> None:
    token = issuer.token(algorithm)
    balance = service.call("GET", "/balance", token)
    assert (balance.status, balance.json["analyst"]) == (200, "ana")
    assert service.call("GET", "/ledger", token).status == 403
    assert service.call("GET", "/ledger", issuer.token(algorithm, sub="eve")).status == 200
    assert service.call("GET", "/balance", "ana").json == balance.json  # a token of ours, as before
    with discreet.connect(service.url, token=token) as there:
        assert there.ask("SELECT COUNT(*) AS n FROM visits", epsilon="0.01").columns == ["n"]


def test_what_else_a_true_token_may_say(service: Served, issuer: TestIssuer) -> None:
    now = int(time.time())
    for more in (
        {"aud": ["other", AUDIENCE]},
        {"exp": now - 10},  # clocks differ
        {"nbf": now - 5},
        {"headers": {"typ": "at+JWT"}},
        {"headers": {"jwk": {"kty": "oct", "k": "c2VjcmV0"}, "jku": "https://127.0.0.1:1/keys"}},
    ):
        assert service.call("GET", "/balance", issuer.token(**more)).status == 200


def public(issuer: TestIssuer) -> bytes:
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    found: bytes = issuer.keys["RS256"].public_key().public_bytes(serialization.Encoding.PEM, kind)
    return found


def own_key(issuer: TestIssuer) -> dict[str, Any]:
    plain: dict[str, Any] = jwt.get_algorithm_by_name("RS256").to_jwk(OTHER.public_key(), as_dict=True)
    return {"headers": {"jwk": plain, "jku": issuer.url + "/others", "x5u": issuer.url + "/others"}}


WRONG: dict[str, Callable[[TestIssuer], str]] = {
    "none": lambda one: one.forged({"alg": "none", "typ": "JWT", "kid": "our-RS256"}),
    "none, in other letters": lambda one: one.forged({"alg": "nOnE", "typ": "JWT", "kid": "our-RS256"}),
    "signed with the public key": lambda one: one.forged({"alg": "HS256", "kid": "our-RS256"}, public(one)),
    "signed with nothing": lambda one: one.forged({"alg": "HS256", "kid": "our-RS256"}, b"\0"),
    "a published secret": lambda one: one.forged({"alg": "HS256", "kid": "shared"}, b"secret"),
    "another key": lambda one: one.token(key=OTHER),
    "another key, which it brings along": lambda one: one.token(key=OTHER, **own_key(one)),
    "a key that is not published": lambda one: one.token(key=OTHER, headers={"kid": "theirs"}),
    "a path for a key": lambda one: one.forged({"alg": "HS256", "kid": "../../../dev/null"}, b"\0"),
    "a statement for a key": lambda one: one.token(headers={"kid": "x' UNION SELECT 'key"}),
    "no key named": lambda one: jwt.encode(one.claims(), one.keys["RS256"], "RS256"),
    "a key for encryption": lambda one: one.token(key=OTHER, headers={"kid": "for-encryption"}),
    "a key too small": lambda one: one.token(key=SMALL, headers={"kid": "small"}),
    "a key of another algorithm": lambda one: one.token("ES256", headers={"kid": "our-RS256"}),
    "an algorithm that is not listed": lambda one: one.token(
        "ES256K", ec.generate_private_key(ec.SECP256K1()), {"kid": "our-ES256"}
    ),
    "an unknown extension": lambda one: one.token(headers={"crit": ["x"], "x": 1}),
    "a detached payload": lambda one: one.token(headers={"crit": ["b64"], "b64": False}),
    "another issuer": lambda one: one.token(iss="https://login.example.org"),
    "nearly the issuer": lambda one: one.token(iss=one.url + "/"),
    "no issuer": lambda one: one.token(iss=None),
    "another audience": lambda one: one.token(aud="discreet-ward"),
    "other audiences": lambda one: one.token(aud=["a", "b"]),
    "no audience": lambda one: one.token(aud=None),
    "expired": lambda one: one.token(exp=int(time.time()) - 60),
    "never expires": lambda one: one.token(exp=None),
    "not yet": lambda one: one.token(nbf=int(time.time()) + 600),
    "of the future": lambda one: one.token(iat=int(time.time()) + 600),
    "of no moment": lambda one: one.token(iat=None),
    "endless": lambda one: one.token(exp=float("inf")),
    "a number for a name": lambda one: one.token(sub=7),
    "no name": lambda one: one.token(sub=None),
    "a logout": lambda one: one.token(headers={"typ": "logout+jwt"}),
    "an event": lambda one: one.token(events={"http://schemas.openid.net/event/backchannel-logout": {}}),
    "changed": lambda one: re.sub(r"\..*\.", f".{encoded(one.claims(sub='eve'))}.", one.token()),
    "without its end": lambda one: one.token()[:-20],
    "two of them": lambda one: f"{one.token()},{one.token()}",
    "huge": lambda one: one.token(more="x" * oidc.LONGEST),
    "a deep head": lambda one: f"{encoded(DEEP)}.{encoded(one.claims())}.{encoded(b'x')}",
    "a deep body": lambda _: f"{encoded({'alg': 'RS256', 'kid': 'our-RS256'})}.{encoded(DEEP)}.{encoded(b'x')}",
    "a head that is a list": lambda one: f"{encoded([])}.{encoded(one.claims())}.{encoded(b'x')}",
    "dots": lambda _: ".." * 10,
    "no text": lambda _: "\xe9\xff",
    "ours, but for its end": lambda one: PREFIX + one.token(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_token_is_nobodys(service: Served, issuer: TestIssuer, kind: str) -> None:
    assert service.call("GET", "/balance", issuer.token()).status == 200
    reply = service.call("GET", "/balance", WRONG[kind](issuer))
    assert (reply.status, reply.json["code"]) == (401, "token")
    assert reply.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "name", ["owner", "nobody", "gone", "undeclared", "ANA", "ana ", "", "' OR 1=1 --", "a" * 3_000]
)
def test_a_name_without_an_account_is_let_in_nowhere(service: Served, issuer: TestIssuer, name: str) -> None:
    reply = service.call("GET", "/balance", issuer.token(sub=name))
    assert (reply.status, reply.json["code"]) == (403, "account")


def test_an_account_that_is_ended_is_nobodys_at_once(service: Served, issuer: TestIssuer) -> None:
    service.accounts.add(Account("short", Role.AUDITOR), service.curator.ledger.enter)
    token = issuer.token(sub="short")
    assert service.call("GET", "/ledger", token).status == 200
    service.accounts.end("short", service.curator.ledger.enter)
    assert service.call("GET", "/ledger", token).status == 403


# keys


def test_a_session_ends_with_the_account_also_where_its_name_is_given_again(
    service: Served, issuer: TestIssuer
) -> None:
    accounts, enter = service.accounts, service.curator.ledger.enter
    accounts.add(Account("sam", Role.ANALYST, "bob"), enter)
    visitor = Visitor(service)
    visitor.get("/console/login")
    assert visitor.post("/console/login", {"token": issuer.token(sub="sam")}).status == 303
    assert visitor.get("/console/tables").status == 200
    accounts.end("sam", enter)
    time.sleep(1.1)  # accounts are made at whole seconds
    accounts.add(Account("sam", Role.AUDITOR), enter)
    assert visitor.get("/console/balance").headers["location"] == "/console/login"


def test_a_session_ends_with_its_token(service: Served, issuer: TestIssuer) -> None:
    for seconds in (2, 10, 60):
        visitor = Visitor(service)
        visitor.get("/console/login")
        soon = int(time.time()) + seconds
        visitor.post("/console/login", {"token": issuer.token(exp=soon)})
        if visitor.get("/console/tables").status == 200:
            break  # only a busy machine needs longer
    else:
        raise AssertionError("nobody was let in")
    until(lambda: visitor.get("/console/tables").headers.get("location") == "/console/login", every=0.1)
    assert time.time() >= soon


def known(issuer: TestIssuer, *tokens: str, **constants: float) -> list[str]:
    """What comes of these tokens, at once, where nothing was asked of the issuer before: names, or statuses."""

    async def all_of_them() -> list[str]:
        one = oidc.Issued(Issuer(issuer.url, AUDIENCE))
        return [await named(one, token) for token in tokens]

    issuer.asked.clear()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in constants.items():
            patch.setattr(oidc, name, value)
        return asyncio.run(all_of_them())


async def named(one: oidc.Issued, token: str) -> str:
    try:
        return (await one.holder(token))[0]
    except RefusedRequest as refused:
        return str(refused.status)


def test_keys_are_asked_for_once_however_many_tokens_name_none(issuer: TestIssuer) -> None:
    async def flood() -> None:
        one = oidc.Issued(Issuer(issuer.url, AUDIENCE))
        unknown = [issuer.token("EdDSA", headers={"kid": f"no-{number}"}) for number in range(300)]
        assert set(await asyncio.gather(*(named(one, token) for token in unknown))) == {"401"}
        assert await named(one, issuer.token()) == "ana"
        assert {await named(one, token) for token in unknown} == {"401"}

    issuer.asked.clear()
    asyncio.run(flood())
    assert issuer.asked == ["/.well-known/openid-configuration", "/keys"]


def test_a_new_key_is_found_and_one_that_was_taken_back_counts_no_more(issuer: TestIssuer) -> None:
    async def turned() -> None:
        one, old, new = oidc.Issued(Issuer(issuer.url, AUDIENCE)), issuer.token("ES256"), OTHER
        assert await named(one, old) == "ana"
        before, issuer.keys = issuer.keys, {"RS256": new}
        try:
            issuer.keys = {"PS256": new}
            token = issuer.token("PS256")
            assert await named(one, token) == "401"  # it was asked a moment ago
            one._asked = float("-inf")
            issuer.more.append(
                {**jwt.get_algorithm_by_name("PS256").to_jwk(new.public_key(), as_dict=True), "alg": "PS256"}
                | {"kid": "our-PS256"}
            )
            assert await named(one, token) == "ana"
            assert await named(one, old) == "401"
        finally:
            issuer.keys = before
            del issuer.more[-1]

    asyncio.run(turned())


def test_old_keys_are_asked_for_beside_the_requests_and_then_count_no_more(issuer: TestIssuer) -> None:
    async def later() -> None:
        one, token = oidc.Issued(Issuer(issuer.url, AUDIENCE)), issuer.token()
        assert await named(one, token) == "ana"
        one._asked = float("-inf")
        one._had -= oidc.FRESH_SECONDS
        issuer.said["/keys"] = b"{}"
        try:
            assert await named(one, token) == "ana"  # while they are asked for
            while one._asking is not None:
                await asyncio.sleep(0.001)
            assert await named(one, token) == "ana"  # the issuer is down
            one._had -= oidc.KEPT_SECONDS
            assert await named(one, token) == "503"
        finally:
            issuer.said.clear()
        one._asked = float("-inf")
        assert await named(one, token) == "ana"

    asyncio.run(later())


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/.well-known/openid-configuration", b""),
        ("/.well-known/openid-configuration", b"[]"),
        ("/.well-known/openid-configuration", DEEP * 20),
        ("/.well-known/openid-configuration", b'{"issuer": "https://login.example.org", "jwks_uri": "URL/keys"}'),
        ("/.well-known/openid-configuration", b'{"issuer": "URL"}'),
        ("/.well-known/openid-configuration", b'{"issuer": "URL", "jwks_uri": "httpURL/keys"}'),
        ("/.well-known/openid-configuration", b'{"issuer": "URL", "jwks_uri": "URL/broken"}'),
        ("/.well-known/openid-configuration", b'{"issuer": "URL", "jwks_uri": "URL/large"}'),
        ("/.well-known/openid-configuration", b'{"issuer": "URL", "jwks_uri": "file:///etc/passwd"}'),
        ("/.well-known/openid-configuration", b'{"issuer": "URL", "jwks_uri": "URL/nowhere"}'),
        ("/.well-known/openid-configuration", b'{"issuer": "URL", "jwks_uri": 7}'),
        ("/keys", b"{}"),
        ("/keys", b'{"keys": {}}'),
        ("/keys", b'{"keys": [7, null, {"kty": "oct", "k": "eA", "kid": "our-RS256"}]}'),
        ("/keys", DEEP * 20),
    ],
)
def test_where_no_keys_are_to_be_had_nobody_is_let_in(issuer: TestIssuer, path: str, said: bytes) -> None:
    issuer.said[path] = said.replace(b"httpURL", issuer.url.encode().replace(b"https", b"http")).replace(
        b"URL", issuer.url.encode()
    )
    try:
        assert set(known(issuer, issuer.token(), issuer.forged({"alg": "HS256", "kid": "our-RS256"}, b"x"))) <= {
            "503",
            "401",
        }
        assert len(issuer.asked) <= 2
    finally:
        issuer.said.clear()


def test_a_redirect_is_not_followed(issuer: TestIssuer) -> None:
    issuer.moved = issuer.url
    try:
        assert known(issuer, issuer.token()) == ["503"]
    finally:
        issuer.moved = ""


def test_an_issuer_with_another_certificate_is_not_believed(
    issuer: TestIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    assert known(issuer, issuer.token()) == ["503"]
    assert issuer.asked == []


def test_a_slow_issuer_holds_up_nobody_else(issuer: TestIssuer) -> None:
    async def waiting() -> None:
        one, begun = oidc.Issued(Issuer(issuer.url, AUDIENCE)), time.monotonic()
        asked = [asyncio.create_task(named(one, issuer.token())) for _ in range(50)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in asked)  # and the loop goes on
        asked[0].cancel()
        assert set(await asyncio.gather(*asked[1:])) == {"503"}
        assert time.monotonic() - begun >= 0.2
        assert asked[0].cancelled()

    issuer.slow = 0.6
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(oidc, "FETCH_SECONDS", 0.2)
            asyncio.run(waiting())
    finally:
        issuer.slow = 0.0


def test_by_mail_only_where_the_issuer_has_verified_it(issuer: TestIssuer) -> None:
    async def by_mail() -> list[str]:
        one = oidc.Issued(Issuer(issuer.url, AUDIENCE, "email"))
        mail = "ana@north.example"
        tokens = [issuer.token(email=mail, email_verified=said) for said in (True, "true", False, None, 1.5)]
        return [await named(one, token) for token in [*tokens, issuer.token()]]

    assert asyncio.run(by_mail()) == ["ana@north.example"] * 2 + ["401"] * 4


# the declaration


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": "http://login.example.org"},
        {"issuer": "https://"},
        {"issuer": "https://a?b"},
        {"issuer": "https://me:secret@login.example.org"},
        {"issuer": "https://login.example.org:x"},
        {"issuer": "https://login.example.org\n"},
        {"issuer": 7},
        {"issuer": None},
        {"audience": ""},
        {"audience": ["a"]},
        {"claim": "name"},
        {"claim": ["sub"]},
        {"key": "secret"},
    ],
)
def test_what_is_no_issuer_is_refused(wrong: dict[str, Any]) -> None:
    service = {"issuer": "https://login.example.org", "audience": "a"} | wrong
    raw = {
        "budget": {"epsilon": 1},
        "tables": {"t": {"source": "t.csv", "one_row_per_person": True, "columns": {"x": {"type": "text"}}}},
    }
    assert declare(raw).issuer is None
    with pytest.raises(DeclarationError) as caught:
        declare(raw | {"service": service})
    assert [fault.where for fault in caught.value.faults] == [f"service.{name}" for name in wrong]
    assert "secret@" not in str(caught.value)


def test_without_the_extra_the_command_says_what_it_needs(
    clinic: Path, cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with clinic.open("a") as file:
        file.write('\n[service]\nissuer = "https://login.example.org"\naudience = "a"\n')
    monkeypatch.setitem(sys.modules, "jwt", None)
    said = cli("serve", clinic, "--port", "0")
    assert said.code == 2
    assert "discreet[oidc]" in said.err
    assert not clinic.with_name("clinic.accounts").exists()
