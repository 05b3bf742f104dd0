"""What the console's pages take of a bot: `python -m tests.bench.pages` on an empty journal, or with the STORE_URL of
one that `tests.bench.shown` has filled.

Memory is what is the process's own (Private_Dirty), in MiB: idle with and without a console, and what comes on top once
each page was seen, and ten times. Of each page the median time, the processor it took, and its size; and until a phone
of 390x844 (Chromium) paints it first, where it has seen it before.
"""

from __future__ import annotations

import asyncio
import os
import re
import statistics
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import aiohttp
import uvloop
from yarl import URL

from tests.bench.subject import BOT, Running, Subject, running, serving_model, sharing_cores
from tests.ports import free_port
from tests.tiers import CHROMIUM

TOKEN = "0123456789abcdef0123456789abcdef"  # of nobody
SETTLED = 5.0  # seconds until a bot is idle
ROUNDS, TIMES = 9, 15
TURN = re.compile(r'href="(/turns/[^"]+)"')
CHAT = re.compile(r'href="(/chats/[^"]+)"')
PAINTED = """new Promise(done => new PerformanceObserver(all => done(all.getEntries()[0].startTime))
  .observe({type: "paint", buffered: true}))"""
PAGES = (
    *("/", "/turns", "/turns?outcome=failed", "/chats", "/cost", "/cost?by=person", "/cost?by=tool", "/approvals"),
    *("/persona", "/persona/text?key=", "/tools", "/tools/get_weather", "/health", "/try", "/access"),
)


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who is logged in."""

    session: aiohttp.ClientSession
    root: str

    async def get(self, path: str) -> str:
        async with self.session.get(URL(self.root + path, encoded=True)) as answer:
            assert answer.status == 200, (path, answer.status)
            return await answer.text()

    async def pages(self) -> list[str]:
        """Every page, one turn and one chat among them, where there are any."""
        found = [TURN.search(await self.get("/turns")), CHAT.search(await self.get("/chats"))]
        return [*PAGES, *(quote(one[1], safe="/%:") for one in found if one)]


def dirty(bot: Running) -> float:
    """The memory that is the process's own, in MiB."""
    told = Path(f"/proc/{bot.processes[0].pid}/smaps_rollup").read_text("ascii")
    return sum(int(size) for size in re.findall(r"Private_Dirty: +(\d+)", told)) / 1024


@asynccontextmanager
async def idle(store: str, console: Mapping[str, str]) -> AsyncIterator[Running]:
    """A bot that has settled."""
    own = {"STORE_URL": store, "STORE_KEEP_DAYS": "0"} if store else {}
    own["WEB_PORT"] = str(free_port())  # as most have it
    subject = Subject("console", BOT.words, parts=({**own, **console},))
    with sharing_cores(None) as cores:
        async with serving_model() as model, running(subject, model=model, cores=cores) as bot:
            await asyncio.sleep(SETTLED)
            yield bot


@asynccontextmanager
async def visiting(port: int) -> AsyncIterator[Visitor]:
    """Somebody who logs in."""
    jar, root = aiohttp.CookieJar(unsafe=True), f"http://127.0.0.1:{port}"
    async with aiohttp.ClientSession(cookie_jar=jar, headers={"Sec-Fetch-Site": "same-origin"}) as session:
        async with session.post(f"{root}/login", data={"token": TOKEN}, allow_redirects=False) as answer:
            assert answer.status == 303
        yield Visitor(session, root)


async def main(store: str) -> None:
    """Print all of it."""
    async with idle(store, {}) as bot:
        bare = dirty(bot)
    port = free_port()
    async with idle(store, {"CONSOLE_PORT": str(port), "CONSOLE_TOKEN": TOKEN}) as bot:
        calm = dirty(bot)
        say(f"idle {bare:.2f} MiB without a console, {calm - bare:+.2f} with one")
        async with visiting(port) as visitor:
            pages = await visitor.pages()
            for rounds in (1, ROUNDS):
                for _ in range(rounds):
                    for path in pages:
                        await visitor.get(path)
                say(f"in use {dirty(bot) - calm:+.2f}")
            for path in pages:
                await measure(bot, visitor, path)
            if CHROMIUM:
                await paint(visitor, pages)


async def measure(bot: Running, visitor: Visitor, path: str) -> None:
    """Time a page."""
    text, times, used = "", list[float](), bot.cpu()
    for _ in range(TIMES):
        begin = time.perf_counter()
        text = await visitor.get(path)
        times.append(1000 * (time.perf_counter() - begin))
    cpu = 1000 * (bot.cpu() - used) / TIMES
    say(f"{path[:44]:44} {statistics.median(times):7.1f} ms, {cpu:6.1f} ms cpu, {len(text.encode()) / 1000:6.1f} kB")


async def paint(visitor: Visitor, pages: list[str]) -> None:
    """Time until something of a page is seen; a browser has many processes, and all cores as it has everywhere."""
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    from playwright.async_api import async_playwright

    name, cookie = next((cookie.key, cookie.value) for cookie in visitor.session.cookie_jar)
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = await browser.new_context(viewport={"width": 390, "height": 844})
        await context.add_cookies([{"name": name, "value": cookie, "url": visitor.root}])
        page = await context.new_page()
        for path in pages:
            times = list[float]()
            for _ in range(1 + TIMES):
                await page.goto(visitor.root + path)
                times.append(await page.evaluate(PAINTED))
            say(f"{path[:44]:44} {statistics.median(times[1:]):7.1f} ms until it is painted")
        await browser.close()


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:2] or [""]))
