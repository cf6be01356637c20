"""Whether one row is in the table or not: the same errors, the same charges, the same shape of the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas
import pytest

from discreet import Curator, Error, Table
from discreet.ledger import TOTAL
from kinds import some

COLUMNS = {
    "p": {"type": "text"},
    "g": {"type": "text", "values": ["x", "it's", "\\"]},
    "h": {"type": "text"},
    "v": {"type": "integer", "min": -5, "max": 7},
    "w": {"type": "number", "min": 0, "max": 1},
    "u": {"type": "integer"},
    "f": {"type": "number"},
    "b": {"type": "boolean"},
    "d": {"type": "date"},
    "m": {"type": "timestamp"},
    "e": {"type": "date"},
}
HEADER = "p,g,h,v,w,u,f,b,d,m,e"
OTHERS = [
    "a,x,r,1,0.5,1,0.5,true,2020-01-01,2020-01-01 00:00:00,2020-01-01",
    "a,it's,r,2,0.25,2,2.5,false,2020-01-02,2020-01-02 00:00:00,2020-01-01",
    "b,x,r,3,0.75,3,1e-3,true,2020-01-03,2020-01-03 00:00:00,2020-01-01",
]
TARGETS = {
    "ends of integers": "t,x,r,9223372036854775807,1,-9223372036854775808,0,true,2020-01-01,2020-01-01 00:00:00,",
    "beyond integers": "t,x,r,99999999999999999999,1e400,-1e30,1e999,maybe,2020-13-45,now,then",
    "infinities": "t,x,r,inf,inf,inf,-inf,true,infinity,-infinity,infinity",
    "not a number": "t,x,r,nan,nan,nan,nan,nan,nan,nan,nan",
    "no values at all": "t,,,,,,,,,,",
    "far dates": "t,x,r,1,1,1,1,true,10000-01-01,20000-01-01 00:00:00,0044-03-15 (BC)",
    "odd texts": '"t\\\'""%_",\\,"a\n;--",1,1,1,1,true,2020-01-01,2020-01-01 00:00:00,2020-01-01',
    "long text": f"t,x,{'a' * 100_000},1,1,1,1,true,2020-01-01,2020-01-01 00:00:00,2020-01-01",
    "other letters": "ｔ🙂,ｘ,ü̈,１,½,٣,1,TRUE,2020-01-01,2020-01-01 00:00:00,2020-01-01",
    "tiny and zero": "t,x,r,0,-0.0,0,5e-324,false,0001-01-01,9999-12-31 23:59:59.999999,9999-12-31",
}
PUBLIC = [
    "SELECT COUNT(*), COUNT(v), COUNT(d), COUNT(h) FROM t",
    "SELECT g, AVG(v), SUM(w), COUNT(*) FROM t GROUP BY g",
    "SELECT SUM(u, contribution_bounds_per_group => (-3, 9)) FROM t",
    "SELECT SUM(u * u - f / u, contribution_bounds_per_group => (-1, 1)), AVG(w) FROM t WHERE f <> 0",
    "SELECT SUM(ABS(u), contribution_bounds_per_group => (0, 1)) FROM t WHERE -u > 0 OR u / 0 IS NULL",
    "SELECT COUNT(DISTINCT p) FROM t WHERE h LIKE '%a%_\\' OR p LIKE '_%'",
    "SELECT COUNT(*) FROM t WHERE d >= '2020-01-02' AND m < TIMESTAMP '2030-01-01 00:00:00' OR d IN ('2020-01-01')",
    "SELECT COUNT(CASE WHEN u > 5 THEN f ELSE v END), COUNT(COALESCE(f, u)) FROM t WHERE NOT (f > u)",
    "SELECT b, COUNT(*) FROM t WHERE b IS NOT NULL GROUP BY b ORDER BY 2 DESC LIMIT 1",
    "SELECT g, COUNT(*) AS n FROM t GROUP BY g HAVING n > -1e9 ORDER BY g",
    "SELECT COUNT(*) FROM t WHERE v BETWEEN 1 AND 9223372036854775808 AND u IN (1, 1.5, NULL)",
    "SELECT SUM(u), AVG(f), SUM(u * f) FROM t",
    "SELECT g, VAR_POP(v), STDDEV(w), CORR(v, w), COVAR_POP(w, v) FROM t GROUP BY g",
    "SELECT MEDIAN(v), MIN(w), MAX(w), APPROX_QUANTILES(w, 4), APPROX_TOP_COUNT(g, 2), MODE(b) FROM t",
    "SELECT MEDIAN(f), VAR_POP(u) FROM t",
    "SELECT MIN(d, contribution_bounds_per_row => ('2000-01-01', '2029-12-31')), APPROX_QUANTILES(m, 4,"
    " contribution_bounds_per_row => ('0001-01-02 00:00:00', '9999-12-30 00:00:00')), MAX(m + INTERVAL 9000 YEAR,"
    " contribution_bounds_per_row => ('2020-01-01 00:00:00', '2020-01-01 00:00:01')) FROM t",
    "SELECT COUNT(DISTINCT CASE WHEN p LIKE 't%' THEN 'boom' ELSE 'true' END) FROM"
    ' (SELECT p, v > 1 AS "value 0", v > 1 AS "computed 0" FROM t) WHERE "value 0" AND "computed 0"',
    "SELECT MEDIAN(EXP(2)), MIN(EXP(2)), MAX(EXP(1) * 1e200) FROM t WHERE p LIKE 't%'",
    "SELECT APPROX_QUANTILES(u, 4, contribution_bounds_per_row => (1e18, 1000000000000000000.5)) FROM t",
    "SELECT AVG(x), MIN(x), SUM(x, contribution_bounds_per_group => (1e200, 1e200)) FROM (SELECT p, AVG(EXP(w)) + 1e200"
    " AS x FROM t GROUP BY p)",
    "SELECT COUNT(DISTINCT f), COUNT(DISTINCT h), COUNT(DISTINCT u + 1) FROM t",
    "SELECT CAST(h AS INTEGER) > 1 AS k, COUNT(*) FROM t GROUP BY k",
    "SELECT COUNT(*) FILTER (WHERE LENGTH(h) > 1), COUNTIF(EXTRACT(YEAR FROM d) = 2020) FROM t",
    "SELECT AVG(k), SUM(s) FROM (SELECT p, COUNT(*) AS k, SUM(u) AS s, MAX(f) AS m FROM t GROUP BY p)",
    "SELECT COUNT(*) FROM t a JOIN t b ON a.p = b.p AND a.u < b.f LEFT JOIN t c ON c.p = a.p",
    "SELECT COUNT(*) FROM (SELECT p, u FROM t UNION ALL SELECT p, v FROM t) WHERE p IN (SELECT p FROM t WHERE u > 0)",
]
KEYS = [
    "SELECT d, COUNT(*) FROM t GROUP BY d",
    "SELECT m, COUNT(*) FROM t GROUP BY m",
    "SELECT e, h, COUNT(DISTINCT p) FROM t GROUP BY e, h ORDER BY h, e",
    "SELECT u, SUM(w) FROM t GROUP BY u",
    "SELECT h, b, AVG(v) FROM t GROUP BY h, b HAVING h LIKE '%' OR b",
]
REFUSED = [
    "SELECT * FROM t",
    "SELECT p, COUNT(*) FROM t GROUP BY p",
    "SELECT ANY_VALUE(v) FROM t",
    "SELECT COUNT(*) FROM t WHERE p = (SELECT p FROM t)",
    "SELECT COUNT(*) FROM t WHERE error('x') IS NULL",
    "SELECT f, COUNT(*) FROM t GROUP BY f",
]


def asked(curator: Curator, question: str, **price: Any) -> tuple[Any, ...]:
    """Everything about an answer that must not depend on anybody: error or shape, and what it took."""
    before = curator.ledger.filter(TOTAL).spent
    try:
        release = curator.ask(question, **price)
    except Error as error:
        outcome: tuple[Any, ...] = (type(error), error.to_dict(), str(error), error.args)
    else:
        found = any("bounds found" in words for words in release.bounds)  # noise is then fitted to them
        noisy = ("bounds", "left_out", *(["mechanisms"] if found else []), "rows", "intervals", "simultaneous")
        outcome = tuple(
            (name, value) for name, value in release.to_dict().items() if name not in (*noisy, "charged", "used")
        )
        outcome += tuple((one.what, one.column, one.limit, one.declared, one.share) for one in release.left_out)
        outcome += tuple(
            words
            for words in release.bounds
            if not found
            or not ("bounds found" in words or "ranks" in words or ("clamped" in words and "as declared" not in words))
        )
        if not any("too few persons" in bound for bound in release.bounds):
            kinds = [list(map(type, row.values())) for row in release.rows]
            # the step of a sum follows from noisy bounds, and whole steps make whole numbers; a variance is cut at 0
            if found or "VAR" in question:
                kinds = [[float if kind is int else kind for kind in row] for row in kinds]
            outcome += (len(release.rows), kinds)
    return outcome, before, curator.ledger.filter(TOTAL).spent


def from_csv(path: Path, rows: Sequence[str]) -> Curator:
    path.write_text("\n".join([HEADER, *rows]) + "\n", "utf-8")
    table = Table(path, columns=COLUMNS, person="p", rows_per_person=2, groups_per_person=2)
    return Curator({"t": table}, epsilon=1000, delta=0.01, keys_delta=0.005)


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[Any, ...]]]:
    """What everybody else's table answers."""
    with from_csv(tmp_path_factory.mktemp("rows") / "rows.csv", OTHERS) as curator:
        yield [asked(curator, question, epsilon=Fraction(1, 2)) for question in [*PUBLIC, *KEYS, *REFUSED]]


@pytest.mark.parametrize("target", some(TARGETS.values(), pytest.mark.power), ids=TARGETS)
def test_one_row_changes_no_error_no_charge_and_no_shape(
    tmp_path: Path, without: list[tuple[Any, ...]], target: str
) -> None:
    """Every question is answered whatever the row holds, and costs the same."""
    with from_csv(tmp_path / "rows.csv", [*OTHERS, target]) as curator:
        for question, expected in zip([*PUBLIC, *KEYS, *REFUSED], without, strict=True):
            assert asked(curator, question, epsilon=Fraction(1, 2)) == expected, question
            failed = isinstance(expected[0][0], type)
            assert failed == (question in REFUSED), question


def test_a_budget_that_ends_ends_for_everybody(tmp_path: Path) -> None:
    """The refusal comes at the same question, with the same words."""
    outcomes = []
    for name, rows in (("one", OTHERS), ("two", [*OTHERS, TARGETS["far dates"]])):
        with from_csv(tmp_path / f"{name}.csv", rows) as curator:
            prices = [400, 500, 99, "0.5", "0.6", "1e-9"]
            outcomes.append(
                [asked(curator, f"SELECT COUNT(*) AS n{n} FROM t", epsilon=price) for n, price in enumerate(prices)]
            )
    assert outcomes[0] == outcomes[1]
    assert any(isinstance(outcome[0][0], type) for outcome in outcomes[0])


@pytest.mark.parametrize(
    "values",
    [[1, 2, None], [1.0, 2.0, 2.5], [1, 2, "three"], [1, 2, 2**70], [True, False, None], [1, 2, float("nan")]],
    ids=str,
)
def test_the_type_of_a_frame_s_column_is_not_decided_by_one_value(values: list[Any]) -> None:
    """A missing, wrong or huge value turns a whole column into another dtype; a declared type stays what it is."""
    outcomes = []
    for rows in (values[:2], values):
        frame = pandas.DataFrame({"v": rows, "g": ["x"] * len(rows)})
        columns = {"v": {"type": "integer", "min": 0, "max": 3}, "g": {"type": "text", "values": ["x"]}}
        with Curator({"t": Table(frame, columns=columns, one_row_per_person=True)}, epsilon=10) as curator:
            outcomes.append(
                [
                    asked(curator, question, epsilon=1)
                    for question in ("SELECT AVG(v), COUNT(*) FROM t", "SELECT v, COUNT(*) FROM t GROUP BY v")
                ]
            )
    assert outcomes[0] == outcomes[1]
