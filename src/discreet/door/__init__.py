"""The one door: reserve, measure, noise, commit.

The names under which other rooms ask for the gate (`ring_a.gate`) and for the measurements of single questions and open
runs (ring B). Those of ring C are imported from their own modules.
"""

from discreet.trusted.ring_a.gate import Door, Grant
from discreet.trusted.ring_b.choice_measurement import ChoiceMeasurement, Chosen
from discreet.trusted.ring_b.questions import Groups
from discreet.trusted.ring_b.watching import Watching, WatchMeasurement

__all__ = [
    "ChoiceMeasurement",
    "Chosen",
    "Door",
    "Grant",
    "Groups",
    "WatchMeasurement",
    "Watching",
]
