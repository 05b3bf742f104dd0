"""Alembic's scripts: env.py connects them to our tables, versions/ has one module for each revision
of the schema.

They begin with the baseline (`baseline.py`), and what follows is kept for ever. A new revision:
change tables.py, add its number to REVISIONS there, and write `versions/r<number>_<word>.py` beside
the last one. The tests compare what the scripts make with
what tables.py says.
"""
