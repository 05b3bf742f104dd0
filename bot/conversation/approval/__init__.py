"""Calls that wait for an owner's word: who may allow them, the requests, and his answers."""
