"""`discreet serve` as a process of its own: its first token, TLS, and how it ends."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import discreet
import service_tools
from discreet.catalog import read
from discreet.errors import EngineError, QuestionError
from discreet.ledger import Ledger
from discreet.service.accounts import PREFIX
from discreet.service.serving import ANSWER_SECONDS, enter, scheduled
from face_tools import Command, spent
from service_tools import ended, running

MEAN = {"question": "SELECT AVG(age) AS my_question FROM visits", "within": {"my_question": "3"}}
COUNT = "SELECT COUNT(*) AS n FROM visits"


def test_the_first_start_prints_a_token_and_the_end_waits_for_what_runs(clinic: Path, cli: Command) -> None:
    text = clinic.read_text("utf-8").replace("[question]", "[engine]\nanswer_seconds = 5\n[question]")
    clinic.write_text(text, "utf-8")
    with running(clinic) as (process, url, said):
        assert process.stdout is not None
        token = process.stdout.readline().strip()
        assert token.startswith(PREFIX)
        assert cli("account", "add", clinic, "ana").code == 0  # while it runs
        ana = cli("token", "new", clinic, "ana").out.strip()
        with discreet.connect(url, token=token) as there:
            assert there.check_question(COUNT) == ("visits",)
        answers: list[Any] = []

        def ask() -> None:
            with discreet.connect(url, token=ana) as there:
                answers.append(there.ask(COUNT, epsilon="0.2").charged.epsilon)

        thread = threading.Thread(target=ask)
        thread.start()  # answered after five seconds, by the schedule: a busy machine needs one
        while not spent(clinic.with_name("clinic.ledger")):
            assert thread.is_alive()
        out, err = ended(process)
        thread.join()
        assert answers == [0.2]
        entries = json.loads(cli("ledger", clinic, "--json").out)["entries"]
        assert [one["note"] for one in entries if one["note"].startswith("service")] == ["service: answers after 5 s"]
        assert PREFIX not in out + err + "".join(said)
    with running(clinic, "--log", "json") as (process, url, said):
        with discreet.connect(url, token=token) as there:
            assert not there.ask(COUNT, epsilon="0.2").charged
            assert there.ask(**MEAN).charged  # at a price that a local curator warns of
            assert repr(there) == f"Curator at {url}"
        out, err = ended(process)
        assert out == ""
        for secret in (PREFIX, "my_question", "budget", str(clinic.parent)):
            assert secret not in err + "".join(said)
        logged = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
        assert [(one["path"], one["status"]) for one in logged if "path" in one] == [("/ask", 200)] * 2
        assert "SELECT" not in err
        with pytest.raises(EngineError) as caught, discreet.connect(url, token=token) as there:
            there.ask(COUNT, epsilon="0.2")
        assert caught.value.code == "unreachable"


def test_what_the_owner_lets_a_service_do_is_entered_where_it_changes(clinic: Path, cli: Command) -> None:
    plain = clinic.read_text("utf-8")
    for more in (
        "[engine]\nanswer_seconds = 1",
        "[engine]\nanswer_seconds = 1",
        '[engine]\nanswer_seconds = "off"\n[service]\nissuer = "https://login.example.org"\naudience = "a"',
    ):
        clinic.write_text(f"{plain}\n{more}\n", "utf-8")
        found = read(clinic)
        with closing(Ledger(found.ledger)) as ledger:
            enter(found, ledger)
    entries = json.loads(cli("ledger", clinic, "--json", "--verify").out)["entries"]
    assert [one["note"] for one in entries if one["kind"] == "service"] == [
        "service: answers after 1 s",
        "service: answers as soon as they are made; logins of https://login.example.org by sub",
    ]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return service_tools.certificate(tmp_path_factory.mktemp("tls"))


def test_tls(clinic: Path, certificate: tuple[str, str]) -> None:
    pem, key = certificate
    with running(clinic, "--host", "0.0.0.0", "--certificate", pem, "--key", key) as (process, url, said):
        assert process.stdout is not None
        token, url = process.stdout.readline().strip(), url.replace("0.0.0.0", "127.0.0.1")
        assert "answers come after 2 s" in "".join(said)
        with discreet.connect(url, token=token, certificate=pem) as there:
            assert list(there.tables) == ["visits"]
        with pytest.raises(EngineError, match="not trusted"), discreet.connect(url, token=token) as there:
            there.ask(COUNT)
        ended(process)


def test_a_service_answers_on_a_schedule_unless_its_declaration_says_off(clinic: Path) -> None:
    found = read(clinic)
    assert found.limits.answer_seconds is None
    assert scheduled(found).limits == replace(found.limits, answer_seconds=ANSWER_SECONDS)
    for said, seconds in (("5", 5), ('"off"', 0)):
        clinic.write_text(f"{clinic.read_text('utf-8')}\n[engine]\nanswer_seconds = {said}\n", "utf-8")
        found = read(clinic)
        assert scheduled(found) == found
        assert found.limits.answer_seconds == seconds
        clinic.write_text(clinic.read_text("utf-8").partition("\n[engine]")[0], "utf-8")


@pytest.mark.parametrize(
    "options",
    [
        ("--host", "0.0.0.0"),
        ("--host", "0.0.0.0", "--certificate", "clinic.toml"),
        ("--certificate", "clinic.toml", "--key", "clinic.toml"),
        ("--certificate", "missing.pem", "--key", "missing.key"),
        ("--host", "192.0.2.1", "--behind-proxy"),
    ],
)
def test_where_tokens_could_be_read_nothing_is_served(clinic: Path, cli: Command, options: Sequence[str]) -> None:
    said = cli("serve", clinic, "--port", "0", *options)
    assert said.code == 2
    assert PREFIX not in said.out + said.err
    assert not clinic.with_name("clinic.accounts").exists()


@pytest.mark.parametrize(
    "url", ["http://example.org", "ftp://localhost", "localhost:8443", "https://me:secret@localhost", "https://a?b", ""]
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(QuestionError) as caught:
        discreet.connect(url, token="discreet_secret")
    assert "secret" not in str(caught.value)


def test_a_token_that_is_none_is_in_no_error() -> None:
    with pytest.raises(QuestionError) as caught:
        discreet.connect("http://localhost", token="discreet_secret\n x")
    assert "secret" not in json.dumps(caught.value.to_dict())


def test_the_command_says_what_it_needs(clinic: Path, cli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    said = cli("serve", clinic, "--json")
    assert "discreet[server]" in cli("serve", clinic).err
    assert said.code == 2
