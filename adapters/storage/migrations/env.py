"""Alembic's environment for every command: it works on the connection it is given, inside that
one's transaction.
"""

from __future__ import annotations

from alembic import context

from adapters.storage.tables import metadata, versions

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=versions.name,
    render_as_batch=True,  # SQLite alters a table by making it anew
)
context.run_migrations()
