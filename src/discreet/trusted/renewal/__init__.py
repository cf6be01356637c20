"""A budget that renews for new persons: README.md says what to read."""
