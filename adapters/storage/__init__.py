"""The journal in an SQL database: SQLite, unless STORE_URL names PostgreSQL. Start reading at
store.py.

tables.py is the schema, rows.py turns an entry into rows, batches.py writes them (in a thread),
writer.py decides when (in the event loop), and ahead.py makes a few of them durable earlier.
queries/ reads, a module per subject, and reading.py runs its functions in read-only threads.
baseline.py says which older journals can be read.
"""
