"""Rotating windows: which rows and groups of a person count, as a filter without any sort.

A person's n rows have positions 1 … n, and so have the person's m groups, in an order that was fixed when the positions
were made. A question with the limit K draws a fresh salt and keeps, of a person with more than K, the window

    (position + offset) mod n < K,     offset = ((factor · word + shift) mod P) mod n,     P = 2^31 − 1.

Why that is a bound. `word` is one value of the person (one by construction: the least over the person's rows), so all
positions of the person meet one offset o, and p ↦ (p + o) mod n is one-to-one from {1, …, n} onto {0, …, n − 1}. So
exactly K positions are kept where n > K, and all of them otherwise: at most K for every key and every salt, whatever
the words are. Nothing is negative, so no remainder is; no number reaches 2^63, so nothing overflows: words, factors and
shifts are below 2^31; and n ≥ 1 wherever there is a row.

Why neighbours are told apart by one person alone. Positions, n and word are functions of the load's key and of what the
person's own rows hold: not of ranks over everybody, nor of other persons' rows, nor of where a row lies. Rows of a
person that are equal in all columns are interchangeable, so it does not matter which of them has which position. For a
fixed key and salt a person who leaves moves nobody's window, so the exact vectors differ by what that one person
contributed, as in `ring_a.sensitivity`; and what holds for each key and salt holds for keys and salts that are drawn.

Why it is fair. Over an offset uniform on {0, …, n − 1} each position is kept with probability exactly K/n: for a
position p the values (p + o) mod n are all of {0, …, n − 1}. With a fresh factor and shift, factor · word + shift is
uniform modulo the prime P, so the offset is uniform up to n/2^31, and independent for any two persons whose words
differ (Carter & Wegman 1979): sums over persons have the variance that they would have with independent offsets. Words
of two persons are equal under one key in 2^31, whatever their ids are: no pattern of ids makes persons move together.
Rows and groups stand in mixed orders, so that a window is a mixture of what the person has, and not one stretch of it.
What is left out is never made up for by a weight: a weight n/K would undo the bound.

All of it is arithmetic of whole numbers below 2^63, and the order of values: each engine keeps the same rows.

WHERE is applied beside the window, not before it: the limit counts all rows, or all groups, that the person has under
the question's keys (of public ones, those that WHERE leaves), and then WHERE reads the person's own rows that are left.
That is a bound for the same reason, and loses something only of persons above the limit.

Which form a plan takes follows from the plan alone. Rows have their positions since the load. Groups have positions
where ring B keeps them (`ring_b.held_groups`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from discreet.trusted.ring_a.casts import cast
from discreet.trusted.ring_a.dialect import function
from discreet.trusted.ring_a.names import column_name, named
from discreet.trusted.ring_a.nodes import Filter, LimitRows, Project, Scan
from discreet.trusted.ring_a.table import Table, Type
from discreet.trusted.ring_a.terms import double_literal

P = 2**31 - 1
"""A prime: what words, factors and shifts are counted by."""

PLACE = "place_of_row"
"""The row's position in a keyed order of the person's rows."""
ROWS = "rows_of_person"
"""How many rows the person has."""
WORD = "word_of_person"
"""A number below 2^31 that follows from the person's id."""

Typed = tuple[exp.Expression, Type]
"""A column of the engine, and the type of its values."""


@dataclass(frozen=True)
class Salt:
    """What a statement chooses rows and groups by: two numbers, as they stand in it, and a text. Fresh for each run:
    the choice is then fair, whatever was asked before. No bound rests on it."""

    factor: str
    shift: str
    text: str

    @classmethod
    def of(cls, text: str) -> Salt:
        """The salt that follows from a secret text."""
        factor, shift = (_number(text, index) for index in (0, 1))
        return cls(str(factor), str(shift), text)


def _number(*parts: object) -> int:
    """A number from 1 to P − 1 that follows from these."""
    digest = hashlib.sha256(" ".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:16], "big") % (P - 1) + 1


def over_rows(node: Project | LimitRows) -> bool:
    """Whether a limit on rows is a window: straight over the rows of one table."""
    return isinstance(node, LimitRows) and plain(node.child)


def plain(project: Project) -> bool:
    """Whether the rows below are those of one table with several rows a person, filtered or not."""
    scan = project.child.child if isinstance(project.child, Filter) else project.child
    several = isinstance(scan, Scan) and scan.person is not None and not scan.one_row_per_person
    return several and isinstance(scan, Scan) and scan.relation is None


def kept(position: str, number: str, most: int, salt: Salt) -> exp.Expression:
    """The condition that a row or group lies in the person's window; NULL where there is no position.

    A CASE, because the engine then computes the window for those above the limit only."""
    place, among, word = (cast(exp.column(name), "BIGINT") for name in (position, number, WORD))
    limit, factor, shift = (exp.Literal.number(one) for one in (most, salt.factor, salt.shift))
    offset = _rest(exp.Add(this=exp.Mul(this=factor, expression=word), expression=shift))
    turned = exp.Mod(this=exp.Paren(this=exp.Add(this=place, expression=offset)), expression=among)
    all_count = exp.If(this=exp.LTE(this=exp.column(number), expression=limit), true=exp.true())
    return exp.Case(ifs=[all_count], default=exp.LT(this=turned, expression=limit.copy()))


def _rest(node: exp.Expression) -> exp.Expression:
    """A whole number modulo P: its remainder, which has the number's own sign."""
    return exp.Paren(this=exp.Mod(this=exp.Paren(this=node), expression=exp.Literal.number(P)))


def words_of(node: exp.Expression, kind: Type) -> list[exp.Expression]:
    """Numbers from 0 to P − 1 that follow from a column's value, and may be NULL of NULL. No value makes them fail.

    Whole numbers that are less than 2^60 apart have different ones: their rest, and that of how often 2^30 goes into
    them."""
    if kind is Type.TEXT:
        return [_rest(function("text_number", node))]
    if kind is Type.BOOLEAN:
        return [exp.Case(ifs=[exp.If(this=node, true=exp.Literal.number(1))], default=exp.Literal.number(0))]
    if kind is Type.NUMBER:  # in steps of 2^−16: a finer difference only decides among the columns' own order
        node = exp.Greatest(this=node, expressions=[double_literal(Fraction(-(2**36)))], ignore_nulls=True)
        node = exp.Least(this=node, expressions=[double_literal(Fraction(2**36))], ignore_nulls=True)
        node = cast(exp.Floor(this=function("number_product", node, double_literal(Fraction(2**16)))), "BIGINT")
    elif kind is not Type.INTEGER:
        node = function("microseconds", cast(node, "TIMESTAMP"))
    node = cast(node, "BIGINT")  # an engine may hold places in 32 bits, and fail where a sum is no such number
    halves = (node, function("whole_quotient", node.copy(), exp.Literal.number(2**30)))
    return [_rest(exp.Add(this=_rest(half), expression=exp.Literal.number(P))) for half in halves]


def mixed_rows(rows: exp.Select, values: Sequence[exp.Expression], key: str, name: str) -> exp.Select:
    """The rows with one more column, named `name`: x^5 modulo P, where x is a sum of multiples of these numbers below
    P, and of one more, under the key; NULL counts as 1. The fifth power is one-to-one, as 5 does not divide P − 1, and
    leaves nothing of the order and distances of numbers."""
    factors = (exp.Literal.number(_number(key, name, index)) for index in range(len(values)))
    known = (exp.Coalesce(this=cast(node, "BIGINT"), expressions=[exp.Literal.number(1)]) for node in values)
    x, square = exp.column(f"{name}_x"), exp.column(f"{name}_square")
    fourth = _rest(exp.Mul(this=square, expression=square.copy()))
    total: exp.Expression = exp.Literal.number(_number(key, name))
    for one, factor in zip(known, factors, strict=True):
        total = exp.Add(this=total, expression=_rest(exp.Mul(this=one, expression=factor)))
    for node, called in (
        (total, x.name),
        (exp.Mul(this=x, expression=x.copy()), square.name),
        (exp.Mul(this=fourth, expression=x.copy()), name),
    ):
        below = rows.subquery("unmixed", copy=False)
        rows = exp.select(exp.Star(), named(_rest(node), called)).from_(below, copy=False)
    return rows


def mixed_by_salt(rows: exp.Select, person: exp.Expression, among: Sequence[Typed], salt: Salt) -> exp.Select:
    """The rows with a number that follows from the salt, the person and these columns alone: what `rank` goes by."""
    whose = exp.DPipe(this=exp.Literal.string(salt.text), expression=cast(person, "TEXT"))
    words = [one for node, kind in among for one in words_of(node.copy(), kind)]
    known = (exp.Coalesce(this=cast(node, "BIGINT"), expressions=[exp.Literal.number(1)]) for node in words)
    fresh = [_rest(exp.Mul(this=node, expression=exp.Literal.number(salt.factor))) for node in known]
    return mixed_rows(rows, [_rest(function("text_number", whose)), *fresh], "", "mixed")


def rank(person: exp.Expression, values: Sequence[exp.Expression]) -> exp.Window:
    """Places of a person's rows: by the number that mixes them, then by the values themselves, of which the person is
    the same in all, so that only equal rows have no order."""
    nodes = [exp.column("mixed"), *(node for node in values if node != person)]
    order = exp.Order(expressions=[exp.Ordered(this=node.copy(), nulls_first=True) for node in nodes])
    return exp.Window(this=exp.RowNumber(), partition_by=[person.copy()], order=order)


def places_of(person: exp.Expression, values: Sequence[exp.Expression]) -> exp.Expression:
    """The places of `rank` as whole numbers, from 1 on."""
    return exp.cast(rank(person, values), exp.DType.INT)


def of_rows(rows: exp.Select, table: Table, key: str) -> exp.Select:
    """For a table's load: of the rows of each person at most `Table.stored`, the first in an order under the key of
    what the rows hold; each with its position in that order, their number, and the person's word.

    A position depends on the key and on the person's own rows alone, and those that are kept have 1 … min(n, stored).
    """
    columns = {one.name: (exp.column(column_name(i)), one.type or Type.TEXT) for i, one in enumerate(table.columns)}
    person = columns[table.person or ""][0]
    owned = mixed_rows(rows, words_of(*columns[table.person or ""]), key, "owner")
    mixed = mixed_rows(
        owned, [one for node, kind in columns.values() for one in words_of(node.copy(), kind)], key, "mixed"
    )
    limit = exp.Literal.number(table.stored)
    among = exp.Least(this=over_person(exp.Count(this=exp.Star()), person), expressions=[limit], ignore_nulls=True)
    placed = exp.select(
        *(node.copy() for node, _ in columns.values()),
        exp.alias_(places_of(person, [node for node, _ in columns.values()]), PLACE),
        exp.alias_(exp.cast(among, exp.DType.INT), ROWS),
        exp.alias_(exp.cast(over_person(exp.Min(this=exp.column("owner")), person), exp.DType.INT), WORD),
    ).from_(mixed.subquery("ordered", copy=False), copy=False)
    kept = exp.LTE(this=exp.column(PLACE), expression=limit.copy())
    return exp.select(exp.Star()).from_(placed.subquery("placed", copy=False), copy=False).where(kept, copy=False)


def over_person(node: exp.Expression, person: exp.Expression) -> exp.Window:
    """An aggregate over all rows of the same person, beside each of them."""
    return exp.Window(this=node, partition_by=[person.copy()])
