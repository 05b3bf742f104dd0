"""Alembic's environment: it works on the given connection, inside its transaction."""

from __future__ import annotations

from alembic import context

from adapters.storage.tables import metadata, versions

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=versions.name,
    render_as_batch=True,  # SQLite alters a table by recreating it
)
context.run_migrations()
