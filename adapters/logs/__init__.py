"""The bot's log on standard error, for people or for machines.

Everybody logs through the standard library; only here is decided how that looks and what is left
out of it.
"""
