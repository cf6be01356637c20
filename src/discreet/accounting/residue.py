"""The former name of `ring_b.gdp_filter`, kept for who imports it."""

from discreet.trusted.ring_b.gdp_filter import charge, opening, times

__all__ = ["charge", "opening", "times"]
