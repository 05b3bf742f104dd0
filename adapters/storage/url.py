"""Normalizes STORE_URL to a URL for SQLAlchemy's synchronous engine.

sqlite+aiosqlite:///data/frostagent.db and sqlite:///... are the file; postgresql://, postgres://
and forms with a driver are PostgreSQL through psycopg. No message contains the URL, which may hold
a password.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from bot.core.language import Bilingual
from frostagent.types.errors import ConfigError, Problem

VARIABLE = "STORE_URL"
EXAMPLES = (
    "Write it as sqlite+aiosqlite:///data/frostagent.db or postgresql://user:password@host/database"
)
DRIVER = Bilingual(
    (
        "Install it: .venv/bin/pip install -r requirements-postgres.txt, without a checkout pip"
        " install 'psycopg[binary]'. With Docker, write EXTRAS=postgres into .env, then: docker"
        " compose up -d --build"
    ),
    (
        "安装它：.venv/bin/pip install -r requirements-postgres.txt，没有源码目录时用"
        " pip install 'psycopg[binary]'。用 Docker 时在 .env 里写 EXTRAS=postgres，然后"
        " docker compose up -d --build"
    ),
)
SQLITE = "sqlite+pysqlite"
POSTGRES = "postgresql+psycopg"


def read_url(text: str) -> URL:
    """Parse a STORE_URL. Raises ConfigError."""
    try:
        url = make_url(text.strip())
    except (ArgumentError, ValueError):  # ValueError: an invalid port
        raise _refused("is not the url of a database") from None
    match url.drivername.partition("+")[0]:
        case "sqlite":
            return _sqlite(url)
        case "postgresql" | "postgres":
            return _postgres(url)
        case other:
            raise _refused(f"names {other[:20]}, which is not supported")


def file_of(url: URL) -> Path | None:
    """The file of an SQLite database; None for others."""
    return Path(url.database or "") if url.drivername == SQLITE else None


def place_of(url: URL) -> str:
    """The database's place for people, without a password."""
    if url.drivername == SQLITE:
        return str(url.database)
    return (
        f"PostgreSQL, {url.database or url.username or 'postgres'} at {url.host or 'this machine'}"
    )


def _sqlite(url: URL) -> URL:
    name = url.database or ""
    if url.host or url.username:
        raise _refused(
            "has two slashes where an SQLite url has three (a relative path) or four (an absolute "
            "one)"
        )
    if name in {"", ":memory:"} or name.startswith("file:"):
        raise _refused("names no file")
    return URL.create(SQLITE, database=name)


def _postgres(url: URL) -> URL:
    if find_spec("psycopg") is None:
        what = Bilingual(
            "names a PostgreSQL database, but its driver is not installed",
            "写的是 PostgreSQL，但没有装它的驱动",
        )
        raise ConfigError(Problem(VARIABLE, what, DRIVER))
    return url.set(drivername=POSTGRES)


def _refused(what: str) -> ConfigError:
    return ConfigError(Problem(VARIABLE, what, EXAMPLES))
