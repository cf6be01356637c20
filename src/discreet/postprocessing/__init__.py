"""What a question computes from what was released, and from public tables: no row about a person is here."""
