"""What is collected: a document that respondents can read, with a hash that every report carries."""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.accounting import Pure
from discreet.errors import DeclarationError
from discreet.local.answers import (
    Answer,
    Choice,
    Number,
    Ordered,
    ReportPart,
    Text,
    Value,
    amount,
    answer_of,
    fault,
    plain,
    written,
)
from discreet.local.channels import Odds, Projective, Response, odds_of
from discreet.local.choose import redrawn
from discreet.trusted.ring_a.exact import Number as Amount
from discreet.trusted.ring_a.exact import ceiling, log_bounds, show

VERSION = "discreet local 1"
WINDOWS = {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y", "ever": "ever"}
LEAST, MOST = Fraction(1, 1000), Fraction(10)
"""Below, 2^20 is too coarse for the odds; above, what is promised is hardly worth the noise."""

MOST_ATTRIBUTES = 64
RESERVED = {"collection", "window", "window_", "token", "part", "report", "attribute", "value", "weight"}
_LOGARITHM = re.compile(r"ln (\d{1,3}(?:\.\d{1,3})?)")
_LARGEST_DOCUMENT = 32_000_000


@dataclass(frozen=True)
class Attribute:
    """One thing that is asked: its name (empty where it is the only one), its answer, what a report may be about, and
    the question as respondents read it, where it has one of its own."""

    name: str
    answer: Answer
    parts: tuple[ReportPart, ...]
    question: str = ""


@dataclass(frozen=True, init=False, repr=False)
class Collection:
    """What is asked of each respondent, how it is randomised, and how often. It never changes; `hash` names it.

    `answer` is a list of values, or a Number, Ordered or Text; or a mapping of names to those (a record, of which each
    respondent reports one attribute, drawn uniformly, with the whole epsilon). `epsilon` is a decimal, or "ln 3" (odds
    of exactly 3 to 1); `window` is day, month, year or ever (of UTC): one report of each respondent counts in a window.
    `public` names what is sent along as it is, for cross-tabulations. `questions` has a text of their own for some of a
    record's attributes, by name; respondents read the name of the others.

    With `each`, a respondent may report several times a window: the first randomisation, with `epsilon`, is remembered
    for the window, and each report is randomised again, freshly, with odds for `each`. `cap` is the most that a window
    takes from one respondent: `epsilon` by default; with `each` a multiple of it, and there are cap/each reports.

    Privacy (pure, each respondent for himself; neighbours: any two sequences of answers; that one reports, and how
    often, is public). Without `each`, one report of one answer a window: `epsilon` a window. With it, let the
    remembered reports of all possible answers be drawn first; given them, each report is independent, and two answers'
    chances differ by a factor of at most e^each: so m reports lose at most m·each ≤ cap, however the answer changes. If
    the answer does not change within the window, all reports are drawn from one that was randomised with `epsilon`:
    they lose at most `epsilon` together. Without fresh randomness, a second report that differs would prove a change,
    whatever the epsilon: therefore there is none.

    Raises DeclarationError where it is no collection that can be.
    """

    name: str
    question: str
    attributes: tuple[Attribute, ...]
    epsilon: Fraction
    odds: Odds
    window: str
    cap: Fraction
    each: Fraction | None
    each_odds: Odds | None
    public: tuple[str, ...]
    written: str
    each_written: str

    def __init__(
        self,
        name: str,
        question: str,
        answer: Sequence[Value] | Answer | Mapping[str, Sequence[Value] | Answer],
        *,
        epsilon: Amount,
        window: str = "month",
        cap: Amount | None = None,
        each: Amount | None = None,
        public: Sequence[str] = (),
        questions: Mapping[str, str] | None = None,
    ) -> None:
        known, odds, text = _price("epsilon", epsilon)
        again = None if each is None else _price("each", each)
        if not isinstance(window, str) or window not in WINDOWS:
            raise fault("window", f"a window is one of {', '.join(WINDOWS)}", 'write window="month"')
        asked = answer if isinstance(answer, Mapping) else {"": answer}
        if not 1 <= len(asked) <= MOST_ATTRIBUTES:
            raise fault("answer", f"a record has 1 to {MOST_ATTRIBUTES} attributes", "ask for fewer")
        texts = _questions(questions, answer)
        attributes = []
        for title, one in asked.items():
            kind = one if isinstance(one, Choice | Number | Ordered | Text) else Choice(one)
            title = plain(title, "attribute") if isinstance(answer, Mapping) else ""
            parts = tuple(kind.parts(odds, again[1] if again else None))
            attributes.append(Attribute(title, kind, parts, texts.get(title, "")))
        if len({one.name for one in attributes}) != len(attributes):
            raise fault("answer", "two attributes have the same name", "é is one letter however it is typed")
        found = {
            "name": plain(name, "name"),
            "question": plain(question, "question", 2_000),
            "attributes": tuple(attributes),
            "epsilon": known,
            "odds": odds,
            "window": window,
            "cap": _cap(cap, known, again[0] if again else None),
            "each": again[0] if again else None,
            "each_odds": again[1] if again else None,
            "public": _public(public),
            "written": text,
            "each_written": again[2] if again else "",
        }
        for field, value in found.items():
            object.__setattr__(self, field, value)

    @functools.cached_property
    def parts(self) -> tuple[tuple[int, ReportPart], ...]:
        """All that a report may be about, with the place of its attribute; a report names the place in this list."""
        return tuple((place, part) for place, one in enumerate(self.attributes) for part in one.parts)

    @functools.cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each attribute's parts begin."""
        return tuple(sum(len(one.parts) for one in self.attributes[:place]) for place in range(len(self.attributes)))

    @property
    def reports(self) -> int:
        """How many reports a respondent may give in a window."""
        return 1 if self.each is None else int(self.cap / self.each)

    def again(self, part: ReportPart) -> Response | None:
        """Gives the second, fresh randomisation of a part's reports."""
        return redrawn(part.channel, self.each_odds) if isinstance(part.channel, Response | Projective) else None

    @property
    def cost(self) -> Fraction:
        """What a respondent is charged for a report, in epsilon."""
        return self.epsilon if self.each is None else self.each

    def loss(self) -> Pure:
        """Gives the loss of one report.

        With `each` it is made by both randomisations, so that the lesser one's holds.
        """
        return Pure(self.epsilon if self.each is None else min(self.epsilon, self.each))

    @functools.cached_property
    def text(self) -> str:
        """The document: canonical JSON, the same bytes for the same collection."""
        document: dict[str, Any] = {
            "attributes": [
                {
                    "name": one.name,
                    "kind": one.answer.kind,
                    **one.answer.to_dict(),
                    **({"question": one.question} if one.question else {}),
                    "parts": [{**part.channel.to_dict(), "size": part.size} for part in one.parts],
                }
                for one in self.attributes
            ],
            "cap": written(self.cap),
            "each": None if self.each is None else {"epsilon": self.each_written, "odds": list(self.each_odds or ())},
            "epsilon": self.written,
            "name": self.name,
            "odds": list(self.odds),
            "public": list(self.public),
            "question": self.question,
            "reports": self.reports,
            "version": VERSION,
            "window": self.window,
        }
        return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    def to_json(self) -> str:
        """Gives the document, for publishing and for `Collection.read`."""
        return self.text

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 of the document, in hexadecimal digits."""
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()

    @classmethod
    def from_json(cls, text: str) -> Collection:
        """Reads the collection of a document, which is what `to_json` writes, to the last byte.

        Everything that follows from the rest is worked out again, and must be the same: nobody can publish odds that
        are not those of the epsilon beside them, nor a document that another client would read otherwise. Raises
        DeclarationError.
        """
        try:
            if len(text.encode("utf-8")) > _LARGEST_DOCUMENT:
                raise ValueError
            document = json.loads(text)
            attributes = [(one["name"], answer_of(one)) for one in document["attributes"]]
            each = document["each"]
            single = len(attributes) == 1 and not attributes[0][0]
            found = cls(
                document["name"],
                document["question"],
                attributes[0][1] if single else dict(attributes),
                epsilon=document["epsilon"],
                window=document["window"],
                cap=document["cap"],
                each=None if each is None else each["epsilon"],
                public=document["public"],
                questions={one["name"]: one["question"] for one in document["attributes"] if "question" in one},
            )
        except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError):
            raise fault("document", "this is not a valid collection document", "publish what to_json gives") from None
        if text != found.text:
            what = "it does not follow from its epsilon and answers, or is written in another form"
            raise fault("document", what, "publish what to_json gives")
        return found

    @classmethod
    def read(cls, path: str | Path) -> Collection:
        """Reads the collection of a file. Raises DeclarationError."""
        try:
            return cls.from_json(Path(path).read_text("utf-8"))
        except (OSError, UnicodeDecodeError):
            raise fault(str(path), "there is no text file at this path", "write one with to_json") from None
        except DeclarationError as error:
            error.file = str(path)
            raise

    def window_of(self, day: datetime.date) -> str:
        """Names the window in which a day (of UTC) lies."""
        return day.strftime(WINDOWS[self.window])

    def is_window(self, text: str) -> bool:
        """Says whether a report of this collection may name this window."""
        try:
            day = datetime.datetime.strptime(text, WINDOWS[self.window]).date()
        except ValueError:
            return False
        return self.window_of(day) == text

    def __repr__(self) -> str:
        return f"Collection({self.name!r}, epsilon={self.written}, window={self.window!r}, hash={self.hash[:12]}…)"


def today() -> datetime.date:
    """The day in UTC, which decides the window."""
    return datetime.datetime.now(datetime.UTC).date()


def _price(where: str, epsilon: Amount) -> tuple[Fraction, Odds, str]:
    """ε, its odds A/B ≤ e^ε, and how it is written. For "ln x" the odds are x itself, and ε is ln x rounded up."""
    match = _LOGARITHM.fullmatch(epsilon) if isinstance(epsilon, str) else None
    if match:
        ratio = Fraction(match[1])
        known = ceiling(log_bounds(ratio)[1], 20) if ratio > 1 else Fraction(0)
        odds = ratio.numerator, ratio.denominator
        text = f"ln {show(ratio)}"
    else:
        known = amount(where, epsilon)
        odds, text = (0, 0), written(known)
    if not LEAST <= known <= MOST:
        raise fault(where, f"{where} must lie between {show(LEAST)} and {show(MOST)}", f"write {where}=1")
    return known, odds if match else odds_of(known), text


def _cap(cap: Amount | None, epsilon: Fraction, each: Fraction | None) -> Fraction:
    if cap is None:
        return epsilon if each is None else each
    known = amount("cap", cap)
    if each is None:
        if known != epsilon:
            fix = "leave cap out, or say with each what one of several reports may cost"
            raise fault("cap", "without each there is one report per window, and the cap is epsilon", fix)
    elif known < each or known > 1000 * each:
        raise fault("cap", "the cap must allow 1 to 1000 reports of each", "write for instance each=0.5, cap=15")
    return known


def _questions(texts: object, answer: object) -> dict[str, str]:
    """The questions of attributes, by name. Raises DeclarationError."""
    if texts is None or texts == {}:
        return {}
    if not isinstance(texts, Mapping) or not isinstance(answer, Mapping):
        fix = 'write questions={"os": "Which system do you use?"} beside answers that are a mapping'
        raise fault("questions", "questions go by the names of a record's attributes", fix)
    found = {plain(name, "attribute"): plain(text, "question", 2_000) for name, text in texts.items()}
    if set(found) - {plain(name, "attribute") for name in answer}:
        raise fault(
            "questions", "there is a question of an attribute that is not asked", "take the names of the answers"
        )
    return found


def _public(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(one, str) and re.fullmatch("[a-z_]{1,40}", one) for one in names):
        raise fault("public", "public attributes have names of small letters and _", 'write public=["country"]')
    if len(set(names)) != len(names) or RESERVED & set(names):
        raise fault("public", "a public attribute is named twice, or like a field of a report", "rename it")
    return tuple(names)
