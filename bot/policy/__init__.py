"""Decisions about events, people and texts: pure functions over frozen rules."""
