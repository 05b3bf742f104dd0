"""Media: files and public urls that leave the bot, checked; pictures of people on their way to a
model that sees.
"""
