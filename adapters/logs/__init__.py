"""The bot's log on standard error, for people or machines.

All code logs through the standard library; this package alone decides on format and masking.
"""
