"""Faults of a declaration that was written in Python, with what to write there."""

from __future__ import annotations

import re
from dataclasses import replace

from discreet.errors import Fault

_BRACES = re.compile(r"(\{ | \})")
_KEY = re.compile(r"\b(\w+) = ")
_UNDER = re.compile(r"write (\S+) = (\{.*\}) under \[.*\]")
_SECTIONS = {
    "budget": "epsilon=1",
    "tables": 'Curator({"people": discreet.Table(…)}, epsilon=1)',
    "columns": 'columns={"age": (17, 90), "sex": str}',
    "analysts": 'analysts={"ana": 0.5}',
    "reserve": 'reserve={"publish": 1}',
    "engine": 'engine={"seconds": 60}',
    "csv": 'csv={"delimiter": ";"}',
    "delta": 'delta={"version": 12}',
    "iceberg": 'iceberg={"version": 7612345678901234567}',
}


def in_python(fault: Fault) -> Fault:
    """The fault with its remedy as Python has it. The place keeps its name."""
    fix = fault.fix
    section = re.search(r"\[(.*)\]$", fix)
    if (under := _UNDER.search(fix)) is not None:
        fix = f'write columns={{"{under[1]}": {_mapping(under[2])}}}'
    elif section is not None and section[1] == fault.where and fault.where.rpartition(".")[2] in _SECTIONS:
        fix = "write " + _SECTIONS[fault.where.rpartition(".")[2]]
    else:
        fix = _KEY.sub(r"\1=", _mapping(fix))
    fix = re.sub(r"\btrue\b", "True", re.sub(r"\bfalse\b", "False", fix))
    return replace(fault, where=fault.where.removeprefix("budget."), fix=fix.replace("budget.epsilon", "epsilon"))


def _mapping(text: str) -> str:
    """TOML's inline tables as mappings, also those inside others."""
    depth, parts = 0, []
    for part in _BRACES.split(text):
        depth += (part == "{ ") - (part == " }")
        inside = _KEY.sub(r'"\1": ', part) if depth else part
        parts.append(part.strip() if _BRACES.fullmatch(part) else inside)
    return "".join(parts)
