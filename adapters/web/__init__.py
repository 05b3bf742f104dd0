"""The bot over HTTP: does it live (/healthz), can it answer (/readyz), what are its
figures (/metrics)?
"""
