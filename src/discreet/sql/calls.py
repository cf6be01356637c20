"""Functions of the dialect and operators beyond arithmetic: from trees to calls, as the dialect's table has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol

from sqlglot import exp

from discreet.dialect.functions import MOST_TEXTS, Argument, ArgumentKind, SqlFunction, result_type
from discreet.dialect.patterns import PatternError, regular
from discreet.dialect.table import BY_NAME, BY_OPERATOR
from discreet.dialect.texts import PARTS
from discreet.errors import QuestionError
from discreet.sql.dates import FORMS as MOMENT_FORMS
from discreet.sql.refusals import common_type, dated, is_null, only, place, refused
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.table import Type, Value

Nodes = Sequence[exp.Expression]


class ArgumentReader(Protocol):
    """What reads the arguments."""

    def read(self, node: exp.Expression) -> Expression: ...

    def number(self, node: exp.Expression) -> Expression: ...

    def boolean(self, node: exp.Expression) -> Expression: ...

    def alike(self, sides: Sequence[Expression], where: exp.Expression) -> list[Expression]: ...

    def choice(
        self, operator: str, arguments: list[Expression], results: slice, node: exp.Expression
    ) -> Expression: ...


def called(reader: ArgumentReader, node: exp.Expression) -> Expression | None:
    """A function or operator of the dialect; None where the node is none."""
    if isinstance(node, exp.Anonymous):
        return _by_name(reader, node.name.upper(), node.expressions, node)
    if (operator := _OPERATORS.get(type(node))) is not None:
        only(node, "this", "expression", "safe", "typed")
        sides = [node.this] if isinstance(node, exp.Unary) else [node.this, node.expression]
        return _plain(reader, BY_OPERATOR[operator], sides, node)
    shape = _SHAPES.get(type(node))
    return shape(reader, node) if shape is not None else None


def _by_name(reader: ArgumentReader, name: str, nodes: Nodes, node: exp.Expression) -> Expression:
    if name == "DATE_PART":
        return _date_part(reader, nodes, node)
    row = BY_NAME.get(name)
    if name in ("DATE_SUB", "TIMESTAMP_SUB", "DATETIME_SUB"):
        row = BY_OPERATOR["date_add"]
    if row is None:
        raise refused(node)
    most = max(row.most, len(row.takes)) + (1 if row.form in ("truncate", "case") else 0)
    least = 1 if row.form == "logarithm" else 2 if row.form in ("case", "addition") else row.least
    if not least <= len(nodes) <= most:
        raise QuestionError("arguments", f"{name} takes other arguments", where=place(node), fix=f"write {row.usage}")
    if row.form in MOMENT_FORMS:
        return MOMENT_FORMS[row.form](reader, row, nodes, node)
    return _FORMS.get(row.form, _plain)(reader, row, nodes, node)


def _plain(reader: ArgumentReader, row: SqlFunction, nodes: Nodes, node: exp.Expression) -> Expression:
    """A call whose arguments are read one by one."""
    arguments = [argument(reader, row, index, one) for index, one in enumerate(nodes)]
    for missing in row.takes[len(arguments) :]:
        assert missing.default is not None
        arguments.append(Literal(missing.default, Type.TEXT if missing.kind is ArgumentKind.TEXT else Type.INTEGER))
    if row.operator.startswith("concatenate"):
        bounded(arguments, node)
    return Call(row.operator, tuple(arguments), result_type(row, [one.type for one in arguments]))


def argument(reader: ArgumentReader, row: SqlFunction, index: int, node: exp.Expression) -> Expression:
    """One argument, of the kind that the table says."""
    wanted = row.argument(index)
    if wanted.constant:
        return _constant(reader, row, wanted, node)
    if wanted.kind is ArgumentKind.NUMBER:
        return reader.number(node)
    if wanted.kind is ArgumentKind.BOOLEAN:
        return reader.boolean(node)
    expression = reader.read(node)
    if wanted.kind is ArgumentKind.MOMENT:
        expression = dated(expression, Type.DATE, node)
        fits, fix = expression.type in (Type.DATE, Type.TIMESTAMP), "write CAST(x AS DATE)"
    elif wanted.kind is ArgumentKind.WHOLE:
        fits, fix = expression.type is Type.INTEGER, "write CAST(x AS INTEGER)"
    else:
        fits, fix = wanted.kind is ArgumentKind.ANY or expression.type is Type.TEXT, "write CAST(x AS TEXT)"
        if row.operator.startswith("concatenate"):
            if expression.type in (Type.INTEGER, Type.DATE):  # written alike in every database
                return Call("to_text", (expression,), Type.TEXT)
            fix += "; OR joins conditions"
    if not fits:
        word = f"{row.usage.split('(')[0]} needs a {wanted.kind} here, not {expression.type}"
        raise QuestionError("type", word, where=place(node), fix=fix)
    return expression


def _constant(reader: ArgumentReader, row: SqlFunction, wanted: Argument, node: exp.Expression) -> Literal:
    """A constant within the bounds of the table."""
    expression = reader.read(node)
    value = expression.value if isinstance(expression, Literal) else None
    if wanted.kind is ArgumentKind.TEXT:
        fits = isinstance(value, str) and wanted.low <= len(value) <= wanted.high
        words = f"a constant text of {wanted.low} to {wanted.high:,} characters"
    else:
        fits = isinstance(value, int) and not isinstance(value, bool) and wanted.low <= value <= wanted.high
        words = f"a constant integer from {wanted.low} to {wanted.high:,}"
    if not fits or not isinstance(expression, Literal):
        raise QuestionError(
            "not-allowed", f"this must be {words}", where=place(node), fix=f"write {row.usage} with {words}"
        )
    return expression


def bounded(arguments: Sequence[Expression], node: exp.Expression) -> None:
    """No text is put together from more columns than the table says: its length would multiply by nesting."""
    if sum(_leaves(one) for one in arguments) > MOST_TEXTS:
        fix = f"put at most {MOST_TEXTS} together"
        raise QuestionError("not-allowed", "this concatenation has too many parts", where=place(node), fix=fix)


def _leaves(expression: Expression) -> int:
    if isinstance(expression, Call):
        return sum(_leaves(one) for one in expression.arguments)
    return int(isinstance(expression, ColumnOf))


def _alike(reader: ArgumentReader, row: SqlFunction, nodes: Nodes, node: exp.Expression) -> Expression:
    """Values of one type, one of which is the result."""
    sides = reader.alike([reader.read(one) for one in nodes], node)
    return Call(row.operator, tuple(sides), common_type(sides, node))


def _case(reader: ArgumentReader, _row: SqlFunction, nodes: Nodes, node: exp.Expression) -> Expression:
    """IF(condition, x [, y]) and NVL2(x, y, z)."""
    if len(nodes) > 3 or (node.name.upper() == "NVL2" and len(nodes) != 3):
        raise refused(node, "write IF(condition, x, y) or CASE WHEN … END")
    if node.name.upper() == "NVL2":
        unknown = Call("is_null", (reader.read(nodes[0]),), Type.BOOLEAN)
        condition: Expression = Call("not", (unknown,), Type.BOOLEAN)
    else:
        condition = reader.boolean(nodes[0])
    results = [reader.read(one) for one in nodes[1:]]
    otherwise = results[1] if len(results) > 1 else Literal(None, Type.TEXT)
    return reader.choice("case", [condition, results[0], otherwise], slice(1, -1, 2), node)


def _round(reader: ArgumentReader, row: SqlFunction, nodes: Nodes, _node: exp.Expression) -> Expression:
    """An integer unless digits after the point are asked for."""
    value = argument(reader, row, 0, nodes[0])
    digits = argument(reader, row, 1, nodes[1]) if len(nodes) > 1 else Literal(0, Type.INTEGER)
    assert isinstance(digits, Literal)
    assert isinstance(digits.value, int)
    if value.type is Type.INTEGER and digits.value > 0:
        return Call(row.operator, (value, Literal(0, Type.INTEGER)), Type.INTEGER)  # it has no digits after the point
    return Call(row.operator, (value, digits), Type.INTEGER if digits.value <= 0 else Type.NUMBER)


def _logarithm(reader: ArgumentReader, row: SqlFunction, nodes: Nodes, node: exp.Expression) -> Expression:
    if len(nodes) == 1:
        return _plain(reader, BY_OPERATOR["logarithm"], nodes, node)
    return _plain(reader, row, nodes, node)


def _bucket(reader: ArgumentReader, row: SqlFunction, nodes: Nodes, node: exp.Expression) -> Expression:
    call = _plain(reader, row, nodes, node)
    assert isinstance(call, Call)
    low, high = (_value(one) for one in call.arguments[1:3])
    if low is None or high is None or not low < high or float(high - low) == 0.0:
        raise refused(node, f"write {row.usage} with constants low < high")
    return call


def _value(expression: Expression) -> Fraction | None:
    value = expression.value if isinstance(expression, Literal) else None
    return Fraction(value) if isinstance(value, int | Fraction) else None


def _replace(reader: ArgumentReader, row: SqlFunction, nodes: Nodes, node: exp.Expression) -> Expression:
    call = _plain(reader, row, nodes, node)
    assert isinstance(call, Call)
    old, new = (_text(one) for one in call.arguments[1:])
    if len(new) > len(old):
        raise refused(node, "put in at most as many characters as are taken out")
    return call


def _text(expression: Expression) -> str:
    assert isinstance(expression, Literal)
    return str(expression.value)


def _regular(reader: ArgumentReader, row: SqlFunction, nodes: Nodes, node: exp.Expression) -> Expression:
    call = _plain(reader, row, nodes, node)
    assert isinstance(call, Call)
    return _checked(call, node)


def _checked(call: Call, node: exp.Expression) -> Call:
    """The call, if its regular expression is one of the plain kind."""
    try:
        found = regular(_text(call.arguments[1]))
    except PatternError as error:
        message = f"this regular expression cannot be used: {error}"
        raise QuestionError("pattern", message, where=place(node), fix="write a simpler one, or use LIKE") from None
    if call.operator == "extract_match" and found.groups > 1:
        raise QuestionError("pattern", "it has several groups", where=place(node), fix="write (?:…) for all but one")
    return call


def _cast_to(reader: ArgumentReader, row: SqlFunction, nodes: Nodes, node: exp.Expression) -> Expression:
    """A cast. Constant texts as dates are read here, so that one that is no date is refused."""
    inner = reader.read(nodes[0])
    target = row.gives
    assert isinstance(target, Type)
    if is_null(inner):
        raise refused(node, "leave out the cast of NULL")
    moments, source = (Type.DATE, Type.TIMESTAMP), inner.type
    strict = type(node) is exp.Cast and not node.args.get("safe")
    if isinstance(inner, Literal) and source is Type.TEXT and strict and target in moments:
        read = dated(inner, target, node)
        return read if read.type is target else Call(row.operator, (read,), target)
    if source is target and not source.numeric:
        return inner
    if Type.TEXT not in (source, target) and (source in moments) != (target in moments):
        fix = "use UNIX_DATE or EXTRACT" if source in moments else "write the date as a text, '2020-01-31'"
        raise QuestionError("type", f"{source} cannot be cast to {target}", where=place(node), fix=fix)
    return Call(row.operator, (inner,), target)


_CUT = "truncate"
"""What a cast to whole numbers does with a fraction in SQL Server; else it is rounded."""

_TARGETS = {
    **dict.fromkeys(("INT", "BIGINT"), "to_integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL", "BIGDECIMAL"), "to_number"),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR"), "to_text"),
    "BOOLEAN": "to_boolean",
    "DATE": "to_date",
    **dict.fromkeys(("TIMESTAMP", "DATETIME"), "to_timestamp"),
}


def _cast(reader: ArgumentReader, node: exp.Expression) -> Expression:
    """CAST(x AS type), TRY_CAST, SAFE_CAST and x::type."""
    only(node, "this", "to", "safe", "action", fix="write CAST(x AS type)")
    kind = node.args["to"]
    if isinstance(kind, exp.DataType) and (digits := _digits(kind)) is not None:
        plain = _cast_to(reader, BY_OPERATOR["to_number"], [node.this], node)
        return Call("round", (plain, Literal(digits, Type.INTEGER)), Type.NUMBER if digits else Type.INTEGER)
    name = kind.this.name if isinstance(kind, exp.DataType) and not kind.expressions else ""
    if name not in _TARGETS:
        fix = "cast to INTEGER, DOUBLE, TEXT, BOOLEAN, DATE or TIMESTAMP; round with ROUND, shorten with LEFT"
        raise QuestionError("not-allowed", "this type cannot be cast to", where=place(node), fix=fix)
    found = _cast_to(reader, BY_OPERATOR[_TARGETS[name]], [node.this], node)
    if node.args.get("action") not in (None, _CUT):
        raise refused(node, "write CAST(x AS type)")
    if node.args.get("action") and isinstance(found, Call) and found.arguments[0].type is Type.NUMBER:
        cut = Call(BY_NAME["TRUNC"].operator, (*found.arguments, Literal(0, Type.INTEGER)), Type.INTEGER)
        return Call(found.operator, (cut,), found.type)
    return found


def _digits(kind: exp.DataType) -> int | None:
    """How many digits behind the point DECIMAL(10, 2) has; None where that is not said."""
    sizes = [one.this.name for one in kind.expressions if isinstance(one, exp.DataTypeParam)]
    if kind.this.name != "DECIMAL" or not 1 <= len(sizes) <= 2 or not all(size.isdecimal() for size in sizes):
        return None
    digits = int(sizes[1]) if len(sizes) == 2 else 0
    return digits if digits <= _MOST_DIGITS else None


_MOST_DIGITS = 15
"""Decimals have at most so many digits behind the point (`dialect.steps`)."""


def _date_part(reader: ArgumentReader, nodes: Nodes, node: exp.Expression) -> Expression:
    """DATE_PART('month', date)."""
    if len(nodes) != 2 or not isinstance(nodes[0], exp.Literal):
        raise refused(node, "write DATE_PART('month', date)")
    return _part_of(reader, nodes[0].name, nodes[1], node)


def _extract(reader: ArgumentReader, node: exp.Expression) -> Expression:
    only(node, "this", "expression")
    part = node.this if isinstance(node.this, exp.Var | exp.Column | exp.Identifier) else None
    return _part_of(reader, part.name if part is not None else "", node.expression, node)


def _part_of(reader: ArgumentReader, part: str, moment: exp.Expression, node: exp.Expression) -> Expression:
    operator = PARTS.get(part.upper())
    if operator in _OF_DIFFERENCES and (seconds := _seconds_between(reader, moment)) is not None:
        day = Literal(86_400, Type.INTEGER)
        return Call("quotient", (seconds, day), Type.INTEGER) if operator == "day" else seconds
    if operator is None:
        raise refused(node, f"of parts there are {', '.join(PARTS)}")
    return _plain(reader, BY_OPERATOR[operator], [moment], node)


_OF_DIFFERENCES = ("unix_seconds", "day")


def _seconds_between(reader: ArgumentReader, node: exp.Expression) -> Expression | None:
    """The seconds of end - start, where both are timestamps; None where it is anything else."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.Sub) or isinstance(node.expression, exp.Interval):
        return None
    end, start = (reader.read(one) for one in (node.this, node.expression))
    if end.type is not Type.TIMESTAMP or start.type is not Type.TIMESTAMP:
        return None
    return Call("date_diff", (Literal("second", Type.TEXT), start, end), Type.INTEGER)


def _substring(reader: ArgumentReader, node: exp.Expression) -> Expression:
    only(node, "this", "start", "length")
    nodes = [node.this, node.args.get("start") or exp.Literal.number(1)]
    if node.args.get("length") is not None:
        nodes.append(node.args["length"])
    return _by_name(reader, "SUBSTR", nodes, node)


def _trim(reader: ArgumentReader, node: exp.Expression) -> Expression:
    only(node, "this", "position", "expression")
    name = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}.get(str(node.args.get("position") or "").upper(), "TRIM")
    nodes = [node.this] if node.args.get("expression") is None else [node.this, node.expression]
    return _by_name(reader, name, nodes, node)


def _position(reader: ArgumentReader, node: exp.Expression) -> Expression:
    only(node, "this", "substr")
    return _by_name(reader, "STRPOS", [node.this, node.args["substr"]], node)


def _negated(call: Expression, negate: object) -> Expression:
    return Call("not", (call,), Type.BOOLEAN) if negate else call


def _same(reader: ArgumentReader, node: exp.Expression) -> Expression:
    only(node, "this", "expression")
    sides = reader.alike([reader.read(node.this), reader.read(node.expression)], node)
    return _negated(Call("same", tuple(sides), Type.BOOLEAN), isinstance(node, exp.NullSafeNEQ))


def _xor(reader: ArgumentReader, node: exp.Expression) -> Expression:
    only(node, "this", "expression")
    return Call("not_equal", (reader.boolean(node.this), reader.boolean(node.expression)), Type.BOOLEAN)


def _joined(reader: ArgumentReader, node: exp.Expression) -> Expression:
    """x || y || z, as one call however many there are."""
    row, pieces = BY_OPERATOR["concatenate"], []
    rest = node
    while isinstance(rest, exp.DPipe):
        only(rest, "this", "expression", "safe")
        pieces.append(rest.expression)
        rest = rest.this
    if len(pieces) >= row.most:
        raise refused(node, f"put at most {row.most} together")
    return _plain(reader, row, [rest, *reversed(pieces)], node)


def _ilike(reader: ArgumentReader, node: exp.Expression) -> Expression:
    only(node, "this", "expression", "negate", fix="write column ILIKE 'pattern'")
    call = _plain(reader, BY_OPERATOR["ilike"], [node.this, node.expression], node)
    return _negated(call, node.args.get("negate"))


def _escape(reader: ArgumentReader, node: exp.Expression) -> Expression:
    """x LIKE 'pattern' ESCAPE '!'. The engine fails on a pattern that ends with the escape: it is refused here."""
    like = node.this
    if not isinstance(like, exp.Like):
        raise refused(node, "write column LIKE 'pattern' ESCAPE '!'")
    only(like, "this", "expression", "negate", fix="write column LIKE 'pattern' ESCAPE '!'")
    call = _plain(reader, BY_OPERATOR["like_escape"], [like.this, like.expression, node.expression], node)
    assert isinstance(call, Call)
    pattern, escape = _text(call.arguments[1]), _text(call.arguments[2])
    if pattern.replace(escape * 2, "").endswith(escape):
        raise refused(node, "let the pattern not end with the escape")
    if not escape.isascii():
        raise refused(node, "take ! or \\ as the escape")
    return _negated(call, like.args.get("negate"))


def _matches(reader: ArgumentReader, node: exp.Expression) -> Expression:
    """x ~ 'a+', and x ~* 'a+' without regard to case."""
    only(node, "this", "expression", "negate")
    pattern = node.expression
    if isinstance(node, exp.RegexpILike) and isinstance(pattern, exp.Literal) and pattern.is_string:
        pattern = exp.Literal.string(f"(?i){pattern.name}")
    call = _plain(reader, BY_OPERATOR["matches"], [node.this, pattern], node)
    assert isinstance(call, Call)
    return _negated(_checked(call, node), node.args.get("negate"))


def _never(fix: str) -> Callable[[ArgumentReader, exp.Expression], Expression]:
    """What is refused, with what to write instead."""

    def build(_reader: ArgumentReader, node: exp.Expression) -> Expression:
        raise refused(node, fix)

    return build


def truth(reader: ArgumentReader, node: exp.Expression, value: Value) -> Expression:
    """x IS TRUE, x IS FALSE."""
    return Call("is_true" if value else "is_false", (reader.boolean(node),), Type.BOOLEAN)


_OPERATORS: dict[type[exp.Expression], str] = {
    exp.Mod: "modulo",
    exp.IntDiv: "quotient",
    exp.BitwiseAnd: "bit_and",
    exp.BitwiseOr: "bit_or",
    exp.BitwiseXor: "bit_xor",
    exp.BitwiseNot: "bit_not",
    exp.BitwiseRightShift: "shift_right",
}
_SHAPES: dict[type[exp.Expression], Callable[[ArgumentReader, exp.Expression], Expression]] = {
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Extract: _extract,
    exp.Substring: _substring,
    exp.Trim: _trim,
    exp.StrPosition: _position,
    exp.NullSafeEQ: _same,
    exp.NullSafeNEQ: _same,
    exp.Xor: _xor,
    exp.DPipe: _joined,
    exp.ILike: _ilike,
    exp.Escape: _escape,
    exp.RegexpLike: _matches,
    exp.RegexpILike: _matches,
    exp.BitwiseLeftShift: _never("it fails on overflow: write x * 8 for x << 3"),
    exp.SimilarTo: _never("use LIKE, or ~ with a regular expression"),
    exp.Interval: _never("write date + INTERVAL 1 DAY"),
    exp.AtTimeZone: _never("timestamps have no zone here: add INTERVAL 1 HOUR"),
}
_FORMS: dict[str, Callable[[ArgumentReader, SqlFunction, Nodes, exp.Expression], Expression]] = {
    "alike": _alike,
    "case": _case,
    "cast": _cast_to,
    "round": _round,
    "logarithm": _logarithm,
    "bucket": _bucket,
    "replace": _replace,
    "regular": _regular,
}
