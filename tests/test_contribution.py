"""Three parties with DuckDB files and ledgers of their own: what is opened, what each ledger says, kills, refusals."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import discreet
from discreet import BudgetError, Curator, LedgerError, QuestionError, SessionError
from discreet.catalog import read
from discreet.ledger import Ledger
from discreet.together import Party, Session
from discreet.together import read as read_session
from together_tools import certificate, needs_openssl, play, ports, take

pytestmark = needs_openssl
NAMES = ("north", "south", "west")
QUESTION = "SELECT ward, COUNT(*) AS n FROM stays WHERE days < 9 GROUP BY ward"
SUM = "SELECT SUM(days) AS days FROM stays"
DECLARATION = """
[budget]
epsilon = 1e12

[tables.stays]
source = "{name}.duckdb::stays"
one_row_per_person = true
[tables.stays.columns]
ward = {{ type = "text", values = ["a", "b", "c"], nulls = false }}
days = {{ type = "integer", min = 0, max = {most} }}
"""


@dataclass(frozen=True)
class Place:
    """A folder with each party's table, declaration and key."""

    folder: Path

    def declaration(self, name: str) -> Path:
        return self.folder / f"{name}.toml"

    def key(self, name: str) -> Path:
        return self.folder / f"{name}.key"

    def session(self, question: str = QUESTION, **changes: object) -> Session:
        """Agreed on from the first party's declaration."""
        with Curator.of(read(self.declaration("north")), load=False) as curator:
            terms = vars(curator.terms(question))
        free = zip(NAMES, ports(3), strict=True)
        parties = tuple(Party(n, "127.0.0.1", port, (self.folder / f"{n}.pem").read_text()) for n, port in free)
        values: dict[str, Any] = {"epsilon": Fraction(10**6), "colluding": 1, "absent": 0, "parties": parties}
        return Session(question=question, **(terms | values | {"seconds": 20} | changes))

    def entries(self, name: str) -> list[Any]:
        ledger = Ledger(self.folder / f"{name}.ledger")
        ledger.verify()
        found = [entry for entry in ledger.entries() if entry.kind in ("reserve", "commit")]
        ledger.close()
        return found


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    for name in NAMES:
        certificate(folder, name)
    return folder


@pytest.fixture
def place(tmp_path: Path, certificates: Path) -> Place:
    for number, name in enumerate(NAMES, 1):
        with duckdb.connect(str(tmp_path / f"{name}.duckdb")) as file:
            letters = "['a', 'b', 'c', 'd'][1 + i % 4] AS ward"
            file.execute(f"CREATE TABLE stays AS SELECT {letters}, i % 12 AS days FROM range({100 * number}) AS t(i)")
        (tmp_path / f"{name}.toml").write_text(DECLARATION.format(name=name, most=30), "utf-8")
        for kind in ("pem", "key"):
            (tmp_path / f"{name}.{kind}").write_bytes((certificates / f"{name}.{kind}").read_bytes())
    return Place(tmp_path)


@pytest.fixture
def curators(place: Place) -> Iterator[dict[str, Curator]]:
    opened = {name: Curator.of(read(place.declaration(name)), load=True) for name in NAMES}
    yield opened
    for curator in opened.values():
        curator.close()


def truth(place: Place, question: str) -> list[Any]:
    """The question over all three tables together."""
    with duckdb.connect() as all_:
        for name in NAMES:
            all_.execute(f"ATTACH '{place.folder / name}.duckdb' AS {name} (READ_ONLY)")
        union = " UNION ALL ".join(f"SELECT * FROM {name}.stays" for name in NAMES)
        all_.execute(f"CREATE VIEW stays AS {union}")
        return all_.execute(question).fetchall()


def test_three_tables_are_added_up(place: Place, curators: dict[str, Curator]) -> None:
    """At a price at which noise is 0, in two sessions; each ledger has one charge and one answer for either."""
    for question in (QUESTION, SUM):
        agreed = place.session(question)
        parts = {name: curator.contribution(agreed) for name, curator in curators.items()}
        ends = play(*(take(agreed, name, place.key(name), parts[name]) for name in NAMES))
        releases = [
            parts[name].commit(end.totals, end.roster, end.transcript) for name, end in zip(NAMES, ends, strict=True)
        ]
        asked = truth(place, question + (" HAVING ward <> 'd' ORDER BY ward" if "GROUP" in question else ""))
        for release in releases:
            assert [tuple(row.values()) for row in release.rows] == asked
            assert release.intervals == releases[0].intervals
            assert release.content["transcript"] == ends[0].transcript
            assert release.content["session"] == agreed.hash
            assert release.cost.epsilon == 10**6
        for name in NAMES:
            reserve, commit = place.entries(name)[-2:]
            assert (reserve.kind, commit.kind) == ("reserve", "commit")
            assert reserve.loss == agreed.mechanism.loss()
            assert agreed.hash in reserve.question
            assert all(other in reserve.question for other in NAMES)
    assert "ward" in repr(releases[0]) or "days" in repr(releases[0])
    with pytest.raises(QuestionError, match="which was opened"):
        curators["north"].contribution(agreed).charge()


def test_another_declaration_is_refused_before_anything_is_spent(place: Place) -> None:
    agreed = place.session(SUM)
    place.declaration("south").write_text(DECLARATION.format(name="south", most=31), "utf-8")
    with (
        discreet.open(place.declaration("south")) as curator,
        pytest.raises(QuestionError, match="different sensitivity"),
    ):
        curator.contribution(agreed)
    assert not place.entries("south")


def test_one_cell_counts_where_the_largest_is_found(place: Place) -> None:
    """And only counts of several groups can be compared."""
    with Curator.of(read(place.declaration("north")), load=False) as curator:
        assert curator.terms(QUESTION, "largest").sensitivity == 1
        for question in (SUM, "SELECT COUNT(*) AS n FROM stays"):
            with pytest.raises(QuestionError):
                curator.terms(question, "largest")


def test_a_budget_that_does_not_allow_it_is_said_before_anything_is_spent(place: Place) -> None:
    agreed = place.session(epsilon=Fraction(10**13))
    with discreet.open(place.declaration("south")) as curator, pytest.raises(BudgetError):
        curator.contribution(agreed)
    assert not place.entries("south")


@pytest.mark.parametrize(
    "question",
    [
        "SELECT AVG(days) AS d FROM stays",
        "SELECT COUNT(*) AS n, SUM(days) AS d FROM stays",
        "SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward ORDER BY n",
        "SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward LIMIT 1",
        "SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward HAVING n > 5",
        "SELECT ward FROM stays GROUP BY ward",
        "SELECT MEDIAN(days) AS d FROM stays",
        "SELECT COUNT(*) * 2 AS n FROM stays",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) COUNT(*) AS n FROM stays",
        "nonsense",
    ],
)
def test_questions_that_are_no_single_sum_are_refused(place: Place, question: str) -> None:
    with Curator.of(read(place.declaration("north")), load=False) as curator, pytest.raises(QuestionError):
        curator.terms(question)


WAITING = """
import sys, time
from discreet.catalog import read
from discreet.curator import Curator
from discreet.together import read as read_session, take_part

session, declaration, name, key = sys.argv[1:]
agreed = read_session(session)
with Curator.of(read(declaration), load=True) as curator:
    contribution = curator.contribution(agreed)

    class Slow:
        def charge(self):
            contribution.charge()
        def shares(self):
            made = contribution.shares()
            print("measured", flush=True)
            time.sleep(600)
            return made

    take_part(agreed, name, key, Slow())
"""


@pytest.mark.storm
def test_a_kill_in_the_middle_ends_the_others_and_all_stay_charged(place: Place, tmp_path: Path) -> None:
    """SIGKILL after west was charged and has measured, before it sent anything: the others' commands end with code 4,
    print nothing, and each ledger has a charge without an answer. West cannot come again."""
    document = tmp_path / "session.json"
    agreed = place.session()
    document.write_text(agreed.to_json(), "utf-8")

    def start(*arguments: object) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen([sys.executable, "-c", *map(str, arguments)], stdout=pipe, stderr=pipe, text=True)

    victim = start(WAITING, document, place.declaration("west"), "west", place.key("west"))
    run = "from discreet.cli import run; run()"
    others = [
        start(run, "together", "join", document, place.declaration(n), "--party", n, "--key", place.key(n), "--json")
        for n in ("north", "south")
    ]
    assert victim.stdout is not None
    assert victim.stdout.readline() == "measured\n"
    victim.send_signal(signal.SIGKILL)
    for other in others:
        out, error = other.communicate(timeout=300)
        assert other.returncode == 4
        said = json.loads(out)
        assert said["error"] == "SessionError"
        assert said["code"] in ("stopped", "ended")
        assert "nothing was opened" in said["message"]
        assert all("is a new ledger" in line for line in error.splitlines())
    victim.communicate()
    for name in NAMES:
        (only,) = place.entries(name)
        assert (only.kind, only.loss) == ("reserve", agreed.mechanism.loss())
    with discreet.open(place.declaration("west")) as curator:
        curator.lift()  # a process that ends without an answer suspends
        with pytest.raises(LedgerError, match="has no stored answer"):
            curator.contribution(read_session(document)).charge()
    assert len(place.entries("west")) == 1


def test_an_engine_that_fails_ends_the_session_for_all(place: Place, curators: dict[str, Curator]) -> None:
    agreed = place.session(seconds=120)
    parts: dict[str, Any] = {name: curator.contribution(agreed) for name, curator in curators.items()}

    class Killed:
        """The engine's process dies after the charge."""

        def charge(self) -> None:
            contribution.charge()
            process = curators["south"]._engine._process
            assert process is not None
            os.kill(process.pid, signal.SIGKILL)
            while process.usable:
                time.sleep(0.001)

        def shares(self) -> Any:
            return contribution.shares()

    contribution, parts["south"] = parts["south"], Killed()
    ends = play(*(take(agreed, name, place.key(name), parts[name]) for name in NAMES))
    assert [type(end).__name__ for end in ends] == ["SessionError", "EngineError", "SessionError"]
    assert not any(entry.kind == "commit" for name in NAMES for entry in place.entries(name))


def test_importing_loads_no_engine() -> None:
    script = (
        "import sys, discreet.together; print([m for m in sys.modules if m.split('.')[0] in ('duckdb', 'sqlglot')])"
    )
    rooms = "('discreet.engines', 'discreet.trusted.ring_a.gate', 'discreet.trusted.ledger', 'sqlglot')"
    script += f"; print([m for m in sys.modules if m.startswith({rooms})])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"


def test_the_commands_say_what_is_wrong(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """agree writes what join reads; faults end with code 2 and spend nothing."""
    from click.testing import CliRunner

    from discreet.cli import main

    monkeypatch.chdir(place.folder)
    addresses = [f"--party={n}=127.0.0.1:{port}={n}.pem" for n, port in zip(NAMES, ports(3), strict=True)]
    agree = ["together", "agree", "north.toml", QUESTION, "--epsilon", "0.5", "--colluding", "1"]
    runner = CliRunner()
    done = runner.invoke(main, [*agree, *addresses])
    assert done.exit_code == 0, done.exception
    written = read_session("session.json")
    assert written.hash in done.output
    assert (written.names, written.epsilon, written.sensitivity) == (list(NAMES), Fraction(1, 2), 1)
    shown = runner.invoke(main, ["together", "show", "session.json"]).output
    assert written.hash in shown
    assert all(party.fingerprint in shown for party in written.parties)
    forged = replace(written, question=f"{written.question}\x1b[8m\nopens 3 totals for ε 0.01\u202e\x9b8m")
    Path("forged.json").write_text(forged.to_json(), "utf-8")
    first, second, *_ = runner.invoke(main, ["together", "show", "forged.json"]).output.splitlines()
    assert first == rf"{written.question}\x1b[8m\nopens 3 totals for ε 0.01\u202e\x9b8m"
    assert "for ε 0.5 of" in second
    for wrong in (
        [*agree, *addresses],  # the file exists
        [*agree, "-o", "x", *addresses[:1]],
        [*agree, "-o", "x", *addresses[:2], "--party=west"],
        [*agree, "-o", "x", *addresses[:2], "--party=west=127.0.0.1:1=missing.pem"],
        [*agree[:-3], "many", *agree[-2:], "-o", "x", *addresses],
        ["together", "join", "session.json", "north.toml", "--party", "east", "--key", "north.key"],
        ["together", "join", "missing.json", "north.toml", "--party", "north", "--key", "north.key"],
        ["together", "--parties", "north.toml"],
    ):
        done = runner.invoke(main, wrong)
        assert isinstance(done.exception, QuestionError), wrong
    assert not (tmp_path / "x").exists()


@pytest.mark.outside
def test_what_the_demonstration_prints_can_be_run(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that it shows for agreeing, with the parties in place of the dots, writes the same session; a price
    that no budget allows lets it end there. Nothing that lies in the folder is run by the way."""
    from click.testing import CliRunner

    from discreet.cli import main

    monkeypatch.chdir(place.folder)
    stray = place.folder / "duckdb.py"
    stray.write_text("open('run', 'w').close()", "utf-8")
    runner = CliRunner()
    asked = ["together", "--parties", "north.toml,south.toml,west.toml", "--question", QUESTION, "--epsilon", "1e13"]
    done = runner.invoke(main, [*asked, "--colluding", "2", "--seconds", "50"])
    stray.unlink()
    assert not (place.folder / "run").exists()
    assert isinstance(done.exception, SessionError)
    (line,) = (line for line in done.output.splitlines() if "together agree " in line)
    words = shlex.split(line.removeprefix("$ discreet"))
    addresses = [f"--party={n}=127.0.0.1:{port}={n}.pem" for n, port in zip(NAMES, ports(3), strict=True)]
    done = runner.invoke(main, [*words[:-2], *addresses, "-o", "printed.json"])
    assert done.exit_code == 0, done.output
    written = read_session("printed.json")
    assert (written.epsilon, written.colluding, written.absent, written.seconds) == (10**13, 2, 0, 50)


def test_declarations_stand_in_a_file_one_a_line(tmp_path: Path) -> None:
    from discreet.cli.together import _declarations

    listed = tmp_path / "parties.txt"
    listed.write_text("# hospitals\nnorth.toml\n\n  south.toml\n", "utf-8")
    assert _declarations(str(listed)) == [tmp_path / "north.toml", tmp_path / "south.toml"]
    assert _declarations("a.toml, b.toml") == [Path("a.toml"), Path("b.toml")]
    listed.write_text("\n# nobody\n", "utf-8")
    with pytest.raises(QuestionError, match="one a line"):
        _declarations(str(listed))
