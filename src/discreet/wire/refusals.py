"""Errors as PostgreSQL has them: five characters for programs, a message, a detail and a hint for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OF_QUESTIONS = {
    "syntax": "42601",
    "empty": "42601",
    "statements": "42601",
    "unknown-column": "42703",
    "unknown-table": "42P01",
    "unknown-schema": "3F000",
    "ambiguous": "42702",
    "ungrouped": "42803",
    "type": "42804",
    "arguments": "42883",
    "too-long": "54001",
    "number": "22003",
    "range": "22003",
    "part": "22023",
    "price": "P0001",
    "account": "42501",
    "role": "42501",
    "busy": "55P03",
    "running": "55P03",
    "suspended": "42501",
}
"""By the error's own code, whatever its kind."""

_OF_KINDS = {
    "QuestionError": "0A000",
    "BudgetError": "53400",
    "EngineError": "58000",
    "LedgerError": "58000",
    "DeclarationError": "58000",
}


class Trouble(Exception):
    """What a client is told has gone wrong. A fatal one ends the connection."""

    def __init__(self, code: str, message: str, *, detail: str = "", hint: str = "", fatal: bool = False) -> None:
        super().__init__(code)
        self.code = code
        self.message = message
        self.detail = detail
        self.hint = hint
        self.fatal = fatal


def trouble(problem: Mapping[str, Any]) -> Trouble:
    """An error of ours, as the service tells it (`Service.problem_of`)."""
    kind = str(problem["type"]).rpartition(":")[2]
    code = _OF_QUESTIONS.get(problem["code"]) or _OF_KINDS.get(kind, "XX000")
    fix = "SET discreet.epsilon = 0.1; " + problem["fix"] if problem["code"] == "price" else problem["fix"]
    return Trouble(code, problem["detail"], detail=problem["where"], hint=fix)


def not_here(what: str, hint: str = "") -> Trouble:
    return Trouble("0A000", f"{what} is not known here", hint=hint or "ask a question: SELECT …")
