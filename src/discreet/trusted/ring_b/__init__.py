"""Ring B: what a question may be beside counts, sums and means over one table."""
