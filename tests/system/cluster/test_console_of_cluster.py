"""One console shows the accounts of all workers, and what is said on it is done by the worker that has the account."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import aiohttp
import psycopg

from adapters.simulator.actions import befriend
from adapters.simulator.server import Simulator
from adapters.simulator.world import Person
from tests.ports import free_port
from tests.system.cluster.test_several_workers import ACCOUNTS, Town, beside_gateway, has, town
from tests.system.processes.test_signals import ONE, PATIENCE, Bot

SECRET = "0123456789abcdef0123456789abcdef"
SAME = {"Sec-Fetch-Site": "same-origin", "Accept-Language": "en"}
OWNER = 20001

__all__ = ("town",)

ROW = re.compile(r'name="account" value="(\d+)"><input type="hidden" name="name" value="(\w+)"')
GONG = '''from pathlib import Path

from frostagent import tool


@tool(permission="require_approval", side_effects="external")
async def strike_gong(token: str) -> str:
    """Strikes the gong."""
    with Path(__file__).with_name("struck.log").open("a") as log:
        log.write(token + "\\n")
    return token
'''


@dataclass
class Page:
    """The console as a browser has it, whichever worker shows it."""

    root: str
    session: aiohttp.ClientSession

    async def get(self, path: str) -> str:
        async with self.session.get(f"{self.root}{path}", headers=SAME) as answer:
            return await answer.text()

    async def log_in(self) -> None:
        async with self.session.post(f"{self.root}/login", data={"token": SECRET}, headers=SAME) as answer:
            assert answer.status == 200

    async def post(self, path: str, **data: str) -> str:
        found = re.search(r'name="form" value="(\w+)"', await self.get("/access"))
        assert found
        given = {"form": found[1], **data}
        async with self.session.post(f"{self.root}{path}", data=given, headers=SAME) as answer:
            return await answer.text()

    async def word(self, account: int, name: str, allows: str) -> str:
        return await self.post("/approvals", account=str(account), name=name, allows=allows)

    async def waiting(self) -> set[tuple[int, str]]:
        return {(int(account), name) for account, name in ROW.findall(await self.get("/approvals"))}

    async def until(self, path: str, words: str) -> str:
        """Until a page says that, and is whole."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    text = await self.get(path)
                except aiohttp.ClientError:  # it moves to another worker
                    continue
                if words in text and "Not whole" not in text:
                    return text


@asynccontextmanager
async def opened(*ports: int) -> AsyncIterator[Page]:
    """The console at the one of these ports where there is one."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        async with asyncio.timeout(PATIENCE):
            page = await shown_at(session, *ports)
            await page.until("/health", "online")
        yield page


async def shown_at(session: aiohttp.ClientSession, *ports: int) -> Page:
    while True:
        for port in ports:
            page = Page(f"http://127.0.0.1:{port}", session)
            try:
                await page.log_in()
            except aiohttp.ClientError:
                continue
            return page


@dataclass
class Hall:
    """Two workers with two accounts each, and the console that one of them shows."""

    town: Town
    page: Page
    shows: Bot
    other: Bot
    other_port: int


@asynccontextmanager
async def hall_of(town: Town, **more: str) -> AsyncIterator[Hall]:
    town.cluster.gate.opened.set()
    given = {"CONSOLE_TOKEN": SECRET, "BOT_OWNERS": str(OWNER), "BOT_LANGUAGE": "en", **more}
    ports = [free_port(), free_port()]
    async with (
        town.worker(CONSOLE_PORT=str(ports[0]), **given) as first,
        town.worker(CONSOLE_PORT=str(ports[1]), **given) as second,
    ):
        await has(first, 2)
        await has(second, 2)
        async with opened(*ports) as page:
            is_first = page.root.endswith(f":{ports[0]}")
            bots = (first, second) if is_first else (second, first)
            yield Hall(town, page, *bots, ports[is_first])


def gong(tmp_path: Path) -> dict[str, str]:
    """A tool that needs an owner's word."""
    (folder := tmp_path / "tools").mkdir()
    (folder / "gong.py").write_text(GONG)
    return {"TOOLS_DIR": str(folder)}


def struck(tmp_path: Path) -> list[str]:
    log = tmp_path / "tools" / "struck.log"
    return sorted(log.read_text().split()) if log.exists() else []


async def ask_for_the_gong(town: Town) -> None:
    for account, server in town.servers.items():
        await server.say(f"@bot strike#a{account}")


async def wait_for(page: Page, *names: str) -> None:
    """Until those, and nothing else, wait at each account: each counts for itself."""
    async with asyncio.timeout(PATIENCE):
        while await page.waiting() != {(account, name) for account in ACCOUNTS for name in names}:
            pass


async def written_down(town: Town) -> None:
    """Until the journal, too, has a call that waits at each account: who takes over reads it there."""
    waiting = "SELECT count(*) FROM runs WHERE state IS NOT NULL"
    async with asyncio.timeout(PATIENCE), await psycopg.AsyncConnection.connect(town.cluster.store_url) as journal:
        while await (await journal.execute(waiting)).fetchone() != (len(ACCOUNTS),):
            await journal.rollback()


async def finished(town: Town) -> None:
    """Until every account has said what it says once its call is decided."""
    for account, server in town.servers.items():
        told = partial(has_told, server, f"F:a{account}")
        await server.wait_until(told, timeout=PATIENCE)


def has_told(server: Simulator, words: str) -> bool:
    return any(one.text == words for one in server.delivered)


async def test_calls_of_all_accounts_wait_on_one_page_and_each_word_is_carried_out_where_the_account_is(
    town: Town, tmp_path: Path
) -> None:
    async with hall_of(town, **gong(tmp_path)) as hall:
        await ask_for_the_gong(town)
        await wait_for(hall.page, "A1")
        assert '<b class="badge">4</b>' in await hall.page.get("/tools")
        for account in ACCOUNTS[1:]:
            assert "A1: allowed." in await hall.page.word(account, "A1", "1")
        assert "A1: denied." in await hall.page.word(ACCOUNTS[0], "A1", "0")
        await finished(town)
        assert "was decided already" in await hall.page.word(ACCOUNTS[3], "A1", "0")
        assert await hall.page.waiting() == set()
        audit = await hall.page.get("/access")
        for account in ACCOUNTS:
            assert f"A1, account {account}" in audit
    assert struck(tmp_path) == sorted(f"a{account}" for account in ACCOUNTS[1:])


async def test_requests_of_people_and_drafts_are_answered_where_their_account_is(town: Town) -> None:
    async with hall_of(town, BOT_NEW_GROUP="shadow") as hall:
        for account, server in town.servers.items():
            await server.push(befriend(server.world, Person(30001, "new friend"), f"hello {account}"))
            await server.say(f"@bot plain#a{account}")
        await wait_for(hall.page, "R1", "D1")
        page = await hall.page.get("/approvals")
        assert all(f"hello {account}" in page and f"A:a{account}" in page for account in ACCOUNTS)
        for account in ACCOUNTS:
            assert "R1: allowed." in await hall.page.word(account, "R1", "1")
            assert "D1 is published." in await hall.page.word(account, "D1", "1")
        assert await hall.page.waiting() == set()
    for account, server in town.servers.items():
        assert 30001 in server.world.friends
        assert [one.text for one in server.delivered if one.group_id == ONE] == [f"A:a{account}"]


async def test_pauses_of_all_and_what_waits_are_shown_by_the_worker_that_takes_the_console_over(
    town: Town, tmp_path: Path
) -> None:
    async with hall_of(town, **gong(tmp_path)) as hall:
        await ask_for_the_gong(town)
        await wait_for(hall.page, "A1")
        for account in ACCOUNTS:
            told = await hall.page.post("/pause", where=f"{account}:group:{ONE}", silent="1")
            assert re.search(rf"group {ONE}, account {account}\)? is paused", told)
        await written_down(town)
        hall.shows.process.kill()
        async with opened(hall.other_port) as page:
            await has(hall.other, 4)
            today = await page.until("/", "is paused")
            await wait_for(page, "A1")
            today = await page.until("/", "is paused")
            assert sorted(map(int, re.findall(r"account (\d+)\)? is paused", today))) == sorted(ACCOUNTS)
            for account in ACCOUNTS:
                await page.post("/pause", where=f"{account}:group:{ONE}", silent="0")
                assert "A1: allowed." in await page.word(account, "A1", "1")
            await finished(town)
            assert "is paused" not in await page.get("/")
            hall.other.send(signal.SIGTERM)
            assert await hall.other.end() == 0
    assert struck(tmp_path) == sorted(f"a{account}" for account in ACCOUNTS)


async def test_what_is_asked_of_any_account_is_told_to_who_watches(town: Town) -> None:
    async with hall_of(town) as hall:
        found = re.search(r'data-after="(\d+)"', await hall.page.get("/turns"))
        assert found
        address, news = f"{hall.page.root}/live?after={found[1]}", set[str]()
        async with hall.page.session.get(address, headers=SAME) as stream, asyncio.timeout(PATIENCE):
            await town.ask("a")
            while len(news) < 4:
                line = (await stream.content.readline()).decode()
                if line.startswith("data: "):
                    news.add(line)
        await town.answered(1)
        rows = await hall.page.until("/turns", "plain#a")
        assert all(f"plain#a{account}" in rows for account in ACCOUNTS)
        assert f"group {ONE}, account {ACCOUNTS[0]}" in await hall.page.get("/chats")


async def test_a_frozen_workers_part_is_missing_and_the_page_says_so(town: Town, tmp_path: Path) -> None:
    async with hall_of(town, **gong(tmp_path)) as hall:
        await ask_for_the_gong(town)
        await wait_for(hall.page, "A1")
        await written_down(town)
        hall.other.send(signal.SIGSTOP)
        page = await hall.page.get("/approvals")
        assert "Not whole: 2 parts of the accounts have not answered" in page
        here = {int(account) for account, _ in ROW.findall(page)}
        assert len(here) == 2
        await has(hall.shows, 4)
        await wait_for(hall.page, "A1")
        for account in ACCOUNTS:
            assert "A1: allowed." in await hall.page.word(account, "A1", "1")
        await finished(town)
        hall.other.process.kill()
    assert struck(tmp_path) == sorted(f"a{account}" for account in ACCOUNTS)


async def test_a_link_into_the_console_is_given_beside_a_part_that_has_none(town: Town) -> None:
    async with hall_of(town) as hall:
        code, said = await beside_gateway(town, "console")
        assert (code, said.partition("#")[0]) == (0, f"{hall.page.root}/login"), said
