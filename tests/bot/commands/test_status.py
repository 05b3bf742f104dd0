from __future__ import annotations

from typing import cast

from adapters.broker.queries import ClusterQuery, ClusterReply, ContextReply, StatusQuery
from adapters.broker.requests import RequestExchange
from bot.cluster.other_bots import ClusterBots
from bot.commands.digest import Standing
from bot.commands.status import StatusReader
from bot.core.console_views import BotStatus, State
from bot.core.errors import NotConnected
from bot.core.other_bots import ALONE


class Three:
    """Three other bots; one says nothing, and one is about to be taken over, so that two answer for it."""

    count = 3

    async def ask_all(self, ask: ClusterQuery, /) -> tuple[ClusterReply, ...]:
        assert ask == StatusQuery()
        first, older = (
            BotStatus(1, State(), waits={"call": 2, "draft": 1}),
            BotStatus(2, State(), waits={"call": 5}),
        )
        return first, older, BotStatus(2, State(), waits={"friend": 1, "group": 4}), ContextReply(())

    async def ask(self, account: int, ask: ClusterQuery, /) -> ClusterReply:
        raise NotConnected(f"{account} is asked {ask}")


async def test_what_waits_is_counted_everywhere_and_who_did_not_say_it_is_told() -> None:
    def count() -> dict[str, int]:
        return {"call": 1, "friend": 1, "invite": 0, "group": 0, "draft": 2}

    async def free() -> int:
        return 5

    alone, one_of_four = (
        StatusReader(count_pending=count, free_space=free, others=others, number=0)
        for others in (ALONE, ClusterBots(cast("RequestExchange", Three())))
    )
    for status in (await alone.here(), await alone.everywhere(), await one_of_four.here()):
        assert status == Standing(count(), 5)
    everywhere = await one_of_four.everywhere()
    assert everywhere == Standing({"call": 3, "friend": 2, "invite": 0, "group": 4, "draft": 3}, 5, absent=1)
