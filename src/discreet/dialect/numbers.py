"""The table's rows for comparisons, choices, casts and numbers."""

from __future__ import annotations

from discreet.dialect.functions import ANY, BOOLEAN, NUMBER, WHOLE, SqlFunction, named, whole_constant
from discreet.trusted.ring_a.table import LARGEST, Type

_INTEGER, _NUMBER, _BOOLEAN = Type.INTEGER, Type.NUMBER, Type.BOOLEAN
_DOUBLE = "computed in doubles, which have no overflow"
_NOT_NUMBER = "NaN becomes NULL"
_LARGE = "what is too large is infinite"
_PAIR = (NUMBER, NUMBER)
_BITS = "an integer computed beyond 64 bits counts as NULL"
_TEXTUAL = "a text that does not convert is NULL"

CONDITIONS = (
    SqlFunction("equal", (), (ANY, ANY), _BOOLEAN, "2 = 2", "true", "", "both sides are of one type", "x = y"),
    SqlFunction(
        "not_equal",
        (),
        (ANY, ANY),
        _BOOLEAN,
        "2 <> 2",
        "false",
        "",
        "both sides are of one type",
        "x <> y, x != y, a XOR b",
    ),
    SqlFunction(
        "less", (), (ANY, ANY), _BOOLEAN, "1 < 2", "true", "NaN is above all", "both sides are of one type", "x < y"
    ),
    SqlFunction(
        "less_equal",
        (),
        (ANY, ANY),
        _BOOLEAN,
        "2 <= 1",
        "false",
        "NaN is above all",
        "both sides are of one type",
        "x <= y",
    ),
    SqlFunction(
        "greater", (), (ANY, ANY), _BOOLEAN, "2 > 1", "true", "NaN is above all", "both sides are of one type", "x > y"
    ),
    SqlFunction(
        "greater_equal",
        (),
        (ANY, ANY),
        _BOOLEAN,
        "1 BETWEEN 0 AND 3",
        "true",
        "NaN is above all",
        "both sides are of one type",
        "x >= y, x BETWEEN y AND z",
    ),
    SqlFunction(
        "same",
        (),
        (ANY, ANY),
        _BOOLEAN,
        "NULL IS NOT DISTINCT FROM 1",
        "false",
        "never NULL: two NULLs are the same",
        "both sides are of one type",
        "x IS [NOT] DISTINCT FROM y, x <=> y",
    ),
    SqlFunction("and", (), (BOOLEAN, BOOLEAN), _BOOLEAN, "1 > 2 AND NULL = 1", "false", "as in SQL", "", "a AND b"),
    SqlFunction("or", (), (BOOLEAN, BOOLEAN), _BOOLEAN, "1 < 2 OR NULL = 1", "true", "as in SQL", "", "a OR b"),
    SqlFunction("not", (), (BOOLEAN,), _BOOLEAN, "NOT 1 > 2", "true", "", "", "NOT a"),
    SqlFunction(
        "is_null", (), (ANY,), _BOOLEAN, "NULL IS NULL", "true", "never NULL", "", "x IS [NOT] NULL, a IS UNKNOWN"
    ),
    SqlFunction("is_true", (), (BOOLEAN,), _BOOLEAN, "(1 > 0) IS TRUE", "true", "never NULL", "", "a IS [NOT] TRUE"),
    SqlFunction(
        "is_false", (), (BOOLEAN,), _BOOLEAN, "(1 > 0) IS FALSE", "false", "never NULL", "", "a IS [NOT] FALSE"
    ),
    SqlFunction(
        "in", (), (ANY, ANY), _BOOLEAN, "2 IN (1, 2)", "true", "", "constants of one type", "x [NOT] IN (1, 2)"
    ),
    SqlFunction(
        "case",
        ("IF", "IFF", "NVL2"),
        (BOOLEAN, ANY, ANY),
        "common",
        "CASE WHEN 1 > 2 THEN 5 ELSE 6 END",
        "6",
        "a condition that is NULL counts as false",
        "results are of one type",
        "CASE … END, IF(a, x, y), NVL2(x, y, z)",
        form="case",
    ),
    SqlFunction(
        "coalesce",
        ("COALESCE", "IFNULL", "NVL"),
        (ANY,),
        "common",
        "COALESCE(NULL, 3)",
        "3",
        "the first that is not NULL",
        "values are of one type",
        most=100,
        form="alike",
    ),
    SqlFunction(
        "nullif", ("NULLIF",), (ANY, ANY), "common", "NULLIF(3, 3)", None, "NULL where both are equal", form="alike"
    ),
    SqlFunction(
        "greatest",
        ("GREATEST",),
        (ANY,),
        "common",
        "GREATEST(1, 5, 3)",
        "5",
        "NULL where any is NULL",
        most=50,
        form="alike",
    ),
    SqlFunction(
        "least", ("LEAST",), (ANY,), "common", "LEAST(4, 2)", "2", "NULL where any is NULL", most=50, form="alike"
    ),
)

CASTS = (
    SqlFunction(
        "to_integer",
        (),
        (ANY,),
        _INTEGER,
        "CAST('12' AS INTEGER)",
        "12",
        f"{_TEXTUAL}; halves are rounded away from zero; NULL beyond 64 bits; true is 1",
        "TRY_CAST",
        "CAST(x AS INTEGER), TRY_CAST, SAFE_CAST, x::INTEGER (INT, INT64, BIGINT)",
        whole=True,
        form="cast",
    ),
    SqlFunction(
        "to_number",
        (),
        (ANY,),
        _NUMBER,
        "CAST('x' AS DOUBLE)",
        None,
        f"{_TEXTUAL}; true is 1",
        "TRY_CAST",
        "CAST(x AS DOUBLE) (FLOAT, FLOAT64, REAL, NUMERIC, DECIMAL; DECIMAL(10, 2) rounds to 2 digits)",
        form="cast",
    ),
    SqlFunction(
        "to_text",
        (),
        (ANY,),
        Type.TEXT,
        "CAST(12 AS TEXT)",
        "12",
        "",
        "the engine's text of a value is short",
        "CAST(x AS TEXT) (STRING, VARCHAR)",
        form="cast",
    ),
    SqlFunction(
        "to_boolean",
        (),
        (ANY,),
        _BOOLEAN,
        "CAST('yes' AS BOOLEAN)",
        "true",
        f"{_TEXTUAL}; a number is true unless it is 0",
        "TRY_CAST",
        "CAST(x AS BOOLEAN) (BOOL)",
        form="cast",
    ),
    SqlFunction(
        "to_date",
        ("DATE", "TO_DATE"),
        (ANY,),
        Type.DATE,
        "TRY_CAST('2020-13-01' AS DATE)",
        None,
        f"{_TEXTUAL}, and so is what lies outside the years 1 to 9999; a constant that is no date is refused",
        "TRY_CAST, then the calendar's ends",
        "CAST(x AS DATE), DATE(x), DATE '2020-01-31'",
        form="cast",
    ),
    SqlFunction(
        "to_timestamp",
        ("TIMESTAMP", "DATETIME"),
        (ANY,),
        Type.TIMESTAMP,
        "CAST('2020-01-31 10:20:30' AS TIMESTAMP)",
        "2020-01-31 10:20:30",
        f"{_TEXTUAL}, and so is what lies outside the years 1 to 9999; a date is its midnight",
        "TRY_CAST, then the calendar's ends",
        "CAST(x AS TIMESTAMP) (DATETIME), TIMESTAMP(x)",
        form="cast",
    ),
)

ARITHMETIC = (
    SqlFunction("add", ("SAFE_ADD",), _PAIR, "common", "2 + 3", "5", _LARGE, _DOUBLE, "x + y, SAFE_ADD(x, y)"),
    SqlFunction(
        "subtract", ("SAFE_SUBTRACT",), _PAIR, "common", "2 - 3", "-1", _LARGE, _DOUBLE, "x - y, SAFE_SUBTRACT(x, y)"
    ),
    SqlFunction(
        "multiply", ("SAFE_MULTIPLY",), _PAIR, "common", "2 * 3", "6", _LARGE, _DOUBLE, "x * y, SAFE_MULTIPLY(x, y)"
    ),
    SqlFunction(
        "divide",
        ("SAFE_DIVIDE",),
        _PAIR,
        _NUMBER,
        "7 / 2",
        "3.5",
        "x / 0 is NULL; two integers give a number with its fraction",
        "the divisor 0 becomes NULL",
        "x / y, SAFE_DIVIDE(x, y)",
    ),
    SqlFunction("negate", ("SAFE_NEGATE",), (NUMBER,), "same", "-(3)", "-3", _LARGE, _DOUBLE, "-x, SAFE_NEGATE(x)"),
    SqlFunction("absolute", ("ABS",), (NUMBER,), "same", "ABS(-3)", "3", _LARGE, _DOUBLE),
    SqlFunction(
        "ieee_divide",
        ("IEEE_DIVIDE",),
        _PAIR,
        _NUMBER,
        "IEEE_DIVIDE(0, 0)",
        None,
        "x / 0 is infinite, 0 / 0 is NULL",
        _NOT_NUMBER,
    ),
    SqlFunction(
        "modulo",
        ("MOD",),
        _PAIR,
        "common",
        "MOD(-7, 3)",
        "-1",
        "by 0 it is NULL; the sign is that of x",
        "the divisor 0 becomes NULL",
        "x % y, MOD(x, y)",
    ),
    SqlFunction(
        "quotient",
        ("DIV",),
        _PAIR,
        _INTEGER,
        "DIV(-7, 2)",
        "-3",
        "by 0 it is NULL; cut towards zero",
        "the divisor 0 becomes NULL",
        "x DIV y, DIV(x, y)",
    ),
    SqlFunction("sign", ("SIGN",), (NUMBER,), _INTEGER, "SIGN(-2.5)", "-1", "", _NOT_NUMBER, whole=True),
    SqlFunction("floor", ("FLOOR",), (NUMBER,), _INTEGER, "FLOOR(-1.5)", "-2", _LARGE, _DOUBLE),
    SqlFunction("ceiling", ("CEIL", "CEILING"), (NUMBER,), _INTEGER, "CEIL(1.2)", "2", _LARGE, _DOUBLE),
    SqlFunction(
        "round",
        ("ROUND",),
        (NUMBER, whole_constant(-15, 15, 0)),
        "rounded",
        "ROUND(2.345, 1)",
        "2.3",
        "halves away from zero; without a step as doubles are: ROUND(2.675, 2) may be 2.67; an integer where n is at "
        "most 0",
        "n is a constant",
        form="round",
    ),
    SqlFunction(
        "truncate",
        ("TRUNC",),
        (NUMBER, whole_constant(-15, 15, 0)),
        "rounded",
        "TRUNC(-1.7)",
        "-1",
        "towards zero; an integer where n is at most 0",
        "n is a constant",
        form="round",
    ),
    SqlFunction(
        "width_bucket",
        ("WIDTH_BUCKET",),
        (
            NUMBER,
            named(NUMBER, "low"),
            named(NUMBER, "high"),
            whole_constant(1, 10_000),
        ),
        _INTEGER,
        "WIDTH_BUCKET(5, 0, 10, 4)",
        "3",
        "0 below low, n + 1 from high on",
        "low < high are constants",
        whole=True,
        form="bucket",
    ),
    SqlFunction("is_nan", ("IS_NAN", "ISNAN"), (NUMBER,), _BOOLEAN, "IS_NAN(1.5)", "false"),
    SqlFunction("is_infinite", ("IS_INF", "ISINF"), (NUMBER,), _BOOLEAN, "IS_INF(1.5)", "false"),
    SqlFunction("is_finite", ("IS_FINITE", "ISFINITE"), (NUMBER,), _BOOLEAN, "IS_FINITE(1.5)", "true"),
    SqlFunction("zero_if_null", ("ZEROIFNULL",), (NUMBER,), "same", "ZEROIFNULL(4)", "4", "0 where it is NULL"),
    SqlFunction("null_if_zero", ("NULLIFZERO",), (NUMBER,), "same", "NULLIFZERO(0)", None, "NULL where it is 0"),
)


def _curve(operator: str, names: tuple[str, ...], example: str, result: str | None, edges: str = "") -> SqlFunction:
    """A function of one number that gives a number."""
    return SqlFunction(operator, names, (NUMBER,), _NUMBER, example, result, edges, _NOT_NUMBER)


CURVES = (
    _curve("square_root", ("SQRT",), "SQRT(9)", "3.0", "below 0 it is NULL"),
    _curve("cube_root", ("CBRT",), "CBRT(8)", "2.0"),
    _curve("exponential", ("EXP",), "EXP(0)", "1.0", _LARGE),
    _curve("logarithm", ("LN",), "LN(1)", "0.0", "0 and below are NULL"),
    _curve("logarithm_10", ("LOG10",), "LOG10(1000)", "3.0", "0 and below are NULL"),
    _curve("logarithm_2", ("LOG2",), "LOG2(8)", "3.0", "0 and below are NULL"),
    SqlFunction(
        "logarithm_base",
        ("LOG",),
        (NUMBER, named(NUMBER, "base")),
        _NUMBER,
        "LOG(1, 2)",
        "0.0",
        "LOG(x) is LN(x), as in GoogleSQL; NULL at 0 and below, and for the base 1",
        "NaN and the divisor 0 become NULL",
        "LOG(x), LOG(x, base)",
        form="logarithm",
    ),
    SqlFunction(
        "power",
        ("POWER", "POW"),
        _PAIR,
        _NUMBER,
        "POWER(2, 10)",
        "1024.0",
        f"{_LARGE}; NULL for a root of a negative number",
        _NOT_NUMBER,
    ),
    _curve("sine", ("SIN",), "SIN(0)", "0.0", "NULL at infinity"),
    _curve("cosine", ("COS",), "COS(0)", "1.0", "NULL at infinity"),
    _curve("tangent", ("TAN",), "TAN(0)", "0.0", "NULL at infinity"),
    _curve("arc_sine", ("ASIN",), "ASIN(0)", "0.0", "NULL outside −1 to 1"),
    _curve("arc_cosine", ("ACOS",), "ACOS(1)", "0.0", "NULL outside −1 to 1"),
    _curve("arc_tangent", ("ATAN",), "ATAN(0)", "0.0"),
    SqlFunction("arc_tangent_2", ("ATAN2",), _PAIR, _NUMBER, "ATAN2(0, 1)", "0.0", "ATAN2(y, x)", _NOT_NUMBER),
    _curve("hyperbolic_sine", ("SINH",), "SINH(0)", "0.0", _LARGE),
    _curve("hyperbolic_cosine", ("COSH",), "COSH(0)", "1.0", _LARGE),
    _curve("hyperbolic_tangent", ("TANH",), "TANH(0)", "0.0"),
    _curve("area_sine", ("ASINH",), "ASINH(0)", "0.0"),
    _curve("area_cosine", ("ACOSH",), "ACOSH(1)", "0.0", "NULL below 1"),
    _curve("area_tangent", ("ATANH",), "ATANH(0)", "0.0", "NULL outside −1 to 1"),
    _curve("degrees", ("DEGREES",), "DEGREES(0)", "0.0", _LARGE),
    _curve("radians", ("RADIANS",), "RADIANS(0)", "0.0"),
    SqlFunction("pi", ("PI",), (), _NUMBER, "PI()", "3.141592653589793"),
)

BITS = (
    SqlFunction(
        "bit_and", (), (WHOLE, WHOLE), _INTEGER, "6 & 3", "2", _BITS, "TRY_CAST to 64 bits", "x & y", whole=True
    ),
    SqlFunction(
        "bit_or", (), (WHOLE, WHOLE), _INTEGER, "6 | 3", "7", _BITS, "TRY_CAST to 64 bits", "x | y", whole=True
    ),
    SqlFunction(
        "bit_xor", (), (WHOLE, WHOLE), _INTEGER, "6 ^ 3", "5", _BITS, "TRY_CAST to 64 bits", "x ^ y", whole=True
    ),
    SqlFunction("bit_not", (), (WHOLE,), _INTEGER, "~6", "-7", _BITS, "TRY_CAST to 64 bits", "~x", whole=True),
    SqlFunction(
        "shift_right",
        (),
        (WHOLE, whole_constant(0, 62)),
        _INTEGER,
        "12 >> 2",
        "3",
        _BITS,
        "n is a constant from 0 to 62",
        "x >> n",
        whole=True,
    ),
    SqlFunction("bit_count", ("BIT_COUNT",), (WHOLE,), _INTEGER, "BIT_COUNT(7)", "3", _BITS, whole=True),
)

_STEP = (NUMBER, whole_constant(1, LARGEST), whole_constant(1, LARGEST))

STEPS = (
    SqlFunction("in_steps", (), _STEP, _NUMBER, "", None, "the whole number nearest to x·q/p", _DOUBLE),
    SqlFunction("from_steps", (), _STEP, _NUMBER, "", None, "x·p/q", _DOUBLE),
)
"""What nobody writes: plans have them around arithmetic on decimals (`dialect.steps`)."""
