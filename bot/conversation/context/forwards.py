"""Opens merged forwards, those inside them included, as far as a prompt has room for.

Level by level, so that what lies deep never costs what lies on top. Some servers cannot fetch an
inner one by its id and give it inline instead (onebot.md 5): that is read first, and is no fetch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from bot.core.errors import TransportError
from bot.core.events import MessageReceived
from bot.core.ports import Transport
from bot.core.segments import Forward
from bot.policy.message_trimming import trim_message
from bot.prompt.compose import MAX_ASIDE, Forwarded, ForwardedMessage
from bot.prompt.render import View, plain
from frostagent.models.tokens import estimate_text

logger = logging.getLogger(__name__)

MAX_DEPTH = 3
MAX_MESSAGES = 60
MAX_TOKENS = 3000.0  # estimated
MAX_FETCHES = 8
PATIENCE = 6.0  # seconds for one forward with all inside it


@dataclass(slots=True)
class _Node:
    """A message, and what it forwards."""

    message: MessageReceived
    depth: int
    inside: list[_Node] = field(default_factory=list)

    def in_order(self) -> Iterator[ForwardedMessage]:
        yield ForwardedMessage(trim_message(self.message), self.depth)
        for node in self.inside:
            yield from node.in_order()


@dataclass(slots=True)
class _Room:
    """The room left for one forward."""

    messages: int = MAX_MESSAGES
    tokens: float = MAX_TOKENS
    fetches: int = MAX_FETCHES
    left_out: int = 0

    def take(self, found: tuple[MessageReceived, ...], depth: int) -> list[_Node]:
        """As many of the messages as there is room for, from the first on."""
        nodes: list[_Node] = []
        for message in found:
            words = plain(message.segments, View(), self_id=message.self_id)[:MAX_ASIDE]
            tokens = estimate_text(f"{message.sender.name[:MAX_ASIDE]}: {words}")
            if not self.messages or tokens > self.tokens:
                break
            self.messages -= 1
            self.tokens -= tokens
            nodes.append(_Node(message, depth))
        self.left_out += len(found) - len(nodes)
        return nodes


class Forwards:
    """Opens forwards at the OneBot server; `patience` is in seconds."""

    def __init__(self, transport: Transport, *, patience: float = PATIENCE) -> None:
        self._transport = transport
        self._patience = patience

    async def open(self, account: int, forward: Forward) -> Forwarded:
        """The messages in it, as they follow each other, each before those inside it. Empty where
        it cannot be had.
        """
        room = _Room()
        nodes: list[_Node] = []
        try:
            async with asyncio.timeout(self._patience):
                nodes += room.take(await self._fetch(account, forward, room), 1)
                level = nodes
                for depth in range(2, MAX_DEPTH + 1):
                    level = [
                        inner
                        for node in level
                        for inner in await self._open_all(account, node, room, depth)
                    ]
        except TimeoutError:
            logger.info("not all of forward %s came in %g s", forward.id, self._patience)
        lines = tuple(passed for node in nodes for passed in node.in_order())
        return Forwarded(lines, room.left_out)

    async def _open_all(self, account: int, node: _Node, room: _Room, depth: int) -> list[_Node]:
        """Put the forwards of messages inside them."""
        for segment in node.message.segments:
            if isinstance(segment, Forward) and room.messages:
                found = await self._fetch(account, segment, room)
                node.inside += room.take(found, depth)
        return node.inside

    async def _fetch(
        self, account: int, forward: Forward, room: _Room
    ) -> tuple[MessageReceived, ...]:
        if not forward.content:
            if not room.fetches:
                return ()
            room.fetches -= 1
        try:
            return await self._transport.get_forward(account, forward)
        except TransportError as error:
            logger.info("forward %s cannot be opened: %s", forward.id, error)
            return ()
