"""Questions whose answer is a choice, not a number: the largest groups, and which of many counts reach a threshold."""
