"""Tables with several rows a person, whose questions are exact at a price that hides nothing."""

from __future__ import annotations

from typing import Any

import pandas

import discreet

CATEGORIES = ("a", "b", "c", "d")
PERSONS = 60
DECLARED_ROWS, DECLARED_GROUPS = 8, 4
NOTHING = 10**20
"""A price at which noise is 0."""


def rows() -> list[dict[str, Any]]:
    """Persons of 1 to 8 rows, in 1 to 4 groups, with NULLs, and with a key that nobody declared."""
    found = []
    for person in range(PERSONS):
        for number in range(1 + person % DECLARED_ROWS):
            place = (person + number * number) % 5
            value = None if (person + number) % 7 == 0 else (person * 5 + number) % 11
            found.append({"uid": person, "x": value, "y": number - 4, "cat": (*CATEGORIES, "undeclared")[place]})
    return found


def curator(
    found: list[dict[str, Any]], *, private: bool = False, windows: bool = True, **said: Any
) -> discreet.Curator:
    """`t` holds the rows; `pub` lists two of the categories."""
    frame = pandas.DataFrame(found).astype({"cat": "string", "x": "Int64", "y": "Int64"})
    columns: dict[str, Any] = {
        "uid": {"type": "integer"},
        "x": {"type": "integer", "min": 0, "max": 10},
        "y": {"type": "integer", "min": -4, "max": 4},
        "cat": {"type": "text"} if private else list(CATEGORIES),
    }
    limits = {"rows_per_person": DECLARED_ROWS, "groups_per_person": DECLARED_GROUPS}
    tables = {
        "t": discreet.Table(frame, person="uid", columns=columns, **limits),
        "pub": discreet.Table(pandas.DataFrame({"cat": ["a", "b"]}), public=True, columns={"cat": str}),
    }
    engine = {} if windows else {"windows": False}
    return discreet.Curator(tables, epsilon=10**25, delta="0.1", keys_delta="0.09", engine=engine, **said)


def clause(options: str, rest: str) -> str:
    """A question with GoogleSQL's clause."""
    return f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) {rest}"


def number(answer: Any, column: str) -> Any:
    """What is said of one number of an answer."""
    return next(one for one in answer.left_out if one.what == "number" and one.column == column)
