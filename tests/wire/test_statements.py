"""Where statements and parameters are in a text, and that a value never gets out of its literal."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp
from sqlglot.dialects import Postgres

from discreet.sql.grammar import parse
from discreet.wire.messages import BINARY
from discreet.wire.refusals import Trouble
from discreet.wire.statements import beside, statements
from discreet.wire.values import NUMERIC, encoded, literal, quoted


def test_statements_are_apart_at_semicolons_that_stand_in_no_text() -> None:
    text = "SELECT ';' ; ; SET a.b = 'x;y' /* ; /* ; */ ; */; SELECT $$;$$, \"a;b\" -- ;\n; E'\\';'"
    assert [one.text for one in statements(text)] == [
        "SELECT ';'",
        "SET a.b = 'x;y'",
        'SELECT $$;$$, "a;b"',
        "E'\\';'",
    ]
    assert statements(" ; -- nothing\n") == []


@pytest.mark.parametrize("text", ["SELECT 'a", 'SELECT "a', "/* a /* b */", "SELECT $a$ $b$", "SELECT $0", '""'])
def test_what_does_not_end_is_refused(text: str) -> None:
    with pytest.raises(Trouble) as caught:
        statements(text)
    assert caught.value.code in ("42601", "42P02")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = statements(text)
    except Trouble:
        return
    for one in found:
        assert one.text in text
        assert [one.text[word.start : word.end] for word in one.words if word.kind != "quoted"] == [
            word.text for word in one.words if word.kind != "quoted"
        ]


_TEXTS = st.text(st.sampled_from("'\"\\$;-/*\n aé☃E`{}%_:") | st.characters(exclude_characters="\0"), max_size=30)


@given(_TEXTS)
def test_a_value_is_one_word_to_whoever_reads_the_question(value: str) -> None:
    text = "SELECT COUNT(*) FROM t WHERE a = $1 AND b IN ($2,$1)"
    (one,) = statements(text)
    try:
        given_ = literal(25, value.encode(), 0)
    except UnicodeEncodeError:
        return
    filled = one.filled([given_, "(-5)"])
    tokens = Postgres().tokenize(filled)
    assert [token.text for token in tokens if token.token_type.name == "STRING"] == [value, value]
    tree = parse(filled, Postgres())
    assert [leaf.this for leaf in tree.find_all(exp.Literal) if leaf.is_string] == [value] * 2


@given(_TEXTS)
def test_our_own_words_are_those_of_the_reader(value: str) -> None:
    (one,) = statements(f"SELECT {quoted(value)}")
    assert len(one.words) == 2


@pytest.mark.parametrize("text", ["0", "-0.5", "10000", "0.00012", "1234567890" * 4 + "." + "0987654321" * 3, "-1e20"])
def test_binary_numbers_keep_all_their_digits(text: str) -> None:
    said = literal(NUMERIC, encoded(NUMERIC, Decimal(text), BINARY), BINARY)
    assert Fraction(said.strip("()")) == Fraction(text)


def test_what_parameters_stand_beside() -> None:
    text = (
        "SELECT COUNT(*) FROM t WHERE age > $1 AND t.city NOT IN ($2, $3) AND cost BETWEEN $4 AND $5"
        ' AND $6 = "Day" AND x = $7::int AND y = CAST($8 AS date) LIMIT $9'
    )
    (one,) = statements(text)
    assert beside(one) == {
        1: ("column", "age"),
        2: ("column", "city"),
        3: ("column", "city"),
        4: ("column", "cost"),
        5: ("column", "cost"),
        6: ("column", "Day"),
        7: ("type", "int"),
        8: ("type", "date"),
        9: ("rows", ""),
    }
