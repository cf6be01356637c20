"""Which plans are one vector of counts over public groups, so that one person more lowers none of them."""

from __future__ import annotations

from discreet.trusted.ring_a.measurement import ExactPlan, reads
from discreet.trusted.ring_a.nodes import TotalKind, project_of
from discreet.trusted.ring_a.table import Table


def one_vector(plan: ExactPlan, table: Table) -> None:
    """Raises ValueError unless the plan gives one vector over public groups of this table as it is declared."""
    if not reads(plan, table) or plan.keys != project_of(plan.root).keys or plan.private:
        raise ValueError("the plan does not read this table as it is declared")
    if len(plan.roots) != 1 or len(plan.parts) != 1 or len(plan.parts[0].vectors) != 1:
        raise ValueError("the plan is not a vector over public groups")


def monotone_count(plan: ExactPlan, table: Table) -> bool:
    """Whether the plan counts rows or persons in public groups, so that one person more lowers none of the counts.

    Each is a total times a weight that is not negative. A count of a person's rows that is clamped to bounds is not
    negative where the upper one is not. Raises ValueError where the plan is not a vector over public groups."""
    one_vector(plan, table)
    counts = (TotalKind.ROWS, TotalKind.NON_NULL, TotalKind.PERSONS)
    totals = [(plan.root.totals[index], weight) for index, weight in plan.parts[0].vectors[0].weights]
    return all(
        total.kind in counts and weight >= 0 and (total.bounds is None or total.bounds[1] >= 0)
        for total, weight in totals
    )
