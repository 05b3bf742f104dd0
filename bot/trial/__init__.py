"""Trying the bot: a second service in a simulated group, with a journal that is deleted with it."""
