"""A curator that others reach: accounts with tokens, questions over HTTP."""
