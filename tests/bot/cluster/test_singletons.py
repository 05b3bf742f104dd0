"""What is done once for all accounts is done by the first share alone."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from pydantic import SecretStr

from bot.app import open_service
from bot.cluster.singletons import run_daily_tasks, run_singletons
from bot.commands import alarms
from bot.commands.digest import DAILY_LOOK
from bot.domain.cluster_messages import WHOLE, ClusterPartition
from bot.domain.cluster_queries import NO_OTHERS
from bot.domain.events import Conversation
from bot.domain.language import Language
from bot.domain.masking import Mask
from bot.domain.query_results import DaySum
from bot.memory.newest import Newest
from config.settings import Settings
from tests.bot.commands.books import PaperBooks
from tests.cases import each_case
from tests.fakes import GROUP, RecordingStore, SteppedClock
from tests.ports import free_port


class Journal:
    """Knows of no logins; asking it for anything else fails."""

    def __init__(self, share: ClusterPartition) -> None:
        self.books, self.share, self.shown = self, share, None
        self.asked: list[str] = []

    async def settings(self, name: str) -> dict[Any, str]:
        self.asked.append(name)
        return {}


@each_case(
    ("share", "asked"), [(WHOLE, ["console"]), (ClusterPartition(0, 8), ["console"]), (ClusterPartition(3, 8), [])]
)
async def test_the_first_share_alone_has_the_console(share: ClusterPartition, asked: list[str]) -> None:
    none, journal = SimpleNamespace(open={}), Journal(share)
    groups = SimpleNamespace(news=None)
    answering = SimpleNamespace(groups=groups)
    rooms: Any = SimpleNamespace(answering=answering, owner=SimpleNamespace(tongue=Language.CHINESE, tell=None))
    rooms.stages = SimpleNamespace(petitions=none)
    rooms.forgetting = SimpleNamespace(follow=lambda _: None)
    rooms.on = SimpleNamespace(lanes=SimpleNamespace(in_progress=dict), store=RecordingStore())
    spending = SimpleNamespace(marks=SimpleNamespace(people=None))
    seen: Any = SimpleNamespace(
        rooms=rooms,
        spending=spending,
        journal=journal,
        clock=SteppedClock(),
        trying=None,
        others=NO_OTHERS,
        newest=Newest(),
    )
    settings = Settings(
        console_port=free_port(), console_host="127.0.0.1", console_token=SecretStr("s" * 32), bot_digest=None
    )
    async with run_singletons(settings, seen, RecordingStore(), Mask(()), open_service) as link:
        assert (link is not None) == share.is_first
        assert journal.asked == asked


async def test_with_no_time_for_it_nothing_is_looked_at() -> None:
    nothing: Any = SimpleNamespace(
        books=None,
        share=WHOLE,
        answering=SimpleNamespace(groups=SimpleNamespace(news=None)),
        marks=SimpleNamespace(people=None),
        owner=SimpleNamespace(tongue=Language.CHINESE, tell=None),
    )
    nothing.stages = SimpleNamespace(petitions=None)
    clock, store = SteppedClock(), RecordingStore()
    nothing.on = SimpleNamespace(lanes=SimpleNamespace(in_progress=dict))
    async with run_daily_tasks(
        Settings.model_validate({"bot_digest": "0"}), nothing, nothing, nothing, store, NO_OTHERS, clock
    ):
        await clock.advance(DAILY_LOOK)
    assert store.entries == []


async def test_owners_hear_of_people_near_their_limits_of_new_groups_and_of_a_turn_that_does_not_end() -> None:
    told: list[str] = []
    groups = SimpleNamespace(news=lambda: ("新群", "new groups"))
    answering = SimpleNamespace(requests=SimpleNamespace(open={}), groups=groups)
    at: Any = SimpleNamespace(books=PaperBooks(), share=WHOLE, answering=answering)
    at.owner = SimpleNamespace(tongue=Language.CHINESE, tell=lambda kind, _line: told.append(kind))
    at.marks = SimpleNamespace(people=lambda: ("快用完了", "nearly all"))
    at.stages = SimpleNamespace(petitions=SimpleNamespace(open=()))
    none: Any = SimpleNamespace(open={})
    lanes = SimpleNamespace(in_progress=lambda: {"a turn": GROUP})
    at.on = SimpleNamespace(lanes=lanes, modes=none, shadow=SimpleNamespace(drafts=none))
    clock = SteppedClock()
    async with run_daily_tasks(
        Settings.model_validate({"bot_digest": "0"}), at, at, at, RecordingStore(), NO_OTHERS, clock
    ):
        async with asyncio.timeout(30):
            while f"stuck in {GROUP}" not in told:
                await clock.advance(alarms.LOOK)  # more often than twice: a look waits for a thread, and the disk
    assert told[:2] == ["nearly all", "new groups"]


@each_case(("share", "asks"), [(WHOLE, True), (ClusterPartition(0, 8), True), (ClusterPartition(3, 8), False)])
async def test_what_is_told_of_all_accounts_is_looked_for_by_the_first_share_alone(
    share: ClusterPartition, asks: bool
) -> None:
    asked: list[float] = []

    class Asked(PaperBooks):
        async def day(self, *, since: float, until: float, where: Conversation | None = None) -> DaySum | None:
            asked.append(since)
            return await super().day(since=since, until=until, where=where)

    groups = SimpleNamespace(news=lambda: None)
    answering = SimpleNamespace(requests=SimpleNamespace(open={}), groups=groups)
    at: Any = SimpleNamespace(books=Asked(), share=share, answering=answering)
    at.owner = SimpleNamespace(tongue=Language.CHINESE, tell=lambda *_: None, is_reachable=True, post=lambda _: None)
    at.marks = SimpleNamespace(people=lambda: None)
    at.stages, at.looks = SimpleNamespace(petitions=SimpleNamespace(open=())), list[int]()
    none: Any = SimpleNamespace(open={})
    lanes = SimpleNamespace(in_progress=lambda: at.looks.append(1) or {})
    at.on = SimpleNamespace(lanes=lanes, modes=none, shadow=SimpleNamespace(drafts=none))
    clock = SteppedClock()
    async with run_daily_tasks(
        Settings.model_validate({"bot_digest": "0"}), at, at, at, RecordingStore(), NO_OTHERS, clock
    ):
        async with asyncio.timeout(30):
            while len(at.looks) < 3:
                await clock.advance(alarms.LOOK)
    assert bool(asked) == asks
