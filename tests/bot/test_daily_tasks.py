"""What is done once for all accounts is done by the first share alone."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from pydantic import SecretStr

from adapters.broker.partitions import ClusterPartition
from bot.app import list_daily_tasks, open_service
from bot.commands import alarms
from bot.commands.digest import DAILY_LOOK, Standing
from bot.console.console import open_console
from bot.core.conversation import Conversation
from bot.core.language import Bilingual, Language
from bot.core.other_bots import EVERY_ACCOUNT, AccountScope
from bot.core.query_results import DaySum
from bot.memory.newest import Newest
from bot.runtime.background import run_background
from config.settings import Settings
from frostagent.text.masking import Mask
from tests.bot.commands.books import PaperBooks
from tests.cases import each_case
from tests.fakes import GROUP, RecordingStore, SteppedClock
from tests.ports import free_port


async def nothing_waits() -> Standing:
    return Standing()


class Journal:
    """Knows of no logins; asking it for anything else fails."""

    def __init__(self, share: AccountScope) -> None:
        self.books, self.scope, self.shown = self, share, None
        self.asked: list[str] = []

    async def settings(self, name: str) -> dict[Any, str]:
        self.asked.append(name)
        return {}


@each_case(
    ("share", "asked"),
    [(EVERY_ACCOUNT, ["console"]), (ClusterPartition(0, 8), ["console"]), (ClusterPartition(3, 8), [])],
)
async def test_the_first_share_alone_has_the_console(share: AccountScope, asked: list[str]) -> None:
    journal = Journal(share)
    app: Any = SimpleNamespace(
        journal=journal,
        store=RecordingStore(),
        lanes=SimpleNamespace(in_progress=dict),
        owner=SimpleNamespace(language=Language.CHINESE, tell=None),
        decisions=SimpleNamespace(groups=SimpleNamespace(news=None)),
        forgetting=SimpleNamespace(follow=lambda _: None),
        spending=SimpleNamespace(alerts=SimpleNamespace(take_people=None)),
        status=SimpleNamespace(here=None, everywhere=None),
        clock=SteppedClock(),
    )
    settings = Settings(
        console_port=free_port(), console_host="127.0.0.1", console_token=SecretStr("s" * 32), bot_digest=None
    )
    async with open_console(settings, app, mask=Mask(()), feed=Newest(), open_service=open_service) as link:
        assert (link is not None) == share.is_first
        assert journal.asked == asked


async def test_with_no_time_for_it_nothing_is_looked_at() -> None:
    clock, store = SteppedClock(), RecordingStore()
    nothing: Any = SimpleNamespace(
        journal=SimpleNamespace(books=None, scope=EVERY_ACCOUNT),
        store=store,
        lanes=SimpleNamespace(in_progress=dict),
        owner=SimpleNamespace(language=Language.CHINESE, tell=None),
        decisions=SimpleNamespace(groups=SimpleNamespace(news=None)),
        spending=SimpleNamespace(alerts=SimpleNamespace(take_people=None)),
        status=SimpleNamespace(here=None, everywhere=None),
        clock=clock,
    )
    async with run_background(list_daily_tasks(Settings.model_validate({"bot_digest": "0"}), nothing)):
        await clock.advance(DAILY_LOOK)
    assert store.entries == []


async def test_owners_hear_of_people_near_their_limits_of_new_groups_and_of_a_turn_that_does_not_end() -> None:
    told: list[str] = []
    clock = SteppedClock()
    app: Any = SimpleNamespace(
        journal=SimpleNamespace(books=PaperBooks(), scope=EVERY_ACCOUNT),
        store=RecordingStore(),
        lanes=SimpleNamespace(in_progress=lambda: {"a turn": GROUP}),
        owner=SimpleNamespace(language=Language.CHINESE, tell=lambda kind, _line: told.append(kind)),
        decisions=SimpleNamespace(groups=SimpleNamespace(news=lambda: Bilingual("new groups", "新群"))),
        spending=SimpleNamespace(alerts=SimpleNamespace(take_people=lambda: Bilingual("nearly all", "快用完了"))),
        status=SimpleNamespace(here=nothing_waits, everywhere=nothing_waits),
        clock=clock,
    )
    async with run_background(list_daily_tasks(Settings.model_validate({"bot_digest": "0"}), app)):
        async with asyncio.timeout(30):
            while f"stuck in {GROUP}" not in told:
                await clock.advance(alarms.LOOK)  # more often than twice: a look waits for a thread, and the disk
    assert told[:2] == ["nearly all", "new groups"]


@each_case(("share", "asks"), [(EVERY_ACCOUNT, True), (ClusterPartition(0, 8), True), (ClusterPartition(3, 8), False)])
async def test_what_is_told_of_all_accounts_is_looked_for_by_the_first_share_alone(
    share: AccountScope, asks: bool
) -> None:
    asked: list[float] = []

    class Asked(PaperBooks):
        async def day(self, *, since: float, until: float, where: Conversation | None = None) -> DaySum | None:
            asked.append(since)
            return await super().day(since=since, until=until, where=where)

    clock, looks = SteppedClock(), list[int]()

    def in_progress() -> dict[str, Conversation]:
        looks.append(1)
        return {}

    app: Any = SimpleNamespace(
        journal=SimpleNamespace(books=Asked(), scope=share),
        store=RecordingStore(),
        lanes=SimpleNamespace(in_progress=in_progress),
        owner=SimpleNamespace(language=Language.CHINESE, tell=lambda *_: None, is_reachable=True, post=lambda _: None),
        decisions=SimpleNamespace(groups=SimpleNamespace(news=lambda: None)),
        spending=SimpleNamespace(alerts=SimpleNamespace(take_people=lambda: None)),
        status=SimpleNamespace(here=nothing_waits, everywhere=nothing_waits),
        clock=clock,
    )
    async with run_background(list_daily_tasks(Settings.model_validate({"bot_digest": "0"}), app)):
        async with asyncio.timeout(30):
            while len(looks) < 3:
                await clock.advance(alarms.LOOK)
    assert bool(asked) == asks
