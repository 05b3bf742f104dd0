"""Incidents of the account and of its messages: recalls, pokes, requests, mutes, lost logins,
lost sockets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from adapters.simulator import actions, wire
from adapters.simulator.faults import Armed, Fault
from adapters.simulator.sockets import SimulatedSockets
from adapters.simulator.wire import NOT_DONE, CallRefused, Json
from adapters.simulator.world import Person, World

MUTED_FOR = 600.0  # seconds


class Incidents:
    """Each changes the world, and `push` sends the bot the event of it."""

    def __init__(
        self, world: World, sockets: SimulatedSockets, push: Callable[[Json], Awaitable[bool]]
    ) -> None:
        self._world = world
        self._sockets = sockets
        self._push = push

    async def recall(self, message_id: int, *, operator_id: int | None = None) -> None:
        """The author, or whoever is named, takes a message back. Raises Refusal for an unknown
        one.
        """
        await self._push(self._world.recall(message_id, operator_id=operator_id))

    async def strike(self, armed: Armed, said: int) -> None:
        """Recall what people said, reconnect or drop: now, or for a recall after so many seconds.

        Raises Refusal where there is nothing to recall.
        """
        match armed.fault:
            case Fault.RECALL if armed.value:
                self._sockets.start(self._recall_after(armed.value, said))
            case Fault.RECALL:
                await self.recall(said)
            case Fault.RECONNECT:
                await self._sockets.reconnect(armed.value)
            case Fault.DROP:
                await self._sockets.drop(armed.value)
            case fault:
                raise CallRefused(NOT_DONE, f"{fault} cannot happen by itself")

    async def _recall_after(self, seconds: float, message_id: int) -> None:
        await asyncio.sleep(seconds)
        with suppress(CallRefused):  # it is gone already
            await self.recall(message_id)

    async def mute(self, seconds: float = MUTED_FOR, *, group_id: int | None = None) -> None:
        """Somebody mutes the account in a group, the first one unless named; its sends there are
        refused.

        Raises Refusal for an unknown group.
        """
        await self._push(self._world.mutes.mute(self._place(group_id), seconds))

    async def lift(self, *, group_id: int | None = None) -> None:
        """Somebody lets the account speak again. Raises Refusal for an unknown group."""
        await self._push(self._world.mutes.lift(self._place(group_id)))

    async def mute_all(self, *, group_id: int | None = None) -> None:
        """Somebody mutes the whole group. Raises Refusal for an unknown group."""
        await self._push(self._world.mutes.mute_all(self._place(group_id)))

    async def lift_all(self, *, group_id: int | None = None) -> None:
        """Everybody may speak again. Raises Refusal for an unknown group."""
        await self._push(self._world.mutes.lift_all(self._place(group_id)))

    def _place(self, group_id: int | None) -> int:
        return self._world.group(group_id).group_id

    async def go_offline(self, reason: str = "你的账号在其他设备登录，你已被迫下线。") -> None:
        """The account is kicked: sockets stay, sends are refused, events are lost, heartbeats say
        so.
        """
        world = self._world
        notice = wire.notice(
            world.self_id,
            world.now(),
            "bot_offline",
            user_id=world.self_id,
            tag="KickedOffLine",
            message=reason,
        )
        await self._push(notice)
        world.online = False
        await self._beat()

    async def go_online(self) -> None:
        """The account is logged in again; NapCat says so in its heartbeats only."""
        self._world.online = True
        await self._beat()

    async def _beat(self) -> None:
        for peer in list(self._sockets.peers):
            await peer.beat()

    async def poke(
        self, *, user_id: int, target_id: int | None = None, group_id: int | None = None
    ) -> None:
        """Somebody pokes somebody, the account unless another is named, in a group or in
        private.
        """
        world = self._world
        target = world.self_id if target_id is None else target_id
        await self._push(
            wire.poke(
                world.self_id, world.now(), user_id=user_id, target_id=target, group_id=group_id
            )
        )

    async def react(self, message_id: int, emoji_id: str, *, user_id: int) -> None:
        """Somebody reacts to a message in a group. Raises Refusal for an unknown message."""
        world, stored = self._world, self._world.messages.find(message_id)
        notice = wire.notice(
            world.self_id,
            world.now(),
            "group_msg_emoji_like",
            group_id=stored.group_id,
            user_id=user_id,
            message_id=message_id,
            likes=[{"emoji_id": emoji_id, "count": 1}],
            is_add=True,
        )
        await self._push(notice)

    async def befriend(self, person: Person, comment: str = "") -> None:
        """Somebody asks to be the account's friend."""
        await self._push(actions.befriend(self._world, person, comment))

    async def invite(self, person: Person, group_id: int) -> None:
        """Somebody invites the account into a group."""
        await self._push(actions.invite(self._world, person, group_id))

    async def apply(
        self, person: Person, comment: str = "", *, group_id: int | None = None
    ) -> None:
        """Somebody asks to join a group. Raises Refusal for an unknown group."""
        place = self._place(group_id)
        await self._push(actions.apply(self._world, person, place, comment))

    async def enter(self, person: Person, *, group_id: int | None = None, ago: float = 0.0) -> None:
        """Somebody joined a group that many seconds ago. Raises Refusal for an unknown group."""
        place = self._place(group_id)
        self._world.group(place).members[person.user_id] = person
        await self._push(
            self._member_notice("group_increase", "approve", place, person.user_id, ago)
        )

    async def leave(
        self, user_id: int, *, kicked: bool = False, group_id: int | None = None
    ) -> None:
        """Somebody leaves a group, or is removed. Raises Refusal for an unknown group."""
        place = self._place(group_id)
        self._world.group(place).members.pop(user_id, None)
        how = "kick" if kicked else "leave"
        await self._push(self._member_notice("group_decrease", how, place, user_id))

    def _member_notice(
        self, kind: str, how: str, group_id: int, user_id: int, ago: float = 0.0
    ) -> Json:
        world = self._world
        return wire.notice(
            world.self_id,
            world.now() - ago,
            kind,
            sub_type=how,
            group_id=group_id,
            operator_id=0,
            user_id=user_id,
        )

    async def type(self, *, user_id: int) -> None:
        """A friend is typing to the account."""
        world = self._world
        notice = wire.notice(
            world.self_id,
            world.now(),
            "notify",
            sub_type="input_status",
            user_id=user_id,
            group_id=0,
            status_text="对方正在输入...",
            event_type=1,
        )
        await self._push(notice)
