"""The first evening: asks what the service needs, and writes `.env` and what the OneBot server
reads.
"""
