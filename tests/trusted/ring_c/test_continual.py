"""Continual release: its loss, enumerated; neighbouring streams through the engine; no period is drawn twice."""

from __future__ import annotations

import itertools
import json
import math
import resource
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import deaths
from discreet import Curator
from discreet.audit.exact import gaussian_delta
from discreet.errors import BudgetError, EngineError, LedgerError
from discreet.streams.stream import Stream
from discreet.trusted.ledger.ledger import Stored
from discreet.trusted.ring_a.gate import WHOLE, Grant
from discreet.trusted.ring_a.loss import Batch, GaussianLoss
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_c import wholes
from discreet.trusted.ring_c.continual import Continual, Continuing, ReleasedPeriod
from discreet.trusted.ring_c.factorisation import squared_sensitivity
from discreet.trusted.ring_c.stream_state import StateFile
from kinds import some
from stream_tools import Visit, World, advance, secret

# the loss


def probabilities(sigma: float, reach: int) -> dict[int, float]:
    """P(rounded Gaussian noise = k)."""
    cuts = [math.erf((k - 0.5) / (sigma * math.sqrt(2))) / 2 for k in range(-reach, reach + 2)]
    return {k: cuts[k + reach + 1] - cuts[k + reach] for k in range(-reach, reach + 1)}


@pytest.mark.parametrize(("column", "sigma"), [((4, 2), 5.0), ((3, 3), 4.0), ((2, 1), 1.5), ((1, 0), 0.8)])
@pytest.mark.parametrize(("rows", "periods"), [(1, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.0, 2.5])
def test_no_person_is_told_from_nobody_better_than_the_loss_says(
    column: tuple[int, int], sigma: float, rows: int, periods: int, epsilon: float
) -> None:
    """Two periods, one group, every outcome. The person acts on what was released: for each outcome of the first
    period the second part is the one that gives most away. Both directions."""
    mu = math.sqrt(squared_sensitivity(column, rows, periods)) / sigma
    reach = int(9 * sigma) + column[0] * rows * 3
    noise = probabilities(sigma, reach)
    zero = {k: one for k, one in noise.items() if one > 0}

    def chance(value: int, shift: int) -> float:
        return noise.get(value - shift, 0.0)

    for first in range(-rows, rows + 1):
        seconds = range(-rows, rows + 1) if periods > 1 or not first else [0]
        there, back = 0.0, 0.0
        for outcome in range(-reach, reach + 1):
            one, other = chance(outcome, column[0] * first), chance(outcome, 0)
            best = [0.0, 0.0]
            for second in seconds:
                shift = column[1] * first + column[0] * second
                told = [0.0, 0.0]
                for after in range(-reach, reach + 1) if second or shift else zero:
                    with_, without = one * chance(after, shift), other * chance(after, 0)
                    told[0] += max(0.0, with_ - math.exp(epsilon) * without)
                    told[1] += max(0.0, without - math.exp(epsilon) * with_)
                best = [max(a, b) for a, b in zip(best, told, strict=True)]
            there, back = there + best[0], back + best[1]
        assert max(there, back) <= gaussian_delta(mu, epsilon) + 1e-9


def test_the_loss_follows_from_what_is_declared(tmp_path: Path) -> None:
    with World(tmp_path).opened() as (_, stream):
        whole: Continual = stream._priced.whole
    for more in (whole, replaced(whole, rows=5), replaced(whole, periods=8), replaced(whole, sigma=whole.sigma * 3)):
        square = squared_sensitivity(more.column, more.rows, more.periods) / more.sigma**2
        assert square <= more.loss.mu**2 <= square * (1 + Fraction(1, 2**60))
    assert replaced(whole, rows=5).loss.mu > whole.loss.mu
    assert replaced(whole, periods=8).loss.mu > whole.loss.mu


def replaced(whole: Continual, **changed: Any) -> Continual:
    return Continual(**{**{name: getattr(whole, name) for name in whole.__dataclass_fields__}, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        *({"rows": 0}, {"rows": 1.5}, {"periods": 0}, {"periods": 9}, {"horizon": 0}, {"horizon": 10_001}),
        *({"sigma": Fraction(0)}, {"days": 0}, {"keys": []}),
    ],
    ids=repr,
)
def test_what_no_loss_is_proved_for_is_no_stream(tmp_path: Path, changed: dict[str, Any]) -> None:
    with World(tmp_path).opened() as (_, stream):
        whole: Continual = stream._priced.whole
    with pytest.raises(ValueError, match=r"stream"):
        replaced(whole, **changed)


# neighbouring streams, through the engine

CROWD: list[Visit] = [(f"n{i % 7}", i % 4, "abc"[i % 3]) for i in range(30)]
TARGETS: dict[str, Sequence[Sequence[Visit]]] = {
    "one row": [[("T", 0, "a")]] * 5,
    "comes late": [[], [], [("T", 0, "b")], [("T", 0, "b"), ("T", 3, "c")], [("T", 3, "c")]],
    "everything": [[("T", i % 5, "abc"[i % 3]) for i in range(40)]] * 5,
    "comes and goes": [[("T", 0, "a")], [], [("T", 0, "b")] * 9, [], [("T", 4, "c")] * 3],
    "first and last of all": [[("", 0, "a"), ("", 9, "a"), ("", -1, "a")]] * 5,
    "nothing that counts": [[("T", "", "a"), ("T", 0, "else"), ("T", 0, ""), ("T", -1, "a"), ("T", 7, "b")]] * 5,
    "odd ids": [[("\U0010ffff'\"", 0, "a"), ("\U0010ffff'\"", 1, "c")]] * 5,
}


@pytest.mark.parametrize("target", some(list(TARGETS), pytest.mark.power, quick=3))
def test_neighbouring_streams_differ_by_one_person_within_the_limits(tmp_path: Path, target: str) -> None:
    worlds = World(tmp_path / "with"), World(tmp_path / "without")
    for day, own in enumerate(TARGETS[target]):
        for world, more in zip(worlds, (own, []), strict=True):
            world.advance(day + 1, [*CROWD[: 6 * day + 6], *more])
    states = [world.secret() for world in worlds]
    delta = [[a - b for a, b in zip(*rows, strict=True)] for rows in zip(*(one.counted for one in states), strict=True)]
    assert all(sum(map(abs, row)) <= 2 for row in delta)
    assert sum(any(row) for row in delta) <= 3
    assert any(map(any, delta)) == (target not in ("nothing that counts", "first and last of all")), delta
    with worlds[0].opened() as (_, stream):
        whole = stream._priced.whole
    moved = [
        [sum(whole.column[t - s] * delta[s][group] for s in range(t + 1)) for group in range(3)]
        for t in range(len(delta))
    ]
    assert sum(one * one for row in moved for one in row) <= squared_sensitivity(whole.column, 2, 3)
    assert len(states[0].memory) - len(states[1].memory) in (0, 1)


def test_counts_are_fixed_when_counted_late_rows_count_on_arrival_and_a_retraction_in_its_own_period(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    world.advance(1, [("p", 0, "a"), ("q", 0, "b"), ("r", 1, "a")])
    assert world.secret().counted == ((1, 1, 0),)
    world.advance(2, [("p", 0, "a"), ("q", 0, "b"), ("r", 1, "a"), ("s", 0, "c")])  # s comes late, r is due
    assert world.secret().counted == ((1, 1, 0), (1, 0, 1))
    world.advance(3, [("p", 0, "a"), ("r", 1, "b"), ("s", 0, "c")])  # q is gone, r is corrected
    assert world.secret().counted == ((1, 1, 0), (1, 0, 1), (-1, 0, 0))
    assert world.advance(3) == world.advance(3)


def test_missed_days_get_a_period_each_whenever_that_is_made_up_for(tmp_path: Path) -> None:
    rows = [(f"p{i}", i % 5, "abc"[i % 2]) for i in range(40)]
    each, once = World(tmp_path / "each"), World(tmp_path / "once")
    for due in range(1, 6):
        each.advance(due, rows)
    assert len(once.advance(5, rows)) == 5
    assert each.secret().counted == once.secret().counted == ((4, 4, 0),) * 5
    assert len(once.advance(99)) == 8  # the horizon


def test_the_noise_has_all_of_its_deviation_in_every_period(tmp_path: Path) -> None:
    """An empty table, so that what is released is the noise: 12 periods of 1,000 groups. Halved noise, as of the mean
    of two draws, has half the variance: the mean square is then 38 deviations off, of √(2/12,000) each; that of
    products of a group's neighbours, where periods have noise in common, is √(1/11,000). 6 of them: p < 1e-6."""
    world = World(tmp_path, horizon=20, wards=[f"w{number}" for number in range(1_000)])
    with world.opened() as (curator, stream):
        released = advance(curator, stream, 12)
        sigma = float(stream._priced.whole.sigma)
    drawn = [[value / sigma for value in row] for row in released]
    squares = [value**2 for row in drawn for value in row]
    products = [a * b for rows in itertools.pairwise(drawn) for a, b in zip(*rows, strict=True)]
    assert abs(sum(squares) / 12_000 - 1) < 6 * math.sqrt(2 / 12_000)
    assert abs(sum(products) / 11_000) < 6 * math.sqrt(1 / 11_000)
    assert world.secret().counted == ((0,) * 1_000,) * 12


# one price, and no way around it

ROWS: list[Visit] = [(f"p{i % 40}", i % 6, "abc"[i % 3]) for i in range(100)]


def test_the_horizon_is_charged_once_and_its_periods_cost_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, ROWS)
    with world.opened() as (curator, stream):
        advance(curator, stream, 2)
        spent = curator.budget.used
        assert spent > 0
    world.advance(5)
    with world.opened() as (curator, stream):
        assert curator.budget.used == spent
        kinds = [
            (one.kind, one.loss) for one in curator.ledger.entries() if one.kind in ("reserve", "commit", "failure")
        ]
        assert [loss for kind, loss in kinds if kind == "reserve"] == [stream._priced.whole.loss, *[Batch(())] * 5]
        assert len(kinds) == 12
        curator.ledger.verify()


def test_a_price_beyond_the_budget_is_refused_and_nothing_is_spent(tmp_path: Path) -> None:
    world = World(tmp_path, ROWS, epsilon=5.0, delta=8e-7)
    with world.opened() as (curator, stream):
        curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=3)
        used = curator.budget.used
        with pytest.raises(BudgetError):
            advance(curator, stream, 1)
        assert curator.budget.used == used
        assert stream._continuing.released() == []


def test_nothing_but_what_began_goes_on(tmp_path: Path) -> None:
    world = World(tmp_path, ROWS)
    with world.opened() as (curator, stream):
        whole, door = stream._priced.whole, curator._door
        early = json.dumps({"stream": whole.description, "identity": "0" * 64}).encode()
        with pytest.raises(ValueError, match="begun"):
            wholes.step(door, ReleasedPeriod(whole, early, 0), question="", rows=None)
        advance(curator, stream, 1)
        begun = wholes.begun(door, whole)
        assert begun is not None
        for other in (replaced(whole, sigma=whole.sigma / 2), replaced(whole, rows=9), replaced(whole, first=0)):
            with pytest.raises(ValueError, match="no period"):
                ReleasedPeriod(other, begun, 1)
            forged = json.dumps({**json.loads(begun), "stream": other.description}).encode()
            with pytest.raises(ValueError, match="whole"):
                wholes.step(door, ReleasedPeriod(other, forged, 1), question="", rows=None)
        for number in (-1, 8):
            with pytest.raises(ValueError, match="no period"):
                ReleasedPeriod(whole, begun, number)
        with pytest.raises(ValueError, match="the door's own"):
            door.open(whole, analyst="", question="", key=f"{WHOLE}{whole.key}", request=None)
        entries = len(list(curator.ledger.entries()))
        with pytest.raises(LedgerError, match="declared otherwise"):
            Continuing(door, replaced(whole, first=0), stream._continuing._file).begin("")
        with pytest.raises(LedgerError, match="declared otherwise"):
            Continuing(door, replaced(whole, sigma=whole.sigma * 2), stream._continuing._file).begin("")
        assert len(list(curator.ledger.entries())) == entries


@dataclass
class Cheap:
    """What costs next to nothing, and calls itself a stream."""

    table: Table
    key: str
    loss: GaussianLoss


def test_what_was_charged_less_does_not_go_on_as_a_stream(tmp_path: Path) -> None:
    """Somebody has begun something cheap under the stream's key, and stored the stream's own words."""
    world = World(tmp_path, ROWS)
    with world.opened() as (curator, stream):
        whole, door = stream._priced.whole, curator._door
        curator._holdings.load()
        begun = json.dumps({"stream": whole.description, "identity": "0" * 64}).encode()
        wholes.begin(door, Cheap(whole.table, whole.key, GaussianLoss(whole.loss.mu / 10)), begun, question="")
        with pytest.raises(ValueError, match="another whole"):
            wholes.step(door, ReleasedPeriod(whole, begun, 0), question="", rows=None)
        with pytest.raises(LedgerError, match="declared otherwise"):
            advance(curator, stream, 1)


@dataclass
class Step:
    """A release that says its number itself."""

    whole: Continual
    begun: bytes
    number: Any


def test_a_number_that_is_written_otherwise_is_no_other_release(tmp_path: Path) -> None:
    """True is 1, and 1.0 is 1: a key for each would be a second release of one period, at no price."""
    world = World(tmp_path, ROWS)
    with world.opened() as (curator, stream):
        released = advance(curator, stream, 2)
        whole, door = stream._priced.whole, curator._door
        begun = wholes.begun(door, whole)
        assert begun is not None
        for number in (True, 1.0, Fraction(1), "1"):
            with pytest.raises((ValueError, TypeError)):
                ReleasedPeriod(whole, begun, number)  # type: ignore[arg-type]
        for number in (1.0, Fraction(1, 2), "1"):
            with pytest.raises((ValueError, TypeError)):
                wholes.step(door, Step(whole, begun, number), question="", rows=None)
        again = wholes.step(door, Step(whole, begun, True), question="", rows=None)
        assert isinstance(again, Stored)
        assert json.loads(again.answer)["measured"] == released[1]


@pytest.mark.parametrize("name", ["", "daily 1", "daily\t", " "])
def test_no_name_of_a_stream_is_that_of_anothers_release(tmp_path: Path, name: str) -> None:
    with World(tmp_path).opened() as (_, stream):
        whole: Continual = stream._priced.whole
    with pytest.raises(ValueError, match="name"):
        replaced(whole, name=name)


def test_a_step_reads_the_declared_table_alone(tmp_path: Path) -> None:
    world = World(tmp_path, ROWS)
    with world.opened() as (curator, stream):
        advance(curator, stream, 1)
        whole, door = stream._priced.whole, curator._door
        begun = wholes.begun(door, whole)
        assert begun is not None
        other = replaced(whole, table=replace(whole.table, rows_per_person=7))
        with pytest.raises(ValueError, match="declared one"):
            wholes.step(door, ReleasedPeriod(other, begun, 1), question="", rows=None)


def test_a_period_is_drawn_from_the_state_that_was_held_against_the_ledger(tmp_path: Path) -> None:
    """Where the lock is none, as the key's file is another one for each process: another state of as many periods is
    there by the time of the draw, and what it counts is in no release."""
    world = World(tmp_path, ROWS)
    with world.opened() as (curator, stream):
        advance(curator, stream, 1)
        one, rows = stream._continuing, curator._engine.rows
        with one._file.held() as key:
            begun, seen = one._settled(key, rows)
            state = one._file.read(key, "daily")
            counted = tuple(tuple(count + 9 for count in period) for period in state.counted)
            assert one._file.write(replace(state, counted=counted, released="another draw"), key, "daily")
            before = world.state.read_bytes()
            with pytest.raises(EngineError):
                one._release(key, rows, begun, seen)
            assert world.state.read_bytes() == before
        assert len(one.released()) == 1


def test_what_another_process_has_released_meanwhile_is_not_taken_for_ones_own(tmp_path: Path) -> None:
    """A release that was kept, and another one of its period that is in the ledger by the time it would be stored."""
    world = World(tmp_path, ROWS)
    with world.opened() as (curator, stream):
        advance(curator, stream, 1)
        one, rows, door = stream._continuing, curator._engine.rows, curator._door
        begun = wholes.begun(door, stream._priced.whole)
        assert begun is not None
        with one._file.held() as key:
            state = one._file.read(key, "daily")
            kept = replace(state, counted=(*state.counted, (0, 0, 0)), released="kept")
            assert one._file.write(kept, key, "daily")
            seen = one._seen(key)
            other = wholes.step(door, ReleasedPeriod(stream._priced.whole, begun, 1), question="", rows=None)
            assert isinstance(other, Grant)
            other.commit(b"another")
            one._seen = lambda _: seen
            with pytest.raises(LedgerError, match="goes with the ledger"):
                one._settled(key, rows)


def test_of_those_who_reserve_a_period_the_last_alone_releases_it(tmp_path: Path) -> None:
    world = World(tmp_path, ROWS)
    with world.opened() as (curator, stream):
        advance(curator, stream, 1)
        whole, door = stream._priced.whole, curator._door
        begun = wholes.begun(door, whole)
        assert begun is not None
        period = ReleasedPeriod(whole, begun, 1)
        first, second = (wholes.step(door, period, question="", rows=None) for _ in range(2))
        assert isinstance(first, Grant)
        assert isinstance(second, Grant)
        with pytest.raises(LedgerError, match="another process"):
            first.commit(b"one draw")
        second.commit(b"another")
        assert wholes.released(door, whole, 1) == b"another"
        assert getattr(wholes.step(door, period, question="", rows=None), "answer", None) == b"another"
        with pytest.raises(LedgerError):
            first.commit(b"one draw")
        with first:
            pass
        curator.ledger.verify()


def test_a_budget_that_renews_has_no_streams(tmp_path: Path) -> None:
    world = World(tmp_path, ROWS)
    with world.opened() as (curator, stream):
        advance(curator, stream, 1)
        curator._engine.period = "2026-11"
        begun = wholes.begun(curator._door, stream._priced.whole)
        with pytest.raises(ValueError, match="renew"):
            wholes.step(curator._door, ReleasedPeriod(stream._priced.whole, begun, 1), question="", rows=None)
        with pytest.raises(ValueError, match="renew"):
            wholes.begin(curator._door, stream._priced.whole, b"", question="")


def test_while_rows_are_loaded_no_period_is_released(tmp_path: Path) -> None:
    """Nothing is charged then, and it is no fault of the budget."""
    with World(tmp_path, ROWS).opened() as (curator, stream):
        advance(curator, stream, 1)
        curator._engine.period = None
        begun, last = wholes.begun(curator._door, stream._priced.whole), curator.ledger.last
        with pytest.raises(LedgerError) as told:
            wholes.step(curator._door, ReleasedPeriod(stream._priced.whole, begun, 1), question="", rows=None)
        assert told.value.code == "period"
        assert curator.ledger.last == last


# what is restored, and what dies


def refused(world: World, due: int) -> None:
    """The stream has ended: nothing is released, and nothing written."""
    with world.opened() as (curator, stream):
        before = curator.ledger.last, world.state.read_bytes() if world.state.exists() else b""
        with pytest.raises(LedgerError) as caught:
            advance(curator, stream, due)
        assert caught.value.code == "stream"
        assert before == (curator.ledger.last, world.state.read_bytes() if world.state.exists() else b"")


@pytest.mark.parametrize("older", [0, 1, 2])
def test_a_state_that_was_restored_ends_the_stream_until_the_newest_is_put_back(tmp_path: Path, older: int) -> None:
    world = World(tmp_path, ROWS)
    for due in range(1, 4):
        world.advance(due)
        shutil.copy(world.state, tmp_path / f"state.{due}")
    if older:
        shutil.copy(tmp_path / f"state.{older}", world.state)
    else:
        world.state.unlink()
    refused(world, 4)
    shutil.copy(tmp_path / "state.3", world.state)
    assert len(world.advance(4)) == 4


def test_a_state_of_another_stream_or_of_another_life_ends_it(tmp_path: Path) -> None:
    one, other = World(tmp_path / "one", ROWS), World(tmp_path / "other", ROWS)
    for world in (one, other):
        world.advance(0)
    before = other.state.read_bytes()
    shutil.copy(one.folder / "keys" / "daily.key", other.folder / "keys" / "daily.key")
    refused(other, 3)  # it cannot be read
    shutil.copy(one.state, other.state)
    refused(other, 3)  # it is whole, and neither has released anything
    other.state.write_bytes(before)
    refused(other, 3)  # of another key


@pytest.mark.parametrize("older", [0, 1, 2])
def test_a_ledger_that_was_restored_with_its_note_releases_nothing_anew(tmp_path: Path, older: int) -> None:
    world = World(tmp_path / "now", ROWS)
    with world.opened():
        pass  # the ledger before the stream
    copies = [tmp_path / f"after {due}" for due in range(5)]
    shutil.copytree(world.folder, copies[0])
    for due in range(1, 5):
        known = world.advance(due)
        shutil.copytree(world.folder, copies[due])
    for file in (world.ledger, world.head):
        shutil.copy(copies[older] / file.name, file)
    refused(world, 5)
    for file in (world.ledger, world.head):
        shutil.copy(copies[3] / file.name, file)
    assert world.advance(4) == known  # the last release alone was lost, and is the same again


PROGRAM = """
import sys
from pathlib import Path
sys.path[:0] = [{tools!r}]
import stream_tools
world = stream_tools.World.__new__(stream_tools.World)
world.folder, world.file = Path({folder!r}), Path({folder!r}) / "clinic.toml"
print(world.advance(int(sys.argv[1])))
"""


def command(world: World, point: str, due: int) -> list[str]:
    text = PROGRAM.format(tools=str(Path(deaths.__file__).parent), folder=str(world.folder))
    return deaths.command(point, "-c", text, due)


POINTS = [
    "reserve-before-begin",
    "reserve-after-commit-transaction",
    "reserve-after-note",
    "before-measure",
    "state-before-replace",
    "state-after-replace",
    "after-measure",
    "commit-before-begin",
    "commit-before-commit-transaction",
    "commit-after-commit-transaction",
    "commit-after-note",
]
KEPT = POINTS[POINTS.index("state-after-replace") :]
"""The points from which on the period's release is kept."""
QUICK = ["before-measure", "state-after-replace", *POINTS]


@pytest.mark.parametrize("point", some(sorted(POINTS, key=QUICK.index), pytest.mark.storm, quick=2))
def test_a_process_that_dies_at_any_step_leaves_one_draw_of_the_period(tmp_path: Path, point: str) -> None:
    world = World(tmp_path, ROWS)
    known = world.advance(2)
    died = subprocess.run(command(world, point, 3), capture_output=True, text=True)
    assert died.returncode == -9, died.stderr
    state = world.secret()
    assert len(state.counted) == (3 if point in KEPT else 2)
    with world.opened() as (curator, stream):
        stands = stream._continuing.released()
        assert stands == [*known, *([json.loads(state.released)["measured"]] if point in POINTS[-2:] else [])]
    released = goes_on(world, 3)
    assert released[:2] == known
    if point in KEPT:
        assert released[2] == json.loads(state.released)["measured"]  # what was drawn, and no other
    assert len(world.advance(4)) == 4
    with world.opened() as (curator, stream):
        commits = [one for one in curator.ledger.entries() if one.kind == "commit"]
        assert len(commits) == 5
        curator.ledger.verify()


def goes_on(world: World, due: int) -> list[list[int]]:
    """The owner acts where the death of the process was a failure."""
    with suppress(EngineError):
        return world.advance(due)
    with world.opened() as (curator, _):
        curator.lift()
    return world.advance(due)


BEGINNING = [
    "commit-after-insert",
    "reserve-before-commit-transaction",
    "reserve-after-commit-transaction",
    "state-before-replace",
    "state-after-replace",
    "reserve-before-begin",
    "reserve-after-begin",
    "reserve-before-insert",
    "reserve-after-insert",
    "commit-before-insert",
    "reserve-after-note",
]
"""The points of the first state, and of the one transaction that charges the stream."""


@pytest.mark.parametrize("point", some(BEGINNING, pytest.mark.storm, quick=2))
def test_a_process_that_dies_as_the_stream_begins_has_charged_it_once_or_not(tmp_path: Path, point: str) -> None:
    world = World(tmp_path, ROWS)
    with world.opened():
        pass
    died = subprocess.run(command(world, point, 1), capture_output=True, text=True)
    assert died.returncode == -9, died.stderr
    stands = point in ("reserve-after-commit-transaction", "reserve-after-note")
    with world.opened() as (curator, stream):
        assert charged(curator, stream) == stands
        assert stream._continuing.released() == []
    assert len(world.advance(2)) == 2  # nothing failed, so nobody is suspended
    with world.opened() as (curator, stream):
        assert charged(curator, stream) == 1
        assert curator.ledger.verify().unanswered == 0


def charged(curator: Curator, stream: Stream) -> int:
    """How often the ledger has charged the stream."""
    return [one.loss for one in curator.ledger.entries() if one.kind == "reserve"].count(stream._priced.whole.loss)


def test_of_two_who_begin_a_stream_at_once_one_is_charged(tmp_path: Path) -> None:
    """As on two machines, which have looked before either has begun."""
    world = World(tmp_path)
    with world.opened() as (curator, stream):
        curator._holdings.load()
        wholes.begin(curator._door, stream._priced.whole, b"one", question="")
        with pytest.raises(LedgerError, match="another process"):
            wholes.begin(curator._door, stream._priced.whole, b"another", question="")
        assert wholes.begun(curator._door, stream._priced.whole) == b"one"
        assert charged(curator, stream) == 1


def test_where_the_ledger_cannot_be_written_as_the_stream_begins_it_is_charged_once(tmp_path: Path) -> None:
    """Between charge and beginning, as by a full disk: neither stands, in this process or the next."""
    world = World(tmp_path, ROWS)
    with world.opened() as (curator, stream):
        with pytest.MonkeyPatch.context() as full:
            full.setattr("discreet.trusted.ledger.ledger._commit", unwritable)
            with pytest.raises(LedgerError, match="disk is full"):
                advance(curator, stream, 1)
        assert charged(curator, stream) == 0
        assert curator.budget.used == 0
        assert len(advance(curator, stream, 1)) == 1
        assert charged(curator, stream) == 1


def unwritable(*_: object) -> None:
    raise LedgerError.of("full")


def test_two_processes_at_once_release_each_period_once(tmp_path: Path) -> None:
    world = World(tmp_path, ROWS)
    world.advance(1)
    both = [subprocess.Popen(command(world, "", 6), stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [one.communicate()[0] for one in both]
    assert said[0] == said[1] != ""
    with world.opened() as (curator, _):
        assert len([one for one in curator.ledger.entries() if one.kind == "commit"]) == 7
    assert len(world.secret().counted) == 6


def test_two_copies_of_the_state_release_each_period_once(tmp_path: Path) -> None:
    """As on two machines with one ledger: the copy that did not go on has ended."""
    world = World(tmp_path, ROWS)
    with world.opened() as (curator, stream):
        advance(curator, stream, 1)
        file = stream._continuing._file
        copy = StateFile(tmp_path / "copy.stream", file.key)
        shutil.copy(file.path, copy.path)
        other = Continuing(curator._door, stream._priced.whole, copy)
        rows = curator._engine.rows
        other.advance(3, rows)
        with pytest.raises(LedgerError, match="goes with the ledger"):
            stream._continuing.advance(3, rows)
        assert other.advance(4, rows) == 1


# failures


def test_a_period_that_fails_is_recorded_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, ROWS)
    with world.opened() as (curator, stream):
        advance(curator, stream, 1)
        before = secret(stream)
        with monkeypatch.context() as broken:
            broken.setattr(type(curator._engine), "vectors", failing)
            with pytest.raises(EngineError) as caught:
                advance(curator, stream, 2)
        assert str(caught.value) == str(EngineError())
        assert secret(stream) == before
        with pytest.raises(EngineError, match="suspended"):
            advance(curator, stream, 2)
        curator.lift()
        assert len(advance(curator, stream, 2)) == 2


def failing(*_: object) -> None:
    raise RuntimeError("p7 was here")


def test_where_the_state_cannot_be_kept_nothing_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, ROWS)
    with world.opened() as (curator, stream):
        with monkeypatch.context() as full:
            full.setattr(StateFile, "write", lambda *_: False)
            with pytest.raises(LedgerError, match="cannot be written"):
                advance(curator, stream, 1)
        assert curator.budget.used == 0
        advance(curator, stream, 1)
        before = secret(stream)
        with monkeypatch.context() as full:
            full.setattr(StateFile, "write", lambda *_: False)
            with pytest.raises(LedgerError, match="cannot be written"):
                advance(curator, stream, 2)
        assert len(stream._continuing.released()) == 1
        assert secret(stream) == before
        assert [one.kind for one in curator.ledger.entries()].count("failure") == 1  # a state's size follows from rows
        with pytest.raises(EngineError, match="suspended"):
            advance(curator, stream, 2)
        curator.lift()
        assert len(advance(curator, stream, 2)) == 2


def test_a_full_disk_loses_nothing_of_a_stream(tmp_path: Path) -> None:
    """A limit on the size of files, as a disk on which no file grows beyond it: the ledger still fits, the state of
    4,000 persons does not."""
    world = World(tmp_path, [(f"p{number}", 1, "a") for number in range(4_000)])
    known, before = world.advance(1), world.state.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with world.opened() as (curator, stream):
        resource.setrlimit(resource.RLIMIT_FSIZE, (160_000, hard))
        try:
            with pytest.raises(LedgerError, match="cannot be written"):
                advance(curator, stream, 2)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert world.state.read_bytes() == before
        assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".discreet")] == []
        assert stream._continuing.released() == known
        curator.lift()
        assert len(advance(curator, stream, 2)) == 2
        assert len(secret(stream).memory) == 4_000
        curator.ledger.verify()


@pytest.mark.parametrize(
    "rows", [[], [("p", 0, "a")] * 60, [("é'\"", 0, "a"), ("e\u0301", 0, "a"), ("p" * 900, 0, "a")]]
)
def test_any_table_is_counted(tmp_path: Path, rows: list[Visit]) -> None:
    world = World(tmp_path, rows)
    assert len(world.advance(1)) == 1
    persons = {patient for patient, _, _ in rows}
    assert world.secret().counted == ((min(2, 60) if len(rows) == 60 else len(rows), 0, 0),)
    assert len(world.secret().memory) == len(persons)


def test_whole_numbers_are_persons_too(tmp_path: Path) -> None:
    ids = [0, -1, 2**63 - 1, 1 - 2**63, 7]
    world = World(tmp_path, [(one, 0, "a") for one in ids], patient="integer")
    world.advance(1)
    assert world.secret().counted == ((5, 0, 0),)
    world.advance(2, [(one, 0, "a") for one in reversed(ids)])
    assert world.secret().counted == ((5, 0, 0), (0, 0, 0))
