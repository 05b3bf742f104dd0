"""Incoming messages and their turns: from the event to the last send of the answer."""
