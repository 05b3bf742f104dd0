"""Alembic's scripts: env.py connects them to our tables, versions/ has one module for each revision
of the schema.

They begin with the baseline (`baseline.py`), and what follows is kept for ever. A new revision:
change tables.py, add its number to REVISIONS there, and write `versions/r<number>_<word>.py` beside
the last one. The tests compare what the scripts make with what tables.py says.

The one package that imports Alembic, itself imported only to migrate.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

SCRIPTS = Path(__file__).parent


def configuration(connection: Connection) -> Config:
    """Alembic's configuration for our scripts, working inside the connection's transaction."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def migrate(connection: Connection) -> None:
    """Run every revision the database has not seen. Raises the database's errors; the caller rolls
    back.
    """
    command.upgrade(configuration(connection), "head")
