"""Media that leave the bot: files of the media folder and public urls; the one place where either is checked."""
