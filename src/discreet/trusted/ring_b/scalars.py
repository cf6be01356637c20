"""The functions of the dialect as expressions of the engine, each in a form that no row can make fail.

A builder gets its arguments compiled: numbers as doubles, integers in 64 bits (NULL where they do not fit). It uses
each of them once, so that nesting does not multiply what the engine has to read; where a guard needs a value twice,
`bound` gives it a name. What is no number becomes NULL, because the engine puts NaN above all numbers. Dates and
timestamps lie within the years 1 to 9999 everywhere: columns are loaded so, and whatever makes one here keeps to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from sqlglot import exp

from discreet.dialect.patterns import LOOKED_AT, regular
from discreet.trusted.ring_a.casts import cast, kind
from discreet.trusted.ring_a.dialect import function
from discreet.trusted.ring_a.expressions import Call, Expression, Literal
from discreet.trusted.ring_a.table import Type
from discreet.trusted.ring_a.terms import is_whole, scaled

Nodes = Sequence[exp.Expression]
Builder = Callable[[Nodes, Call], exp.Expression]


def bound(value: exp.Expression, body: Callable[[exp.Expression], exp.Expression]) -> exp.Expression:
    """The body with the value under a name, so that it stands and is computed once however often the body has it."""
    local = exp.Lambda(this=body(exp.column("v")), expressions=[exp.to_identifier("v")])
    return function("let", value, local)


def known(node: exp.Expression) -> exp.Expression:
    """A double, NULL where it is no number."""
    return bound(node, lambda value: when(exp.Not(this=function("is_nan", value)), value.copy()))


def not_zero(node: exp.Expression) -> exp.Expression:
    """A double, NULL where it is 0. The engine reads NULLIF as a CASE that has its first argument twice: of a computed
    one, nested, that would be twice and twice again."""
    zero = _double(0.0)
    inner = node.this if isinstance(node, exp.Cast) else node
    if isinstance(inner, exp.Column | exp.Literal):
        return exp.Nullif(this=node, expression=zero)
    return bound(node, lambda value: when(exp.NEQ(this=value, expression=zero), value.copy()))


def _double(value: float) -> exp.Expression:
    return cast(exp.Literal.string(repr(value)), "DOUBLE")


def _whole(value: int) -> exp.Expression:
    return cast(exp.Literal.string(str(value)), "BIGINT")


def _text(value: str) -> exp.Expression:
    return exp.Literal.string(value)


def _binary(kind: type[exp.Binary], left: exp.Expression, right: exp.Expression) -> exp.Expression:
    return exp.Paren(this=kind(this=left, expression=right))


def _try(node: exp.Expression, name: str) -> exp.Expression:
    return function("try_cast", node, kind(name))


def when(condition: exp.Expression, result: exp.Expression) -> exp.Expression:
    """The result where the condition is true, else NULL."""
    return exp.Case(ifs=[exp.If(this=condition, true=result)])


def constant(argument: Expression) -> object:
    """The value of a constant argument."""
    assert isinstance(argument, Literal)
    return argument.value


def _plain(name: str) -> Builder:
    """The engine's own function, which cannot fail."""
    return lambda nodes, call: function(name, *nodes)  # noqa: ARG005


def _curve(name: str) -> Builder:
    """The engine's own function of doubles, NULL where its result is no number."""
    return lambda nodes, call: known(function(name, *nodes))  # noqa: ARG005


def _logarithm(name: str) -> Builder:
    return lambda nodes, call: known(function(name, not_zero(nodes[0])))  # noqa: ARG005


def _logarithm_base(nodes: Nodes, _call: Call) -> exp.Expression:
    above, below = (function("ln", not_zero(node)) for node in nodes)
    return known(function("number_quotient", above, not_zero(below)))


def _modulo(nodes: Nodes, _call: Call) -> exp.Expression:
    return known(function("mod", nodes[0], not_zero(nodes[1])))


def _quotient(nodes: Nodes, _call: Call) -> exp.Expression:
    return known(function("trunc", function("number_quotient", nodes[0], not_zero(nodes[1]))))


def _sign(nodes: Nodes, _call: Call) -> exp.Expression:
    return cast(function("sign", known(nodes[0])), "BIGINT")


def _rounded(name: str) -> Builder:
    def build(nodes: Nodes, call: Call) -> exp.Expression:
        digits = constant(call.arguments[1])
        if digits == 0:
            return known(function(name, nodes[0]))
        return known(function(name, nodes[0], cast(_text(str(digits)), "INTEGER")))

    return build


def in_steps(node: exp.Expression, numerator: int, denominator: int) -> exp.Expression:
    """The whole number of steps of p/q that a double is nearest to."""
    return function("round", scaled(node, denominator, numerator))


def _step(call: Call) -> tuple[int, int]:
    numerator, denominator = (constant(one) for one in call.arguments[1:])
    assert isinstance(numerator, int)
    assert isinstance(denominator, int)
    return numerator, denominator


def _width_bucket(nodes: Nodes, call: Call) -> exp.Expression:
    low, high, count = (Fraction(str(constant(argument))) for argument in call.arguments[1:])
    scale = count / (high - low)

    def body(value: exp.Expression) -> exp.Expression:
        below = exp.LT(this=value, expression=_double(float(low)))
        beyond = exp.GTE(this=value.copy(), expression=_double(float(high)))
        place = value.copy()
        if low:
            place = function("number_difference", place, _double(float(low)))
        if scale != 1:
            place = function("number_product", place, _double(float(scale)))
        inside = exp.Least(
            this=exp.Add(this=function("whole_number", function("floor", place)), expression=_whole(1)),
            expressions=[_whole(int(count))],
            ignore_nulls=True,
        )
        unknown = exp.If(this=exp.Is(this=value.copy(), expression=exp.null()), true=exp.null())
        return exp.Case(
            ifs=[unknown, exp.If(this=below, true=_whole(0)), exp.If(this=beyond, true=_whole(int(count) + 1))],
            default=inside,
        )

    return bound(known(nodes[0]), body)


def _bits(kind: type[exp.Binary]) -> Builder:
    return lambda nodes, call: _binary(kind, nodes[0], nodes[1])  # noqa: ARG005


def _bit_not(nodes: Nodes, _call: Call) -> exp.Expression:
    return function("bit_xor", nodes[0], _whole(-1))


def _to_integer(nodes: Nodes, call: Call) -> exp.Expression:
    argument, node = call.arguments[0], nodes[0]
    if argument.type is Type.BOOLEAN:
        return _of_boolean(node)
    if argument.type is Type.TEXT:
        return _try(node, "BIGINT")
    return _whole_of(argument, function("round", node) if argument.type is Type.NUMBER else node)


def _of_boolean(node: exp.Expression) -> exp.Expression:
    return cast(cast(node, "INT"), "BIGINT")


def _whole_of(argument: Expression, node: exp.Expression) -> exp.Expression:
    """A numeric argument in 64 bits, NULL where it does not fit."""
    return node if is_whole(argument) else function("whole_number", node)


def _to_number(nodes: Nodes, call: Call) -> exp.Expression:
    argument, node = call.arguments[0], nodes[0]
    if argument.type is Type.TEXT:
        return known(_try(node, "DOUBLE"))
    return known(cast(_of_boolean(node) if argument.type is Type.BOOLEAN else node, "DOUBLE"))


def _to_text(nodes: Nodes, call: Call) -> exp.Expression:
    argument, node = call.arguments[0], nodes[0]
    if argument.type is Type.NUMBER:
        return function("number_text", cast(node, "DOUBLE"))
    return cast(_whole_of(argument, node) if argument.type is Type.INTEGER else node, "TEXT")


def _to_boolean(nodes: Nodes, call: Call) -> exp.Expression:
    kind = call.arguments[0].type
    if kind.numeric:
        return _binary(exp.NEQ, known(cast(nodes[0], "DOUBLE")), _double(0.0))
    return _try(nodes[0], "BOOLEAN") if kind is Type.TEXT else nodes[0]


def _within_calendar(node: exp.Expression, kind: str) -> exp.Expression:
    """A date or timestamp within the years 1 to 9999, else NULL."""
    last = "9999-12-31" if kind == "DATE" else "9999-12-31 23:59:59.999999"

    def body(value: exp.Expression) -> exp.Expression:
        low, high = cast(_text("0001-01-01"), kind), cast(_text(last), kind)
        return when(exp.Between(this=value, low=low, high=high), value.copy())

    return bound(node, body)


def _to_moment(kind: str) -> Builder:
    def build(nodes: Nodes, call: Call) -> exp.Expression:
        if call.arguments[0].type is Type.TEXT:
            return _within_calendar(_try(nodes[0], kind), kind)
        return cast(nodes[0], kind)

    return build


def _within_32_bits(node: exp.Expression) -> exp.Expression:
    return _try(node, "INTEGER")


def _substring(nodes: Nodes, _call: Call) -> exp.Expression:
    text, *places = nodes
    return function("substring", text, *map(_within_32_bits, places))


def _end(name: str) -> Builder:
    return lambda nodes, call: function(name, nodes[0], _within_32_bits(nodes[1]))  # noqa: ARG005


def _padded(name: str) -> Builder:
    return lambda nodes, call: function(name, nodes[0], _within_32_bits(nodes[1]), nodes[2])  # noqa: ARG005


def _concatenate(nodes: Nodes, call: Call) -> exp.Expression:
    """Halves of halves, so that many are not nested deeply."""
    if len(nodes) == 1:
        return nodes[0]
    half = len(nodes) // 2
    left, right = _concatenate(nodes[:half], call), _concatenate(nodes[half:], call)
    return exp.Paren(this=exp.DPipe(this=left, expression=right))


def _like_escape(nodes: Nodes, _call: Call) -> exp.Expression:
    value, pattern, escape = nodes
    return exp.Paren(this=exp.Escape(this=exp.Like(this=value, expression=pattern), expression=escape))


def _looked_at(text: exp.Expression) -> exp.Expression:
    return function("left", text, _whole(LOOKED_AT))


def _regular(name: str) -> Builder:
    return lambda nodes, call: function(name, _looked_at(nodes[0]), nodes[1])  # noqa: ARG005


def _extract_match(nodes: Nodes, call: Call) -> exp.Expression:
    group = "1" if regular(str(constant(call.arguments[1]))).groups else "0"
    return function("extract_match", _looked_at(nodes[0]), nodes[1], exp.Literal.number(group))


def _part(name: str) -> Builder:
    return lambda nodes, call: function("date_part", _text(name), nodes[0])  # noqa: ARG005


def _day_of_week(nodes: Nodes, _call: Call) -> exp.Expression:
    return _binary(exp.Add, function("date_part", _text("dow"), nodes[0]), _whole(1))


def _since_1970(unit: str, kind: str) -> Builder:
    def build(nodes: Nodes, _call: Call) -> exp.Expression:
        return function("date_diff", _text(unit), cast(_text("1970-01-01"), kind), cast(nodes[0], kind))

    return build


def _date_trunc(nodes: Nodes, call: Call) -> exp.Expression:
    unit, moment = nodes
    return cast(function("date_trunc", unit, moment), _kind(call.type))


def _kind(kind: Type) -> str:
    return "DATE" if kind is Type.DATE else "TIMESTAMP"


def _date_diff(nodes: Nodes, call: Call) -> exp.Expression:
    unit = constant(call.arguments[0])
    # the engine counts weeks from the first moment on, and not the Mondays between
    start, end = (cast(node, "TIMESTAMP") for node in nodes[1:])
    if unit != "week":
        return function("date_diff", nodes[0], start, end)
    mondays = (function("date_trunc", nodes[0].copy(), moment) for moment in (start, end))
    days = function("date_diff", _text("day"), *mondays)
    return exp.Paren(this=function("whole_quotient", days, _whole(7)))


def _date_add(nodes: Nodes, call: Call) -> exp.Expression:
    unit, number = constant(call.arguments[0]), constant(call.arguments[2])
    step = exp.Interval(this=_text(str(number)), unit=exp.var(str(unit).upper()))
    moment = _binary(exp.Add, nodes[1], step)
    return _within_calendar(cast(moment, _kind(call.type)), _kind(call.type))


BUILDERS: dict[str, Builder] = {
    "same": lambda nodes, call: exp.Paren(this=exp.NullSafeEQ(this=nodes[0], expression=nodes[1])),  # noqa: ARG005
    "is_true": lambda nodes, call: exp.Coalesce(this=nodes[0], expressions=[exp.false()]),  # noqa: ARG005
    "is_false": lambda nodes, call: exp.Paren(  # noqa: ARG005
        this=exp.Not(this=exp.Coalesce(this=nodes[0], expressions=[exp.true()]))
    ),
    "nullif": _plain("null_if_equal"),
    "greatest": _plain("largest"),
    "least": _plain("smallest"),
    "to_integer": _to_integer,
    "to_number": _to_number,
    "to_text": _to_text,
    "to_boolean": _to_boolean,
    "to_date": _to_moment("DATE"),
    "to_timestamp": _to_moment("TIMESTAMP"),
    "ieee_divide": lambda nodes, call: known(function("number_quotient", *nodes)),  # noqa: ARG005
    "modulo": _modulo,
    "quotient": _quotient,
    "in_steps": lambda nodes, call: in_steps(nodes[0], *_step(call)),
    "from_steps": lambda nodes, call: scaled(nodes[0], *_step(call)),
    "sign": _sign,
    "floor": _curve("floor"),
    "ceiling": _curve("ceil"),
    "round": _rounded("round"),
    "truncate": _rounded("trunc"),
    "width_bucket": _width_bucket,
    "is_nan": _plain("is_nan"),
    "is_infinite": _plain("is_infinite"),
    "is_finite": _plain("is_finite"),
    "zero_if_null": lambda nodes, call: exp.Coalesce(this=known(nodes[0]), expressions=[_double(0.0)]),  # noqa: ARG005
    "null_if_zero": lambda nodes, call: known(not_zero(nodes[0])),  # noqa: ARG005
    **{
        operator: _curve(name)
        for operator, name in {
            "square_root": "sqrt",
            "cube_root": "cbrt",
            "exponential": "exp",
            "power": "pow",
            "sine": "sin",
            "cosine": "cos",
            "tangent": "tan",
            "arc_sine": "asin",
            "arc_cosine": "acos",
            "arc_tangent": "atan",
            "arc_tangent_2": "atan2",
            "hyperbolic_sine": "sinh",
            "hyperbolic_cosine": "cosh",
            "hyperbolic_tangent": "tanh",
            "area_sine": "asinh",
            "area_cosine": "acosh",
            "area_tangent": "atanh",
            "degrees": "degrees",
            "radians": "radians",
        }.items()
    },
    "pi": _plain("pi"),
    "logarithm": _logarithm("ln"),
    "logarithm_10": _logarithm("log10"),
    "logarithm_2": _logarithm("log2"),
    "logarithm_base": _logarithm_base,
    "bit_and": _bits(exp.BitwiseAnd),
    "bit_or": _bits(exp.BitwiseOr),
    "bit_xor": _plain("bit_xor"),
    "bit_not": _bit_not,
    "shift_right": _bits(exp.BitwiseRightShift),
    "bit_count": lambda nodes, call: cast(function("bit_count", nodes[0]), "BIGINT"),  # noqa: ARG005
    "upper": _plain("upper"),
    "lower": _plain("lower"),
    "initcap": _plain("initcap"),
    "length": _plain("length"),
    "byte_length": _plain("byte_length"),
    "substring": _substring,
    "left": _end("left"),
    "right": _end("right"),
    "trim": _plain("trim"),
    "trim_left": _plain("ltrim"),
    "trim_right": _plain("rtrim"),
    "pad_left": _padded("lpad"),
    "pad_right": _padded("rpad"),
    "concatenate": _concatenate,
    "concatenate_with": _plain("concat_ws"),
    "replace": _plain("replace"),
    "translate": _plain("translate"),
    "reverse": _plain("reverse"),
    "strip_accents": _plain("strip_accents"),
    "split_part": _plain("split_part"),
    "character_code": lambda nodes, call: cast(function("ascii", nodes[0]), "BIGINT"),  # noqa: ARG005
    "starts_with": _plain("starts_with"),
    "ends_with": _plain("ends_with"),
    "contains": _plain("contains"),
    "position": _plain("position"),
    "like_escape": _like_escape,
    "ilike": lambda nodes, call: exp.Paren(this=exp.ILike(this=nodes[0], expression=nodes[1])),  # noqa: ARG005
    "matches": _regular("matches"),
    "matches_all": _regular("matches_all"),
    "extract_match": _extract_match,
    **{
        operator: _part(name)
        for operator, name in {
            "year": "year",
            "iso_year": "isoyear",
            "quarter": "quarter",
            "month": "month",
            "week": "week",
            "day": "day",
            "day_of_year": "doy",
            "day_of_week_0": "dow",
            "day_of_week_iso": "isodow",
            "hour": "hour",
            "minute": "minute",
            "second": "second",
        }.items()
    },
    "day_of_week": _day_of_week,
    "unix_seconds": _since_1970("second", "TIMESTAMP"),
    "unix_date": _since_1970("day", "DATE"),
    "day_name": _plain("day_name"),
    "month_name": _plain("month_name"),
    "last_day": _plain("last_day"),
    "date_trunc": _date_trunc,
    "date_diff": _date_diff,
    "date_add": _date_add,
    "format_moment": _plain("format_moment"),
}
