"""What questions may compute of a row: the table of functions, where values lie, and which of them may be NULL."""
