"""Ring B: questions beyond counts, sums and means over one table."""
