"""A ledger on a PostgreSQL server: README.md says what to read."""
