"""Questions for timing attacks: each makes one person's rows take far longer than all others.

They are asked about a world in which nobody but the target has a certain value, and long texts stand beside it. Each
must be refused before anything is paid, or take a time that says nothing about the person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from discreet.audit.hostile import World, crowd
from discreet.audit.world import world
from discreet.catalog import Declaration, EngineLimits

TARGET = 7
"""The person's number in the columns `id` and `who`."""

HIGH = 1
"""What the column `whole` holds for nobody but the target: how an analyst asks about a value."""

_ONE = f"id = {TARGET} AND whole = {HIGH}"
_MANY = f"who = {TARGET} AND whole = {HIGH}"


def _cross(levels: int) -> str:
    joins = " ".join(f"CROSS JOIN codes c{n}" for n in range(levels))
    return f"SELECT COUNT(*) FROM (SELECT id FROM people WHERE {_ONE}) p {joins}"


def _self(times: int) -> str:
    joins = " ".join(f"JOIN visits v{n} ON v0.who = v{n}.who" for n in range(1, times))
    return f"SELECT COUNT(*) FROM (SELECT who FROM visits WHERE {_MANY}) v0 {joins}"


def _regexes(count: int, guard: str) -> str:
    text = {
        "case": f"CASE WHEN {_ONE} THEN REPLACE(note, 'b', 'c') ELSE '' END",
        "coalesce": f"COALESCE(CASE WHEN NOT ({_ONE}) THEN '' END, note)",
        "substring": f"LEFT(note, CASE WHEN {_ONE} THEN 10000 ELSE 0 END)",
    }[guard]
    tests = " + ".join(
        f"IF(REGEXP_CONTAINS(w, '(a|b|{chr(99 + n % 20)}){{{n % 9 + 1}}}z{n}'), 1, 0)" for n in range(count)
    )
    return f"SELECT COUNTIF({tests} > 0) FROM (SELECT id, {text} AS w FROM people)"


def _guarded(count: int, word: str) -> str:
    tests = [f"REGEXP_CONTAINS(note, '(.a|b.|c){{{n % 9 + 1}}}z{n}')" for n in range(count)]
    joined = f" {'AND' if word == 'OR' else 'OR'} ".join(f"NOT {one}" if word == "AND" else one for one in tests)
    guard = f"({_ONE}) AND ({joined})" if word == "AND" else f"NOT ({_ONE}) OR ({joined})"
    return f"SELECT COUNT(*) FROM people WHERE {guard}"


def _growing(levels: int, *, grouped: bool) -> str:
    below, text = "people", f"CASE WHEN {_ONE} THEN note ELSE '' END"
    for _ in range(levels):
        many = f"CONCAT({', '.join(['w'] * 20)})"
        made = f"SELECT id, {text} AS w FROM {below}" if below == "people" else f"SELECT id, {many} AS w FROM {below}"
        if grouped and below != "people":
            made = f"SELECT id, MAX({many}) AS w FROM {below} GROUP BY id"
        below = f"({made})"
    return f"SELECT COUNT(*) FROM {below} WHERE LENGTH(w) > 3 AND REVERSE(w) LIKE '%a%b%'"


def _padded(levels: int) -> str:
    pads = " || ".join(f"LPAD(CASE WHEN {_ONE} THEN note ELSE '' END, 1000, '{n % 10}')" for n in range(levels))
    return f"SELECT COUNTIF(UPPER({pads}) LIKE '%a%b%c%') FROM people"


def _keyed() -> str:
    return (
        f"SELECT COUNT(*) FROM (SELECT id, CASE WHEN {_ONE} THEN 'many' ELSE 'none' END AS k FROM people) p"
        " JOIN (SELECT CASE WHEN rate > -1 THEN 'many' END AS k FROM codes) c ON p.k = c.k"
        " JOIN (SELECT CASE WHEN rate > -1 THEN 'many' END AS k FROM codes) d ON p.k = d.k"
    )


def _stacked(times: int) -> str:
    part = f"SELECT who FROM visits WHERE {_MANY}"
    union = " UNION ALL ".join([part] * times)
    return f"SELECT COUNT(*) FROM ({union}) a JOIN ({union}) b ON a.who = b.who"


def _alone() -> str:
    dear = "REGEXP_CONTAINS(note, '[ab]*a[ab]{5}c')"
    return (
        f"SELECT COUNTIF(a.m) FROM (SELECT id, whole, {dear} AS m FROM people) a"
        f" JOIN people b ON a.id = b.id AND a.whole = b.whole WHERE b.whole = {HIGH}"
    )


PUBLIC = 1_000
"""Rows of the public table."""


def worlds(others: int = 50) -> tuple[World, World]:
    """Everybody else, and the same with the target, who has as many rows as count and long texts."""
    known = world()
    absent = {name: list(rows) for name, rows in crowd(known, count=others).items()}
    absent["codes"] = list(crowd(known, count=PUBLIC)["codes"])
    for rows in (absent["people"], absent["visits"]):
        for place, row in enumerate(rows):
            rows[place] = {**row, "whole": 0, **{name: 100 + place for name in ("id", "who") if name in row}}
    text = "abcb" * 25_000
    person = {**absent["people"][0], "id": TARGET, "whole": HIGH, "note": text, "city": "x", "age": 3}
    visits = [{**absent["visits"][0], "visit": f"t{n}", "who": TARGET, "whole": HIGH, "note": text} for n in range(5)]
    present = {**absent, "people": [*absent["people"], person], "visits": [*absent["visits"], *visits]}
    return absent, present


def declared(seconds: int | None = None) -> Declaration:
    """The tables that the questions are about; with `seconds` every answer comes that long after it was asked."""
    return replace(world(), limits=EngineLimits(4, 60, answer_seconds=seconds))


def questions() -> Mapping[str, str]:
    """The aimed questions by name."""
    return dict(_questions())


def _questions() -> Iterator[tuple[str, str]]:
    for levels in (1, 2, 3):
        yield f"{levels} cross joins with a public table", _cross(levels)
    yield "a join on a key that all public rows share", _keyed()
    for times in (2, 5, 12):
        yield f"{times} times the person's own rows", _self(times)
    yield "stacks that meet each other", _stacked(6)
    yield "everybody's rows beside a side that only the person is in", _alone()
    for guard in ("case", "coalesce", "substring"):
        yield f"90 regular expressions on a text by {guard}", _regexes(90, guard)
        yield f"5 regular expressions on a text by {guard}", _regexes(5, guard)
    for word in ("AND", "OR"):
        yield f"30 regular expressions behind {word}", _guarded(30, word)
    for levels in (2, 4):
        yield f"a text that grows twentyfold, {levels} levels", _growing(levels, grouped=False)
        yield f"a text that grows twentyfold, {levels} levels of GROUP BY", _growing(levels, grouped=True)
    yield "texts padded and put together", _padded(15)
    yield "a plain question", f"SELECT COUNT(*) FROM people WHERE {_ONE}"
