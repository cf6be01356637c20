"""Whether times tell of one person: aimed questions asked with the person in the tables and without.

Half of the times fit a threshold for each question, the other half are guessed by it. With no signal a guess is right
in half of the cases; the upper 95 % bound of its chance is shown beside it. `python -m bench.clock SECONDS ROUNDS`:
with answers on a schedule of so many seconds (0: without one), each question so often on either side.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from discreet.audit import aimed
from discreet.audit.clock import Times, told_apart
from discreet.audit.hunt import PLENTY, Pair, failure, seen
from discreet.catalog import Source, SourceKind, Table
from discreet.errors import QuestionError

TOGETHER = 4
"""Pairs of curators that are asked side by side where answers wait for a schedule."""
EPSILON = Fraction(1, 10**3)


@dataclass(frozen=True)
class Measured:
    """Times on either side, and what came instead of an answer."""

    absent: Times
    present: Times
    outcomes: tuple[Counter[str], Counter[str]]


def framed(table: Table, rows: object) -> Source:
    """Rows as a table in Python."""
    import pandas

    frame = pandas.DataFrame(rows, columns=[column.name for column in table.columns], dtype=object)
    return Source(SourceKind.FRAME, frame=frame)


def answered(pair: Pair) -> Mapping[str, str]:
    """The aimed questions that are not refused."""
    kept = {}
    for name, text in aimed.questions().items():
        try:
            pair.curators[0].explain(text, epsilon=EPSILON)
        except QuestionError:
            continue
        kept[name] = text
    return kept


def measure(pair: Pair, questions: Mapping[str, str], rounds: int, seed: int) -> Measured:
    """Every question so often on either side, in turns by chance; each with another literal, so that none is a
    repeat."""
    random = Random(seed)
    turns = [(side, name) for side in (0, 1) for name in questions for _ in range(rounds)]
    random.shuffle(turns)
    times: tuple[list[tuple[str, float]], list[tuple[str, float]]] = ([], [])
    outcomes: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for number, (side, name) in enumerate(turns):
        text = questions[name].replace(" WHERE ", f" WHERE {seed * 10**6 + number} > 0 AND ", 1)
        curator = pair.curators[side]
        start = time.perf_counter()
        found = seen(curator, text, (EPSILON, Fraction(0)), explained=False)
        times[side].append((name, time.perf_counter() - start))
        outcomes[side][f"{name}: {failure(found)}" if failure(found) else "answered"] += 1
        if failure(found):
            pair.start()
    return Measured(*times, outcomes)


def run(seconds: int, rounds: int) -> None:
    """Prints for each question, and for all together, how often a guess was right."""
    many = TOGETHER if seconds else 1
    pairs = [Pair(aimed.declared(seconds or None), aimed.worlds(), framed) for _ in range(many)]
    questions = answered(pairs[0])
    print(f"{len(aimed.questions())} aimed questions, {len(questions)} answered, the others refused", flush=True)
    with ThreadPoolExecutor(many) as pool:
        parts = list(pool.map(lambda job: measure(job[1], questions, rounds // many, job[0]), enumerate(pairs, 1)))
    absent = [one for part in parts for one in part.absent]
    present = [one for part in parts for one in part.present]
    for name in (*questions, ""):
        mine, yours = ([one for one in times if name in ("", one[0])] for times in (absent, present))
        guesses = told_apart(mine, yours)
        bound = f"at most {guesses.at_most():.3f} at 95 % confidence"
        print(f"{name or 'all together':<62}{len(mine):>6} a side  right {guesses.success:.3f}, {bound}", flush=True)
    for side, word in ((0, "absent"), (1, "present")):
        print(word, dict(sum((part.outcomes[side] for part in parts), Counter())))
    for pair in pairs:
        pair.close()


if __name__ == "__main__":
    assert PLENTY.epsilon > 10**6
    run(int(sys.argv[1]), int(sys.argv[2]))
