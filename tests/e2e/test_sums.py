"""Whoever asks what today took is told the same by /usage, the digest, /metrics, two pages of the console, the limits,
and the rows.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import aiohttp
from pydantic import SecretStr
from yarl import URL

from adapters.offline.server import OfflineModel
from bot.app import Service
from bot.budget.limits import ALL
from bot.core.command import tokens
from tests.e2e.test_watching import OWNER, service, settings, watching
from tests.ports import free_port

PRICES = '[[model]]\nname = "demo"\ninput = 3000\noutput = 7000\n'
SAME = {"Sec-Fetch-Site": "same-origin"}


async def pages(running: Service, *paths: str) -> list[str]:
    """These pages of the console, for who follows its link."""
    assert running.console_link is not None
    page, _, code = running.console_link().partition("#")
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        answer = await session.post(page, data={"code": code}, headers=SAME, allow_redirects=False)
        root = page.removesuffix("/login")
        session.cookie_jar.update_cookies({name: one.value for name, one in answer.cookies.items()}, URL(root))
        found = []
        for path in paths:
            async with session.get(f"{root}/{path}", headers={"Accept-Language": "en"}) as shown:
                found.append(await shown.text())
    return found


async def test_whoever_asks_what_today_took_is_told_the_same(tmp_path: Path) -> None:
    (prices := tmp_path / "prices.toml").write_text(PRICES)
    async with OfflineModel() as model:
        given = settings(
            model.base_url,
            tmp_path,
            web_port=free_port(),
            console_port=free_port(),
            console_token=SecretStr("0123456789abcdef0123456789abcdef"),
            llm_prices=prices,
            bot_day_cost_all=1000.0,
            bot_day_tokens_user=1_000_000,
            bot_send_rate=0.0,
        )
        async with service(given) as (running, simulator), watching(given.web_port) as watcher:
            for text, user in (
                ("@bot hello", 8001),
                ("@bot send me a message with a picture", 8001),
                ("@bot hi", OWNER),
            ):
                before = len(simulator.delivered)
                await simulator.say(text, user_id=user)
                await simulator.wait_delivered(before + 1)
                await running.wait_idle()
            assert await running.app.journal.commit()
            with closing(sqlite3.connect(tmp_path / "journal.db")) as rows:
                read, cost = rows.execute("SELECT sum(prompt + completion), sum(cost) FROM usage").fetchone()
                (requests,) = rows.execute("SELECT count(*) FROM usage").fetchone()
            assert requests == 4
            assert 1 < cost < 1000
            taken = running.app.spending.taken(ALL)
            assert (taken.tokens, f"{taken.cost:.6f}") == (read, f"{cost:.6f}")
            assert await watcher.figure("frostagent_day_tokens") == read
            assert f"{await watcher.figure('frostagent_day_cost'):.6f}" == f"{cost:.6f}"
            today, costs = await pages(running, "", "cost")
            said = []
            for command in ("/usage all", "/digest"):
                before = len(simulator.delivered)
                await simulator.say_private(command, user_id=OWNER)
                await simulator.wait_delivered(before + 1)
                said.append(simulator.delivered[-1].text)
    dollars, words = f"${cost:.2f}", tokens(read)
    usage, digest = said
    assert f"today: {requests} requests, {words} tokens (0% cached), {dollars}\n" in usage
    assert f"{words} tokens (0% cached), {dollars} (" in digest
    assert f"<b>{dollars}</b>" in today
    assert re.search(rf">{re.escape(dollars)}</td><td class=\"number\">{re.escape(words)}<", costs), costs
