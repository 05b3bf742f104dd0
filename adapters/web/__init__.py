"""What the bot shows over HTTP: does it live (/healthz), can it answer (/readyz), what are its
figures (/metrics)?
"""
