"""Questions to the server beside all messages: where its account may not speak, once it connects or
a whole group is muted, and whether somebody new is a robot. Nobody waits for the answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from bot.conversation.intake.mutes import Mutes
from bot.conversation.intake.places import Places
from bot.conversation.intake.robots import Robots
from bot.domain.errors import ActionUnsupported, NotConnected, TransportError
from bot.domain.events import Conversation, Muted
from bot.domain.ports import Clock, JoinedGroup, Transport

logger = logging.getLogger(__name__)

MAX_GROUPS = 50  # of one account, those in use first


class Inquiries:
    """Asks, one thing after the other; tells `robots`, and of mutes `tell`, as events would."""

    def __init__(
        self,
        *,
        transport: Transport,
        tell: Callable[[Muted], None],
        mutes: Mutes,
        robots: Robots,
        places: Places,
        clock: Clock,
    ) -> None:
        self._transport = transport
        self._tell = tell
        self._mutes = mutes
        self._robots = robots
        self._places = places
        self._clock = clock
        self._cannot_tell: set[int] = set()  # accounts whose server does not know of robots

    async def run(self) -> None:
        """Ask whenever there is something to ask, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._ask_of_mutes())
            group.create_task(self._ask_of_people())

    async def _ask_of_mutes(self) -> None:
        while True:
            unknown = await self._mutes.next_unknown()
            try:
                if isinstance(unknown, int):
                    self._cannot_tell.discard(unknown)
                    await self._look_around(unknown)
                else:
                    await self._look_at(unknown)
            except TransportError as error:
                logger.info("nobody says where the bot may speak: %s: %s", unknown, error)

    async def _look_around(self, account: int) -> None:
        groups = await self._transport.get_groups(account)
        for group in self._in_order(account, groups):
            if group.is_silenced:
                self._mutes.take(self._muted(group.conversation, -1, user_id=0))
            try:
                await self._look_at(group.conversation)
            except (NotConnected, ActionUnsupported):
                raise
            except TransportError as error:
                logger.debug("nobody says who we are in %s: %s", group.conversation, error)

    async def _look_at(self, where: Conversation) -> None:
        """Whether the bot may speak there: admins may where the whole group is muted."""
        member = await self._transport.get_member(where, where.platform_id)
        left = member.muted_until - self._clock.now()
        if left > 0:
            self._tell(self._muted(where, left))
        elif not self._mutes.holds_in(where) or member.role in ("owner", "admin"):
            self._tell(self._muted(where, 0))
        elif member.role == "member":
            self._tell(self._muted(where, -1))

    def _in_order(self, account: int, groups: Iterable[JoinedGroup]) -> list[JoinedGroup]:
        """Those where nobody may speak and those in use first; no more than are worth asking."""
        used = self._places.in_use(account)
        return sorted(
            groups, key=lambda group: (not group.is_silenced, -used.get(group.conversation, 0.0))
        )[:MAX_GROUPS]

    def _muted(self, where: Conversation, seconds: float, *, user_id: int | None = None) -> Muted:
        """The event that would have told so of the account, or of this one."""
        return Muted(
            self_id=where.platform_id,
            time=self._clock.now(),
            conversation=where,
            user_id=where.platform_id if user_id is None else user_id,
            operator_id=0,
            seconds=int(seconds) + (seconds > 0),
        )

    async def _ask_of_people(self) -> None:
        while True:
            where, user_id = await self._robots.next()
            account = where.platform_id
            if account in self._cannot_tell:
                continue
            try:
                member = await self._transport.get_member(where, user_id)
            except ActionUnsupported:
                self._cannot_tell.add(account)
            except TransportError as error:
                logger.debug("nobody says who %d in %s is: %s", user_id, where, error)
            else:
                if member.is_robot is None:
                    self._cannot_tell.add(account)
                elif member.is_robot:
                    logger.info("%d in %s is a robot: not answered any more", user_id, where)
                    self._robots.known[user_id] = None
