"""The one door: reserve, measure, noise, commit.

`grant` holds the order of these steps and what happens when one fails. Each other module is one kind of measurement:
what is computed exactly, which noise hides it, and nothing else. Those that few sessions need are imported from their
own modules: `marginals`, `shares`, `weights`, `workload`.
"""

from discreet.trusted.ring_a.gate import Door, Grant
from discreet.trusted.ring_b.choice_measurement import Choice, Chosen
from discreet.trusted.ring_b.questions import Groups
from discreet.trusted.ring_b.watching import Watch, Watching

__all__ = [
    "Choice",
    "Chosen",
    "Door",
    "Grant",
    "Groups",
    "Watch",
    "Watching",
]
