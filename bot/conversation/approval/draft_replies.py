"""Owners' replies to drafts, in private: `发 D7`, `改 D7 words`; any other one leaves the draft."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TypeAlias

from bot.conversation.approval.owner_replies import Meant
from bot.conversation.approval.publishing import Publishing
from bot.conversation.intake.server_clock import ServerClock
from bot.core.events import MessageReceived
from bot.memory.drafts import Drafts
from bot.outbox.delivery import Postbox
from bot.policy.approval import message_words, quote_in, words_in
from bot.policy.drafts import AGAIN, DraftWord, number_in, publish_word, read_word
from bot.prompt.render import account

logger = logging.getLogger(__name__)

MAX_WORK = 20  # answers that are to be worked off

_Work: TypeAlias = Callable[[], Coroutine[None, None, None]]
_Reply: TypeAlias = Callable[[str], object]


class DraftReplies:
    """Takes replies to drafts; `run` is its task."""

    def __init__(
        self,
        *,
        drafts: Drafts,
        publishing: Publishing,
        postbox: Postbox,
        server_clock: ServerClock,
    ) -> None:
        self._drafts = drafts
        self._publishing = publishing
        self._postbox = postbox
        self._server_clock = server_clock
        self._work: asyncio.Queue[_Work] = asyncio.Queue(MAX_WORK)

    def take_reply(self, message: MessageReceived, quoted: MessageReceived | None) -> bool:
        """Fits `ReplyHandler`: a word in private, which names a draft or quotes one."""
        text = None if message.conversation.is_group else words_in(message)
        if text is None or (said := read_word(text)) is None:
            return False
        number = said.number
        if number is None and quoted is not None:
            number = number_in(message_words(quoted))
        return number is not None and self._is_settled(message, said, number)

    def meant_by(self, message: MessageReceived) -> list[Meant]:
        """Fits `ReplyHandler`: all that wait of this account, for a word that quotes something;
        alone it is talk.
        """
        text = None if message.conversation.is_group else words_in(message)
        if text is None or not quote_in(message):
            return []
        if (said := read_word(text)) is None or said.number is not None:
            return []
        return [
            Meant(
                name=f"D{number}",
                example=publish_word(text, number),
                take=partial(self._is_settled, message, said, number),
            )
            for number, (where, one) in self._drafts.open.items()
            if where.platform_id == message.self_id
            and not (one.published or self._drafts.is_over(one))
        ]

    def _is_settled(self, message: MessageReceived, said: DraftWord, number: int) -> bool:
        """One that was missed, and found in a history, decides nothing: it is asked for again."""
        found = self._drafts.open.get(number)
        if self._server_clock.is_missed(message):
            if found is not None:
                words = AGAIN[self._publishing.tongue].format(number=number)
                self._postbox.post(message.conversation, words, quote=message.message_id)
            return True
        if found is not None and self._server_clock.is_older(message, found[1].at):
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
