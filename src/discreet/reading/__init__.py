"""Where an analyst's text is read first: a process of its own, with limits of time and memory, that can be killed."""

from discreet.reading.process import Reading

__all__ = ["Reading"]
