"""How DuckDB writes queries on what was released and on public tables: its functions by the dialect's names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce

import sqlglot
from sqlglot import exp

_SAME = frozenset(
    [
        "ABS",
        "ACOS",
        "ACOSH",
        "ASCII",
        "ASIN",
        "ASINH",
        "ATAN",
        "ATAN2",
        "ATANH",
        "BIT_COUNT",
        "CBRT",
        "CEIL",
        "CEILING",
        "COALESCE",
        "CONCAT_WS",
        "CONTAINS",
        "COS",
        "COSH",
        "DAYNAME",
        "DEGREES",
        "ENDS_WITH",
        "EXP",
        "FLOOR",
        "HOUR",
        "INSTR",
        "ISFINITE",
        "ISINF",
        "ISNAN",
        "ISODOW",
        "ISOYEAR",
        "LAST_DAY",
        "LCASE",
        "LEFT",
        "LEN",
        "LENGTH",
        "LN",
        "LOG",
        "LOG10",
        "LOG2",
        "LOWER",
        "LPAD",
        "LTRIM",
        "MD5",
        "MINUTE",
        "MOD",
        "MONTH",
        "MONTHNAME",
        "NULLIF",
        "PI",
        "POW",
        "POWER",
        "QUARTER",
        "RADIANS",
        "REGEXP_EXTRACT",
        "REGEXP_FULL_MATCH",
        "REGEXP_MATCHES",
        "REGEXP_REPLACE",
        "REPLACE",
        "REVERSE",
        "RIGHT",
        "ROUND",
        "RPAD",
        "RTRIM",
        "SECOND",
        "SIGN",
        "SIN",
        "SINH",
        "SPLIT_PART",
        "SQRT",
        "STARTS_WITH",
        "STRIP_ACCENTS",
        "STRPOS",
        "SUBSTR",
        "SUBSTRING",
        "TAN",
        "TANH",
        "TRANSLATE",
        "TRIM",
        "TRUNC",
        "UCASE",
        "UNICODE",
        "UPPER",
        "WEEK",
        "WEEKOFYEAR",
        "YEAR",
        "DAY",
        "DAYOFMONTH",
        "DAYOFYEAR",
        "EPOCH",
        "MAKE_DATE",
        "CHR",
        "REPEAT",
        "LIST_VALUE",
        "LIST_SUM",
        "LIST_AVG",
        "LIST_MIN",
        "LIST_MAX",
        "ARRAY_LENGTH",
        "DATE_PART",
    ]
)
"""Functions that DuckDB has by the same name."""

_OVER_ROWS = frozenset(
    [
        "MEDIAN",
        "VAR_POP",
        "VAR_SAMP",
        "VARIANCE",
        "STDDEV_POP",
        "STDDEV_SAMP",
        "STDDEV",
        "COVAR_POP",
        "COVAR_SAMP",
        "CORR",
        "QUANTILE",
        "QUANTILE_CONT",
        "QUANTILE_DISC",
        "MODE",
        "FIRST",
        "LAST",
        "ANY_VALUE",
        "ARG_MIN",
        "ARG_MAX",
        "STRING_AGG",
        "LIST",
        "ARRAY_AGG",
        "BOOL_AND",
        "BOOL_OR",
        "LOGICAL_AND",
        "LOGICAL_OR",
        "SUM",
        "AVG",
        "MIN",
        "MAX",
        "PRODUCT",
        "ROW_NUMBER",
        "RANK",
        "DENSE_RANK",
        "PERCENT_RANK",
        "CUME_DIST",
        "NTILE",
        "LAG",
        "LEAD",
        "FIRST_VALUE",
        "LAST_VALUE",
        "NTH_VALUE",
        "COUNTIF",
        "COUNT_IF",
        "PERCENTILE_CONT",
        "PERCENTILE_DISC",
    ]
)
"""The same, of those that read several rows."""

_MAKING = frozenset(["UNNEST", "RANGE", "GENERATE_SERIES"])
"""The same, of those that make rows, or lists of numbers."""

_CAPITALS = (
    "ARRAY_TO_STRING(LIST_TRANSFORM(STRING_SPLIT(LOWER({0}), ' '),"
    " LAMBDA w : UPPER(LEFT(w, 1)) || SUBSTRING(w, 2)), ' ')"
)
_BUCKET = (
    "CASE WHEN {0} < {1} THEN 0 WHEN {0} >= {2} THEN {3} + 1"
    " ELSE CAST(FLOOR(({0} - {1}) * {3} / ({2} - {1})) AS BIGINT) + 1 END"
)
_FORMS: Mapping[str, Mapping[int, str]] = {
    "CHARACTER_LENGTH": {1: "LENGTH({0})"},
    "CHAR_LENGTH": {1: "LENGTH({0})"},
    "CONTAINS_SUBSTR": {2: "CONTAINS(LOWER({0}), LOWER({1}))"},
    "COUNTIF": {1: "COUNT_IF({0})"},
    "COUNT_IF": {1: "COUNT_IF({0})"},
    "DATE": {1: "TRY_CAST({0} AS DATE)", 3: "MAKE_DATE({0}, {1}, {2})"},
    "DATETIME": {1: "TRY_CAST({0} AS TIMESTAMP)"},
    "TIMESTAMP": {1: "TRY_CAST({0} AS TIMESTAMP)"},
    "TO_DATE": {1: "TRY_CAST({0} AS DATE)"},
    "DATE_ADD": {2: "{0} + {1}"},
    "DATETIME_ADD": {2: "{0} + {1}"},
    "TIMESTAMP_ADD": {2: "{0} + {1}"},
    "DATE_SUB": {2: "{0} - {1}"},
    "DATETIME_SUB": {2: "{0} - {1}"},
    "TIMESTAMP_SUB": {2: "{0} - {1}"},
    "DIV": {2: "{0} // NULLIF({1}, 0)"},
    "DAYOFWEEK": {1: "DAYOFWEEK({0}) + 1"},
    "DOW": {1: "DAYOFWEEK({0})"},
    "ENDSWITH": {2: "ENDS_WITH({0}, {1})"},
    "FORMAT_DATE": {2: "STRFTIME({1}, {0})"},
    "FORMAT_DATETIME": {2: "STRFTIME({1}, {0})"},
    "FORMAT_TIMESTAMP": {2: "STRFTIME({1}, {0})"},
    "STRFTIME": {2: "STRFTIME({0}, {1})"},
    "IEEE_DIVIDE": {2: "CAST({0} AS DOUBLE) / {1}"},
    "IF": {3: "CASE WHEN {0} THEN {1} ELSE {2} END", 2: "CASE WHEN {0} THEN {1} END"},
    "IFF": {3: "CASE WHEN {0} THEN {1} ELSE {2} END"},
    "IFNULL": {2: "COALESCE({0}, {1})"},
    "NVL": {2: "COALESCE({0}, {1})"},
    "NVL2": {3: "CASE WHEN {0} IS NOT NULL THEN {1} ELSE {2} END"},
    "NULLIFZERO": {1: "NULLIF({0}, 0)"},
    "ZEROIFNULL": {1: "COALESCE({0}, 0)"},
    "INITCAP": {1: _CAPITALS},
    "ISOWEEK": {1: "WEEK({0})"},
    "IS_FINITE": {1: "ISFINITE({0})"},
    "IS_INF": {1: "ISINF({0})"},
    "IS_NAN": {1: "ISNAN({0})"},
    "MID": {3: "SUBSTRING({0}, {1}, {2})"},
    "OCTET_LENGTH": {1: "STRLEN({0})"},
    "BYTE_LENGTH": {1: "STRLEN({0})"},
    "PERCENTILE_CONT": {2: "QUANTILE_CONT({0}, {1})"},
    "PERCENTILE_DISC": {2: "QUANTILE_DISC({0}, {1})"},
    "REGEXP_CONTAINS": {2: "REGEXP_MATCHES({0}, {1})"},
    "REGEXP_LIKE": {2: "REGEXP_MATCHES({0}, {1})"},
    "REGEXP_SUBSTR": {2: "REGEXP_EXTRACT({0}, {1})"},
    "SAFE_ADD": {2: "{0} + {1}"},
    "SAFE_SUBTRACT": {2: "{0} - {1}"},
    "SAFE_MULTIPLY": {2: "{0} * {1}"},
    "SAFE_DIVIDE": {2: "{0} / NULLIF({1}, 0)"},
    "SAFE_NEGATE": {1: "-({0})"},
    "STARTSWITH": {2: "STARTS_WITH({0}, {1})"},
    "UNACCENT": {1: "STRIP_ACCENTS({0})"},
    "UNIX_DATE": {1: "DATE_DIFF('day', DATE '1970-01-01', {0})"},
    "UNIX_SECONDS": {1: "CAST(EPOCH({0}) AS BIGINT)"},
    "WIDTH_BUCKET": {4: _BUCKET},
    "BTRIM": {1: "TRIM({0})", 2: "TRIM({0}, {1})"},
    "\x1fINFINITE": {0: "CAST('Infinity' AS DOUBLE)"},
}  # fmt: skip
"""Functions that it has in another form, by the number of their arguments."""

_ENDS = {"\x1fLOWER END": "-Infinity", "\x1fUPPER END": "Infinity"}
"""Functions of a number and a size: this where the number is of that size, else the number."""

_EXTREMES = {"GREATEST": "LIST_MAX", "LEAST": "LIST_MIN"}
"""Functions that are NULL where an argument is, by those that leave NULLs out."""

_SKIPPING = {"\x1fLEAST": "LEAST", "\x1fGREATEST": "GREATEST"}
"""Functions that leave NULLs out, by DuckDB's names."""

_TRUNCATED = ("DATE_TRUNC", "TIMESTAMP_TRUNC", "DATETIME_TRUNC")
_DIFFERENCES = ("DATE_DIFF", "DATEDIFF", "DATETIME_DIFF")
_FAILING = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.IntDiv, exp.Neg, exp.Anonymous),
    *(exp.Chr, exp.Repeat, exp.Substring, exp.RegexpReplace),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Case),
)
"""What fails for some values: a whole number that is too large, a division by 0, a text that is no date."""
_COMPUTING = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.IntDiv, exp.Neg, exp.Anonymous)
"""Those of them that compute with what is gathered of several rows."""
_HELD = "\x1fheld"
"""What is called so in no question: its names hold no control characters."""


def known(name: str) -> bool:
    """Whether a query on released tables may call a function of this name."""
    return any(
        name in names
        for names in (_SAME, _OVER_ROWS, _MAKING, _FORMS, _EXTREMES, _TRUNCATED, _DIFFERENCES, ("CONCAT",))
    )


def gathers(node: exp.Expr) -> bool:
    """Whether a node is a function that reads several rows."""
    return isinstance(node, exp.AggFunc | exp.Window) or _name(node) in _OVER_ROWS


def _name(node: exp.Expr) -> str:
    """A function's name; nothing where the node is none."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper()
    return type(node).sql_name() if isinstance(node, exp.Func) else ""


def text(tree: exp.Expr) -> str:
    """A query as DuckDB reads it. What would fail for a value of a row is NULL there."""
    return _written(tree.copy()).sql(dialect="duckdb", copy=False)


def _written(node: exp.Expr, *, safe: bool = False) -> exp.Expr:
    """A node in DuckDB's form; `safe` says that TRY stands around it already."""
    alone = not safe and isinstance(node, _FAILING) and not any(_untried(one) for one in node.walk())
    alone &= not isinstance(node.parent, exp.Join)  # joins are made of plain conditions
    alone &= not (isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal))
    if not (alone or safe) and isinstance(node, _COMPUTING) and not any(_name(one) in _MAKING for one in node.walk()):
        held = [] if _untried(node) else _held(node)
        if held:
            return _tried(_written(node, safe=True), [_written(one) for one in held])
    for name, value in list(node.args.items()):
        if isinstance(value, exp.Expr):
            node.set(name, _written(value, safe=safe or alone))
        elif isinstance(value, list):
            node.set(name, [_written(one, safe=safe or alone) if isinstance(one, exp.Expr) else one for one in value])
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        kind = node.args["to"]
        if kind.this is exp.DType.FLOAT:  # of eight bytes, as where rows are computed
            kind = exp.DataType(this=exp.DType.DOUBLE)
        return exp.TryCast(this=node.this, to=kind)
    if isinstance(node, exp.Mod | exp.IntDiv) and not alone and not safe:
        node.set("expression", exp.Nullif(this=node.expression, expression=exp.Literal.number(0)))
    made = _called(node)
    return exp.Anonymous(this="TRY", expressions=[made]) if alone else made


def _untried(node: exp.Expr) -> bool:
    """Whether no TRY may stand around a node."""
    return isinstance(node, exp.Query) or gathers(node) or _name(node) in _MAKING


_PARTS = {"ISOWEEK": "WEEK", "WEEKOFYEAR": "WEEK", "DAYOFYEAR": "DOY"}
"""Parts of dates that DuckDB has by another name."""


def _part(node: exp.Extract) -> exp.Expr:
    """EXTRACT(… FROM date), where Sunday is day 1 of the week."""
    part = node.name.upper()
    if part == "DAYOFWEEK":
        moment = node.expression.sql(dialect="duckdb")
        return exp.Paren(this=_parsed(f"DAYOFWEEK({moment}) + 1"))
    return exp.Extract(this=exp.var(_PARTS.get(part, part)), expression=node.expression)


def _weeks(first: str, last: str) -> str:
    """How many Mondays lie between: the engine counts weeks from the first moment on."""
    days = f"DATE_DIFF('day', DATE_TRUNC('week', {first}), DATE_TRUNC('week', {last}))"
    return f"{days} // 7"


def _held(node: exp.Expr) -> list[exp.Expr]:
    """Takes out of a node what no TRY may stand around; in its places the fields stand of what holds all of it."""
    found: list[exp.Expr] = []

    def walk(one: exp.Expr) -> None:
        for inner in list(one.iter_expressions()):
            if _whole(inner):
                found.append(inner)
                field = exp.Anonymous(
                    this="STRUCT_EXTRACT",
                    expressions=[exp.column(_HELD, quoted=True), exp.Literal.number(len(found))],
                )
                inner.replace(field)
            else:
                walk(inner)

    walk(node)
    return found


def _whole(node: exp.Expr) -> bool:
    """Whether a node is a value of several rows, with all that belongs to it."""
    if isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls | exp.Subquery | exp.Exists):
        return True
    return gathers(node) or (isinstance(node, exp.In) and node.args.get("query") is not None)


def _tried(node: exp.Expr, held: list[exp.Expr]) -> exp.Expr:
    """TRY of a node, around what is gathered of several rows: DuckDB computes that outside, and hands it in."""
    body = exp.Lambda(
        this=exp.Anonymous(this="TRY", expressions=[node]),
        expressions=[exp.to_identifier(_HELD, quoted=True)],
        colon=True,
    )
    return _applied(exp.Anonymous(this="ROW", expressions=held), body)


def _end(value: exp.Expr, size: exp.Expr, infinite: str) -> exp.Expr:
    held = exp.column(_HELD, quoted=True)
    beyond = exp.GTE(this=exp.Anonymous(this="ABS", expressions=[held]), expression=size)
    far = exp.cast(exp.Literal.string(infinite), "double")
    case = exp.Case(ifs=[exp.If(this=beyond, true=far)], default=held.copy())
    return _applied(value, exp.Lambda(this=case, expressions=[exp.to_identifier(_HELD, quoted=True)], colon=True))


def _extreme(name: str, values: Sequence[exp.Expr]) -> exp.Expr:
    """The greatest or least of values; NULL where one is."""
    held = exp.column(_HELD, quoted=True)
    count = exp.Anonymous(this="LIST_COUNT", expressions=[held])
    whole = exp.EQ(this=count, expression=exp.Literal.number(len(values)))
    case = exp.Case(ifs=[exp.If(this=whole, true=exp.Anonymous(this=name, expressions=[held.copy()]))])
    function = exp.Lambda(this=case, expressions=[exp.to_identifier(_HELD, quoted=True)], colon=True)
    return _applied(exp.Array(expressions=list(values)), function)


def _applied(value: exp.Expr, function: exp.Lambda) -> exp.Expr:
    """A function of one value, which is computed once."""
    applied = exp.Anonymous(this="LIST_TRANSFORM", expressions=[exp.Array(expressions=[value]), function])
    return exp.Anonymous(this="LIST_EXTRACT", expressions=[applied, exp.Literal.number(1)])


def _called(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Extract):
        return _part(node)
    if not isinstance(node, exp.Anonymous):
        return node
    name = str(node.this).upper()
    if name in _ENDS:
        value, size = node.expressions
        return _end(value, size, _ENDS[name])
    if name in _EXTREMES and node.expressions:
        return _extreme(_EXTREMES[name], node.expressions)
    if name == "CONCAT" and node.expressions:
        return exp.Paren(this=reduce(lambda one, other: exp.DPipe(this=one, expression=other), node.expressions))
    if name in _SKIPPING:
        return exp.Anonymous(this=_SKIPPING[name], expressions=node.expressions)
    if name not in (*_FORMS, *_TRUNCATED, *_DIFFERENCES):
        return exp.Anonymous(this=name, expressions=node.expressions)
    arguments = [one.sql(dialect="duckdb") for one in node.expressions]
    form = _FORMS.get(name, {}).get(len(arguments))
    if name in _TRUNCATED and len(arguments) == 2:
        part, moment = _part_first(node.expressions, arguments)
        form, arguments = "DATE_TRUNC({0}, {1})", [part, moment]
    if name in _DIFFERENCES and len(arguments) == 3:
        first = node.expressions[0]
        if isinstance(first, exp.Literal) and first.is_string:
            form = "DATE_DIFF({0}, {1}, {2})"
        else:  # end, start, PART
            form, arguments = "DATE_DIFF({0}, {1}, {2})", [_word(node.expressions[2]), arguments[1], arguments[0]]
    if form is not None and name in _DIFFERENCES and arguments[0].strip("'").lower() in ("week", "isoweek"):
        form = _weeks("{1}", "{2}")
    if form is None:
        return exp.Anonymous(this=name, expressions=node.expressions)
    return exp.Paren(this=_parsed(form.format(*(f"({one})" for one in arguments))))


def _parsed(written: str) -> exp.Expr:
    return sqlglot.parse_one(written, dialect="duckdb")


def _part_first(nodes: Sequence[exp.Expr], arguments: Sequence[str]) -> tuple[str, str]:
    """The part of a date, as a text, and the date, whichever comes first."""
    if isinstance(nodes[0], exp.Literal):
        return arguments[0], arguments[1]
    return _word(nodes[1]), arguments[0]


def _word(node: exp.Expr) -> str:
    return "'" + re.sub(r"\W", "", node.name).lower() + "'"
