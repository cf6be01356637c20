"""`curator.above_threshold`: many counts at one price, as long as few of them reach the threshold."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

from discreet.errors import refused
from discreet.mechanisms import AboveThreshold
from discreet.plan.measurement import Plan
from discreet.selection.open_run import OpenRun
from discreet.sql import Question
from discreet.trusted.ring_a.sensitivity import sensitivity
from discreet.trusted.ring_b.watching import Watching

_refused = partial(refused, "above-threshold")

_CONFIDENCE = 0.95


def mechanism(threshold: int, epsilon: Fraction, limit: int, sensitivity: int) -> AboveThreshold:
    """The mechanism of a run. Raises QuestionError on numbers that are none."""
    for name, value, least in (("threshold", threshold, None), ("limit", limit, 1), ("sensitivity", sensitivity, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
            whole = "a whole number" + (f" of at least {least}" if least else "")
            raise _refused(f"{name} must be {whole}", name, f"write {name}={least or 100}")
    return AboveThreshold(threshold, epsilon, sensitivity, limit, monotone=True, one_sided=True)


class AboveThresholdRun(OpenRun[bool]):
    """An open run. `ask` says of each count whether it seems to reach the threshold; after `limit` times yes it ends.

    The whole price was charged when it opened, whatever is asked; nothing comes back. Use it in a `with` block, or call
    `close`: then its replies are stored in the ledger. A run that a crash ends stays charged without an answer.
    """

    def __init__(
        self,
        watching: Watching,
        kind: AboveThreshold,
        lower: Callable[[str], Question],
        load: Callable[[], None],
    ) -> None:
        super().__init__(watching, "above_threshold", "replies")
        self._watching, self._kind = watching, kind
        self._lower, self._load = lower, load

    @property
    def halted(self) -> bool:
        """Whether nothing more can be asked."""
        return self._over

    @property
    def replies(self) -> list[tuple[str, bool]]:
        """The questions so far with their replies."""
        return list(self._given)

    def half_width(self, questions: int) -> float:
        """Gives the h, in the unit of the counts, by which replies may be off over this many questions.

        At 95 % confidence each yes stands for a count of at least threshold − h, each no for one of at most threshold
        + h (Dwork & Roth 2014, Theorem 3.24).
        """
        return self._kind.half_width(_CONFIDENCE, questions)

    def ask(self, question: str) -> bool:
        """Says whether the count seems to be at least the threshold.

        Raises QuestionError where the question is no count without groups, or the run has ended; DeclarationError where
        a source is not what it was; EngineError where it failed, which ends the run; LedgerError.
        """
        checked = self._lower(question)
        self._check(checked)
        self._load()
        return self._answered(question, lambda: self._watching.ask(checked.plan, checked.table))

    def _check(self, question: Question) -> None:
        plan: Plan = question.plan
        self._unpriced(question)
        usual = [output.kind for output in plan.outputs] == ["count"] and not plan.specials
        counted = [part.kind for part in plan.parts] in (["count"], ["persons"])
        if plan.keys or plan.having is not None or not usual or not counted:
            raise _refused("a run asks for one count at a time", "SELECT", "write SELECT COUNT(*) FROM … WHERE …")
        moved = sensitivity(plan.root, plan.parts[0]).l1
        if moved > self._kind.sensitivity:
            fix = f"write COUNT(DISTINCT person), or open the run with sensitivity={moved}"
            message = f"one person can move this count by {moved}, more than the run's {self._kind.sensitivity}"
            raise _refused(message, "SELECT", fix)
