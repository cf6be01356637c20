"""An analyst's budget as it is written in a declaration."""

from __future__ import annotations

import json
import re

from discreet.catalog.model import Budget
from discreet.trusted.ring_a.exact import show

_DIGITS = 30


def analyst_written(name: str, own: Budget, whole: Budget) -> str:
    """Writes an analyst's table as TOML: what it declares, without what follows from the `whole` budget."""
    quoted = "".join(map(_escaped, json.dumps(name, ensure_ascii=False)))
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted
    lines = [f"[analysts.{key}]", f"epsilon = {show(own.epsilon, _DIGITS)}"]
    if (own.delta, own.keys_delta) != (whole.delta, whole.keys_delta):
        lines += [f"delta = {show(own.delta, _DIGITS)}", f"keys_delta = {show(own.keys_delta, _DIGITS)}"]
    for window, most in (("day", own.day), ("month", own.month), ("question", own.question)):
        lines += [] if most is None else [f"{window} = {show(most, _DIGITS)}"]
    return "\n".join(lines) + "\n"


def _escaped(letter: str) -> str:
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"
