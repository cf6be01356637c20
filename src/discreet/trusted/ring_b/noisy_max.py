"""Report noisy max: the index of the largest noisy count, with the gap to the second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest

from discreet.trusted.ring_a.bits import SystemWords, Words
from discreet.trusted.ring_b.choice import order
from discreet.trusted.ring_b.geometric import geometric
from discreet.trusted.ring_b.selection import Selection, exact


@dataclass(frozen=True)
class NoisyMax(Selection):
    """Geometric noise on every count; the largest noisy count wins, ties by a random order drawn for each release.

    Units: persons; counts are integers. Neighbours: one person added or removed. Counts of distinct persons are
    `monotone` with sensitivity 1: the person is counted or not in each, so all counts move the same way by at most 1,
    and the rate is ε. A change of counts by at most Δ the same way is Δ such steps; any change by at most Δ is Δ steps
    up and Δ steps down. So one step is all that must be shown to cost at most the rate.

    Noise: P(G = g) = (1 − q)·q^g for g ≥ 0, q = e^(−rate). Released is the winner's place i, and if wanted the gap: by
    how many persons its noisy count could fall and still win. With R the least noisy count with which i wins against
    the others' noisy counts, c_j + G_j + 1 for j before i in the order of ties and c_j + G_j for j behind, the gap is
    c_i + G_i − R. It is one less than the difference to the runner-up where that comes before i. (The plain difference
    is not covered: a tie shows more, and its loss is 2·rate.)

    Privacy of place and gap (Dwork & Roth 2014, Claim 3.9; Ding, Wang, Zhang & Kifer 2019 for the gap; here on the
    integers, with one-sided noise). Fix the order of ties. For g ≥ 0,

        P(i, g) = Σ_r P(R = r)·P(G_i = r + g − c_i) = (1 − q)·E[w(R)],  w(r) = q^(r + g − c_i) if r ≥ c_i − g, else 0.

    Only differences matter. So two neighbours differ as counts c and c″ do, where c″ has 1 more in a set S of the
    others: if the step raises i too, take 1 off everything, and the roles change. Let R″ belong to c″.
    (a) With the same noise R ≤ R″ ≤ R + 1, and w(r), w(r + 1) ≥ q·w(r) where w(r) > 0: so P″ ≥ q·P.
    (b) R = max(Y, Z), Y from S and Z from the rest, independent; R″ = max(Y + 1, Z). With h(y) = E[w(max(y, Z))] ≥ 0,
    E[w(R)] = Σ_y P(Y = y)·h(y) and E[w(R″)] = Σ_y P(Y = y − 1)·h(y). Now P(Y = y − 1) ≤ P(Y = y)/q: it holds for one
    geometric variable, and if it holds for independent Y₁, Y₂ then also for their maximum, as P(max = y) = P(Y₁ = y)·
    P(Y₂ ≤ y) + P(Y₁ ≤ y − 1)·P(Y₂ = y). So P″ ≤ P/q.
    Hence the loss is at most the rate a step, for place and gap together, and for the place alone, a function of them.
    It is attained: two counts a person apart. The order of ties is independent of the data, so this holds on average
    over it too.

    The winner's noisy count is *not* covered: that c_i + G_i = v says that every other noisy count is at most v. With
    discrete Laplace noise it costs as many times ε as there are counts, with one-sided noise it has no finite ε. It is
    a new question with a price of its own.

    The place alone is distributed exactly as permute-and-flip's: a geometric value and an independent fraction make an
    exponential one, and fractions that are independent and alike decide ties in uniform order.

    Sampling: each noise value is within 2^−175 (`geometric`), the order of ties exact: n counts are within n·2^−175.
    """

    sensitivity: int = 1
    monotone: bool = True

    name = "report noisy max"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.sensitivity, int):
            raise ValueError("sensitivity must be a whole number of persons")

    def release(self, counts: Sequence[int], words: Words | None = None) -> int:
        """The place of the winner."""
        place, _ = winner(*self._noisy(counts, words))
        return place

    def release_with_gap(self, counts: Sequence[int], words: Words | None = None) -> tuple[int, int]:
        """The place of the winner, and by how many persons its noisy count could fall and still win."""
        if len(counts) < 2:
            raise ValueError("a gap needs two candidates")
        return winner(*self._noisy(counts, words))

    def _noisy(self, counts: Sequence[int], words: Words | None) -> tuple[list[int], list[int]]:
        source, known = words or SystemWords(), exact(counts)
        if not known:
            raise ValueError("no candidates")
        if any(not isinstance(count, int) for count in known):
            raise ValueError("counts must be integers")
        noise = geometric(1 / self.rate, len(known), source).tolist()
        keys = order(source, len(known)).tolist()
        return [int(count + extra) for count, extra in zip(known, noise, strict=True)], keys


def winner(noisy: Sequence[int], keys: Sequence[int]) -> tuple[int, int]:
    """The place of the largest (noisy count, key), and by how much that count could fall and still be it.

    The keys are distinct. With a single count the gap is 0, and says nothing.
    """
    first, *others = nlargest(2, range(len(noisy)), key=lambda place: (noisy[place], keys[place]))
    if not others:
        return first, 0
    (second,) = others
    return first, noisy[first] - noisy[second] - (keys[first] < keys[second])
