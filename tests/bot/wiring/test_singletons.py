"""What is done once for all accounts is done by the first share alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pydantic import SecretStr

from bot.app import open_service
from bot.domain.asks import NO_OTHERS
from bot.domain.masking import Mask
from bot.domain.notes import WHOLE, Share
from bot.domain.tongue import Tongue
from bot.memory.newest import Newest
from bot.wiring.singletons import run_singletons
from config.settings import Settings
from tests.cases import each_case
from tests.fakes import RecordingStore, SteppedClock
from tests.ports import free_port


class Journal:
    """Knows of no logins; asking it for anything else fails."""

    def __init__(self, share: Share) -> None:
        self.books, self.share, self.shown = self, share, None
        self.asked: list[str] = []

    async def settings(self, name: str) -> dict[Any, str]:
        self.asked.append(name)
        return {}


@each_case(("share", "asked"), [(WHOLE, ["console"]), (Share(0, 8), ["console"]), (Share(3, 8), [])])
async def test_the_first_share_alone_has_the_console(share: Share, asked: list[str]) -> None:
    none, journal = SimpleNamespace(open={}), Journal(share)
    groups = SimpleNamespace(news=None)
    answering = SimpleNamespace(groups=groups)
    rooms: Any = SimpleNamespace(answering=answering, owner=SimpleNamespace(tongue=Tongue.CHINESE, tell=None))
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
