"""The former name of `discreet.accounting.gdp_filter`, kept for who imports it."""

from discreet.accounting.gdp_filter import charge, opening, times

__all__ = ["charge", "opening", "times"]
