"""Queries on the journal: a module per subject, of functions `(connection, ...) -> result` that
block and are run by `reading.py`. `scanning.py` is what they share.
"""
