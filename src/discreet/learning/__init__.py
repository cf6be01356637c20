"""Procedures that learn from rows through the door: sample and aggregate, and models by noisy gradient descent."""
