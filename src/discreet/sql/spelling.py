"""What tools write becomes what the dialect has: names with a schema, TOP, intervals, formats, other functions.

Only where both mean the same of every row. What is left is read by the allow-list as any question is.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import cast

from sqlglot import exp

from discreet.catalog.model import Declaration
from discreet.dialect.table import BY_NAME
from discreet.dialect.texts import PARTS, UNITS
from discreet.errors import QuestionError
from discreet.sql import formats
from discreet.sql.dates import MOST_YEARS, unit_of
from discreet.sql.grammar import SPELLED, Statistic
from discreet.sql.limits import small
from discreet.sql.names import unqualified
from discreet.sql.nodes import Context, Rule, arguments, call, converted, number, text, whole
from discreet.sql.refusals import place, refused
from discreet.sql.shapes import shaped
from discreet.trusted.ring_a.table import Type

Nodes = Sequence[exp.Expression]


def spelled(tree: exp.Expression, declaration: Declaration, today: datetime.date | None = None) -> exp.Expression:
    """The tree in the words of the dialect; it is changed in place, and a second time nothing changes.

    `today` is what NOW() and CURRENT_DATE mean where the declaration does not say it; None: today.
    Raises QuestionError where a part means nothing here.
    """
    context = Context(declaration.question_date or today or now())
    unqualified(tree, declaration)
    shaped(tree, declaration, context)
    nodes = cast(list[exp.Expression], list(tree.walk(bfs=True)))
    for node in reversed(nodes):
        rule = _BY_NAME.get(node.name.upper()) if type(node) is exp.Anonymous else _BY_TYPE.get(type(node))
        if rule is not None and node.parent is not None and (new := rule(node, context)) is not None:
            node.replace(new)
    _ends(tree)
    _divisions(tree, declaration)
    small(tree)
    return tree


def now() -> datetime.date:
    """Today's date, in UTC."""
    return datetime.datetime.now(datetime.UTC).date()


# dates


_TODAY_TYPES: Mapping[type[exp.Expression], bool] = {
    exp.CurrentDate: False,
    exp.CurrentTimestamp: True,
    exp.CurrentDatetime: True,
}
_TODAY = {
    **dict.fromkeys(("NOW", "GETDATE", "GETUTCDATE", "SYSDATETIME", "SYSUTCDATETIME", "SYSDATE"), True),
    **dict.fromkeys(("TRANSACTION_TIMESTAMP", "STATEMENT_TIMESTAMP", "CLOCK_TIMESTAMP", "UTC_TIMESTAMP"), True),
    **dict.fromkeys(("CURRENT_TIMESTAMP", "CURRENT_DATETIME", "LOCALTIMESTAMP", "SYSTIMESTAMP"), True),
    **dict.fromkeys(("TODAY", "CURDATE", "UTC_DATE", "CURRENT_DATE"), False),
}
"""Names of the present, and whether they give a timestamp."""


PRESENT = tuple(_TODAY)


def _today(node: exp.Expression, context: Context) -> exp.Expression:
    named = type(node) is exp.Anonymous
    zone = next(iter(node.expressions), None) if named else node.args.get("this")
    if zone is not None and whole(zone) is None and not _utc(zone):
        raise refused(node, "leave out the zone: dates and timestamps are in UTC")
    if _TODAY[node.name.upper()] if named else _TODAY_TYPES[type(node)]:
        return converted(exp.Literal.string(f"{context.day} 00:00:00"), exp.DType.TIMESTAMP)
    return converted(exp.Literal.string(str(context.day)), exp.DType.DATE)


def _utc(node: exp.Expression | None) -> bool:
    return (text(node) or "").upper() in ("UTC", "GMT", "Z", "ETC/UTC", "+00:00", "+00")


def _zone(node: exp.Expression, _context: Context) -> exp.Expression:
    """x AT TIME ZONE 'UTC': timestamps are in UTC."""
    if not _utc(node.args.get("zone")):
        raise refused(node, "timestamps are in UTC: write AT TIME ZONE 'UTC', or add INTERVAL 1 HOUR")
    return cast(exp.Expression, node.this)


_SHORT = {
    **dict.fromkeys(("Y", "YR", "YRS", "YY", "YYYY"), "YEAR"),
    **dict.fromkeys(("MON", "MONS", "MM"), "MONTH"),
    **dict.fromkeys(("W", "WK", "WW"), "WEEK"),
    **dict.fromkeys(("D", "DD"), "DAY"),
    **dict.fromkeys(("H", "HR", "HRS", "HH"), "HOUR"),
    **dict.fromkeys(("MIN", "MINS", "MI", "N"), "MINUTE"),
    **dict.fromkeys(("S", "SEC", "SECS", "SS"), "SECOND"),
    **dict.fromkeys(("Q", "QQ", "QTR", "QTRS"), "QUARTER"),
}
_PART = re.compile(r"\s*([+-]?\d{1,15})\s*([A-Za-z]+)\s*")
_CLOCK = re.compile(r"\s*([+-]?)(\d{1,6}):(\d\d)(?::(\d\d)(?:\.0*)?)?\s*$")

_LONGEST = 200
"""The letters of an interval."""

Parts = list[tuple[int, str]]
"""How many of which unit, one after another."""


def unit(node: exp.Expression | str | None) -> str | None:
    """The unit that a word names, also in short."""
    if node == "":
        return None
    found = unit_of(exp.var(node) if isinstance(node, str) else node)
    if found is None and node is not None:
        word = node if isinstance(node, str) else node.name if not isinstance(node, exp.Func) else ""
        found = _SHORT.get(word.upper())
    return found


def _parts(node: exp.Expression | None) -> Parts | None:
    """What an interval is made of; None where the node is none."""
    if isinstance(node, exp.Paren):
        return _parts(node.this)
    if isinstance(node, exp.Neg):
        inner = _parts(node.this)
        return None if inner is None else [(-many, one) for many, one in inner]
    if isinstance(node, exp.Mul):
        for times, interval in ((node.this, node.expression), (node.expression, node.this)):
            if (inner := _parts(interval)) is not None:
                many = whole(times)
                if many is None:
                    fix = "multiply it with a whole constant: 7 * INTERVAL '1 day'"
                    raise QuestionError("not-allowed", "this interval cannot be used", where=place(node), fix=fix)
                return [(many * one, name) for one, name in inner]
        return None
    if isinstance(node, exp.Cast) and node.args["to"].this is exp.DType.INTERVAL and text(node.this) is not None:
        return _read(text(node.this) or "", node)
    if not isinstance(node, exp.Interval):
        return None
    named = node.args.get("unit")
    if named is None:
        words = text(node.this)
        return _read(words, node) if words is not None else None
    words = text(node.this) if isinstance(node.this, exp.Literal) else None
    many, name = whole(node.this), unit(named) if isinstance(named, exp.Var) else None
    if many is not None and name is not None:
        return [(many, name)]
    return _read(f"{words or place(node.this)} {named.sql()}", node)


def _read(words: str, node: exp.Expression) -> Parts:
    """'1 year 2 months', '1 day 12:00:00'."""
    found: Parts = []
    rest = words.strip().removeprefix("@").strip()
    while len(words) <= _LONGEST and (match := _PART.match(rest)):
        name = unit(match[2])
        if name is None:
            break
        found.append((int(match[1]), name))
        rest = rest[match.end() :]
    if clock := _CLOCK.match(rest):
        sign = -1 if clock[1] == "-" else 1
        hours, minutes, seconds = (int(one or 0) for one in clock.groups()[1:])
        found += [(sign * many, name) for many, name in ((hours, "HOUR"), (minutes, "MINUTE"), (seconds, "SECOND"))]
        rest = ""
    if rest or not found:
        fix = f"write INTERVAL '1 day': a constant, at most {MOST_YEARS} years, of {', '.join(UNITS)}"
        raise QuestionError("not-allowed", "this interval cannot be used", where=place(node), fix=fix)
    order = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
    found = [one for one in found if one[0]] or found[:1]
    return sorted(found, key=lambda one: order.index(one[1]))


def shifted(moment: exp.Expression, parts: Parts, *, backwards: bool = False) -> exp.Expression:
    """A moment and so many units, the longest first."""
    for many, name in parts:
        signed = -many if backwards else many
        interval = exp.Interval(this=exp.Literal.string(str(abs(signed))), unit=exp.var(name))
        kind = exp.Sub if signed < 0 else exp.Add
        moment = kind(this=moment, expression=interval)
    return moment


def _plain(node: exp.Expression | None) -> bool:
    """Whether an interval is in the dialect's own words."""
    return (
        isinstance(node, exp.Interval)
        and not isinstance(node.this, exp.Paren)
        and unit_of(node.args.get("unit")) is not None
        and whole(node.this) is not None
    )


def _sum(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """d + INTERVAL '1 year 2 months', d - 7 * INTERVAL '1 day'."""
    left, right, backwards = node.this, node.expression, isinstance(node, exp.Sub)
    if _plain(right) or (_plain(left) and not backwards):
        return None
    if (parts := _parts(right)) is not None:
        if _parts(left) is not None:
            fix = "write date + INTERVAL '1 day' + INTERVAL '1 hour', without brackets"
            raise QuestionError("not-allowed", "intervals are added to a date one by one", where=place(node), fix=fix)
        return shifted(left, parts, backwards=backwards)
    if not backwards and (parts := _parts(left)) is not None:
        return shifted(right, parts)
    return None


def _add(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """DATEADD(day, 3, d), DATE_ADD('day', 3, d), DATE_ADD(d, 3); DATE_SUB likewise."""
    backwards = node.name.upper() in ("DATE_SUB", "SUBDATE", "TIMESTAMP_SUB", "DATETIME_SUB")
    given = node.expressions
    if len(given) == 2 and _plain(given[1]):
        return None
    if len(given) == 2 and (parts := _parts(given[1])) is not None:
        return shifted(given[0], parts, backwards=backwards)
    if len(given) == 2 and (days := whole(given[1])) is not None:
        return shifted(given[0], [(days, "DAY")], backwards=backwards)
    if len(given) == 3 and (name := unit(given[0])) is not None and (many := whole(given[1])) is not None:
        return shifted(given[2], [(many, name)], backwards=backwards)
    raise refused(node, "write date + INTERVAL 3 DAY, with a constant")


def _difference(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """DATEDIFF(end, start): days."""
    if len(node.expressions) == 2:
        end, start = node.expressions
        return call("DATE_DIFF", exp.Literal.string("day"), start, end)
    if len(node.expressions) == 3 and unit_of(node.expressions[0]) is None:
        first, start, end = node.expressions
        if (
            (name := unit(first)) is not None
            and isinstance(first, exp.Column)
            and not first.table
            and len(first.name) <= 4
            and unit_of(end) is None
        ):
            return call("DATE_DIFF", exp.Literal.string(name.lower()), start, end)
    return None


def truncated(name: str, moment: exp.Expression) -> exp.Expression:
    """DATE_TRUNC('month', moment)."""
    return call("DATE_TRUNC", exp.Literal.string(name.lower()), moment)


def from_sunday(moment: exp.Expression) -> exp.Expression:
    """The beginning of a week that starts on Sunday."""
    return shifted(truncated("WEEK", shifted(moment, [(1, "DAY")])), [(-1, "DAY")])


def _truncate(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """DATE_TRUNC('day', x, 'UTC'), DATETRUNC(month, x), DATE_TRUNC(x, WEEK(MONDAY))."""
    given = list(node.expressions)
    if len(given) == 3 and _utc(given[2]):
        return call("DATE_TRUNC", *given[:2])
    if len(given) != 2:
        return None
    for one, other in (given, given[::-1]):
        if isinstance(one, exp.Anonymous) and one.name.upper() == "WEEK" and len(one.expressions) == 1:
            first = one.expressions[0].name.upper()
            if first == "MONDAY":
                return truncated("WEEK", other)
            if first == "SUNDAY":
                return from_sunday(other)
    one, other = given
    unit_first = node.name.upper() == "DATETRUNC" or (isinstance(one, exp.Column | exp.Var) and unit_of(other) is None)
    if unit_first and (name := unit(one)) is not None:
        return truncated(name, other)
    return None


_DAY_SECONDS = 86_400
_WIDTHS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": _DAY_SECONDS, "WEEK": 7 * _DAY_SECONDS}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _bucket(node: exp.Expression, context: Context) -> exp.Expression:
    """TIME_BUCKET(INTERVAL '15 minutes', x): a unit, or a part of a longer one."""
    given = arguments(node, 2, fix="TIME_BUCKET(INTERVAL '1 day', date)")
    words = text(given[0])
    parts = _read(words, node) if words is not None else _parts(given[0])
    if parts is not None and len(parts) == 1 and parts[0][0] > 0:
        (many, name), moment = parts[0], given[1]
        if name in _MONTHS:
            months = many * _MONTHS[name]
            if (whole_unit := {one: word for word, one in _MONTHS.items()}.get(months)) is not None:
                return truncated(whole_unit, moment)
            if 12 % months == 0:
                return _parted(moment, "YEAR", "MONTH", months, 12, context, first=1)
        else:
            seconds = many * _WIDTHS[name]
            if (whole_unit := {one: word for word, one in _WIDTHS.items()}.get(seconds)) is not None:
                return truncated(whole_unit, moment)
            for below, above in (("HOUR", "DAY"), ("MINUTE", "HOUR"), ("SECOND", "MINUTE")):
                width, most = seconds // _WIDTHS[below], _WIDTHS[above] // _WIDTHS[below]
                if seconds % _WIDTHS[below] == 0 and width < most and most % width == 0:
                    return _parted(moment, above, below, width, most, context)
    fix = "take one unit, as in DATE_TRUNC('day', date), or a part of one: 15 minutes, 6 hours, 6 months"
    raise QuestionError("not-allowed", "this width cannot be used", where=place(node), fix=fix)


def _parted(
    moment: exp.Expression, above: str, below: str, width: int, most: int, context: Context, *, first: int = 0
) -> exp.Expression:
    """The beginning of the part of a unit that a moment lies in, as a choice between them."""
    starts = range(0, most, width)
    moments = iter(context.again(moment, 2 * len(starts) - 1))
    begins = [shifted(truncated(above, next(moments)), [(start, below)]) for start in starts]
    parts = [exp.Extract(this=exp.var(below), expression=one) for one in moments]
    branches = [
        exp.If(this=exp.LT(this=part, expression=number(first + start + width)), true=begin)
        for part, start, begin in zip(parts, starts, begins, strict=False)
    ]
    return exp.Case(ifs=branches, default=begins[-1])


def _part(node: exp.Expression, _context: Context) -> exp.Expression:
    """DATEPART(year, d), DATE_PART('year', d), DATE_PART(year, d)."""
    word, moment = arguments(node, 2, fix="DATE_PART('month', date)")
    name = word.name.upper() if isinstance(word, exp.Literal | exp.Column | exp.Var) else ""
    return exp.Extract(this=exp.var(_part_name(name, node)), expression=moment)


def _part_name(name: str, node: exp.Expression) -> str:
    short = {"DY": "DOY", "Y": "DOY"} if node.name.upper() == "DATEPART" else {}
    name = short.get(name) or (name if name in PARTS else _SHORT.get(name, name))
    name = name.removesuffix("S") if name not in PARTS else name
    if name not in PARTS:
        raise refused(node, f"of parts there are {', '.join(PARTS)}")
    return name


def _extract(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """EXTRACT('year' FROM d)."""
    if isinstance(node.this, exp.Literal) and node.this.is_string and node.this.name.upper() in PARTS:
        return exp.Extract(this=exp.var(node.this.name.upper()), expression=node.expression)
    return None


def _name_of(node: exp.Expression, _context: Context) -> exp.Expression:
    """DATENAME(month, d)."""
    word, moment = arguments(node, 2, fix="MONTHNAME(date)")
    names = {"MONTH": "MONTHNAME", "MM": "MONTHNAME", "WEEKDAY": "DAYNAME", "DW": "DAYNAME"}
    if word.name.upper() in names:
        return call(names[word.name.upper()], moment)
    return converted(exp.Extract(this=exp.var(_part_name(word.name.upper(), node)), expression=moment), exp.DType.TEXT)


def _made(node: exp.Expression, _context: Context) -> exp.Expression:
    """DATEFROMPARTS(YEAR(d), MONTH(d), 1) and constants."""
    year, month, day = arguments(node, 3, fix="DATE '2020-01-31', or DATE_TRUNC('month', date)")
    values = [whole(one) for one in (year, month, day)]
    if None not in values:
        try:
            made = datetime.date(*(one or 0 for one in values))
        except ValueError:
            raise refused(node, "write a date that there is, as DATE '2020-01-31'") from None
        return converted(exp.Literal.string(str(made)), exp.DType.DATE)
    if whole(day) == 1 and (moment := _of_part(year, "YEAR")) is not None:
        same = _of_part(month, "MONTH")
        if whole(month) == 1 or (same is not None and same == moment):
            return converted(truncated("YEAR" if same is None else "MONTH", moment), exp.DType.DATE)
    raise refused(node, "write DATE_TRUNC('month', date), or DATE '2020-01-31'")


def _of_part(node: exp.Expression, part: str) -> exp.Expression | None:
    """The moment whose part this is."""
    if isinstance(node, exp.Cast):
        return _of_part(node.this, part)
    if isinstance(node, exp.Anonymous) and node.name.upper() == part and len(node.expressions) == 1:
        return cast(exp.Expression, node.expressions[0])
    if isinstance(node, exp.Extract) and node.this.name.upper() == part:
        return cast(exp.Expression, node.expression)
    return None


# formats


def formatted(
    family: str, moment: exp.Expression, pattern: exp.Expression, node: exp.Expression, context: Context
) -> exp.Expression:
    """A date as text, by a pattern of that family."""
    words = text(pattern)
    found = formats.pieces(family, words) if words else None
    if not found:
        known = ", ".join(word for word in formats.FAMILIES[family][0] if word != "%%")
        fix = f"write it with {known}, in a constant"
        raise QuestionError("not-allowed", "this format cannot be used", where=place(node), fix=fix[:400])
    dated = [one for one in found if not formats.plain(one)]
    moments = iter(context.again(moment, max(1, len(dated))))
    return formats.written([None if formats.plain(one) else next(moments) for one in found], found)


def _format_of(family: str, *, first: bool = False) -> Rule:
    """A function of a date and its pattern, in this order unless the pattern comes `first`."""

    def build(node: exp.Expression, context: Context) -> exp.Expression:
        one, other = arguments(node, 2, fix="FORMAT_DATE('%Y-%m', date)")
        return formatted(family, *((other, one) if first else (one, other)), node, context)

    return build


def _own_format(node: exp.Expression, context: Context) -> exp.Expression | None:
    """FORMAT_DATE and STRFTIME, where they hold what our own do not have."""
    given = node.expressions
    if len(given) != 2:
        return None
    first = node.name.upper().startswith("FORMAT") or text(given[0]) is not None
    words = text(given[0] if first else given[1])
    if words is None or not re.search(r"%[^%" + formats.PLAIN + "]", words.replace("%%", "")):
        return None
    return _format_of("bigquery", first=first)(node, context)


def _date_format(node: exp.Expression, context: Context) -> exp.Expression | None:
    """MySQL's where there is a % in it, else Spark's."""
    given = arguments(node, 2, fix="FORMAT_DATE('%Y-%m', date)")
    return _format_of("mysql" if "%" in (text(given[1]) or "") else "spark")(node, context)


def _to_char(node: exp.Expression, context: Context) -> exp.Expression | None:
    if isinstance(node, exp.ToChar):
        given = [node.this, *([node.args["format"]] if node.args.get("format") is not None else [])]
        node = exp.Anonymous(this="TO_CHAR", expressions=list(given))
    if len(node.expressions) == 1:
        return converted(node.expressions[0], exp.DType.TEXT)
    return _format_of("to_char")(node, context)


def parsed(family: str, words: exp.Expression, pattern: exp.Expression, node: exp.Expression) -> exp.Expression:
    """A text as a date, by a pattern of that family: the pattern of CAST, or any of a constant."""
    fix = "write CAST(text AS DATE), with the text as 2020-01-31"
    kind = formats.iso(family, text(pattern) or "")
    if not kind:
        raise refused(node, fix)
    return converted(words, exp.DType[kind])


def _parse(family: str, *, first: bool = False) -> Rule:
    def build(node: exp.Expression, _context: Context) -> exp.Expression | None:
        given = node.expressions
        if len(given) == 1 and node.name.upper() == "TO_DATE":
            return None
        if len(given) == 1 and node.name.upper() == "TO_TIMESTAMP":
            return _since_1970(node, _context)
        one, other = arguments(node, 2, fix="CAST(text AS DATE)")
        made = parsed(family, *((other, one) if first else (one, other)), node)
        if node.name.upper() in ("TO_TIMESTAMP", "STRPTIME", "PARSE_TIMESTAMP", "PARSE_DATETIME"):
            return converted(made, exp.DType.TIMESTAMP) if made.args["to"].this is exp.DType.DATE else made
        return (
            converted(made, exp.DType.DATE)
            if node.name.upper() in ("TO_DATE", "PARSE_DATE") and made.args["to"].this is not exp.DType.DATE
            else made
        )

    return build


def _since_1970(node: exp.Expression, _context: Context) -> exp.Expression:
    """TO_TIMESTAMP(1704067200): of a constant."""
    (given,) = arguments(node, 1, fix="TIMESTAMP '2024-01-01 00:00:00'")
    if isinstance(given, exp.Literal) and given.is_string:
        return converted(given, exp.DType.TIMESTAMP)
    seconds = whole(given)
    if seconds is None or abs(seconds) > 10**11:
        fix = "compare the number itself, as in x >= 1704067200, or declare the column as timestamp"
        raise refused(node, fix)
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    return converted(exp.Literal.string(str(moment)), exp.DType.TIMESTAMP)


# types


_WHOLE_TYPES = ("TINYINT", "SMALLINT", "MEDIUMINT", "INT128", "INT256", "UTINYINT", "USMALLINT", "UINT", "UBIGINT")
_TYPES = {
    **dict.fromkeys(_WHOLE_TYPES, "BIGINT"),
    **dict.fromkeys(("NVARCHAR", "LONGTEXT", "MEDIUMTEXT", "TINYTEXT", "NAME"), "TEXT"),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "DATETIME2", "SMALLDATETIME"), "TIMESTAMP"),
    **dict.fromkeys(("DECIMAL32", "DECIMAL64", "DECIMAL128", "DECIMAL256"), "DECIMAL"),
    "DATE32": "DATE",
    "BIT": "BOOLEAN",
    "NCHAR": "CHAR",
}
_OF_TEXT = ("TEXT", "VARCHAR", "CHAR")


def _cast(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """CAST to a type by another name, or with a length."""
    kind = node.args["to"]
    if not isinstance(kind, exp.DataType) or not isinstance(kind.this, exp.DType):
        return None
    name = _TYPES.get(kind.this.name, kind.this.name)
    if name == kind.this.name and not kind.expressions:
        return None
    lengths = [whole(one.this) for one in kind.expressions if isinstance(one, exp.DataTypeParam)]
    if len(lengths) != len(kind.expressions) or name not in exp.DType.__members__:
        return None
    made = type(node)(**{**node.args, "this": node.this, "to": exp.DataType(this=exp.DType[name])})
    first = lengths[0] if lengths else None
    largest = [one.this.name.upper() for one in kind.expressions] == ["MAX"]
    if not kind.expressions or largest or name in ("FLOAT", "DOUBLE", "BIGINT", "INT", "BOOLEAN"):
        return made
    if name in _OF_TEXT and first is not None and 0 < first < 2**31 and name != "CHAR":
        return call("LEFT", made, number(first))
    if name in ("DECIMAL", "BIGDECIMAL") and first is not None:
        if name == kind.this.name == "DECIMAL":
            return None
        made.set("to", exp.DataType(this=exp.DType.DECIMAL, expressions=[one.copy() for one in kind.expressions]))
        return made
    if name in ("TIMESTAMP", "DATETIME") and (first or 0) >= 6:
        return made
    return None


def _typed(kind: str) -> Rule:
    """{d '2020-01-31'}, and other constants with their type before them."""
    return lambda node, _context: converted(node.this, exp.DType[kind]) if text(node.this) is not None else None


# functions by other names


def _renamed(name: str, least: int = 1, most: int | None = None) -> Rule:
    def build(node: exp.Expression, _context: Context) -> exp.Expression:
        return call(name, *arguments(node, least, most, fix=f"{name}(…)"))

    return build


def _is_null(node: exp.Expression, _context: Context) -> exp.Expression:
    """ISNULL(x, y) is COALESCE; ISNULL(x) is a condition."""
    given = arguments(node, 1, 2, fix="COALESCE(x, y), or x IS NULL")
    return call("COALESCE", *given) if len(given) == 2 else exp.Is(this=given[0], expression=exp.Null())


def _found(node: exp.Expression, _context: Context) -> exp.Expression:
    """CHARINDEX('a', x)."""
    needle, haystack = arguments(node, 2, fix="STRPOS(x, 'a')")
    return call("STRPOS", haystack, needle)


def _decode(node: exp.Expression, _context: Context) -> exp.Expression:
    """DECODE(x, 1, 'one', 2, 'two', 'more'), where nothing compares with NULL."""
    value, *rest = node.expressions
    pairs = [(rest[at], rest[at + 1]) for at in range(0, len(rest) - 1, 2)]
    if not pairs or not all(isinstance(one, exp.Literal | exp.Boolean | exp.Neg) for one, _ in pairs):
        raise refused(node, "write CASE x WHEN 'a' THEN 1 ELSE 0 END")
    branches = [exp.If(this=one, true=other) for one, other in pairs]
    default = rest[-1] if len(rest) % 2 else None
    return exp.Case(this=value, ifs=branches, default=default)


def _statistic(name: str) -> Rule:
    return lambda node, _context: Statistic(this=name, expressions=list(node.expressions))


def _counted(node: exp.Expression, _context: Context) -> exp.Expression:
    """COUNT_BIG(*)."""
    (counted,) = arguments(node, 1, fix="COUNT(*)")
    return exp.Count(this=counted, big_int=True)


def _one_of_many(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """APPROX_QUANTILES(x, 4)[OFFSET(2)]."""
    inner, places = node.this, node.expressions
    if not isinstance(inner, Statistic) or inner.this != "APPROX_QUANTILES" or len(places) != 1:
        return None
    at, first = places[0], 0
    if isinstance(at, exp.Anonymous) and at.name.upper() in ("OFFSET", "SAFE_OFFSET", "ORDINAL", "SAFE_ORDINAL"):
        first, at = (1 if "ORDINAL" in at.name.upper() else 0), next(iter(at.expressions), None)
    elif node.args.get("offset") is not None:
        first = int(node.args["offset"])
    else:
        raise refused(node, "write APPROX_QUANTILES(x, 4)[OFFSET(2)], or PERCENTILE_CONT(x, 0.5)")
    plain = [one for one in inner.expressions if not isinstance(one, exp.Kwarg)]
    wanted, many = whole(at), whole(plain[1]) if len(plain) == 2 else None
    if wanted is None or many is None or not 0 <= wanted - first <= many:
        raise refused(node, "write PERCENTILE_CONT(x, 0.5)")
    named = [one for one in inner.expressions if isinstance(one, exp.Kwarg)]
    share = exp.Div(this=number(wanted - first), expression=number(many), typed=False, safe=False)
    return Statistic(this="PERCENTILE_DISC", expressions=[plain[0], share, *named])


def _divisions(tree: exp.Expression, declaration: Declaration) -> None:
    """Quotients of aggregates where those of whole numbers are cut off: they keep their fractions where one side has
    one for certain, and are refused else."""
    typed = [node for node in tree.find_all(exp.Div) if node.args.get("typed")]
    if not typed:
        return
    measured: set[int] = set()
    for one in tree.find_all(exp.AggFunc):
        above: exp.Expr | None = one
        while above is not None and id(above) not in measured:
            measured.add(id(above))
            above = above.parent
    named = {one.alias.casefold() for one in tree.find_all(exp.Alias) if id(one) in measured}
    measured |= {id(one) for one in typed if _shows(one, named)}
    fractions = _with_fractions(tree, declaration)
    for node in typed:
        if id(node) in measured and not {id(node.this), id(node.expression)} & fractions:
            fix = f"write 1.0 * {place(node)} for a quotient with its fraction"
            raise QuestionError(
                "division", "the fraction of this quotient is cut off there", where=place(node), fix=fix
            )
        if id(node) in measured:
            node.set("typed", False)


def _shows(node: exp.Expr, named: set[str]) -> bool:
    """Whether a quotient is of aggregates that have such a name, and is shown as it is: within another aggregate it may
    be of single rows."""
    if not any(one.name.casefold() in named for one in node.find_all(exp.Column)):
        return False
    above = node.parent
    while above is not None and not isinstance(above, exp.Query):
        if isinstance(above, exp.Where | exp.Join | exp.Group) or _gathers(above):
            return False
        above = above.parent
    return True


def _gathers(node: exp.Expr) -> bool:
    return isinstance(node, exp.AggFunc) and not isinstance(node.parent, exp.Window)


def _with_fractions(tree: exp.Expression, declaration: Declaration) -> set[int]:
    """The nodes whose values are of a type with fractions for certain: a column, where all that are called so are."""
    declared: dict[str, bool] = {}
    for table in declaration.tables.values():
        for column in table.columns:
            name = column.name.casefold()
            declared[name] = declared.get(name, True) and column.type is Type.NUMBER
    nodes = list(reversed(list(tree.walk(bfs=True))))
    aliases = [one for one in nodes if isinstance(one, exp.Alias)]
    columns, found = declared, set[int]()
    while True:
        many = len(found)
        for node in nodes:
            if id(node) not in found and _fractional(node, found, columns):
                found.add(id(node))
        if len(found) == many:
            return found
        columns = dict(declared)
        for one in aliases:
            name = one.alias.casefold()
            own = isinstance(one.this, exp.Column) and one.this.name.casefold() == name
            columns[name] = columns.get(name, True) and (own or id(one.this) in found)


def _fractional(node: exp.Expr, found: set[int], columns: Mapping[str, bool]) -> bool:
    """Whether a node's values are of a type with fractions for certain, where those in `found` are."""
    if isinstance(node, exp.Literal):
        return not node.is_string and not str(node.this).isdigit()
    if isinstance(node, exp.Column):
        return columns.get(node.name.casefold(), False)
    if isinstance(node, exp.Cast | exp.TryCast):
        kind = node.args["to"]
        return isinstance(kind, exp.DataType) and kind.this in (exp.DType.FLOAT, exp.DType.DOUBLE)
    if isinstance(node, exp.Anonymous):
        name = node.name.upper()
        some = node.expressions[:1] if name in ("ABS", "ROUND", "NULLIF", "LAG", "LEAD") else node.expressions
        return name in _ROOTS or (name in _PASSING and any(id(one) in found for one in some))
    if isinstance(node, exp.Case):
        ends = [one.args.get("true") for one in node.args["ifs"]] + [node.args.get("default")]
        return any(id(one) in found for one in ends)
    if isinstance(node, _INNER):
        return id(node.this) in found
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return bool({id(node.this), id(node.expression)} & found)
    return isinstance(node, exp.Avg) or (isinstance(node, Statistic) and node.this in _FRACTIONS)


_INNER = (
    *(exp.Paren, exp.Neg, exp.Filter, exp.Sum, exp.Min, exp.Max, exp.Window, exp.Subquery, exp.IgnoreNulls),
    *(exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.AnyValue),
)
_ROOTS = ("SQRT", "LN", "LOG10", "EXP", "CBRT")
_PASSING = ("ABS", "ROUND", "NULLIF", "COALESCE", "IFNULL", "NVL", "GREATEST", "LEAST")
_FRACTIONS = ("AVG", "VAR_POP", "VAR_SAMP", "VARIANCE", "STDDEV_POP", "STDDEV_SAMP", "STDDEV", "CORR")


def _ends(tree: exp.Expression) -> None:
    """FETCH FIRST 10 ROWS ONLY, TOP 10 and LIMIT ALL."""
    for node in tree.find_all(exp.Query):
        limit = node.args.get("limit")
        if limit is None:
            continue
        options = limit.args.get("limit_options")
        if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
            fix = "write LIMIT 10: so many rows, and no others"
            raise QuestionError("limit", "neither a percentage nor ties can be asked for", where="LIMIT", fix=fix)
        if isinstance(limit, exp.Fetch):
            count = limit.args.get("count")
            node.set("limit", exp.Limit(expression=count if count is not None else number(1)))
        elif options is not None:
            limit.set("limit_options", None)
        wanted = node.args["limit"].args.get("expression")
        while isinstance(wanted, exp.Paren):
            wanted = wanted.this
            node.set("limit", exp.Limit(expression=wanted))
        if isinstance(wanted, exp.Var | exp.Null) and wanted.name.upper() in ("ALL", ""):
            node.set("limit", None)


_BY_TYPE: dict[type[exp.Expression], Rule] = {
    exp.CurrentDate: _today,
    exp.CurrentTimestamp: _today,
    exp.CurrentDatetime: _today,
    exp.AtTimeZone: _zone,
    exp.Add: _sum,
    exp.Sub: _sum,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Extract: _extract,
    exp.ToChar: _to_char,
    exp.Bracket: _one_of_many,
    exp.National: lambda node, _context: exp.Literal.string(node.name),
    exp.Date: _typed("DATE"),
    exp.Timestamp: _typed("TIMESTAMP"),
}
_BY_NAME: dict[str, Rule] = {
    **dict.fromkeys(_TODAY, _today),
    **dict.fromkeys(("DATEADD", "DATE_ADD", "DATE_SUB", "ADDDATE", "SUBDATE"), _add),
    **dict.fromkeys(("TIMESTAMP_ADD", "TIMESTAMP_SUB", "DATETIME_ADD", "DATETIME_SUB", "TIMESTAMPADD"), _add),
    **dict.fromkeys(("DATEDIFF", "DATE_DIFF"), _difference),
    **dict.fromkeys(("DATE_TRUNC", "DATETRUNC", "TIMESTAMP_TRUNC", "DATETIME_TRUNC"), _truncate),
    "TIME_BUCKET": _bucket,
    **dict.fromkeys(("DATEPART", "DATE_PART"), _part),
    "DATENAME": _name_of,
    **dict.fromkeys(("DATEFROMPARTS", "DATE_FROM_PARTS", "MAKE_DATE"), _made),
    "EOMONTH": _renamed("LAST_DAY"),
    **dict.fromkeys(("FORMAT_DATE", "FORMAT_TIMESTAMP", "FORMAT_DATETIME", "STRFTIME"), _own_format),
    "DATE_FORMAT": _date_format,
    "TO_CHAR": _to_char,
    **dict.fromkeys(("TO_DATE", "TO_TIMESTAMP"), _parse("to_char")),
    "STRPTIME": _parse("strftime"),
    **dict.fromkeys(("PARSE_DATE", "PARSE_TIMESTAMP", "PARSE_DATETIME"), _parse("bigquery", first=True)),
    "STR_TO_DATE": _parse("mysql"),
    "FROM_UNIXTIME": _since_1970,
    "IIF": _renamed("IF", 3),
    "ISNULL": _is_null,
    "CHARINDEX": _found,
    "TRUNCATE": _renamed("TRUNC", 1, 2),
    "DECODE": _decode,
    "COUNT_BIG": _counted,
    "VAR": _statistic("VAR_SAMP"),
    "VARP": _statistic("VAR_POP"),
    **dict.fromkeys(("STD", "STDEV"), _statistic("STDDEV_SAMP")),
    **dict.fromkeys(("STDEVP", "STDDEVP"), _statistic("STDDEV_POP")),
    "SAMPLE_VARIANCE": _statistic("VAR_SAMP"),
}

assert set(_BY_NAME) <= {*SPELLED, *BY_NAME}
