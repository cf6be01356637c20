"""A question's statements, each made once: what is tried before the price is what runs after it, but for the salt."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass, fields

from discreet.locks import Lock
from discreet.trusted.ring_a.names import table_name
from discreet.trusted.ring_a.nodes import Aggregate, Root
from discreet.trusted.ring_a.statement import statement
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_a.windows import Salt
from discreet.trusted.ring_b import registered  # noqa: F401  (operators and relations are registered with ring A)
from discreet.trusted.ring_b.dialect import Dialect
from discreet.trusted.ring_b.held_groups import Held, held, name_of
from discreet.trusted.ring_b.order_statistics import Distinct

MOST_KEPT = 4_000_000
"""How many characters of statements are kept: those of one question, which has fewer, and of few others."""


@dataclass(frozen=True)
class AuxiliaryTable:
    """What a statement reads beside its table: its name, the statements that build it, and those that drop it; and what
    these were made of."""

    name: str
    build: tuple[str, ...]
    drop: tuple[str, ...]
    held: Held


@dataclass(frozen=True)
class SaltedStatement:
    """A statement as the engine reads it, in the pieces between which parts of the salt stand, and which these are."""

    pieces: tuple[str, ...]
    salts: tuple[str, ...]
    beside: AuxiliaryTable | None

    @property
    def length(self) -> int:
        """Its characters, and those of what is built for it."""
        built = self.beside.build if self.beside is not None else ()
        return sum(map(len, (*self.pieces, *built)))

    def salted(self, salt: Salt) -> str:
        """The statement with a salt, which needs no quoting."""
        parts = (getattr(salt, name) for name in self.salts)
        return self.pieces[0] + "".join(part + piece for part, piece in zip(parts, self.pieces[1:], strict=True))

    def bound(self, salt: Salt) -> tuple[str, list[int | str]]:
        """The statement with a place, $1, $2 and so on, for each part of the salt, and the parts beside it."""
        text, rest = self.pieces[0], list(self.pieces[1:])
        wanted: list[str] = []
        for name, piece in zip(self.salts, rest, strict=True):
            if name not in wanted:
                wanted.append(name)
            place = f"${wanted.index(name) + 1}"
            if name == "text":  # it stood between quotes
                text, piece = text.removesuffix("'"), piece.removeprefix("'")
            text += place + piece
        values = [getattr(salt, name) for name in wanted]
        return text, [value if name == "text" else int(value) for name, value in zip(wanted, values, strict=True)]


class Statements:
    """Makes statements of plans, in one dialect, and keeps those that were made last.

    A statement is made with marks in the salt's places, which are drawn when the question is known already. So they
    stand nowhere else in it, and the text between is the same for every salt."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._made: OrderedDict[tuple[int, int], tuple[Root, Table, SaltedStatement]] = OrderedDict()
        self._kept = 0
        self._lock = Lock()

    def of(self, plan: Root, table: Table) -> SaltedStatement:
        """The statement of this very plan on this very table: two that are only equal are made twice, as it takes as
        long to compare them."""
        key = id(plan), id(table)  # the plan and the table are kept, so nothing else gets their numbers
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key][2]
            made = self._make(plan, table)
            self._made[key] = plan, table, made
            self._kept += made.length
            while self._kept > MOST_KEPT and len(self._made) > 1:
                _, (_, _, gone) = self._made.popitem(last=False)
                self._kept -= gone.length
        return made

    def _make(self, plan: Root, table: Table) -> SaltedStatement:
        mark, parts = secrets.token_bytes(16).hex(), [field.name for field in fields(Salt)]
        marked = Salt(*(f"{mark}{place}" for place in range(len(parts))))
        first, *rest = self._dialect.text(statement(plan, table, marked), copy=False).split(mark)
        salts = tuple(parts[int(piece[0])] for piece in rest)
        return SaltedStatement((first, *(piece[1:] for piece in rest)), salts, self._beside(plan, table))

    def _beside(self, plan: Root, table: Table) -> AuxiliaryTable | None:
        below = plan.child if isinstance(plan, Distinct) else plan
        if not isinstance(below, Aggregate) or name_of(table_name(table), below) is None:
            return None
        wanted = held(below, table)
        build, drop = (tuple(self._dialect.text(node) for node in nodes) for nodes in (wanted.build, wanted.drop))
        return AuxiliaryTable(wanted.name, build, drop, wanted)
