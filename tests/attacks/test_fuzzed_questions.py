"""Questions torn and glued at random: a plan that holds, or a refusal that says what to write; nothing else."""

from __future__ import annotations

import re
from random import Random

import pytest

from discreet.audit.maker import Maker
from discreet.errors import QuestionError
from kinds import some
from relation_tools import FULL, ME, WHOLE, WORD, Bench, apart, shop, without
from torn_questions import mixed_up

KNOWN = shop(WHOLE, WORD)
ODD = r"""
    ( ) , . .. * ; = <> => -> :: || % ^ & ~ ? @x $1 :x {x} [1] 'x' '' "a.b" "" `h` "cust" ² ٣ 1e400
    1e-400 0x1F .5 5. 1_000 NULL TRUE DISTINCT ALL ANY SOME EXISTS NOT AND OR XOR IS IN LIKE ILIKE
    SIMILAR ESCAPE BETWEEN CASE WHEN THEN ELSE END IF COALESCE SELECT FROM WHERE GROUP BY HAVING
    ORDER LIMIT OFFSET FETCH QUALIFY WINDOW OVER PARTITION ROWS FILTER WITHIN TOP JOIN LEFT RIGHT
    FULL OUTER INNER CROSS NATURAL SEMI ANTI ASOF POSITIONAL LATERAL UNNEST VALUES USING ON AS UNION
    INTERSECT EXCEPT BY NAME WITH RECURSIVE MATERIALIZED TABLESAMPLE PIVOT UNPIVOT ROLLUP CUBE
    GROUPING SETS CAST TRY_CAST DATE TIMESTAMP INTERVAL EXTRACT ARRAY STRUCT MAP LIST ROW
    DIFFERENTIAL_PRIVACY OPTIONS epsilon delta COUNT SUM AVG MIN MAX MEDIAN STDDEV ARRAY_AGG ABS
    ERROR GETENV READ_TEXT READ_CSV CURRENT_DATE RANDOM NEXTVAL customers orders lines solo rates
    main.orders id cust oid city age h st total k big f qty cur rate pp num word rowid --x /*x*/
    INSERT UPDATE DELETE DROP ATTACH COPY PRAGMA SET EXPLAIN DESCRIBE SHOW CALL USE
"""
PIECE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\d*\.\d+|\w+|=>|<=|>=|<>|\S")


def torn(seed: int) -> str:
    """A made-up question with a word or two lost, doubled, exchanged or replaced."""
    random = Random(seed)
    words: list[str] = PIECE.findall(Maker(KNOWN, seed, plain=True, slips=0.05).question())
    other: list[str] = PIECE.findall(Maker(KNOWN, seed + 1, plain=True).question())
    mixed_up(words, other, ODD.split(), random.randint(1, 2), random)
    return " ".join(words)


@pytest.mark.parametrize("start", some([0, 10_000], pytest.mark.power))
def test_a_torn_question_is_refused_in_words_or_holds(several: Bench, start: int) -> None:
    """No other error than QuestionError, with a code, a place and a remedy. Some of those that are accepted are run:
    the engine does not fail, persons stay apart, and the sensitivity holds."""
    others, mine = without(FULL, ME)
    suffixes = [several.load(KNOWN, one) for one in (FULL, others, mine)]
    accepted, refusals = [], []
    for seed in range(start, start + 400):
        text = torn(seed)
        try:
            accepted.append((text, several.read(text, KNOWN, suffixes[0])))
        except QuestionError as error:
            refusals.append((text, error))
        except Exception as error:
            raise AssertionError(text) from error
    for text, refusal in refusals:
        assert refusal.code, text
        assert refusal.where, text
        assert refusal.fix, text
    assert len(accepted) > 8
    for text, question in accepted[::2]:
        try:
            apart(several, question, suffixes, "5")
        except Exception as error:
            raise AssertionError(text) from error
