"""Questions of the public suite, torn: words lost, doubled and exchanged, parts of one put into another, texts cut off,
letters and signs replaced; always the same for the same number. And what may come of them: an answer or a refusal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

import sqlglot
from sqlglot import exp

import discreet
from asked_data import Asked
from asked_tools import Question, asks

PIECE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\d+(?:\.\d+)?|\w+|=>|<=|>=|<>|\|\||::|\s+|\S")
DIALECTS = ("postgres", "bigquery", "snowflake", "duckdb", "tsql", "mysql")
SIGNS = "()[]{}'\"`,;.*+-/%=<>!|&^~?@#$:\\_ \n\t\0\x07\x1b\x7f\u00a0\u200b\u202e\u2028\ufeff\ud800ßİǆ²٣€𝟙"
WORDS = r"""
    SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET FETCH TOP QUALIFY WINDOW OVER PARTITION ROWS RANGE FILTER
    WITHIN DISTINCT ALL ANY EXISTS NOT AND OR IS IN LIKE ILIKE SIMILAR ESCAPE BETWEEN CASE WHEN THEN ELSE END JOIN
    LEFT RIGHT FULL CROSS NATURAL SEMI ANTI ASOF LATERAL UNNEST VALUES USING ON AS UNION INTERSECT EXCEPT WITH
    RECURSIVE TABLESAMPLE PIVOT ROLLUP CUBE GROUPING SETS CAST TRY_CAST DATE TIMESTAMP INTERVAL EXTRACT ARRAY
    STRUCT MAP ROW NULL TRUE NULLS FIRST OPTIONS DIFFERENTIAL_PRIVACY epsilon COUNT SUM AVG MIN MAX MEDIAN STDDEV
    ARRAY_AGG RANK LAG NTILE COALESCE READ_CSV READ_TEXT GETENV ERROR RANDOM NOW CURRENT_DATE NEXTVAL PRAGMA
    ATTACH COPY INSERT DELETE DROP SET EXPLAIN SHOW public main information_schema duckdb_tables customers
    invoices invoice_lines products cities id total rowid day ( ) , . * ; = <> => -> :: || % [1] {x} '' 'x' "a"
    1e400 0x1F .5 5. 1_000 -- /* */ $1 :x ?
"""
"""What is put in by chance."""


def torn(seed: int, questions: Sequence[Question]) -> Question:
    """One of the questions, torn in one of four ways, and now and then in a dialect that is not its own."""
    random = Random(seed)
    one, other = random.choice(questions), random.choice(questions)
    way = (_words, _grafted, _cut, _signs)[seed % 4]
    text = way(one, other, random)
    dialect = random.choice(DIALECTS) if random.random() < 0.25 else one.options.get("dialect", "")
    return replace(one, name=f"torn {seed}", text=text, options={**one.options, "dialect": dialect})


def _words(one: Question, other: Question, random: Random) -> str:
    """Words and signs lost, doubled, exchanged or replaced."""
    words = PIECE.findall(one.text)
    mixed_up(words, PIECE.findall(other.text), WORDS.split(), random.randint(1, 3), random)
    return "".join(words)


def mixed_up(words: list[str], others: Sequence[str], odd: Sequence[str], times: int, random: Random) -> None:
    """Some of the words lost, doubled, exchanged, or replaced by odd ones or by those of another question."""
    for _ in range(times):
        place, second = random.randrange(len(words)), random.randrange(len(words))
        match random.randrange(6):
            case 0:
                del words[place]
            case 1:
                words.insert(place, words[second])
            case 2:
                words[place], words[second] = words[second], words[place]
            case 3:
                words.insert(place, f" {random.choice(odd)} ")
            case 4:
                words[place] = random.choice(odd)
            case _:
                words[place] = random.choice(others)
        if not words:
            words.append("SELECT")


def _grafted(one: Question, other: Question, random: Random) -> str:
    """A part of the tree of one question in the place of such a part of another: what a grammar of the shapes makes."""
    try:
        trees = [sqlglot.parse_one(each.text, read=each.options.get("dialect")) for each in (one, other)]
    except sqlglot.errors.SqlglotError:
        return _words(one, other, random)
    places = [each for each in trees[0].walk() if each.parent is not None and not isinstance(each, exp.Identifier)]
    parts = [each for each in trees[1].walk() if not isinstance(each, exp.Identifier)]
    if random.random() < 0.5:  # gently: a column or a constant of the same question
        leaves = [each for each in places if isinstance(each, exp.Column | exp.Literal)]
        places, parts = leaves or places, leaves or parts
    for _ in range(random.randint(1, 2)):
        place = random.choice(places)
        alike = [each for each in parts if isinstance(each, type(place))] if random.random() < 0.7 else parts
        place.replace(random.choice(alike or parts).copy())
    try:
        return trees[0].sql(dialect=one.options.get("dialect"))
    except Exception:  # the library writes no text for some of these trees
        return _words(one, other, random)


def _cut(one: Question, other: Question, random: Random) -> str:
    """The beginning of a question, the end of one, or the beginning of one with the end of another."""
    place, second = random.randrange(len(one.text) + 1), random.randrange(len(other.text) + 1)
    return random.choice([one.text[:place], one.text[place:], one.text[:place] + other.text[second:]])


def _signs(one: Question, _other: Question, random: Random) -> str:
    """Letters replaced, lost and put in; or bytes changed in what is then read as UTF-8 again."""
    if random.random() < 0.5:
        letters = list(one.text)
        for _ in range(random.randint(1, 4)):
            place = random.randrange(len(letters) + 1)
            letters[place : place + random.randint(0, 2)] = random.choice([*SIGNS, ""])
        return "".join(letters)
    data = bytearray(one.text.encode())
    for _ in range(random.randint(1, 4)):
        data[random.randrange(len(data))] = random.randrange(256)
    return data.decode(errors=random.choice(["replace", "surrogateescape"]))


FOREIGN = re.compile(
    r"(?i)traceback|sqlglot|duckdb_|binder error|parser error|catalog error|conversion error|internal error"
    r"|invalid input error|not implemented|<class|object at 0x|\bexp\.[A-Z]|unexpected token|required keyword|candidate"
)
"""What would be the engine's own words, or the parser's."""


ENDED = "or too much memory, to be read"


@dataclass(frozen=True)
class Came:
    """What came of a torn question."""

    answered: bool
    code: str = ""
    fault: str = ""
    """What should not have come."""


def came(asked: Asked, question: Question) -> Came:
    try:
        asks(asked, question, question.text)
    except (discreet.QuestionError, discreet.BudgetError) as refusal:
        told = str(refusal)
        said = [word for word in ("code", "where", "fix") if not getattr(refusal, word)]
        if said and isinstance(refusal, discreet.QuestionError):
            return Came(False, refusal.code, f"no {said} in {told!r}")
        try:
            told.encode()
        except UnicodeEncodeError:
            return Came(False, refusal.code, f"it cannot be printed: {told!r}")
        if ENDED in told:
            return Came(False, refusal.code, "the process that reads texts ended: no torn question is long")
        if FOREIGN.search(told) and not FOREIGN.search(question.text):
            return Came(False, refusal.code, f"not our words: {told!r}")
        return Came(False, refusal.code)
    except Exception as error:
        return Came(False, "", f"{type(error).__name__}: {error}")
    return Came(True)
