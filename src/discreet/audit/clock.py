"""A timing attack: a threshold is fitted on half of the response times and tested on the other half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from discreet.audit.bound import upper

Times = Sequence[tuple[str, float]]
"""Of each answer its question's name and seconds."""


@dataclass(frozen=True)
class Guesses:
    """How often a guess of who is in the table was right, on answers that the guess was not fitted on."""

    right: int
    of: int

    @property
    def success(self) -> float:
        """The share of right guesses."""
        return self.right / self.of

    def at_most(self, miss: float = 0.05) -> float:
        """The upper bound of the chance of success, wrong with the chance `miss` (Clopper & Pearson 1934)."""
        return upper(self.right, self.of, miss)


def told_apart(absent: Times, present: Times) -> Guesses:
    """The success of the best threshold of each question, which side of it is whose included.

    The first half of either side fits, the second half is guessed.
    """
    thresholds = _fitted(_halves(absent)[0], _halves(present)[0])
    right = of = 0
    for times, there in ((_halves(absent)[1], False), (_halves(present)[1], True)):
        for name, seconds in times:
            place, slower = thresholds.get(name, (0.0, True))
            right += ((seconds > place) == slower) == there
            of += 1
    return Guesses(right, of)


def _halves(times: Times) -> tuple[Times, Times]:
    """Every question's own answers in two halves, in their order."""
    seen: dict[str, int] = {}
    halves: tuple[list[tuple[str, float]], list[tuple[str, float]]] = ([], [])
    for name, seconds in times:
        seen[name] = seen.get(name, -1) + 1
        halves[seen[name] % 2].append((name, seconds))
    return halves


def _fitted(absent: Times, present: Times) -> Mapping[str, tuple[float, bool]]:
    """For each question the threshold that is right most often, and whether being above it means being there."""
    found = {}
    for name in {name for name, _ in (*absent, *present)}:
        marked = sorted(
            [(seconds, False) for one, seconds in absent if one == name]
            + [(seconds, True) for one, seconds in present if one == name]
        )
        present_above = above = sum(there for _, there in marked)
        absent_above = absent_all = len(marked) - above
        best, choice = -1, (0.0, True)
        for seconds, there in [(0.0, None), *marked]:
            if there is not None:
                present_above -= there
                absent_above -= not there
            slower = present_above + absent_all - absent_above
            if max(slower, len(marked) - slower) > best:
                best, choice = max(slower, len(marked) - slower), (seconds, slower >= len(marked) - slower)
        found[name] = choice
    return found
