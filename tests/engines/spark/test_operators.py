"""Every operator of the dialect gives on Spark what it gives on DuckDB, to the bit, or is refused by its name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dialect_tools import DIALECT, Plain, read, rows, written
from discreet.dialect.functions import SqlFunction
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.spark.dialect import LACKS, SPARK
from discreet.trusted.ring_a.expressions import Expression
from discreet.trusted.ring_a.terms import compiled
from discreet.trusted.ring_b.dialect import Lacking
from spark_tools import Spark

PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
"""A smaller example takes as long to try as another one."""

pytestmark = [pytest.mark.outside, pytest.mark.filterwarnings("ignore")]

ROWS = rows(120)

REFUSED = {"try_cast", "LIKE with _", *LACKS}
"""What questions are told that Spark lacks: of texts as other types, and of LIKE, there are forms that run."""

WHOLE = {
    *("cube_root", "exponential", "power", "logarithm", "logarithm_10", "logarithm_2", "logarithm_base"),
    *("sine", "cosine", "tangent", "arc_sine", "arc_cosine", "arc_tangent", "arc_tangent_2"),
    *("hyperbolic_sine", "hyperbolic_cosine", "hyperbolic_tangent", "area_sine", "area_cosine", "area_tangent"),
    *("reverse", "strip_accents", "matches", "matches_all", "extract_match"),
}
"""Operators that never run there."""


class Both:
    """The same rows in both engines."""

    def __init__(self, remote: str) -> None:
        from pyspark.sql.connect.session import SparkSession

        from discreet.engines.spark.worker import SETTINGS

        self.plain = Plain(ROWS)
        self.session = SparkSession.builder.remote(remote).create()
        for name, value in SETTINGS.items():
            self.session.conf.set(name, value)
        held = self.plain.connection.execute("SELECT * FROM t").to_arrow_table()
        numbered = held.append_column("row_number", pyarrow.array(range(len(ROWS)), pyarrow.int64()))
        self.session.createDataFrame(numbered).createOrReplaceTempView("held")
        plain = ", ".join(
            f"CAST({name} AS TIMESTAMP_NTZ) AS {name}" if name.startswith("timestamp") else name
            for name in numbered.column_names
        )
        self.session.sql(f"CREATE TABLE operators USING parquet AS SELECT {plain} FROM held")

    def compare(self, chosen: Sequence[tuple[str, Expression]]) -> None:
        """Both give the same values, of the same types."""
        spark = [SPARK.text(compiled(one, self.plain.columns)) for _, one in chosen]
        duck = [DUCKDB.text(compiled(one, self.plain.columns)) for _, one in chosen]
        selected = ", ".join(f"{sql} AS x{place}" for place, sql in enumerate(spark))
        found = self.session.sql(f"SELECT {selected} FROM operators ORDER BY row_number").toArrow()
        wanted = self.plain.connection.execute(f"SELECT {', '.join(duck)} FROM t").to_arrow_table()
        for (text, _), left, right in zip(chosen, found.columns, wanted.columns, strict=True):
            assert str(left.type).removeprefix("large_") == str(right.type).removeprefix("large_"), text
            values = zip(ROWS, left.to_pylist(), right.to_pylist(), strict=True)
            differing = [(row, one, other) for row, one, other in values if _bits(one) != _bits(other)]
            assert not differing, (text, differing[0])

    def close(self) -> None:
        self.session.sql("DROP TABLE operators")  # another test may make it again
        self.session.stop()


def _bits(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value.hex()
    return value


@pytest.fixture(scope="module")
def both(spark: Spark) -> Iterator[Both]:
    made = Both(spark.remote)
    yield made
    made.close()


def _runs(expression: Expression, columns: Any) -> bool:
    try:
        SPARK.text(compiled(expression, columns))
    except Lacking as error:
        if str(error) not in REFUSED:
            raise
        return False
    return True


@pytest.mark.parametrize("row", DIALECT, ids=lambda row: str(row.operator))
def test_each_operator_gives_what_duckdb_gives(both: Both, row: SqlFunction) -> None:
    read_ones = [(text, read(text)) for text in written(row)]
    chosen = [(text, one) for text, one in read_ones if _runs(one, both.plain.columns)]
    assert bool(chosen) != (row.operator in WHOLE)
    for first in range(0, len(chosen), 40):
        both.compare(chosen[first : first + 40])


def test_operators_of_sql_itself(both: Both) -> None:
    texts = [
        *("integer_1 + integer_2", "number_1 - number_2", "number_1 * number_2", "number_1 / number_2"),
        *("integer_1 / 0", "-number_1", "ABS(integer_1)", "number_1 = number_2", "text_1 < text_2", "date_1 >= date_2"),
        *("integer_1 IN (1, 7, 9223372036854775807)", "text_1 IN ('a', 'ü', '')", "text_1 LIKE 'a%'"),
        *("text_1 LIKE '%'", "text_1 LIKE '%b%c%'", "text_1 LIKE 'a%b%_' OR boolean_1", "text_1 NOT LIKE '%\\'"),
    ]
    chosen = [(text, read(text)) for text in texts]
    both.compare([one for one in chosen if _runs(one[1], both.plain.columns)])


PIECES = st.lists(st.sampled_from(["%", "%", "a", "b", "a b", "-", "ü", "🙂", "\\", "'"]), max_size=6).map("".join)


@given(st.lists(PIECES, min_size=20, max_size=20))
@settings(max_examples=5, phases=PHASES, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_patterns_match_what_they_match_there(both: Both, patterns: list[str]) -> None:
    quoted = [pattern.replace("'", "''") for pattern in patterns]
    both.compare([(one, read(f"text_1 {word} '{one}'")) for one in quoted for word in ("LIKE", "ILIKE")])


NUMBERS = st.one_of(
    st.sampled_from(["number_1", "number_2", "integer_1", "integer_2", "0.5", "-3", "number_1 * number_2"]),
    st.integers(-(2**40), 2**40).map(str),
)


@st.composite
def formulas(draw: st.DrawFn) -> str:
    """Formulas of what runs on Spark, one in the other."""
    text = draw(NUMBERS)
    for form in draw(st.lists(st.sampled_from(FORMS), min_size=1, max_size=4)):
        text = form.format(f"({text})", draw(NUMBERS), draw(st.integers(-3, 6)))
    return text


FORMS = [
    *("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "MOD({0}, {1})", "DIV({0}, {1})", "FLOOR({0})", "CEIL({0})"),
    *("ROUND({0}, {2})", "TRUNC({0}, {2})", "ROUND({0})", "SQRT(ABS({0}))", "GREATEST({0}, {1})", "LEAST({0}, {1})"),
    *("COALESCE(NULLIF({0}, {1}), 1)", "IEEE_DIVIDE({0}, {1})", "CAST({0} AS INTEGER)", "SIGN({0})"),
    *("CASE WHEN {0} > {1} THEN {0} ELSE {1} END", "WIDTH_BUCKET({0}, -1, 2.5, 10)", "DEGREES({0})"),
]


@given(st.lists(formulas(), min_size=15, max_size=15))
@settings(max_examples=6, phases=PHASES, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_formulas_give_what_they_give_there(both: Both, texts: list[str]) -> None:
    both.compare([(text, read(text)) for text in texts])
