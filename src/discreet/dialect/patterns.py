"""Regular expressions that a question may write: a subset that every engine accepts and matches quickly.

An automaton reads a text in time linear in its length (Thompson 1968), times the size of the expression. So the size is
bounded, repetitions counted out, and what needs more than an automaton (references, look-around) is not there. How long
one character may take follows from the expression too: `Regular.letter_steps`.
"""

from __future__ import annotations

from dataclasses import dataclass

LARGEST = 250
"""Characters and classes of an expression, repetitions counted out."""

MOST_TIMES = 100
"""The largest number in braces."""

LOOKED_AT = 10_000
"""The characters of a row's text that an expression is matched against."""

_CLASSES = "dDwWsS"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r"}
_NAMED = ("alpha", "digit", "alnum", "upper", "lower", "space", "punct", "xdigit", "word")


class PatternError(ValueError):
    """The expression is not of the plain kind; the text says why and holds nothing but the question's own words."""


@dataclass(frozen=True)
class Regular:
    """What is known of an expression."""

    size: int
    groups: int
    branches: int
    """Places, repetitions counted out, where more than one character may follow or more than one way may be taken."""

    @property
    def letter_steps(self) -> int:
        """Nanoseconds a character, at most. With b branches the automaton has at most about size · 2^b states; while
        they fit into its memory a character is one step (measured: 4 to 15 ns up to b = 8). Beyond, the engine follows
        all places of the expression at once (measured: up to 16 ns for each of them)."""
        return 15 if self.branches <= 8 else 16 * max(self.size, 8)


def regular(pattern: str) -> Regular:
    """Reads an expression. Raises PatternError on everything that is not surely understood."""
    scanner = _Scanner(pattern.removeprefix("(?i)"))
    size = scanner.alternatives()
    if not scanner.done:
        raise PatternError("there is one ) too many")
    if size > LARGEST:
        raise PatternError(f"it is larger than {LARGEST} characters, repetitions counted out")
    return Regular(size, scanner.groups, scanner.branches)


class _Scanner:
    """One reading, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.groups = 0
        self.branches = 0

    @property
    def done(self) -> bool:
        return self.place >= len(self.text)

    @property
    def next(self) -> str:
        return "" if self.done else self.text[self.place]

    def take(self) -> str:
        letter = self.next
        if not letter:
            raise PatternError("it ends too early")
        self.place += 1
        return letter

    def skip(self, word: str) -> bool:
        found = self.text.startswith(word, self.place)
        self.place += len(word) if found else 0
        return found

    def alternatives(self) -> int:
        size = self.sequence()
        while self.skip("|"):
            self.branches += 1
            size += 1 + self.sequence()
        return size

    def sequence(self) -> int:
        size = 0
        while self.next and self.next not in "|)":
            size += self.repeated()
        return size

    def repeated(self) -> int:
        """An atom and how often it may stand there."""
        anchor = self.next in "^$" or self.text.startswith("\\b", self.place)
        before = self.branches
        size = self.atom()
        if not self.next or self.next not in "*+?{":
            return size
        if anchor:
            raise PatternError("^, $ and \\b cannot be repeated")
        least, times = self.times()
        inside = self.branches - before + (least != times)
        self.branches = before + inside * times
        self.skip("?")
        if self.next and self.next in "*+?{":
            raise PatternError("two repetitions follow each other")
        return (size + 1) * times

    def times(self) -> tuple[int, int]:
        """How often at least, and how often at most as far as the size goes."""
        letter = self.take()
        if letter != "{":
            return 0, 1
        least = self.number()
        most = least
        if self.skip(","):
            most = least + 1 if self.next == "}" else self.number()
        if not self.skip("}") or most < least:
            raise PatternError("write {3}, {3,} or {3,5}, and \\{ for the character")
        return least, max(most, 1)

    def number(self) -> int:
        digits = ""
        while self.next and self.next in "0123456789" and len(digits) < 4:
            digits += self.take()
        if not digits or int(digits) > MOST_TIMES:
            raise PatternError(f"repeat at most {MOST_TIMES} times")
        return int(digits)

    def atom(self) -> int:
        letter = self.take()
        if letter == "(":
            return self.group()
        if letter == "[":
            return self.choice()
        if letter == "\\":
            self.branches += self.escape(inside=False) is None
            return 1
        if letter in "*+?{}]":
            raise PatternError(f"write \\{letter} for the character {letter}")
        self.branches += letter == "."
        return 1

    def group(self) -> int:
        if not self.skip("?:"):
            if self.next == "?":
                raise PatternError("the groups allowed are (…) and (?:…), and (?i) at the start")
            self.groups += 1
        size = self.alternatives()
        if not self.skip(")"):
            raise PatternError("a ) is missing")
        return size + 2

    def escape(self, *, inside: bool) -> str | None:
        """What follows a backslash: a character, or None for a class or a boundary."""
        letter = self.take()
        if letter in _CLASSES or (letter in "bB" and not inside):
            return None
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        if letter.isascii() and not letter.isalnum() and letter.isprintable():
            return letter
        raise PatternError(f"\\{letter} is not known")

    def choice(self) -> int:
        """A class in brackets."""
        self.branches += 1
        self.skip("^")
        if self.next == "]":
            raise PatternError("write \\] for the character ]")
        while not self.skip("]"):
            first = self.member()
            if self.next == "-" and self.text[self.place + 1 : self.place + 2] not in ("]", ""):
                self.take()
                last = self.member()
                if first is None or last is None or first > last:
                    raise PatternError("a range goes from a lower character to a higher one")
        return 1

    def member(self) -> str | None:
        if self.skip("[:"):
            if not any(self.skip(f"{name}:]") for name in _NAMED):
                raise PatternError(f"the named classes allowed are {', '.join(_NAMED)}")
            return None
        letter = self.take()
        if letter == "\\":
            return self.escape(inside=True)
        if letter == "[":
            raise PatternError("write \\[ for the character [")
        return letter
