"""Budgets by part, as by clinic or region: README.md says what to read."""
