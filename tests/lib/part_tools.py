"""Clinics with a budget each, of different sizes: an answer says by itself which of them it is about."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SIZES: Mapping[str, int] = {"north": 40, "south": 7, "NORTH": 13, " north": 22, "-3": 29, "o'\"<b>&": 34, "u\u0308": 3}
"""How many persons are in each part; six are in none."""

ALL = sum(SIZES.values()) + 6
COUNT = "SELECT COUNT(*) AS n FROM t"
NO_PART = "no such part is declared with a budget of its own"


def declared(folder: Path, parts: int = 2, more: str = "") -> str:
    """A declaration with the first so many of these parts, with its rows beside it; without parts, of none."""
    rows = [(name, size) for name, size in SIZES.items()] + [("", 6)]
    lines = [
        f'{place}-{number},"{name.replace(chr(34), chr(34) * 2)}"'
        for place, (name, size) in enumerate(rows)
        for number in range(size)
    ]
    (folder / "t.csv").write_text("\n".join(["id,clinic", *lines, ""]), "utf-8")
    values = ", ".join('"' + name.replace('"', '\\"') + '"' for name in list(SIZES)[: parts or None])
    return f"""
[budget]
epsilon = 1000
{'parts = "t.clinic"' if parts else ""}
[analysts.ana]
epsilon = 500
[analysts.bob]
epsilon = 50
[engine]
answer_seconds = "off"
{more}
[tables.t]
source = "t.csv"
person = "id"
rows_per_person = 2
[tables.t.columns]
id = {{ type = "text" }}
clinic = {{ type = "text", values = [{values}] }}
"""
