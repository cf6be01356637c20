"""Questions that are no text: trees of sqlglot and expressions of Ibis mean what their text means."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import duckdb
import ibis
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from ibis import _
from ibis.backends.sql.compilers import DuckDBCompiler
from sqlglot import exp

from discreet import Curator, QuestionError, Table
from discreet.sql.compiled import as_text, written
from discreet.sql.grammar import parse
from face_tools import BUDGET, COLUMNS, EXACT, TRUTH, VISITS, Data

PEOPLE = """
CREATE TABLE people AS
SELECT 'p' || i AS person, CASE WHEN i % 3 = 0 THEN 'F' ELSE 'M' END AS sex FROM range(60) AS t(i)
"""
CITIES = "CREATE TABLE cities AS SELECT * FROM (VALUES ('north', 'cold'), ('south', 'warm')) AS c(city, climate)"
OPEN = COLUMNS | {"city": str, "day": {"type": "date"}}


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables as the declaration sees them."""
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA raw; USE raw")
        connection.execute(VISITS)
        connection.execute("USE main")
        for made in (TRUTH, PEOPLE, CITIES):
            connection.execute(made)
        yield connection


@pytest.fixture(scope="module")
def curator(
    data: Data, plain: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Curator]:
    folder = tmp_path_factory.mktemp("tables")
    for name in ("people", "cities"):
        plain.execute(f"COPY {name} TO '{folder / name}.csv'")
    sexes = {"type": "text", "values": ["F", "M"], "nulls": False}
    climates = {"type": "text", "values": ["cold", "warm"]}
    bounds: dict[str, Any] = {"person": "person", "rows_per_person": 40, "groups_per_person": 40}
    tables = {
        "visits": Table(data.csv, columns=OPEN, **bounds),
        "people": Table(
            folder / "people.csv", person="person", one_row_per_person=True, columns={"person": str, "sex": sexes}
        ),
        "cities": Table(folder / "cities.csv", public=True, columns={"city": str, "climate": climates}),
    }
    with Curator(tables, epsilon=BUDGET, delta=0.5) as made:
        yield made


def alike(expression: Any, curator: Curator, plain: duckdb.DuckDBPyConnection) -> None:
    """What the curator answers is what Ibis's own compiler and plain SQL give, but for groups of few."""
    release = curator.ask(expression, epsilon=EXACT)
    asked = plain.execute(DuckDBCompiler().to_sqlglot(expression.unbind()).sql(dialect="duckdb"))
    *keys, _last = release.columns
    found = {_key(row[name] for name in keys): row[release.columns[-1]] for row in release.rows}
    wanted = {_key(row[:-1]): row[-1] for row in asked.fetchall()}
    few = {key for numbers in (found, wanted) for key, number in numbers.items() if keys and abs(number or 0) < 12}
    few &= (found.keys() ^ wanted.keys()) | {key for key in found if found[key] == 0}
    assert found.keys() - few == wanted.keys() - few
    for key in found.keys() - few:
        assert found[key] == pytest.approx(float(wanted[key]), rel=1e-9, abs=1e-9)


def _key(values: Any) -> tuple[Any, ...]:
    """Keys as they are compared: dates as moments, numbers as doubles."""
    day, moment = datetime.date, datetime.datetime
    midnight = datetime.time()
    known = [
        moment.combine(one, midnight) if isinstance(one, day) and not isinstance(one, moment) else one for one in values
    ]
    return tuple(float(one) if isinstance(one, int) and not isinstance(one, bool) else one for one in known)


GROUPS = {
    "text": _.city + "x",
    "upper": _.city.upper(),
    "capital": _.note.capitalize(),
    "slice": _.note[0:3],
    "substr": _.note.substr(5, 1),
    "left": _.note.left(2),
    "length": _.note.length(),
    "padded": _.note.lpad(9, "0"),
    "padded behind": _.note.rpad(3, "0"),
    "replaced": _.note.replace("o", "0"),
    "found": _.note.find("e"),
    "extracted": _.note.re_extract("note ([0-9])", 1),
    "reversed": _.note.reverse(),
    "stripped": _.note.strip(),
    "contains": _.note.contains("1"),
    "starts": _.note.startswith("note 1"),
    "ends": _.note.endswith("1"),
    "like": _.note.like("%1"),
    "ilike": _.note.ilike("NOTE 1"),
    "pattern": _.note.re_search("[12]$"),
    "in": _.note.isin(["note 1"]),
    "substitute": _.note.substitute({"note 1": "one"}),
    "year": _.day.year(),
    "quarter": _.day.quarter(),
    "month": _.day.month(),
    "week": _.day.week_of_year(),
    "day of year": _.day.day_of_year() % 10,
    "weekday": _.day.day_of_week.index(),
    "weekday's name": _.day.day_of_week.full_name(),
    "hour": _.moment.hour(),
    "second": _.moment.second(),
    "epoch": _.moment.epoch_seconds() % 86_400,
    "truncated": _.day.truncate("M"),
    "truncated to weeks": _.moment.truncate("W"),
    "as a date": _.moment.date(),
    "formatted": _.day.strftime("%Y-%m"),
    "days between": _.day.delta(ibis.date("2024-01-01"), unit="day") % 7,
    "later": _.day + ibis.interval(days=3),
    "earlier": _.day - ibis.interval(months=2),
    "decade": (_.age // 10) * 10,
    "rest": _.age % 3,
    "floor": _.cost.floor() // 25,
    "sign": (_.age - 7).sign(),
    "absolute": (_.age - 7).abs(),
    "clipped": _.age.clip(3, 9),
    "either": ibis.ifelse(_.age > 2, 1, 0),
    "cases": ibis.cases((_.age < 5, "young"), (_.age < 9, "old"), else_="other"),
    "bins": _.age.bucket([0, 5, 10, 20]),
    "not a number": _.cost.isnan(),
    "nullif": _.age.nullif(3),
    "filled": _.age.fill_null(99),
    "missing": _.age.isnull(),
    "both": (_.age > 2) & _.smoker,
    "either of two": (_.age > 2) | _.smoker,
    "not": ~_.smoker,
    "one of two": _.smoker ^ (_.age > 3),
    "as text": _.age.cast("string"),
    "between": _.day.between("2024-01-02", datetime.date(2024, 1, 5)),
    "since": _.moment >= datetime.datetime(2024, 1, 2, 12, 30, 15),
}

SUMS = {
    "logarithm": (_.age + 1).ln(),
    "base": (_.age + 1).log(3),
    "base 2": (_.age + 1).log2(),
    "base 10": (_.age + 1).log10(),
    "power": _.age**2,
    "root": _.age.sqrt(),
    "ratio": _.age / 3,
    "product": _.cost * 1.5,
    "without brackets": _.age - (_.age - (_.age - 1)),
    "double": _.age.cast("float64"),
    "truth": _.smoker,
    "condition": (_.note == "note 1").cast("int64"),
}


@pytest.mark.parametrize("name", GROUPS)
def test_groups(name: str, curator: Curator, plain: duckdb.DuckDBPyConnection) -> None:
    visits = curator.ibis()["visits"]
    alike(visits.mutate(key=GROUPS[name]).group_by("key").agg(n=_.count()), curator, plain)


@pytest.mark.parametrize("name", SUMS)
def test_sums(name: str, curator: Curator, plain: duckdb.DuckDBPyConnection) -> None:
    visits = curator.ibis()["visits"]
    alike(visits.mutate(term=SUMS[name]).agg(total=_.term.sum()), curator, plain)


def _questions(tables: Any) -> dict[str, Any]:
    visits, people, cities = tables["visits"], tables["people"], tables["cities"]
    return {
        "count": visits.count(),
        "mean": visits.age.mean(),
        "filtered": visits.filter(_.age > 3).filter(_.note != "note 1").group_by("city").agg(n=_.count()),
        "condition": visits.agg(n=_.count(where=_.smoker)),
        "different": visits.group_by("note").agg(k=_.person.nunique()),
        "about": visits.note.approx_nunique(),
        "deviation": visits.age.std(),
        "variance": visits.age.var(how="pop"),
        "correlation": visits.age.corr(visits.cost, how="pop"),
        "covariance": visits.age.cov(visits.cost, how="pop"),
        "ratio": visits.agg(r=_.cost.sum() / _.age.sum()),
        "persons": visits.join(people, "person").group_by("sex").agg(n=_.count()),
        "public": visits.join(cities, "city").group_by("climate").agg(n=_.count()),
        "kept": visits.left_join(cities, "city").group_by("climate").agg(n=_.count()),
        "each": visits.group_by("person").agg(k=_.count()).k.mean(),
        "many": visits.group_by("person").agg(k=_.count()).filter(_.k > 9).agg(n=_.count()),
        "members": people.filter(_.person.isin(visits.filter(_.age > 17).person)).count(),
        "together": visits.select("person", "age").union(visits.select("person", "age")).count(),
    }


@pytest.mark.parametrize(
    "name",
    _questions(
        {
            name: ibis.table(
                {
                    "person": "string",
                    "city": "string",
                    "note": "string",
                    "age": "int64",
                    "cost": "float64",
                    "smoker": "boolean",
                    "sex": "string",
                    "climate": "string",
                },
                name=name,
            )
            for name in ("visits", "people", "cities")
        }
    ),
)
def test_questions(name: str, curator: Curator, plain: duckdb.DuckDBPyConnection) -> None:
    alike(_questions(curator.ibis())[name], curator, plain)


def test_the_median_and_the_commonest_are_read(curator: Curator) -> None:
    visits = curator.ibis()["visits"]
    for expression in (visits.age.median(), visits.age.quantile(0.9), visits.age.approx_median(), visits.age.max()):
        (row,) = curator.ask(expression, epsilon=EXACT).rows
        assert 0 <= next(iter(row.values())) <= 20


def test_tables_have_the_declared_columns(curator: Curator) -> None:
    tables = curator.ibis()
    assert tables.keys() == curator.tables.keys()
    kinds = {"integer": "int64", "number": "float64", "text": "string"}
    for name, table in tables.items():
        declared = {one: column["type"] for one, column in curator.tables[name]["columns"].items()}
        assert {one: str(kind) for one, kind in table.schema().items()} == {
            one: kinds.get(kind, kind) for one, kind in declared.items()
        }


def test_all_that_takes_a_question_takes_an_expression(exact: Curator) -> None:
    visits = exact.ibis()["visits"]
    counts = visits.filter(_.age > 4).group_by("city").agg(n=_.count())
    text = as_text(counts)
    assert exact.explain(counts, epsilon=2).expected_error == exact.explain(text, epsilon=2).expected_error
    assert exact.left(counts, epsilon=2) == exact.left(text, epsilon=2)
    assert exact.engine_sql(counts) == exact.engine_sql(text)
    first = exact.ask(counts, epsilon=3)
    assert first.charged
    assert text in {entry.question for entry in exact.ledger.entries()}
    again = exact.ask(text, epsilon=3)
    assert not again.charged
    assert again.rows == first.rows
    assert exact.select(visits.group_by("city").agg(n=_.person.nunique()), epsilon=EXACT).rows


@pytest.mark.parametrize(
    "tree",
    [
        sqlglot.parse_one("SELECT city, COUNT(*) AS n FROM visits GROUP BY city"),
        sqlglot.parse_one("SELECT city, count(*) n FROM visits /* all */ GROUP BY city -- of them"),
        sqlglot.select("city", "COUNT(*) AS n").from_("visits").group_by("city"),
        sqlglot.parse_one("SELECT `city`, COUNT(*) AS n FROM `visits` GROUP BY 1", read="bigquery"),
    ],
)
def test_trees_of_sqlglot(tree: exp.Expr, exact: Curator) -> None:
    asked = exact.ask("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=EXACT)
    before = tree.sql()
    assert exact.ask(tree, epsilon=EXACT).rows == asked.rows
    assert tree.sql() == before


@pytest.mark.parametrize(
    ("read", "function", "text"),
    [
        ("duckdb", "STRFTIME(day, '%Y')", "STRFTIME(day, '%Y')"),
        ("duckdb", "DATE_TRUNC('month', day)", "TIMESTAMP_TRUNC(day, MONTH)"),
        ("duckdb", "MAKE_DATE(2024, 1, 3)", "DATE '2024-01-03'"),
        ("duckdb", "STRPOS(note, 'a')", "STRPOS(note, 'a')"),
        ("postgres", "DATE_TRUNC('month', moment)", "TIMESTAMP_TRUNC(moment, MONTH)"),
        ("duckdb", "MEDIAN(age)", "MEDIAN(age)"),
        ("snowflake", "COUNT_IF(age > 3)", "COUNTIF(age > 3)"),
    ],
)
def test_functions_under_the_names_by_which_they_are_read(read: str, function: str, text: str) -> None:
    assert as_text(sqlglot.parse_one(f"SELECT {function} FROM visits", read=read)) == f"SELECT {text} FROM visits"


def _above(below: st.SearchStrategy[exp.Expr]) -> st.SearchStrategy[exp.Expr]:
    kinds = st.sampled_from([exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.And, exp.Or, exp.EQ, exp.LT, exp.DPipe])
    pairs = st.builds(lambda kind, left, right: kind(this=left.copy(), expression=right.copy()), kinds, below, below)
    return (
        pairs
        | st.builds(lambda one: exp.Not(this=one.copy()), below)
        | st.builds(lambda one: exp.Neg(this=one.copy()), below)
    )


LEAVES = st.sampled_from(["a", "b", "c"]).map(exp.column) | st.integers(0, 9).map(exp.Literal.number)


@given(st.recursive(LEAVES, _above, max_leaves=12))
def test_what_is_made_by_hand_is_read_as_it_stands(formula: exp.Expr) -> None:
    """Trees without brackets, as those who put nodes together have them."""
    read = parse(written(exp.select(exp.Alias(this=formula, alias="x")).from_("t")))
    assert isinstance(read, exp.Select)
    bare = read.expressions[0].this.transform(lambda node: node.this if isinstance(node, exp.Paren) else node)
    while isinstance(bare, exp.Paren):
        bare = bare.this
    assert _shape(bare) == _shape(formula)


def _shape(node: exp.Expr) -> Any:
    if isinstance(node, exp.Paren):
        return _shape(node.this)
    if isinstance(node, exp.Column | exp.Literal):
        return node.name
    if isinstance(node, exp.And | exp.Or):  # in whatever order they are put together
        return (type(node).__name__, *(_shape(one) for one in node.flatten()))
    return (type(node).__name__, *(_shape(one) for one in node.iter_expressions()))


def test_what_is_no_question_is_refused(exact: Curator) -> None:
    visits = exact.ibis()["visits"]
    strangers = ibis.table({"a": "int64"}, name="strangers")
    for asked, code in [
        (3, "syntax"),
        (None, "syntax"),
        (b"SELECT", "syntax"),
        (_.count(), "expression"),
        (visits.age.sum().over(), "not-allowed"),
        (strangers.count(), "unknown-table"),
        (visits.note.re_replace("a", "b").nunique(), "not-allowed"),
        (visits.note.hashbytes().nunique(), "expression"),
        (exp.column("a"), "statement"),
        (exp.delete("visits"), "statement"),
        (exp.Select(expressions=[exp.Count(this=exp.Star())]).from_(exp.Anonymous(this="read_csv")), "syntax"),
    ]:
        with pytest.raises(QuestionError) as refused:
            exact.ask(asked, epsilon=1)
        assert refused.value.code == code, (asked, refused.value)


def test_a_tree_that_is_too_deep_is_refused(exact: Curator) -> None:
    deep: exp.Expr = exp.column("age")
    for _turn in range(5_000):
        deep = exp.Neg(this=deep)
    with pytest.raises(QuestionError, match="nested too deeply"):
        exact.ask(exp.select(exp.Sum(this=deep)).from_("visits"), epsilon=1)
