"""A declaration to read texts for, and texts that would take over whoever reads them."""

from __future__ import annotations

from fractions import Fraction

from discreet.catalog import Declaration, declare

COLUMNS = {
    "p": {"type": "text"},
    "n": {"type": "number", "min": -3, "max": 3},
    "v": {"type": "integer", "min": 0, "max": 9},
    "g": {"type": "text", "values": ["a", "b"]},
    "d": {"type": "date"},
    "b": {"type": "boolean"},
    "x": {"type": "number"},
}


def declaration() -> Declaration:
    table = {"source": "t.csv", "columns": COLUMNS, "person": "p", "rows_per_person": 2}
    budget = {"epsilon": Fraction(1), "delta": Fraction(1, 10**6)}
    return declare({"budget": budget, "tables": {"t": table}})


def _doubling(kind: str) -> str:
    steps = ", ".join(f"a{i} AS (SELECT {kind.format(i - 1)})" for i in range(1, 30))
    return f"WITH a0 AS (SELECT p, v FROM t), {steps} SELECT COUNT(*) FROM a29"


WHERE = "SELECT COUNT(*) FROM t WHERE "
HOSTILE = {
    "types in types": WHERE + "INT[" * 40 + "1" + "]" * 40 + " = 1",
    "types that stay open": WHERE + "INT[" * 3_000,
    "casts to types in types": "SELECT CAST(v AS " + "INT[" * 40 + "1" + "]" * 40 + ") FROM t",
    "functions named as types": WHERE + "DATE(" * 40 + "v" + ")" * 40,
    "the same in brackets": WHERE + "DATE((" * 40 + "v" + "))" * 40,
    "angles": "SELECT CAST(v AS " + "ARRAY<" * 2_000 + "INT" + ">" * 2_000 + ") FROM t",
    "structures": "SELECT CAST(v AS " + "STRUCT<a " * 2_000 + "INT" + ">" * 2_000 + ") FROM t",
    "30,000 constants": WHERE + "v IN (" + ",".join("1" for _ in range(30_000)) + ")",
    "5,000 ORs": WHERE + " OR ".join(["v = 1"] * 5_000),
    "2,000 ORs": WHERE + " OR ".join(["v = 1"] * 2_000),
    "45,000 brackets": WHERE + "(" * 45_000 + "v = 1" + ")" * 45_000,
    "braces": WHERE + "{" * 3_000,
    "500 aggregates": "SELECT " + ", ".join(f"COUNTIF(v > {i})" for i in range(500)) + " FROM t",
    "200 aggregates": "SELECT " + ", ".join(f"COUNTIF(v > {i})" for i in range(200)) + " FROM t",
    "aggregates in one sum": "SELECT " + " + ".join(f"COUNTIF(v > {i})" for i in range(200)) + " AS s FROM t",
    "statements that multiply": "SELECT " + ", ".join(f"COUNT(DISTINCT v + {i})" for i in range(140)) + " FROM t",
    "CASE in CASE": "SELECT " + "CASE WHEN v = 1 THEN " * 1_000 + "1" + " ELSE 2 END" * 1_000 + " FROM t",
    "NOT NOT": WHERE + "NOT " * 4_000 + "v = 1",
    "signs": "SELECT SUM(" + "- " * 4_000 + "v) FROM t",
    "a long text": WHERE + "g = '" + "a" * 100_001 + "'",
    "columns of GROUP BY": "SELECT COUNT(*) FROM t GROUP BY " + ",".join(f"c{i}" for i in range(4_900)),
    "BETWEEN in BETWEEN": WHERE + "(" * 40 + "(v = 1)" + " BETWEEN FALSE AND TRUE)" * 40,
    "CASE x in CASE x": WHERE + "CASE " * 12 + "v" + " WHEN 1 THEN 2 WHEN 2 THEN 1 WHEN 3 THEN 4 END" * 12 + " = 1",
    "a condition for each argument": "SELECT COUNT(DISTINCT "
    + ",".join(["v"] * 2_000)
    + ") FILTER (WHERE v IN ("
    + ",".join(["1"] * 2_500)
    + ")) FROM t",
    "statements": "SELECT 1;" * 3_000,
    "queries put together": "SELECT COUNT(*) FROM t " + "UNION ALL SELECT 1 FROM t " * 1_000,
    "joins": "SELECT COUNT(*) FROM t " + "JOIN t ON v = v " * 1_000,
    "named queries": "WITH " + ", ".join(f"a{i} AS (SELECT 1)" for i in range(1_000)) + " SELECT COUNT(*) FROM t",
    "joins that double": _doubling("a{0}.p, a{0}.v FROM a{0} JOIN a{0} AS b ON a{0}.p = b.p"),
    "stacks that double": _doubling("p, v FROM a{0} UNION ALL SELECT p, v FROM a{0}"),
    "subqueries in brackets": "SELECT COUNT(*) FROM " + "(" * 99 + "SELECT 1" + ")" * 99,
    "comments that stay open": "SELECT 1 " + "/* " * 30_000,
    "a quote that stays open": "SELECT '" + "a " * 40_000,
    "quotes in quotes": "SELECT '" + "''" * 40_000 + "'",
    "casts of casts": "SELECT v" + "::INT" * 2_000 + " FROM t",
    "places in places": "SELECT v" + "[1]" * 2_000 + " FROM t",
}
