"""Publishing a table: how far its marginals are, what it takes, and whether a model trained on it is any good.

`python -m bench.synthesis [CODED.csv] [--peers]`: without a file, the project's own copy of Adult, its numbers cut into
32 bins; with one, its integers (a header, then codes from 0; columns of 64 values or more are cut into 32 bins).
`--peers` makes a virtual environment, installs dpmm into it, and runs its AIM and its MST on the same codes, beside
ours: each makes rows of four fifths of the table, and boosted trees trained on these are tried on the last fifth.

All at δ = 10^−9 and one row a person, as the mean over runs. Errors are ℓ1 distances of shares, from 0 to 2, averaged
over all marginals of two and of three columns; the NIST score of pairs is 500·(2 − error). The constants of
`discreet.synthesis` (shares of the budget, rounds, penalty, shrinkage) were chosen by trial on Adult at epsilon 1 and
10, and on 1,000 of its rows.
"""

from __future__ import annotations

import gzip
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import discreet
from discreet.markov import Clique, Domain
from discreet.mechanisms import ExponentialMechanism, Gaussian
from discreet.synthesis.adaptive import synthesise
from discreet.synthesis.candidates import scaled_counts
from discreet.synthesis.schedule import METHODS, Schedule
from discreet.trusted.ring_a.curves import mu_of_budget

Integers = NDArray[np.int64]
DELTA = Fraction(1, 10**9)
BINS, WIDE, RUNS, TESTED = 32, 64, 3, 5
TARGET, REPEATED = "income", "education"

DPMM = """
import sys, json, resource, time
import pandas as pd
from dpmm import pipelines
codes, sizes, epsilon, out, kind = sys.argv[1], json.loads(sys.argv[2]), float(sys.argv[3]), sys.argv[4], sys.argv[5]
frame = pd.read_csv(codes)
start = time.process_time()
Pipeline = getattr(pipelines, kind + "Pipeline")
model = Pipeline(epsilon=epsilon, delta=1e-9, max_model_size=1, disable_processing=True, n_jobs=1)
model.fit(frame, sizes)
model.generate(len(frame)).to_csv(out, index=False)
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


class Memory:
    """The private side over a table in memory, with the mechanisms of the curator."""

    def __init__(self, rows: Integers, domain: Domain) -> None:
        self.rows, self.domain = rows, domain
        self.known: dict[Clique, Integers] = {}

    def counts(self, cliques: Sequence[Clique]) -> Iterator[Integers]:
        missing = [clique for clique in cliques if clique not in self.known]
        found = scaled_counts(self.rows, self.domain, missing, float(len(self.rows)))
        self.known |= {clique: one.astype(np.int64) for clique, one in zip(missing, found, strict=True)}
        return (self.known[clique] for clique in cliques)

    def misses(self, cliques: Sequence[Clique], answers: Sequence[Integers]) -> list[int]:
        return [int(np.abs(one - answer).sum()) for one, answer in zip(self.counts(cliques), answers, strict=True)]

    def select(
        self,
        epsilon: Fraction,
        candidates: Sequence[Clique],
        predictions: Sequence[Integers],
        weights: Sequence[int],
        penalties: Sequence[int],
    ) -> int:
        scores = [
            weight * miss - penalty
            for weight, miss, penalty in zip(weights, self.misses(candidates, predictions), penalties, strict=True)
        ]
        return ExponentialMechanism(epsilon, max(weights)).release(scores)

    def measure(self, clique: Clique, sigma: Fraction) -> Integers:
        (exact,) = self.counts([clique])
        return np.array(Gaussian(sigma).release(exact.ravel().tolist()), np.int64).reshape(exact.shape)

    def distances(self, cliques: Sequence[Clique], answers: Sequence[Integers], sigma: Fraction) -> list[int]:
        return Gaussian(sigma).release(self.misses(cliques, answers))


def adult() -> tuple[Domain, Integers]:
    """The project's copy, coded: numbers cut into 32 bins of one width, texts numbered."""
    import pandas

    with gzip.open(Path(discreet.__file__).parent / "data" / "adult.csv.gz") as file:
        frame = pandas.read_csv(file).drop(columns=REPEATED)
    codes: list[Integers] = []
    for name in frame:
        column = frame[name]
        if pandas.api.types.is_numeric_dtype(column) and column.nunique() > BINS:
            share = (column - column.min()) / (column.max() - column.min())
            codes.append(np.minimum(BINS - 1, (BINS * share).astype(int)).to_numpy(np.int64))
        else:
            codes.append(np.unique(column.to_numpy(str), return_inverse=True)[1].astype(np.int64))
    return _table([str(name) for name in frame], np.stack(codes, axis=1))


def coded(file: Path) -> tuple[Domain, Integers]:
    names = file.open().readline().strip().split(",")
    rows = np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.int64)
    sizes = rows.max(axis=0) + 1
    return _table(names, np.where(sizes >= WIDE, rows * BINS // sizes, rows))


def _table(names: list[str], rows: Integers) -> tuple[Domain, Integers]:
    return Domain(tuple(names), tuple(int(size) for size in rows.max(axis=0) + 1)), rows


def planned(method: str, domain: Domain, epsilon: float, target: str | None = None) -> Schedule:
    event = DELTA / 10
    return Schedule.of(method, domain, mu_of_budget(Fraction(str(epsilon)), DELTA - event), event, target=target)


def marginal_errors(domain: Domain, truth: Integers, made: Integers, columns: int) -> float:
    """The mean ℓ1 distance of the shares, over all marginals of so many columns."""
    cliques = list(itertools.combinations(domain.names, columns))
    pairs = zip(scaled_counts(truth, domain, cliques, 1.0), scaled_counts(made, domain, cliques, 1.0), strict=True)
    return float(np.mean([np.abs(one - other).sum() for one, other in pairs]))


def trained(train: Integers, test: Integers, target: int) -> float:
    """How often a gradient-boosted tree trained on some rows is right on others."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError:
        return float("nan")
    features = np.delete(np.arange(train.shape[1]), target)
    model = HistGradientBoostingClassifier(random_state=0).fit(train[:, features], train[:, target])
    return float(model.score(test[:, features], test[:, target]))


def run(domain: Domain, rows: Integers, method: str, epsilon: int, runs: int) -> list[tuple[str, float]]:
    """The figures of one method at one price."""
    found, seconds, bound = [], 0.0, 0.0
    for _ in range(runs):
        measurer = Memory(rows, domain)
        start = time.process_time()
        result = synthesise(planned(method, domain, epsilon), domain, measurer)
        seconds += time.process_time() - start
        bound += float(np.mean([one.l1 for clique, one in result.bounds.items() if len(clique) == 3])) / len(rows)
        found.append([marginal_errors(domain, rows, result.rows, size) for size in (2, 3)])
    pairs, triples = np.mean(found, axis=0)
    title = f"{method}, epsilon {epsilon}"
    return [
        (f"{title}: error of pairs", pairs),
        (f"{title}: error of triples", triples),
        (f"{title}: mean bound of triples, 95 %", bound / runs),
        (f"{title}: NIST score of pairs", 500 * (2 - pairs)),
        (f"{title}: seconds of one processor, counting included", seconds / runs),
    ]


def figures(runs: int = RUNS, table: tuple[Domain, Integers] | None = None) -> list[tuple[str, float]]:
    domain, rows = table or adult()
    generator = np.random.default_rng(0)
    again = rows[generator.integers(0, len(rows), len(rows))]
    found = [
        (f"no privacy, drawn again: error of {k} columns", marginal_errors(domain, rows, again, k)) for k in (2, 3)
    ]
    for method, epsilon in (("adaptive", 1), ("adaptive", 10), *((one, 1) for one in METHODS if one in _OTHERS)):
        found += run(domain, rows, method, epsilon, runs)
    found.append(("largest memory of the process, MB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
    mixed = generator.permutation(rows)
    test, train = mixed[: len(rows) // TESTED], mixed[len(rows) // TESTED :]
    target = _target(domain)
    found.append(("boosted trees trained on the rows themselves: right", trained(train, test, target)))
    for epsilon, steered in itertools.product((1, 10), (None, domain.names[target])):
        made = synthesise(planned("adaptive", domain, epsilon, steered), domain, Memory(train, domain)).rows
        words = "" if steered is None else ", made to predict that"
        title = f"boosted trees trained on made-up rows, epsilon {epsilon}{words}: right"
        found.append((title, trained(made, test, target)))
    return found


_OTHERS = ("mst", "independent")


def peers(table: tuple[Domain, Integers], epsilons: Sequence[float] = (0.1, 1, 10)) -> list[tuple[str, float]]:
    """Ours, and dpmm's AIM and MST on the same codes in an environment of their own, one run each."""
    domain, rows = table
    mixed = np.random.default_rng(0).permutation(rows)
    test, train = mixed[: len(rows) // TESTED], mixed[len(rows) // TESTED :]
    target = _target(domain)
    sizes = json.dumps(dict(zip(domain.names, domain.sizes, strict=True)))
    found = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        venv.create(place / "venv", with_pip=True)
        python = str(place / "venv" / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "-q", "dpmm"], check=True)
        np.savetxt(place / "codes.csv", train, "%d", ",", header=",".join(domain.names), comments="")

        def theirs(kind: str, epsilon: float) -> tuple[Integers, float, float]:
            arguments = [str(place / "codes.csv"), sizes, str(epsilon), str(place / "made.csv"), kind]
            done = subprocess.run([python, "-c", DPMM, *arguments], check=True, capture_output=True, text=True)
            seconds, megabytes = map(float, done.stdout.split()[-2:])
            return np.loadtxt(place / "made.csv", delimiter=",", skiprows=1, dtype=np.int64), seconds, megabytes

        for epsilon, kind in itertools.product(epsilons, ("adaptive", "AIM", "MST")):
            if kind == "adaptive":
                start = time.process_time()
                made = synthesise(planned(kind, domain, epsilon), domain, Memory(train, domain)).rows
                seconds, megabytes = time.process_time() - start, float("nan")
            else:
                made, seconds, megabytes = theirs(kind, epsilon)
            pairs, triples = (marginal_errors(domain, train, made, size) for size in (2, 3))
            title = f"{'ours' if kind == 'adaptive' else f'dpmm, {kind}'}, epsilon {epsilon}"
            found += [
                (f"{title}: error of pairs", pairs),
                (f"{title}: error of triples", triples),
                (f"{title}: NIST score of triples", 500 * (2 - triples)),
                (f"{title}: boosted trees right", trained(made, test, target)),
                (f"{title}: seconds of processors", seconds),
                (f"{title}: memory, MB", megabytes),
            ]
    return found


def _target(domain: Domain) -> int:
    """Which column is predicted: the income, or the last."""
    return next((place for place, name in enumerate(domain.names) if name.startswith(TARGET)), len(domain.names) - 1)


def main() -> None:
    files = [one for one in sys.argv[1:] if not one.startswith("--")]
    table = coded(Path(files[0])) if files else adult()
    print(f"{len(table[1]):,} rows, {len(table[0].names)} columns, {TESTED - 1}/{TESTED} of the rows train")
    for name, value in peers(table) if "--peers" in sys.argv else figures(RUNS, table):
        print(f"  {name:<72} {value:>12,.4g}", flush=True)


if __name__ == "__main__":
    main()
