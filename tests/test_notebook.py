"""`%discreet` and `%%discreet`, in a real shell of IPython."""

from __future__ import annotations

import getpass
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import discreet
from discreet import Curator, Explanation, Release, RemoteCurator
from face_tools import CLINIC, Data, visits
from service_tools import Served, served

COUNTS = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"


@dataclass(frozen=True)
class Ran:
    """What a cell showed, the types of what it showed, what it said of an error, and whether it failed."""

    shown: list[Any]
    kinds: list[set[str]]
    said: str
    failed: bool


class Notebook:
    """A shell, and its cells."""

    def __init__(self, folder: Path) -> None:
        self.shell = InteractiveShell.instance()
        self.shell.display_formatter.active_types = self.shell.display_formatter.format_types
        self.shell.run_cell(f"%cd -q {folder}")
        assert not self.run("%load_ext discreet").failed

    def run(self, cell: str) -> Ran:
        with capture_output() as captured:
            result = self.shell.run_cell(cell)
        kinds = [set(output.data) for output in captured.outputs]
        failed = result.error_before_exec is not None or result.error_in_exec is not None
        texts = [output.data.get("text/plain", "") for output in captured.outputs]
        return Ran(texts, kinds, captured.stdout + captured.stderr, failed)

    def value(self, name: str) -> Any:
        return self.shell.user_ns[name]


@pytest.fixture
def notebook(data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_bytes(data.csv.read_bytes())
    (tmp_path / "clinic.toml").write_text(CLINIC, "utf-8")
    made = Notebook(tmp_path)
    yield made
    made.run("%unload_ext discreet")
    made.shell.history_manager.end_session()
    InteractiveShell.clear_instance()


def test_a_cell_shows_the_table_with_intervals_and_a_picture(notebook: Notebook) -> None:
    opened = notebook.run("%discreet clinic.toml")
    assert not opened.failed
    assert "at most 20 rows" in opened.shown[0]
    assert "Curator of visits" in opened.shown[1]
    ran = notebook.run(f"%%discreet --epsilon 0.25 --name answer\n{COUNTS}")
    assert not ran.failed, ran.said
    assert len(ran.shown) == 2
    assert "text/html" in ran.kinds[0]
    assert "±" in ran.shown[0]
    assert "image/png" in ran.kinds[1]
    answer = notebook.value("answer")
    assert isinstance(answer, Release)
    assert {row["city"] for row in answer.rows} == {"north", "south", "nowhere", "Zürich"}
    assert answer.cost.epsilon == 0.25


def test_options_are_those_of_a_question(notebook: Notebook) -> None:
    notebook.run("%discreet clinic.toml --name clinic")
    assert isinstance(notebook.value("clinic"), Curator)
    assert not notebook.run("%discreet clinic").failed  # the same one, which stays open
    ran = notebook.run(f"%%discreet --within n=400 --confidence 0.9 --together --explain --name price\n{COUNTS}")
    assert not ran.failed, ran.said
    assert isinstance(notebook.value("price"), Explanation)
    assert notebook.value("clinic").budget.used == 0
    ran = notebook.run(f"%%discreet --within n=400 --no-plot --request one\n{COUNTS}")
    assert len(ran.shown) == 1
    assert 0 < notebook.value("clinic").budget.used < 100
    again = notebook.run(f"%%discreet --within n=400 --no-plot --request one\n{COUNTS}")
    assert "free" in again.shown[0]


def test_the_declared_price_is_taken_where_none_is_named(notebook: Notebook) -> None:
    notebook.run("%discreet clinic.toml")
    ran = notebook.run(f"%%discreet\n{COUNTS}")
    assert "price ε 0.1 " in ran.shown[0]


def test_a_curator_of_python_is_taken_by_its_name(notebook: Notebook, data: Data) -> None:
    with Curator({"visits": visits(data.csv)}, epsilon=5) as mine:
        notebook.shell.push({"mine": mine})
        assert not notebook.run("%discreet mine").failed
        assert not notebook.run(f"%%discreet --epsilon 1\n{COUNTS}").failed
        assert notebook.run("%discreet").shown[1].startswith("Curator of visits: 20 % used")
        notebook.run("%discreet clinic.toml")  # what was made elsewhere is not closed here
        assert mine.ask(COUNTS, epsilon=1).rows


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (f"%%discreet\n{COUNTS}", "no declaration is open: write %discreet clinic.toml in a cell before this one"),
        ("%discreet", "no declaration is open"),
        ("%discreet nothing.toml", "nothing.toml"),
        ("%discreet clinic.toml\n", ""),
        (f"%%discreet --price 3\n{COUNTS}", "--price"),
        (f"%%discreet --within n\n{COUNTS}", "write --within n=100"),
        (f"%%discreet --name 'my answer'\n{COUNTS}", "cannot be a name in Python"),
        (f"%%discreet --epsilon '1\n{COUNTS}", "close every quote"),
    ],
)
def test_what_is_wrong_is_said_without_a_trace(cell: str, said: str, notebook: Notebook) -> None:
    ran = notebook.run(cell)
    assert ran.failed == bool(said)
    assert said in ran.said
    assert "Traceback" not in ran.said


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%%discreet --epsilon 0.1\nSELECT person FROM visits", "→"),
        ("%%discreet --epsilon 0.1\nDROP TABLE visits", "only SELECT statements are supported, not DROP"),
        (f"%%discreet --epsilon 20\n{COUNTS}", "budget"),
        ("%%discreet --epsilon 0.1\n\n", "the question is empty"),
    ],
)
def test_a_refusal_is_one_line_and_keeps_the_name(cell: str, said: str, notebook: Notebook) -> None:
    notebook.run("%discreet clinic.toml")
    notebook.shell.push({"answer": "before"})
    ran = notebook.run(cell.replace("\n", " --name answer\n", 1))
    assert ran.failed
    assert "UsageError" in ran.said
    assert said in ran.said
    assert "Traceback" not in ran.said
    assert notebook.value("answer") == "before"


@pytest.fixture(scope="module")
def service(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "visits.csv").write_bytes(data.csv.read_bytes())
    with served(folder) as found:
        yield found


def test_a_service_is_asked_as_a_declaration_is(
    notebook: Notebook, service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = service.tokens["owner"]
    monkeypatch.setattr("getpass.getpass", lambda _: token)
    opened = notebook.run(f"%discreet {service.url} --name there")
    assert not opened.failed, opened.said
    assert opened.shown[0] == repr(service.curator.tables)
    asked = f"%%discreet --epsilon 0.3 --name answer\n{COUNTS}"
    assert not notebook.run(asked).failed
    again = notebook.run(asked)
    local = service.curator.ask(COUNTS, epsilon="0.3")
    assert again.shown[0] == repr(local)
    assert again.kinds == [{"text/plain", "text/html"}, {"text/plain", "image/png"}]
    assert notebook.value("answer")._repr_html_() == local._repr_html_()
    assert isinstance(notebook.value("there"), RemoteCurator)
    mine = notebook.run("display(there)").shown[0]
    assert mine == notebook.run("%discreet").shown[1] == notebook.run("%discreet there").shown[1]
    assert mine == f"Curator at {service.url}: {service.curator.budget!r}"
    assert "--analyst: the token says" in notebook.run(f"%%discreet --analyst ana\n{COUNTS}").said
    assert "--owner: the token says" in notebook.run(f"%discreet {service.url} --owner").said
    inside = [str(one) for one in notebook.shell.user_ns.values()] + notebook.shell.history_manager.input_hist_raw
    assert not any(token in one for one in inside)


def test_a_service_that_does_not_answer_leaves_what_was_open(
    notebook: Notebook, service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run("%discreet clinic.toml")
    monkeypatch.setenv("DISCREET_TOKEN", "discreet_wrong")
    for url, said in ((service.url, "does not hold"), ("http://127.0.0.1:9", "no answer"), ("http://a.org", "TLS")):
        ran = notebook.run(f"%discreet {url}")
        assert ran.failed
        assert said in ran.said
        assert "discreet_wrong" not in ran.said
        assert "Traceback" not in ran.said
    assert "Curator of visits" in notebook.run("%discreet").shown[1]
    there = discreet.connect("http://127.0.0.1:9", token="discreet_wrong")
    notebook.shell.push({"there": there})
    assert notebook.run("display(there)").shown[0].startswith("Curator at http://127.0.0.1:9: url: no answer came")


def test_where_no_token_can_be_asked_for_none_is(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    def unheard(_: str) -> str:
        warnings.warn("it would be shown", getpass.GetPassWarning, stacklevel=2)
        raise AssertionError

    for unable in (unheard, lambda _: (_ for _ in ()).throw(EOFError)):
        monkeypatch.setattr("getpass.getpass", unable)
        assert "set DISCREET_TOKEN" in notebook.run("%discreet http://127.0.0.1:9").said


def test_it_is_taken_away_again(notebook: Notebook) -> None:
    notebook.run("%discreet clinic.toml --name clinic")
    assert not notebook.run("%unload_ext discreet").failed
    assert "not found" in notebook.run("%discreet clinic.toml").said
    with pytest.raises(Exception, match="closed"):
        notebook.value("clinic").ask(COUNTS, epsilon=0.1)
