"""The kinds of answers: one of several values, a number, an ordered number, a text; or a record of several."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from numbers import Integral
from typing import Any

from discreet.errors import DeclarationError, Fault, refused
from discreet.local import choose
from discreet.local.channels import Hashed, Odds, Projective, Response
from discreet.local.hybrid import Hybrid, hybrid
from discreet.trusted.ring_a.exact import Number as Amount
from discreet.trusted.ring_a.exact import fraction, show

outside = partial(refused, "value", "this is no answer of the collection", "value")
"""An answer that the collection does not know. What it was is not said: it is private."""

Value = str | int
AnyChannel = Response | Projective | Hybrid | Hashed

MOST_STEPS = 1 << 16
LONGEST = 32
_TEXT = 200
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


def fault(where: str, message: str, fix: str) -> DeclarationError:
    """A collection that cannot be."""
    return DeclarationError([Fault(where, message, fix)], code="collection")


def plain(text: object, where: str, longest: int = _TEXT) -> str:
    """A text that every client reads the same way: normalised (NFC), of one line, and not empty."""
    if not isinstance(text, str) or not text or len(text) > longest:
        raise fault(where, f"{where} must be a text of 1 to {longest} characters", f'write {where}="…"')
    if any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in text):
        raise fault(where, "control characters and lone surrogates are not allowed", "write one line of text")
    return unicodedata.normalize("NFC", text)


@dataclass(frozen=True)
class ReportPart:
    """What one report is about: an answer through one channel. For a tree over bins a node holds `size` bins; for texts
    the report is about the first `size` bytes."""

    channel: AnyChannel
    size: int = 1


@dataclass(frozen=True)
class Choice:
    """One of these values: estimated are the shares of all of them.

    `values` are two texts or whole numbers at least. Raises DeclarationError on what is no such list.
    """

    values: tuple[Value, ...]

    kind = "values"

    def __init__(self, values: Sequence[Value]) -> None:
        if isinstance(values, str) or not isinstance(values, Sequence) or not 2 <= len(values) <= choose.MOST_VALUES:
            raise fault("values", "values must be a list of at least two values", 'write values=["yes", "no"]')
        found = tuple(int(value) if _whole(value) else plain(value, "values") for value in values)
        if len({str(value) for value in found}) != len(found):
            fix = "write each once; é is one letter however it is typed, and 1 reads like the text 1"
            raise fault("values", "a value is listed twice", fix)
        object.__setattr__(self, "values", found)
        object.__setattr__(self, "_places", {value: place for place, value in enumerate(found)})

    def code(self, value: object) -> int:
        """Gives the place of the value among the values. Raises QuestionError where it is none of them."""
        known: dict[Value, int] = self._places  # type: ignore[attr-defined]
        wanted = unicodedata.normalize("NFC", value) if isinstance(value, str) else value
        if isinstance(wanted, str) or _whole(wanted):
            place = known.get(wanted)  # type: ignore[call-overload]
            if place is not None:
                return int(place)
        raise outside("answer one of the values of the collection, written as they are there")

    def parts(self, odds: Odds, again: Odds | None) -> list[ReportPart]:
        """Lists what one report of this answer may be about, with the channel of each. Raises DeclarationError."""
        channel = choose.best(len(self.values), odds, again)
        if channel is None:
            raise fault(
                "values", "there are too many values for one report at this epsilon", "use local.Text, or fewer values"
            )
        return [ReportPart(channel)]

    def to_dict(self) -> dict[str, Any]:
        """Gives what a collection's document says of it."""
        return {"values": list(self.values)}


def _whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) < 1 << 53


@dataclass(frozen=True)
class NumberLattice:
    """The range of a number: low, low + step, …, high.

    What lies outside is clamped, and rounded to the nearest step (the upper one of two).
    """

    low: Fraction
    high: Fraction
    step: Fraction

    def __init__(self, low: Amount, high: Amount, step: Amount = 1) -> None:
        ends = [amount(name, value) for name, value in (("low", low), ("high", high), ("step", step))]
        for name, value in zip(("low", "high", "step"), ends, strict=True):
            object.__setattr__(self, name, value)
        if self.step <= 0 or self.low >= self.high or (self.high - self.low) % self.step:
            raise fault(
                "range", "high must be a whole number of steps above low", "write for instance (0, 100, step=5)"
            )
        if self.steps > MOST_STEPS:
            raise fault("range", f"a range has at most {MOST_STEPS:,} steps", "write a wider step")

    @property
    def steps(self) -> int:
        """How many steps lie between low and high."""
        return int((self.high - self.low) / self.step)

    def code(self, value: object) -> int:
        """Counts how many steps above low the value lies. Raises QuestionError on what is no finite number."""
        try:
            if isinstance(value, str) and (len(value) > 60 or not _DECIMAL.fullmatch(value)):
                raise ValueError
            known = fraction(value)  # type: ignore[arg-type]
        except (ValueError, TypeError, OverflowError):
            raise outside("answer a finite number") from None
        return int((min(max(known, self.low), self.high) - self.low) / self.step + Fraction(1, 2))

    def value(self, code: float) -> float:
        """Gives the number that lies so many steps above low, in the unit of the answer."""
        return float(self.low) + code * float(self.step)

    def to_dict(self) -> dict[str, Any]:
        """Gives what a collection's document says of it: decimals as texts."""
        return {"low": written(self.low), "high": written(self.high), "step": written(self.step)}


class Number(NumberLattice):
    """A number from low to high: estimated is the mean.

    What lies outside is clamped, and rounded to the nearest `step`. Raises DeclarationError where high does not lie
    some whole steps above low, or 65,536 steps do not reach.
    """

    kind = "number"

    def parts(self, odds: Odds, again: Odds | None) -> list[ReportPart]:
        """Lists what one report of this answer may be about, with the channel of each. Raises DeclarationError."""
        if again is not None:
            raise fault("each", "a mean cannot be asked for several times a window", "leave each out, or use Ordered")
        channel = hybrid(self.steps, odds)
        if channel is None:
            raise fault("step", "there are too many steps for one report at this epsilon", "write a wider step")
        return [ReportPart(channel)]


class Ordered(NumberLattice):
    """A number from low to high in bins of one step: estimated are the shares of bins and ranges, and quantiles.

    A respondent reports one level of a tree over the bins, drawn uniformly, with the whole epsilon (Cormode, Kulkarni &
    Srivastava 2019). Raises DeclarationError where high does not lie some whole steps above low.
    """

    kind = "ordered"

    @property
    def bins(self) -> int:
        """How many bins there are: one more than steps."""
        return self.steps + 1

    def parts(self, odds: Odds, again: Odds | None) -> list[ReportPart]:
        """Lists what one report of this answer may be about, with the channel of each. Raises DeclarationError."""
        split = choose.branching(self.bins, odds, again)
        found, size = [], 1
        for nodes in reversed(choose.levels(self.bins, split) if split else [0]):
            channel = choose.best(nodes, odds, again) if nodes else None
            if channel is None:
                raise fault("step", "there are too many bins for one report at this epsilon", "write a wider step")
            found.append(ReportPart(channel, size))
            size *= split
        return found[::-1]


@dataclass(frozen=True)
class Text:
    """An open text, of which the first `length` bytes in UTF-8 count: found are those that many share.

    A respondent reports a prefix of 1 to `length` bytes, of a length drawn uniformly, with the whole epsilon; the
    collector extends the prefixes that many share (Wang, Li & Jha 2018; Bassily, Nissim, Stemmer & Thakurta 2017).

    Raises DeclarationError where `length` is not from 1 to 32.
    """

    length: int = 8

    kind = "text"

    def __post_init__(self) -> None:
        if not _whole(self.length) or not 1 <= self.length <= LONGEST:
            raise fault("length", f"length must be a whole number from 1 to {LONGEST}", "write local.Text(length=8)")

    def code(self, value: object) -> bytes:
        """Gives the text's bytes, cut before the character that does not fit, filled up with zero bytes.

        Raises QuestionError on what is no text.
        """
        if not isinstance(value, str) or not value or len(value) > 10_000 or "\0" in value:
            raise outside("answer a text that is not empty, without control characters")
        try:
            whole = unicodedata.normalize("NFC", value).encode("utf-8")
        except UnicodeEncodeError:
            raise outside("answer a text without lone surrogates") from None
        cut = whole[: self.length].decode("utf-8", "ignore").encode("utf-8")
        return cut.ljust(self.length, b"\0")

    def parts(self, odds: Odds, again: Odds | None) -> list[ReportPart]:
        """Lists what one report of this answer may be about, with the channel of each. Raises DeclarationError."""
        if again is not None:
            raise fault("each", "texts cannot be asked for several times a window", "leave each out")
        return [ReportPart(choose.hashed(odds), size) for size in range(1, self.length + 1)]

    def to_dict(self) -> dict[str, Any]:
        """Gives what a collection's document says of it."""
        return {"length": self.length}


Answer = Choice | Number | Ordered | Text


def answer_of(document: Mapping[str, Any]) -> Answer:
    """The answer that a document describes. Raises DeclarationError."""
    kind = document.get("kind")
    if kind == Choice.kind:
        return Choice(document.get("values", ()))
    if kind in (Number.kind, Ordered.kind):
        ends = [document.get(name, "") for name in ("low", "high", "step")]
        return Number(*ends) if kind == Number.kind else Ordered(*ends)
    if kind == Text.kind:
        return Text(document.get("length", 0))
    raise fault("kind", "this kind of answer is unknown", "write values, number, ordered or text")


def amount(where: str, value: object) -> Fraction:
    """A decimal of at most 25 digits, as written. Raises DeclarationError."""
    try:
        if len(str(value)) > 60:
            raise ValueError
        known = fraction(value)  # type: ignore[arg-type]
        if fraction(show(known, 25)) != known:
            raise ValueError
    except (ValueError, TypeError, OverflowError, ArithmeticError):
        raise fault(where, f"{where} must be a decimal of at most 25 digits", f"write {where}=1") from None
    return known


def written(value: Fraction) -> str:
    """The decimal as a document holds it."""
    return show(value, 25)
