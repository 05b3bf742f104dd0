"""Quiet hours: by the settings, and by the commands /quiet, /mute and /unmute."""
