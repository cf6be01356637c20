"""A question as it is asked: its text, the dialect that it is written in, and the day that NOW() means."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field
from typing import Self

from discreet.catalog.model import Declaration
from discreet.errors import QuestionError
from discreet.sql.compiled import WRITE
from discreet.sql.spelling import PRESENT, now

_HEADER = re.compile(r"/\* asked(?: on (\d{4}-\d\d-\d\d))?(?: in ([a-z]+))? \*/ ", re.ASCII)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
_CALLED = re.compile(
    rf"\b(?:(?:{'|'.join(PRESENT)})\s*\(|(?:CURRENT_(?:DATE|TIMESTAMP|DATETIME)|LOCALTIMESTAMP)\b)", re.I
)


@dataclass(frozen=True)
class Asked:
    """What is asked, in whose words, and when."""

    text: str
    dialect: str = ""
    day: datetime.date = field(default_factory=now)

    @classmethod
    def of(cls, text: str, dialect: str | None, declaration: Declaration) -> Self:
        """Raises QuestionError where the text or the dialect is none."""
        if not isinstance(text, str):
            raise QuestionError("syntax", "the question is not a string or an expression", where="question", fix=WRITE)
        if dialect is not None and not isinstance(dialect, str):
            raise QuestionError("dialect", "a dialect is a name", where="dialect", fix='write dialect="postgres"')
        return cls(text, (dialect or "").lower(), declaration.question_date or now())

    @property
    def says_today(self) -> bool:
        """Whether the text holds NOW(), CURRENT_DATE or the like."""
        return _CALLED.search(_QUOTED.sub("''", self.text)) is not None

    def said(self, declaration: Declaration) -> tuple[str, ...]:
        """What the answer says of the day."""
        if not self.says_today:
            return ()
        stated = "as declared" if declaration.question_date else "the day of the question in UTC"
        return (f"NOW() and CURRENT_DATE are {self.day}, 00:00: {stated}",)

    @property
    def kept(self) -> str:
        """The text as the ledger keeps it, from which `read` makes the same question again."""
        words = [f"on {self.day}"] if self.says_today else []
        words += [f"in {self.dialect}"] if self.dialect else []
        return f"/* asked {' '.join(words)} */ {self.text}" if words else self.text

    @classmethod
    def read(cls, kept: str) -> Self:
        """What `kept` gave."""
        header = _HEADER.match(kept)
        if header is None:
            return cls(kept)
        day = datetime.date.fromisoformat(header[1]) if header[1] else now()
        return cls(kept[header.end() :], header[2] or "", day)
