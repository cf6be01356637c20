"""The bounds of the theorems and what is measured against them: `python docs/theory/measure.py`, at the root, writes
the table of docs/theorems.md anew.

Measured means: computed from the probabilities that the code really draws with, where they can be enumerated, and
counted in draws elsewhere. A count says from how many draws it comes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from snippets import FOLDER, page

from discreet.accounting import Filter, Laplace, SubsampledGaussian, compose, times_left
from discreet.mechanisms import AboveThreshold, ExponentialMechanism, PermuteAndFlip, laplace_threshold
from discreet.noise import discrete_laplace
from discreet.reference.calibrate import gaussian_sigma, subsampled_sigma
from discreet.reference.partition import PartitionSelection
from discreet.reference.response import randomised_response, two_coins
from discreet.trusted.ring_a import gaussian as gaussian_noise
from discreet.trusted.ring_a import laplace as laplace_noise
from discreet.trusted.ring_a.curves import delta_bounds
from discreet.trusted.ring_a.exact import exp_bounds
from discreet.trusted.ring_a.inversion import Digits
from discreet.trusted.ring_b.choice import decays

PAGE = FOLDER.parent / "theorems.md"
START, END = "<!-- the table: docs/theory/measure.py -->", "<!-- end of the table -->"
SOURCE = "../src/discreet"


@dataclass(frozen=True)
class Row:
    """One theorem: `measured` must be at most `bound`.

    Of `draws` draws, measured is the share that went wrong. `rough`: drawn in another way, or
    computed by Fourier transform, so that its last digits may differ elsewhere.
    """

    theorem: str
    says: str
    function: str  # "module:name", within discreet
    tests: str
    formula: str
    bound: float
    measured: float
    draws: int = 0
    rough: bool = False

    def cells(self) -> list[str]:
        module, name = self.function.split(":")
        path = f"{SOURCE}/{module.replace('.', '/')}.py"
        measured = f"{self.measured:.6g}" + (f" of {self.draws:,} draws" if self.draws else "")
        test = self.tests.rsplit("/", 1)[1].removesuffix(".py")
        return [
            self.theorem,
            self.says,
            f"[`{name}`]({path})",
            f"[`{test}`](../{self.tests})",
            f"{self.formula} = {self.bound:.6g}",
            measured,
        ]


def masses(noise: object, reach: int = 60) -> dict[int, Fraction]:
    """The probabilities with which integers are drawn, from the thresholds that random bits are compared with."""
    assert isinstance(noise, Digits)
    (table,) = noise.tables
    whole = 1 << table.sizes.full
    shares = [Fraction(high - low, whole) for low, high in pairwise([0, *table.cuts, whole])]
    found = {noise.low + place: share for place, share in enumerate(shares)}
    return {k: found[k] for k in range(-reach, reach + 1)}


def loss(one: Sequence[Fraction | float], two: Sequence[Fraction | float]) -> float:
    """The largest absolute log ratio."""
    return max(abs(math.log(a / b)) for a, b in zip(one, two, strict=True))


def shifted(noise: dict[int, Fraction], steps: int) -> tuple[list[Fraction], list[Fraction]]:
    places = [k for k in noise if k - steps in noise]
    return [noise[k] for k in places], [noise[k - steps] for k in places]


def hockey_stick(one: Sequence[Fraction | float], two: Sequence[Fraction | float], epsilon: int) -> float:
    """The least δ at this ε in one direction, from above; exact but for the last rounding where the masses are."""
    factor, _ = exp_bounds(Fraction(epsilon), 200)
    pairs = zip(map(Fraction, one), map(Fraction, two), strict=True)
    return float(sum((max(Fraction(0), a - factor * b) for a, b in pairs), Fraction(0)))


def rows(quick: bool = False) -> Iterator[Row]:
    yield from response()
    yield from additive(quick)
    yield from selection()
    yield from composition()
    yield from sparse()
    yield from others(quick)


def additive(quick: bool) -> Iterator[Row]:
    drawn = masses(laplace_noise.sampler(Fraction(1)))
    file, tests = "trusted.ring_a.additive:Laplace", "tests/trusted/ring_a/test_additive.py"
    yield Row("Def. 2.4, Thm 3.6", "Laplace noise: the loss at ε = 1", file, tests, "Δ/λ", 1, loss(*shifted(drawn, 1)))
    yield Row("Thm 2.2", "three persons together", file, tests, "3ε", 3, loss(*shifted(drawn, 3)))
    draws = 100_000 if quick else 1_000_000
    beyond = float((np.abs(discrete_laplace(10, draws)) > 30).mean())
    tail = "trusted.ring_a.laplace:discrete_laplace"
    yield Row(
        "Fact 3.7",
        "P[an error above tλ], t = 3, λ = 10",
        tail,
        "tests/trusted/ring_a/test_laplace.py",
        "e^(−t)",
        math.exp(-3),
        beyond,
        draws,
    )
    code = page("names", "inside")
    draws = 100 if quick else 5_000
    truth = np.array(code.exact)
    far = sum(np.abs(np.array(code.mechanism.release(code.exact)) - truth).max() > code.bound for _ in range(draws))
    width = "trusted.ring_a.additive:Laplace.half_width"
    yield Row(
        "Thm 3.8, Ex. 3.3",
        "P[one of 10,000 counts is off by more than 12.2]",
        width,
        tests,
        "β",
        0.05,
        far / draws,
        draws,
    )
    sigma = gaussian_sigma("0.5", "1e-5")
    classic = math.sqrt(2 * math.log(1.25e5)) / 0.5
    curve, tests = "trusted.ring_a.curves:delta_bounds", "tests/trusted/ring_a/test_curves.py"
    spent = float(delta_bounds(Fraction(1, 2), Fraction(1 / classic))[1])
    yield Row("Thm 3.22", "δ of the classic σ at (0.5, 10⁻⁵)", curve, tests, "δ", 1e-5, spent)
    yield Row(
        "Balle & Wang Thm 8",
        "σ for (0.5, 10⁻⁵) against the classic one",
        "reference.calibrate:gaussian_sigma",
        "tests/reference/test_calibrate.py",
        "√(2 ln(1.25/δ))/ε",
        classic,
        float(sigma),
    )
    sigma = gaussian_sigma(1, "1e-5")
    rounded = shifted(masses(gaussian_noise.sampler(sigma)), 1)
    yield Row(
        "Prop. 2.1",
        "rounded Gaussian noise: its δ at ε = 1",
        "trusted.ring_a.additive:Gaussian",
        "tests/trusted/ring_a/test_gaussian.py",
        "δ",
        1e-5,
        hockey_stick(*rounded, 1),
    )


def selection() -> Iterator[Row]:
    counts = (3, 2, 2)
    worst = max(
        loss(lead(counts), lead([count + step for count, step in zip(counts, steps, strict=True)]))
        for steps in product((0, 1), repeat=3)
    )
    tests = "tests/trusted/ring_b/test_noisy_max.py"
    yield Row(
        "Claim 3.9",
        "report noisy max with the gap: the loss at ε = 1",
        "trusted.ring_b.noisy_max:NoisyMax",
        tests,
        "ε",
        1,
        worst,
    )
    tests = "tests/trusted/ring_b/test_selection.py"
    for theorem, kind, chances in (
        ("Thm 3.10", ExponentialMechanism, exponential),
        ("McKenna & Sheldon Thm 1", PermuteAndFlip, permute_and_flip),
    ):
        mechanism = kind(Fraction(1))
        scores = (3, 2, 2, 0)
        worst = max(
            loss(
                chances(scores, mechanism.rate),
                chances([s + step for s, step in zip(scores, steps, strict=True)], mechanism.rate),
            )
            for steps in product((-1, 0, 1), repeat=4)
        )
        function = f"trusted.ring_b.selection:{kind.__name__}"
        yield Row(theorem, f"{kind.name}: the loss at ε = 1", function, tests, "ε", 1, worst)
    function, t = "trusted.ring_b.selection:ExponentialMechanism.half_width", 3
    for theorem, best, formula in (
        ("Thm 3.11", 5, "e^(−t), 2Δ/ε·(ln(\\|R\\|/\\|R_opt\\|) + t)"),
        ("Cor. 3.12", 1, "e^(−t), 2Δ/ε·(ln \\|R\\| + t)"),
    ):
        gap = math.ceil(2 * (math.log(100 / best) + t))
        bad = 1 - sum(exponential([gap] * best + [0] * (100 - best), Fraction(1, 2))[:best])
        says = f"P[the choice is {gap} or more below the best], 100 candidates, {best} of them best"
        yield Row(theorem, says, function, tests, formula, math.exp(-t), float(bad))


def exponential(scores: Sequence[int], rate: Fraction) -> list[Fraction]:
    """The exponential mechanism's probabilities, from the integers that it weighs candidates with."""
    weights = decays(rate, [max(scores) - score for score in scores])
    return [Fraction(weight, sum(weights)) for weight in weights]


def permute_and_flip(scores: Sequence[int], rate: Fraction) -> list[float]:
    chances: list[float] = page("distributions", "permute_and_flip").permute_and_flip(scores, float(rate)).tolist()
    return chances


def lead(counts: Sequence[int], gaps: int = 12, reach: int = 60) -> list[float]:
    """P(place, gap) of report noisy max with geometric noise of ε = 1, ties to the later place."""
    q = math.exp(-1)
    below = lambda x: 1 - q ** (x + 1) if x >= 0 else 0.0  # noqa: E731
    found = []
    for i, count in enumerate(counts):
        needs = [other + (j > i) for j, other in enumerate(counts) if j != i]
        top = lambda r, needs=needs: math.prod(below(r - need) for need in needs)  # noqa: E731
        for gap in range(gaps):
            first = max(count - gap, min(needs))
            chances = ((top(r) - top(r - 1)) * (1 - q) * q ** (r + gap - count) for r in range(first, reach))
            found.append(math.fsum(chances))
    return found


def composition() -> Iterator[Row]:
    code = page("composition", "tree")
    filter_, tests = "trusted.ring_a.filter:PrivacyFilter", "tests/trusted/ring_a/test_filter.py"
    yield Row(
        "Thm 3.14",
        "randomised response at 0.2, then Laplace noise at 0.5",
        filter_,
        tests,
        "ε₁ + ε₂",
        0.7,
        code.loss(code.both),
    )
    chance = [PartitionSelection(Fraction(1), Fraction(1, 10**5)).chance(n) for n in range(25)]
    worst = 0.0
    for n in range(24):
        pairs = [[a * b for a, b in product((p, 1 - p), repeat=2)] for p in (chance[n], chance[n + 1])]
        worst = max(worst, hockey_stick(pairs[0], pairs[1], 2), hockey_stick(pairs[1], pairs[0], 2))
    yield Row("Thm 3.16", "two (1, 10⁻⁵) selections: δ at ε = 2", filter_, tests, "δ₁ + δ₂", 2e-5, worst)
    each, count, delta = 0.01, code.theorem_3_20(0.01, 1.0, 1e-6), 1e-6
    book = math.sqrt(2 * count * math.log(1 / delta)) * each + count * each * math.expm1(each)
    tests = "tests/trusted/ring_c/test_batch.py"
    yield Row(
        "Thm 3.20",
        f"ε of {count} Laplace releases at 0.01, δ = 10⁻⁶",
        "trusted.ring_c.batch:compose",
        tests,
        "√(2k ln(1/δ))ε₀ + kε₀(e^ε₀ − 1)",
        book,
        compose({Laplace("0.01"): count}).epsilon(delta),
        rough=True,
    )
    admitted = times_left(Filter(1, "1e-6"), Laplace("0.01"))
    yield Row(
        "Gaussian residue",
        f"δ of the {admitted} Laplace releases at 0.01 that (1, 10⁻⁶) admits",
        "trusted.ring_b.gdp_filter:charge",
        "tests/trusted/ring_b/test_gdp_filter.py",
        "δ",
        1e-6,
        compose({Laplace("0.01"): admitted}).delta(1),
        rough=True,
    )
    sigma = subsampled_sigma(1, "1e-5", "0.01", 1000)
    yield Row(
        "Zhu, Dong & Wang 2022",
        "ε of 1000 steps of gradient descent, rate 0.01, δ = 10⁻⁵",
        "reference.calibrate:subsampled_sigma",
        "tests/reference/test_calibrate.py",
        "ε",
        1,
        compose([SubsampledGaussian(sigma, "0.01", 1000)]).epsilon("1e-5"),
        rough=True,
    )


def sparse() -> Iterator[Row]:
    code = page("threshold", "mechanism")
    function, tests = "trusted.ring_b.sparse:AboveThreshold", "tests/trusted/ring_b/test_sparse.py"
    one, other = ([high] * 1000 + [-high] for high in (40, 41))
    worst = loss(code.replies(code.mechanism, one).tolist(), code.replies(code.mechanism, other).tolist())
    yield Row("Thm 3.23", "1,001 questions, the last one yes: the loss at ε = 1", function, tests, "ε", 1, worst)
    k, beta = 100, 0.05
    width = math.ceil(code.mechanism.half_width(1 - beta, k))
    wrong = 1 - code.replies(code.mechanism, [-width] * (k - 1) + [width])[k - 1]
    book = 8 * (math.log(k) + math.log(2 / beta))
    half = f"{function}.half_width"
    yield Row("Thm 3.24", "α of 100 questions with β = 0.05", half, tests, "8(ln k + ln(2/β))/ε", book, width)
    yield Row("Thm 3.24", f"P[a wrong reply] on the hardest run at α = {width}", half, tests, "β", beta, float(wrong))
    three = AboveThreshold(threshold=0, epsilon=Fraction(1), limit=3)
    worst = abs(math.log(run(three, 40, -40) / run(three, 41, -41)))
    yield Row("Thm 3.25", "100 times no, then three times yes: the loss at ε = 1", function, tests, "ε", 1, worst)
    book = 8 * 3 * (math.log(k) + math.log(2 * 3 / beta))
    width = math.ceil(three.half_width(1 - beta, k))
    yield Row("Thm 3.26", "α of 100 questions, three yes, β = 0.05", half, tests, "8c(ln k + ln(2c/β))/ε", book, width)


def run(mechanism: AboveThreshold, high: int, low: int, times: int = 100, reach: int = 600) -> float:
    """P(no to so many high answers, then yes to low ones up to the limit), for a threshold of 0."""
    first, second = (float(scale) for scale in mechanism.scales)
    z, q, p = np.arange(-reach, reach + 1), math.exp(-1 / first), math.exp(-1 / second)

    def at_least(need: np.ndarray) -> np.ndarray:
        up, down = p ** np.maximum(need, 1) / (1 + p), p ** np.maximum(1 - need, 1) / (1 + p)
        return np.where(need > 0, up, 1 - down)

    no = at_least(1 - (z - high))  # the noise is symmetric: V < r is V ≥ 1 − r turned round
    return float(((1 - q) / (1 + q) * q ** np.abs(z) * no**times * at_least(z - low) ** mechanism.limit).sum())


def response() -> Iterator[Row]:
    tests = "tests/reference/test_response.py"
    (no, _), (says, _) = two_coins().channel()
    yield Row(
        "§3.2, Claim 3.5",
        "randomised response with two coins: its loss",
        "reference.response:two_coins",
        tests,
        "ln 3",
        math.log(3),
        math.log(no / says),
    )
    truth, other = randomised_response(Fraction(1), 16).channel()[0][:2]
    function = "reference.response:randomised_response"
    yield Row("§3.2", "16 answers: the loss at ε = 1", function, tests, "ε", 1, math.log(truth / other))


def others(quick: bool) -> Iterator[Row]:
    selection = PartitionSelection(Fraction(1), Fraction(1, 10**5))
    chance = [selection.chance(n) for n in range(len(selection.table) + 1)]
    worst = max(
        max(hockey_stick((a, 1 - a), (b, 1 - b), 1), hockey_stick((b, 1 - b), (a, 1 - a), 1))
        for a, b in pairwise(chance)
    )
    yield Row(
        "Desfontaines et al. 2022",
        "optimal partition selection: δ at ε = 1",
        "reference.partition:PartitionSelection",
        "tests/reference/test_partition.py",
        "δ",
        1e-5,
        worst,
    )
    plain, q = laplace_threshold(Fraction(1), Fraction(1, 10**5), 1), math.exp(-1)
    yield Row(
        "Fact 3.7, on integers",
        "Laplace threshold: P[a lone person is shown]",
        "mechanisms.lowest_threshold:laplace_threshold",
        "tests/trusted/ring_a/test_threshold.py",
        "δ",
        1e-5,
        q ** (plain.threshold - 1) / (1 + q),
    )
    draws = 50_000 if quick else 1_000_000
    code = page("floating-point", "epsilon_at_least")
    zero, one = (int((discrete_laplace(1 << 60, draws) + exact * (1 << 60) <= 0).sum()) for exact in (0, 1))
    proved = code.epsilon_at_least(zero, one, draws, level=1e-6)
    yield Row(
        "Remark 2.1",
        f"noise on a lattice of 2^−60: ε proved by an attacker with {draws:,} releases",
        "trusted.ring_a.laplace:discrete_laplace",
        "tests/attacks/test_attacker.py",
        "ε",
        1,
        proved,
        rough=True,
    )


def table(found: Sequence[Row]) -> str:
    head = ["theorem", "what", "function", "test", "bound", "measured"]
    lines = [head, ["---"] * len(head), *(row.cells() for row in found)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def write(path: Path = PAGE) -> None:
    text = path.read_text("utf-8")
    between = re.compile(f"{re.escape(START)}.*?{re.escape(END)}", re.DOTALL)
    path.write_text(between.sub(lambda _: f"{START}\n{table(list(rows()))}\n{END}", text), "utf-8")


if __name__ == "__main__":
    write()
