"""Randomised at home: 100,000 reports of 1,024 values at ε = 1, and how others do.

`python -m bench.local FOLDER` also compares with pure-ldp and multi-freq-ldpy, each in an environment of its own, made
in FOLDER.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np

import discreet.local
from discreet.local import Client, Collection, Collector, Report, choose
from discreet.local.channels import Projective, odds_of, spread
from discreet.local.draws import Remembered, fresh
from discreet.local.estimate import Oracle, shares_of
from discreet.local.report import randomised

REPORTS, VALUES, MANY = 100_000, 1_024, 1_000_000
ASKED = Collection("words", "Which?", list(range(VALUES)), epsilon=1)
CHANNEL = ASKED.parts[0][1].channel
assert isinstance(CHANNEL, Projective)

NODE = """
const { open, randomised, Words, draw } = await import(process.argv[1]);
const collection = await open(process.argv[2]), part = collection.attributes[0].parts[0], words = Words.fresh();
const speed = async (count, one) => {
  const start = performance.now();
  for (let i = 0; i < count; i++) await one(i);
  return (1000 * count) / (performance.now() - start);
};
const plain = (count) => {
  const start = performance.now();
  for (let i = 0; i < count; i++) draw(part, collection.odds, i % part.inputs, words);
  return (1000 * count) / (performance.now() - start);
};
plain(100000);
const secret = crypto.getRandomValues(new Uint8Array(32));
const memory = await speed(3000, (i) => randomised(collection, secret, "2026-11", i % part.inputs, words));
console.log(plain(1000000), memory);
"""

PEERS = {
    "pure-ldp": (
        ("pure-ldp==1.2.0", "xxhash<4", "scikit-learn", "statsmodels"),
        """
from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
client, server = LHClient(1.0, 1024, use_olh=True), LHServer(1.0, 1024, use_olh=True)
send = lambda value: client.privatise(value + 1)
def take(reports):
    for one in reports: server.aggregate(one)
    return server.estimate_all(range(1, 1025))
""",
    ),
    "multi-freq-ldpy": (
        ("multi-freq-ldpy==0.2.5", "xxhash<4"),
        """
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Client, LH_Aggregator_MI
send = lambda value: LH_Client(value, 1024, 1.0, True)
take = lambda reports: LH_Aggregator_MI(reports, 1024, 1.0, True)
""",
    ),
}
TIMING = """
import sys, time
take([send(0)])  # what is compiled at the first call is not counted
count = int(sys.argv[1])
start = time.process_time()
reports = [send(value % 1024) for value in range(count)]
middle = time.process_time()
take(reports)
print(middle - start, time.process_time() - middle)
"""


def seconds(work: Callable[[], object], runs: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """The median of some runs, after one that is not counted."""
    work()
    found = []
    for _ in range(runs):
        start = clock()
        work()
        found.append(clock() - start)
    return sorted(found)[runs // 2]


def made() -> np.ndarray:
    """The reports of 100,000 respondents whose answers are as frequent as words are."""
    assert isinstance(CHANNEL, Projective)
    weights = 1 / np.arange(1, VALUES + 1) ** 1.1
    people = np.random.default_rng(1).multinomial(REPORTS, weights / weights.sum())
    source = fresh()
    return np.array([CHANNEL.draw(value, source) for value, count in enumerate(people) for _ in range(count)])


def server(reports: np.ndarray) -> list[tuple[str, float]]:
    """From the reports to all estimates: in memory, and from the file."""
    assert isinstance(CHANNEL, Projective)

    def estimate() -> None:
        counts = np.bincount(reports, minlength=CHANNEL.outputs)
        Oracle(CHANNEL, None, REPORTS, sampled=False).shares(CHANNEL.supports(counts))

    figures = [("server, from 100,000 reports to 1,024 estimates, ms", 1000 * seconds(estimate))]
    with tempfile.TemporaryDirectory() as folder, Collector(ASKED, Path(folder) / "reports.duckdb") as collector:
        window = "2026-11"
        sent = [Report(ASKED.hash, window, os.urandom(16).hex(), 0, report) for report in reports.tolist()]
        start = time.perf_counter()
        collector.add(sent)
        figures.append(("storing 100,000 reports in DuckDB, s", time.perf_counter() - start))
        figures.append(("estimates with intervals from the file, ms", 1000 * seconds(collector.estimate)))
    many = choose.best(MANY, odds_of(Fraction(1)))
    assert isinstance(many, Projective)
    counts = np.random.default_rng(2).multinomial(REPORTS, np.ones(many.outputs) / many.outputs)
    return [*figures, ("1,000,000 values, server s", seconds(lambda: many.supports(counts), 1))]


def clients(reports: int = 20_000) -> list[tuple[str, float]]:
    """Single reports a second of one processor's time in Python, and of time in Node."""
    assert isinstance(CHANNEL, Projective)
    source, secret = fresh(), os.urandom(32)

    def plain() -> None:
        for value in range(reports):
            CHANNEL.draw(value % VALUES, source)

    def remembered() -> None:
        for value in range(reports):
            CHANNEL.draw(value % VALUES, Remembered(secret, b"%d" % value))

    def whole() -> None:
        for value in range(reports // 4):
            randomised(ASKED, secret, "2026-11", value % VALUES, source)

    own = time.process_time
    figures = [
        ("Python, one report from the system's randomness, a second", reports / seconds(plain, clock=own)),
        ("Python, one report from a remembered stream, a second", reports / seconds(remembered, clock=own)),
        ("Python, with part and token, a second", reports / 4 / seconds(whole, clock=own)),
    ]
    with Client(ASKED) as client:
        figures.append(("bytes of a report as JSON", len(client.report(1).to_json())))
    figures.append(("bits of what is reported", math.log2(CHANNEL.outputs)))
    node = shutil.which("node")
    if node is not None:
        module = (Path(discreet.local.__file__).parent / "client.mjs").as_uri()
        command = [node, "--input-type=module", "--eval", NODE, module, ASKED.to_json()]
        single, memory = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        figures.append(("Node, one report from the system's randomness, a second", float(single)))
        figures.append(("Node, remembered, with part and token, a second", float(memory)))
    return figures


def accuracy(runs: int = 200, people: int = 20_000) -> list[tuple[str, float]]:
    """Variance over 4e^ε/(e^ε − 1)², the best of local hashing, and how often 95 % intervals hold the truth."""
    figures = []
    for epsilon in ("0.25", "0.5", "1", "2", "4"):
        best = choose.best(VALUES, odds_of(Fraction(epsilon)))
        assert best is not None
        growth = math.exp(float(epsilon))
        optimum = 4 * growth / (growth - 1) ** 2
        figures.append((f"variance over the optimum at ε {epsilon}", float(spread(best.truth, best.other)) / optimum))
    assert isinstance(CHANNEL, Projective)
    weights = 1 / np.arange(1, VALUES + 1) ** 1.1
    generator = np.random.default_rng(3)
    truth = generator.multinomial(people, weights / weights.sum())
    likely, unlikely = (odds / CHANNEL.whole for odds in CHANNEL.odds)
    rows = CHANNEL.rows(range(VALUES))
    oracle, hits = Oracle(CHANNEL, None, people, sampled=False), 0
    for _ in range(runs):
        counts = np.zeros(CHANNEL.outputs, np.int64)
        for value in np.flatnonzero(truth):
            chances = np.where(rows[value], likely, unlikely)
            counts += generator.multinomial(truth[value], chances / chances.sum())
        found, _ = shares_of(range(VALUES), oracle, CHANNEL.supports(counts), 0.95)
        hits += sum(row["low"] <= share <= row["high"] for row, share in zip(found, truth / people, strict=True))
    return [*figures, ("part of 95 % intervals that hold the truth", hits / runs / VALUES)]


def figures() -> list[tuple[str, float]]:
    return [*server(made()), *clients(), *accuracy(20)]


def peer(name: str, folder: Path, reports: int) -> list[tuple[str, float]]:
    """Processor seconds of another library's client and server, scaled to 100,000 reports: both are linear in them."""
    needs, code = PEERS[name]
    place = folder / name
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *needs], check=True)
    done = subprocess.run([python, "-c", code + TIMING, str(reports)], capture_output=True, text=True, check=True)
    client, whole = (float(one) * REPORTS / reports for one in done.stdout.split())
    return [(f"{name}, optimised local hashing: client s", client), (f"{name}: server s", whole)]


def main(folder: Path) -> None:
    own = figures()
    server_seconds = own[0][1] / 1000
    for name in PEERS:
        others = peer(name, folder, 2_000)
        own += [*others, (f"{name}: server seconds over ours", others[1][1] / server_seconds)]
    for title, value in own:
        print(f"  {title:<72} {value:>12,.4g}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
