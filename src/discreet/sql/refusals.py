"""Error constructors and literal parsing for the SQL readers."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from discreet.dialect.table import BY_NAME, REFUSED
from discreet.errors import QuestionError
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.table import Column, Type

ALLOWED = (
    "+ - * /, comparisons, AND, OR, NOT, IS NULL, IN (list), BETWEEN, LIKE, CASE, COALESCE, ABS, or another "
    "function of docs/dialect.md"
)


STAR = "write COUNT(*), or SELECT column, COUNT(*) … GROUP BY column: single rows are never shown"

STRANGERS = "a subquery about people must group by the person"
"""What is said of groups within people that put rows of several together."""

AGGREGATES = {
    **dict.fromkeys(("STD", "STDEV", "STDDEV"), "write STDDEV_SAMP(x)"),
    **dict.fromkeys(("VAR", "VARS", "VARIANCE_SAMP"), "write VAR_SAMP(x)"),
    **dict.fromkeys(("VARP", "VARIANCE_POP"), "write VAR_POP(x)"),
    "STDEVP": "write STDDEV_POP(x)",
    **dict.fromkeys(("MEAN", "AVERAGE"), "write AVG(x)"),
    **dict.fromkeys(("APPROX_DISTINCT", "APPROX_COUNT_DISTINCT"), "write COUNT(DISTINCT x)"),
    "QUANTILES": "write APPROX_QUANTILES(x, 4)",
    "HISTOGRAM": "write SELECT WIDTH_BUCKET(x, 0, 100, 10) AS bin, COUNT(*) … GROUP BY bin",
    **dict.fromkeys(("NUMERIC_HISTOGRAM", "HISTOGRAM_NUMERIC", "APPROX_HISTOGRAM"), "write SELECT HISTOGRAM(x, 10) …"),
}
"""Other systems' names of aggregates."""

_USUAL = {"COUNT": "COUNT(*)", **{name: f"{name}(x)" for name in ("SUM", "AVG", "MIN", "MAX", "MEDIAN", "COUNTIF")}}


def only(node: exp.Expr, *names: str, fix: str = "") -> None:
    """Raises unless the node carries these arguments and no others: a part that nobody read must not vanish."""
    for name, value in node.args.items():
        if value not in (None, False, [], "") and name not in names:
            raise refused(node, fix)


def refused(node: exp.Expr, fix: str = "") -> QuestionError:
    """The error for a construct outside the allow-list."""
    name = (
        node.name.upper()
        if isinstance(node, exp.Anonymous)
        else str(node.this)
        if isinstance(node, exp.AggFunc) and isinstance(node.this, str)
        else type(node).sql_name()
        if isinstance(node, exp.Func)
        else node.key
    )
    where = str(name)[:60] or "question"
    if isinstance(node, exp.Placeholder | exp.Parameter | exp.Struct):
        fix = "write the value itself: a question has no parameters"
    name = where.upper()
    unknown = isinstance(node, exp.Anonymous) and (_nearly(name) or REFUSED.get(name))
    fix = AGGREGATES.get(name) or unknown or fix or _instead(name)
    return QuestionError("not-allowed", f"{where} cannot be used here", where=where, fix=fix)


def known_clauses(tree: exp.Expr, known: Sequence[str], fixes: Mapping[str, str], place: str = "") -> None:
    """Refuses a SELECT with a clause that nobody reads."""
    for name, value in tree.args.items():
        if value not in (None, False, [], "") and name not in known:
            word = name.rstrip("_").upper()
            fix = fixes.get(name, "leave it out")
            raise QuestionError("clause", f"{word} cannot be used{place}", where=word, fix=fix)


def _nearly(name: str) -> str:
    """The aggregate whose name is nearest to this one."""
    near = difflib.get_close_matches(name, list(_USUAL), 1, 0.75)
    return f"write {_USUAL[near[0]]}" if near else ""


def _instead(name: str) -> str:
    """What to write instead of a name that is refused or not known."""
    if name in REFUSED:
        return REFUSED[name]
    near = difflib.get_close_matches(name, list(BY_NAME), 1, 0.75)
    return f"write {BY_NAME[near[0]].usage}" if near else f"use {ALLOWED}"


def several_groupings(node: exp.Expression) -> QuestionError:
    """The error for ROLLUP, CUBE and GROUPING SETS, each of which asks for the groups of several questions."""
    word = {exp.Rollup: "ROLLUP", exp.Cube: "CUBE"}.get(type(node), "GROUPING SETS")
    columns = dict.fromkeys(column.sql() for column in node.find_all(exp.Column))
    fix = f"ask once for each: GROUP BY {', '.join(columns) or 'column'}, then the same with fewer columns"
    message = f"{word} asks for the groups of several questions at once"
    return QuestionError("not-allowed", message, where=word, fix=fix[:300])


def several_rows() -> QuestionError:
    """The error for a subquery that is compared with, and gives more than one row."""
    fix = "write ORDER BY … LIMIT 1, an aggregate over its rows, or IN (SELECT …)"
    message = "a subquery that is compared with gives more than one row"
    return QuestionError("subquery", message, where="subquery", fix=fix)


def unknown_name(name: str, known: Sequence[str], *, kind: str, where: str, quoted: bool = False) -> QuestionError:
    """The error for a name that is not declared."""
    near = difflib.get_close_matches(name, known, 1) or [
        other for other in known if other.casefold() == name.casefold()
    ]
    names = [written_name(one) for one in near or known[:20]]
    fix = (
        f"write {names[0]}" if near else f"write one of {', '.join(names)}" if names else "write FROM and a table first"
    )
    if kind == "column" and not near:
        if name.upper() in _USUAL:
            fix = f"write {_USUAL[name.upper()]}, with brackets"
        elif quoted or name[:1] in "‘’“”":
            text = name[:60].strip("‘’“”").replace("'", "''")
            fix = f"a text or date is written in single quotes: '{text}'; for a column, {fix}"
        else:
            fix += "; a text is written in single quotes"
    return QuestionError(f"unknown-{kind}", f"there is no {kind} {name[:60]!r}", where=where, fix=fix)


def written_name(name: str) -> str:
    """A name as a question writes it: in double quotes where it is no plain word."""
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'


def spelled_as_declared(expression: Expression, columns: Mapping[str, Column]) -> Expression:
    """The expression, where every text that a column is compared with is one of those declared for it, if any are.

    Raises QuestionError: such a comparison finds nothing, and its answer would be paid for. Rows do hold other values
    than the declared ones, but nobody who asks can know which."""
    if not isinstance(expression, Call):
        return expression
    if expression.operator in ("equal", "not_equal", "in"):
        compared = [one for one in expression.arguments if isinstance(one, ColumnOf) and one.type is Type.TEXT]
        for column in compared:
            if (known := columns[column.name].values) is not None:
                for other in expression.arguments:
                    _one_of(other, [str(value) for value in known], column.name)
    for argument in expression.arguments:
        spelled_as_declared(argument, columns)
    return expression


def _one_of(constant: Expression, known: Sequence[str], column: str) -> None:
    if not isinstance(constant, Literal) or not isinstance(constant.value, str) or constant.value in known:
        return
    written = constant.value
    folded = {value.casefold(): value for value in known}
    near = [folded[one] for one in difflib.get_close_matches(written.casefold(), folded, 1)]
    listed = ", ".join(repr(value) for value in known[:20]) + (", …" if len(known) > 20 else "")
    message = f"{written[:60]!r} is not among the values declared for {column}"
    raise QuestionError("value", message, where=column, fix=f"write {near[0]!r}" if near else f"write one of {listed}")


def common_type(sides: Sequence[Expression], node: exp.Expression) -> Type:
    """The type of values that are alike: NUMBER where whole numbers are among numbers; NULL has none. Raises
    QuestionError where all are NULL."""
    kinds = {side.type for side in sides if not is_null(side)}
    if not kinds:
        raise refused(node, "let some branch be other than NULL")
    if kinds == {Type.INTEGER, Type.NUMBER}:
        return Type.NUMBER
    return kinds.pop()


def is_null(expression: Expression) -> bool:
    """Whether it is the literal NULL."""
    return isinstance(expression, Literal) and expression.value is None


def place(node: exp.Expression) -> str:
    """Where an error is: the first 60 characters of what the node says."""
    return node.sql()[:60]


def text_value(value: str, node: exp.Expression) -> str:
    """The text as it is. Raises QuestionError "type" where NUL is in it."""
    if "\x00" in value:
        raise QuestionError("type", "a string cannot contain NUL", where=node.key, fix="leave it out")
    return value


def number_value(text: str, node: exp.Expression) -> Literal:
    """The number as it is written, exactly: of digits alone an integer. Raises QuestionError "number" where it is none,
    from 10^300 on, and below 10^−299 unless it is 0."""
    try:
        value = Decimal(text)
        if not value.is_finite() or (value and not -300 < value.adjusted() < 300):
            raise InvalidOperation
    except InvalidOperation:
        raise QuestionError(
            "number", "this number is out of range", where=place(node), fix="write a number below 1e300"
        ) from None
    if text.isdigit():
        return Literal(int(value), Type.INTEGER)
    return Literal(Fraction(value), Type.NUMBER)


def moments(sides: Sequence[Expression]) -> list[Expression]:
    """Dates beside timestamps: constants at midnight become dates, else dates become their midnight."""
    found = {side.type for side in sides}
    if not {Type.DATE, Type.TIMESTAMP} <= found:
        return list(sides)
    constants = [side for side in sides if side.type is Type.TIMESTAMP]
    if all(isinstance(one, Literal) and _midnight(one.value) for one in constants):
        return [_date_of(side) for side in sides]
    return [Call("to_timestamp", (side,), Type.TIMESTAMP) if side.type is Type.DATE else side for side in sides]


def _midnight(value: object) -> bool:
    return isinstance(value, datetime.datetime) and value.time() == datetime.time()


def _date_of(side: Expression) -> Expression:
    if isinstance(side, Literal) and isinstance(side.value, datetime.datetime):
        return Literal(side.value.date(), Type.DATE)
    return side


_TRUTHS = {
    **dict.fromkeys((1, "1", "t", "true", "y", "yes", "on"), True),
    **dict.fromkeys((0, "0", "f", "false", "n", "no", "off"), False),
}


def truthful(side: Expression) -> Expression:
    """1, 0, 't' and 'f' beside a condition, as TRUE and FALSE; anything else as it is."""
    value = side.value if isinstance(side, Literal) else None
    value = value.lower() if isinstance(value, str) else value
    if isinstance(value, int | str) and not isinstance(value, bool) and value in _TRUTHS:
        return Literal(_TRUTHS[value], Type.BOOLEAN)
    return side


def dated(side: Expression, target: Type, where: exp.Expression) -> Expression:
    """A text literal beside a date, read as a date; a date literal beside a timestamp, at midnight."""
    if not isinstance(side, Literal) or side.value is None:
        return side
    value = side.value
    try:
        if isinstance(value, str):
            value = (datetime.date if target is Type.DATE and len(value) <= 10 else datetime.datetime).fromisoformat(
                value
            )
            if isinstance(value, datetime.datetime) and value.tzinfo is not None:
                value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        if isinstance(value, datetime.datetime):
            return Literal(value, Type.TIMESTAMP)
        if isinstance(value, datetime.date):
            if target is Type.TIMESTAMP:
                return Literal(datetime.datetime.combine(value, datetime.time()), target)
            return Literal(value, Type.DATE)
    except (ValueError, OverflowError):
        fix = "write year, month and day as DATE '2020-01-31', or TIMESTAMP '2020-01-31 12:00:00'"
        raise QuestionError("date", "not a valid date", where=place(where), fix=fix) from None
    return side
