"""Fixes for text that is not SQL, or is another system's dialect, from the words alone."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

CLAUSES = "write SELECT … FROM table [WHERE …] [GROUP BY …] [HAVING …] [ORDER BY …] [LIMIT …]"

_KEYWORDS = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT")
_SIGNS = {"&&": "write AND for &&", "#": "write -- before a comment", "=>": "write >= for =>", "!": "write NOT for !"}
_INCOMPLETE = {"LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "EQ": "=", "NEQ": "<>"}


def unreadable(error: Mapping[str, Any], words: Sequence[str], text: str) -> tuple[str, str]:
    """What is wrong where the parser stopped, and what to write instead."""
    said = str(error.get("description") or "it cannot be read").rstrip(".")
    stopped = str(error.get("highlight") or "").strip()[:40]
    missing = re.search(r"missing for <class '.*?(\w+)'>", said)
    if missing:
        name = missing[1]
        said = f"{_INCOMPLETE.get(name, name.upper())} is not complete"
    elif said.startswith(("Invalid expression", "Expected table name")):
        said = f"nothing like {stopped!r} is expected here" if stopped else "it ends too early"
    return said[:200], _instead([word.upper() for word in words], stopped, said, bool(missing), text)


def _instead(words: Sequence[str], stopped: str, said: str, missing: bool, text: str) -> str:
    if said.startswith("there is no type"):
        return "cast to INTEGER, DOUBLE, TEXT, BOOLEAN, DATE or TIMESTAMP"
    pairs = list(zip(words, [*words[1:], ""], strict=True))
    if ("IN" in words) and any(one == "IN" and other not in ("(", "UNNEST") for one, other in pairs):
        return "write IN (30, 31): a list is written in brackets"
    if any(one == "TOP" and other.isdigit() for one, other in pairs):
        return "write LIMIT 10 at the end for TOP 10"
    if "[" in words:
        return "write a name without brackets, or in double quotes where it holds spaces"
    if stopped in _SIGNS:
        return _SIGNS[stopped]
    for word in ("GROUP", "ORDER"):  # together with BY they would be one word
        if word in words:
            return f"write {word} BY"
    if misspelled := _misspelled(words):
        return misspelled
    if missing:
        return "write a whole condition on each side, for instance WHERE x > 1 AND x < 5"
    if "END after CASE" in said:
        return "write CASE WHEN x > 1 THEN 'a' ELSE 'b' END"
    if said.startswith("COUNT takes"):
        return "write COUNT(*), or COUNT(column)"
    if said.startswith("Expecting )") or stopped == ")":
        return "close every bracket that is opened, and no other"
    if re.search(rf"\bAS\s+\w+\s+{re.escape(stopped)}", text, re.IGNORECASE) and stopped.isidentifier():
        return 'a name of several words is written in double quotes: AS "number of people"'
    before = text.upper().partition("FROM")[0]
    if stopped == "(" or (stopped and stopped.upper() in before and "FROM" in words):
        return f"write a comma between two columns; {CLAUSES}"
    return CLAUSES


def _misspelled(words: Sequence[str]) -> str:
    """A clause's first word with letters exchanged, left out or added, where the word itself does not stand there."""
    asks = bool(words) and bool(difflib.get_close_matches(words[0], ("SELECT", "WITH"), 1, 0.74))
    for word in words if asks else ():
        near = difflib.get_close_matches(word, _KEYWORDS, 1, 0.74)
        if near and word not in _KEYWORDS and near[0] not in words and f"{near[0]} BY" not in words:
            return f"write {near[0]}{' BY' if near[0] in ('GROUP', 'ORDER') else ''} for {word}"
    return ""


ONLY_SELECT: Mapping[str, str] = {
    "SHOW": "`discreet tables FILE`, or curator.tables, lists tables and columns",
    "DESCRIBE": "`discreet tables FILE`, or curator.tables, lists tables and columns",
    "PIVOT": "write SELECT k, COUNT(*) FILTER (WHERE c = 'a') AS a, … GROUP BY k, or release.pivot() of the answer",
    "SUMMARIZE": "write SELECT COUNT(*), AVG(x), MIN(x), MAX(x) … of the columns that are asked for",
    "EXPLAIN": "write the question without EXPLAIN: `discreet explain`, or curator.explain, says what it costs",
}
"""Statements that ask for something which is found elsewhere."""
