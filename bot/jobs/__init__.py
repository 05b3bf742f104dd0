"""Reminders and schedules: their rules, what makes and changes them, and the timer."""
