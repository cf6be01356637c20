"""The public suite of questions: how its files are read, what is asked, and how what came is judged.

A file of `tests/asked` has questions one below the other:

    --- a name | option, option=value
    the question
    --- plain
    what plain DuckDB is asked instead, where that is not the same text
    --- words
    what the refusal must say, where the question is to be refused: in its message or in what to write instead; a line
    is a word, or several of which one will do, as `row / person`
    --- mended
    what a reader writes who follows the refusal

Options: `data=shop` (for the file: in its first lines), `dialect=postgres`, `refused` (it is to be refused), `near=0.5`
(how far numbers may lie from plain SQL's: ranks of quantiles).
"""

from __future__ import annotations

import inspect
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import sqlglot

import discreet
from asked_data import EXACT, Asked
from kinds import ROOT, TESTS

FOLDER = TESTS / "asked"
NOT_YET = FOLDER / "not_yet.txt"
PAGE = ROOT / "docs" / "sql.md"

EQUAL, DIFFERENT = "equal", "different"
WELL, BADLY = "refused well", "refused badly"
FAILED = "failed"
STATES = (EQUAL, DIFFERENT, WELL, BADLY, FAILED)

_PARTS = ("plain", "words", "mended")
_CLOSE = 1e-6


@dataclass(frozen=True)
class Question:
    suite: str
    name: str
    text: str
    data: str
    options: Mapping[str, str] = field(default_factory=dict)
    plain: str = ""
    words: tuple[str, ...] = ()
    mended: str = ""

    @property
    def id(self) -> str:
        return f"{self.suite}/{self.name}"

    @property
    def wanted(self) -> str:
        """The state in which the question should be."""
        return WELL if "refused" in self.options else EQUAL

    @property
    def near(self) -> float:
        return float(self.options.get("near", 0))


@dataclass(frozen=True)
class Outcome:
    state: str
    told: str = ""
    """What was said, or what was found instead of what."""


def suites() -> dict[str, list[Question]]:
    """Every question, by the name of its file."""
    return {path.stem: list(_read(path)) for path in sorted(FOLDER.glob("*.sql"))}


def _read(path: Path) -> Iterable[Question]:
    head, *blocks = re.split(r"^--- ", path.read_text("utf-8"), flags=re.MULTILINE)
    options = _options(re.findall(r"^-- \| (.*)$", head, flags=re.MULTILINE))
    found: list[dict[str, str]] = []
    for block in blocks:
        first, _, text = block.partition("\n")
        if first.strip() in _PARTS:
            found[-1][first.strip()] = text.strip()
        else:
            found.append({"head": first, "text": text.strip()})
    names = Counter(one["head"].partition("|")[0].strip() for one in found)
    assert max(names.values()) == 1, f"{path.name}: {names.most_common(1)}"
    for one in found:
        name, _, own = one["head"].partition("|")
        given = {**options, **_options([own])}
        words = tuple(line for line in one.get("words", "").splitlines() if line)
        question = Question(
            path.stem,
            name.strip(),
            one["text"],
            given["data"],
            given,
            one.get("plain", ""),
            words,
            one.get("mended", ""),
        )
        assert ("refused" in given) == bool(words), f"{question.id}: a refused question has words, no other has"
        assert not words or question.mended, f"{question.id}: what would a reader write instead?"
        yield question


def _options(lines: Sequence[str]) -> dict[str, str]:
    pairs = (one.strip().partition("=") for line in lines for one in line.split(",") if one.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


def judged(asked: Asked, question: Question) -> Outcome:
    """Asks a question at a price that hides nothing, and compares what comes with plain SQL."""
    try:
        release = asks(asked, question, question.text)
    except discreet.QuestionError as refusal:
        return _refused(asked, question, refusal)
    except Exception as error:
        return Outcome(FAILED, f"{type(error).__name__}: {error}")
    if question.wanted == WELL:
        return Outcome(DIFFERENT, "it was answered")
    found, expected = _rows([list(row.values()) for row in release.rows]), _rows(truth(asked.plain, question))
    if _same(question, found, expected):
        return Outcome(EQUAL)
    return Outcome(DIFFERENT, f"{_some(found)} instead of {_some(expected)}")


def asks(asked: Asked, question: Question, text: str, price: str = EXACT) -> discreet.Release:
    dialect = question.options.get("dialect")
    more: dict[str, Any] = {"dialect": dialect} if dialect and _takes_dialects(asked.curator) else {}
    if re.search(r"\bepsilon\s*=", text):  # it names its price itself
        return asked.curator.ask(text, **more)
    return asked.curator.ask(text, epsilon=price, **more)


def _takes_dialects(curator: discreet.Curator) -> bool:
    return "dialect" in inspect.signature(curator.ask).parameters


def _refused(asked: Asked, question: Question, refusal: discreet.QuestionError) -> Outcome:
    """A refusal is a good one where it says what it should, and what a reader would write then is answered."""
    told = str(refusal)
    if not question.words:
        return Outcome(BADLY, told)
    missing = [
        line for line in question.words if not any(word.casefold() in told.casefold() for word in line.split(" / "))
    ]
    if missing:
        return Outcome(BADLY, f"{told} · it does not say {missing}")
    try:
        asks(asked, question, question.mended)
    except discreet.Error as error:
        return Outcome(BADLY, f"{told} · and then: {error}")
    return Outcome(WELL, told)


def truth(plain: duckdb.DuckDBPyConnection, question: Question) -> list[Sequence[Any]]:
    """What plain DuckDB answers."""
    text = question.plain
    if not text:
        dialect = question.options.get("dialect")
        text = sqlglot.transpile(question.text, read=dialect, write="duckdb")[0] if dialect else question.text
    return plain.execute(text).fetchall()


def _rows(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    return [[_value(value) for value in row] for row in rows]


def _value(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time())
    if isinstance(value, tuple | list):
        return [_value(one) for one in value]
    return value


def _same(question: Question, found: list[list[Any]], expected: list[list[Any]]) -> bool:
    if not ordered(question):
        found, expected = sorted(found, key=_place), sorted(expected, key=_place)
    return len(found) == len(expected) and all(
        len(one) == len(other) and all(_alike(a, b, question.near) for a, b in zip(one, other, strict=True))
        for one, other in zip(found, expected, strict=True)
    )


def ordered(question: Question) -> bool:
    """Whether the question says in which order its rows stand."""
    try:
        tree = sqlglot.parse_one(question.plain or question.text, read=None if question.plain else _dialect(question))
    except sqlglot.errors.SqlglotError:
        return bool(re.search(r"ORDER\s+BY", question.plain or question.text, re.IGNORECASE))
    return tree.args.get("order") is not None


def _dialect(question: Question) -> str | None:
    return question.options.get("dialect")


def _place(row: Sequence[Any]) -> list[tuple[str, Any]]:
    """Where a row stands among others, whatever they hold; numbers that differ by rounding stand alike."""
    return [
        ("", "") if value is None
        else ("number", float(f"{value:.5g}")) if isinstance(value, int | float)
        else (type(value).__name__, str(value))
        for value in row
    ]  # fmt: skip


def _alike(one: Any, other: Any, near: float) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_alike(a, b, near) for a, b in zip(one, other, strict=True))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=max(_CLOSE, near))
    if isinstance(one, datetime) and isinstance(other, datetime):
        return abs((one.replace(tzinfo=None) - other.replace(tzinfo=None)).total_seconds()) <= near * 86_400
    return bool(one == other)


def _some(rows: list[list[Any]]) -> str:
    return f"{len(rows)} rows {rows[:3]}"[:300]


def not_yet() -> dict[str, str]:
    """The questions that are not as they should be, with the state they are in."""
    lines = (line for line in NOT_YET.read_text("utf-8").splitlines() if line and not line.startswith("#"))
    return {name.strip(): state.strip() for name, _, state in (line.rpartition("|") for line in lines)}


def write_not_yet(states: Mapping[str, str], questions: Iterable[Question]) -> None:
    head = (
        "# Questions of this suite that are not answered, or refused, as they should be, and what comes instead.\n"
        "# This list is to become empty. `python -m tests.asked --write` writes it, and the table of docs/sql.md.\n"
    )
    lines = [f"{one.id} | {states[one.id]}\n" for one in questions if states[one.id] != one.wanted]
    NOT_YET.write_text(head + "".join(lines), "utf-8")


def table(every: Mapping[str, Sequence[Question]], states: Mapping[str, str]) -> str:
    """What became of the questions, by suite, as the page shows it."""
    lines = [
        "| suite | questions | run | equal to plain SQL | refused well | refused badly | failed | to be refused |",
        "|---|---|---|---|---|---|---|---|",
    ]
    sums = [0] * 7
    for name, questions in every.items():
        count = Counter(states[one.id] for one in questions)
        refused = sum(one.wanted == WELL for one in questions)
        row = [len(questions), count[EQUAL] + count[DIFFERENT], count[EQUAL], count[WELL], count[BADLY], count[FAILED]]
        row.append(refused)
        sums = [one + other for one, other in zip(sums, row, strict=True)]
        lines.append(f"| {name} | {' | '.join(map(str, row))} |")
    lines.append(f"| all | {' | '.join(map(str, sums))} |")
    return "\n".join(lines) + "\n"


BEGIN, END = "<!-- asked -->\n", "<!-- /asked -->"


def in_page(made: str) -> str:
    """The page with this table in it."""
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    return f"{before}{BEGIN}{made}{END}{rest.partition(END)[2]}"
