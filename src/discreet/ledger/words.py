"""Words that the ledger keeps: how long they may be, and that they can be written."""

from __future__ import annotations

from discreet.errors import QuestionError

LONGEST = 50_000
"""Letters of a question, an analyst's name or a request that the ledger keeps: it keeps them for ever."""

LONGEST_REASON = 1_000
"""Letters of a reason: what somebody says of a request for more, or an owner of an act."""


def check_text(*texts: str) -> None:
    """Raises QuestionError where one is no text, or too long to keep."""
    try:
        "".join(texts).encode()
    except (TypeError, UnicodeEncodeError):
        fix = "write it in Unicode, without lone surrogates"
        message = "the question, the analyst or the request is not a string"
        raise QuestionError("text", message, fix=fix) from None
    if any(len(text) > LONGEST for text in texts):
        message = f"the question, the analyst or the request has more than {LONGEST:,} characters"
        raise QuestionError("long", message, fix="ask something shorter")


def check_request(name: str | None) -> None:
    """Raises QuestionError where somebody names a request as only the curator names its own: with a control letter."""
    if name is None:
        return
    check_text(name)
    if any(letter < " " for letter in name):
        fix = "write letters, digits and signs"
        raise QuestionError("request", "the name of a request has a control character", where="request", fix=fix)


def reason_of(text: object) -> str:
    """A reason, without blanks around it. Raises QuestionError."""
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST_REASON:
        message = f"a reason is a text of 1 to {LONGEST_REASON:,} letters"
        raise QuestionError("reason", message, where="reason", fix="say why in a sentence: the ledger keeps it")
    check_text(text)
    return text.strip()


def reasoned(reason: str | None, by: str | None) -> dict[str, str]:
    """Who does something, and why, as the ledger keeps it. Raises QuestionError."""
    if reason is None and by is None:
        return {}
    check_text(*(() if by is None else (by,)))
    return {"reason": reason_of(reason), **({} if by is None else {"by": by})}
