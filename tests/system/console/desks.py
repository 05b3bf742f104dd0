"""A bot that lives beside a simulated QQ, and the browser of whoever is logged in to its console."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import SecretStr

from bot.core.console_views import TurnQuery, TurnRows
from tests.adapters.console.visiting import SAME, TOKEN
from tests.e2e.town import Stage, open_town
from tests.fakes import Step
from tests.ports import free_port


@dataclass
class Desk:
    """The bot, the address of its console, and a browser that is logged in there."""

    stage: Stage
    root: str
    context: Any

    async def open(self, path: str) -> Any:
        """A tab with this page."""
        page = await self.context.new_page()
        await page.goto(self.root + path)
        return page

    async def written(self, words: str) -> None:
        """Until the console can read this question: it is announced before it is, and no person is that quick."""
        async with asyncio.timeout(30):
            while not any(words in row.text for row in (await self._rows()).rows):
                pass

    async def _rows(self) -> TurnRows:
        found = await self.stage.service.app.journal.shown.rows(TurnQuery())
        assert found is not None
        return found

    async def done(self) -> list[tuple[str, str, str]]:
        """What was done on pages after the login, as it is written down: action, object, outcome."""
        lines = await self.stage.service.app.journal.books.audit(latest=50)
        return [(one.action, one.object, one.outcome) for one in reversed(lines or ())][1:]


Opening: TypeAlias = Callable[..., Awaitable[Desk]]
"""Takes what the model says, step by step."""


async def open_desk(stack: AsyncExitStack, browser: Any, folder: Path, *steps: Step) -> Desk:
    """One whose model answers by this script, while the stack is open."""
    console: dict[str, Any] = {"console_port": free_port(), "console_token": SecretStr(TOKEN), "bot_language": "en"}
    town = await stack.enter_async_context(open_town(folder))
    stage = await stack.enter_async_context(town.live(*steps, **console))
    assert stage.service.console_link is not None
    page, _, code = stage.service.console_link().partition("#")
    context = await stack.enter_async_context(await browser.new_context(locale="en"))
    await context.request.post(page, form={"code": code}, headers=SAME)
    return Desk(stage, page.removesuffix("/login"), context)


async def told(page: Any) -> str:
    """What the page says came of what was done."""
    return " ".join((await page.get_by_role("status").text_content()).split())
