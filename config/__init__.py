"""Settings, and the data tables that ship with the bot."""
