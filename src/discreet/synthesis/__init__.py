"""Synthetic tables from adaptively chosen noisy marginals, with error bounds. The names of `discreet.textbook` can also
be imported from here."""

from discreet.textbook import *  # noqa: F403
from discreet.textbook import __all__ as __all__
