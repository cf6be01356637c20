"""Questions made from the dialect's table: every function on columns of every type it takes, and awkward rows."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import pyarrow

from discreet.audit.hostile import CONSTANTS, EDGES, PATTERNS, TEXTS
from discreet.dialect.functions import Argument, ArgumentKind, SqlFunction
from discreet.dialect.table import TABLE
from discreet.dialect.texts import UNITS
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.sql.expressions import ExpressionReader
from discreet.sql.grammar import parse
from discreet.trusted.ring_a.expressions import ColumnOf, Expression
from discreet.trusted.ring_a.table import Column, Type
from discreet.trusted.ring_a.terms import compiled
from discreet.trusted.ring_b.scalars import BUILDERS

VALUES = EDGES
COLUMNS: dict[str, dict[str, Any]] = {f"{kind}_{side}": {"type": str(kind)} for kind in VALUES for side in (1, 2)}
COLUMNS["number_2"]["step"] = 0.01
ENGINE = {
    Type.NUMBER: "DOUBLE",
    Type.TEXT: "VARCHAR",
    Type.BOOLEAN: "BOOLEAN",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}

NUMBERS = ["integer_1", "number_1", "number_2 * number_1", "integer_1 + integer_2", "LENGTH(text_1)"]
NUMBERS += ["number_2 / 0.03 - 1.5 * integer_1"]
KINDS: dict[ArgumentKind, list[str]] = {
    ArgumentKind.NUMBER: NUMBERS,
    ArgumentKind.WHOLE: ["integer_1", "integer_2", "integer_1 * integer_2", "LENGTH(text_1)", "3"],
    ArgumentKind.TEXT: ["text_1", "text_2", "UPPER(text_1)", "CAST(number_1 AS TEXT)", "NULL"],
    ArgumentKind.BOOLEAN: ["boolean_1", "number_1 > 1", "NULL IS NULL"],
    ArgumentKind.MOMENT: [
        "date_1",
        "timestamp_1",
        "date_1 + INTERVAL 1 MONTH",
        "CAST(text_1 AS TIMESTAMP)",
        "'2020-02-29'",
    ],
    ArgumentKind.ANY: [f"{kind}_1" for kind in VALUES],
}
PAIRS = [f"{kind}_1, {kind}_2" for kind in VALUES] + ["integer_1, number_1", "number_1, 0.5", "text_1, 'a', text_2"]

TEMPLATES: dict[str, list[str]] = {
    "same": [f"{kind}_1 IS DISTINCT FROM {kind}_2" for kind in VALUES] + ["integer_1 <=> number_1", "date_1 <=> NULL"],
    "is_true": ["boolean_1 IS TRUE", "(number_1 > 0) IS NOT TRUE"],
    "is_false": ["boolean_1 IS FALSE", "(number_1 > 0) IS NOT FALSE"],
    "coalesce": [f"COALESCE({pair})" for pair in PAIRS],
    "nullif": [f"NULLIF({pair})" for pair in PAIRS[:-1]],
    "greatest": [f"GREATEST({pair})" for pair in PAIRS],
    "least": [f"LEAST({pair})" for pair in PAIRS] + ["LEAST(LENGTH(text_1), 3)"],
    "case": ["IF(boolean_1, integer_1, number_1)", "IFF(boolean_1, text_1)", "NVL2(date_1, LENGTH(text_1), 5)"],
    "to_integer": [f"CAST({one} AS INTEGER)" for one in (*NUMBERS, "text_1", "boolean_1")],
    "to_number": [f"({one})::DOUBLE" for one in (*NUMBERS, "text_1", "boolean_1")],
    "to_text": [f"CAST({one} AS TEXT)" for one in (*NUMBERS, *KINDS[ArgumentKind.ANY])],
    "to_boolean": [f"CAST({one} AS BOOLEAN)" for one in (*NUMBERS, "text_1", "boolean_1")],
    "to_date": ["SAFE_CAST(text_1 AS DATE)", "DATE(timestamp_1)", "DATE(date_1)", "TRY_CAST('x' AS DATE)"],
    "to_timestamp": ["TRY_CAST(text_1 AS TIMESTAMP)", "TIMESTAMP(date_1)", "timestamp_1::TIMESTAMP"],
    "width_bucket": [f"WIDTH_BUCKET({one}, -1, 2.5, 10)" for one in NUMBERS] + ["WIDTH_BUCKET(number_1, 0, 1e299, 3)"],
    "bit_and": ["integer_1 & integer_2", "integer_1 * integer_2 & -1", "LENGTH(text_1) & 3"],
    "bit_or": ["integer_1 | integer_2"],
    "bit_xor": ["integer_1 ^ integer_2"],
    "bit_not": ["~integer_1", "~(integer_1 + 1)"],
    "shift_right": ["integer_1 >> 0", "integer_1 >> 62"],
    "logarithm_base": ["LOG(number_1)", "LOG(number_1, number_2)", "LOG(integer_1, 10)", "LOG(integer_1, 1)"],
    "replace": ["REPLACE(text_1, 'a', '🙂')", "REPLACE(text_1, 'a-', '')", "REPLACE(text_1, ' ', 'b')"],
    "translate": ["TRANSLATE(text_1, 'a-b', '🙂')", "TRANSLATE(text_1, 'aa', 'xy')"],
    "concatenate": ["text_1 || '-' || text_2", "CONCAT(text_1, text_2, 'x')", "CONCAT(text_1)"],
    "like_escape": [f"text_1 LIKE '{p}' ESCAPE '{e}'" for p, e in (("a!%", "!"), ("%!!", "!"), ("%\\_b", "\\"))],
    "ilike": [f"text_1 ILIKE '{pattern}'" for pattern in TEXTS["'pattern'"]] + ["text_1 NOT ILIKE 'A%'"],
    "matches": [f"REGEXP_CONTAINS(text_1, '{pattern}')" for pattern in PATTERNS] + ["text_1 ~* 'A+'"],
    "date_trunc": [f"DATE_TRUNC('{unit}', {one})" for unit in UNITS for one in KINDS[ArgumentKind.MOMENT]]
    + ["DATE_TRUNC(date_1, MONTH)"],
    "date_diff": [f"DATE_DIFF({one}, timestamp_2, {unit})" for unit in UNITS for one in KINDS[ArgumentKind.MOMENT]]
    + ["DATE_DIFF('day', date_1, date_2)", "DATEDIFF(week, date_1, date_2)", "date_1 - date_2"],
    "date_add": [
        *(
            f"{one} + INTERVAL {n} {unit}"
            for unit in UNITS
            for one in KINDS[ArgumentKind.MOMENT][:3]
            for n in (1, "'-7'")
        ),
        *("DATE_ADD(date_1, INTERVAL 9999 YEAR)", "DATE_SUB(timestamp_1, INTERVAL 9999 YEAR)"),
        *("DATE_SUB(date_1, INTERVAL 300000000000 SECOND)", "date_1 + INTERVAL 3649635 DAY - INTERVAL 9998 YEAR"),
    ],
    "format_moment": ["FORMAT_DATE('%Y-%m %d %j %A %a %B %b', date_1)", "STRFTIME(timestamp_1, '%H:%M:%S %y %% ü')"],
}
"""How operators are written that are no plain calls."""


def written(row: SqlFunction) -> list[str]:
    """A function on all kinds of arguments that a question could give it."""
    if row.operator in TEMPLATES:
        return TEMPLATES[row.operator]
    if row.usage.startswith("EXTRACT("):
        part = row.usage.removeprefix("EXTRACT(").split(" ")[0]
        calls = [f"EXTRACT({part} FROM {one})" for one in KINDS[ArgumentKind.MOMENT]]
        return [*calls, *(f"{name}(timestamp_2)" for name in row.names), f"DATE_PART('{part}', date_2)"]
    assert row.names, f"{row.operator} is not tested"
    choices = [_choices(argument, place) for place, argument in enumerate(row.takes)]
    most = list(itertools.product(*choices))
    calls = [f"{row.names[0]}({', '.join(one)})" for one in most]
    fewest = ", ".join(one[0] for one in choices[: row.least])
    return [*calls[:: max(1, len(calls) // 30)], *(f"{name}({fewest})" for name in row.names)]


def _choices(argument: Argument, place: int) -> list[str]:
    if argument.constant and argument.kind is ArgumentKind.WHOLE:
        return [str(one) for one in sorted({argument.low, argument.high, min(argument.low + 2, argument.high)})]
    if argument.constant:
        return [f"'{one}'" for one in TEXTS.get(argument.name, CONSTANTS)]
    found = KINDS[argument.kind]
    return found if place == 0 else found[::-1]


DIALECT: Sequence[SqlFunction] = [row for row in TABLE if row.operator in (*BUILDERS, "coalesce", "case")]
"""The rows beyond the operators of SQL itself, which tests/trusted/ring_b/test_functions.py has."""


DECLARED = {
    name: Column(name, Type(one["type"]), step=Fraction(1, 100) if "step" in one else None)
    for name, one in COLUMNS.items()
}
"""The columns as declared. Here those with a step hold what is no multiple of it as well: it must not matter."""


def column(name: str) -> Expression:
    return ColumnOf(name, Type(name.rsplit("_", 1)[0]))


@cache
def read(text: str) -> Expression:
    """An expression over the columns of this folder."""
    return ExpressionReader(lambda node: column(node.name), DECLARED).read(parse(f"SELECT {text}").expressions[0])


def rows(count: int = 400) -> list[dict[str, Any]]:
    """Rows in which every value stands in each column, beside others by chance that is always the same."""
    chance = random.Random(5)
    return [
        {
            name: VALUES[Type(name.rsplit("_", 1)[0])][index]
            if index < len(VALUES[Type(name.rsplit("_", 1)[0])]) and name.endswith("1")
            else chance.choice(VALUES[Type(name.rsplit("_", 1)[0])])
            for name in COLUMNS
        }
        for index in range(count)
    ]


ARROW = {
    Type.INTEGER: pyarrow.int64(),
    Type.NUMBER: pyarrow.float64(),
    Type.TEXT: pyarrow.string(),
    Type.BOOLEAN: pyarrow.bool_(),
    Type.DATE: pyarrow.date32(),
    Type.TIMESTAMP: pyarrow.timestamp("us"),
}


class Plain:
    """The engine's library by itself, to see each value and its type. NaN in a column is NULL, as after loading."""

    def __init__(self, table: Sequence[Mapping[str, Any]], columns: Sequence[str] = tuple(COLUMNS)) -> None:
        self.connection = duckdb.connect()
        self.columns = {name: duckdb_column(name) for name in columns}
        arrays = {
            name: pyarrow.array([_stored(row[name]) for row in table], ARROW[Type(name.rsplit("_", 1)[0])])
            for name in columns
        }
        self.connection.register("frame", pyarrow.table(arrays))
        self.connection.execute("CREATE TABLE t AS SELECT * FROM frame")

    def values(self, expressions: Sequence[Expression]) -> tuple[list[str], list[list[Any]]]:
        """The engine's type of each expression, and its values by row."""
        sqls = [DUCKDB.text(compiled(one, self.columns)) for one in expressions]
        selected = ", ".join(f"{sql} AS x{place}" for place, sql in enumerate(sqls))
        found = self.connection.execute(f"SELECT {selected} FROM t")
        kinds = [str(item[1]) for item in found.description or ()]
        return kinds, [list(one) for one in zip(*found.fetchall(), strict=True)]


def duckdb_column(name: str) -> Any:
    from sqlglot import exp

    return exp.column(name)


def _stored(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
