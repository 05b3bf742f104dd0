"""Coming in: each message once, heard and kept; whether it wakes the bot, and may be answered."""
