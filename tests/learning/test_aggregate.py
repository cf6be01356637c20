"""Sample and aggregate: which rows meet, what the noise is, what one person can change, and what functions do."""

from __future__ import annotations

import itertools
import math
import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import cloudpickle
import numpy
import pandas
import pytest
from scipy import stats

from discreet import BudgetError, Curator, EngineError, QuestionError
from discreet.catalog.model import EngineLimits
from discreet.learning.aggregate import AggregateOptions, Aggregation, aggregation
from discreet.ledger import TOTAL
from discreet.mechanisms import Laplace
from discreet.trusted.ring_a import additive
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_c.block_process import BlockLimits, BlockProcesses
from discreet.trusted.ring_c.blocks import Blocks, scores, step_of
from discreet.trusted.ring_c.vectors import VectorColumn, Vectors
from learning_tools import curator, surely_more

SECRET = "name-of-a-person"
ROWS = [{"p": f"p{i % 20}", "v": i % 7 - 1.5, "k": i % 11, "g": "x", "b": i % 2 == 0} for i in range(60)]
MANY = "1e20"
"""A price at which noise is zero, whatever is drawn."""


@pytest.fixture(autouse=True)
def one_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In tests of what is computed, one process runs all blocks: each loads pandas. Those that wait, and the one of a
    bad block, have as many as there are processors."""
    several = request.node.function is test_one_bad_block_is_one_block
    if not several and not any(request.node.get_closest_marker(kind) for kind in ("storm", "power")):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})


@pytest.fixture(scope="module")
def people() -> Iterator[Curator]:
    with curator(ROWS, epsilon="1e25") as one:
        yield one


def call(one: Curator, function: Callable[[Any], object], **arguments: Any) -> Aggregation:
    known: dict[str, Any] = {"low": 0, "high": 4, "blocks": 3, "aggregate": "mean", "columns": None, "epsilon": 1}
    known |= {"step": 1, "limits": BlockLimits(20, 1), "analyst": None}
    return aggregation(one.declaration, function, AggregateOptions(table="t", **(known | arguments)))


def ask(one: Curator, function: Callable[[Any], object], **arguments: Any) -> float:
    """The exact value: the price makes noise vanish."""
    known: dict[str, Any] = {"low": 0, "high": 100, "blocks": 2, "epsilon": MANY, "seconds": 2, "aggregate": "mean"}
    value: float = one.sample_and_aggregate(function, "t", **(known | arguments)).rows[0]["value"]
    return value


class Values:
    """Processes that gave these values, whatever the blocks hold; remembers the blocks."""

    def __init__(self, values: Sequence[float | None]) -> None:
        self.values = list(values)
        self.blocks: Sequence[bytes] = []

    def compute(self, blocks: Sequence[bytes], _: Callable[[int], None]) -> list[float | None]:
        self.blocks = blocks
        return self.values


class Known:
    """Rows that the real engine gave once, to be given again: the noise alone is drawn afresh."""

    def __init__(self, one: Curator) -> None:
        table = one.declaration.tables["t"]
        self.found = one._engine.vectors(table, [VectorColumn(column) for column in table.columns])

    def vectors(self, *_: object) -> Vectors:
        return self.found


def measured(one: Curator, values: Sequence[float | None], **arguments: Any) -> Blocks:
    plan = call(one, abs, **({"blocks": len(values)} | arguments))
    processes: Any = Values(values)
    return Blocks(plan.table, plan.columns, plan.blocks, plan.lattice, plan.mechanism, processes, lambda _: None)


def permute_and_flip(known: Sequence[int], rate: float) -> list[float]:
    """The exact distribution, from its definition: each order of the candidates, the first head."""
    chances = [math.exp(rate * (score - max(known))) for score in known]
    found = [0.0] * len(known)
    for heads in itertools.product((False, True), repeat=len(known)):
        weight = math.prod(p if head else 1 - p for p, head in zip(chances, heads, strict=True))
        for place, head in enumerate(heads):
            if head:
                found[place] += weight / sum(heads)
    return found


GRID = Lattice(Fraction(1), 0, 4)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_median_of_three_blocks_replacing_any_value_by_any_other(epsilon: float) -> None:
    """All 125 triples of values on five points and all their neighbours: no outcome's ratio is above e^ε. Exact."""
    laws = {v: permute_and_flip(scores(list(v), GRID), epsilon / 2) for v in itertools.product(range(5), repeat=3)}
    worst = 0.0
    for values, law in laws.items():
        assert sum(law) == pytest.approx(1)
        for place, other in itertools.product(range(3), range(5)):
            near = laws[(*values[:place], other, *values[place + 1 :])]
            worst = max(worst, *(math.log(a / b) for a, b in zip(law, near, strict=True)))
    assert epsilon / 3 < worst <= epsilon + 1e-9


def test_scores_change_by_at_most_one_and_are_largest_at_the_median() -> None:
    for values in itertools.product(range(5), repeat=3):
        known = scores(list(values), GRID)
        assert known[sorted(values)[1]] == max(known)
        for place, other in itertools.product(range(3), range(5)):
            near = scores([*values[:place], other, *values[place + 1 :]], GRID)
            assert max(abs(a - b) for a, b in zip(known, near, strict=True)) <= 1


@pytest.mark.power
def test_the_median_is_drawn_with_that_distribution(people: Curator) -> None:
    """3,000 draws through the door's own code against the enumeration; false alarm below 1e-6."""
    blocks = measured(people, [0, 1, 4], aggregate="median", epsilon=2)
    engine: Any = Known(people)
    drawn = [blocks.draw(engine) for _ in range(3_000)]
    law = permute_and_flip(scores([0, 1, 4], GRID), 1.0)
    assert stats.chisquare([drawn.count(place) for place in range(5)], [3_000 * p for p in law]).pvalue > 1e-6


def test_the_mean_costs_what_a_whole_width_costs(people: Curator) -> None:
    plan = call(people, abs, step=None, epsilon="0.5")
    assert isinstance(plan.mechanism, Laplace)
    assert plan.lattice.width * plan.lattice.step >= 4
    assert plan.mechanism.scale == plan.lattice.width * 2
    assert measured(people, [1, 1], step=None, epsilon="0.5").loss.to_json() == {
        "event": "discrete_laplace",
        "epsilon": "1/2",
        "sensitivity": plan.lattice.width,
    }


def both(people: Curator) -> tuple[list[int], list[int]]:
    """4,000 noisy sums of neighbours that are as far apart as they can be."""
    one, two = (measured(people, values) for values in ([4, 4, 4], [4, 4, 0]))
    engine: Any = Known(people)
    return [one.draw(engine) for _ in range(4_000)], [two.draw(engine) for _ in range(4_000)]


@pytest.mark.power
def test_the_attack_finds_no_more_than_the_price_and_half_the_noise(
    people: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ε = 1 on sums that a whole block moved; the same attack finds noise of half the scale."""
    events = [lambda total, least=least: total >= least for least in range(4, 16)]
    first, second = both(people)
    assert not any(surely_more(first, second, event, math.e) for event in events)
    assert any(surely_more(first, second, event, math.e**0.5) for event in events)
    real = additive.discrete_laplace
    monkeypatch.setattr(additive, "discrete_laplace", lambda scale, size: real(scale / 2, size))
    first, second = both(people)
    assert any(surely_more(first, second, event, math.e) for event in events)


def test_steps_are_clamped_whatever_a_function_gave() -> None:
    grid = Lattice(Fraction(1, 2), -2, 6)
    given = [None, math.nan, math.inf, -math.inf, 1e308, -1e308, 0.24, 0.25, -0.26, 3.0]
    assert [step_of(value, grid) for value in given] == [2, 2, 6, -2, 6, -2, 0, 1, -1, 6]


@pytest.mark.parametrize("persons", [True, False])
def test_blocks_partition_the_persons(persons: bool) -> None:
    """All rows of a person are in one block, and every row is in one."""
    with curator(ROWS, persons=persons) as one:
        blocks = measured(one, [0.0] * 4)
        blocks.draw(one._engine)
        where: dict[str, set[int]] = {}
        seen = []
        for place, block in enumerate(blocks.processes.blocks):  # type: ignore[attr-defined]
            columns = {name: values for name, _, values, _ in pickle.loads(block)}
            for person, number in zip(columns["p"], columns["k"], strict=True):
                where.setdefault(person, set()).add(place)
                seen.append((person, int(number)))
        assert sorted(seen) == sorted((str(row["p"]), row["k"]) for row in ROWS)
        if persons:
            assert all(len(places) == 1 for places in where.values())
            assert seen != sorted(seen)
        else:
            assert any(len(places) > 1 for places in where.values())


def test_a_person_taken_out_changes_one_block_of_the_real_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same draw for all others: every block but the person's has the same bytes."""
    from discreet.trusted.ring_c.sampling import RandomBlocks

    target = [{"p": "p7b", "v": math.nan, "k": 10**6}] * 5 + [{"p": "p7b", "v": math.inf, "note": "ü'\0\n"}]
    found = []
    monkeypatch.setattr("discreet.engines.driver.positions", lambda *_: "one key for both")
    for rows in ([*ROWS[:30], *target, *ROWS[30:]], ROWS):
        with curator(rows) as one:
            blocks = measured(one, [0.0] * 4)
            persons = sorted({row["p"] for row in rows})
            monkeypatch.setattr(RandomBlocks, "release", lambda _, n, p=persons: _blocks_of(p)[:n])
            blocks.draw(one._engine)
            found.append(blocks.processes.blocks)  # type: ignore[attr-defined]
    assert [one == two for one, two in zip(*found, strict=True)].count(False) == 1


def _blocks_of(persons: list[str]) -> Any:
    import zlib

    return numpy.array([zlib.crc32(person.encode()) % 4 for person in persons])


def test_a_function_sees_frames_of_fixed_types(people: Curator) -> None:
    def check(block: pandas.DataFrame) -> float:
        kinds = [str(kind) for kind in block.dtypes]
        wanted = ["string", "float64", "Int64", "string", "boolean", "datetime64[us]", "string", "string"]
        return 100 if kinds == wanted and list(block.index) == list(range(len(block))) else 0

    def count(block: pandas.DataFrame) -> float:
        return len(block) if list(block.columns) == ["k"] else -1

    assert ask(people, check) == 100
    assert ask(people, count, columns=["K"]) == 30


def broken(_: Any) -> float:
    raise ValueError(SECRET)


def wordy(block: pandas.DataFrame) -> str:
    print(block.to_string())
    return SECRET


def hungry(_: Any) -> float:
    return float(len(bytearray(3 << 30)))


def busy(_: Any) -> float:
    while True:
        pass


def asleep(_: Any) -> float:
    import time

    time.sleep(600)
    return 1


def parricide(_: Any) -> float:
    import os
    import signal

    os.kill(os.getppid(), signal.SIGKILL)
    return 1


def dead(_: Any) -> float:
    import os

    os._exit(0)


BAD: list[Callable[[Any], object]] = [broken, wordy, hungry, parricide, dead, busy, asleep]
BAD += [lambda _: math.nan, lambda _: True, lambda _: None, lambda _: 10**400, lambda _: 1j, lambda _: [1.0]]


@pytest.mark.storm
def test_bad_functions_give_nothing_and_harm_no_other_block(capfd: pytest.CaptureFixture[str]) -> None:
    """Each in a block of its own, between blocks that are well. Three kinds take a time limit or a new process."""
    functions: list[Callable[[Any], object]] = [one for bad in BAD for one in (bad, lambda block: block.k[0] + 0.5)]

    def chosen(block: pandas.DataFrame) -> object:
        return functions[block.k[0]](block)

    known = numpy.array([True])
    blocks = [pickle.dumps([("k", "integer", numpy.array([n]), known)]) for n in range(len(functions))]
    done: list[int] = []
    with BlockProcesses(cloudpickle.dumps(chosen), BlockLimits(1, 1), 2) as processes:
        found = processes.compute(blocks, done.append)
    assert found == [None if n % 2 == 0 else n + 0.5 for n in range(len(functions))]
    assert done == list(range(1, len(functions) + 1))
    assert capfd.readouterr() == ("", "")


@pytest.mark.power
@pytest.mark.parametrize("function", [broken, wordy])
def test_a_bad_function_counts_as_the_middle(people: Curator, function: Callable[[Any], object]) -> None:
    assert ask(people, function) == 50


def test_one_bad_block_is_one_block(people: Curator) -> None:
    """Only blocks that hold the person fail: the others' values stand."""

    def some(block: pandas.DataFrame) -> float:
        if "p3" in set(block.p):
            raise ValueError(SECRET)
        return 0

    assert ask(people, some, blocks=10) == pytest.approx(5)


@pytest.mark.power
def test_no_block_meets_what_another_left(people: Curator) -> None:
    """Every block's process begins afresh: what one wrote into the module is gone, and seeds differ."""

    def count(_: pandas.DataFrame) -> float:
        import math
        import random

        if hasattr(math, "left_behind"):
            return 0
        math.left_behind = 1  # type: ignore[attr-defined]
        random.seed(1)
        numpy.random.seed(1)
        return 100

    def chance(_: pandas.DataFrame) -> float:
        return float(numpy.random.random() * 100)

    assert ask(people, count, blocks=6) == 100
    spread = [ask(people, chance, blocks=2, request=f"r{n}", low=-n) for n in range(3)]
    assert len(set(spread)) == 3


@pytest.mark.power
def test_more_blocks_than_persons_and_an_empty_table() -> None:
    with curator(ROWS[:3], epsilon="1e25") as few:
        assert ask(few, lambda block: len(block), blocks=40, low=0, high=2) == pytest.approx(3 / 40)
    with curator([], epsilon="1e25") as nobody:
        assert ask(nobody, lambda block: len(block), blocks=5) == 0
        assert ask(nobody, lambda block: block.v.mean(), blocks=5) == 50
    with curator([{"p": "all", "v": 1.0}] * 50, epsilon="1e25") as alone:
        assert ask(alone, lambda block: len(block), blocks=5) == 10


def test_the_release_says_what_it_is(people: Curator) -> None:
    release = people.sample_and_aggregate(lambda b: b.v.mean(), "t", low=-2, high=6, epsilon=2, aggregate="mean")
    ((low, high),) = [interval["value"] for interval in release.intervals]
    assert -2 <= low <= release.rows[0]["value"] <= high <= 6
    assert release.cost.epsilon == release.charged.epsilon == 2
    assert release.bounds[0] == "50 blocks; each person is in one, at random"
    assert "noise alone" in release.bounds[-1]
    median = people.sample_and_aggregate(lambda b: b.v.mean(), "t", low=-2, high=6, epsilon=MANY)
    assert median.intervals == [{}]
    assert "permute-and-flip" in median.mechanisms[0]["mechanism"]
    assert str(median.rows[0]["value"]) in repr(median)


@pytest.mark.parametrize(("epsilon", "blocks"), [("0.1", 500), (1, 50), ("0.001", 1000), (7, 50)])
def test_how_many_blocks_follows_from_the_price(people: Curator, epsilon: Any, blocks: int) -> None:
    assert call(people, abs, epsilon=epsilon, blocks=None).blocks == blocks


def test_asked_again_is_free(people: Curator) -> None:
    def median(block: pandas.DataFrame) -> float:
        return float(block.v.median())

    arguments: dict[str, Any] = {"low": -2, "high": 6, "epsilon": 3, "blocks": 4}
    first = people.sample_and_aggregate(median, "t", **arguments)
    again = people.sample_and_aggregate(median, "t", **arguments)
    assert (first.rows, bool(first.charged), bool(again.charged)) == (again.rows, True, False)
    other = people.sample_and_aggregate(median, "t", **arguments, columns=["v"])
    assert other.charged


def test_another_function_of_the_same_name_is_another_question(people: Curator) -> None:
    def made(add: int) -> Callable[[pandas.DataFrame], float]:
        return lambda block: len(block) * 0 + add

    assert [ask(people, made(add)) for add in (1, 2)] == [1, 2]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"analyst": "ana"}, "analyst"),
    ({"low": 4}, "bounds"),
    ({"low": "nan"}, "number"),
    ({"low": None}, "number"),
    ({"high": math.inf}, "number"),
    ({"blocks": 1}, "number"),
    ({"blocks": 2.5}, "number"),
    ({"blocks": True}, "number"),
    ({"aggregate": "max"}, "aggregate"),
    ({"columns": ["nobody"]}, "columns"),
    ({"columns": "v"}, "columns"),
    ({"columns": ["v", "V"]}, "columns"),
    ({"columns": []}, "columns"),
    ({"epsilon": 0}, "price"),
    ({"epsilon": None}, "price"),
    ({"epsilon": "1" * 500}, "number"),
    ({"step": 0}, "number"),
    ({"step": "0.001", "aggregate": "median"}, "step"),
    ({"limits": BlockLimits(0)}, "number"),
    ({"limits": BlockLimits(60, 0)}, "number"),
]


@pytest.mark.parametrize(("arguments", "code"), REFUSED)
def test_refusals_say_how_to_write_it(people: Curator, arguments: dict[str, Any], code: str) -> None:
    with pytest.raises(QuestionError) as caught:
        call(people, abs, **arguments)
    assert caught.value.code == code
    assert caught.value.where
    assert caught.value.fix


def test_functions_that_cannot_travel_and_other_tables_cost_nothing(people: Curator) -> None:
    before = list(people.ledger.entries())
    lock = __import__("threading").Lock()

    class Unloadable:
        def __reduce__(self) -> Any:
            return (__import__, ("no_such_module_anywhere",))

        def __call__(self, _: Any) -> float:
            return 0

    for function, code in ((lambda _: lock, "function"), (Unloadable(), "function"), ("text", "function")):
        with pytest.raises(QuestionError) as caught:
            people.sample_and_aggregate(function, "t", low=0, high=1, epsilon=1)  # type: ignore[arg-type]
        assert caught.value.code == code
    with pytest.raises(QuestionError, match="not declared"):
        people.sample_and_aggregate(abs, "nobody", low=0, high=1, epsilon=1)
    assert list(people.ledger.entries()) == before


def test_a_budget_refuses_and_a_failure_stays_charged(tmp_path: Path) -> None:
    with curator(ROWS, ledger=tmp_path / "t.ledger", epsilon=2) as one:
        arguments: dict[str, Any] = {"low": 0, "high": 1, "blocks": 2}
        with pytest.raises(BudgetError):
            one.sample_and_aggregate(abs, "t", epsilon=3, **arguments)
        assert one.ledger.filter(TOTAL).spent.pure == 0
        one._engine._limits = EngineLimits(seconds=0)
        assert one._engine._process is not None
        os.kill(one._engine._process.pid, signal.SIGSTOP)  # it hangs, however quick the machine is
        with pytest.raises(EngineError) as caught:
            one.sample_and_aggregate(abs, "t", epsilon=1, **arguments)
        assert caught.value.__context__ is None
        assert one.ledger.filter(TOTAL).spent.pure == 1
        with pytest.raises(EngineError, match="suspended"):
            one.sample_and_aggregate(abs, "t", epsilon="0.5", **arguments)
        assert one.ledger.filter(TOTAL).spent.pure == 1


def test_constant_time_waits_for_the_limit(people: Curator) -> None:
    import time

    start = time.monotonic()
    assert ask(people, lambda _: 7, seconds=1, constant_time=True, blocks=2) == 7
    assert time.monotonic() - start >= 2
