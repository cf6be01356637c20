"""The former name of `ring_b.gdp_filter`, kept for those who import it."""

from discreet.accounting.room import times
from discreet.trusted.ring_b.gdp_filter import charge, opening

__all__ = ["charge", "opening", "times"]
