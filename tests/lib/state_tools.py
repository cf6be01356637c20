"""A declared synthetic state in a folder, which a test may ask, restore and look into."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet import Curator
from discreet.synthesis.state import StateQuestion, SyntheticState, state_question
from discreet.trusted.ring_c import interactive
from discreet.trusted.ring_c.interactive import Answering, Counted, Interactive, Reply, Secret, Transcript

Person = tuple[Any, Any, Any, Any]
"""An id, a sex, a region and a level."""

REGIONS = ("north", "south", "east")
ROWS: list[Person] = [
    (f"p{i}", "FM"[i % 3 == 0], REGIONS[(i % 7) // 3 if i % 5 else 0], 1 + (i * i) % 4) for i in range(3_000)
]


def declaration(**said: Any) -> str:
    """The text of a declaration with a synthetic state; what is said replaces lines of it, None leaves one out."""
    lines = {
        "interactive": True,
        "table": "people",
        "columns": ["sex", "region", "level"],
        "updates": 5,
        "epsilon": 2.0,
        "key": "keys/state.key",
    } | {name: value for name, value in said.items() if name not in ("most", "regions", "top", "budget")}
    state = "\n".join(f"{name} = {_toml(value)}" for name, value in lines.items() if value is not None)
    most, regions = said.get("most", 1), _toml(list(said.get("regions", REGIONS)))
    whose = "one_row_per_person = true" if most == 1 else f'person = "id"\nrows_per_person = {most}'
    return f"""{said.get("top", "")}
[budget]
epsilon = {said.get("budget", 5.0)}
delta = 1e-6

[tables.people]
source = "people.csv"
{whose}
[tables.people.columns]
id = {{ type = "text" }}
sex = {{ type = "text", values = ["F", "M"] }}
region = {{ type = "text", values = {regions} }}
level = {{ type = "integer", min = 1, max = 4 }}

[synthesis]
{state}
"""


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


class World:
    """A folder with a declaration, its source, and the state's files. A curator lives as long as a `with` block."""

    def __init__(self, folder: Path, rows: Iterable[Person] = ROWS, **said: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "keys").mkdir(exist_ok=True)
        self.folder, self.file = folder, folder / "clinic.toml"
        self.file.write_text(declaration(**said))
        self.ledger, self.head = folder / "clinic.ledger", folder / "clinic.ledger.head"
        self.write(rows)

    @property
    def secret(self) -> Path:
        """The state's file."""
        (found,) = self.folder.glob("clinic.ledger+*.state")
        return found

    def write(self, rows: Iterable[Person]) -> None:
        """What the source holds from now on."""
        with (self.folder / "people.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "sex", "region", "level"])
            writer.writerows(rows)

    @contextmanager
    def opened(self) -> Any:
        """A curator, and its state as a test asks it."""
        with discreet.open(self.file) as curator:
            curator._holdings.load()
            yield Asker(curator)

    def asks(self, far: Sequence[bool]) -> list[bool]:
        """Asks questions of which the public answers are far off or not, in a process of its own as far as this one
        knows; whether each was hard."""
        with self.opened() as asker:
            return [asker.ask(10**6 if one else 0).hard for one in far]


@dataclass
class Asker:
    """Asks the state directly, with public answers of the test's own."""

    curator: Curator

    @property
    def state(self) -> SyntheticState:
        assert self.curator._answering.by_state.state is not None
        return self.curator._answering.by_state.state

    @property
    def answering(self) -> Answering:
        return self.state._answering

    @property
    def whole(self) -> Interactive:
        return self.state.whole

    @property
    def transcript(self) -> Transcript:
        return self.answering.transcript()

    @property
    def rows(self) -> object:
        return self.curator._engine.rows

    def question(self, text: str = "SELECT COUNT(*) FROM people WHERE sex = 'F' AND sex = 'M'") -> StateQuestion:
        """A question; without a text one that counts nobody."""
        checked = self.curator._planner.one_table(text)
        found = state_question(checked.plan, checked.table, self.whole)
        assert found is not None
        return found

    def begin(self) -> bool:
        return self.state.begin(self.question(), self.rows)

    def ask(self, public: int = 0, question: StateQuestion | None = None) -> Reply:
        """The reply to a question whose public answers are all this."""
        self.begin()
        one = question or self.question()
        asked = Counted(one.exact, (public,) * one.groups, "said", "kept")
        found = self.answering.ask(asked, question="a question", analyst="", rows=self.rows)
        if found is None:
            raise Used
        return found

    def secret(self) -> Secret:
        """The threshold and all."""
        with self.answering._file.held() as key:
            return self.answering._file.read(key, self.whole.name)


@pytest.fixture(autouse=True)
def surely(monkeypatch: pytest.MonkeyPatch) -> None:
    """A threshold so far away that a question without any error is called hard with probability e^−40, where it is one
    in a thousand else. For test files that import it."""
    far(monkeypatch.setattr)


def far(set_: Any = setattr) -> None:
    """The same for a process of its own."""
    set_(interactive, "_FAR", 40)


class Used(Exception):
    """The state answers no more."""
