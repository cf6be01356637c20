"""A release as a cross table: the values of one key become columns. Nothing is measured or computed anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from discreet.errors import QuestionError
from discreet.release.content import ReleaseContent

Names = str | Sequence[str]

MOST_COLUMNS = 1_000
"""A wider table is nobody's to read; it is refused."""


def pivoted(holds: ReleaseContent, rows: Names | None, columns: Names | None, value: str | None) -> ReleaseContent:
    """The same numbers with a row for each combination of the row keys, and a column for each of the column keys.

    Raises QuestionError where that is no table: keys that are not there, or a cell that would hold two numbers.
    """
    keys = [name for name in (holds.types if holds.keys is None else holds.keys) if name in holds.types]
    estimates = [name for name in holds.columns if name not in keys]
    down, across, shown = _chosen(keys, estimates, rows, columns, value)
    names = _names(holds, down, across)
    made: dict[tuple[Any, ...], tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {}
    simultaneous = list(holds.simultaneous) or [{} for _ in holds.rows]
    single = list(holds.intervals) or [{} for _ in holds.rows]
    for row, one, all_ in zip(holds.rows, single, simultaneous, strict=True):
        place = tuple(row[name] for name in down)
        if place not in made:
            made[place] = ({name: row[name] for name in down} | dict.fromkeys(names.values()), {}, {})
        table, ends, together = made[place]
        name = names[tuple(row[key] for key in across)]
        if name in ends or table[name] is not None:
            others = ", ".join(key for key in keys if key not in (*down, *across))
            fix = f"name {others} too: pivot(rows={[*down, *others.split(', ')]!r})" if others else "ask GROUP BY these"
            raise QuestionError("pivot", "several numbers fall into one cell", where="pivot", fix=fix)
        table[name] = row[shown]
        ends |= {name: one[shown]} if shown in one else {}
        together |= {name: all_[shown]} if shown in all_ else {}
    kinds = {name: holds.types[name] for name in down}
    if shown in holds.types:
        kinds |= dict.fromkeys(names.values(), holds.types[shown])
    return replace(
        holds,
        columns=(*down, *names.values()),
        types=kinds,
        keys=tuple(down),
        drawn=None,
        rows=[table for table, _, _ in made.values()],
        intervals=[ends for _, ends, _ in made.values()],
        simultaneous=[together for _, _, together in made.values()],
    )


def _chosen(
    keys: Sequence[str], estimates: Sequence[str], rows: Names | None, columns: Names | None, value: str | None
) -> tuple[list[str], list[str], str]:
    """The keys of the rows, those of the columns, and what stands in the cells."""
    if len(keys) < 2:
        message, fix = "a cross table needs two keys", "ask GROUP BY two columns"
        raise QuestionError("pivot", message, where="pivot", fix=fix)
    across = _listed(columns)
    down = _listed(rows) or [key for key in keys if key not in across]
    if columns is None:
        across = [key for key in keys if key not in down] if rows is not None else down[-1:]
        down = [key for key in down if key not in across]
    if not down or not across or len({*down, *across}) < len(down) + len(across) or {*down, *across} - {*keys}:
        fix = f'write pivot(rows="{keys[0]}", columns="{keys[1]}")'
        raise QuestionError("pivot", f"rows and columns are of {', '.join(keys)}, each once", where="pivot", fix=fix)
    if value is None and len(estimates) == 1:
        value = estimates[0]
    if value is None or value not in estimates:
        fix = f'write pivot(value="{estimates[0]}")' if estimates else "ask for an aggregate"
        raise QuestionError("pivot", f"the value is one of {', '.join(estimates)}", where="pivot", fix=fix)
    return down, across, value


def _listed(names: object) -> list[str]:
    """One name or several. What is no name is none of the keys, and refused as such."""
    if names is None:
        return []
    known = [names] if isinstance(names, str) or not isinstance(names, list | tuple) else names
    return [name if isinstance(name, str) else repr(name)[:60] for name in known]


def _names(holds: ReleaseContent, down: Sequence[str], across: Sequence[str]) -> dict[tuple[Any, ...], str]:
    """What the columns are called: after the values, in their order where they have one, NULL last."""
    found = list(dict.fromkeys(tuple(row[key] for key in across) for row in holds.rows))
    if len(found) > MOST_COLUMNS:
        message = f"a cross table has at most {MOST_COLUMNS:,} columns, and this one would have {len(found):,}"
        raise QuestionError("pivot", message, where="pivot", fix="take the key with fewer values for the columns")
    if all(holds.types[key] not in ("text", "boolean") for key in across):  # what is written alike is ordered alike
        found.sort(key=lambda values: [(value is None, 0 if value is None else value) for value in values])
    names: dict[tuple[Any, ...], str] = {}
    for values in found:
        name = " · ".join("NULL" if value is None else str(value) for value in values)
        while name in down or name in names.values():
            name += "_"
        names[values] = name
    return names
