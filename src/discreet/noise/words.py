"""The former name of `ring_a.bits`, kept for those who import it."""

from discreet.trusted.ring_a.bits import SystemWords, Words

__all__ = ["SystemWords", "Words"]
