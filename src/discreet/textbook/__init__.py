"""The textbook's constructions for many queries at once, on explicit universes: each with its bound, loss and text.

Each is a frozen value whose parameters follow from its theorem. `explain(rows)` says before anything is run what it
will do and how far off it may be, `bound(rows)` is that number, `loss()` what it costs, and `release(database)` runs
it.
"""

from discreet.textbook.base import BaseGenerator
from discreet.textbook.boosting import Boosted, Boosting, rounds_needed
from discreet.textbook.linear import FractionalGenerator, LinearProgram
from discreet.textbook.small import SmallDatabase, balanced_alpha
from discreet.textbook.tuning import with_best_alpha
from discreet.trusted.ring_c.construction import Synopsis
from discreet.trusted.ring_c.multiplicative_weights import (
    MultiplicativeWeightsExponential,
    OnlineMultiplicativeWeights,
    OnlineRun,
)
from discreet.trusted.ring_c.universe import ArbitraryQueries, Database, LinearQueries, Universe

__all__ = [
    "ArbitraryQueries",
    "BaseGenerator",
    "Boosted",
    "Boosting",
    "Database",
    "FractionalGenerator",
    "LinearProgram",
    "LinearQueries",
    "MultiplicativeWeightsExponential",
    "OnlineMultiplicativeWeights",
    "OnlineRun",
    "SmallDatabase",
    "Synopsis",
    "Universe",
    "balanced_alpha",
    "rounds_needed",
    "with_best_alpha",
]
