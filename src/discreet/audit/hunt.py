"""Fuzzing: whole random questions, asked on neighbouring tables with and without persons of edge-case values.

Whether a question fails, what it costs, and everything that is printed beside noise must not depend on anybody. So two
curators over neighbouring tables, each with a ledger in memory, are asked the same: neither fails, and whatever follows
from question and declaration is equal to the byte. One failure in a thousand questions is a finding: asked with
`WHERE id = 7 AND …` it reads one person exactly, at any price.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import Any

from discreet.audit.claims import Claim, Result
from discreet.audit.hostile import World, crowd, with_persons, written
from discreet.audit.made_up import Stage
from discreet.audit.maker import Maker
from discreet.audit.targets import ComputedAttack
from discreet.catalog import Budget, Declaration, Source, Table
from discreet.curator import Curator
from discreet.errors import EngineError, QuestionError
from discreet.ledger import TOTAL

PLENTY = Budget(Fraction(10**9), Fraction(4, 5), Fraction(4, 5))
PRICES = (
    (Fraction(1, 10**6), Fraction(1, 10**9)),
    (Fraction(1), Fraction(1, 10**6)),
    (Fraction(60), Fraction(1, 10**5)),
)
"""ε and δ of questions: at the last even groups of one person are shown."""

EXPLAINED = 4
"""One question of so many is explained as well: that is as much work as to answer it."""

Price = tuple[Fraction, Fraction]
Store = Callable[[Table, Sequence[Mapping[str, Any]]], Source]
"""Makes a source of rows."""
Seen = dict[str, Any]
"""Everything about an answer that must not depend on anybody, under names of its parts."""


@dataclass(frozen=True)
class DistinguishingQuestion:
    """A question that tells the neighbours apart, or fails; and how."""

    question: str
    what: str

    def __str__(self) -> str:
        return f"{self.what}: {self.question}"


class Pair:
    """Two curators over neighbouring tables. After a failure that lasts they begin anew."""

    def __init__(self, known: Declaration, worlds: tuple[World, World], store: Store) -> None:
        self._declared = []
        for world in worlds:
            tables = {one.name: replace(one, source=store(one, world[one.name])) for one in known.tables.values()}
            self._declared.append(replace(known, tables=tables, budget=PLENTY, analysts={}, ledger=None, file=None))
        table = next(table for table in known.tables.values() if not table.public)
        self._plain = f'SELECT COUNT(*) FROM "{table.name}"'
        self.curators: list[Curator] = []
        self.start()

    @classmethod
    def of(cls, known: Declaration, store: Store) -> Pair:
        """A small crowd, and the same with all hostile persons."""
        others = crowd(known)
        return cls(known, (others, with_persons(known, others)), store)

    def start(self) -> None:
        """Curators with nothing spent."""
        self.close()
        self.curators = [Curator.of(one) for one in self._declared]

    def close(self) -> None:
        for curator in self.curators:
            curator.close()
        self.curators = []

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, question: str, price: Price, *, explained: bool = True) -> str:
        """What is wrong with a question; empty where nothing is."""
        one, two = (seen(curator, question, price, explained=explained) for curator in self.curators)
        words = sorted({failure(one), failure(two)} - {""})
        differing = next((name for name in (*one, *two) if one.get(name) != two.get(name)), None)
        if differing is not None:
            words = [f"{differing} differs", *words]
        if words:
            self._mend()
        return ": ".join(words)

    def _mend(self) -> None:
        """Begins anew where a failure has left something behind."""
        if any(failure(seen(curator, self._plain, PRICES[1], explained=False)) for curator in self.curators):
            self.start()


def failure(seen: Seen) -> str:
    """The error, where it is not one that a question may meet."""
    return str(seen.get("failure", ""))


def seen(curator: Curator, question: str, price: Price, *, explained: bool = True) -> Seen:
    """What a curator lets everybody see of a question: what it explains, whether it answers, what it prints."""
    before = curator.ledger.filter(TOTAL).spent
    parts: Seen = {"spent before": before}
    if explained:
        shown = tried(lambda: _explained(curator, question, price))
        parts |= {name if name == "failure" else f"explain: {name}": value for name, value in shown.items()}
    parts |= tried(lambda: _answered(curator, question, price))
    after = curator.ledger.filter(TOTAL).spent
    if "refused" in parts and before != after:
        parts["failure"] = "charged and refused"
    return {**parts, "spent after": after}


def tried(make: Callable[[], Seen]) -> Seen:
    """What is seen, or how it is refused, or fails."""
    try:
        return make()
    except QuestionError as error:
        return {"refused": (error.to_dict(), str(error), error.args)}
    except EngineError as error:
        return {"failure": f"EngineError ({error.code})"}
    except Exception as error:
        return {"failure": f"{type(error).__name__}: {error}"}


def _explained(curator: Curator, question: str, price: Price) -> Seen:
    explanation = curator.explain(question, epsilon=price[0], delta=price[1])
    return {"text": str(explanation), **{name: repr(value) for name, value in vars(explanation).items()}}


NOISY = ("rows", "intervals", "simultaneous", "used", "charged")
"""The parts of an answer in which noise is."""
_MISSING = re.compile(
    r"(; )?at most [^ ]+ is missing( in the groups shown)?, (?:with 95 %|at 95 % confidence)"
    r"(, of at most [\d,]+ persons)?"
)
"""What limits may have left out is worked out from the noisy number."""
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")


def _answered(curator: Curator, question: str, price: Price) -> Seen:
    """The deterministic parts of an answer."""
    release = curator.ask(question, epsilon=price[0], delta=price[1])
    content = release.to_dict()
    parts = {name: repr(value) for name, value in content.items() if name not in NOISY}
    parts["footer"] = _MISSING.sub("", _footer(repr(release)))
    parts["bounds"] = _MISSING.sub("", repr(release.bounds))
    parts["left_out"] = repr([(one.what, one.column, one.limit, one.share) for one in release.left_out])
    release._repr_html_()
    if any("bounds found" in words or "ranks" in words for words in release.bounds):  # these sentences name noise
        del parts["footer"]
        kept = [(one.what, one.column) for one in release.left_out if one.what != "number"]
        parts = {name: _NUMBER.sub("#", value) for name, value in (parts | {"left_out": repr(kept)}).items()}
    measured = {name for one in content["mechanisms"] for name in one["columns"].split(", ")}
    private = any("too few persons" in words for words in release.bounds)
    if not private and not re.search(r"\b(HAVING|LIMIT|ORDER BY)\b", question):
        keys = [name for name in release.columns if name in content["types"] and name not in measured]
        parts["keys"] = repr([tuple(row[key] for key in keys) for row in release.rows])
    return dict(parts)


def _footer(printed: str) -> str:
    """What stands below the table."""
    lines = printed.splitlines()
    place = next((number for number, line in enumerate(lines) if line.startswith("price ")), 0)
    return "\n".join(lines[place:])


def hunt(
    known: Declaration, pair: Pair, seed: int, questions: int, *, smaller: bool = True
) -> list[DistinguishingQuestion]:
    """What was found in so many questions; with `smaller` each is made as short as it can be."""
    maker, dice = Maker(known, seed, slips=0.01), Random(seed)
    found: list[DistinguishingQuestion] = []
    for number in range(questions):
        text, price = maker.question(), dice.choice(PRICES)
        what = pair.ask(text, price, explained=number % EXPLAINED == 0)
        if what:
            found.append(DistinguishingQuestion(shrunk(text, pair, price, what) if smaller else text, what))
    return found


_PIECE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\d*\.\d+(?:e[-+]?\d+)?|\w+|=>|<=>|<=|>=|<>|!=|::|\|\||>>|\S")
"""The words of a question."""
_TRIES = 400


def shrunk(question: str, pair: Pair, price: Price, what: str) -> str:
    """A shorter question with the same fault: pieces are left out, or put for what they stand in, while it has it."""

    def same(text: str) -> bool:
        return pair.ask(text, price, explained=what.startswith("explain")) == what

    words: list[str] = _PIECE.findall(question)
    tries = 0
    smaller = same(" ".join(words))
    if not smaller:
        return question
    while smaller:
        smaller = False
        for candidate in sorted(_shorter(words), key=len):
            tries += 1
            if tries > _TRIES:
                break
            if same(" ".join(candidate)):
                words, smaller = candidate, True
                break
    return " ".join(words)


def _shorter(words: Sequence[str]) -> Iterator[list[str]]:
    """The same without a stretch of words whose brackets close, or with what stands in brackets for what is around."""
    closing: dict[int, int] = {}
    stack: list[int] = []
    for place, word in enumerate(words):
        if word == "(":
            stack.append(place)
        elif word == ")" and stack:
            closing[stack.pop()] = place
    for start in range(len(words)):
        depth = 0
        for end in range(start, min(len(words), start + 60)):
            depth += (words[end] == "(") - (words[end] == ")")
            if depth < 0:
                break
            if depth == 0:
                yield [*words[:start], *words[end + 1 :]]
    for opening, close in closing.items():
        before = opening - 1 if opening and words[opening - 1].isidentifier() else opening
        yield [*words[:before], *words[opening + 1 : close], *words[close + 1 :]]


def target(known: Declaration, stage: Stage, questions: int, seed: int) -> ComputedAttack:
    """The hunt as a subject of the audit, over files of its own."""
    subject = f"{questions:,} whole questions, with hostile persons and without"

    def store(table: Table, rows: Sequence[Mapping[str, Any]]) -> Source:
        return stage.write(table, [{name: written(value) for name, value in row.items()} for row in rows]).source

    def compute() -> Result:
        at_once = replace(known, limits=replace(known.limits, answer_seconds=None))
        with Pair.of(at_once, store) as pair:
            found = hunt(known, pair, seed, questions)
        words = f"{len(found)} questions fail or differ, among them {found[0]}" if found else "nothing"
        return Result(subject, "hunted", Claim(), None, bool(found), words, 2 * questions)

    return ComputedAttack(subject, compute)
