"""What it costs that somebody looks: `python -m tests.bench --console`.

A message beside a console that is absent, closed and open, side by side in every round; then what fifty streams hold
(Private_Dirty, MiB), and how long a page needs to hear of a thousand turns at once, of which the newest are kept for it
(Chromium, ms).
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import aiohttp

from adapters.console.live import MOST, OF_ONE
from adapters.console.logins import BURST, EVERY
from bot.memory.newest import KEPT
from tests.adapters.console.visiting import visiting as placed
from tests.bench import report
from tests.bench.pages import TOKEN, Visitor, dirty, idle, visiting
from tests.bench.report import Results
from tests.bench.subject import BOT, Subject, serving_model, sharing_cores
from tests.bench.trial import Figures, Load, measure
from tests.bot.memory.test_newest import kept_silent
from tests.ports import free_port
from tests.system.console.sights import logged_in
from tests.tiers import CHROMIUM

ABSENT, CLOSED, OPEN = "absent", "closed", "open"
AGAIN = 0.05  # seconds until one who looks tries again
EVENTS, BURSTS = 1000, 9
PAIRS = (CLOSED, ABSENT), (OPEN, ABSENT)
LABELS = {name: report.LABELS[name] for name in ("p10", "p50", "p95", "rate", "cpu", "peak")}


async def look(port: int) -> None:
    """Follow the stream, as a page of turns does until somebody asks for its new rows. Without end."""
    while True:
        with suppress(aiohttp.ClientError):
            async with visiting(port) as visitor, visitor.session.get(f"{visitor.root}/live") as stream:
                async for _ in stream.content.iter_any():
                    pass
        await asyncio.sleep(AGAIN)


@asynccontextmanager
async def looked_at(name: str, port: int) -> AsyncIterator[None]:
    """Somebody looks while the block runs, where the console is to be open."""
    async with asyncio.TaskGroup() as looks:
        looking = looks.create_task(look(port)) if name == OPEN else None
        yield
        if looking:
            looking.cancel()


async def messages(rounds: int, load: Load, bot_cpu: int | None = None) -> Results:
    """What a message takes, by how the console is."""
    results: dict[str, list[Figures]] = {ABSENT: [], CLOSED: [], OPEN: []}
    with sharing_cores(bot_cpu) as cores:
        async with serving_model() as model:
            for _ in range(rounds):
                for name, found in results.items():
                    port = free_port()
                    own = {} if name == ABSENT else {"CONSOLE_PORT": str(port), "CONSOLE_TOKEN": TOKEN}
                    async with looked_at(name, port):
                        subject = Subject(name, BOT.words, parts=(own,))
                        found.append(await measure(subject, load, model=model, cores=cores))
    return results


async def streams() -> str:
    """What as many streams hold as there may be."""
    port = free_port()
    console: Mapping[str, str] = {"CONSOLE_PORT": str(port), "CONSOLE_TOKEN": TOKEN}
    async with idle("", console) as bot, AsyncExitStack() as opened:
        visitors = list[Visitor]()
        for number in range(-(-MOST // OF_ONE)):
            await asyncio.sleep(EVERY if number >= BURST else 0)
            visitors.append(await opened.enter_async_context(visiting(port)))
            await visitors[-1].get("/turns")
        before = dirty(bot)
        for number in range(MOST):
            visitor = visitors[number // OF_ONE]
            stream = await opened.enter_async_context(visitor.session.get(f"{visitor.root}/live"))
            await stream.content.readline()
        return f"{MOST} streams {dirty(bot) - before:+.2f} MiB\n"


async def events() -> str:
    """How long it is from a thousand turns to their number on a page; nothing where there is no browser."""
    if not CHROMIUM:
        return ""
    from playwright.async_api import async_playwright

    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    async with placed() as place, async_playwright() as driver:
        await place.log_in()
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = await logged_in(browser, place, viewport={"width": 390, "height": 844}, locale="en")
        page, times = await context.new_page(), list[float]()
        for burst in range(BURSTS):
            await page.goto(f"http://{place.host}/turns")
            await page.locator(".live:not(.off)").wait_for()
            began = time.perf_counter()
            for number in range(EVENTS):
                place.newest.see(kept_silent(f"{burst}-{number}"))
            await page.get_by_role("button", name=f"{KEPT} new").wait_for()
            times.append(1000 * (time.perf_counter() - began))
        await browser.close()
    return f"{EVENTS} events {statistics.median(times):.0f} ms ({min(times):.0f}-{max(times):.0f})\n"
