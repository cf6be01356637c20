"""`--server`: the commands that a service answers say what they say of a declaration, and fail as they do there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from face_tools import Command, Data, Said, strict
from service_tools import CLINIC, Served, served

BY_CITY = "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY city"


@dataclass(frozen=True)
class Both:
    """The command line, with a declaration and with its service."""

    service: Served
    declaration: Path
    cli: Command
    patch: pytest.MonkeyPatch

    def there(self, command: str, *arguments: object, who: str = "ana") -> Said:
        self.patch.setenv("DISCREET_TOKEN", self.service.tokens[who])
        return self.cli(command, "--server", self.service.url, *arguments)

    def here(self, command: str, *arguments: object) -> Said:
        return self.cli(command, self.declaration, *arguments)


@pytest.fixture(scope="module")
def service(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("there")
    (folder / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(folder, CLINIC) as found:
        yield found


@pytest.fixture
def both(service: Served, cli: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Both:
    ledger = service.curator.declaration.ledger
    assert ledger is not None
    monkeypatch.chdir(tmp_path)
    return Both(service, ledger.with_name("clinic.toml"), cli, monkeypatch)


def test_commands_say_the_same_here_and_there(both: Both) -> None:
    question = (BY_CITY, "--epsilon", "0.2")
    first = both.there("ask", *question, "--request", "one", "-o", "answer.csv", "--json")
    assert strict(first.out)["charged"]["epsilon"] == 0.2
    assert Path("answer.csv").read_text("utf-8").count("\n") == 5
    Path("question.sql").write_text(BY_CITY, "utf-8")
    for machine in ((), ("--json",)):
        for command in ("ask", "explain"):
            there = both.there(command, *question, *machine)
            assert there == both.here(command, *question, "--analyst", "ana", *machine)
            assert there == both.there(command, "--file", "question.sql", "--epsilon", "0.2", *machine)
            assert there.code == 0
        assert both.there("tables", *machine) == both.here("tables", *machine)
        assert both.there("budget", *machine, who="owner") == both.here("budget", *machine)
        for entry in ((), (5,)):
            there = both.there("ledger", *entry, *machine, who="eve")
            assert there == both.here("ledger", *entry, *machine)
            assert there.code == 0
    mine = both.there("budget").out
    assert "of ε 4" in mine
    assert "bob" not in mine


def test_a_table_is_published_by_a_service(both: Both) -> None:
    command = ("visits", "--epsilon", "0.5", "--column", "city", "--column", "age", "--target", "city")
    there = both.there("publish", *command, "-o", "made.csv", "--json", who="owner")
    assert there.code == 0, there.err
    assert strict(there.out)["charged"]["epsilon"] == 0.5
    assert strict(there.out)["target"] == "city"
    again = both.there("publish", *command, "--json", who="owner")
    assert strict(again.out)["charged"]["epsilon"] == 0
    assert again == both.here("publish", *command, "--owner", "--json")
    assert len(Path("made.csv").read_text("utf-8").splitlines()) == len(strict(again.out)["rows"]) + 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("SELECT person FROM visits",),
        ("DROP TABLE visits", "--epsilon", "1"),
        (BY_CITY, "--epsilon", "5"),
        (BY_CITY, "--epsilon", "1e-12"),
        (BY_CITY, "--within", "m=3"),
        (BY_CITY, "--dialect", "cobol"),
        ("", "--epsilon", "1"),
    ],
)
def test_errors_are_the_same_here_and_there(both: Both, arguments: tuple[str, ...]) -> None:
    for machine in ((), ("--json",)):
        there = both.there("ask", *arguments, *machine)
        assert there == both.here("ask", *arguments, "--analyst", "ana", *machine)
        assert there.code in (2, 3)


@pytest.mark.parametrize(
    ("command", "arguments", "said"),
    [
        ("ask", (BY_CITY, "--analyst", "bob"), "--analyst: the token says who asks"),
        ("explain", (BY_CITY, "--owner"), "--owner: the token says who asks"),
        ("explain", (BY_CITY, "--sql"), "a service does not take --sql"),
        ("ask", ("clinic.toml", BY_CITY), "DECLARATION: a service has a declaration of its own"),
        ("ask", ("clinic.toml",), "there is no question"),
        ("ask", (), "there is no question"),
        ("tables", ("clinic.toml",), "a service has a declaration of its own"),
        ("ledger", ("--verify",), "a service does not take --verify"),
        ("ledger", ("--expect-head", "ab"), "a service does not take --expect-head"),
        ("ledger", ("--raise-budget",), "a service does not take --raise-budget"),
        ("ledger", ("--renew-filters",), "a service does not take --renew-filters"),
        ("ledger", ("--spend-unknown", "0"), "a service does not take --spend-unknown"),
        ("ledger", (), "this is not for the role analyst"),
        ("tables", ("--token-file", "none"), "none cannot be read"),
        ("publish", ("visits", "--analyst", "ana"), "--analyst: the token says who asks"),
        ("publish", (), "there is no table"),
        ("publish", ("nothing", "--epsilon", "1"), "this table is not declared"),
        ("check", (), "No such option"),
    ],
)
def test_what_a_service_does_not_do_is_refused(
    both: Both, command: str, arguments: tuple[object, ...], said: str
) -> None:
    heard = both.there(command, *arguments)
    assert heard.code == 2
    assert said in heard.err
    assert both.service.tokens["ana"] not in heard.err + heard.out


def test_a_declaration_that_is_named_is_asked_whatever_the_environment_says(both: Both) -> None:
    both.patch.setenv("DISCREET_SERVER", both.service.url)
    both.patch.setenv("DISCREET_TOKEN", both.service.tokens["eve"])
    assert both.cli("tables") == both.here("tables")
    assert both.cli("ledger", 2) == both.here("ledger", 2)
    assert "not for the role auditor" in both.cli("explain", BY_CITY, "--json").json["message"]
    assert both.here("explain", BY_CITY, "--analyst", "ana").code == 0
    Path("question.sql").write_text(BY_CITY, "utf-8")
    assert both.here("explain", "--file", "question.sql", "--analyst", "ana").code == 0
    assert "no question" in both.here("ask").err


def test_a_token_is_in_a_file_or_in_the_environment(both: Both) -> None:
    both.patch.delenv("DISCREET_TOKEN", raising=False)
    server: Any = ("--server", both.service.url)
    assert "DISCREET_TOKEN: there is no token" in both.cli("tables", *server).err
    file = Path("ana.token")
    file.write_text(both.service.tokens["ana"] + "\n", "ascii")
    assert both.cli("tables", *server, "--token-file", file).code == 0
    for wrong in ("", "\n", "ä", "discreet_" + "x" * 9_000, "two\nlines"):
        file.write_text(wrong, "utf-8")
        heard = both.cli("tables", *server, "--token-file", file)
        assert heard.code == 2
        assert "xx" not in heard.err
    file.write_text("discreet_none", "ascii")
    assert both.cli("tables", *server, "--token-file", file, "--json").json["code"] == "token"
    assert "a token is for a service" in both.here("tables", "--token-file", file).err
    assert "there is no declaration" in both.cli("tables").err


def test_where_nobody_answers_the_exit_code_is_that_of_an_engine(both: Both) -> None:
    both.patch.setenv("DISCREET_TOKEN", "discreet_any")
    heard = both.cli("ask", "--server", "http://127.0.0.1:9", BY_CITY, "--epsilon", "1", "--json")
    assert (heard.code, heard.json["code"]) == (4, "unreachable")
    for url in ("http://example.org", "localhost", "https://me:pw@localhost"):
        heard = both.cli("tables", "--server", url)
        assert heard.code == 2
        assert "pw" not in heard.err
