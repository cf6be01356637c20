"""How far a noisy number lies from the truth, for a question's price and for its answer."""
