"""Questions in other databases' SQL: read by that database's own grammar, and brought to the dialect by allow-list.

The grammar is sqlglot's, with its signs, quotes and operators. Of its functions none is taken: each name is read as it
stands, and means what the table of its database says here; a name that stands in none is refused, and so is what means
something else there for some row. Casts that fail there give NULL here, and texts are compared letter by letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from sqlglot import exp
from sqlglot.dialects.bigquery import BigQuery
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.mysql import MySQL
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.redshift import Redshift
from sqlglot.dialects.snowflake import Snowflake
from sqlglot.dialects.tsql import TSQL
from sqlglot.parser import Parser as BaseParser

from discreet.dialect.table import BY_NAME
from discreet.dialect.texts import UNITS
from discreet.errors import QuestionError
from discreet.sql.grammar import AGGREGATES, SPELLED, Reader, Statistic, as_written, parse, unread
from discreet.sql.nodes import Context, arguments, call, converted, number, text, whole
from discreet.sql.refusals import place, refused
from discreet.sql.spelling import formatted, from_sunday, now, parsed, truncated, unit

Meaning = str | Callable[[exp.Expression, Context], exp.Expression | None]
"""What a function is here: another name, or what is made of its call; None for the call as it stands."""

Shape = Callable[[exp.Expression, Context], exp.Expression | None]


@dataclass(frozen=True)
class Language:
    """One database's SQL. `functions` are those that mean the same by their own name, `others` those that do not;
    `shapes` are nodes of its grammar that mean something else here; `parts` are those of EXTRACT, by their names
    here. `aggregates` has another meaning for some of ours."""

    grammar: type[Dialect]
    functions: frozenset[str]
    others: Mapping[str, Meaning]
    parts: Mapping[str, str]
    shapes: Mapping[type[exp.Expr], Shape] = field(default_factory=dict)
    aggregates: Mapping[str, str] = field(default_factory=dict)
    convert: bool = False


def read(question: str, dialect: str = "") -> exp.Expression:
    """The tree of one statement, in the dialect's own words but for `spelling`. Raises QuestionError on anything
    else."""
    if not dialect:
        return parse(question)
    language = LANGUAGES.get(NAMES.get(dialect, dialect))
    if language is None:
        fix = f"write one of {', '.join(LANGUAGES)}, or leave it out"
        raise QuestionError("dialect", f"there is no dialect {dialect[:40]!r}", where="dialect", fix=fix)
    tree = parse(question, _grammar(language.grammar, language.convert)())
    context = Context(now())
    nodes = cast(list[exp.Expression], list(tree.walk(bfs=True)))
    for node in reversed(nodes):
        if node.parent is not None and (new := _ours(node, language, context)) is not None:
            node.replace(new)
    return tree


_OF_ANSWERS = {
    name: BaseParser.FUNCTIONS[name]
    for name in (
        *("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE"),
        *("LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE", "ANY_VALUE", "MD5", "ARG_MAX", "ARG_MIN"),
        *("MAX_BY", "MIN_BY", "ARRAY_AGG", "LIST", "BOOL_AND", "BOOL_OR", "LOGICAL_AND", "LOGICAL_OR"),
        *("BOOLAND_AGG", "BOOLOR_AGG", "UNNEST", "GENERATE_SERIES", "APPROX_COUNT_DISTINCT"),
    )
}
"""Functions of several rows that mean the same in each database; what they may be of, `layers` says."""


@cache
def _grammar(base: type[Dialect], convert: bool) -> type[Dialect]:
    """The database's grammar, with our limits, and with functions as they are written."""
    own = base.parser_class
    special = {"CAST", "TRY_CAST", "SAFE_CAST", "EXTRACT", "SUBSTRING", "TRIM", "POSITION"}
    special |= {"CONVERT", "TRY_CONVERT"} if convert else set()
    special |= {"STRING_AGG", "LISTAGG", "GROUP_CONCAT"}
    parsers = {name: parser for name, parser in own.FUNCTION_PARSERS.items() if name in special}
    names = {*own.FUNCTIONS, *own.FUNCTION_PARSERS, *BY_NAME, *SPELLED} - {*special, "COUNT"}
    tables: dict[str, Any] = {
        "FUNCTIONS": {**{name: as_written(name) for name in names}, **AGGREGATES, **_OF_ANSWERS},
        "FUNCTION_PARSERS": {**parsers, "COUNT": lambda self: self._parse_count()},
        "ODBC_DATETIME_LITERALS": {"d": exp.Date, "ts": exp.Timestamp},
    }
    return type(
        f"{base.__name__}Questions", (base,), {"to_json_path": unread, "Parser": type("Parser", (Reader, own), tables)}
    )


def _ours(node: exp.Expression, language: Language, context: Context) -> exp.Expression | None:
    """What a node is here; None where it is the same."""
    if type(node) is exp.Anonymous:
        return _function(node, language, context)
    if isinstance(node, Statistic):
        other = language.aggregates.get(str(node.this))
        return Statistic(this=other, expressions=node.expressions) if other is not None else None
    if isinstance(node, exp.Extract):
        return _part_of(_word(node.this), node.expression, node, language)
    shape = language.shapes.get(type(node)) or _SHAPES.get(type(node))
    return shape(node, context) if shape is not None else None


def _function(node: exp.Expression, language: Language, context: Context) -> exp.Expression | None:
    name = node.name.upper()
    if name in ("DATE_PART", "DATEPART"):
        word, moment = arguments(node, 2, fix="DATE_PART('month', date)")
        return _part_of(_word(word), moment, node, language)
    meaning = language.others.get(name)
    if isinstance(meaning, str):
        return call(meaning, *node.expressions)
    if meaning is not None:
        return meaning(node, context)
    if name not in language.functions:
        raise refused(node, _OTHERWISE if name in BY_NAME else "")
    return None


_OTHERWISE = "it is not read in that dialect; without one, it means what docs/dialect.md says"


def _word(node: exp.Expression) -> str:
    return node.name.upper() if isinstance(node, exp.Literal | exp.Column | exp.Var | exp.Identifier) else ""


def _part_of(part: str, moment: exp.Expression, node: exp.Expression, language: Language) -> exp.Expression:
    other = language.parts.get(part)
    if other is None and part in ("WEEKDAY", "DW") and "DATENAME" in language.functions:
        fix = f"of parts there are {', '.join(language.parts)}; DATENAME(weekday, date) names the day"
        raise refused(node, fix)
    if other is None:
        raise refused(node, f"of parts there are {', '.join(language.parts)}")
    return exp.Extract(this=exp.var(other), expression=moment)


# what several have


def refuse(fix: str) -> Shape:
    """What means something else here."""

    def build(node: exp.Expression, _context: Context) -> exp.Expression:
        raise refused(node, fix)

    return build


def _with(name: str, *, constant: int, least: int, negative: bool = False) -> Meaning:
    """A function whose argument at that place is a whole constant, of at least so much; or also below 0."""

    def build(node: exp.Expression, _context: Context) -> exp.Expression:
        given = list(node.expressions)
        for one in given[constant : constant + 1]:
            value = whole(one) if not isinstance(one, exp.Literal) or not one.is_string else None
            if value is None or (value < least and not (negative and value < 0)):
                fix = f"write a whole constant of at least {least} there"
                raise QuestionError("not-allowed", "this place must be a constant", where=place(node), fix=fix)
        return call(name, *given)

    return build


def _substring(*, negative: bool = False) -> Meaning:
    def build(node: exp.Expression, context: Context) -> exp.Expression:
        if isinstance(node, exp.Substring):
            given = [node.this, node.args.get("start") or number(1)]
            given += [node.args["length"]] if node.args.get("length") is not None else []
            node = exp.Anonymous(this="SUBSTR", expressions=given)
        if len(node.expressions) == 3 and (whole(node.expressions[2]) is None or whole(node.expressions[2]) < 0):  # type: ignore[operator]
            fix = "write the length as a constant, SUBSTR(x, 2, 3)"
            raise QuestionError("not-allowed", "this length must be a constant", where=place(node), fix=fix)
        found = cast(Shape, _with("SUBSTR", constant=1, least=1, negative=negative))(node, context)
        assert found is not None
        return found

    return build


def _skipping(name: str) -> Meaning:
    """GREATEST and LEAST where NULLs are left out: each argument is the first of all, from itself on, that is none."""

    def build(node: exp.Expression, context: Context) -> exp.Expression:
        given = list(node.expressions)
        if not given:
            raise refused(node, f"write {name}(x, y)")
        copies = [context.again(one, len(given)) for one in given]
        rounds = [given[at:] + given[:at] for at in range(len(given))]
        places = {id(one): iter(many) for one, many in zip(given, copies, strict=True)}
        return call(name, *(call("COALESCE", *(next(places[id(one)]) for one in turn)) for turn in rounds))

    return build


def _joined(node: exp.Expression, _context: Context) -> exp.Expression:
    """CONCAT where NULLs are left out."""
    return call("CONCAT_WS", exp.Literal.string(""), *node.expressions)


def _unit_first(name: str, weeks: str = "") -> Meaning:
    """A function of a unit's name and dates; `weeks` says what weeks are instead, where they do not begin on Monday."""

    def build(node: exp.Expression, _context: Context) -> exp.Expression:
        given = list(node.expressions)
        word = _word(given[0]) if given else ""
        found = {"ISO_WEEK": "WEEK", "ISOWK": "WEEK", "ISOWW": "WEEK"}.get(word) if weeks else None
        if weeks and found is None and unit(word) == "WEEK":
            raise refused(node, weeks)
        found = found or unit(word)
        if found is None:
            raise refused(node, f"write the unit first, one of {', '.join(UNITS)}")
        rest = given[1:]
        if name == "DATEADD":
            return call("DATEADD", exp.Literal.string(found.lower()), *rest)
        return call(name, exp.Literal.string(found.lower()), *rest)

    return build


def _rounded(digits: int) -> Shape:
    """CAST AS DECIMAL without digits, where that has so many."""

    def build(node: exp.Expression, _context: Context) -> exp.Expression | None:
        kind = node.args["to"]
        if not isinstance(kind, exp.DataType) or kind.this is not exp.DType.DECIMAL or kind.expressions:
            return None
        return call("ROUND", converted(node.this, exp.DType.DOUBLE), number(digits))

    return build


def _casts(*shapes: Shape) -> Mapping[type[exp.Expr], Shape]:
    def build(node: exp.Expression, context: Context) -> exp.Expression | None:
        for one in shapes:
            if (new := one(node, context)) is not None:
                return new
        return None

    return {exp.Cast: build, exp.TryCast: build}


def _kind(node: exp.Expression) -> str:
    kind = node.args["to"]
    return kind.this.name if isinstance(kind, exp.DataType) and isinstance(kind.this, exp.DType) else ""


def _escaped(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """LIKE, where a backslash takes the meaning from what follows."""
    if isinstance(node.parent, exp.Escape):
        return None
    words = text(node.expression)
    if words is None or "\\" not in words:
        return None
    at = 0
    while (at := words.find("\\", at)) >= 0:
        if words[at + 1 : at + 2] not in ("%", "_", "\\") or isinstance(node, exp.ILike):
            raise refused(node, "write LIKE 'a!%' ESCAPE '!'")
        at += 2
    return exp.Escape(this=type(node)(**node.args), expression=exp.Literal.string("\\"))


def _no_ranges(node: exp.Expression, _context: Context) -> None:
    """LIKE in SQL Server: [a-z] is a choice of letters."""
    if "[" in (text(node.expression) or ""):
        raise refused(node, "write a pattern of % and _ without [ ]")


def _position(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """POSITION('a' IN x), from the beginning on."""
    known = ("this", "substr", "clamp_position")
    if any(value is not None for name, value in node.args.items() if name not in known):
        return None
    return call("STRPOS", node.this, node.args["substr"])


def _is_not(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """PostgreSQL's own x IS NOT NULL, which is another word than NOT x IS NULL for rows alone."""
    if not node.args.get("negate"):
        return None
    return exp.Not(this=exp.Is(this=node.this, expression=node.expression))


def _power(node: exp.Expression, _context: Context) -> exp.Expression:
    return call("POWER", node.this, node.expression)


def _matched(node: exp.Expression, _context: Context) -> exp.Expression:
    """An operator or function that holds where the whole text matches."""
    given = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.expression]
    if len(given) != 2:
        raise refused(node, "write REGEXP_LIKE(x, 'a+')")
    return call("REGEXP_FULL_MATCH", *given)


def _found(node: exp.Expression, context: Context) -> exp.Expression:
    """The match, or NULL where there is none."""
    subject, pattern = arguments(node, 2, fix="REGEXP_EXTRACT(x, 'a+')")
    one, other = context.again(subject, 2)
    condition = call("REGEXP_CONTAINS", one, pattern.copy())
    return exp.Case(ifs=[exp.If(this=condition, true=call("REGEXP_EXTRACT", other, pattern))])


def _whole_match(meaning: Callable[[exp.Expression, Context], exp.Expression | None]) -> Meaning:
    """The same, where a group in brackets would not be what comes out."""

    def build(node: exp.Expression, context: Context) -> exp.Expression | None:
        pattern = text(node.expressions[1]) if len(node.expressions) == 2 else None
        if pattern is None or "(" in pattern.replace("(?:", ""):
            raise refused(node, "write an expression without a group: (?:…) for (…)")
        return meaning(node, context)

    return build


def _no_boundary(node: exp.Expression, _context: Context) -> None:
    """Regular expressions of PostgreSQL, where \\b is another sign."""
    given = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.expression]
    if len(given) != 2 or "\\b" in (text(given[1]) or ""):
        raise refused(node, "write an expression without \\b and without flags")


def _format(family: str, *, first: bool = False) -> Meaning:
    def build(node: exp.Expression, context: Context) -> exp.Expression:
        one, other = arguments(node, 2, fix="TO_CHAR(date, 'YYYY-MM')")
        return formatted(family, *((other, one) if first else (one, other)), node, context)

    return build


def _text_or_format(family: str) -> Meaning:
    def build(node: exp.Expression, context: Context) -> exp.Expression | None:
        if len(node.expressions) == 1:
            return converted(node.expressions[0], exp.DType.TEXT)
        return cast(Shape, _format(family))(node, context)

    return build


def _parse(family: str, kind: str = "", *, first: bool = False) -> Meaning:
    """A text as a date or timestamp, by a pattern."""

    def build(node: exp.Expression, _context: Context) -> exp.Expression:
        if len(node.expressions) == 1 and kind and not first:
            return converted(node.expressions[0], exp.DType[kind])
        one, other = arguments(node, 2, fix="CAST(text AS DATE)")
        made = parsed(family, *((other, one) if first else (one, other)), node)
        return made if not kind or made.args["to"].this is exp.DType[kind] else converted(made, exp.DType[kind])

    return build


def _of(name: str, *constants: exp.Expression, least: int = 1, most: int | None = None) -> Meaning:
    """Another name, with so many arguments."""

    def build(node: exp.Expression, _context: Context) -> exp.Expression:
        return call(name, *arguments(node, least, most, fix=f"{name}(…)"), *(one.copy() for one in constants))

    return build


def _turned(name: str) -> Meaning:
    """Another name, with its two arguments exchanged."""

    def build(node: exp.Expression, _context: Context) -> exp.Expression:
        one, other = arguments(node, 2, fix=f"{name}(x, 'a')")
        return call(name, other, one)

    return build


def _part(part: str, minus: int = 0) -> Meaning:
    def build(node: exp.Expression, _context: Context) -> exp.Expression:
        (moment,) = arguments(node, 1, fix=f"EXTRACT({part} FROM date)")
        found: exp.Expression = exp.Extract(this=exp.var(part), expression=moment)
        return exp.Paren(this=exp.Sub(this=found, expression=number(minus))) if minus else found

    return build


def _named(form: str) -> Meaning:
    def build(node: exp.Expression, _context: Context) -> exp.Expression:
        (moment,) = arguments(node, 1, fix="FORMAT_DATE('%a', date)")
        return call("FORMAT_DATE", exp.Literal.string(form), moment)

    return build


def _weeks_from_sunday(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """BigQuery's DATE_TRUNC(x, WEEK): a week begins on Sunday; ISOWEEK and WEEK(MONDAY) on Monday."""
    moment, word = arguments(node, 2, fix="DATE_TRUNC(date, MONTH)")
    if isinstance(word, exp.Anonymous):  # WEEK(MONDAY)
        return call("DATE_TRUNC", moment, word)
    name = _word(word)
    if name == "WEEK":
        return from_sunday(moment)
    found = {"ISOWEEK": "WEEK"}.get(name, name)
    if found not in UNITS:
        raise refused(node, f"write one of {', '.join((*UNITS, 'ISOWEEK'))}")
    return truncated(found, moment)


def _iso_weeks(node: exp.Expression, _context: Context) -> exp.Expression:
    """BigQuery's DATE_DIFF(end, start, unit)."""
    end, start, word = arguments(node, 3, fix="DATE_DIFF(end, start, DAY)")
    found = {"ISOWEEK": "WEEK", "WEEK": ""}.get(_word(word), _word(word))
    if found not in UNITS:
        raise refused(node, f"write one of {', '.join(one for one in UNITS if one != 'WEEK')}, ISOWEEK")
    return call("DATE_DIFF", exp.Literal.string(found.lower()), start, end)


def _interval_added(node: exp.Expression, _context: Context) -> exp.Expression | None:
    if len(node.expressions) != 2 or not isinstance(node.expressions[1], exp.Interval | exp.Mul | exp.Neg | exp.Add):
        raise refused(node, "write DATE_ADD(date, INTERVAL 3 DAY)")
    return None


def _series(node: exp.Expression, _context: Context) -> exp.Expression:
    """GENERATE_ARRAY and GENERATE_DATE_ARRAY, with the ends and a step."""
    start, end, *step = arguments(
        node, 2, 3, fix="GENERATE_DATE_ARRAY(DATE '2024-01-01', DATE '2024-12-01', INTERVAL 1 MONTH)"
    )
    days = node.name.upper() == "GENERATE_DATE_ARRAY"
    if days:
        start, end = (converted(one, exp.DType.DATE) if text(one) is not None else one for one in (start, end))
        step = step or [exp.Interval(this=exp.Literal.string("1"), unit=exp.var("DAY"))]
    return exp.GenerateSeries(start=start, end=end, step=next(iter(step), None))


def _with_fractions(node: exp.Expression, _context: Context) -> None:
    """x / y, where EXTRACT gives a number with a fraction: nothing is cut off."""
    if any(_extracted(one) for one in (node.this, node.expression)):
        node.set("typed", False)


def _extracted(node: exp.Expr | None) -> bool:
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod):
        return _extracted(node.this) or _extracted(node.expression)
    return isinstance(node, exp.Extract) or (isinstance(node, exp.Paren | exp.Neg) and _extracted(node.this))


def _many(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """LIMIT ('10'::int4), as JDBC writes a parameter where it prepares nothing."""
    many = node.expression
    while isinstance(many, exp.Paren | exp.Cast):
        many = many.this
    plain = many is not node.expression and isinstance(many, exp.Literal) and many.name.isdecimal()
    return type(node)(**{**node.args, "expression": exp.Literal.number(many.name)}) if plain else None


def _rows_of_series(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """PostgreSQL's GENERATE_SERIES gives rows wherever it stands."""
    if isinstance(node.parent, exp.Unnest | exp.Table):
        return None
    return exp.Unnest(expressions=[node.copy()])


def _divided(default: int | None) -> Meaning:
    """Snowflake's DIV0: 0 where the divisor is 0."""

    def build(node: exp.Expression, context: Context) -> exp.Expression:
        one, other = arguments(node, 2, fix="x / NULLIF(y, 0)")
        divisor, again = context.again(other, 2)
        quotient = exp.Div(this=exp.Paren(this=one), expression=exp.Paren(this=again), typed=False, safe=False)
        zero: exp.Expr = exp.EQ(this=exp.Paren(this=divisor), expression=number(0))
        if default is None:
            again = context.again(divisor, 2)[1]
            zero = exp.Or(this=zero, expression=exp.Is(this=exp.Paren(this=again), expression=exp.Null()))
        return exp.Case(ifs=[exp.If(this=zero, true=number(0))], default=quotient)

    return build


def _approximate_quantile(node: exp.Expression, _context: Context) -> exp.Expression:
    value, share = arguments(node, 2, fix="APPROX_PERCENTILE(x, 0.9)")
    return Statistic(this="APPROX_QUANTILE", expressions=[value, share])


def _halved(node: exp.Expression, _context: Context) -> exp.Expression:
    """DuckDB's x // y cuts whole numbers alone."""
    return exp.Div(this=node.this, expression=node.expression, typed=True, safe=True)


def _logarithm(base_first: bool, alone: str) -> Meaning:
    """LOG with one argument, and with two: the base stands first or last."""

    def build(node: exp.Expression, _context: Context) -> exp.Expression:
        given = arguments(node, 1 if alone else 2, 2, fix="LN(x), or LOG10(x)")
        if len(given) == 1:
            return call(alone, *given)
        return call("LOG", *(given[::-1] if base_first else given))

    return build


def _kept(_node: exp.Expression, _context: Context) -> None:
    """The call as it stands."""


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


_DATE_PARTS = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_PRESENT = "NOW CURRENT_TIMESTAMP CURRENT_DATE CURRENT_DATETIME"
_COMMON = _words(
    "ABS CEIL CEILING FLOOR ROUND SIGN SQRT EXP LN SIN COS TAN ASIN ACOS ATAN PI MOD UPPER LOWER REVERSE REPLACE",
    "COALESCE NULLIF LPAD RPAD IF OFFSET",
    _PRESENT,
)
_MORE_NUMBERS = _words("LOG10 ATAN2 DEGREES RADIANS POWER POW TRUNC")
_SHAPES: Mapping[type[exp.Expr], Shape] = {
    exp.Is: _is_not,
    exp.Pow: _power,
    exp.Localtimestamp: lambda _node, _context: exp.CurrentTimestamp(),
    exp.SimilarTo: refuse("use LIKE, or a regular expression"),
    exp.Concat: refuse("write x || y"),
    exp.RawString: lambda node, _context: exp.Literal.string(node.name),
    exp.StrPosition: _position,
}


def _names(parts: str, **others: str) -> Mapping[str, str]:
    return {**{part: part for part in (*_DATE_PARTS, *parts.split())}, **others}


_POSTGRES = Language(
    Postgres,
    _COMMON
    | _MORE_NUMBERS
    | _words(
        "LENGTH CHAR_LENGTH CHARACTER_LENGTH OCTET_LENGTH LTRIM RTRIM BTRIM TRIM STRPOS TRANSLATE ASCII STARTS_WITH",
        "CONCAT_WS CBRT DIV SINH COSH TANH ASINH ACOSH ATANH DATE_TRUNC MAKE_DATE TRANSACTION_TIMESTAMP DATE",
        "STATEMENT_TIMESTAMP CLOCK_TIMESTAMP WIDTH_BUCKET TIME_BUCKET DATE_BIN AGE",
    )
    - {"IF"},
    {
        "SUBSTR": _substring(),
        "SUBSTRING": _substring(),
        "LEFT": "LEFT",
        "RIGHT": "RIGHT",
        "SPLIT_PART": _with("SPLIT_PART", constant=2, least=1),
        "CONCAT": _joined,
        "GREATEST": _skipping("GREATEST"),
        "LEAST": _skipping("LEAST"),
        "LOG": _logarithm(True, "LOG10"),
        "REGEXP_LIKE": _no_boundary,
        "TO_CHAR": _format("to_char"),
        "TO_DATE": _parse("to_char", "DATE"),
        "TO_TIMESTAMP": _kept,
    },
    _names("WEEK DOW ISODOW DOY ISOYEAR EPOCH"),
    {
        exp.Like: _escaped,
        exp.ILike: _escaped,
        exp.RegexpLike: _no_boundary,
        exp.RegexpILike: _no_boundary,
        exp.GenerateSeries: _rows_of_series,
        exp.Div: _with_fractions,
        exp.Substring: cast(Shape, _substring()),
        exp.Limit: _many,
        exp.Offset: _many,
    },
)
_REDSHIFT = Language(
    Redshift,
    (_POSTGRES.functions | _words("LEN NVL NVL2 GETDATE SYSDATE LAST_DAY DECODE RATIO_TO_REPORT"))
    - _words("CONCAT_WS WIDTH_BUCKET MAKE_DATE TIME_BUCKET DATE_BIN"),
    {
        **{name: meaning for name, meaning in _POSTGRES.others.items() if name not in ("CONCAT", "LOG", "REGEXP_LIKE")},
        "CONCAT": "CONCAT",
        "LOG": _logarithm(True, "LOG10"),
        "CHARINDEX": _turned("STRPOS"),
        "DATEADD": _unit_first("DATEADD"),
        "DATEDIFF": _unit_first("DATE_DIFF"),
        "DATE_ADD": _unit_first("DATEADD"),
        "DATE_DIFF": _unit_first("DATE_DIFF"),
    },
    _names("WEEK DOW DOY EPOCH"),
    {**{kind: shape for kind, shape in _POSTGRES.shapes.items() if kind is not exp.Div}, **_casts(_rounded(0))},
)


def _duckdb_cast(node: exp.Expression, context: Context) -> exp.Expression | None:
    """VARCHAR(3) holds texts of any length; DECIMAL has three digits behind the point."""
    if _kind(node) in ("VARCHAR", "TEXT") and node.args["to"].expressions:
        return type(node)(**{**node.args, "to": exp.DataType(this=exp.DType.TEXT)})
    return _rounded(3)(node, context)


_DUCKDB = Language(
    DuckDB,
    (
        _COMMON
        | _MORE_NUMBERS
        | _words(
            "LENGTH LEN CHAR_LENGTH CHARACTER_LENGTH TRIM LTRIM RTRIM STRPOS INSTR TRANSLATE ASCII UNICODE",
            "STARTS_WITH STARTSWITH ENDS_WITH CONTAINS CONCAT_WS CBRT SINH COSH TANH ASINH ACOSH ATANH",
            "UCASE LCASE LOG2 IFNULL ISNAN ISINF ISFINITE STRIP_ACCENTS BIT_COUNT LEFT RIGHT DATE_TRUNC DATETRUNC",
            "TIME_BUCKET MAKE_DATE LAST_DAY DAYNAME MONTHNAME YEAR QUARTER MONTH DAY HOUR MINUTE SECOND DAYOFMONTH",
            "DAYOFYEAR WEEK WEEKOFYEAR ISODOW ISOYEAR EPOCH TODAY REGEXP_MATCHES REGEXP_FULL_MATCH DATE",
            "TRANSACTION_TIMESTAMP AGE",
        )
    ),
    {
        "SUBSTR": _substring(negative=True),
        "SUBSTRING": _substring(negative=True),
        "SPLIT_PART": _with("SPLIT_PART", constant=2, least=1),
        "CONCAT": _joined,
        "GREATEST": _skipping("GREATEST"),
        "LEAST": _skipping("LEAST"),
        "LOG": _logarithm(True, "LOG10"),
        "DAYOFWEEK": _part("DOW"),
        "WEEKDAY": _part("DOW"),
        "STRFTIME": _kept,
        "STRPTIME": _parse("strftime", "TIMESTAMP"),
        "DATE_DIFF": _unit_first("DATE_DIFF"),
        "DATEDIFF": _unit_first("DATE_DIFF"),
        "DATE_ADD": _interval_added,
        "REGEXP_EXTRACT": _whole_match(_kept),
    },
    _names("WEEK DOW ISODOW DOY DAYOFYEAR ISOYEAR EPOCH", DAYOFWEEK="DOW", WEEKDAY="DOW", WEEKOFYEAR="WEEK"),
    {
        exp.IntDiv: _halved,
        exp.RegexpLike: _matched,
        exp.Substring: cast(Shape, _substring(negative=True)),
        **_casts(_duckdb_cast),
    },
)

_SPACES = (*range(9, 14), 32, 133, 160, 5760, *range(8192, 8203), 8232, 8233, 8239, 8287, 12288)
_WHITESPACE = "".join(map(chr, _SPACES))


def _whitespace(name: str) -> Meaning:
    """BigQuery's TRIM takes off white space of all kinds."""

    def build(node: exp.Expression, _context: Context) -> exp.Expression:
        given = arguments(node, 1, 2, fix=f"{name}(x)")
        return call(name, *given, *([exp.Literal.string(_WHITESPACE)] if len(given) == 1 else []))

    return build


_BIGQUERY = Language(
    BigQuery,
    (
        _COMMON
        | _MORE_NUMBERS
        | _words(
            "LENGTH CHAR_LENGTH CHARACTER_LENGTH BYTE_LENGTH OCTET_LENGTH STRPOS TRANSLATE STARTS_WITH ENDS_WITH",
            "CONCAT GREATEST LEAST IFNULL SAFE_DIVIDE SAFE_ADD SAFE_SUBTRACT SAFE_MULTIPLY SAFE_NEGATE IEEE_DIVIDE DIV",
            "CBRT SINH COSH TANH ASINH ACOSH ATANH IS_NAN IS_INF BIT_COUNT REGEXP_CONTAINS UNIX_DATE UNIX_SECONDS DATE",
            "DATETIME TIMESTAMP SAFE_OFFSET ORDINAL SAFE_ORDINAL LOG RANGE_BUCKET",
        )
    )
    - _words("DEGREES RADIANS"),
    {
        "SUBSTR": _substring(negative=True),
        "SUBSTRING": _substring(negative=True),
        "LEFT": _with("LEFT", constant=1, least=0),
        "RIGHT": _with("RIGHT", constant=1, least=0),
        "TRIM": _whitespace("TRIM"),
        "LTRIM": _whitespace("LTRIM"),
        "RTRIM": _whitespace("RTRIM"),
        "INSTR": _of("INSTR", least=2),
        "REGEXP_EXTRACT": _found,
        "REGEXP_SUBSTR": _found,
        **dict.fromkeys(("DATE_TRUNC", "TIMESTAMP_TRUNC", "DATETIME_TRUNC"), _weeks_from_sunday),
        **dict.fromkeys(("DATE_DIFF", "DATETIME_DIFF"), _iso_weeks),
        **dict.fromkeys(("DATE_ADD", "DATE_SUB", "TIMESTAMP_ADD", "TIMESTAMP_SUB"), _interval_added),
        **dict.fromkeys(("DATETIME_ADD", "DATETIME_SUB"), _interval_added),
        **dict.fromkeys(("FORMAT_DATE", "FORMAT_TIMESTAMP", "FORMAT_DATETIME"), _format("bigquery", first=True)),
        "PARSE_DATE": _parse("bigquery", "DATE", first=True),
        "PARSE_TIMESTAMP": _parse("bigquery", "TIMESTAMP", first=True),
        "PARSE_DATETIME": _parse("bigquery", "TIMESTAMP", first=True),
        "LAST_DAY": _of("LAST_DAY"),
        "WEEK": _kept,
        **dict.fromkeys(("GENERATE_ARRAY", "GENERATE_DATE_ARRAY"), _series),
    },
    _names("DAYOFWEEK DAYOFYEAR ISOWEEK ISOYEAR"),
    {exp.Like: _escaped},
)
_SNOWFLAKE = Language(
    Snowflake,
    (
        _COMMON
        | _MORE_NUMBERS
        | _words(
            "LENGTH LEN OCTET_LENGTH TRIM LTRIM RTRIM TRANSLATE ASCII STARTSWITH ENDSWITH CONCAT GREATEST LEAST",
            "IFNULL NVL NVL2 IFF ZEROIFNULL NULLIFZERO CBRT SINH COSH TANH DECODE WIDTH_BUCKET DATE_TRUNC GETDATE",
            "SYSDATE YEAR QUARTER MONTH DAY HOUR MINUTE SECOND DAYOFMONTH DAYOFYEAR WEEKOFYEAR WEEK DATEFROMPARTS",
            "DATE_FROM_PARTS LAST_DAY DATE RATIO_TO_REPORT TIME_SLICE",
        )
    ),
    {
        "SUBSTR": _substring(),
        "SUBSTRING": _substring(),
        "LEFT": _with("LEFT", constant=1, least=0),
        "RIGHT": _with("RIGHT", constant=1, least=0),
        "SPLIT_PART": _with("SPLIT_PART", constant=2, least=1),
        "CONTAINS": "CONTAINS",
        "CHARINDEX": _turned("STRPOS"),
        "DATE_TRUNC": _unit_first("DATE_TRUNC"),
        "LOG": _logarithm(True, ""),
        "TRUNCATE": _of("TRUNC", least=1, most=2),
        "APPROX_PERCENTILE": _approximate_quantile,
        "DIV0": _divided(0),
        "DIV0NULL": _divided(None),
        "REGEXP_LIKE": _matched,
        "RLIKE": _matched,
        "REGEXP_SUBSTR": _whole_match(_found),
        "TO_CHAR": _text_or_format("snowflake"),
        "TO_VARCHAR": _text_or_format("snowflake"),
        "TO_DATE": _parse("snowflake", "DATE"),
        **dict.fromkeys(("TO_TIMESTAMP", "TO_TIMESTAMP_NTZ"), _parse("snowflake", "TIMESTAMP")),
        "DAYNAME": _named("%a"),
        "MONTHNAME": _named("%b"),
        "DAYOFWEEK": _part("DOW"),
        "DAYOFWEEKISO": _part("ISODOW"),
        "WEEKISO": _part("WEEK"),
        "YEAROFWEEKISO": _part("ISOYEAR"),
        **dict.fromkeys(("DATEADD", "TIMESTAMPADD", "TIMEADD"), _unit_first("DATEADD")),
        **dict.fromkeys(("DATEDIFF", "TIMESTAMPDIFF", "TIMEDIFF"), _unit_first("DATE_DIFF")),
    },
    _names(
        "WEEK DOY DAYOFYEAR",
        DAYOFWEEK="DOW",
        DOW="DOW",
        DAYOFWEEKISO="ISODOW",
        DAYOFWEEK_ISO="ISODOW",
        WEEKISO="WEEK",
        YEAROFWEEKISO="ISOYEAR",
        EPOCH_SECOND="EPOCH",
        EPOCH="EPOCH",
    ),
    {exp.RegexpLike: _matched, exp.Substring: cast(Shape, _substring()), **_casts(_rounded(0))},
)


def _tsql_cast(node: exp.Expression, context: Context) -> exp.Expression | None:
    """Casts of SQL Server: a number's fraction is cut off, and texts without a length have 30 letters."""
    if _kind(node) in ("INT", "BIGINT", "SMALLINT", "TINYINT", "UTINYINT"):
        return type(node)(**{**node.args, "to": exp.DataType(this=exp.DType.BIGINT), "action": "truncate"})
    if _kind(node) in ("VARCHAR", "NVARCHAR", "TEXT") and not node.args["to"].expressions:
        return call("LEFT", type(node)(**{**node.args, "to": exp.DataType(this=exp.DType.TEXT)}), number(30))
    return _rounded(0)(node, context)


def _tsql_convert(node: exp.Expression, context: Context) -> exp.Expression:
    """CONVERT(type, x), without a style."""
    if node.args.get("style") is not None or not isinstance(node.this, exp.DataType):
        raise refused(node, "write CAST(x AS DATE), or FORMAT(x, 'yyyy-MM-dd')")
    made = exp.Cast(this=node.expression, to=node.this)
    return _tsql_cast(made, context) or made


def _tsql_power(node: exp.Expression, _context: Context) -> exp.Expression:
    """POWER gives what its first argument is: whole numbers stay whole."""
    base, exponent = arguments(node, 2, fix="POWER(CAST(x AS FLOAT), y)")
    inner = base.this if isinstance(base, exp.Paren) else base
    if isinstance(inner, exp.Cast | exp.TryCast) and _kind(inner) in ("FLOAT", "DOUBLE"):
        return call("POWER", base, exponent)
    raise refused(node, "write POWER(CAST(x AS FLOAT), y)")


def _without_hints(node: exp.Expression, _context: Context) -> None:
    """FROM t WITH (NOLOCK): how rows are locked, which means nothing here."""
    node.set("hints", None)


def _plus(node: exp.Expression, _context: Context) -> exp.Expression | None:
    """x + ' ' + y puts texts together, where one of them is a text for certain: no number and no date."""
    chain, rest = list[exp.Expression](), cast(exp.Expr, node)
    while isinstance(rest, exp.Add | exp.DPipe):
        chain.append(rest.expression)
        rest = rest.this
    words = [one.name for one in (*chain, rest) if isinstance(one, exp.Literal) and one.is_string]
    certain = any(not re.fullmatch(r"[\s\d.:+\-TtZzEe]*", one) or one.isspace() for one in words)
    return exp.DPipe(this=node.this, expression=node.expression, safe=False) if certain else None


_SUNDAYS = "weeks begin on Sunday there: write ISO_WEEK, or days divided by 7"
_TSQL = Language(
    TSQL,
    (
        (_COMMON | _words("CONCAT_WS LTRIM RTRIM TRIM TRANSLATE YEAR MONTH DAY IIF ISNULL GETDATE GETUTCDATE"))
        | _words("SYSDATETIME SYSUTCDATETIME EOMONTH DATEFROMPARTS CHARINDEX COUNT_BIG LOG10 DATENAME")
        | _words("STDEV STDEVP VAR VARP")
    )
    - _words("IF LN LPAD RPAD MOD NOW"),
    {
        "LEN": lambda node, _context: call("LENGTH", call("RTRIM", *arguments(node, 1, fix="LEN(x)"))),
        "SUBSTRING": _substring(),
        "LEFT": _with("LEFT", constant=1, least=0),
        "RIGHT": _with("RIGHT", constant=1, least=0),
        "CONCAT": _joined,
        "GREATEST": _skipping("GREATEST"),
        "LEAST": _skipping("LEAST"),
        "LOG": _logarithm(False, "LN"),
        "POWER": _tsql_power,
        "ATN2": "ATAN2",
        "FORMAT": _format("java"),
        "DATEADD": _unit_first("DATEADD"),
        "DATEDIFF": _unit_first("DATE_DIFF", _SUNDAYS),
        "DATETRUNC": _unit_first("DATE_TRUNC", _SUNDAYS),
    },
    _names(
        "ISOWEEK DAYOFYEAR",
        ISO_WEEK="WEEK",
        ISOWK="WEEK",
        ISOWW="WEEK",
        DY="DOY",
        Y="DOY",
        YY="YEAR",
        YYYY="YEAR",
        QQ="QUARTER",
        Q="QUARTER",
        MM="MONTH",
        M="MONTH",
        DD="DAY",
        D="DAY",
        HH="HOUR",
        MI="MINUTE",
        N="MINUTE",
        SS="SECOND",
        S="SECOND",
    ),
    {
        exp.Like: _no_ranges,
        exp.Substring: cast(Shape, _substring()),
        exp.Convert: _tsql_convert,
        exp.Add: _plus,
        exp.Table: _without_hints,
        **_casts(_tsql_cast),
    },
    convert=True,
)


def _mysql_cast(node: exp.Expression, context: Context) -> exp.Expression | None:
    """CHAR(3) cuts and fills nothing up."""
    if _kind(node) in ("CHAR", "NCHAR") and node.args["to"].expressions:
        kind = exp.DataType(this=exp.DType.VARCHAR, expressions=node.args["to"].expressions)
        return type(node)(**{**node.args, "to": kind})
    if _kind(node).startswith("U"):
        raise refused(node, "write CAST(x AS SIGNED)")
    return _rounded(0)(node, context)


def _one_letter(node: exp.Expression, _context: Context) -> None:
    """TRIM takes off a text there, and letters here."""
    if node.args.get("expression") is not None and len(text(node.expression) or "") != 1:
        raise refused(node, "write TRIM(BOTH 'a' FROM x) with one letter")


def _mysql_week(node: exp.Expression, _context: Context) -> exp.Expression:
    """WEEK(x, 3) is that of ISO 8601; the usual one is not."""
    given = arguments(node, 1, 2, fix="WEEK(x, 3), which is that of ISO 8601")
    if len(given) == 1 or whole(given[1]) != 3:
        raise refused(node, "write WEEK(x, 3), which is that of ISO 8601")
    return exp.Extract(this=exp.var("WEEK"), expression=given[0])


def _complete(node: exp.Expression, _context: Context) -> exp.Expression:
    """TIMESTAMPDIFF(YEAR, start, end): complete years."""
    word, start, end = arguments(node, 3, fix="TIMESTAMPDIFF(YEAR, start, end)")
    if _word(word) not in ("YEAR", "SQL_TSI_YEAR"):
        raise refused(node, "write TIMESTAMPDIFF(YEAR, start, end), or DATEDIFF(end, start) for days")
    return exp.Extract(this=exp.var("YEAR"), expression=call("AGE", end, start))


def _year_and_week(node: exp.Expression, context: Context) -> exp.Expression:
    """YEARWEEK(x, 1) and YEARWEEK(x, 3): those of ISO 8601, as 202407."""
    given = arguments(node, 1, 2, fix="YEARWEEK(x, 3), which is that of ISO 8601")
    if len(given) == 1 or whole(given[1]) not in (1, 3):
        raise refused(node, "write YEARWEEK(x, 3), which is that of ISO 8601")
    one, other = context.again(given[0], 2)
    year = exp.Extract(this=exp.var("ISOYEAR"), expression=one)
    hundreds = exp.Mul(this=year, expression=number(100))
    return exp.Paren(this=exp.Add(this=hundreds, expression=exp.Extract(this=exp.var("WEEK"), expression=other)))


def _days(node: exp.Expression, _context: Context) -> exp.Expression:
    end, start = arguments(node, 2, fix="DATEDIFF(end, start)")
    return call("DATE_DIFF", exp.Literal.string("day"), start, end)


_MYSQL = Language(
    MySQL,
    (
        _COMMON
        | _MORE_NUMBERS
        | _words(
            "CHAR_LENGTH CHARACTER_LENGTH OCTET_LENGTH LTRIM RTRIM TRIM CONCAT CONCAT_WS GREATEST LEAST IFNULL UCASE",
            "LCASE LOG2 BIT_COUNT LAST_DAY DAYNAME MONTHNAME YEAR QUARTER MONTH DAY HOUR MINUTE SECOND DAYOFMONTH",
            "DAYOFWEEK DAYOFYEAR WEEKOFYEAR CURDATE UTC_DATE UTC_TIMESTAMP SYSDATE LOCALTIMESTAMP DATE TIMESTAMP",
            "TRUNCATE FROM_UNIXTIME",
        )
    )
    - _words("TRUNC"),
    {
        "LENGTH": "BYTE_LENGTH",
        "STD": lambda node, _context: Statistic(this="STDDEV_POP", expressions=node.expressions),
        "SUBSTR": _substring(negative=True),
        "SUBSTRING": _substring(negative=True),
        "MID": _substring(negative=True),
        "LEFT": _with("LEFT", constant=1, least=0),
        "RIGHT": _with("RIGHT", constant=1, least=0),
        "INSTR": _of("INSTR", least=2),
        "LOCATE": _turned("STRPOS"),
        "LOG": _logarithm(True, "LN"),
        "ISNULL": _of("ISNULL"),
        "DATE_FORMAT": _format("mysql"),
        "STR_TO_DATE": _parse("mysql", first=False),
        "DATEDIFF": _days,
        **dict.fromkeys(("DATE_ADD", "DATE_SUB", "ADDDATE", "SUBDATE"), _interval_added),
        "WEEK": _mysql_week,
        "WEEKDAY": _part("ISODOW", 1),
        "YEARWEEK": _year_and_week,
        "TIMESTAMPDIFF": _complete,
        "UNIX_TIMESTAMP": _of("UNIX_SECONDS"),
    },
    _names(""),
    {
        exp.Like: _escaped,
        exp.Trim: _one_letter,
        exp.RegexpLike: refuse("regular expressions do not tell letters apart there: write LIKE"),
        exp.Substring: cast(Shape, _substring(negative=True)),
        **_casts(_mysql_cast),
    },
    {"STDDEV": "STDDEV_POP", "VARIANCE": "VAR_POP"},
)

LANGUAGES: Mapping[str, Language] = {
    "postgres": _POSTGRES,
    "bigquery": _BIGQUERY,
    "snowflake": _SNOWFLAKE,
    "duckdb": _DUCKDB,
    "tsql": _TSQL,
    "mysql": _MYSQL,
    "redshift": _REDSHIFT,
}
"""The dialects that a question may be written in."""

NAMES = {"postgresql": "postgres", "googlesql": "bigquery", "sqlserver": "tsql", "mssql": "tsql", "mariadb": "mysql"}
"""Other names of these."""
