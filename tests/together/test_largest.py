"""Which total is the largest: the mechanism enumerated, and three processes with MPyC, where it is installed."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import pytest

import together_tools
from discreet import QuestionError, accounting
from discreet.mechanisms import LargestShares
from together_tools import Made, certificate, needs_openssl, play, session, share_pmf, take

needs_mpyc = pytest.mark.skipif(find_spec("mpyc") is None, reason="the largest is found with mpyc")
NAMES = "abc"


def chances(counts: Sequence[int], noise: dict[int, float]) -> list[float]:
    """P(place i is the first largest), for independent noise on each count."""
    values = sorted(noise)
    low, reach = values[0], max(counts) - min(counts)
    below, total = {low - 1: 0.0}, 0.0
    for value in values:
        total += noise[value]
        below[value] = total

    def at_most(bound: int) -> float:
        return below[min(max(bound, low - 1), values[-1])]

    found = []
    for i, count in enumerate(counts):
        chance = 0.0
        for value in values:
            wins = noise[value]
            for j, other in enumerate(counts):
                if j != i:
                    wins *= at_most(count + value - other - (j < i))
            chance += wins
        found.append(chance)
    assert reach < 10
    return found


@pytest.mark.parametrize(("honest", "present"), [(1, 1), (2, 2), (2, 3)])
def test_the_place_loses_at_most_epsilon(honest: int, present: int) -> None:
    """Every start and every way in which one person raises some of three counts; noise of the honest parties, and more.
    With half of the noise the same enumeration finds a larger loss."""

    def total(shares: int, epsilon: float) -> dict[int, float]:
        one, found = share_pmf(shares, epsilon), {0: 1.0}
        for _ in range(present):
            following: dict[int, float] = {}
            for (a, p), (b, q) in itertools.product(found.items(), one.items()):
                if abs(a + b) <= 60:
                    following[a + b] = following.get(a + b, 0.0) + p * q
            found = following
        return found

    def worst(noise: dict[int, float]) -> float:
        ratios = []
        for start in ((0, 0, 0), (1, 0, 0), (0, 3, 1), (5, 5, 4)):
            before = chances(start, noise)
            assert abs(sum(before) - 1) < 1e-9
            for step in itertools.product((0, 1), repeat=3):
                after = chances([a + b for a, b in zip(start, step, strict=True)], noise)
                ratios += [max(a / b, b / a) for a, b in zip(before, after, strict=True)]
        return max(ratios)

    assert worst(total(honest, 1.0)) <= math.e * (1 + 1e-9)
    assert worst(total(honest, 2.0)) > math.e * 1.1


def test_the_loss_does_not_grow_with_the_counts() -> None:
    mechanism = LargestShares(Fraction(1, 2), 3, 3, 1)
    assert mechanism.loss() == accounting.Pure(Fraction(1, 2))
    assert mechanism.scale == 6


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("keys")
    return {name: certificate(folder, name) for name in NAMES}


@needs_openssl
def test_without_the_extra_it_is_said_before_anything_is_spent(
    keys: dict[str, tuple[str, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    agreed = session(keys, opens="largest")
    made = Made(agreed.mechanism, [1, 2])
    monkeypatch.setattr("discreet.together.largest.find_spec", lambda _: None)
    (end,) = play(take(agreed, "a", keys["a"][1], made))
    assert isinstance(end, QuestionError)
    assert "discreet[mpc]" in str(end)
    assert not made.asked


@needs_openssl
@pytest.mark.parametrize("change", [{"colluding": 2}, {"absent": 1}, {"opens": "smallest"}])
def test_sessions_that_find_no_largest_are_refused(
    keys: dict[str, tuple[str, Path]], change: dict[str, object]
) -> None:
    with pytest.raises(QuestionError):
        replace(session(keys, opens="largest"), **change)


@needs_openssl
def test_half_of_the_parties_may_not_collude_nor_any_be_absent(tmp_path: Path) -> None:
    """Shares of degree below half of the parties are opened by half of them, whatever a total would allow."""
    keys = {name: certificate(tmp_path, name) for name in "abcde"}
    four = {name: keys[name] for name in "abcd"}
    assert session(four, opens="totals", colluding=2).colluding == 2
    assert session(keys, opens="totals", colluding=1, absent=1).absent == 1
    assert session(four, opens="largest", colluding=1).opens == "largest"
    assert session(keys, opens="largest", colluding=2).opens == "largest"
    for parties, change in ((four, {"colluding": 2}), (keys, {"colluding": 3}), (keys, {"colluding": 1, "absent": 1})):
        with pytest.raises(QuestionError, match="largest"):
            session(parties, opens="largest", **change)


PARTY = """
import sys, time
sys.path.insert(0, sys.argv[1])
from together_tools import Made
from discreet import Error
from discreet.together import read, take_part
from discreet.together.wire import MessageKind, Link

folder, name, key, waits, *counts = sys.argv[2:]
agreed = read(folder + "/session.json")

class Waits(Made):
    def shares(self):
        if waits == "waits":
            print("measured", flush=True)
            time.sleep(600)
        return super().shares()

if waits == "lies":
    usual = Link.send
    Link.send = lambda link, kind, body: usual(link, kind, bytes(32) if kind == MessageKind.OPENED else body)

try:
    opened = take_part(agreed, name, key, Waits(agreed.mechanism, [int(count) for count in counts]))
    print(opened.totals, opened.transcript, sys.argv[0])
except Error as error:
    print(error.code)
"""


def parties(
    folder: Path, keys: dict[str, tuple[str, Path]], counts: dict[str, list[int]], bad: str = "", does: str = ""
) -> dict[str, subprocess.Popen[str]]:
    cells = tuple((f"group {place}",) for place in range(len(counts["a"])))
    agreed = session(keys, opens="largest", cells=cells, seconds=300)
    (folder / "session.json").write_text(agreed.to_json())
    tools = str(Path(together_tools.__file__).parent)
    running = {}
    for name in NAMES:
        arguments = [tools, str(folder), name, str(keys[name][1]), does if name == bad else "goes"]
        arguments += map(str, counts[name])
        started = subprocess.Popen([sys.executable, "-c", PARTY, *arguments], stdout=subprocess.PIPE, text=True)
        running[name] = started
    return running


@needs_mpyc
@needs_openssl
def test_three_parties_find_the_largest_total(keys: dict[str, tuple[str, Path]], tmp_path: Path) -> None:
    """Where no party's own largest is the total's, and the first of two equal ones; without noise."""
    counts = {"a": [50, 0, 31, 31, -5], "b": [0, 50, 31, 31, -5], "c": [3, 3, 1, 1, -5]}
    ends = [process.communicate(timeout=300)[0] for process in parties(tmp_path, keys, counts).values()]
    assert len(set(ends)) == 1, ends
    assert ends[0].startswith("(2,) ")
    assert ends[0].endswith(" -c\n")  # the command line was put back


@pytest.mark.storm
@needs_mpyc
@needs_openssl
def test_who_is_killed_meanwhile_ends_the_search(keys: dict[str, tuple[str, Path]], tmp_path: Path) -> None:
    running = parties(tmp_path, keys, {name: [1, 2] for name in NAMES}, bad="b", does="waits")
    victim = running.pop("b")
    assert victim.stdout is not None
    assert victim.stdout.readline() == "measured\n"
    victim.kill()
    victim.communicate()
    ends = [process.communicate(timeout=300)[0] for process in running.values()]
    assert {end.strip() for end in ends} <= {"stopped", "ended"}


@needs_mpyc
@needs_openssl
def test_who_names_another_place_ends_the_search(keys: dict[str, tuple[str, Path]], tmp_path: Path) -> None:
    running = parties(tmp_path, keys, {name: [1, 2] for name in NAMES}, bad="b", does="lies")
    ends = {name: process.communicate(timeout=300)[0].strip() for name, process in running.items()}
    assert ends["a"] == ends["c"] == "transcript"
