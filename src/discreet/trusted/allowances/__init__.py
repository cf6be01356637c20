"""Caps by day and month inside an analyst's own budget: README.md says what to read."""
