"""Ring A: counts, sums and means by public or private keys over one table, from the declaration to noisy numbers."""
