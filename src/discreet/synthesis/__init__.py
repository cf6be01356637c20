"""Made-up tables that answer as the real one does, and what they may be trusted with."""
