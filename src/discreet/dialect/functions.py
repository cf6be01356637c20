"""The dialect: the functions that a question may compute from one row, as one table.

The reader finds functions here by their names, the engine's builders are held against it, `docs/dialect.md` is written
from it. Every operator is total: whatever a row holds, it gives a value or NULL, in time and memory that the question
bounds. So patterns, what is searched for and what is put in are constants, and nothing repeats a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from discreet.trusted.ring_a.table import Type, Value


class ArgumentKind(StrEnum):
    """What an argument may be. A number may be whole; a moment is a date or a timestamp."""

    NUMBER = "number"
    WHOLE = "integer"
    TEXT = "text"
    BOOLEAN = "condition"
    MOMENT = "date"
    ANY = "value"


@dataclass(frozen=True)
class Argument:
    """One argument. A `constant` is written in the question: an integer within `low` and `high`, or a text of so many
    characters. `default` stands for it where it is left out."""

    kind: ArgumentKind
    constant: bool = False
    low: int = 0
    high: int = 0
    default: Value | None = None
    name: str = ""

    @property
    def word(self) -> str:
        """How the documentation calls it."""
        return self.name or ("constant" if self.constant else self.kind.value)


@dataclass(frozen=True)
class SqlFunction:
    """A row of the table.

    `operator` is its name in a plan, `names` are its names in SQL; `written` says how it is written where it is no
    plain call. `most` is above the number of `takes` where the last argument may come several times. `gives` is a type,
    "same" for the first argument's, "common" for what numbers of both kinds become together. `whole` says that the
    engine holds its integers in 64 bits; else they are doubles. `form` names a way of reading of its own. `result` is
    what `example` gives, as text. `edges` says what happens on NULL, NaN and overflow where that is not the rule,
    `guard` what keeps the engine from failing.
    """

    operator: str
    names: tuple[str, ...]
    takes: tuple[Argument, ...]
    gives: Type | str
    example: str
    result: str | None
    edges: str = ""
    guard: str = ""
    written: str = ""
    form: str = ""
    most: int = 0
    whole: bool = False

    @property
    def least(self) -> int:
        """The fewest arguments of a call."""
        return sum(1 for argument in self.takes if argument.default is None)

    @property
    def usage(self) -> str:
        """How it is written, for a person to read."""
        if self.written:
            return self.written
        words = [argument.word if argument.default is None else f"[{argument.word}]" for argument in self.takes]
        dots = [", …"] if self.most > len(self.takes) else []
        return f"{self.names[0]}({', '.join(words)}{''.join(dots)})"

    def argument(self, place: int) -> Argument:
        """What stands at this place of a call."""
        return self.takes[min(place, len(self.takes) - 1)]


NUMBER = Argument(ArgumentKind.NUMBER)
WHOLE = Argument(ArgumentKind.WHOLE)
TEXT = Argument(ArgumentKind.TEXT)
BOOLEAN = Argument(ArgumentKind.BOOLEAN)
MOMENT = Argument(ArgumentKind.MOMENT)
ANY = Argument(ArgumentKind.ANY)

LONGEST_PATTERN = 200
"""Characters of a constant that a row's text is searched for."""

LONGEST_PAD = 1_000
"""Characters that LPAD and RPAD may pad to."""

MOST_TEXTS = 20
"""How many columns' texts one text may be put together from: no row makes a text much longer than its own."""


def whole_constant(low: int, high: int, default: int | None = None, name: str = "") -> Argument:
    """A constant integer."""
    return Argument(ArgumentKind.WHOLE, True, low, high, default, name or "n")


def text_constant(shortest: int, longest: int, default: str | None = None, name: str = "") -> Argument:
    """A constant text."""
    return Argument(ArgumentKind.TEXT, True, shortest, longest, default, name or "'text'")


def named(argument: Argument, name: str) -> Argument:
    """The same argument under another word."""
    return replace(argument, name=name)


def result_type(function: SqlFunction, given: Sequence[Type]) -> Type:
    """The type of a call with arguments of these types."""
    if isinstance(function.gives, Type):
        return function.gives
    if function.gives == "same":
        return given[0]
    return Type.INTEGER if set(given) == {Type.INTEGER} else Type.NUMBER
