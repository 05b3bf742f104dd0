"""Inquiries between a server that answers when a test lets it, and nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.chat.active_conversations import ActiveConversations
from bot.chat.group_probe import MAX_GROUPS, BotDetection, GroupProbe
from bot.chat.mutes import Mutes
from bot.core.conversation import Conversation
from bot.core.events import Muted
from bot.core.ports import JoinedGroup, Member
from frostagent.cancellation import background
from frostagent.types.errors import BotError
from tests.fakes import BOT, RecordingTransport, SteppedClock, until


class Server(RecordingTransport):
    """Answers nothing of those who are `away` in time; `asked` is who was asked, `most` how many of them at once."""

    def __init__(self) -> None:
        super().__init__()
        self.away: set[int | Conversation] = set()
        self.asked: list[int | Conversation] = []
        self.open: list[int | Conversation] = []
        self.most = 0
        self.back = asyncio.Event()

    async def get_groups(self, account: int) -> tuple[JoinedGroup, ...]:
        await self._answer(account)
        groups = await super().get_groups(account)
        return tuple(group for group in groups if group.conversation.platform_id == account)

    async def get_member(self, group: Conversation, user_id: int) -> Member:
        await self._answer(group)
        return await super().get_member(group, user_id)

    async def _answer(self, asked: int | Conversation) -> None:
        self.asked.append(asked)
        self.open.append(asked)
        self.most = max(self.most, len(self.open))
        try:
            if asked in self.away:
                await self.back.wait()
                if self.failures:
                    raise self.failures.pop(0)
        finally:
            self.open.remove(asked)

    def answer(self, *failures: BotError) -> None:
        """What was asked until now is answered, or is given up by one failure each."""
        self.failures += failures
        self.back.set()
        self.back = asyncio.Event()


class Office:
    """Inquiries between fakes."""

    def __init__(self) -> None:
        self.clock, self.transport = SteppedClock(), Server()
        self.mutes, self.robots = Mutes(clock=self.clock), BotDetection()
        self.told: list[Muted | tuple[Conversation, Member]] = []
        self.places = ActiveConversations(arrive=lambda _: None, clock=self.clock)
        self.group_probe = GroupProbe(
            transport=self.transport,
            take_mute=self.take,
            learn_member=self.learn,
            mutes=self.mutes,
            bot_detection=self.robots,
            active_conversations=self.places,
            clock=self.clock,
        )

    def take(self, event: Muted) -> None:
        """Somebody was muted, or may speak again; as the room above does, it is asked about that."""
        self.told.append(event)
        self.mutes.apply(event)
        if self.mutes.holds_in(event.conversation):
            self.mutes.doubt(event.conversation)

    def learn(self, where: Conversation, member: Member) -> None:
        """The server said so."""
        self.told.append((where, member))
        self.mutes.learn(where, member)

    async def connect(self) -> None:
        """The account connects, and all that it asks then is answered."""
        self.mutes.forget(BOT)
        asked = len(self.transport.members_asked)
        await until(lambda: len(self.transport.members_asked) >= asked + min(len(self.transport.groups), MAX_GROUPS))
        await self.settle()

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


@asynccontextmanager
async def office() -> AsyncIterator[Office]:
    made = Office()
    async with asyncio.timeout(30), background(made.group_probe.run()):
        yield made
