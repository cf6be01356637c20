"""The page of the dialect, written from its table: `python -m discreet.sql.documentation > docs/dialect.md`."""

from __future__ import annotations

import sys

from discreet.dialect.functions import SqlFunction
from discreet.dialect.table import CHAPTERS, REFUSED, TABLE
from discreet.sql.dialects import LANGUAGES

_BEGINNING = """# The dialect

What may be computed from one row: {count} functions and operators. Each is total: whatever a row holds, it gives a
value or NULL and takes no longer than the question allows, because an error or a delay would tell of a single row.
Where the table says nothing else:

- **NULL**: a function of NULL is NULL.
- **What does not convert**: a cast gives NULL, as TRY_CAST and SAFE_CAST do elsewhere. Nothing fails on a row.
- **Decimals** are whole numbers of steps: a number column with a declared `step`, a DECIMAL column of a Parquet or
  DuckDB file, whole numbers and constants. On these `+ - *`, division by a constant, DIV, MOD, comparisons, IN and
  BETWEEN, FLOOR, CEIL, ROUND, TRUNC, WIDTH_BUCKET, casts and CASE are exact while every result between is at most 2^50
  of its steps (a product's is the product of both) and a step has at most 15 digits: `price * 100 = 7`,
  `FLOOR(price * 100)`. SUM counts such a result in its own step, unless its bounds are further than 2^50 steps from 0.
- **Groups by numbers with fractions** are those of whole numbers: of the steps of a decimal, of `FLOOR(x / 2.5) * 2.5`,
  `ROUND(x, 1)`, `TRUNC(x, 1)`, `x - x % 10` and CASE of constants, whatever x is. The answer shows each key as the
  double nearest to it. A key of more than 2^63 steps is NULL, and in the group of NULL: where the declared bounds let
  one be so large, such a group is refused; where none are declared, take larger steps.
- **Overflow**: other arithmetic is done in doubles, integers included, so it is exact up to 2^53 and infinite where it
  grows too large. SUM and AVG clamp every row to the bounds that are shown with the answer.
- **Not a number**: 0/0, a root or a logarithm of a negative number is NULL. Only ∞ − ∞ and 0 · ∞ of plain
  arithmetic stay NaN: no sum or count takes them in, and in a comparison NaN is above all numbers.
- **Dates** lie within the years 1 to 9999; what would leave them is NULL.
- **Constants**: patterns, what is searched for, formats, units and lengths are constants of the question.

HAVING and ORDER BY work on the noisy answer and know the operators of SQL itself: `+ - * /`, comparisons,
`AND OR NOT`, `IS NULL`, `IN`, `BETWEEN`, `LIKE`, `CASE`, `COALESCE`, `ABS`.

Regular expressions have characters, `.`, `[a-z]`, `\\d \\w \\s \\b`, `^ $`, groups, `|`, and `* + ? {{2,5}}`; `(?i)` \
at
the start ignores case. At most 200 characters, and 250 with repetitions counted out.
"""

_SPELLINGS = """
## As tools write it

What databases and their tools call by other names is read as well, where it means the same of every row:

| written | read as |
|---|---|
| `"public"."visits"."age"`, `warehouse.main.visits` | the table and the column, where the schema is the declared one \
(`[schema] name`; without it `public`, `main` and `dbo`) |
| `TOP 10`, `TOP (10)`, `FETCH FIRST 10 ROWS ONLY` | `LIMIT 10` |
| `NOW()`, `CURRENT_TIMESTAMP`, `GETDATE()`, `CURRENT_DATE`, `CURDATE()` | the day of the question, in UTC, at its \
midnight where a timestamp is meant; with `[question] date = 2024-05-01` that day. The answer says which |
| `'2024-01-31T10:00:00Z'`, `TIMESTAMPTZ '…'`, `x AT TIME ZONE 'UTC'` | timestamps in UTC |
| `INTERVAL '1 year 2 months'`, `7 * INTERVAL '1 day'`, `'3 days'::INTERVAL`, `date + 3`, `DATEADD(day, 3, x)`, \
`DATE_SUB(x, 3)` | `x + INTERVAL 3 DAY`, one unit after another |
| `DATEDIFF(end, start)`, `DATETRUNC(month, x)`, `DATE_TRUNC(x, WEEK(SUNDAY))`, `TIME_BUCKET(INTERVAL '15 minutes', \
x)` | `DATE_DIFF`, `DATE_TRUNC` and choices between their values |
| `DATEPART(year, x)`, `DATE_PART('year', x)`, `DATENAME(month, x)`, `EOMONTH(x)` | `EXTRACT`, `MONTHNAME`, \
`DAYNAME`, `LAST_DAY` |
| `TO_CHAR(x, 'YYYY-MM')`, `DATE_FORMAT(x, '%Y-%m')`, `DATE_FORMAT(x, 'yyyy-MM')`, `STRFTIME(x, '%F')` | \
`FORMAT_DATE`; of DATE_FORMAT, a pattern with `%` is MySQL's and another one Spark's |
| `TO_DATE(x, 'YYYY-MM-DD')`, `TO_TIMESTAMP`, `STRPTIME`, `PARSE_DATE`, `STR_TO_DATE` | a cast, where the pattern is \
year, month and day, and hours to seconds behind it |
| `DATEFROMPARTS(YEAR(x), MONTH(x), 1)`, `MAKE_DATE(2024, 1, 31)` | `DATE_TRUNC`, a constant |
| `CAST(x AS DECIMAL(10, 2))`, `CAST(x AS VARCHAR(3))`, `x::int4`, `SMALLINT`, `TIMESTAMPTZ` | `ROUND(CAST(x AS \
DOUBLE), 2)`, `LEFT(CAST(x AS TEXT), 3)`, and the types above |
| `IIF`, `ISNULL(x, y)`, `CHARINDEX('a', x)`, `TRUNCATE(x, 2)`, `DECODE(x, 1, 'a', 'b')`, `x // y` | `IF`, \
`COALESCE`, `STRPOS`, `TRUNC`, `CASE`, `DIV` |
| `COUNT_BIG(*)`, `VAR`, `VARP`, `STD`, `STDEV`, `STDEVP`, `APPROX_QUANTILES(x, 4)[OFFSET(2)]` | `COUNT(*)`, \
`VAR_SAMP`, `VAR_POP`, `STDDEV_SAMP` twice, `STDDEV_POP`, `PERCENTILE_CONT(x, 0.5)` |
| `DATE_TRUNC('hour', x) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM x) / 15)`, `DATE_BIN('15 minutes', x, \
TIMESTAMP '2000-01-01')`, `TIME_SLICE(x, 15, 'MINUTE')` | `TIME_BUCKET(INTERVAL '15 minutes', x)` |
| `EXTRACT(YEAR FROM AGE(end, start))`, `AGE(start)` of two dates | complete years, of `EXTRACT` and `CASE` |
| `WIDTH_BUCKET(x, [0, 10, 20])`, `RANGE_BUCKET(x, [0, 10, 20])`, `COUNT()`, `ORDER BY ALL` | `CASE` of how many \
bounds are at most x, `COUNT(*)`, every column |
| `FROM t PIVOT (SUM(x) FOR c IN ('a', 'b'))` | `SUM(x) FILTER (WHERE c = 'a')` and so on, for each of t's other \
columns |
| `SELECT DISTINCT k, MEDIAN(x) OVER (PARTITION BY k)`, `SELECT person FROM a INTERSECT SELECT person FROM b`, also \
`EXCEPT` | `GROUP BY k`, `person IN (SELECT person FROM b)` |
| of answers `FROM GENERATE_SERIES(1, 12) AS n`, `RATIO_TO_REPORT(n) OVER ()`, `WINDOW w AS (…)` | `UNNEST`, \
`n / SUM(n) OVER ()`, `OVER (…)` |
| `flag = 1`, `flag = 't'` beside a boolean, `N'text'`, `{d '2024-01-31'}`, `{fn YEAR(x)}` | `TRUE`, a text, a date, \
the function |
"""

_OTHERS = """
## In another database's SQL

`curator.ask(question, dialect="postgres")`, and `--dialect postgres` in a shell, read a question as that database \
does: {names}. Its signs, \
quotes and operators are its own, and of its functions those are read whose meaning is known for every row:

| what | where |
|---|---|
| `7 / 2` is 3 for whole numbers; of aggregates such a quotient is refused unless one side has fractions, as `1.0 * \
SUM(x) / COUNT(*)` has | postgres, redshift, tsql |
| EXTRACT has a fraction: `EXTRACT(YEAR FROM x) / 10` cuts nothing off | postgres |
| `x + ' '` puts texts together where one is a constant; `WITH (NOLOCK)` means nothing; a week day's number, which is \
a setting there, is refused | tsql |
| `"text"` is a text, `\\|\\|` is OR, STDDEV and VARIANCE are of the population, LENGTH counts bytes | mysql |
| `DATE_TRUNC(x, WEEK)` begins on Sunday; EXTRACT(WEEK …) is refused | bigquery |
| a match that is not found is NULL, RLIKE and REGEXP_LIKE match the whole text, DAYNAME is short, NUMBER without \
digits is rounded | snowflake |
| CAST to INT cuts the fraction off, VARCHAR without a length has 30 letters, weeks are read as ISO_WEEK alone | tsql |
| GREATEST, LEAST and CONCAT leave NULLs out | postgres, duckdb, tsql |
| `x ~ 'a'` matches the whole text; `//` cuts whole numbers alone; DAYOFWEEK begins with 0 | duckdb |
| `LIKE 'a\\_b'` looks for `_` itself | postgres, redshift, mysql, bigquery |

What stays ours everywhere: texts are compared letter by letter, large and small, whatever the database's collation \
says; what does not convert, and \
what fails there, is NULL; halves are rounded away from zero; a date stays a date where an interval of days is added \
to it; SECOND and EPOCH are \
whole; the mean of whole numbers keeps its fraction.
"""

_END = """
## Refused

These are known and not supported. Whatever else is not in the table is refused too, with the nearest name.

| name | instead |
|---|---|
"""


def page() -> str:
    """The whole page."""
    parts = [_BEGINNING.format(count=len(TABLE))]
    for title, rows in CHAPTERS.items():
        parts.append(f"\n## {title}\n\n| how it is written | gives | special cases | guard | example |\n")
        parts.append("|---|---|---|---|---|\n")
        parts += [_line(row) for row in rows]
    parts.append(_SPELLINGS)
    parts.append(_OTHERS.format(names=", ".join(f"`{name}`" for name in LANGUAGES)))
    parts.append(_END)
    reasons: dict[str, list[str]] = {}
    for name, reason in REFUSED.items():
        reasons.setdefault(reason, []).append(name)
    parts += [f"| {', '.join(f'`{name}`' for name in names)} | {reason} |\n" for reason, names in reasons.items()]
    return "".join(parts)


def _line(row: SqlFunction) -> str:
    usage = row.usage
    others = [name for name in row.names if f"{name}(" not in usage and name not in usage.split(", ")]
    also = f", also {', '.join(f'`{name}`' for name in others)}" if others else ""
    result = "NULL" if row.result is None else row.result
    guard = row.guard or "cannot fail"
    cells = (f"{_code(usage)}{also}", _gives(row), row.edges, guard, f"{_code(row.example)} → {_plain(result)}")
    return f"| {' | '.join(cells)} |\n"


def _code(text: str) -> str:
    return f"`{_plain(text)}`"


def _plain(text: str) -> str:
    """The text with what a table would take for the end of a cell."""
    return text.replace("|", "\\|")


def _gives(row: SqlFunction) -> str:
    words = {
        "same": "the argument's type",
        "common": "integer or number" if row.form not in ("alike", "case") else "the arguments' type",
        "rounded": "integer or number",
        "moment": "date or timestamp",
    }
    return words.get(str(row.gives), str(row.gives))


if __name__ == "__main__":
    sys.stdout.write(page())
