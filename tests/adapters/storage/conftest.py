"""Both databases for every test: SQLite in a folder, PostgreSQL (FROST_TEST_POSTGRES) in a schema of its own."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from sqlalchemy import Connection

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.migrations import migrate
from adapters.storage.store import SqlStore, open_store
from frostagent.clock import SystemClock
from frostagent.types.ports import Clock
from tests.adapters.storage.entries import NOW
from tests.adapters.storage.schemas import Schemas
from tests.fakes import until
from tests.owners import read

POSTGRES = os.environ.get("FROST_TEST_POSTGRES", "")


@dataclass
class Opened:
    """A store of a test, and what it told its operator."""

    store: SqlStore
    told: list[str] = field(default_factory=list)

    @property
    def batches(self) -> EntryBatches:
        return self.store._batches

    @property
    def database(self) -> Database:
        return self.store._database

    async def wait_told(self, number: int) -> list[str]:
        await until(lambda: len(self.told) >= number)
        return self.told


Opener: TypeAlias = Callable[..., AbstractAsyncContextManager[Opened]]


@asynccontextmanager
async def opened(url: str, *, clock: Clock | None = None, **more: Any) -> AsyncIterator[Opened]:
    told: list[str] = []
    options: dict[str, Any] = {"keep_days": 90, "keep_messages": 1_000_000, "migrate": migrate} | more
    async with open_store(url, clock=clock or SystemClock(), trouble=read(told), **options) as store:
        yield Opened(store, told)


class ParkedClock(SystemClock):
    """Real time, but waits of a minute and more end when the test says so; those of seconds do not end."""

    def __init__(self) -> None:
        self.parked: list[tuple[float, asyncio.Event]] = []

    def now(self) -> float:
        return NOW

    async def sleep(self, seconds: float) -> None:
        if seconds < 1:
            await super().sleep(0)
            return
        end = asyncio.Event()
        if seconds >= 60:
            self.parked.append((seconds, end))
        await end.wait()


class locked:  # noqa: N801  # reads as a phrase: with locked(database)
    """Another program writes into the file, for as long as the block."""

    def __init__(self, database: Database) -> None:
        self.connection = sqlite3.connect(str(database.file), isolation_level=None)

    def __enter__(self) -> None:
        self.connection.execute("BEGIN IMMEDIATE").close()

    def __exit__(self, *_: object) -> None:
        self.connection.close()


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The url of an SQLite database that is not there yet."""
    return f"sqlite+aiosqlite:///{tmp_path}/data/frost.db"


@pytest.fixture(scope="session")
def schemas() -> Iterator[Schemas]:
    """Those of the server that FROST_TEST_POSTGRES names."""
    made = Schemas(POSTGRES)
    yield made
    made.close()


@pytest.fixture
def postgres(schemas: Schemas) -> Iterator[str]:
    """The url of a schema of a real server, with our tables, and no row in them."""
    with schemas.ready() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """Each database in turn."""
    found: str = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """A database, connections and all."""
    opened = Database(url, migrate=migrate)
    yield opened
    opened.close()


@pytest.fixture
def batches(database: Database) -> Iterator[EntryBatches]:
    """What writes into it, without a queue."""
    writing = EntryBatches(database, stamp=lambda: "now")
    yield writing
    writing.close()


@pytest.fixture
def connection(database: Database) -> Iterator[Connection]:
    """A connection to a database with its tables."""
    with database.connect() as made:
        yield made
