"""Ratios measured in one run. Absolute times say little on a shared machine."""
