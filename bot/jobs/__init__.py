"""Reminders, scheduled runs and feeds: rules, commands, and the scheduler."""
