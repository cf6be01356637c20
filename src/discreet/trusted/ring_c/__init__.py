"""Ring C: measurements of many steps, and their accounting."""
