"""Documents and answers that somebody made up: both clients refuse the same; what both take gives the same reports."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import DeclarationError, QuestionError
from discreet.local import Collection, Number, Ordered, Text
from discreet.local.draws import Remembered
from discreet.local.report import randomised
from node_tools import needs_node, node

SECRET, TAPE, WINDOW = bytes(range(32)), bytes(range(1, 201)), "2026-11"

BASES = [
    (Collection("coin", "Heads?", ["no", "yes", 3], epsilon="ln 3", public=["country"]), ["no", "yes", 3]),
    (Collection("many", "Which?", list(range(40)), epsilon="0.75"), [0, 39]),
    (Collection("mean", "How much?", Number("-1.5", 10, "0.25"), epsilon=2), [-2, "0.375", 10]),
    (Collection("age", "How old?", Ordered(0, 12), epsilon=4), [0, 7, 13]),
    (Collection("word", "Which?", Text(3), epsilon="1.25"), ["a", "köln"]),
    (
        Collection("both", "Both?", {"os": ["linux", "mac"], "__proto__": Ordered(1, 9)}, epsilon=1),
        [json.loads('{"os": "mac", "__proto__": 4}')],
    ),
    (
        Collection("own", "Two?", {"a": ["x", "y"], "b": Text(2)}, epsilon=1, questions={"b": "Which word?"}),
        [{"a": "x", "b": "on"}],
    ),
    (Collection("mood", "How?", ["a", "b", "c"], epsilon=2, each="0.5", cap=15), ["a", "b", "c"]),
]

HOSTILE = [
    *("null", "true", "false", "0", "-1", "1", "2.0", "1.5", "1e308", "9007199254740993", "NaN", "-Infinity", "1e999"),
    *('""', '"1"', '"0.5"', '"NaN"', '"ln 3"', '"ln 003"', '"1.0"', '"+1"', '"１"', '"1_0"', '" 1"', '"1e0"', '"-0"'),
    *(
        '"__proto__"',
        '"constructor"',
        '"\\ud800"',
        '"e\\u0301"',
        '"a\\nb"',
        "[]",
        "{}",
        "[1]",
        '["1"]',
        '{"__proto__":1}',
    ),
]


def places(one: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything in a document, lists by their first and last elements."""
    yield path
    found = one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
    for name, inner in found:
        if not isinstance(one, list) or name in (0, len(one) - 1):
            yield from places(inner, (*path, name))


def written(document: Any) -> str:
    """As a collection writes it; the numbers in «» are put in as they stand there."""
    text = json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return re.sub('"«(.*?)»"', lambda match: json.loads(f'"{match[1]}"'), text)


def changed(document: Any, path: tuple[Any, ...], change: Any) -> str:
    """The document with `change` made to the object or list that holds the last of the path, and to what it is."""
    found = [copy.deepcopy(document)]
    holder, last = found, 0
    for step in path:
        holder, last = holder[last], step
    change(holder, last)
    return written(found[0]) if found else ""


def mutants(text: str) -> Iterator[str]:
    document = json.loads(text)
    for path in places(document):
        for raw in HOSTILE:
            yield changed(document, path, lambda holder, last, raw=raw: holder.__setitem__(last, f"«{raw}»"))
        value: Any = document
        for step in path:
            value = value[step]
        if isinstance(value, int):
            for other in (str(value), value + 1, value - 1, -value, 2 * value, value + (1 << 53)):
                yield changed(document, path, lambda holder, last, other=other: holder.__setitem__(last, other))
            yield changed(document, path, lambda holder, last, value=value: holder.__setitem__(last, f"«{value}.0»"))
        if isinstance(value, list):
            yield changed(document, (*path, 0), lambda holder, _: holder.reverse())
            yield changed(document, (*path, 0), lambda holder, _: holder.__setitem__(slice(0, 1), holder[-1:]))
            yield changed(document, (*path, 0), lambda holder, _: holder.append(holder[0]) if holder else None)
        if isinstance(value, dict):
            for name in ("more", "__proto__", "constructor", "toJSON", "length", "then"):
                yield changed(document, path, lambda holder, last, name=name: holder[last].__setitem__(name, 1))
        if path:
            yield changed(document, path, lambda holder, last: holder.pop(last))
            yield changed(document, path, lambda holder, last: holder.__setitem__(last, [holder[last]]))
    name = '"version":"discreet local 1"'
    for before, after in [
        (name, f"{name},{name}"),
        (name, f'"version":"2",{name}'),
        (name, f'{name},"version":"2"'),
        (name, name.replace("v", "\\u0076", 1)),
        (name, f" {name}"),
        ('{"attributes"', '\ufeff{"attributes"'),
        ('{"attributes"', '\n{"attributes"'),
        ('{"attributes"', '{"__proto__":{"odds":[9,1]},"attributes"'),
        ('"odds":[', '"odds":[1,'),
        ('"odds":[', '"odds":[9'),
        ('"odds":[', '"odds":[1,"0.5"],"odds":['),
    ]:
        yield text.replace(before, after, 1)
    yield text + "\n"
    yield text + "null"
    yield text[:-1]
    yield json.dumps(document)
    yield json.dumps(document, indent=1)
    for other in ("lies", "é" * 200, "🍵" * 201, "a\u2028b", "\u202eb", "ﬁ", "e\u0301"):
        yield changed(document, ("question",), lambda holder, last, other=other: holder.__setitem__(last, other))
        yield changed(document, ("name",), lambda holder, last, other=other: holder.__setitem__(last, other))


def taken(document: str, answers: list[Any]) -> list[Any] | None:
    """What the client in Python makes of it, as documents.mjs writes it."""
    try:
        collection = Collection.from_json(document)
    except DeclarationError:
        return None
    found: list[Any] = [collection.hash]
    for answer in answers:
        try:
            token, part, report = randomised(collection, SECRET, WINDOW, answer, Remembered(b"", b"", bytearray(TAPE)))
        except QuestionError:
            found.append(None)
        else:
            made = {"token": token, "part": part, "report": report}
            found.append(json.dumps(made, separators=(",", ":")))
    return found


def both(cases: list[tuple[str, list[Any]]], folder: Path) -> list[tuple[Any, Any]]:
    """What Python and JavaScript make of documents and answers."""
    asked = [{"document": document, "answers": answers} for document, answers in cases]
    given = {"secret": SECRET.hex(), "tape": TAPE.hex(), "window": WINDOW, "cases": asked}
    (folder / "cases.json").write_text(json.dumps(given), "utf-8")
    there = json.loads(node("documents.mjs", str(folder / "cases.json")))
    return list(zip([taken(*one) for one in cases], there, strict=True))


@pytest.mark.outside
@needs_node
@pytest.mark.parametrize(("base", "answers"), BASES, ids=lambda one: getattr(one, "name", ""))
def test_both_clients_refuse_the_same_documents(base: Collection, answers: list[Any], tmp_path: Path) -> None:
    text = base.to_json()
    cases = [(text, answers), *((one, answers) for one in dict.fromkeys(mutants(text)) if one != text)]
    found = both(cases, tmp_path)
    for (document, _), (here, there) in zip(cases, found, strict=True):
        assert here == there, document
    assert None not in (found[0][0] or [None])
    refused = sum(here is None for here, _ in found)
    assert refused > 400
    assert len(found) - refused > 10  # other names and questions are other collections


BEYOND: list[tuple[str, int | Fraction, Any, dict[str, Any]]] = [
    ("collection.LEAST", Fraction(0), ["a", "b"], {"epsilon": "0.0009"}),
    ("collection.LEAST", Fraction(0), ["a", "b"], {"epsilon": "ln 1.001"}),
    ("collection.MOST", Fraction(99), ["a", "b"], {"epsilon": "10.1"}),
    ("collection.MOST", Fraction(99), ["a", "b"], {"epsilon": 1, "each": 11, "cap": 22}),
    ("collection.MOST_ATTRIBUTES", 99, {f"a{place}": ["a", "b"] for place in range(65)}, {"epsilon": 1}),
    ("collection.RESERVED", frozenset(), ["a", "b"], {"epsilon": 1, "public": ["token"]}),
    ("answers.MOST_STEPS", 1 << 20, lambda: Number(0, 65_537), {"epsilon": 1}),
    ("answers.MOST_STEPS", 1 << 20, lambda: Ordered(0, 65_537), {"epsilon": 1}),
    ("answers.LONGEST", 99, lambda: Text(33), {"epsilon": 1}),
]


@needs_node
def test_both_clients_refuse_what_lies_beyond_the_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents as they would be if there were no such limit, and of more or fewer reports than a cap allows."""
    texts = []
    for limit, other, answer, more in BEYOND:
        with monkeypatch.context() as without:
            without.setattr(f"discreet.local.{limit}", other)
            texts.append(Collection("n", "q", answer() if callable(answer) else answer, **more).to_json())
    for cap in ("0.4", "501"):
        with monkeypatch.context() as without:
            without.setattr("discreet.local.collection._cap", lambda cap, *_: Fraction(cap))
            texts.append(Collection("n", "q", ["a", "b"], epsilon=1, each="0.5", cap=cap).to_json())
    for (here, there), text in zip(both([(text, []) for text in texts], tmp_path), texts, strict=True):
        assert here is None, text
        assert there is None, text


def some(draw: random.Random) -> Collection:
    """A collection made up at random."""

    def epsilon() -> str:
        logarithm = f"ln {draw.randint(2, 998)}", f"ln {draw.randint(1, 9)}.{draw.randint(2, 999)}"
        return draw.choice(
            [*logarithm, f"{draw.uniform(0.001, 10):.{draw.randint(1, 20)}f}", f"0.0{draw.randint(1, 9)}"]
        )

    def answer() -> Any:
        low, high, bins = draw.randint(-9, 0), draw.randint(1, 3000), draw.choice([1, 5, 40, 400])
        values = list(range(draw.choice([2, 3, 7, 60, 700])))
        return draw.choice([values, Number(low, high, "0.5"), Ordered(low, bins), Text(draw.randint(1, 9))])

    while True:
        asked = {f"a{place}": answer() for place in range(draw.randint(1, 3))} if draw.random() < 0.3 else answer()
        more: dict[str, Any] = draw.choice([{}, {}, {"each": epsilon(), "cap": draw.randint(1, 90)}])
        try:
            return Collection("made", "up?", asked, epsilon=epsilon(), **more)
        except DeclarationError:
            continue


@needs_node
def test_both_clients_work_out_the_same_channels(tmp_path: Path) -> None:
    """Of collections at random, and of logarithms."""
    draw = random.Random(20261122)
    texts = [some(draw).to_json() for _ in range(40)]
    numbers = [*range(2, 1000, 31), *(f"{draw.randint(1, 999)}.{draw.randint(2, 999)}" for _ in range(30))]
    texts += [Collection("a", "b", ["x", "y"], epsilon=f"ln {number}").to_json() for number in numbers]
    near = "1.098612288668109691395245", "1.098612288668109691395246"  # just below and just above the logarithm of 3
    odds = [Collection("a", "b", ["x", "y"], epsilon=epsilon) for epsilon in near]
    assert [one.odds[0] - 3 * one.odds[1] for one in odds] == [-1, 0]
    texts += [one.to_json() for one in odds]
    for here, there in both([(text, []) for text in texts], tmp_path):
        assert here is not None
        assert here == there


ANSWERS = [
    *(
        0,
        1,
        -1,
        5,
        3.5,
        1e300,
        1 << 53,
        10**30,
        True,
        None,
        [],
        [0],
        {},
        {"a": 1},
        "",
        "a",
        "no",
        "e\u0301",
        "\ud800",
        "a\0",
    ),
    *(
        "5",
        " 5",
        "5 ",
        "1_0",
        "５",
        "+5",
        "5.",
        ".5",
        ".",
        "-",
        "1e2",
        "1e",
        "1e999",
        "1e1000",
        "inf",
        "nan",
        "0x10",
        "5,5",
    ),
    *("4.125", "9" * 60, "9" * 61, "🍵🍵", "é" * 10_000, "é" * 10_001, "__proto__", "constructor", "length"),
    *({"os": "mac"}, {"os": "mac", "__proto__": 4}, {"os": "mac", "age": 4}, {"os": "bsd", "age": 4}, ["mac", 4]),
    *({"os": "mac", "age": 4, "more": 1}, {"os": "mac", "age": "four"}, {"age": 120, "os": "linux"}),
]


@needs_node
def test_both_clients_refuse_the_same_answers(tmp_path: Path) -> None:
    asked = [["no", "é", 5], Number(0, 9), Ordered(0, 9, 3), Text(3), {"os": ["linux", "mac"], "age": Ordered(0, 99)}]
    asked += [{"length": Number(0, 9)}]
    cases = [(Collection("n", "q", one, epsilon=1).to_json(), ANSWERS) for one in asked]
    for here, there in both(cases, tmp_path):
        for answer, mine, other in zip(["", *ANSWERS], here, there, strict=True):
            assert mine == other, answer


def test_questions_of_attributes_are_in_the_document_and_older_documents_stay() -> None:
    record = {"os": ["linux", "mac"], "age": Number(0, 99)}
    plain = Collection("n", "q", record, epsilon=1)
    asked = Collection("n", "q", record, epsilon=1, questions={"os": "Which system?"})
    assert plain.hash == Collection("n", "q", record, epsilon=1, questions={}).hash != asked.hash
    assert [one.question for one in Collection.from_json(asked.to_json()).attributes] == ["Which system?", ""]
    assert "question" not in json.loads(plain.to_json())["attributes"][0]
    for answer, wrong in (
        (record, {"word": "?"}),
        (record, ["os"]),
        (record, {"os": ""}),
        (record, {"os": 1}),
        (["a", "b"], {"": "?"}),
    ):
        with pytest.raises(DeclarationError):
            Collection("n", "q", answer, epsilon=1, questions=wrong)  # type: ignore[arg-type]
