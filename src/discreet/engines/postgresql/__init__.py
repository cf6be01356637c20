"""All that names PostgreSQL: where a server is and what it says, and which of its types are ours."""
