"""Every path of the document for every role, with what it allows and what it does not: each reply is as the document
says, and what is refused changes nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.service.api import PATHS
from face_tools import Data
from service_tools import CLINIC, HOLDERS, Served, served

QUESTIONS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT city, SUM(age) AS s FROM visits GROUP BY city",
    "SELECT a.n FROM (SELECT COUNT(*) AS n FROM visits WHERE smoker) AS a",
    "SELECT COUNT(*) AS n FROM nothing",
)
CHANGING = {
    "/ask",
    "/requests",
    "/requests/{number}",
    "/freeze",
    "/lift",
    "/refresh",
    "/accounts",
    "/accounts/{name}/end",
    "/accounts/{name}/token",
    "/accounts/{name}/revoke",
}
"""What is done there is an entry of the ledger."""
WHO = (*HOLDERS, None, "discreet_no-such-token")


@pytest.fixture(scope="module")
def service(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("paths")
    (folder / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(folder, CLINIC) as found:
        yield found


@pytest.fixture(scope="module")
def document() -> Any:
    import schemathesis  # it takes a second, where it is used

    return schemathesis.openapi.from_path(Path(str(files("discreet.service"))) / "openapi.json")


def holds(service: Served, document: Any, path: str, method: str, wrong: bool, chosen: settings) -> None:
    """Whatever is sent to a path by whomever: no fault, a reply as the document has it, nothing written but by an
    answer."""
    import requests
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi import checks

    rules = [
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_headers_conformance,
        checks.response_schema_conformance,
    ]
    mode = GenerationMode.NEGATIVE if wrong else GenerationMode.POSITIVE
    cases = document[path][method].as_strategy(generation_mode=mode)
    session = requests.Session()
    session.trust_env = False

    @chosen
    @given(cases, st.sampled_from(WHO), st.sampled_from(QUESTIONS), st.booleans())
    def one(case: Any, who: str | None, question: str, known: bool) -> None:
        if known and isinstance(case.body, dict) and "question" in case.body:
            case.body["question"] = question
        kept = {name: value for name, value in (case.headers or {}).items() if name.lower() != "authorization"}
        case.headers = kept | ({} if who is None else {"Authorization": f"Bearer {service.tokens.get(who, who)}"})
        before = service.curator.ledger.head
        reply = case.call(base_url=service.url, session=session)
        assert reply.status_code < 500, reply.content
        case.validate_response(reply, checks=rules)
        if path not in CHANGING or (reply.status_code >= 400 and path != "/refresh"):  # it goes on behind its reply
            assert service.curator.ledger.head == before

    with session:
        one()
        while service.call("GET", "/refresh", "owner").json["state"] == "running":
            time.sleep(0.05)  # it goes on behind its reply


EACH = [
    pytest.param(one.path, one.method, wrong, id=f"{one.name}-{'wrong' if wrong else 'right'}")
    for one in PATHS
    for wrong in ((False, True) if one.roles else (False,))
]
QUIET = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize(("path", "method", "wrong"), EACH)
def test_what_the_document_says_holds(service: Served, document: Any, path: str, method: str, wrong: bool) -> None:
    few = 20 if method == "POST" else 6
    holds(service, document, path, method, wrong, settings(QUIET, max_examples=few, derandomize=True))


@pytest.mark.storm
@pytest.mark.parametrize(("path", "method", "wrong"), EACH)
def test_what_the_document_says_holds_of_much(
    service: Served, document: Any, path: str, method: str, wrong: bool
) -> None:
    many = 300 if method == "POST" else 50  # as many as any property has here; making each request is what takes long
    holds(service, document, path, method, wrong, settings(QUIET, max_examples=many))
