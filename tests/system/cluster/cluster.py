"""The parts of a cluster as processes, on a real RabbitMQ and a real PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, make_url, text

from adapters.simulator.server import Simulator
from adapters.storage.url import read_url
from tests.adapters.broker.conftest import clear
from tests.apart import Host, Pipes
from tests.ports import free_port
from tests.rabbit import Rabbit, running
from tests.system.processes.test_signals import PATIENCE, ROOT, TOKEN, Bot, Gate, make_world, quoted
from tests.torture.model import ScriptedModel

POSTGRES = os.environ.get("FROST_TEST_POSTGRES", "")


@pytest.fixture(scope="session")
def rabbit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rabbit]:
    with running(tmp_path_factory.mktemp("rabbit") / "node") as rabbit:
        yield rabbit


@pytest.fixture
def store_url() -> Iterator[str]:
    with fresh_database() as url:
        yield url


@contextmanager
def fresh_database() -> Iterator[str]:
    """A database of its own on the server that FROST_TEST_POSTGRES names, dropped at the end."""
    engine = create_engine(read_url(POSTGRES), isolation_level="AUTOCOMMIT")
    name = f"cluster_{uuid4().hex[:12]}"
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    try:
        yield make_url(POSTGRES).set(database=name).render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        engine.dispose()


@dataclass
class Cluster:
    """Everything beside the bot's own processes, and how to start those."""

    folder: Path
    gate: Gate
    model: ScriptedModel
    simulator: Simulator
    rabbit: Rabbit
    store_url: str
    onebot_port: int

    def part(self, role: str, *, program: str = "", **more: str) -> AbstractAsyncContextManager[Bot]:
        """A process of this role; it is killed at the end, if it lives. The `program` may begin it in another way."""
        return self.part_on((), role, program=program, **more)

    @asynccontextmanager
    async def part_on(self, host: tuple[str, ...], role: str, *, program: str = "", **more: str) -> AsyncIterator[Bot]:
        """The same on another host, by the words with which a program there begins."""
        web = free_port()
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "PYTHONUTF8": "1",
            "BROKER_URL": self.rabbit.url,
            "BROKER_PARTITIONS": "1",
            "BOT_ROLE": role,
            "ONEBOT_HOST": "127.0.0.1",
            "ONEBOT_PORT": str(self.onebot_port),
            "ONEBOT_ACCESS_TOKEN": TOKEN,
            "WEB_PORT": str(web),
        }
        if role != "gateway":
            environment |= {
                "LLM_BASE_URL": self.model.base_url,
                "LLM_MODEL": "scripted",
                "STORE_URL": self.store_url,
                "BOT_STEER": "0",
                "BOT_DEBOUNCE": "0",
                "BOT_PACE": "0",
            }
        folder = self.folder / uuid4().hex
        folder.mkdir()
        process = await asyncio.create_subprocess_exec(
            *(*host, sys.executable, *(("-c", program) if program else ("-m", "bot")), "run"),
            cwd=folder,
            env=environment | more,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=PIPE,
        )
        try:
            yield Bot(process, web)
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()

    @property
    def reached(self) -> dict[str, int]:
        """The ports of what a worker on another host has to reach."""
        urls = {"database": self.store_url, "broker": self.rabbit.url, "model": self.model.base_url}
        return {name: make_url(url).port or 5432 for name, url in urls.items()}

    def settings_on(self, host: Host | Pipes) -> dict[str, str]:
        """A worker there finds everything at the ends of its links."""

        def there(url: str, name: str) -> str:
            address, port = host.address(name)
            return make_url(url).set(host=address, port=port).render_as_string(hide_password=False)

        return {
            "STORE_URL": there(self.store_url, "database"),
            "BROKER_URL": there(self.rabbit.url, "broker"),
            "LLM_BASE_URL": there(self.model.base_url, "model"),
        }

    @asynccontextmanager
    async def gateway(self, **more: str) -> AsyncIterator[Bot]:
        async with self.part("gateway", **more) as bot:
            await bot.until("gateway: listening")
            await self.simulator.wait_connected(timeout=PATIENCE)
            yield bot

    @asynccontextmanager
    async def worker(self, **more: str) -> AsyncIterator[Bot]:
        async with self.part("worker", **more) as bot:
            await bot.until("ready: over the broker")
            await bot.until_figure('frostagent_accounts{online="true"}', 1)
            yield bot

    def answers(self) -> list[tuple[str, str]]:
        return sorted((message.text, quoted(message)) for message in self.simulator.delivered)


@pytest.fixture
async def unconnected(tmp_path: Path, rabbit: Rabbit, store_url: str) -> AsyncIterator[Cluster]:
    """A cluster whose account is not there: two servers of one account would take turns."""
    gate, port = Gate(), free_port()
    await clear(rabbit.url)
    async with ScriptedModel(gate.hold) as model, Simulator(make_world(), reconnect=0.05) as simulator:
        yield Cluster(tmp_path, gate, model, simulator, rabbit, store_url, port)


@pytest.fixture
def cluster(unconnected: Cluster) -> Cluster:
    """One whose account connects as soon as a gateway is there."""
    unconnected.simulator.dial(f"ws://127.0.0.1:{unconnected.onebot_port}/", token=TOKEN)
    return unconnected
