"""Alembic's scripts: env.py connects them to our tables; versions/ has a module per revision.

They begin with the baseline (`baseline.py`); later ones are kept for ever. A new revision: change
tables.py, add its number to REVISIONS there, and write `versions/r<number>_<word>.py`. Tests
compare the result of the scripts with tables.py.

Only this package imports Alembic, and it is imported only to migrate.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

SCRIPTS = Path(__file__).parent


def configuration(connection: Connection) -> Config:
    """Alembic's configuration for these scripts, inside the connection's transaction."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def migrate(connection: Connection) -> None:
    """Run every missing revision. Raises the database's errors; the caller rolls back."""
    command.upgrade(configuration(connection), "head")
