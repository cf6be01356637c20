"""`curator.select`: which groups hold the most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from discreet.accounting import Loss
from discreet.errors import refused
from discreet.intervals.noise import CONFIDENCE, three_digits
from discreet.mechanisms import NoisyMax, TopK
from discreet.plan.left_out import unit
from discreet.plan.measurement import Plan
from discreet.release.content import Cost, ReleaseContent
from discreet.release.left_out import LeftOut, of_plan
from discreet.release.values import plain
from discreet.sql import Question
from discreet.trusted.ring_a.nodes import Clip, LimitGroups
from discreet.trusted.ring_a.sensitivity import sensitivity
from discreet.trusted.ring_a.table import Table, Type
from discreet.trusted.ring_b.choice_measurement import ChoiceMeasurement, Chosen
from discreet.trusted.ring_b.listed_groups import group_count

_refused = partial(refused, "select")

_LARGEST = 10**9


@dataclass(frozen=True)
class Select:
    """A checked call: the plan of the counts, and the mechanism that chooses among them."""

    plan: Plan
    table: Table
    mechanism: NoisyMax | TopK
    epsilon: Fraction
    gap: bool
    question: str

    @property
    def loss(self) -> Loss:
        """Of the choice, that of its mechanism."""
        return self.mechanism.loss()

    @property
    def cost(self) -> Cost:
        """Pure ε, with no δ."""
        return Cost(epsilon=float(self.epsilon), delta=0.0)

    @property
    def parts(self) -> tuple[str, ...]:
        """The arguments that determine the answer, besides the table."""
        return ("select", repr(self.plan), repr(self.mechanism), repr(self.gap))

    @property
    def measurement(self) -> ChoiceMeasurement:
        return ChoiceMeasurement(self.plan, self.table, self.mechanism, self.gap)

    def content(self, chosen: Chosen) -> ReleaseContent:
        """The content of the release: the winners' keys, best first."""
        outputs = [output for output in self.plan.outputs if output.kind == "key"]
        names = [output.name for output in outputs]
        types = {output.name: str(output.type_of(self.plan.keys[output.index])) for output in outputs}
        rows = [{output.name: plain(output.shown(keys[output.index])) for output in outputs} for keys in chosen.keys]
        if chosen.gap is not None:
            beside = "gap"
            while beside in names:
                beside += "_"
            names, types[beside] = [*names, beside], str(Type.INTEGER)
            rows[0][beside] = chosen.gap
        remarks = (*of_plan(self.plan, self.table), LeftOut("choice", self._accuracy()))
        return ReleaseContent(
            columns=names,
            types=types,
            rows=rows,
            cost=self.cost,
            mechanisms=[self._described()],
            bounds=[one.line for one in remarks],
            left_out=remarks,
            unit=unit(self.table),
        )

    def _described(self) -> dict[str, str]:
        each = self.mechanism.sensitivity
        return {
            "columns": ", ".join(output.name for output in self.plan.outputs if output.kind == "key"),
            "mechanism": self.mechanism.describe(),
            "unit": "1 a step",
            "sensitivity": f"{each} in each group, all the same way",
        }

    def _accuracy(self) -> str:
        """How far a winner may be from the best, in counts (Theorem 3.11)."""
        below = self.mechanism.half_width(CONFIDENCE, group_count(self.plan.keys, self.table.relation) or 1)
        which = "the choice's count is" if isinstance(self.mechanism, NoisyMax) else "each choice's count is"
        return f"at 95 % confidence, {which} at most {three_digits(below)} below the best one's"


def select(question: Question, text: str, table: Table, *, k: int, epsilon: Fraction, gap: bool) -> Select:
    """The call. Raises QuestionError where the question counts nothing, or its groups are not declared."""
    plan = question.plan
    groups = group_count(plan.keys, table.relation)
    counts = [output for output in plan.outputs if output.kind != "key"]
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= (groups or 1):
        raise _refused("k must be a whole number from 1 to the number of groups", "k", "write k=1")
    if gap and k > 1:
        raise _refused("the gap is known of one winner only", "gap", "leave out k, or gap")
    if not plan.keys or plan.private:
        fix = "group by columns whose values are declared: candidates must not come from the data"
        raise _refused("select chooses among declared groups", "GROUP BY", fix)
    usual = not plan.specials and all(output.kind == "count" for output in counts)
    if len(counts) > 1 or (counts and (not usual or plan.parts[0].kind not in ("count", "persons"))):
        raise _refused("select compares one count", "SELECT", "write the keys and COUNT(DISTINCT person) or COUNT(*)")
    if plan.having is not None or plan.order or plan.limit is not None:
        raise _refused(
            "HAVING, ORDER BY and LIMIT cannot be used: select() releases no counts", "HAVING", "write k=3 for three"
        )
    if not counts:
        raise _refused("select compares a count", "SELECT", "add COUNT(*), or COUNT(DISTINCT person)")
    if gap and groups == 1:
        raise _refused("a gap needs two groups", "gap", "leave out gap")
    plan = _every_group(plan)
    each = sensitivity(plan.root, plan.parts[0]).each
    if plan.parts[0].vectors[0].weights[0][1] != 1 or not 1 <= each <= _LARGEST:
        raise _refused("these counts cannot be compared", "SELECT", "leave out contribution_bounds_per_group")
    make: Callable[..., NoisyMax | TopK] = NoisyMax if k == 1 else TopK
    more = {} if k == 1 else {"k": k}
    mechanism = make(epsilon / k, sensitivity=each, monotone=True, **more)
    return Select(plan, table, mechanism, epsilon, gap, text)


def _every_group(plan: Plan) -> Plan:
    """The plan without a limit on a person's groups: what one person adds to each count is all that matters here."""
    clip = plan.root.child
    if isinstance(clip, Clip) and isinstance(clip.child, LimitGroups):
        return replace(plan, root=replace(plan.root, child=Clip(clip.child.child)))
    return plan
