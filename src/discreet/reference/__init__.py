"""What textbooks state and no question runs: mechanisms, conversions, filters and searches to compare with.

Tests, the audit and the pages use it. No promise of the curator rests on it."""
