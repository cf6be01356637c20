"""The former name of `discreet.noise.bits`, kept for who imports it."""

from discreet.noise.bits import SystemWords, Words

__all__ = ["SystemWords", "Words"]
