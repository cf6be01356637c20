"""Assistants that ask: the tools they have, and the Model Context Protocol they have them by."""
