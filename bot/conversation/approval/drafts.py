"""The owners' words on drafts, in private: `发 D7`, `改 D7 words`; anything else leaves one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TypeAlias

from bot.conversation.approval.deciders import Deciders
from bot.conversation.approval.publishing import Publishing
from bot.conversation.intake.ages import Ages
from bot.domain.events import MessageReceived
from bot.memory.drafts import Drafts
from bot.memory.history import History
from bot.policy.approval import quote_in, words_in, words_of
from bot.policy.drafts import DraftWord, number_in, read_word
from bot.prompt.render import account
from bot.speaking.postbox import Postbox

logger = logging.getLogger(__name__)

MAX_WORK = 20  # answers that are to be worked off

_Work: TypeAlias = Callable[[], Coroutine[None, None, None]]
_Reply: TypeAlias = Callable[[str], object]


class DraftDesk:
    """Takes the owners' words on drafts; `run` is its task."""

    def __init__(
        self,
        *,
        drafts: Drafts,
        publishing: Publishing,
        deciders: Deciders,
        postbox: Postbox,
        history: History,
        ages: Ages,
    ) -> None:
        self._drafts = drafts
        self._publishing = publishing
        self._deciders = deciders
        self._postbox = postbox
        self._history = history
        self._ages = ages
        self._work: asyncio.Queue[_Work] = asyncio.Queue(MAX_WORK)

    def take(self, message: MessageReceived) -> bool:
        """Whether it is an owner's word in private, which names one or quotes what is in memory;
        then it is done with. One that was missed, and found in a history, decides nothing.
        """
        if (said := self._read(message)) is None:
            return False
        quoted = self._history.known(message.conversation, quote_in(message))
        return self._take(said, message, quoted)

    async def take_later(self, message: MessageReceived) -> bool:
        """The same, where there is time to look up what it quotes."""
        if (said := self._read(message)) is None:
            return False
        quote = quote_in(message)
        quoted = await self._history.find(message.conversation, quote) if quote else None
        return self._take(said, message, quoted)

    def _read(self, message: MessageReceived) -> DraftWord | None:
        who = message.sender.user_id
        if who not in self._deciders.owners or message.is_own or message.conversation.is_group:
            return None
        text = words_in(message)
        return None if text is None or self._ages.is_missed(message) else read_word(text)

    def _take(
        self, said: DraftWord, message: MessageReceived, quoted: MessageReceived | None
    ) -> bool:
        shown = number_in(words_of(quoted)) if quoted and quoted.is_own else 0
        if not (number := said.number or shown):
            return False
        found = self._drafts.open.get(number)
        if found is not None and self._ages.is_older(message, found[1].at):
            return False  # it means another one of that number
        reply = partial(self._postbox.post, message.conversation, quote=message.message_id)
        said = DraftWord(number, said.changes, said.words)
        return self._put(partial(self._answer, said, account(message.sender), reply))

    async def _answer(self, said: DraftWord, by: str, reply: _Reply) -> None:
        reply((await self._publishing.settle(said, by=by)).words)

    async def run(self) -> None:
        """Work off what comes."""
        while True:
            work = await self._work.get()
            await work()

    def _put(self, work: _Work) -> bool:
        try:
            self._work.put_nowait(work)
        except asyncio.QueueFull:
            logger.warning("too many words on drafts at once: one is left alone")
            return False
        return True
