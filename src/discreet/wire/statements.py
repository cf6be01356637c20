"""Where the statements, words and parameters of a text are, as PostgreSQL's own rules for words have it.

Nothing here says what a statement means: a question's text goes on as it stands. Where it has parameters, each `$1` is
written over with one literal, which is a word of its own whatever the value is: a number that was read as one, or a
text between quotes with every quote in it doubled.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from discreet.wire.refusals import Trouble

LONGEST = 65_536
"""Characters of a text."""

MOST_WORDS = 10_000
"""Words and signs of a text, as of a question: others wait while it is read."""

LONGEST_FILLED = 1 << 20
"""Characters of a text with the values of its parameters."""

MOST_STATEMENTS = 100
"""How many a text has."""

MOST_PARAMETERS = 32_767
"""How many a statement has: the protocol counts no further."""


class WordKind(StrEnum):
    """What a word is."""

    WORD = "word"
    QUOTED = "quoted"
    STRING = "string"
    NUMBER = "number"
    PARAMETER = "parameter"
    SIGN = "sign"


class Word(NamedTuple):
    """A word of a statement: `text` as it stands, or what stands between double quotes; `start` and `end` are its place
    in the text."""

    kind: WordKind
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """What it says, if it is a word at all."""
        return self.text.upper() if self.kind is WordKind.WORD else self.text if self.kind is WordKind.SIGN else ""


@dataclass(frozen=True)
class Statement:
    """One statement, with its words."""

    text: str
    words: tuple[Word, ...]

    @property
    def parameters(self) -> int:
        """How many parameters it has: the highest number. Those of what PREPARE prepares are not its own."""
        if self.begins("PREPARE"):
            return 0
        return max((int(one.text[1:]) for one in self.words if one.kind is WordKind.PARAMETER), default=0)

    def begins(self, *words: str) -> bool:
        """Whether it begins with these."""
        return tuple(one.upper for one in self.words[: len(words)]) == words

    def part(self, start: int, end: int | None = None) -> Statement:
        """What its words from one to another say."""
        words = self.words[start:end]
        if not words:
            return Statement("", ())
        first = words[0].start
        if not first:
            return Statement(self.text[: words[-1].end], words)
        moved = tuple(Word(one.kind, one.text, one.start - first, one.end - first) for one in words)
        return Statement(self.text[first : words[-1].end], moved)

    def filled(self, literals: Sequence[str]) -> str:
        """Its text with literals in the places of its parameters. Raises Trouble where it gets too long."""
        pieces, at, length = [], 0, len(self.text)
        for one in self.words:
            if one.kind is WordKind.PARAMETER:
                pieces += [self.text[at : one.start], f" {literals[int(one.text[1:]) - 1]} "]
                at = one.end
                length += len(pieces[-1])
            if length > LONGEST_FILLED:
                raise Trouble("54001", f"with its parameters a text has at most {LONGEST_FILLED:,} characters")
        return "".join([*pieces, self.text[at:]])


_WORDS = re.compile(
    r"""(?P<blank>\s+|--[^\r\n]*)
    |(?P<comment>/\*)
    |(?P<string>(?:[nNbBxX]|[uU]&)?'(?:[^']|'')*')
    |(?P<escaped>[eE]'(?:[^'\\]|''|\\.)*')
    |(?P<quoted>"(?:[^"]|"")+")
    |(?P<parameter>\$[0-9]+)
    |(?P<dollars>\$(?:[A-Za-z_\x80-\U0010ffff][\w]*)?\$)
    |(?P<word>[A-Za-z_\x80-\U0010ffff][\w$]*)
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<sign>::|<=|>=|<>|!=|[^\s'"\\])""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")
_KINDS = {"escaped": WordKind.STRING, "dollars": WordKind.STRING}


def statements(text: str) -> list[Statement]:
    """The statements of a text. Raises Trouble where it ends in the middle of a word, or is too long."""
    if len(text) > LONGEST:
        raise Trouble("54001", f"a text has at most {LONGEST:,} characters", hint="ask something shorter")
    found: list[Statement] = []
    words: list[Word] = []
    for word in [*_scanned(text), Word(WordKind.SIGN, ";", len(text), len(text))]:
        if (word.kind, word.text) != (WordKind.SIGN, ";"):
            words.append(word)
        elif words:
            found.append(Statement(text, tuple(words)).part(0))
            words = []
    if len(found) > MOST_STATEMENTS:
        raise Trouble("54000", f"a text has at most {MOST_STATEMENTS} statements", hint="send fewer at once")
    return found


def _scanned(text: str) -> list[Word]:
    words, at = [], 0
    while at < len(text):
        found = _WORDS.match(text, at)
        if found is None or found.lastgroup is None:
            raise Trouble("42601", "this is not SQL: a word does not end", hint="close every quote and comment")
        name, end = found.lastgroup, found.end()
        if name == "comment":
            end = _behind_comment(text, at)
        elif name == "dollars":
            end = text.find(found[0], end) + len(found[0])
            if end < found.end() + len(found[0]):
                raise Trouble("42601", "this is not SQL: a word does not end", hint="close every quote and comment")
        if name == "parameter" and (len(found[0]) > 6 or not 1 <= int(found[0][1:]) <= MOST_PARAMETERS):
            raise Trouble("42P02", "parameters are numbered from $1", hint="number them from $1")
        if name not in ("blank", "comment"):
            said = found[0][1:-1].replace('""', '"') if name == "quoted" else text[at:end]
            words.append(Word(_KINDS.get(name) or WordKind(name), said, at, end))
            if len(words) > MOST_WORDS:
                words_of = f"a text has at most {MOST_WORDS:,} words and signs"
                raise Trouble("54001", words_of, hint="ask something shorter")
        at = end
    return words


def _behind_comment(text: str, at: int) -> int:
    """Where a comment ends, with those inside it."""
    depth = 0
    for found in _COMMENT.finditer(text, at):
        depth += 1 if found[0] == "/*" else -1
        if not depth:
            return found.end()
    raise Trouble("42601", "this is not SQL: a comment does not end", hint="close every quote and comment")


def unquoted(word: Word) -> str:
    """What a string, a word or a number of a setting says."""
    if word.kind is WordKind.STRING:
        if word.text[0] != "'":
            raise Trouble("22023", "write a plain text between single quotes")
        return word.text[1:-1].replace("''", "'")
    return word.text


def name_of(word: Word) -> str:
    """A name: folded to small letters, unless it stands in double quotes."""
    return word.text if word.kind is WordKind.QUOTED else word.text.lower()


def may_give_no_row(statement: Statement) -> bool:
    """Whether the words could say that there is no row whatever the tables hold. Who reads the text knows more."""
    words = statement.words
    values = {WordKind.NUMBER, WordKind.STRING, WordKind.PARAMETER}
    for place, word in enumerate(words):
        if word.kind is WordKind.PARAMETER and _at(words, place - 1) in _CONDITIONS:
            return True
        if word.upper == "FALSE" or (word.upper == "NOT" and _at(words, place + 1) in ("TRUE", "(")):
            return True
        if place + 1 == len(words):
            break
        after = words[place + 1]
        if word.upper in ("LIMIT", "FIRST", "NEXT") and (
            after.kind is WordKind.PARAMETER or not after.text.strip("0(")
        ):
            return True
        if word.upper in _COMPARING and after.kind in values and place and words[place - 1].kind in values:
            return True
    return False


_CONDITIONS = {"WHERE", "HAVING", "AND", "OR", "NOT", "("}
_COMPARING = {"=", "<", ">", "<=", ">=", "<>", "!=", "LIKE", "ILIKE"}


def beside(statement: Statement) -> dict[int, tuple[str, str]]:
    """What each parameter stands beside, by its number: ("type", name) where it is cast to one, ("column", name) where
    it is compared with one, ("rows", "") where it counts rows. Others are not there."""
    words = statement.words
    found: dict[int, tuple[str, str]] = {}
    before = -1  # back through a list to its IN
    for place, word in enumerate(words):
        if word.kind is not WordKind.PARAMETER:
            before = before if word.upper in ("(", ",") else place
            continue
        number = int(word.text[1:])
        said = _cast(words, place) or _compared(words, before, place)
        if said is not None and found.get(number, ("column", ""))[0] == "column":
            found[number] = said
    return found


def _at(words: Sequence[Word], place: int) -> str:
    return words[place].upper if 0 <= place < len(words) else ""


def _cast(words: Sequence[Word], place: int) -> tuple[str, str] | None:
    if _at(words, place + 1) == "::" and place + 2 < len(words):
        return "type", words[place + 2].text.lower()
    if _at(words, place + 1) == "AS" and place >= 2 and _at(words, place - 2) == "CAST" and place + 2 < len(words):
        return "type", words[place + 2].text.lower()
    if _at(words, place - 1) in ("LIMIT", "OFFSET"):
        return "rows", ""
    return None


def _compared(words: Sequence[Word], before: int, place: int) -> tuple[str, str] | None:
    if _at(words, before) == "AND" and before >= 2 and words[before - 1].kind is WordKind.PARAMETER:
        before -= 2  # BETWEEN $1 AND $2
    operator = _at(words, before)
    if operator == "BETWEEN" or operator in _COMPARING or operator == "IN":
        before -= 1
        if _at(words, before) == "NOT":
            before -= 1
        if before >= 0 and words[before].kind in (WordKind.WORD, WordKind.QUOTED):
            return "column", name_of(words[before])
    if _at(words, place + 1) in _COMPARING and place + 2 < len(words):
        after = place + 2
        while _at(words, after + 1) == "." and after + 2 < len(words):
            after += 2
        if words[after].kind in (WordKind.WORD, WordKind.QUOTED):
            return "column", name_of(words[after])
    return None
