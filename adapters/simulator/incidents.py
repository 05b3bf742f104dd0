"""Incidents of account and messages: recalls, pokes, requests, mutes, lost logins and sockets."""

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
    """Each incident changes the world, and `push` sends its event to the bot."""

    def __init__(
        self, world: World, sockets: SimulatedSockets, push: Callable[[Json], Awaitable[bool]]
    ) -> None:
        self._world = world
        self._sockets = sockets
        self._push = push

    async def recall(self, message_id: int, *, operator_id: int | None = None) -> None:
        """Recall a message, by default as its author. Raises CallRefused for an unknown one."""
        await self._push(self._world.recall(message_id, operator_id=operator_id))

    async def strike(self, armed: Armed, said: int) -> None:
        """Recall the message `said`, reconnect or drop. The value is in seconds: the delay of
        a recall, or the time away.

        Raises CallRefused if there is nothing to recall.
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
        with suppress(CallRefused):  # it may be gone
            await self.recall(message_id)

    async def mute(self, seconds: float = MUTED_FOR, *, group_id: int | None = None) -> None:
        """Mute the account in a group, by default the first; its sends there are refused.

        Raises CallRefused for an unknown group.
        """
        await self._push(self._world.mutes.mute(self._place(group_id), seconds))

    async def lift(self, *, group_id: int | None = None) -> None:
        """Unmute the account. Raises CallRefused for an unknown group."""
        await self._push(self._world.mutes.lift(self._place(group_id)))

    async def mute_all(self, *, group_id: int | None = None) -> None:
        """Mute the whole group. Raises CallRefused for an unknown group."""
        await self._push(self._world.mutes.mute_all(self._place(group_id)))

    async def lift_all(self, *, group_id: int | None = None) -> None:
        """Unmute the whole group. Raises CallRefused for an unknown group."""
        await self._push(self._world.mutes.lift_all(self._place(group_id)))

    def _place(self, group_id: int | None) -> int:
        return self._world.group(group_id).group_id

    async def go_offline(self, reason: str = "你的账号在其他设备登录，你已被迫下线。") -> None:
        """Kick the account: sockets stay, sends fail, events are lost, heartbeats report it."""
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
        """Log the account in again; NapCat reports it in heartbeats only."""
        self._world.online = True
        await self._beat()

    async def _beat(self) -> None:
        for peer in list(self._sockets.peers):
            await peer.beat()

    async def poke(
        self, *, user_id: int, target_id: int | None = None, group_id: int | None = None
    ) -> None:
        """Poke someone, the account by default, in a group or in private."""
        world = self._world
        target = world.self_id if target_id is None else target_id
        await self._push(
            wire.poke(
                world.self_id, world.now(), user_id=user_id, target_id=target, group_id=group_id
            )
        )

    async def react(self, message_id: int, emoji_id: str, *, user_id: int) -> None:
        """React to a group message. Raises CallRefused for an unknown message."""
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
        await self._push(actions.befriend(self._world, person, comment))

    async def invite(self, person: Person, group_id: int) -> None:
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
        self,
        user_id: int,
        *,
        kicked: bool = False,
        group_id: int | None = None,
        ago: float = 0.0,
    ) -> None:
        """Somebody leaves a group, or is removed; `ago` seconds late, they are back by now. Raises
        Refusal for an unknown group.
        """
        place = self._place(group_id)
        if not ago:
            self._world.group(place).members.pop(user_id, None)
        how = "kick" if kicked else "leave"
        await self._push(self._member_notice("group_decrease", how, place, user_id, ago))

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
        """Show the account that a friend is typing."""
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
