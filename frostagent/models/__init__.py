"""Whom to ask, what it costs, and the client."""
