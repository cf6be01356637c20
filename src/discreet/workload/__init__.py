"""Many questions known beforehand: marginals, ranges, prefixes and counts, answered together with the least error."""
