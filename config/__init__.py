"""Settings, and the data tables that ship with the bot; knows nothing of ours but the errors."""
