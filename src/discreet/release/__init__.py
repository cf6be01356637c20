"""From noisy vectors to tables, intervals and pictures. Everything here is post-processing of released numbers."""

from discreet.release.estimate import answer
from discreet.release.table import Release

__all__ = ["Release", "answer"]
