"""Quiet hours from the settings, and the commands /quiet, /mute and /unmute."""
