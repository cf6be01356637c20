"""What was spent, durable: accounts, a hash chain of entries, and the stored answers.

README.md says in which order to read it.
"""
