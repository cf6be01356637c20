"""The former name of `discreet.reference.baseline_filters`, kept for those who import it."""

from discreet.reference.baseline_filters import ConcentratedFilter, GaussianFilter, SumFilter

__all__ = ["ConcentratedFilter", "GaussianFilter", "SumFilter"]
