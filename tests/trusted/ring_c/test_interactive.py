"""The synthetic state's replies: their loss, enumerated; noise and bounds through the engine; no run has two thresholds
or says yes twice, whatever happens to processes and files."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import deaths
from discreet.errors import BudgetError, EngineError, LedgerError
from discreet.service.backup import back_up, restore
from discreet.trusted.ring_a.gate import Grant
from discreet.trusted.ring_a.loss import Batch, DiscreteLaplace, Pure
from discreet.trusted.ring_a.measurement import ExactPlan
from discreet.trusted.ring_a.nodes import Aggregate, LimitRows, Part, PartKind, Project, Scan, Total, TotalKind, Vector
from discreet.trusted.ring_c import wholes
from discreet.trusted.ring_c.interactive import (
    MOST_UPDATES,
    Answering,
    Counted,
    Interactive,
    NextStep,
    SecretFile,
)
from kinds import some
from state_tools import ROWS, Asker, Used, World
from state_tools import surely as surely

# the loss


@cache
def tails(scale: Fraction, reach: int) -> dict[int, float]:
    """P(noise = k) of discrete Laplace noise."""
    q = math.exp(-1 / float(scale))
    return {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-reach, reach + 1)}


@cache
def at_least(scale: Fraction, k: int) -> float:
    """P(noise ≥ k)."""
    q = math.exp(-1 / float(scale))
    return q**k / (1 + q) if k > 0 else 1 - q ** (1 - k) / (1 + q)


def chances(whole: Interactive, scores: list[int], counts: list[int]) -> dict[tuple[int, ...], float]:
    """The probability of each outcome of one run over questions with these scores: the place of the yes, and the noisy
    count, of a few that are looked at; or (no, no, …)."""
    first, second = whole.watch.scales
    noise = tails(whole.count.scale, 60)
    threshold, found = whole.threshold, Counter[tuple[int, ...]]()
    for z, chance in tails(first, 12 * math.ceil(first)).items():
        before = chance
        for place, score in enumerate(scores):
            yes = at_least(second, threshold + z - score)
            for noisy in (-3, 0, 1, 7):
                found[place, noisy] += before * yes * noise.get(noisy - counts[place], 0.0)
            before *= 1 - yes
        found[(len(scores),)] += before
    return dict(found)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2), Fraction(9)])
@pytest.mark.parametrize("updates", [1, 2])
def test_no_person_is_told_from_nobody_better_than_a_runs_loss_says(
    people: Any, epsilon: Fraction, updates: int
) -> None:
    """One run, every place of its yes and some noisy counts; scores move up and down by one person each as they like.
    Both directions."""
    whole = Interactive.of(people.whole.table, people.whole.domain, updates, epsilon)
    run = float(sum((one.epsilon for one in whole.loss.parts[1:3]), Fraction(0)))  # type: ignore[union-attr]
    worst = 0.0
    for start in (0, whole.threshold - 2, whole.threshold + 1):
        scores, counts = [start, start + 1, max(0, start - 1)], [0, 1, 2]
        one = chances(whole, scores, counts)
        for moves in itertools.product((-1, 0, 1), repeat=3):
            other = chances(
                whole,
                [score + move for score, move in zip(scores, moves, strict=True)],
                [count + abs(move) for count, move in zip(counts, moves, strict=True)],
            )
            for outcome, chance in one.items():
                assert chance <= math.exp(run) * other[outcome] * (1 + 1e-9)
                assert other[outcome] <= math.exp(run) * chance * (1 + 1e-9)
                worst = max(worst, abs(math.log(chance / other[outcome])))
    assert worst > 0.75 * run  # so halved noise would be seen here


@pytest.mark.parametrize(("most", "updates", "epsilon"), [(1, 5, "2"), (3, 1, "0.001"), (50, 200, "4.9")])
def test_the_loss_is_what_is_declared_and_follows_from_the_noise(
    tmp_path: Path, most: int, updates: int, epsilon: str
) -> None:
    with World(tmp_path, most=most, updates=updates, epsilon=float(epsilon)).opened() as asker:
        whole = asker.whole
    assert whole.loss.pure == Fraction(epsilon)
    count, watched = DiscreteLaplace(most / whole.count.scale, most), Pure(whole.watch.epsilon)
    assert whole.loss == Batch((count, *(watched, count) * updates))
    first, second = whole.watch.scales
    assert whole.watch.limit == 1
    assert most / first + 2 * most / second == whole.watch.epsilon


@pytest.mark.parametrize("updates", [0, -1, MOST_UPDATES + 1, 1.5, True, None])
def test_what_no_loss_is_proved_for_is_no_state(people: Asker, updates: Any) -> None:
    whole = people.whole
    with pytest.raises(ValueError, match="state"):
        Interactive(whole.table, whole.domain, updates, whole.each)
    for each in (Fraction(0), Fraction(-1), 0.5):
        with pytest.raises(ValueError, match="price"):
            Interactive(whole.table, whole.domain, 3, each)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="limit"):
        Interactive(replace(whole.table, one_row_per_person=False, rows_per_person=None), whole.domain, 3, whole.each)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with World(tmp_path_factory.mktemp("people")).opened() as asker:
        yield asker


# what a question may be


def test_a_question_that_moves_further_or_reads_elsewhere_is_none(people: Asker) -> None:
    whole = people.whole
    good = people.question().exact
    scan = Scan("people", None, True)
    rows = (Total(TotalKind.ROWS),)
    project = Project(scan, (), ())
    count = Part(PartKind.COUNT, (Vector(((0, 1),)),))
    Counted(ExactPlan("people", Aggregate(project, rows), (), (count,)), (0,)).hold(whole)
    for plan in (
        ExactPlan("people", Aggregate(project, rows), (), (Part(PartKind.COUNT, (Vector(((0, 2),)),)),)),
        ExactPlan("people", Aggregate(project, rows), (), (Part(PartKind.SUM, (Vector(((0, 1),)),)),)),
        ExactPlan("people", Aggregate(project, rows), (), (count, count)),
        ExactPlan("people", Aggregate(project, rows), (), ()),
        ExactPlan("people", Aggregate(LimitRows(Project(replace(scan, person="id"), (), ()), 2), rows), (), (count,)),
        ExactPlan("others", Aggregate(Project(Scan("others", None, True), (), ()), rows), (), (count,)),
        ExactPlan("people", Aggregate(Project(replace(scan, one_row_per_person=False), (), ()), rows), (), (count,)),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            Counted(plan, (0,)).hold(whole)
        with pytest.raises(ValueError):  # noqa: PT011
            people.answering.ask(Counted(plan, (0,)), question="", analyst="", rows=None)
    for public in ((0.5,), (True,), ("0",)):
        with pytest.raises(ValueError, match="whole numbers"):
            Counted(good, public).hold(whole)  # type: ignore[arg-type]


def test_neighbouring_tables_differ_in_each_count_by_no_more_than_a_person_has_rows(tmp_path: Path) -> None:
    """A person with more rows than count, in all groups; the salt of each statement is fresh, so 30 times."""
    more = [("T", sex, region, 1 + at % 4) for at, (sex, region) in enumerate(itertools.product("FM", ["north", "x"]))]
    own = [("q", "F", "south", 1)] * 2
    texts = [
        "SELECT COUNT(*) FROM people",
        "SELECT sex, region, COUNT(*) FROM people GROUP BY sex, region",
        "SELECT level, COUNT(*) FROM people WHERE sex <> 'M' OR region IS NULL GROUP BY level",
    ]
    one, other = World(tmp_path / "with", [*own, *more * 5], most=3), World(tmp_path / "without", own, most=3)
    reached = 0
    with one.opened() as there, other.opened() as gone:
        for text, _ in itertools.product(texts, range(30)):
            question = there.question(text)
            found = []
            for asker in (there, gone):
                counted = Counted(question.exact, (0,) * question.groups)
                counted.hold(asker.whole)
                found.append(counted.exact(asker.curator._engine, asker.whole.table))
            moved = sum(abs(a - b) for a, b in zip(*found, strict=True))
            assert moved <= 3
            reached = max(reached, moved)
    assert reached == 3


# the noise, through engine, ledger and file


def test_noisy_counts_have_all_of_their_noise(tmp_path: Path) -> None:
    """20 hard questions of 300 empty groups: 6,000 values of the noise, whose mean size is within a thirteenth of what
    it is declared to be, 6 deviations of 1/√6,000; halved noise is 38 off."""
    regions = [f"r{number}" for number in range(149)]
    world = World(tmp_path, [], regions=regions, updates=20)
    with world.opened() as asker:
        question = asker.question("SELECT sex, region, COUNT(*) FROM people WHERE sex = 'F' GROUP BY sex, region")
        drawn = [value for _ in range(20) for value in asker.ask(10**6, question).counts]
        scale = float(asker.whole.count.scale)
        with pytest.raises(Used):
            asker.ask(10**6, question)
    assert len(drawn) == 20 * question.groups >= 3_000
    assert abs(sum(map(abs, drawn)) / len(drawn) / scale - 1) < 6 / math.sqrt(len(drawn))


def test_thresholds_have_all_of_their_noise_and_replies_are_drawn_by_them(tmp_path: Path) -> None:
    """150 runs: the mean size of the thresholds' noise is within 6 deviations of 1/√150 of the declared one; halved it
    is below. A threshold that is put far up or down in the file decides."""
    world = World(tmp_path, [], updates=150, epsilon=2)
    with world.opened() as asker:
        whole, sizes = asker.whole, []
        for _ in range(150):
            assert asker.ask(10**6).hard
            sizes.append(abs(asker.secret().threshold - whole.threshold))
        assert len(asker.transcript.runs) == 150
    assert abs(sum(sizes) / 150 / float(whole.watch.scales[0]) - 1) < 6 / math.sqrt(150)
    with World(tmp_path / "moved").opened() as asker:
        asker.ask()
        for threshold, public, hard in ((10**9, 10**6, False), (-(10**9), 0, True)):
            with asker.answering._file.held() as key:
                moved = replace(asker.answering._file.read(key, asker.whole.name), threshold=threshold)
                assert asker.answering._file.write(moved, key, asker.whole.name)
            assert asker.ask(public).hard == hard


@pytest.mark.power
def test_replies_have_all_of_their_noise(tmp_path: Path) -> None:
    """Of 600 replies to a score that is 2 scales below the noisy threshold, 41 say yes, with halved noise 5 or 6; from
    13 to 80 with p < 1e-6, and with halved noise in one case of 200."""
    with World(tmp_path, [], updates=150, epsilon=2).opened() as asker:
        down, yes = round(2 * asker.whole.watch.scales[1]), 0
        asker.ask()
        for _ in range(600):
            if asker.transcript.open is None:
                asker.ask()
            yes += asker.ask(asker.secret().threshold - down).hard
    assert 13 <= yes <= 80


# one price, one transcript


def test_the_whole_is_charged_once_and_replies_cost_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.opened() as asker:
        assert asker.begin()
        spent = asker.curator.budget.used
        assert spent > 0
        assert not asker.begin()
        assert asker.ask(10**6).hard
    world.asks([False, True, False])
    with world.opened() as asker:
        assert asker.curator.budget.used == spent
        losses = [one.loss for one in asker.curator.ledger.entries() if one.kind == "reserve"]
        assert losses == [asker.whole.loss, *[Batch(())] * (len(losses) - 1)]
        assert len(losses) == 1 + asker.transcript.steps
        asker.curator.ledger.verify()


def test_a_run_goes_on_from_process_to_process_with_one_threshold(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert world.asks([False]) == [False]
    with world.opened() as asker:
        before = asker.secret()
    assert world.asks([False] * 3) == [False] * 3
    with world.opened() as asker:
        assert asker.secret() == before
        assert asker.transcript.runs == (before.run,)
        assert asker.transcript.updates == 0
    assert world.asks([True, False]) == [True, False]
    with world.opened() as asker:
        after = asker.secret()
        assert (after.number, after.over) == (2, False)
        assert after.run != before.run
        assert asker.transcript.updates == 1


def test_nothing_but_what_was_charged_so_goes_on(tmp_path: Path) -> None:
    with World(tmp_path).opened() as asker:
        door, whole = asker.curator._door, asker.whole
        with pytest.raises(LedgerError, match="goes with the ledger"):
            asker.answering._step(0, lambda _: {}, question="", rows=None)
        asker.ask()
        begun = wholes.begun(door, whole)
        assert begun is not None
        other = replace(whole, updates=9)
        with pytest.raises(ValueError, match="begun"):
            wholes.step(door, NextStep(other, begun, 3), question="", rows=None)
        for number in (-1, True, 1.0, None):
            with pytest.raises(ValueError, match="numbered"):
                NextStep(whole, begun, number)  # type: ignore[arg-type]


def test_of_those_who_reserve_a_step_the_last_alone_is_stored(tmp_path: Path) -> None:
    """A reply that was drawn for a run is not stored once another step stands there."""
    with World(tmp_path).opened() as asker:
        asker.ask()
        door, whole, known = asker.curator._door, asker.whole, asker.transcript
        begun = wholes.begun(door, whole)
        assert begun is not None
        first, second = (
            wholes.step(door, NextStep(whole, begun, known.steps), question="", rows=None) for _ in range(2)
        )
        assert isinstance(first, Grant)
        assert isinstance(second, Grant)
        with pytest.raises(LedgerError, match="another process"):
            first.commit(b"{}")
        second.commit(json.dumps({"run": "another"}).encode())
        with pytest.raises(LedgerError, match="another process"):
            asker.answering._step(known.steps, lambda _: {}, question="", rows=asker.rows)
        assert asker.transcript.open == "another"
        before = asker.secret()
        asker.ask()
        assert asker.secret().run != before.run  # it has begun a run of its own
        assert len(asker.transcript.runs) == 3


def test_a_reply_is_drawn_with_the_threshold_of_the_open_run_alone(tmp_path: Path) -> None:
    """Where the lock is none: another secret is there by the time of the draw."""
    with World(tmp_path).opened() as asker:
        asker.ask()
        answering, secret = asker.answering, asker.secret()
        with answering._file.held() as key:
            running = answering._running(key, asker.rows)
            assert running is not None
            run, number = running
            asked = Counted(asker.question().exact, (0,))
            for other in (replace(secret, run="0" * 64), replace(secret, over=True)):
                assert answering._file.write(other, key, asker.whole.name)
                with pytest.raises(EngineError):
                    answering._step(
                        number,
                        lambda engine: answering._drawn(engine, key, run, asked),
                        question="",
                        rows=asker.rows,
                    )
                asker.curator.lift()
        assert len(asker.transcript.replies) == 1


# what is restored, lost, and what dies


def test_a_threshold_that_is_lost_or_set_back_ends_its_run_and_is_counted(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.asks([False])
    old = world.secret.read_bytes()
    world.secret.unlink()
    assert world.asks([False]) == [False]
    with world.opened() as asker:
        assert (len(asker.transcript.runs), asker.transcript.updates) == (2, 1)
    world.secret.write_bytes(old)
    world.asks([False, True])
    with world.opened() as asker:
        assert (len(asker.transcript.runs), asker.transcript.updates) == (3, 3)
        assert len(set(asker.transcript.runs)) == 3
    world.secret.write_bytes(old)
    world.asks([False])
    with world.opened() as asker:
        assert (len(asker.transcript.runs), asker.transcript.updates) == (4, 3)


def test_lost_thresholds_use_the_updates_up(tmp_path: Path) -> None:
    world = World(tmp_path, updates=2)
    for _ in range(2):
        world.asks([False])
        world.secret.unlink()
    with world.opened() as asker:
        assert not asker.answering.over
        with pytest.raises(Used):
            asker.ask()
        assert len(asker.transcript.replies) == 2


def test_a_ledger_that_was_set_back_with_its_note_answers_nothing(tmp_path: Path) -> None:
    """Also where one run alone is missing in it, or one yes. Where replies of the open run alone are missing, it goes
    on: there may be any number."""
    world, copies = World(tmp_path / "now"), tmp_path / "copies"
    copies.mkdir()

    def keep(name: str) -> None:
        for file in (world.ledger, world.head):
            shutil.copy(file, copies / f"{name}{file.suffix}")

    def put_back(name: str) -> None:
        for file in (world.ledger, world.head):
            shutil.copy(copies / f"{name}{file.suffix}", file)

    with world.opened() as asker:
        asker.begin()
    keep("begun")
    world.asks([False])
    keep("first run")
    world.asks([False, False])
    put_back("first run")
    assert world.asks([False]) == [False]
    world.asks([True])
    secret = world.secret.read_bytes()
    put_back("begun")
    refused(world)
    put_back("first run")  # the yes is not there, and the file says that the run is over
    world.asks([False])
    with world.opened() as asker:
        assert len(asker.transcript.runs) == 2
    keep("second run")
    world.asks([True, False, True, False])
    secret = world.secret.read_bytes()
    for name in ("begun", "first run", "second run"):
        put_back(name)
        if name == "second run":
            world.secret.write_bytes(secret)
        refused(world)


def test_a_copy_that_was_put_back_with_what_it_lacks_charged_gives_no_more_replies(tmp_path: Path) -> None:
    """Replies had no price of their own, so the owner says that nothing was spent; and no backup holds the file. What
    the copy knows is still told."""
    world, copy = World(tmp_path / "now", updates=2), tmp_path / "copy"
    text = "SELECT COUNT(*) AS n FROM people WHERE sex = 'F' AND level > 4"
    with world.opened() as asker:
        known = asker.curator.ask(text).rows
    back_up(world.file, copy)
    world.asks([True, True])
    world.ledger.unlink()
    world.secret.unlink()
    restore(world.file, copy, expect_head=None, loss=Batch(()))
    with world.opened() as asker:
        before = asker.curator.ledger.last
        assert asker.answering.over
        with pytest.raises(LedgerError) as caught:
            asker.ask()
        assert caught.value.code == "state"
        assert before == asker.curator.ledger.last
        assert asker.curator.ask(text).rows == known
        asker.curator.ledger.verify()


def refused(world: World) -> None:
    with world.opened() as asker:
        before = asker.curator.ledger.last, world.secret.read_bytes()
        with pytest.raises(LedgerError) as caught:
            asker.ask()
        assert caught.value.code == "state"
        assert before == (asker.curator.ledger.last, world.secret.read_bytes())


def test_a_secret_of_another_state_or_key_is_refused(tmp_path: Path) -> None:
    one, other = World(tmp_path / "one"), World(tmp_path / "other")
    for world in (one, other):
        world.asks([False])
    shutil.copy(one.secret, other.secret)
    refused(other)
    (other.folder / "keys" / "state.key").unlink()
    refused(other)


PROGRAM = """
import sys
from pathlib import Path
sys.path[:0] = [{tools!r}]
import state_tools
state_tools.far()
world = state_tools.World.__new__(state_tools.World)
world.folder, world.file = Path({folder!r}), Path({folder!r}) / "clinic.toml"
print(world.asks([one == "1" for one in sys.argv[1]]))
"""


def command(world: World, point: str, far: str) -> list[str]:
    text = PROGRAM.format(tools=str(Path(deaths.__file__).parent), folder=str(world.folder))
    return deaths.command(point, "-c", text, far)


POINTS = [
    "reserve-before-begin",
    "reserve-after-commit-transaction",
    "before-measure",
    "state-before-replace",
    "state-after-replace",
    "after-measure",
    "commit-before-commit-transaction",
    "commit-after-commit-transaction",
]
QUICK = ["state-after-replace", "after-measure", *POINTS]


@pytest.mark.parametrize("point", some(sorted(POINTS, key=QUICK.index), pytest.mark.storm, quick=2))
def test_a_process_that_dies_in_a_hard_reply_leaves_one_yes_of_the_run(tmp_path: Path, point: str) -> None:
    """The run is open before; whatever the process drew, it is over or goes on with its one threshold."""
    world = World(tmp_path)
    world.asks([False])
    with world.opened() as asker:
        run = asker.secret()
    died = subprocess.run(command(world, point, "1"), capture_output=True, text=True)
    assert died.returncode == -9, died.stderr
    with world.opened() as asker:
        stored = asker.transcript
        assert len(stored.replies) == (2 if point == POINTS[-1] else 1)
        secret = asker.secret()
        assert (secret.run, secret.threshold) == (run.run, run.threshold)
        assert secret.over == (POINTS.index(point) >= POINTS.index("state-after-replace"))
        asker.curator.lift()
        asker.ask()
        after = asker.transcript
        assert len(after.runs) == (2 if secret.over else 1)
        assert after.runs[0] == run.run
        assert len(after.replies) == len(stored.replies) + 1
        asker.curator.ledger.verify()


@pytest.mark.parametrize("point", some(sorted(POINTS, key=QUICK.index), pytest.mark.storm, quick=1))
def test_a_process_that_dies_as_a_run_begins_leaves_it_one_threshold(tmp_path: Path, point: str) -> None:
    world = World(tmp_path)
    with world.opened() as asker:
        asker.begin()
    died = subprocess.run(command(world, point, "0"), capture_output=True, text=True)
    assert died.returncode == -9, died.stderr
    kept = list(world.folder.glob("clinic.ledger+*.state"))
    with world.opened() as asker:
        before = asker.secret() if kept else None
        asker.curator.lift()
        asker.ask()
        assert len(asker.transcript.runs) == 1
        assert before is None or asker.secret() == before


BEGINNING = [
    "commit-after-insert",
    "reserve-after-commit-transaction",
    "reserve-before-begin",
    "reserve-after-insert",
    "reserve-before-commit-transaction",
    "reserve-after-note",
    "before-measure",
    "after-measure",
    "commit-after-begin",
    "commit-after-commit-transaction",
]
"""The points of the one transaction that charges the state, then of the number of rows."""


@pytest.mark.parametrize("point", some(BEGINNING, pytest.mark.storm, quick=2))
def test_a_process_that_dies_as_the_state_begins_has_charged_it_once_or_not(tmp_path: Path, point: str) -> None:
    world = World(tmp_path)
    with world.opened():
        pass
    died = subprocess.run(command(world, point, "0"), capture_output=True, text=True)
    assert died.returncode == -9, died.stderr
    with world.opened() as asker:
        stands = point not in ("commit-after-insert", *BEGINNING[2:5])
        assert charged(asker) == stands
        assert asker.transcript.steps == (point == BEGINNING[-1])
        failed = point in ("before-measure", "after-measure", "commit-after-begin")  # else nobody is suspended
        assert [one.kind for one in asker.curator.ledger.entries()].count("failure") == failed
        asker.curator.lift()
        assert asker.begin() == (not stands)
        asker.ask()
        assert charged(asker) == 1
        asker.curator.ledger.verify()


def charged(asker: Asker) -> int:
    """How often the ledger has charged the state."""
    return [one.loss for one in asker.curator.ledger.entries() if one.kind == "reserve"].count(asker.whole.loss)


def test_two_processes_at_once_make_one_transcript(tmp_path: Path) -> None:
    """Each asks hard and easy questions; every run has one yes at most, and what each was told is in the ledger."""
    world = World(tmp_path, updates=9)
    with world.opened() as asker:
        asker.begin()
    both = [
        subprocess.Popen(command(world, "", far), stdout=subprocess.PIPE, text=True) for far in ("0010010", "1000100")
    ]
    said = [json.loads(one.communicate()[0].lower()) for one in both]
    with world.opened() as asker:
        known = asker.transcript
        assert len(known.replies) == 14
        assert sum(one.hard for one in known.replies) == sum(map(sum, said))
        assert known.updates == sum(map(sum, said))
        assert len(set(known.runs)) == len(known.runs) <= 5
        asker.curator.ledger.verify()


def test_two_machines_with_one_ledger_have_runs_of_their_own(tmp_path: Path) -> None:
    """No run is ever continued with another's threshold: each begins the next one."""
    with World(tmp_path).opened() as asker:
        asker.ask()
        file = asker.answering._file
        other = Answering(asker.curator._door, asker.whole, SecretFile(tmp_path / "other.state", file.key))
        asked = Counted(asker.question().exact, (0,))
        for one in (other, asker.answering, other):
            assert one.ask(asked, question="", analyst="", rows=asker.rows) is not None
        runs = other.transcript().runs
        assert len(set(runs)) == len(runs) == 4
        assert other.transcript().updates == 3


# failures


def test_a_reply_that_fails_is_recorded_and_its_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path)
    with world.opened() as asker:
        asker.ask()
        before = asker.secret()
        with monkeypatch.context() as broken:
            broken.setattr(type(asker.curator._engine), "run", failing)
            with pytest.raises(EngineError) as caught:
                asker.ask()
        assert str(caught.value) == str(EngineError())
        with pytest.raises(EngineError, match="suspended"):
            asker.ask()
        asker.curator.lift()
        asker.ask()
        assert asker.secret() == before


def failing(*_: object) -> None:
    raise RuntimeError("p7 was here")


def test_where_the_secret_cannot_be_kept_nothing_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with World(tmp_path).opened() as asker:
        asker.begin()
        for far in (0, 10**6):
            with monkeypatch.context() as full:
                full.setattr(SecretFile, "write", lambda *_: False)
                with pytest.raises(LedgerError, match="cannot be written"):
                    asker.ask(far)
            assert not any(one.hard for one in asker.transcript.replies)
            asker.ask()
        assert [one.hard for one in asker.transcript.replies] == [False, False]


def test_where_the_secret_cannot_be_kept_an_easy_reply_fails_as_a_hard_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That it cannot be written is then no reply: of the open run there would be a yes each time, and no end."""
    with World(tmp_path).opened() as asker:
        asker.ask()
        before, known = asker.secret(), asker.transcript
        with monkeypatch.context() as full:
            full.setattr(SecretFile, "write", lambda *_: False)
            for far in (0, 10**6, 0, 10**6):
                with pytest.raises(LedgerError, match="cannot be written"):
                    asker.ask(far)
        assert (asker.secret(), asker.transcript) == (before, known)
        assert not asker.ask().hard
        assert asker.secret() == before


def test_the_budget_refuses_a_state_and_nothing_is_written(tmp_path: Path) -> None:
    world = World(tmp_path, updates=1, epsilon=5.0)
    with world.opened() as asker:
        asker.curator.ask("SELECT AVG(level) AS a FROM people", epsilon=4.5)
        last = asker.curator.ledger.last
        with pytest.raises(BudgetError):
            asker.begin()
        assert asker.curator.ledger.last == last
        assert not asker.answering.begun


@pytest.mark.parametrize("rows", [[], [("", "", "", "")] * 3, [("é'\"", "F", "north", 2**62)] * 60, ROWS[:1]])
def test_any_table_is_answered(tmp_path: Path, rows: list[Any]) -> None:
    assert World(tmp_path, rows).asks([False, True]) == [False, True]
