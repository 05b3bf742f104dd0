"""The bot's log on standard error, for people or for machines; structlog writes
the lines.

Everybody logs through the standard library; only here is decided how that looks and what is left
out of it.
"""
