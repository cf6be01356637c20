"""Writes vectors.json: what a client must report, for the same secret, in whatever language it is written."""

from __future__ import annotations

import datetime
import hashlib
import json

from discreet.local import Collection, Number, Ordered, Text
from discreet.local.draws import Remembered
from discreet.local.report import randomised
from kinds import DATA

PATH = DATA / "vectors.json"
CASES = 20

COLLECTIONS = [
    (Collection("coin", "Heads?", ["no", "yes"], epsilon="ln 3"), ["no", "yes"]),
    (
        Collection("drink", "Was?", ["café", "茶", "🍵", 7, -3], epsilon="0.25", window="day"),
        ["cafe\u0301", "茶", "🍵", 7, -3],
    ),
    (
        Collection("many", "Which?", [f"v{i}" for i in range(1024)], epsilon=1),
        [f"v{i * 37 % 1024}" for i in range(CASES)],
    ),
    (Collection("wide", "Which?", list(range(200)), epsilon=3, window="year"), list(range(0, 200, 5))),
    (
        Collection("mean", "How much?", Number("-1.5", 10, "0.25"), epsilon=2),
        [-2, "0.375", 0.1, 1e3, "3.1415926", 10, "-1e0", ".5", "-.75", "2."],
    ),
    (Collection("narrow", "How much?", Number(0, 5), epsilon="0.5", window="ever"), [0, 1, 2, 3, 4, 5, 2.5]),
    (Collection("age", "How old?", Ordered(0, 120), epsilon=4), [0, 17, 50, 119.5, 120, 200]),
    (
        Collection("word", "Which word?", Text(6), epsilon=2),
        ["a", "hello", "häßlich", "e\u0301t\u00e9", "🍵🍵", "longer than six"],
    ),
    (
        Collection("both", "Both?", {"os": ["linux", "mac"], "age": Number(0, 99), "bin": Ordered(1, 9)}, epsilon=1),
        [{"os": "mac", "age": age, "bin": age % 9 + 1} for age in range(20)],
    ),
    (Collection("mood", "How?", ["a", "b", "c"], epsilon=2, each="0.5", cap=15), ["a", "b", "c"]),
    (Collection("moods", "How?", list(range(60)), epsilon=2, each=3, cap=30), list(range(30))),
]


def made() -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for collection, answers in COLLECTIONS:
        cases = []
        for number in range(CASES):
            secret = hashlib.sha256(f"{collection.name} {number}".encode()).digest()
            tape = hashlib.shake_128(secret).digest(64 if collection.each else 0)
            value, turn = answers[number % len(answers)], number % 3 if collection.each else 0
            window = collection.window_of(datetime.date(2026, 1 + number % 12, 1 + number % 28))
            words = Remembered(b"", b"", bytearray(tape))
            token, part, report = randomised(collection, secret, window, value, words, turn)
            case = {"secret": secret.hex(), "window": window, "value": value, "turn": turn, "fresh": tape.hex()}
            cases.append(case | {"token": token, "part": part, "report": report})
        found.append({"document": collection.to_json(), "hash": collection.hash, "cases": cases})
    return found


if __name__ == "__main__":
    PATH.write_text(json.dumps(made(), ensure_ascii=False, indent=0) + "\n", "utf-8")
