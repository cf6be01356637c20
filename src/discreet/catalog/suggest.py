"""A first declaration for a source: its names and types, and what the owner says. Nothing is computed from values,
except the keys of columns that the owner calls public."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.catalog.model import Type


@dataclass(frozen=True)
class Suggestion:
    """What is known of a source's columns, and what the owner said of the table."""

    name: str
    source: str
    types: Mapping[str, Type | None]
    ranges: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    person: str | None = None
    one_row_per_person: bool = False
    rows_per_person: int | None = None
    groups_per_person: int | None = None
    epsilon: str = "3.0"
    delta: str = "1e-6"


def table_name(source: str) -> str:
    """A name for a source that needs no quotes in SQL."""
    last = source.rpartition("::")[2] if "::" in source else source.rpartition("/")[2].partition(".")[0]
    name = re.sub(r"\W+", "_", last).strip("_") or "people"
    return f"t_{name}" if name[0].isdigit() else name


def written(suggestion: Suggestion) -> str:
    """The declaration as TOML."""
    lines = [
        "# What may be asked about these people, and how much of their privacy may be spent.",
        "# Nothing here was computed from values, except the `values` of columns you called public, and whether",
        "# they are all there is (nulls = false).",
        "",
        "[budget]                      # for ever, over everybody who asks",
        f"epsilon = {suggestion.epsilon}",
        f"delta = {suggestion.delta}",
        "",
        "[question]                    # the price of a question that names none",
        "epsilon = 0.1",
        "",
        f"[tables.{suggestion.name}]",
        f"source = {_text(suggestion.source)}",
    ]
    if suggestion.person is not None:
        lines.append(f"person = {_text(suggestion.person)}")
    if suggestion.one_row_per_person:
        lines.append("one_row_per_person = true")
    if suggestion.rows_per_person is not None:
        lines.append(
            f"rows_per_person = {suggestion.rows_per_person}      # further rows of a person are left out, at random"
        )
    if suggestion.groups_per_person is not None:
        lines.append(
            f"groups_per_person = {suggestion.groups_per_person}    # how many groups of an answer a person may touch"
        )
    lines += ["", f"[tables.{suggestion.name}.columns]"]
    lines += [_column(suggestion, name, kind) for name, kind in suggestion.types.items()]
    return "\n".join(lines) + "\n"


def _column(suggestion: Suggestion, name: str, kind: Type | None) -> str:
    parts = [f'type = "{kind or Type.TEXT}"']
    if name in suggestion.ranges:
        low, high = suggestion.ranges[name]
        parts += [f"min = {low}", f"max = {high}"]
    if name in suggestion.values:
        keys = ", ".join(
            _text(value) if isinstance(value, str) and kind in (Type.TEXT, None) else _bare(value)
            for value in suggestion.values[name]
            if value is not None
        )
        parts.append(f"values = [{keys}]")
        if None not in suggestion.values[name]:
            parts.append("nulls = false")
    return f"{_key(name)} = {{ {', '.join(parts)} }}"


def _bare(value: Any) -> str:
    """A number, a truth value, or a date."""
    return value if isinstance(value, str) else json.dumps(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(value: str) -> str:
    """A TOML basic string: the same escapes as JSON, and DEL written out."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
