"""Many questions known beforehand: marginals, ranges, prefixes and counts, answered together with the least error."""

from discreet.workload.question import Workload

__all__ = ["Workload"]
