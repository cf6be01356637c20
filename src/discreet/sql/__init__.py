"""Parses a question into a checked plan, by allow-list. The text itself goes no further."""

from discreet.sql.lower import Question, lower, lower_tree

__all__ = ["Question", "lower", "lower_tree"]
