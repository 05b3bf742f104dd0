"""Reading the journal: a module for each subject, of plain functions `(connection, ...) -> result`
that block and are run by `reading.py`. What they share is in `scanning.py`.
"""
