"""Bringing an older schema up to date with Alembic: the one module that imports it, itself imported
only then.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

SCRIPTS = Path(__file__).parent / "migrations"


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
