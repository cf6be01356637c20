"""The one door: reserve, measure, noise, commit.

`grant` holds the order of these steps and what happens when one fails. Each other module is one kind of measurement:
what is computed exactly, which noise hides it, and nothing else.
"""

from discreet.door.blocks import BlockLimits, Blocks
from discreet.door.grant import Door, Grant
from discreet.door.groups import Groups
from discreet.door.marginals import Marginals
from discreet.door.selection import Choice, Chosen
from discreet.door.shares import Shares
from discreet.door.training import Training
from discreet.door.watch import Watching
from discreet.door.weights import Weighing
from discreet.door.workload import LinearQueries

__all__ = [
    "BlockLimits",
    "Blocks",
    "Choice",
    "Chosen",
    "Door",
    "Grant",
    "Groups",
    "LinearQueries",
    "Marginals",
    "Shares",
    "Training",
    "Watching",
    "Weighing",
]
