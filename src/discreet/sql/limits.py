"""Limits on the length and depth of a question, checked by a linear scan before anything is parsed.

A parser of SQL tries one reading after another: what is nested may be read twice a level, and `INT[INT[INT[…` of 234
characters would never end. So a text goes through four gates, each of which costs no more than the one before allows:

1. `words`: characters, and words and signs, counted without looking at what they mean;
2. `shallow`: brackets of every kind, CASE … END, chains of operators and lists, on the tokens, so that quotes and
   comments are what the tokenizer says;
3. `CountingParser`: the parser's steps over the tokens, back and forth. Ordinary questions take 1.0 to 1.3 a token, and
   what is tried twice a level takes twice as many a level: it ends here, whatever the construct is called;
4. `small`: what the tree stands for, with operands counted as often as they are read and written anew.

All of them depend on the text alone. Each refusal names its limit and what to write.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from discreet.errors import QuestionError
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.nodes import Quantity, Root
from discreet.trusted.ring_a.table import Column, Table
from discreet.trusted.ring_b.relations import Computed

LONGEST = 100_000
"""The longest question, in characters."""

MOST_WORDS = 10_000
"""The most words and signs, each constant one and each comma: an IN of 4,900 constants."""

LONGEST_NUMBER = 400
"""The digits of a number."""

DEEPEST = 100
"""How deeply brackets and CASE … END may stand in each other, and how many NOT or signs before one operand."""

LONGEST_CHAIN = 300
"""How many operators may follow one another without a bracket or a comma between them."""

MOST_ITEMS = {
    TokenType.SELECT: (300, "columns"),
    TokenType.GROUP_BY: (100, "columns of GROUP BY"),
    TokenType.ORDER_BY: (100, "columns of ORDER BY"),
    TokenType.FROM: (16, "tables"),
    TokenType.WITH: (60, "named queries"),
}
"""How many items may stand behind these words."""

MOST_AGAIN = {
    TokenType.JOIN: (60, "joins"),
    **dict.fromkeys((TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT), (60, "queries put together")),
    TokenType.WHEN: (1_000, "branches of a CASE"),
}
"""How often these words may stand at one level."""

STEPS = (2_000, 4)
"""The parser's steps: so many, and so many more a token."""

LARGEST = 20_000
"""How many operators, columns and constants the tree of a question may stand for."""

MOST_AGGREGATES = 150
"""How many different aggregates one question may measure."""

MOST_WRITTEN = 30_000
"""How long the engine's statements may become, about in operators, columns and constants (see `written`)."""

FRAMES = 800
"""Calls in each other for one text, from its parsing to the engine's statement: what needs more is refused where it is
read, before it costs anything."""

_FRAMES_AT_LEAST, _FRAMES_A_LEVEL = 100, 40
"""Of them, what making a statement takes: about 60, and from 4 to 37 for each level of a plan, by what stands there."""

_WORD = re.compile(
    r"""'[^']*(?:'|\Z) | "[^"]*(?:"|\Z) | `[^`]*(?:`|\Z) | --[^\n]* | /\*.*?(?:\*/|\Z)
    | \d+(?:\.\d*)?(?:[eE][+-]?\d+)? | \w+ | [<>!=:|]= | => | <> | \|\| | :: | [^\w\s]""",
    re.DOTALL | re.VERBOSE,
)
_OPEN = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSE = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_SIGNS = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_TYPED = Parser.NESTED_TYPE_TOKENS | Parser.STRUCT_TYPE_TOKENS
_CHAINED = {
    *_SIGNS,
    *(TokenType.AND, TokenType.OR, TokenType.XOR, TokenType.DPIPE, TokenType.STAR, TokenType.SLASH, TokenType.MOD),
    *(TokenType.DIV, TokenType.AMP, TokenType.PIPE, TokenType.CARET, TokenType.DCOLON, TokenType.DOT, TokenType.IS),
    *(TokenType.BETWEEN, TokenType.LIKE, TokenType.ILIKE, TokenType.IN, TokenType.EQ, TokenType.NEQ, TokenType.LT),
    *(TokenType.LTE, TokenType.GT, TokenType.GTE, TokenType.ARROW, TokenType.L_BRACKET),
}
_APART = {TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.WHERE, TokenType.HAVING}


def words(text: str) -> None:
    """Refuses a text that is too long, in time that its length bounds, and at most that of `MOST_WORDS` words."""
    if len(text) > LONGEST:
        message = f"the question is longer than {LONGEST:,} characters"
        raise QuestionError("too-long", message, where="question", fix="ask something shorter")
    if any("\ud800" <= letter <= "\udfff" for letter in text):  # no message could repeat it
        message = "this is not SQL: it holds bytes that are no text"
        raise QuestionError("syntax", message, where="question", fix="write the question in UTF-8")
    if next(islice(_WORD.finditer(text), MOST_WORDS, None), None) is not None:
        raise _too_many(MOST_WORDS, "words and signs", "name fewer columns and constants: a range, or a table to join")


def shallow(tokens: Sequence[Token]) -> None:
    """Refuses what is nested, chained or listed beyond the limits. One pass over the tokens."""
    if len(tokens) > MOST_WORDS:
        raise _too_many(MOST_WORDS, "words and signs", "name fewer columns and constants")
    depth = angles = signs = 0
    level = _BracketLevel()
    outer: list[_BracketLevel] = []
    before: Any = None
    for token in tokens:
        kind = token.token_type
        if before is TokenType.SEMICOLON and kind is not before:
            raise several()
        signs = signs + 1 if kind in _SIGNS else 0
        if kind is TokenType.LT and before in _TYPED:
            angles += 1
        elif angles and kind is TokenType.GT:
            angles -= 1
        if kind in _OPEN:
            level.take(kind)  # v[1][1]… is a chain too: its types are found anew from the beginning at each bracket
            outer.append(level)
            level = _BracketLevel()
            depth += 1
        elif kind in _CLOSE and outer:
            level = outer.pop()
            depth -= 1
        else:
            level.take(kind)
        if depth + angles > DEEPEST or signs > DEEPEST:
            raise too_deep(f"at most {DEEPEST} levels of brackets, CASE, NOT or signs")
        before = kind


class _BracketLevel:
    """A run of tokens between two brackets."""

    def __init__(self) -> None:
        self.chain = self.items = 0
        self.most, self.kind = MOST_WORDS, "items"
        self.again = dict.fromkeys(MOST_AGAIN, 0)

    def take(self, kind: TokenType) -> None:
        if kind in _APART:
            self.chain = 0
        if kind in MOST_AGAIN:
            most, what = MOST_AGAIN[kind]
            self.again[kind] += 1
            if self.again[kind] > most:
                raise _too_many(most, what, "ask something simpler, or in several questions")
        if kind in MOST_ITEMS:
            self.chain = self.items = 0
            self.most, self.kind = MOST_ITEMS[kind]
        elif kind is TokenType.COMMA:
            self.chain, self.items = 0, self.items + 1
            if self.items >= self.most:
                raise _too_many(self.most, self.kind, "ask for fewer, or in several questions")
        elif kind in _CHAINED:
            self.chain += 1
            if self.chain > LONGEST_CHAIN:
                fix = "write IN (…) instead of many ORs, BETWEEN instead of many comparisons"
                raise _too_many(LONGEST_CHAIN, "operators in a row", fix)


class Endless(Exception):
    """The parser took more steps than its text allows."""


class CountingParser(Parser):
    """A parser that counts its steps: whatever it tries, it goes from token to token by `_advance`."""

    left = 0

    def _advance(self, times: int = 1) -> None:
        self.left -= 1
        if self.left < 0:
            raise Endless
        super()._advance(times)

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        """The trees of a text, in at most so many steps as `STEPS` says. Raises Endless beyond."""
        least, more = STEPS
        self.left = least + more * len(raw_tokens)
        return super().parse(raw_tokens, sql)


def small(tree: exp.Expr) -> None:
    """Refuses a tree that stands for too much: some operands are read, and written for the engine, several times.

    BETWEEN has its first operand twice, CASE x WHEN once a branch, FILTER its condition once an argument. Nested, they
    multiply; the product is computed here, in one pass and without multiplying anything.
    """
    sizes: dict[int, int] = {}
    for node in reversed(list(tree.walk(bfs=True))):
        below = [(one, sizes.pop(id(one))) for one in node.iter_expressions()]
        size = 1 + sum(count for _, count in below)
        for one, count in below:
            size += count * (_times(node, one) - 1)
        if size > LARGEST:
            raise _too_many(LARGEST, "operators, columns and constants, as often as they are read", "ask less at once")
        sizes[id(node)] = size


def _times(node: exp.Expr, operand: exp.Expr) -> int:
    """How often an operand is read."""
    if isinstance(node, exp.Between) and operand is node.this:
        return 2
    if isinstance(node, exp.Case) and operand is node.this:
        return max(1, len(node.args["ifs"]))
    if isinstance(node, exp.Filter) and operand is node.expression:
        inner = node.this.this if isinstance(node.this, exp.Func) else None
        return max(1, len(inner.expressions)) if isinstance(inner, exp.Distinct) else 1
    return 1


def written(roots: Iterable[Root]) -> int:
    """About how many operators, columns and constants the engine's statements have, without making them.

    What several roots read is written for each of them; a quantity, or a column of a subquery, is guarded and counts
    five times. One pass over the plan: what is shared in it is looked at once, and counted as often as it stands."""
    known: dict[int, int] = {}

    def size(one: object) -> int:
        if isinstance(one, tuple):
            return sum(map(size, one))
        if not is_dataclass(one) or isinstance(one, type | Table | Column | Lattice):
            return 1
        if id(one) not in known:
            inside = sum(size(getattr(one, field.name)) for field in fields(one))
            known[id(one)] = 10 + 5 * inside if isinstance(one, Quantity | Computed) else inside
        return known[id(one)]

    return sum(50 + size(root) for root in roots)


def frames(roots: Iterable[Root]) -> int:
    """At most how many calls in each other it takes to plan these anew and to make the engine's statements, from the
    depth of what they read. One pass over the plan: what is shared in it is looked at once."""
    known: dict[int, int] = {}

    def depth(one: object) -> int:
        if isinstance(one, tuple):
            return max(map(depth, one), default=0)
        if not is_dataclass(one) or isinstance(one, type | Table | Column | Lattice):
            return 0
        if id(one) not in known:
            known[id(one)] = 1 + max((depth(getattr(one, field.name)) for field in fields(one)), default=0)
        return known[id(one)]

    return min(FRAMES, _FRAMES_AT_LEAST + _FRAMES_A_LEVEL * max(map(depth, roots), default=0))


def room() -> int:
    """How many more nested calls Python allows here."""
    taken, frame = 0, inspect.currentframe()
    while frame is not None:
        taken, frame = taken + 1, frame.f_back
    return sys.getrecursionlimit() - taken


def few(aggregates: int) -> None:
    """Refuses more aggregates than are measured in one question."""
    if aggregates > MOST_AGGREGATES:
        raise _too_many(MOST_AGGREGATES, "aggregates", "ask for fewer, or in several questions")


def short(roots: Iterable[Root]) -> None:
    """Refuses a plan whose statements would be too long for the engine, before they are made."""
    if written(roots) > MOST_WRITTEN:
        fix = "ask for fewer columns and constants at once, or in several questions"
        raise QuestionError("too-long", "the statement for the engine would be too long", where="question", fix=fix)


def numbers(tree: exp.Expr) -> Iterator[exp.Literal]:
    """The number literals of a tree."""
    return (one for one in tree.find_all(exp.Literal) if not one.is_string)


def too_deep(limit: str = "") -> QuestionError:
    """The error for what is nested too deeply."""
    words_ = "this is nested too deeply" + (f": {limit}" if limit else "")
    fix = "ask something simpler: IN (…) instead of many ORs, a subquery for a part"
    return QuestionError("syntax", words_, where="question", fix=fix)


def several() -> QuestionError:
    """The error for several statements."""
    return QuestionError("statements", "there are several statements", where="question", fix="ask one SELECT at a time")


def _too_many(most: int, what: str, fix: str) -> QuestionError:
    return QuestionError("too-long", f"there are more than {most:,} {what}", where="question", fix=fix)
