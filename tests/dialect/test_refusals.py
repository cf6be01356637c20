"""What is refused: whatever could fail, look elsewhere, draw by chance, or take long; and what to write instead."""

from __future__ import annotations

import pytest

from dialect_tools import read
from discreet.dialect.table import REFUSED
from discreet.errors import QuestionError

REFUSALS = [
    *("random() < 1", "uuid() = 'x'", "NOW() > date_1", "CURRENT_DATE > date_1", "current_timestamp > date_1"),
    *("getenv('HOME') = ''", "current_setting('threads') = '1'", "error('x')", "read_csv('x')", "read_text('/etc/x')"),
    *("query('SELECT 1')", "nextval('s') = 1", "duckdb_tables() = 1", "version() = 'x'", "hash(text_1) = 1"),
    *("REPEAT(text_1, 3) = 'x'", "SPACE(1000) = ''", "FORMAT('{}', text_1) = 'x'", "FACTORIAL(integer_1) = 1"),
    *("LPAD(text_1, integer_1) = 'x'", "LPAD(text_1, 1001) = 'x'", "RPAD(text_1, 5, '') = 'x'"),
    *("REPLACE(text_1, 'a', 'bb') = 'x'", "REPLACE(text_1, text_2, '') = 'x'", "REPLACE(text_1, '', 'a') = 'x'"),
    *("TRANSLATE(text_1, 'a', 'bc') = 'x'", "REGEXP_REPLACE(text_1, 'a', 'b') = 'x'", "CHR(integer_1) = 'x'"),
    *("CONTAINS(text_1, text_2)", "STRPOS(text_1, text_2) = 1", "SPLIT_PART(text_1, '', 1) = 'x'"),
    *("SPLIT_PART(text_1, '-', integer_1) = 'x'", "LEVENSHTEIN(text_1, text_2) = 1"),
    *("text_1 ~ text_2", "text_1 ~ '('", "text_1 ~ '(a)\\1'", "text_1 ~ '(?=a)'", "text_1 ~ 'a**'", "text_1 ~ '[z-a]'"),
    *("text_1 ~ '(a{100}){100}'", "text_1 ~ 'a{101}'", "text_1 ~ '\\pL'", "text_1 ~ '(?<x>a)'", "text_1 ~ '[a'"),
    *(f"text_1 ~ '{'a' * 201}'", "text_1 ~ 'a\\'", "text_1 ~ '^*'", "REGEXP_EXTRACT(text_1, '(a)(b)') = 'a'"),
    *("text_1 SIMILAR TO 'a'", "text_1 GLOB 'a'", "text_1 LIKE 'a!' ESCAPE '!'", "text_1 LIKE 'a' ESCAPE '!!'"),
    *("text_1 LIKE text_2", "text_1 ILIKE text_2", "text_1 LIKE 'a' ESCAPE 'ü'", "integer_1 << 3 = 1"),
    *("integer_1 >> integer_2 = 1", "integer_1 >> -1 = 1", "number_1 & 1 = 1", "ROUND(number_1, integer_1) = 1"),
    *("ROUND(number_1, 400) = 1", "WIDTH_BUCKET(number_1, 3, 3, 5) = 1", "WIDTH_BUCKET(number_1, 0, number_2, 5) = 1"),
    *("date_1 * 1 = date_2", "date_1 + INTERVAL integer_1 DAY > date_2", "date_1 + INTERVAL 10000 YEAR > date_2"),
    *("date_1 + INTERVAL '1 fortnight' > date_2", "DATE_ADD(date_1, 5) = date_2", "INTERVAL 1 DAY = 1"),
    *("DATE_TRUNC('era', date_1) = date_2", "DATE_TRUNC(text_1, date_1) = date_2", "EXTRACT(ERA FROM date_1) = 1"),
    *("FORMAT_DATE('%Q', date_1) = 'x'", "FORMAT_DATE(text_1, date_1) = 'x'", "MAKE_DATE(2020, 2, 30) = date_1"),
    *("date_1 AT TIME ZONE 'UTC' = date_2", "STRPTIME(text_1, '%Y') = date_1", "CAST(date_1 AS INTEGER) = 1"),
    *("CAST(text_1 AS JSON) = '1'", "CAST(text_1 AS DECIMAL(40, 20)) = 1", "CAST(text_1 AS VARCHAR(3)) = 'x'"),
    *("CAST(text_1 AS UUID) = 'x'", "CAST('2020-13-01' AS DATE) = date_1", "CAST(NULL AS INTEGER) = 1"),
    *("UPPER(integer_1) = 'X'", "SQRT(text_1) = 1", "YEAR(integer_1) = 1", "SQRT(1, 2) = 1", "PI(1) = 1"),
    *("GREATEST(text_1, integer_1) = 1", "UPPER() = 'X'", "IF(boolean_1, 1, 2, 3) = 1", "text_1[1] = 'a'"),
    *("[1, 2] = [1]", "SAFE.SUBSTR(text_1, 1) = 'a'", "UNNEST(text_1) = 'a'", "GENERATE_SERIES(1, 3) = 1"),
    "text_1" + " || text_1" * 20 + " = 'x'",
    "CONCAT(" + ", ".join(["text_1"] * 50) + ") = 'x'",
]


@pytest.mark.parametrize("text", REFUSALS, ids=lambda text: text[:50])
def test_refused_with_what_to_write_instead(text: str) -> None:
    with pytest.raises(QuestionError) as raised:
        read(text)
    assert raised.value.fix
    assert raised.value.message


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_names_that_are_refused(name: str) -> None:
    for text in (f"{name}()", f"{name}(text_1)", f"{name}(text_1, 1)"):
        with pytest.raises(QuestionError):
            read(text)


@pytest.mark.parametrize(
    ("text", "near"), [("UPER(text_1)", "UPPER("), ("FLOR(number_1)", "FLOOR("), ("DATE_TRUNK(date_1)", "DATE_TRUNC(")]
)
def test_a_name_that_is_nearly_right(text: str, near: str) -> None:
    with pytest.raises(QuestionError) as raised:
        read(text)
    assert near in raised.value.fix
