"""How PostgreSQL, from version 15 on, writes what engines write differently, so that no value makes it fail and each
gives the very value that DuckDB gives. What cannot be shown to do both is in `LACKS`.

A template that has an argument several times gets a column, a constant or the name of a `let` there, never a longer
expression. Texts are compared by their bytes: columns have the collation "C" from their load on, which goes before
that of the database wherever they meet a constant, and a text that is made of no column is given it here.
What is written rests on three settings of the session: standard_conforming_strings on, datestyle ISO, and a
search_path in which nothing hides what pg_catalog has. Results of `sin`, `exp`, `ln` and other curves are those of the
library of the server's machine, as DuckDB's are those of its own.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import count
from string import Formatter

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.generator import Generator
from sqlglot.generators.postgres import PostgresGenerator

from discreet.engines import layers, letters
from discreet.engines.postgresql import doubles, powers
from discreet.trusted.ring_a.dialect import Function
from discreet.trusted.ring_b.dialect import Lacking
from discreet.trusted.ring_b.engine_functions import dialect

_C = 'COLLATE "C"'
_Kind = exp.DataType.Type
"""By these a type is compared at once; a name would be parsed each time."""


class Piece(exp.Anonymous):
    """A text of PostgreSQL with places for its arguments, as a template of `FUNCTIONS`."""


def _written(writer: Generator, template: str, node: exp.Expr) -> str:
    return template.format(*(writer.sql(one) for one in node.expressions))


class _Writer(PostgresGenerator):
    """PostgreSQL's grammar, in which pieces are written as they are."""


_Writer.TRANSFORMS = {
    **PostgresGenerator.TRANSFORMS,
    Piece: lambda writer, node: _written(writer, str(node.this), node),
    layers.Layers: layers.write,
}


class DiscreetPostgres(Postgres):
    """Where sqlglot finds it."""

    Generator = _Writer


def _bits(number: str) -> str:
    """The bits of a double as a whole number; those of doubles from 0 on stand in their order."""
    return f"CAST(CAST('x' || ENCODE(FLOAT8SEND({number}), 'hex') AS BIT(64)) AS BIGINT)"


def _remainder() -> str:
    """What is left of {0} by {1}, exactly, with the sign of {0}. Of whole numbers below 2^63 it is one of 64 bits. Any
    two others are whole multiples m · 2^a and n · 2^b, with a from b on where the first is the larger, so that it is
    (m · 2^(a − b) mod n) · 2^b."""
    exponents = [f"(GREATEST({_bits(f'ABS({{{place}}})')} >> 52, 1) - 1075)" for place in (0, 1)]
    mantissas = [
        f"CASE WHEN ABS({{{place}}}) < {doubles.double(2.0**-1022)} THEN {_bits(f'ABS({{{place}}})')} "
        f"ELSE {_bits(f'ABS({{{place}}})')} & {2**52 - 1} | {2**52} END"
        for place in (0, 1)
    ]
    twos = f"POWER(CAST(2 AS NUMERIC), CAST({exponents[0]} - {exponents[1]} AS NUMERIC))"
    left = f"CAST(MOD(CAST({mantissas[0]} AS NUMERIC) * {twos}, CAST({mantissas[1]} AS NUMERIC)) AS DOUBLE PRECISION)"
    general = f"{left} * POWER({doubles.double(2.0)}, CAST({exponents[1]} AS DOUBLE PRECISION))"
    whole = " AND ".join(f"{{{p}}} = TRUNC({{{p}}}) AND ABS({{{p}}}) < {doubles.double(2.0**63)}" for p in (0, 1))
    small = "CAST(CAST(ABS({0}) AS BIGINT) % CAST(ABS({1}) AS BIGINT) AS DOUBLE PRECISION)"
    return (
        f"CASE WHEN ABS({{0}}) >= {doubles.INFINITE} OR {{1}} = {doubles.NAN} OR {{1}} = 0 THEN {doubles.NAN} "
        f"WHEN ABS({{0}}) < ABS({{1}}) THEN {{0}} "
        f"WHEN {{0}} < 0 THEN -(CASE WHEN {whole} THEN {small} ELSE {general} END) "
        f"ELSE CASE WHEN {whole} THEN {small} ELSE {general} END END"
    )


def _letters(name: str, table: Mapping[str, str]) -> str:
    """Letters of ASCII by PostgreSQL itself, others one by one by a table: TRANSLATE would read all of the table for
    each letter that is not in it."""
    plain = f"{name}({{0}} {_C})"
    known = json.dumps(table, ensure_ascii=False, separators=(",", ":")).replace("{", "{{").replace("}", "}}")
    letter = f"COALESCE(CAST('{known}' AS JSONB) ->> each.letter, each.letter)"
    others = (
        f"(SELECT STRING_AGG({letter}, '' ORDER BY each.place) "
        f"FROM STRING_TO_TABLE({plain}, NULL) WITH ORDINALITY AS each(letter, place))"
    )
    return f"CASE WHEN OCTET_LENGTH({{0}}) = LENGTH({{0}}) THEN {plain} ELSE {others} END"


FUNCTIONS = {
    "text_number": "(CAST(CAST('x' || LEFT(MD5({0}), 8) AS BIT(32)) AS BIGINT) & 2147483647)",
    "hash_of_rows": "BIT_XOR(HASH_RECORD_EXTENDED(ROW({all}), 0))",
    "sum_of_hashes": "SUM(HASH_RECORD_EXTENDED(ROW({all}), 1))",
    "row_in_source": "ctid",
    "whole_sum": "SUM({0})",  # of 64 bits a NUMERIC
    "whole_quotient": "({0} / {1})",
    "column_as": "CAST({0} AS {1})",
    "whole_number": f"CASE WHEN {{0}} >= {doubles.double(-(2.0**63))} AND {{0}} < {doubles.double(2.0**63)} "
    "THEN CAST({0} AS BIGINT) END",
    "null_if_equal": "NULLIF({0}, {1})",
    "number_sum": doubles.SUM,
    "number_difference": doubles.DIFFERENCE,
    "number_product": doubles.PRODUCT,
    "number_quotient": doubles.QUOTIENT,
    "is_nan": f"({{0}} = {doubles.NAN})",
    "is_infinite": f"({{0}} IN ({doubles.INFINITE}, {doubles.MINUS_INFINITE}))",
    "is_finite": f"({{0}} NOT IN ({doubles.INFINITE}, {doubles.MINUS_INFINITE}, {doubles.NAN}))",
    "bit_xor": "({0} # {1})",
    "bit_count": "BIT_COUNT(CAST({0} AS BIT(64)))",
    "byte_length": "CAST(OCTET_LENGTH({0}) AS BIGINT)",
    "length": "CAST(LENGTH({0}) AS BIGINT)",
    "ascii": "ASCII({0})",
    "starts_with": "STARTS_WITH({0}, {1})",
    "ends_with": "(RIGHT({0}, LENGTH({1})) = {1})",
    "contains": "(STRPOS({0}, {1}) > 0)",
    "position": "CAST(STRPOS({0}, {1}) AS BIGINT)",
    "date_part": "CAST(FLOOR(DATE_PART({0}, CAST({1} AS TIMESTAMP))) AS BIGINT)",
    "date_trunc": "DATE_TRUNC({0}, CAST({1} AS TIMESTAMP))",
    "microseconds": "CAST(EXTRACT(EPOCH FROM {0}) * 1000000 AS BIGINT)",
    "day_name": f"TO_CHAR({{0}}, 'FMDay') {_C}",
    "month_name": f"TO_CHAR({{0}}, 'FMMonth') {_C}",
    "last_day": "CAST(DATE_TRUNC('month', CAST({0} AS TIMESTAMP)) + INTERVAL '1 month' - INTERVAL '1 day' AS DATE)",
    # names in `COMMON` that fail or mean something else
    "round": f"CASE WHEN {{0}} - TRUNC({{0}}) >= {doubles.double(0.5)} THEN TRUNC({{0}}) + {doubles.double(1.0)} "
    f"WHEN {{0}} - TRUNC({{0}}) <= {doubles.double(-0.5)} THEN TRUNC({{0}}) - {doubles.double(1.0)} "
    "ELSE TRUNC({0}) END",
    "sqrt": "CASE WHEN {0} >= 0 THEN SQRT({0}) END",
    "ln": f"CASE WHEN {{0}} > 0 THEN LN({{0}}) WHEN {{0}} = 0 THEN {doubles.MINUS_INFINITE} END",
    "log10": f"CASE WHEN {{0}} > 0 THEN LOG({{0}}) WHEN {{0}} = 0 THEN {doubles.MINUS_INFINITE} END",
    # the ends of exp are those beyond which the nearest double is infinite or 0; next to nothing is the least double
    "exp": f"CASE WHEN {{0}} BETWEEN {doubles.double(-744.1)} AND {doubles.double(709.782712893384)} THEN EXP({{0}}) "
    f"WHEN {{0}} = {doubles.NAN} THEN {{0}} WHEN {{0}} > {doubles.double(0.0)} THEN {doubles.INFINITE} "
    f"WHEN {{0}} >= {doubles.double(-745.1332191019411)} THEN {doubles.double(5e-324)} "
    f"WHEN {{0}} < {doubles.double(0.0)} THEN {doubles.double(0.0)} END",
    "sin": f"CASE WHEN ABS({{0}}) < {doubles.INFINITE} THEN SIN({{0}}) END",
    "cos": f"CASE WHEN ABS({{0}}) < {doubles.INFINITE} THEN COS({{0}}) END",
    "tan": f"CASE WHEN ABS({{0}}) < {doubles.INFINITE} THEN TAN({{0}}) END",
    "asin": "CASE WHEN {0} BETWEEN -1 AND 1 THEN ASIN({0}) END",
    "acos": "CASE WHEN {0} BETWEEN -1 AND 1 THEN ACOS({0}) END",
    "acosh": "CASE WHEN {0} >= 1 THEN ACOSH({0}) END",
    "atanh": "CASE WHEN {0} BETWEEN -1 AND 1 THEN ATANH({0}) END",
    "mod": _remainder(),
    "upper": _letters("UPPER", letters.LARGE),
    "lower": _letters("LOWER", letters.SMALL),
    "left": "LEFT({0}, {1})",
    "right": "RIGHT({0}, CASE WHEN {1} < -2147483647 THEN -2147483647 ELSE {1} END)",
    "trim": "BTRIM({0}, {1})",
    "split_part": "SPLIT_PART({0}, {1}, CAST({2} AS INTEGER))",
}


_GROUPED = ("whole_sum", "hash_of_rows", "sum_of_hashes")
_COLLATION = exp.to_identifier("C", quoted=True)
_NAMES = count()


def _total(node: exp.Expr) -> bool:
    """Whether a node adds up rows."""
    added = isinstance(node, exp.AggFunc) or (isinstance(node, Function) and node.name in _GROUPED)
    return added and not isinstance(node.parent, exp.Window)


@cache
def _several(template: str) -> frozenset[int]:
    """The places of a template that stand in it several times."""
    places = [field for _, field, _, _ in Formatter().parse(template) if field is not None and field.isdigit()]
    return frozenset(int(place) for place in places if places.count(place) > 1)


def _piece(template: str, *nodes: exp.Expr) -> exp.Expr:
    """A template with its arguments, each under a name where it stands several times and is more than a name."""
    several, values, named = _several(template), [], []
    for place, node in enumerate(nodes):
        if place in several and not layers.plain(node):
            name = f"w{next(_NAMES)}"
            named.append((node, name))
            node = exp.column(name)
        values.append(node)
    whole: exp.Expr = Piece(this=template, expressions=values)
    for node, name in reversed(named):
        whole = layers.let(node, name, whole)
    return whole


def _constant(node: exp.Expr) -> float | None:
    """The value of a constant double."""
    if isinstance(node, exp.Cast) and node.to.is_type(_Kind.DOUBLE) and isinstance(node.this, exp.Literal):
        return float(node.this.this)
    return None


def _number(node: exp.Expr) -> int:
    """The value of a constant whole number."""
    return int((node.this if isinstance(node, exp.Cast) else node).name)


def _arithmetic(name: str, nodes: Sequence[exp.Expr]) -> exp.Expr:
    """A sum, difference, product or quotient, in the form for its constant where it has one."""
    for place, first in ((1, False), (0, True)):
        constant = _constant(nodes[place])
        if constant is not None and (form := doubles.with_constant(name, constant, first=first)) is not None:
            return _piece(form, nodes[1 - place])
    return _piece(FUNCTIONS[name], *nodes)


def _rounded(name: str, nodes: Sequence[exp.Expr]) -> exp.Expr:
    constant = _constant(nodes[1])
    assert constant is not None
    form = doubles.rounded_product if name == "rounded_product" else doubles.rounded_quotient
    return _piece(form(constant), nodes[0])


def _whole_quotient(_name: str, nodes: Sequence[exp.Expr]) -> exp.Expr:
    """A sum is a NUMERIC, whose quotient has a fraction."""
    exact = any(_is_sum(node) for node in nodes[0].walk())
    return _piece("DIV({0}, {1})" if exact else "({0} / {1})", *nodes)


def _try_cast(_name: str, nodes: Sequence[exp.Expr]) -> exp.Expr:
    """A whole number in 32 bits. PostgreSQL reads texts otherwise than DuckDB."""
    kind = nodes[1]
    if not (isinstance(kind, exp.DataType) and kind.is_type(_Kind.INT)):
        raise Lacking("CAST of a text")
    return _piece("CASE WHEN {0} BETWEEN -2147483648 AND 2147483647 THEN CAST({0} AS INTEGER) END", nodes[0])


def _column_as(_name: str, nodes: Sequence[exp.Expr]) -> exp.Expr:
    kind = nodes[1]
    assert isinstance(kind, exp.DataType)
    whole = exp.Cast(this=nodes[0], to=kind)
    return exp.Collate(this=whole, expression=_COLLATION.copy()) if kind.is_type(_Kind.TEXT) else whole


def _extreme(name: str, nodes: Sequence[exp.Expr]) -> exp.Expr:
    """NULL where one is NULL; of equal values, which are 0 and -0, the last. Values of one that stands in another are
    values of this one too, so that all are asked once whether they are NULL."""
    word, whole, leaves, named = _WORDS[name], list[str](), list[exp.Expr](), list[tuple[exp.Expr, str]]()
    for node in nodes:
        while layers.is_let(node) and isinstance(_inside(node), _Extreme):
            value, function = node.expressions
            named.append((value, function.expressions[0].name))
            node = function.this
        if isinstance(node, _Extreme):
            whole.append(_places(str(node.this), len(leaves)))
            leaves += node.expressions
            continue
        if not layers.plain(node):
            named.append((node, f"w{next(_NAMES)}"))
            node = exp.column(named[-1][1])
        whole.append(f"{{{len(leaves)}}}")
        leaves.append(node)
    found: exp.Expr = _Extreme(this=f"{word}({', '.join(reversed(whole))})", expressions=leaves)
    for value, called in reversed(named):
        found = layers.let(value, called, found)
    return found


_WORDS = {"largest": "GREATEST", "smallest": "LEAST"}


class _Extreme(Piece):
    """The largest or smallest of columns and constants, without the question whether one is NULL."""

    @property
    def whole(self) -> str:
        """The whole template."""
        asked = [place for place, node in enumerate(self.expressions) if not _known(node)]
        known = " AND ".join(f"{{{place}}} IS NOT NULL" for place in asked)
        return f"CASE WHEN {known} THEN {self.this} END" if asked else str(self.this)


def _known(node: exp.Expr) -> bool:
    """Whether a constant is not NULL."""
    inner = node.this if isinstance(node, exp.Cast | exp.Collate) else node
    return isinstance(inner, exp.Literal | exp.Boolean)


def _inside(node: exp.Expr) -> exp.Expr:
    while layers.is_let(node):
        node = node.expressions[1].this
    return node


def _places(template: str, by: int) -> str:
    """The template with its places moved."""
    return "".join(
        text + (f"{{{int(field) + by}}}" if field is not None else "")
        for text, field, _, _ in Formatter().parse(template)
    )


def _place_among(_name: str, nodes: Sequence[exp.Expr]) -> exp.Expr:
    """The texts are the keys of an object, which PostgreSQL keeps in order."""
    places = json.dumps({node.name: place for place, node in enumerate(nodes[1:])}, ensure_ascii=False)
    known = exp.Cast(this=exp.Literal.string(places), to=exp.DataType.build("jsonb"))
    return _piece("CAST({1} -> {0} AS BIGINT)", nodes[0], known)


def _plain_text(nodes: Sequence[exp.Expr]) -> str:
    node = nodes[0].this if isinstance(nodes[0], exp.Collate) else nodes[0]
    return str(node.name).lower()


_SECONDS = {"hour": 3600, "minute": 60, "second": 1}


def _date_diff(_name: str, nodes: Sequence[exp.Expr]) -> exp.Expr:
    unit = _plain_text(nodes)
    start, end = (exp.Cast(this=node, to=exp.DataType.build("timestamp")) for node in nodes[1:])
    if unit == "day":
        return _piece("CAST(CAST({1} AS DATE) - CAST({0} AS DATE) AS BIGINT)", start, end)
    return _piece(f"CAST({_began(unit, 1)} - ({_began(unit, 0)}) AS BIGINT)", start, end)


def _began(unit: str, place: int) -> str:
    """How many units had begun at a moment, from some year on."""
    if unit in _SECONDS:
        return f"FLOOR(EXTRACT(EPOCH FROM {{{place}}}) / {_SECONDS[unit]})"
    years, number = f"EXTRACT(YEAR FROM {{{place}}})", {"year": 1, "quarter": 4, "month": 12}[unit]
    return years if number == 1 else f"{years} * {number} + EXTRACT({unit} FROM {{{place}}})"


_FORMATS = {
    "Y": "YYYY", "y": "YY", "m": "MM", "d": "DD", "j": "DDD", "H": "HH24", "M": "MI", "S": "SS",
    "A": "FMDay", "a": "Dy", "B": "FMMonth", "b": "Mon",
}  # fmt: skip


def _format_moment(_name: str, nodes: Sequence[exp.Expr]) -> exp.Expr:
    """Characters beside the signs stand between quotation marks."""
    text, parts = nodes[1].name, []
    letters = iter(text)
    for letter in letters:
        sign = next(letters) if letter == "%" else ""
        other = sign if sign == "%" else letter
        parts.append(_FORMATS[sign] if sign in _FORMATS else '"' + {"\\": "\\\\", '"': '\\"'}.get(other, other) + '"')
    form = exp.Literal.string("".join(parts))
    return _piece(f"TO_CHAR(CAST({{0}} AS TIMESTAMP), {{1}}) {_C}", nodes[0], form)


def _round(name: str, nodes: Sequence[exp.Expr]) -> exp.Expr:
    """To so many digits, as DuckDB has it: times a power of ten, rounded, and through it again; what is infinite then
    stays as it was."""
    word = "TRUNC({0})" if name == "trunc" else FUNCTIONS["round"]
    if len(nodes) == 1:
        return _piece(word, nodes[0])
    digits = _number(nodes[1])
    up, down = ("number_product", "number_quotient") if digits >= 0 else ("number_quotient", "number_product")
    scale = exp.Cast(this=exp.Literal.string(repr(10.0 ** abs(digits))), to=exp.DataType.build("double"))

    def body(value: exp.Expr) -> exp.Expr:
        result = _arithmetic(down, [_piece(word, _arithmetic(up, [value.copy(), scale.copy()])), scale.copy()])
        return _piece(f"CASE WHEN {FUNCTIONS['is_finite']} THEN {{0}} ELSE {{1}} END", result, value)

    return _with(nodes[0], body)


def _with(value: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The body with a value that stands in it several times."""
    if layers.plain(value):
        return body(value)
    name = f"w{next(_NAMES)}"
    return layers.let(value, name, body(exp.column(name)))


def _angle(name: str, nodes: Sequence[exp.Expr]) -> exp.Expr:
    factor = 180 / math.pi if name == "degrees" else math.pi / 180
    form = doubles.with_constant("number_product", factor, first=False)
    assert form is not None
    return _piece(form, nodes[0])


def _power(name: str, nodes: Sequence[exp.Expr]) -> exp.Expr:
    for place, form in ((1, powers.of_constant_exponent), (0, powers.of_constant_base)):
        constant = _constant(nodes[place])
        if constant is not None and (template := form(constant)) is not None:
            return _piece(template, nodes[1 - place])
    raise Lacking(name)


def _substring(_name: str, nodes: Sequence[exp.Expr]) -> exp.Expr:
    """As DuckDB counts: from a place on, or where the number is negative, so many before it."""
    text, place, *numbers = nodes
    start = (
        "CASE WHEN {1} > 0 THEN CAST({1} AS BIGINT) - 1 WHEN {1} = 0 THEN 0 "
        "WHEN {1} < 0 THEN CAST(LENGTH({0}) AS BIGINT) + {1} END"
    )
    first, last = "GREATEST({1}, 0)", "LEAST(GREATEST({1} + {2}, 0), 2147483647)"
    found = (
        "CASE WHEN {1} IS NULL THEN NULL "
        f"WHEN {{2}} > 0 THEN SUBSTR({{0}}, CAST({first} + 1 AS INTEGER), CAST({last} - {first} AS INTEGER)) "
        f"WHEN {{2}} <= 0 THEN SUBSTR({{0}}, CAST({last} + 1 AS INTEGER), CAST({first} - {last} AS INTEGER)) END"
    )

    def of_text(text: exp.Expr) -> exp.Expr:
        return _with(place, lambda place: of_place(text, place))

    def of_place(text: exp.Expr, place: exp.Expr) -> exp.Expr:
        number = numbers[0] if numbers else exp.Literal.number(2**31 - 1)
        less = "CASE WHEN {1} <> 0 THEN {0} WHEN {0} > 0 THEN {0} - 1 WHEN {0} <= 0 THEN 0 END"
        return _piece(found, text.copy(), _piece(start, text, place.copy()), _piece(less, number, place))

    return _with(text, of_text)


def _floor_of_logarithm(number: exp.Expr) -> exp.Expr:
    """The whole part of the logarithm to the base 2, of a double from 2^-1022 on. The logarithm is rounded, and so
    numbers just below 2^k count as 2^k where the double next to their logarithm is k: as many of them as the whole part
    of ln 2 · 2^m, where k is from 2^m + 1 to 2^(m + 1), or from −2^(m + 1) + 1 to −2^m."""
    bits = _bits("{0}")
    steps = [(2**m + 1, math.floor(math.log(2) * 2**m)) for m in range(9, 0, -1)]
    below = [(-(2**m) + 1, math.floor(math.log(2) * 2 ** (m - 1))) for m in range(2, 11)]
    power = f"({bits} >> 52) - 1022"
    cases = [f"WHEN {power} >= {at} THEN {size}" for at, size in steps]
    cases.append(f"WHEN {power} >= -1 THEN 0")
    cases += [f"WHEN {power} >= {at} THEN {size}" for at, size in below]
    found = f"CAST((({bits} + CASE {' '.join(cases)} ELSE 0 END) >> 52) - 1023 AS DOUBLE PRECISION)"
    return _piece(f"CASE WHEN {{0}} < {doubles.INFINITE} THEN {found} ELSE {{0}} END", number)


_Form = Callable[[str, Sequence[exp.Expr]], exp.Expr]

_FORMS: dict[str, _Form] = {
    **dict.fromkeys(("number_sum", "number_difference", "number_product", "number_quotient"), _arithmetic),
    **dict.fromkeys(("rounded_product", "rounded_quotient"), _rounded),
    "whole_quotient": _whole_quotient,
    "try_cast": _try_cast,
    "column_as": _column_as,
    **dict.fromkeys(("largest", "smallest"), _extreme),
    "place_among": _place_among,
    "date_diff": _date_diff,
    "format_moment": _format_moment,
    **dict.fromkeys(("round", "trunc"), _round),
    **dict.fromkeys(("degrees", "radians"), _angle),
    "substring": _substring,
    "pow": _power,
}
"""Forms that follow from more than the name."""

_REFUSED = (
    *("number_text", "log2", "initcap", "reverse", "strip_accents"),
    *("matches", "matches_all", "extract_match", "replace_match"),
)
"""Texts of doubles have another form there, and DuckDB's own are not always shortest; a text's letters that belong
together stay so in DuckDB alone; patterns are of another language. There is no logarithm to the base 2 of doubles."""

LACKS = frozenset({*_REFUSED, "let", *(_FORMS.keys() - FUNCTIONS.keys())})
"""What has no template: it is refused by its name, or stands in no tree any more when the tree is written."""


def _expanded(tree: exp.Expr) -> exp.Expr:
    """The tree in which each function is one that PostgreSQL has, and a value that is needed several times a column of
    a derived table."""
    whole = exp.Paren(this=tree.copy())  # what takes the place of the tree itself has a parent too
    _share(whole)
    for node in reversed(list(whole.walk())):
        parent, key, index = node.parent, node.arg_key, node.index
        new = _form(node)
        if new is not node and parent is not None and key is not None:
            parent.set(key, new, index)
    return _fenced(layers.layered(whole.this.pop(), _total))


def _fenced(tree: exp.Expr) -> exp.Expr:
    """The tree in which the steps of a mixed number are each computed once: else the planner writes the first into
    the second, which has it twice, and so on."""
    for node in tree.find_all(exp.Subquery):
        if node.alias == "unmixed" and isinstance(node.this, exp.Select):
            node.this.set("offset", exp.Offset(expression=exp.Literal.string("0")))  # see `layers`
    return tree


def _form(node: exp.Expr) -> exp.Expr:
    """The node as PostgreSQL has it; what is below it is so already."""
    if isinstance(node, Function):
        return _function(node)
    if isinstance(node, exp.Cast) and node.to.is_type(_Kind.TEXT):
        if isinstance(node.this, exp.Column) and _IDENTIFIER.fullmatch(node.this.name):
            return _piece(_IDENTIFIER_TEXT, node.this)
        return node if isinstance(node.parent, exp.Collate) else exp.Collate(this=node, expression=_COLLATION.copy())
    if isinstance(node, exp.Cast) and node.to.is_type(_Kind.DOUBLE) and _is_sum(node.this):
        return _piece(_DOUBLE_OF_SUM, node.this)
    if isinstance(node, exp.Like) and not isinstance(node.parent, exp.Escape):
        return exp.Escape(this=node, expression=exp.Literal.string(""))  # no sign is an escape
    if isinstance(node, exp.ILike):
        pattern = exp.Literal.string(letters.small(node.expression.name))
        like = exp.Like(this=_piece(FUNCTIONS["lower"], node.this), expression=pattern)
        return exp.Escape(this=like, expression=exp.Literal.string(""))
    if isinstance(node, exp.Floor) and isinstance(node.this, Function) and node.this.name == "log2":
        return _floor_of_logarithm(node.this.expressions[0])
    if isinstance(node, exp.Min | exp.Max) and isinstance(node.this, exp.Cast) and node.this.to.is_type(_Kind.BOOLEAN):
        return (exp.LogicalAnd if isinstance(node, exp.Min) else exp.LogicalOr)(this=node.this)
    if _differ(node):
        several = exp.Count(this=exp.Distinct(expressions=[node.this.this]))  # of booleans there is no least
        return exp.GT(this=several, expression=exp.Literal.number(1))
    if isinstance(node, exp.BitwiseRightShift):
        return _piece("({0} >> CAST({1} AS INTEGER))", node.this, node.expression)
    if isinstance(node, exp.Add) and isinstance(node.expression, exp.Interval):
        return _moved(node.this, node.expression)
    if isinstance(node, exp.DataType) and node.is_type(_Kind.UINT):
        return exp.DataType.build("bigint")
    if isinstance(node, exp.Literal) and node.is_string:
        if "\0" in node.this:
            raise Lacking("a text with the character 0")
        if _alone(node):
            return exp.Collate(this=node, expression=_COLLATION.copy())
    return node


_IDENTIFIER = re.compile("r[0-9]+")
"""What tells a person's rows apart: columns of any type, which meet as texts where relations are stacked."""

_IDENTIFIER_TEXT = (
    "CASE WHEN PG_TYPEOF({0}) <> CAST('float8' AS REGTYPE) THEN CAST({0} AS TEXT) "
    "WHEN CAST({0} AS TEXT) LIKE '%Infinity' THEN REPLACE(CAST({0} AS TEXT), 'Infinity', 'inf') "
    "WHEN CAST({0} AS TEXT) LIKE '%e+15' THEN CAST(CAST(CAST({0} AS TEXT) AS NUMERIC) AS TEXT) "
    "|| CASE WHEN CAST(CAST({0} AS TEXT) AS NUMERIC) % 1 = 0 THEN '.0' ELSE '' END "
    "WHEN CAST({0} AS TEXT) LIKE '%e%' OR CAST({0} AS TEXT) LIKE '%.%' THEN CAST({0} AS TEXT) "
    f"ELSE CAST({{0}} AS TEXT) || '.0' END {_C}"
)
"""Such a text; of a double as DuckDB writes it, up to 2^54: of some beyond, DuckDB's are not the shortest."""


def _differ(node: exp.Expr) -> bool:
    """Whether it is asked if the least of some values is not the largest."""
    ends = isinstance(node, exp.NEQ) and isinstance(node.this, exp.Min) and isinstance(node.expression, exp.Max)
    return ends and bool(node.this.this == node.expression.this)


def _is_sum(node: exp.Expr) -> bool:
    return isinstance(node, Function) and node.name == "whole_sum"


_DOUBLE_OF_SUM = (
    f"CASE WHEN {{0}} BETWEEN -{2**53} AND {2**64 - 1} THEN CAST({{0}} AS DOUBLE PRECISION) "
    f"WHEN {{0}} < 0 AND {{0}} >= -{2**64} THEN -CAST(-{{0}} - 1 AS DOUBLE PRECISION) - {doubles.double(1.0)} "
    f"ELSE CAST({{0}} - FLOOR({{0}} / {2**64}) * {2**64} AS DOUBLE PRECISION) "
    f"+ CAST(FLOOR({{0}} / {2**64}) AS DOUBLE PRECISION) * {doubles.double(2.0**64)} END"
)
"""A sum as a double. DuckDB rounds the two halves of 128 bits, and what is made of them again."""


def _function(node: Function) -> exp.Expr:
    name, nodes = node.name, list(node.expressions)
    if name == "let":
        return node
    if name in _FORMS:
        return _FORMS[name](name, nodes)
    if name in FUNCTIONS and _several(FUNCTIONS[name]):
        return _piece(FUNCTIONS[name], *nodes)
    return node


def _alone(node: exp.Expr) -> bool:
    """Whether a constant text stands where nothing beside it has a collation."""
    parent = node.parent
    if isinstance(parent, Function):
        return parent.name in ("let", "largest", "smallest", "null_if_equal")
    if isinstance(parent, exp.Paren):
        return parent.parent is None  # the tree is nothing else
    return isinstance(parent, _CHOICES)


_CHOICES = (
    *(exp.If, exp.Case, exp.Coalesce, exp.Nullif, exp.Least, exp.Greatest, exp.Min, exp.Max),
    *(exp.Alias, exp.Select, exp.Lambda),
)
"""What may hand on a text as it is, beside nothing that has a collation."""

_DAYS = {"year": 365, "quarter": 90, "month": 28, "week": 7, "day": 1, "hour": 1 / 24, "minute": 1 / 1440}


def _moved(moment: exp.Expr, step: exp.Interval) -> exp.Expr:
    """A moment of the years 1 to 9999 and an interval; NULL where it would lie long before the year 1, where
    PostgreSQL knows no moments."""
    unit, number = step.args["unit"].name.lower(), int(step.this.name)
    if unit == "quarter":
        unit, number = "month", 3 * number
    interval = f"INTERVAL '{number} {unit}'"
    days = -number * _DAYS.get(unit, 1 / 86400)
    if days < 366 * 1000:
        return _piece(f"({{0}} + {interval})", moment)
    years = int(days / 366) - 999
    if years > 9999:
        return exp.Cast(this=exp.null(), to=exp.DataType.build("timestamp"))
    return _piece(f"CASE WHEN {{0}} >= CAST('{years:04}-01-01' AS DATE) THEN {{0}} + {interval} END", moment)


def _share(tree: exp.Expr) -> None:
    """Gives names to values that stand in a CASE both as what is asked and as what is given; and where the only
    question is whether a value is a certain number, NULLIF asks it once."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        parent, key, index = node.parent, node.arg_key, node.index
        new = _nulled(node) if layers.is_let(node) else _shared(node) if isinstance(node, exp.Case) else None
        if new is not None and parent is not None and key is not None:
            parent.set(key, new, index)
        waiting += (new or node).iter_expressions()


def _nulled(node: exp.Expr) -> exp.Expr | None:
    """A value that is NULL where it is no number or 0."""
    value, function = node.expressions
    body = function.this
    ifs = body.args["ifs"] if isinstance(body, exp.Case) and body.args.get("default") is None else []
    if len(ifs) != 1 or not isinstance(ifs[0].args["true"], exp.Column):
        return None
    condition = ifs[0].this
    if isinstance(condition, exp.Not) and _is_nan(condition.this):
        return exp.Nullif(this=value, expression=Piece(this=doubles.NAN, expressions=[]))
    if (
        isinstance(condition, exp.NEQ)
        and isinstance(condition.this, exp.Column)
        and _constant(condition.expression) == 0
    ):
        return exp.Nullif(this=value, expression=condition.expression)
    return None


def _is_nan(node: exp.Expr) -> bool:
    return isinstance(node, Function) and node.name == "is_nan"


def _shared(case: exp.Case) -> exp.Expr | None:
    """CASE WHEN x IS NULL OR x is no number THEN NULL … ELSE … x … END, with x computed once; None where it is none."""
    asked = case.args["ifs"][0].this
    if _is_nan(asked) and len(case.args["ifs"]) == 1 and case.args.get("default") == asked.expressions[0]:
        return exp.Nullif(this=asked.expressions[0], expression=Piece(this=doubles.NAN, expressions=[]))
    first = asked.this if isinstance(asked, exp.Or) else asked
    if not isinstance(first, exp.Is) or not isinstance(first.expression, exp.Null) or layers.plain(first.this):
        return None
    value = first.this.copy()
    if any(_total(node) for node in value.walk()):
        return None
    name = f"w{next(_NAMES)}"
    for node in [node for node in case.walk() if node == value]:
        node.replace(exp.column(name))
    return layers.let(value, name, case)


_Writer.TRANSFORMS[_Extreme] = lambda writer, node: _written(writer, node.whole, node)
POSTGRESQL = dialect("discreetpostgres", FUNCTIONS, LACKS, _expanded)
