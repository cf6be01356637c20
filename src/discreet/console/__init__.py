"""The console: pages of the service for people, rendered on the server, under `/console`."""
