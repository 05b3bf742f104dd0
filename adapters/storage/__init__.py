"""The journal in an SQL database: SQLite unless STORE_URL names PostgreSQL. Begin with store.py.

tables.py says what is kept, rows.py how an entry becomes rows, batches.py writes them (in a
thread), writer.py decides when (in the event loop), ahead.py makes a few of them durable before
that; queries/ brings them back, a module for each subject, and reading.py runs those functions in
threads that only read. baseline.py says which older journals are read.
"""
