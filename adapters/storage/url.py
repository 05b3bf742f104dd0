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
EXAMPLES = Bilingual(
    "Write it as sqlite+aiosqlite:///data/frostagent.db or"
    " postgresql://user:password@host/database",
    "写成 sqlite+aiosqlite:///data/frostagent.db 或 postgresql://user:password@host/database",
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
TWO_SLASHES = Bilingual(
    "has two slashes, but an SQLite URL has three (a relative path) or four (an absolute one)",
    "只有两个斜杠，SQLite 的地址要三个（相对路径）或四个（绝对路径）",
)
NOT_A_URL = Bilingual("is not the URL of a database", "不是数据库的地址")
NO_FILE = Bilingual("names no file", "没有写文件")
SQLITE = "sqlite+pysqlite"
POSTGRES = "postgresql+psycopg"


def read_url(text: str) -> URL:
    """Parse a STORE_URL. Raises ConfigError."""
    try:
        url = make_url(text.strip())
    except (ArgumentError, ValueError):  # ValueError: a port that is no number
        raise _refused(NOT_A_URL) from None
    match url.drivername.partition("+")[0]:
        case "sqlite":
            return _sqlite(url)
        case "postgresql" | "postgres":
            return _postgres(url)
        case other:
            raise _refused(
                Bilingual(
                    f"names {other[:20]}, which is not supported", f"写的是 {other[:20]}，不支持"
                )
            )


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
        raise _refused(TWO_SLASHES)
    if name in {"", ":memory:"} or name.startswith("file:"):
        raise _refused(NO_FILE)
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
