"""Background queries to servers: where an account is muted and what its groups are called, after it
connects or a whole group is muted; and whether a new person is a bot. No message waits for them.

Accounts do not wait for each other's servers, nor groups for each other's mutes. A new reason to
ask replaces an older one, which may have waited for long.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from weakref import WeakValueDictionary

from msgspec.structs import replace

from bot.chat.active_conversations import ActiveConversations
from bot.chat.mutes import Mutes
from bot.core.conversation import Conversation
from bot.core.errors import ActionUnanswered, ActionUnsupported, TransportError
from bot.core.events import MessageReceived, Muted
from bot.core.lru import LRU
from bot.core.ports import JoinedGroup, Member, Transport
from frostagent.types.ports import Clock

MAX_MET = 20_000
MAX_ASKED = 100  # people waiting to be looked up, per account; further ones are not

logger = logging.getLogger(__name__)


class BotDetection:
    """Known bots, by their numbers, and people to look up, once each. Never waits: a person may get
    an answer before they are known to be a bot.
    """

    def __init__(self) -> None:
        self.known = LRU[int, None](MAX_MET)
        self._met = LRU[tuple[int, int], None](MAX_MET)  # by account
        self._asked: asyncio.Queue[tuple[Conversation, int]] = asyncio.Queue()
        self._waiting = Counter[int]()  # people met and not settled, by account

    def meet(self, message: MessageReceived) -> None:
        """A message woke the bot: look its sender up, if it is in a group and they are new."""
        where, sender = message.conversation, message.sender.user_id
        if where.is_group and (where.platform_id, sender) not in self._met:
            self._met.keep((where.platform_id, sender), None)
            if self._waiting[where.platform_id] < MAX_ASKED:
                self._waiting[where.platform_id] += 1
                self._asked.put_nowait((where, sender))

    async def next(self) -> tuple[Conversation, int]:
        """Wait for the next person to look up, and where they were met."""
        return await self._asked.get()

    def settle(self, where: Conversation, user_id: int, *, is_robot: bool) -> None:
        """Record the result of a look-up, or that there is none."""
        self._waiting[where.platform_id] -= 1
        if is_robot:
            logger.info("%d in %s is a robot: not answered any more", user_id, where)
            self.known.keep(user_id, None)


MAX_GROUPS = 50  # per account, those in use first
ABREAST = 4  # queries to the server of one account at once
AGAIN = 60.0  # seconds after which an unanswered query is repeated
TRIES = 10  # until an unconfirmed mute is no longer believed (`UNCERTAIN_MUTE`)


class GroupProbe:
    """Queries servers. Results go to `bot_detection` (people), `take_mute` (mutes of whole groups)
    and `learn_member` (the account in a group).
    """

    def __init__(
        self,
        *,
        transport: Transport,
        take_mute: Callable[[Muted], None],
        learn_member: Callable[[Conversation, Member], None],
        mutes: Mutes,
        bot_detection: BotDetection,
        active_conversations: ActiveConversations,
        clock: Clock,
    ) -> None:
        self._transport = transport
        self._take_mute = take_mute
        self._learn_member = learn_member
        self._mutes = mutes
        self._bot_detection = bot_detection
        self._active_conversations = active_conversations
        self._clock = clock
        self._asking = WeakValueDictionary[int | Conversation, asyncio.Task[None]]()
        self._abreast = defaultdict[int, asyncio.Semaphore](partial(asyncio.Semaphore, ABREAST))
        self._of_people = defaultdict[int, asyncio.Lock](asyncio.Lock)  # by account
        self._cannot_tell: set[int] = set()  # accounts whose server does not report bots
        self._knows_nobody: set[int] = set()  # accounts whose server cannot return members

    async def run(self) -> None:
        """Query whenever there is a reason, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._ask_of_people())
            while True:
                unknown = await self._mutes.next_unknown()
                if (before := self._asking.get(unknown)) is not None:
                    before.cancel()
                self._asking[unknown] = group.create_task(self._settle(unknown))

    async def _settle(self, unknown: int | Conversation) -> None:
        """Query mutes until answered, or until this connection cannot answer."""
        for _ in range(TRIES):
            try:
                if isinstance(unknown, int):
                    await self._look_around(unknown)
                else:
                    await self._look_at(unknown)
            except ActionUnanswered as error:
                logger.info("nobody says yet where the bot may speak: %s: %s", unknown, error)
                await self._clock.sleep(AGAIN)
            except TransportError as error:
                logger.info("nobody says where the bot may speak: %s: %s", unknown, error)
                return
            else:
                return

    async def _look_around(self, account: int) -> None:
        self._cannot_tell.discard(account)
        self._knows_nobody.discard(account)
        since = self._mutes.news
        groups = [
            replace(group, is_silenced=None, muted_until=None)  # an event has reported it since
            if self._mutes.is_overtaken(group.conversation, since=since)
            else self._told_by_its_end(group)
            for group in await self._transport.get_groups(account)
        ]
        for group in groups:
            if group.muted_until:  # others are queried, or not muted
                self._learn_member(group.conversation, Member(muted_until=group.muted_until))
            self._active_conversations.name_group(group.conversation, group.name)
            if group.is_silenced is False and self._mutes.may_hold_in(group.conversation):
                self._take_mute(self._of_all(group))
        for group in self._in_order(account, groups):
            if group.is_silenced:
                self._take_mute(self._of_all(group))  # which queries the account's role
            else:
                self._mutes.doubt(group.conversation)

    async def _look_at(self, where: Conversation) -> None:
        """Query whether the bot may speak there: admins may in a muted group."""
        account = where.platform_id
        async with self._abreast[account]:
            if account in self._knows_nobody:
                return
            since = self._mutes.news
            try:
                member = await self._transport.get_member(where, account)
            except ActionUnsupported:
                self._knows_nobody.add(account)
                raise
        if self._mutes.is_overtaken(where, since=since):
            self._mutes.doubt(where)
        else:
            self._learn_member(where, member)

    def _in_order(self, account: int, groups: Iterable[JoinedGroup]) -> list[JoinedGroup]:
        """The groups worth a query: first those with work that may wait for a mute to end, then
        silenced ones, then those in use.
        """
        used, held = self._active_conversations.in_use(account), self._mutes.may_hold_in

        def rank(group: JoinedGroup) -> tuple[bool, bool, float]:
            where = group.conversation
            return not held(where), not group.is_silenced, -used.get(where, 0.0)

        return sorted(groups, key=rank)[:MAX_GROUPS]

    def _told_by_its_end(self, group: JoinedGroup) -> JoinedGroup:
        """The group with `is_silenced` derived from an end time, if only that is known."""
        if group.is_silenced is not None or group.silenced_until is None:
            return group
        return replace(group, is_silenced=group.silenced_until > self._clock.now())

    def _of_all(self, group: JoinedGroup) -> Muted:
        """The event that would have reported whether the whole group is muted."""
        where = group.conversation
        return Muted(
            self_id=where.platform_id,
            time=self._clock.now(),
            conversation=where,
            user_id=0,
            operator_id=0,
            seconds=-1 if group.is_silenced else 0,
        )

    async def _ask_of_people(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._ask_of(*await self._bot_detection.next()))

    async def _ask_of(self, where: Conversation, user_id: int) -> None:
        """Queries of one account about people run one at a time, beside those about mutes."""
        async with self._of_people[where.platform_id]:
            is_robot = await self._is_robot(where, user_id)
        self._bot_detection.settle(where, user_id, is_robot=is_robot)

    async def _is_robot(self, where: Conversation, user_id: int) -> bool:
        if where.platform_id in self._cannot_tell:
            return False
        try:
            member = await self._transport.get_member(where, user_id)
        except ActionUnsupported:
            self._cannot_tell.add(where.platform_id)
        except TransportError as error:
            logger.debug("nobody says who %d in %s is: %s", user_id, where, error)
        else:
            if member.is_robot is None:
                self._cannot_tell.add(where.platform_id)
            return bool(member.is_robot)
        return False
