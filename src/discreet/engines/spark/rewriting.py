"""Trees as Spark needs them: what depends on a constant, and what its own form of a node would change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from sqlglot import exp

from discreet.engines.letters import small
from discreet.trusted.ring_a.dialect import Function
from discreet.trusted.ring_b.dialect import Lacking

LARGEST_DOUBLE = "9223372036854774784"
"""The largest double below 2^63."""


def rewritten(tree: exp.Expr) -> exp.Expr:
    """The tree, written anew from its leaves on."""
    root = tree.copy()
    for node in [*root.walk(bfs=False)][::-1]:
        write = _NODES.get(type(node))
        if write is None:
            continue
        new = write(node)
        if new is node:
            continue
        if node is root:
            root = new
        else:
            node.replace(new)
    return root


def call(name: str, *arguments: exp.Expr) -> exp.Expression:
    """A function of Spark's own."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def _function(name: str, *arguments: exp.Expr) -> Function:
    """A function by our name for it."""
    return Function(this=name, expressions=list(arguments))


def _double(text: str) -> exp.Expression:
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType(this=exp.DType.DOUBLE, nested=False))


def _cast(node: exp.Expr, kind: exp.DType) -> exp.Expression:
    return exp.Cast(this=node, to=exp.DataType(this=kind, nested=False))


def _whole(value: int) -> exp.Expression:
    return exp.Literal.number(value)


_KINDS = {exp.DType.TIMESTAMP: exp.DType.TIMESTAMPNTZ, exp.DType.UINT: exp.DType.BIGINT}


def _kind(node: exp.DataType) -> exp.Expr:
    """A timestamp has no zone; there are no integers without a sign."""
    if node.this in _KINDS:
        node.set("this", _KINDS[node.this])
    return node


def _floor(node: exp.Floor) -> exp.Expr:
    """Spark's is a whole number of 64 bits, and fails beyond them: what lies there is clamped before, not after.
    Whoever floors clamps next."""
    if _clamps(node.parent.parent if node.parent is not None else None):
        return node  # `_clamped` writes both
    return _floored(node.this, _double(f"-{LARGEST_DOUBLE}"), _double(LARGEST_DOUBLE))


def _floored(value: exp.Expr, low: exp.Expr, high: exp.Expr) -> exp.Expr:
    return _cast(call("FLOOR", call("GREATEST", call("LEAST", value, high), low)), exp.DType.DOUBLE)


def _clamps(node: exp.Expr | None) -> bool:
    """Whether a node clamps what a floor gives, to whole numbers of less than 64 bits."""
    if not isinstance(node, exp.Greatest) or not isinstance(node.this, exp.Least):
        return False
    if not isinstance(node.this.this, exp.Floor):
        return False
    ends = [_constant(one) for one in (*node.expressions, *node.this.expressions)]
    return len(ends) == 2 and all(end is not None and _is_whole(float(end)) for end in ends)


def _is_whole(number: float) -> bool:
    return number.is_integer() and abs(number) < 2.0**63


def _clamped(node: exp.Greatest) -> exp.Expr:
    if not _clamps(node):
        return node
    least = node.this
    return _floored(least.this.this, node.expressions[0], least.expressions[0])


def _whole_cast(node: exp.Cast) -> exp.Expr:
    """What FLOOR gives is a whole number already. A sum becomes a double as DuckDB makes one of 128 bits: below 0 it is
    rounded from -1 on."""
    inner = node.this
    if node.to.this is exp.DType.DOUBLE and _sums(inner):
        v = exp.column("v")
        less = exp.Sub(this=exp.Neg(this=v), expression=_whole(1))
        below = exp.Sub(this=exp.Neg(this=_cast(exp.paren(less), exp.DType.DOUBLE)), expression=_double("1"))
        cases = [exp.If(this=exp.LT(this=v.copy(), expression=_whole(0)), true=below)]
        body = exp.Case(ifs=cases, default=_cast(v.copy(), exp.DType.DOUBLE))
        return _function("let", inner, exp.Lambda(this=body, expressions=[exp.to_identifier("v")]))
    if node.to.this is exp.DType.BIGINT and isinstance(inner, exp.Cast) and inner.to.this is exp.DType.DOUBLE:
        floor = inner.this
        if isinstance(floor, exp.Anonymous) and floor.name == "FLOOR":
            return floor
    return node


def _constant(node: exp.Expr) -> str | None:
    """The text of a constant, cast or not."""
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    if isinstance(node, Function) and node.name == "try_cast":
        return _constant(node.expressions[0])
    if isinstance(node, exp.Neg):
        inner = _constant(node.this)
        return None if inner is None else f"-{inner}"
    return str(node.this) if isinstance(node, exp.Literal) else None


# A value under a name


def _free(body: exp.Expr, name: str) -> Iterator[exp.Column]:
    """Where a name of a lambda stands in its body, and means its argument."""
    if isinstance(body, exp.Column) and body.name == name:
        yield body
    elif isinstance(body, exp.Lambda) and name in (one.name for one in body.expressions):
        return
    else:
        for child in body.iter_expressions():
            yield from _free(child, name)


def _let(node: Function) -> exp.Expr:
    """Lambdas are slow: none where the value is a column or a constant, or stands there once."""
    value: exp.Expr = node.expressions[0]
    body: exp.Expr = node.expressions[1].this
    name = node.expressions[1].expressions[0].name
    if _is_known(body, name):
        return call("NANVL", value, _cast(exp.null(), exp.DType.DOUBLE))
    places = list(_free(body, name))
    if len(places) > 1 and not isinstance(value, exp.Column | exp.Literal) and _constant(value) is None:
        return node
    for place in places:
        if place is body:
            return value
        place.replace(value.copy())
    return body


def _is_known(body: exp.Expr, name: str) -> bool:
    """Whether a body is its argument, or NULL where that is no number."""
    if not isinstance(body, exp.Case) or body.args.get("default") is not None or len(body.args["ifs"]) != 1:
        return False
    condition, result = body.args["ifs"][0].this, body.args["ifs"][0].args["true"]
    return (
        isinstance(condition, exp.Not)
        and isinstance(condition.this, Function)
        and condition.this.name == "is_nan"
        and all(isinstance(one, exp.Column) and one.name == name for one in (result, *condition.this.expressions))
    )


# Numbers


def _quotient(node: Function) -> exp.Expr:
    above, below = node.expressions
    known = _constant(below)
    if (known is not None and float(known) != 0) or _never_zero(below):
        return _function("rounded_quotient", above, below)
    return node


def _never_zero(node: exp.Expr) -> bool:
    """Whether a node is NULL where it would be 0."""
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    if isinstance(node, exp.Nullif):
        return _constant(node.expression) == "0.0"
    if isinstance(node, Function) and node.name == "let":
        body = node.expressions[1].this
        condition = body.args["ifs"][0].this if isinstance(body, exp.Case) else None
        return isinstance(condition, exp.NEQ) and _constant(condition.expression) == "0.0"
    return False


def _in_digits(node: Function) -> exp.Expr:
    """round and trunc to digits: of the value times a power of ten, or over it. What no double holds then
    stays as it is."""
    if len(node.expressions) == 1:
        return node
    value, places = node.expressions
    digits = int(str(_constant(places)))
    power = _double(repr(10.0 ** abs(digits)))
    there, back = ("rounded_quotient", "number_product") if digits < 0 else ("number_product", "rounded_quotient")
    v, moved = exp.column("v"), exp.column("moved")
    whole = _function(back, _function(node.name, _function(there, v, power)), power.copy())
    body = exp.Case(ifs=[exp.If(this=_function("is_finite", moved), true=moved.copy())], default=v.copy())
    inner = _function("let", whole, exp.Lambda(this=body, expressions=[exp.to_identifier("moved")]))
    return _let(_function("let", value, exp.Lambda(this=inner, expressions=[exp.to_identifier("v")])))


def _whole_sum(node: Function) -> exp.Expr:
    """What may need more than 64 bits, as sums of sums do, is added up apart, where it does."""
    (value,) = node.expressions
    if _narrow(value):
        return node
    narrow = _function("try_cast", value.copy(), exp.DataType(this=exp.DType.BIGINT, nested=False))
    decimal = exp.Cast(this=value, to=exp.DataType.build("DECIMAL(38, 0)"))
    wide = exp.Case(ifs=[exp.If(this=_null(narrow.copy()), true=decimal)])
    some, rest = _function("whole_sum", narrow.copy()), call("SUM", wide)
    both = exp.Add(this=exp.Coalesce(this=some.copy(), expressions=[_whole(0)]), expression=rest)
    return exp.Paren(this=exp.Case(ifs=[exp.If(this=_null(rest.copy()), true=some)], default=both))


def _sums(node: exp.Expr) -> bool:
    """Whether a node is what `_whole_sum` writes."""
    if isinstance(node, exp.Paren) and isinstance(node.this, exp.Case):
        return any(_sums(one.args["true"]) for one in node.this.args["ifs"])
    return isinstance(node, Function) and node.name == "whole_sum"


def _narrow(node: exp.Expr) -> bool:
    """Whether a node is a whole number of 64 bits, or NULL: a row's number on its lattice, or what is made so."""
    if isinstance(node, exp.Column):
        return re.fullmatch(r"q\d+", node.name) is not None
    if isinstance(node, exp.Case):
        results = [one.args["true"] for one in node.args["ifs"]]
        return all(map(_narrow, [*results, node.args.get("default") or exp.null()]))
    if isinstance(node, exp.Cast):
        return node.to.this is exp.DType.BIGINT
    return isinstance(node, exp.Null | exp.Literal) or (isinstance(node, exp.Anonymous) and node.name == "FLOOR")


def _null(node: exp.Expr) -> exp.Expr:
    return exp.Is(this=node, expression=exp.null())


# Texts


def _trim(node: Function) -> exp.Expr:
    if len(node.expressions) == 1:
        node.append("expressions", exp.Literal.string(" "))
    return node


def _hash(node: Function) -> exp.Expr:
    """Spark leaves NULL out of a hash: beside each column stands whether it is there."""
    columns = [
        one for column in node.expressions for one in (column, exp.Is(this=column.copy(), expression=exp.null()))
    ]
    return _function(node.name, *columns)


def _end(node: Function) -> exp.Expr:
    text, number = node.expressions
    count = _constant(number)
    return call(node.name.upper(), text, _int(count)) if count is not None and int(count) >= 0 else node


def _substring(node: Function) -> exp.Expr:
    text, first, *rest = node.expressions
    length = rest[0] if rest else _whole(2**31 - 1)
    known = [_constant(one) for one in (first, length)]
    if known[0] is not None and known[1] is not None and int(known[0]) > 0 and int(known[1]) >= 0:
        return call("SUBSTR", text, *(_int(str(one)) for one in known))
    return _function("substring", text, first, length)


def _int(text: str) -> exp.Expression:
    return _whole(min(int(text), 2**31 - 1))


def _column_as(node: Function) -> exp.Expr:
    """A text in Unicode, compared by its bytes, whatever the source compares it by."""
    value, kind = node.expressions
    if kind.this is not exp.DType.TEXT:
        return node
    plain = exp.Collate(this=_cast(value, exp.DType.TEXT), expression=exp.var("UTF8_BINARY"))
    return call("TRY_VALIDATE_UTF8", exp.Paren(this=plain))


def _try_cast(node: Function) -> exp.Expr:
    """Of whole numbers; of texts Spark reads others than DuckDB."""
    if node.expressions[1].this is not exp.DType.INT:
        raise Lacking("try_cast")
    return node


def _like(node: exp.Like) -> exp.Expr:
    return node if isinstance(node.parent, exp.Escape) else _alike(node.this, node.expression, None)


def _ilike(node: exp.ILike) -> exp.Expr:
    pattern = exp.Literal.string(small(_constant(node.expression) or ""))
    return _alike(_function("lower", node.this), pattern, None)


def _escape(node: exp.Escape) -> exp.Expr:
    return _alike(node.this.this, node.this.expression, _constant(node.expression))


def _pieces(pattern: str, escape: str | None) -> list[str]:
    """The texts between the % of a pattern. Raises Lacking where one character may be any."""
    pieces = [""]
    rest = iter(pattern)
    for letter in rest:
        if letter == escape:
            following = next(rest, None)
            if following is None:
                raise Lacking("LIKE")
            pieces[-1] += following
        elif letter == "%":
            pieces.append("")
        elif letter == "_":
            raise Lacking("LIKE with _")
        else:
            pieces[-1] += letter
    return pieces


def _alike(value: exp.Expr, pattern: exp.Expr, escape: str | None) -> exp.Expr:
    """LIKE in linear time, without the regular expression that Spark makes of it: each piece where it first stands
    behind the one before."""
    text = _constant(pattern)
    if text is None:
        raise Lacking("LIKE")
    first, *others = _pieces(text, escape)
    if not others:
        return exp.Paren(this=exp.EQ(this=value, expression=exp.Literal.string(first)))
    *middle, last = others
    middle = [piece for piece in middle if piece]
    v = exp.column("v")
    conditions: list[exp.Expr] = []
    if first or not (middle or last):
        conditions.append(call("STARTSWITH", v.copy(), exp.Literal.string(first)))
    if last:
        conditions.append(call("ENDSWITH", v.copy(), exp.Literal.string(last)))
    if len(middle) == 1 and not first and not last:
        conditions.append(call("CONTAINS", v.copy(), exp.Literal.string(middle[0])))
    elif middle:
        found = call("LOCATE", exp.column("piece"), v.copy(), exp.column("place"))
        behind = exp.Add(this=found.copy(), expression=call("LENGTH", exp.column("piece")))
        none = exp.Or(
            this=exp.EQ(this=exp.column("place"), expression=_whole(0)),
            expression=exp.EQ(this=found, expression=_whole(0)),
        )
        step = exp.Case(ifs=[exp.If(this=none, true=_whole(0))], default=behind)
        moved = exp.Lambda(this=step, expressions=[exp.to_identifier("place"), exp.to_identifier("piece")])
        listed = call("ARRAY", *(exp.Literal.string(piece) for piece in middle))
        end = call("AGGREGATE", listed, _whole(len(first) + 1), moved)
        most = exp.Sub(this=call("LENGTH", v.copy()), expression=_whole(len(last) - 1))
        within = exp.Between(this=end, low=_whole(1), high=most)
        there = exp.Not(this=exp.Is(this=v.copy(), expression=exp.null()))  # LOCATE in NULL is 0
        conditions.append(exp.Case(ifs=[exp.If(this=there, true=within)]))
    elif first and last:
        conditions.append(exp.GTE(this=call("LENGTH", v.copy()), expression=_whole(len(first) + len(last))))
    body = exp.paren(exp.and_(*conditions, copy=False))
    return _let(_function("let", value, exp.Lambda(this=body, expressions=[exp.to_identifier("v")])))


# Dates and timestamps

_PARTS: dict[str, Callable[[exp.Expr], exp.Expr]] = {
    "year": lambda one: call("YEAR", one),
    "isoyear": lambda one: call("DATE_PART", exp.Literal.string("YEAROFWEEK"), one),
    "quarter": lambda one: call("QUARTER", one),
    "month": lambda one: call("MONTH", one),
    "week": lambda one: call("WEEKOFYEAR", one),
    "day": lambda one: call("DAYOFMONTH", one),
    "doy": lambda one: call("DAYOFYEAR", one),
    "dow": lambda one: exp.Sub(this=call("DAYOFWEEK", one), expression=_whole(1)),
    "isodow": lambda one: exp.Add(this=call("WEEKDAY", one), expression=_whole(1)),
    "hour": lambda one: call("HOUR", one),
    "minute": lambda one: call("MINUTE", one),
    "second": lambda one: call("SECOND", one),
}


def _date_part(node: Function) -> exp.Expr:
    if len(node.expressions) == 1:
        return node
    part, moment = node.expressions
    return _function("date_part", _PARTS[str(_constant(part)).lower()](moment))


def _date_diff(node: Function) -> exp.Expr:
    """Whole units between the moments at which their units began."""
    if len(node.expressions) == 1:
        return node
    unit = str(_constant(node.expressions[0])).upper()
    start, end = node.expressions[1:]
    if unit == "DAY":
        days = call("DATEDIFF", _cast(end, exp.DType.DATE), _cast(start, exp.DType.DATE))
        return _function("date_diff", _cast(days, exp.DType.BIGINT))
    began = (_function("date_trunc", exp.Literal.string(unit), one) for one in (start, end))
    counted = "MONTH" if unit == "QUARTER" else unit
    whole: exp.Expr = call("TIMESTAMPDIFF", exp.var(counted), *began)
    if unit == "QUARTER":
        whole = _function("whole_quotient", whole, _whole(3))
    return _function("date_diff", whole)


def _interval(node: exp.Interval) -> exp.Expr:
    unit = node.args["unit"].name.upper()
    if unit == "QUARTER":
        months = 3 * int(str(_constant(node.this)))
        return exp.Interval(this=exp.Literal.string(str(months)), unit=exp.var("MONTH"))
    return node


_FORMATS = {
    "Y": "yyyy",
    "y": "yy",
    "m": "MM",
    "d": "dd",
    "j": "DDD",
    "H": "HH",
    "M": "mm",
    "S": "ss",
    "A": "EEEE",
    "a": "EEE",
    "B": "MMMM",
    "b": "MMM",
}


def _format_moment(node: Function) -> exp.Expr:
    moment, form = node.expressions[0], node.expressions[-1]
    if len(node.expressions) != 2 or isinstance(moment, exp.Literal):
        return node
    text = str(_constant(form))
    pieces: list[exp.Expr] = []
    plain = ""
    letters = iter(text)
    found = [exp.Literal.string("")]
    for letter in letters:
        if letter != "%":
            plain += letter
            continue
        part = next(letters, "%")
        if part == "%":
            plain += "%"
            continue
        if part not in _FORMATS:
            raise Lacking(f"format_moment with %{part}")
        if plain:
            pieces.append(exp.Literal.string(plain))
            plain = ""
        pieces.append(call("DATE_FORMAT", moment.copy(), exp.Literal.string(_FORMATS[part])))
    pieces += [exp.Literal.string(plain)] if plain else []
    if not any(isinstance(piece, exp.Anonymous) for piece in pieces):
        raise Lacking("format_moment of no part")
    return exp.Paren(this=call("CONCAT", *(found + pieces)))


_FUNCTIONS: dict[str, Callable[[Function], exp.Expr]] = {
    "let": _let,
    "number_quotient": _quotient,
    "whole_sum": _whole_sum,
    "round": _in_digits,
    "trunc": _in_digits,
    **dict.fromkeys(("trim", "ltrim", "rtrim"), _trim),
    **dict.fromkeys(("hash_of_rows", "sum_of_hashes"), _hash),
    **dict.fromkeys(("left", "right"), _end),
    "substring": _substring,
    "column_as": _column_as,
    "try_cast": _try_cast,
    "date_part": _date_part,
    "date_diff": _date_diff,
    "format_moment": _format_moment,
}


def _own(node: Function) -> exp.Expr:
    write = _FUNCTIONS.get(node.name)
    return node if write is None else write(node)


_NODES: dict[type, Callable[..., exp.Expr]] = {
    Function: _own,
    exp.DataType: _kind,
    exp.Floor: _floor,
    exp.Greatest: _clamped,
    exp.Cast: _whole_cast,
    exp.Like: _like,
    exp.ILike: _ilike,
    exp.Escape: _escape,
    exp.Interval: _interval,
}
