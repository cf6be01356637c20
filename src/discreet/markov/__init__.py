"""Distributions over integer-coded rows that are products of factors on few columns: fitting, marginals, rows."""

from discreet.markov.domain import Clique, Domain
from discreet.markov.field import MarkovRandomField
from discreet.markov.likelihood import fit
from discreet.markov.measurement import MarginalMeasurement

__all__ = ["Clique", "Domain", "MarginalMeasurement", "MarkovRandomField", "fit"]
