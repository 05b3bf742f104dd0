"""Recognises commands before the lanes, and answers them without a turn.

In a group a command has to mention or quote the bot; in private it need not. An unknown command, or
one that its sender may not use, is an ordinary message.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from bot.core.actions import send_prefix_of_person
from bot.core.command import Asked, Command
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.language import CATALOGUE, Phrase
from bot.core.segments import Mention
from bot.memory.history import History
from bot.outbox.delivery import Postbox
from bot.prompt.render import MAX_NAME, label
from frostagent.cancellation import BROKEN, isolate
from frostagent.types.ports import Clock
from frostagent.types.runs import Asker
from frostagent.types.speech import Quote, Text
from frostagent.types.traits import Audience


def may_use(asker: Asker, audience: Audience, *, where: Conversation) -> bool:
    """Whether a sender belongs to this audience there; in private each counts as an admin."""
    match audience:
        case Audience.EVERYONE:
            return True
        case Audience.GROUP_ADMIN:
            return asker.is_owner or not where.is_group or asker.role in {"owner", "admin"}
        case Audience.OWNER:
            return asker.is_owner


LONGEST = 1000  # characters of a message that may be a command
AT_ONCE = 8
TYPED = re.compile(r"\s*[/／](?P<name>[^\s/／]+)(?P<rest>(?:\s[^\0]*)?)")
CJK = re.compile(r"[\u3400-\u9fff]")
SORRY = Phrase("这个命令现在答不上来，稍后再试。", "I cannot answer that now, try again later.")
CATALOGUE.register(__name__, globals())

logger = logging.getLogger(__name__)


class Commands:
    """Answers commands. `hears` says whether a command is enabled for its message, `commanders` who
    may use commands in a conversation, `lets` limits how often a sender may use those for everyone.
    `taken` counts commands since the start, by their first name.
    """

    def __init__(
        self,
        commands: Iterable[Command],
        *,
        postbox: Postbox,
        history: History,
        owners: frozenset[int],
        hears: Callable[[MessageReceived, Command], bool],
        commanders: Callable[[Conversation], Audience],
        lets: Callable[[MessageReceived], bool],
        clock: Clock,
    ) -> None:
        self._by_name: Mapping[str, Command] = {
            name.casefold(): one for one in commands for name in one.names
        }
        self._postbox = postbox
        self._history = history
        self._owners = owners
        self._hears = hears
        self._commanders = commanders
        self._lets = lets
        self._clock = clock
        self._group: asyncio.TaskGroup | None = None
        self._answering: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(AT_ONCE)
        self.taken = Counter({one.names[0]: 0 for one in self._by_name.values()})

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Answer while the block runs."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None

    def start_command(self, message: MessageReceived) -> bool:
        """Start answering if the message is a command that its sender may use. Returns whether it
        is; a sender over the rate limit gets no answer. Never waits.
        """
        found = self._read(message)
        if found is None or self._group is None:
            return False
        self.taken[found[0].names[0]] += 1
        if found[0].audience is not Audience.EVERYONE or self._lets(message):
            task = self._group.create_task(self._answer(message, *found))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        return True

    async def wait_idle(self) -> None:
        """Wait until no command is being answered."""
        while self._answering:
            await asyncio.wait(self._answering)

    def _read(self, message: MessageReceived) -> tuple[Command, Asked] | None:
        if not _may_be_typed(message):
            return None  # as nearly always
        text, quoted, is_to_us = _parts(message)
        typed = TYPED.fullmatch(text) if len(text) <= LONGEST else None
        command = self._by_name.get(typed["name"].casefold()) if typed else None
        if typed is None or command is None or message.is_own:
            return None
        if not self._hears(message, command):
            return None
        where, sender = message.conversation, message.sender
        known = self._history.known(where, quoted) if quoted else None
        if where.is_group and not is_to_us and not (known is not None and known.is_own):
            return None
        is_owner = sender.user_id in self._owners
        name = label(sender.name, MAX_NAME)
        asker = Asker(str(sender.user_id), name, sender.role, is_owner=is_owner)
        if not may_use(asker, command.audience, where=where):
            return None
        if not may_use(asker, self._commanders(where), where=where):
            return None
        return command, Asked(
            where=where,
            asker=asker,
            words=tuple(typed["rest"].split()),
            quoted=quoted,
            now=self._clock.now(),
            chinese=CJK.search(text) is not None or self._is_chinese(message),
            said=message.time,
        )

    def _is_chinese(self, message: MessageReceived) -> bool:
        """If the command is in Latin letters, its sender's name and the group's decide."""
        return CJK.search(f"{message.sender.name}{message.group_name}") is not None

    async def _answer(self, message: MessageReceived, command: Command, asked: Asked) -> None:
        try:
            async with self._places, asyncio.timeout(command.within):
                words = await command.answer(asked)
        except BROKEN as failure:
            isolate(failure)
            logger.exception("the command /%s has failed", command.names[0])
            words = SORRY.format(asked.language)
        if words:
            quote = message.message_id if message.has_identity and asked.where.is_group else ""
            about = send_prefix_of_person(asked.user_id)
            self._postbox.remark(asked.where, words, quote=quote, about=about)


def _may_be_typed(message: MessageReceived) -> bool:
    """Whether the message has a slash at all."""
    for segment in message.segments:
        if isinstance(segment, Text) and ("/" in segment.text or "／" in segment.text):
            return True
    return False


def _parts(message: MessageReceived) -> tuple[str, str, bool]:
    """The words of a message, the id it quotes, and whether it mentions the bot."""
    text, quoted, is_to_us = "", "", False
    for segment in message.segments:
        match segment:
            case Text(text=words):
                text += words
            case Quote(message_id=message_id):
                quoted = quoted or message_id
            case Mention(user_id=user_id) if user_id == message.self_id:
                is_to_us = True
            case Mention(user_id=user_id):
                text += f" @{user_id} "
            case _:
                text += "\0"  # a message with other content is not a command
    return text, quoted, is_to_us
