"""How much persons contribute, released once for a snapshot: limits of questions follow from it."""
