"""What is said beside a question: its price, or wanted errors; who asks, and which earlier answers may answer it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from discreet.errors import QuestionError
from discreet.ledger import TOTAL
from discreet.pricing import Within
from discreet.trusted.ring_a.exact import Number


@dataclass(frozen=True)
class AskOptions:
    """What is said beside a question: its price, in numbers, by wanted errors or not at all; who asks, with which
    request; and which earlier answers may answer it (`Asking.ask`)."""

    epsilon: Number | None = None
    delta: Number | None = None
    within: Within | None = None
    account: str = TOTAL
    request: str | None = None
    default_price: bool = True
    reuse: bool = True
    named: bool = True
    """Whether whoever asks has named a price or an error, beside the question or in it."""


def wanted(within: Mapping[str, Number] | None, confidence: Number, together: bool) -> Within | None:
    """The wanted errors. Raises QuestionError on an argument without effect, and on one that names no column."""
    fix = 'write within={"n": 100}, or --within n=100'
    if within is None:
        if together or str(confidence) != "0.95":
            name = "together" if together else "confidence"
            raise QuestionError("within", f"{name} has no effect without within", where=name, fix=fix)
        return None
    if not isinstance(within, Mapping) or not within or not all(isinstance(name, str) for name in within):
        raise QuestionError("within", "within maps names of columns to wanted errors", where="within", fix=fix)
    return Within(within, confidence, together)
