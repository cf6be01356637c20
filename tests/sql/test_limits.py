"""What is nested or long beyond use is refused before it is parsed, and nothing grows beyond what was counted."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest

import reading_tools
from discreet.engines.chosen import DIALECT
from discreet.errors import QuestionError
from discreet.plan.measurement import Price
from discreet.plan.split import measurement
from discreet.sql import limits, lower
from discreet.sql.grammar import Questions, parse
from discreet.trusted.ring_a.nodes import Root
from discreet.trusted.ring_a.statement import statement
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_a.windows import Salt
from reading_tools import WHERE, declaration

DECLARED = declaration()
GUARD = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))  # a guard against what never ends: all of it takes about two seconds
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
from reading_tools import HOSTILE, declaration
from discreet.errors import QuestionError
from discreet.sql import lower
declared = declaration()
for name, text in HOSTILE.items():
    try:
        lower(text, declared)
    except QuestionError as error:
        assert error.fix, name
    else:
        raise AssertionError(name)
"""


def test_no_text_takes_over_who_reads_it() -> None:
    run = subprocess.run(
        [sys.executable, "-c", GUARD],
        cwd=Path(reading_tools.__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]


def steps(text: str) -> tuple[int, int]:
    """How many steps the parser takes for a text, and how many tokens it has."""
    dialect = Questions()
    tokens = dialect.tokenize(text)
    parser = dialect.parser()
    parser.parse(tokens, text)
    least, more = limits.STEPS
    return least + more * len(tokens) - parser.left, len(tokens)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT g, COUNT(*) AS n, AVG(v) AS m FROM t WHERE n > 0.5 GROUP BY g ORDER BY n DESC LIMIT 3",
        WHERE + "v IN (" + ",".join(map(str, range(4_000))) + ")",
        "SELECT SUM(CASE WHEN v = 1 THEN CASE WHEN n > 1 THEN 2 ELSE CAST(n AS INTEGER) END ELSE 1 END) FROM t",
        "WITH a AS (SELECT p, v FROM t) SELECT COUNT(*) FROM (SELECT p, SUM(v) AS s FROM a GROUP BY p) WHERE s > 1",
    ],
)
def test_ordinary_questions_are_far_from_the_limit_of_steps(text: str) -> None:
    taken, tokens = steps(text)
    assert taken < 1.5 * tokens + 50


def test_what_is_tried_again_at_each_level_ends_after_the_steps_that_are_allowed() -> None:
    for depth in (20, 40):
        with pytest.raises(limits.Endless):
            steps(WHERE + "INT[" * depth + "1" + "]" * depth + " = 1")


def shallow(text: str) -> str:
    try:
        limits.words(text)
        limits.shallow(Questions().tokenize(text))
    except QuestionError as error:
        return error.message
    return ""


def columns(count: int) -> str:
    return ", ".join(["v"] * count)


@pytest.mark.parametrize(
    ("make", "most", "words"),
    [
        (lambda n: "SELECT " + "(" * n + "1" + ")" * n, limits.DEEPEST, "levels"),
        (lambda n: "SELECT " + "[" * n + "1" + "]" * n, limits.DEEPEST, "levels"),
        (lambda n: "SELECT " + "{" * n + "1" + "}" * n, limits.DEEPEST, "levels"),
        (lambda n: "SELECT " + "CASE WHEN 1 THEN " * n + "1" + " END" * n, limits.DEEPEST, "levels"),
        (lambda n: "SELECT CAST(1 AS " + "ARRAY<" * (n - 1) + "INT" + ">" * (n - 1) + ")", limits.DEEPEST, "levels"),
        (lambda n: "SELECT " + "NOT " * n + "TRUE", limits.DEEPEST, "NOT"),
        (lambda n: "SELECT " + "- " * n + "1", limits.DEEPEST, "signs"),
        (lambda n: "SELECT 1" + " OR 1" * n, limits.LONGEST_CHAIN, "operators"),
        (lambda n: "SELECT v" + "[1]" * n, limits.LONGEST_CHAIN, "operators"),
        (lambda n: f"SELECT {columns(n)} FROM t", 300, "columns"),
        (lambda n: f"SELECT 1 FROM t GROUP BY {columns(n)}", 100, "GROUP BY"),
        (lambda n: f"SELECT 1 FROM t ORDER BY {columns(n)}", 100, "ORDER BY"),
        (lambda n: "SELECT 1" + " UNION ALL SELECT 1" * n, 60, "queries"),
        (lambda n: "SELECT 1 FROM t" + " JOIN t ON TRUE" * n, 60, "joins"),
        (lambda n: "SELECT CASE" + " WHEN 1 THEN 1" * n + " END", 1_000, "branches"),
        (lambda n: "SELECT (" + "1 " * (n - 3) + ")", limits.MOST_WORDS, "words"),
    ],
)
def test_each_limit_admits_what_reaches_it_and_names_itself_beyond(make, most, words) -> None:  # type: ignore[no-untyped-def]
    assert shallow(make(most)) == ""
    message = shallow(make(most + 1))
    assert words in message
    assert f"{most:,}" in message


def test_brackets_in_texts_names_and_comments_are_none() -> None:
    many = "([{CASE " * 500
    assert shallow(f"SELECT '{many}', \"{many}\", `{many}`, 1 -- {many}\n /* {many} */ FROM t") == ""


def test_comments_stand_in_no_label_and_no_message() -> None:
    assert all(not node.comments for node in parse("SELECT v /* note */ + 1 FROM t -- note").walk())


def test_what_a_tree_stands_for_is_counted_without_making_it() -> None:
    nested = WHERE + "(" * 9 + "(v = 1)" + " BETWEEN FALSE AND TRUE)" * 9
    plan = lower(nested, DECLARED).plan
    assert 1_000 < limits.written(plan.roots) < limits.MOST_WRITTEN
    with pytest.raises(QuestionError, match="as often as they are read"):
        parse(
            nested.replace("(" * 10, "(" * 20).replace(" BETWEEN FALSE AND TRUE)" * 9, " BETWEEN FALSE AND TRUE)" * 19)
        )


@pytest.mark.parametrize(
    "text",
    [
        WHERE + "v IN (" + ",".join(map(str, range(4_900))) + ")",
        "SELECT " + ", ".join(f"SUM(x + {i}) AS a{i}" for i in range(60)) + " FROM t",
        "SELECT " + ", ".join(f"COUNT(DISTINCT v + {i})" for i in range(12)) + " FROM t",
        "SELECT COUNT(*) FROM (SELECT p, "
        + ", ".join(f"n + {i} AS c{i}" for i in range(200))
        + " FROM t) WHERE c1 > 0",
        "SELECT COUNT(*) FROM (SELECT p, v FROM t UNION ALL SELECT p, v FROM t)",
    ],
)
def test_statements_are_as_long_as_was_counted(text: str) -> None:
    checked = lower(text, DECLARED)
    length = sum(len(DIALECT.text(statement(root, checked.table, Salt.of("salt")))) for root in checked.plan.roots)
    assert length < 40 * limits.written(checked.plan.roots)


def calls(make: Callable[[], object]) -> int:
    """How many calls stand in each other at most."""
    standing = most = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal standing, most
        if event == "call":
            standing += 1
            most = max(most, standing)
        elif event == "return":
            standing -= 1

    sys.setprofile(count)
    try:
        make()
    finally:
        sys.setprofile(None)
    return most


NESTED = {
    "operators": lambda n: "(" * n + "x" + " + 1)" * n,
    "a row of operators": lambda n: "x" + " * 2" * n,
    "quotients": lambda n: "(" * n + "x" + " / 3)" * n,
    "functions": lambda n: "ABS(" * n + "x" + ")" * n,
    "functions that may give no number": lambda n: "SQRT(" * n + "x" + ")" * n,
    "functions that need a value often": lambda n: "WIDTH_BUCKET(" * n + "x" + ", 0, 5, 7)" * n,
    "choices": lambda n: "GREATEST(" * n + "x" + ", 3)" * n,
    "cases": lambda n: "CASE WHEN v = 1 THEN " * n + "x" + " ELSE 2 END" * n,
}


def _written(root: Root, table: Table) -> str:
    return DIALECT.text(statement(root, table, Salt.of("")))


@pytest.mark.parametrize("kind", NESTED)
def test_planning_anew_and_writing_take_no_more_calls_than_are_counted(kind: str) -> None:
    for depth in (1, 3, 9, 16):
        checked = lower(f"SELECT AVG({NESTED[kind](depth)}) FROM t", DECLARED)
        priced = measurement(checked.plan, Price(Fraction(1), Fraction(0)))
        found = [(Fraction(0), Fraction(9))] * len(priced.ranges)
        anew = priced.settled(tuple(found)).plan
        most = limits.frames(checked.plan.roots)
        assert calls(lambda: priced.settled(tuple(found))) < most  # noqa: B023
        written = [calls(partial(_written, root, checked.table)) for root in anew.roots]
        assert max(written) < most


@pytest.mark.parametrize("inner", ["SELECT p, SUM(n) AS n FROM {} GROUP BY p", "SELECT p, n + 1 AS n FROM {}"])
def test_so_it_is_with_selects_in_each_other(inner: str) -> None:
    text = "t"
    for _ in range(4):
        text = f"({inner.format(text)})"
        checked = lower(f"SELECT COUNT(*) FROM {text}", DECLARED)
        made = (calls(partial(_written, root, checked.table)) for root in checked.plan.roots)
        assert max(made) < limits.frames(checked.plan.roots)


WORDS = re.findall(
    r"\S+",
    "SELECT FROM t WHERE GROUP BY HAVING ORDER LIMIT p n v g d b x 1 2.5 'a' '2020-01-01' NULL TRUE ( ) ( ) [ ] { } < >"
    " , , , . * + - / % || :: => = <> <= AND OR NOT XOR IN IS BETWEEN LIKE ILIKE CASE WHEN THEN ELSE END CAST AS INT"
    " DATE TIMESTAMP ARRAY STRUCT MAP INTERVAL DAY EXTRACT YEAR COUNT SUM AVG MIN DISTINCT FILTER OVER PARTITION JOIN"
    " LEFT ON USING UNION ALL WITH DIFFERENTIAL_PRIVACY OPTIONS epsilon UNNEST EXISTS ANY LATERAL PIVOT QUALIFY WINDOW"
    ' VALUES COALESCE IF DECODE JSON_OBJECT XMLTABLE TRIM SUBSTRING -- /* */ ; " ` @ # $ ~ ^ & | ! ? : \\ é \x00',
)
REAL = (
    "SELECT g, COUNT(*) AS n, AVG(v) AS m FROM t WHERE n > 0.5 GROUP BY g ORDER BY n DESC LIMIT 3",
    "SELECT SUM(CASE WHEN v = 1 THEN n ELSE 2 END) FROM (SELECT p, v, SUM(n) AS n FROM t GROUP BY p, v) WHERE v IN (1)",
    "WITH a AS (SELECT p, v FROM t) SELECT COUNT(DISTINCT v) FILTER (WHERE v BETWEEN 1 AND 2) FROM a JOIN t ON a.p=t.p",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon=1) AVG(n), SUM(v, contribution_bounds_per_row=>(0, 1)) FROM t",
)


def soup(source: random.Random) -> str:
    """Some words after one another, or a real question with words put in, taken out, doubled or nested."""
    if source.random() < 0.4:
        return " ".join(source.choices(WORDS, k=source.randrange(1, 60)))
    words = source.choice(REAL).replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split()
    for _ in range(source.randrange(1, 6)):
        place, other = source.randrange(len(words) + 1), source.randrange(len(words) + 1)
        change = source.randrange(4)
        if change == 0:
            words.insert(place, source.choice(WORDS))
        elif change == 1:
            del words[place : place + source.randrange(3)]
        elif change == 2:
            words[place:place] = words[min(place, other) : max(place, other)] * source.randrange(1, 4)
        else:
            words[place:place] = [source.choice(WORDS), source.choice("([{")] * source.randrange(1, 50)
        words = words or ["SELECT"]
    return " ".join(words)


def test_of_soups_of_words_nothing_comes_but_plans_and_refusals() -> None:
    source = random.Random(20_261_122)
    for _ in range(400):
        text = soup(source)
        try:
            checked = lower(text, DECLARED)
        except QuestionError:
            continue
        for root in checked.plan.roots:
            DIALECT.text(statement(root, checked.table, Salt.of("salt")))


def test_half_a_letter_is_refused_in_words_that_can_be_printed() -> None:
    with pytest.raises(QuestionError) as refusal:
        lower("SELECT COUNT(*) FRO\ud800M t", DECLARED)
    assert str(refusal.value).encode()
    assert (refusal.value.code, "UTF-8" in refusal.value.fix) == ("syntax", True)
