"""Friend requests and invites to groups: the owners are asked, and their decision is passed on to
QQ.

A decision is written down before it is sent, so that none is sent twice; if the process ends in
between, the owners are told that the outcome is unknown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from typing import TypeAlias

from bot.conversation.approval.join_request_store import DAYS, JoinRequestStore
from bot.conversation.approval.owner_replies import Meant
from bot.conversation.intake.server_clock import ServerClock
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.events import MessageReceived, Requested
from bot.core.group_admin import Accept, JoinRequest
from bot.core.ports import Transport
from bot.core.settlement import Settled
from bot.outbox.delivery import Postbox
from bot.policy import join_requests as words
from bot.policy.approval import ALLOWED, DENIED, WORD_OF, Answer, message_words, quote_in
from bot.policy.fallback_replies import is_quoted
from frostagent.engine.authority import in_one_line
from frostagent.text.language import Language
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock

logger = logging.getLogger(__name__)

MAX_WORK = 20  # requests and answers that are to be worked off
LOOK = 2.0  # seconds between two looks at what could not be read

_Work: TypeAlias = Callable[[], Coroutine[None, None, None]]
_Reply: TypeAlias = Callable[[Settled], object]


class JoinRequests:
    """Takes requests, asks the owners, and takes their replies; `run` is its task. `accept` says
    what to do about a person's request without asking.
    """

    def __init__(
        self,
        *,
        accept: Callable[[int], Accept],
        owners: frozenset[int],
        transport: Transport,
        request_store: JoinRequestStore,
        postbox: Postbox,
        server_clock: ServerClock,
        clock: Clock,
        tongue: Language = Language.CHINESE,
    ) -> None:
        self._tongue = tongue
        self._accept = accept
        self._owners = owners
        self._transport = transport
        self._request_store = request_store
        self._postbox = postbox
        self._server_clock = server_clock
        self._clock = clock
        self._work: asyncio.Queue[_Work] = asyncio.Queue(MAX_WORK)

    # --- what comes ---------------------------------------------------------------------------

    def hear(self, event: Requested) -> None:
        """Somebody asks; never waits. Those who want to join a group ask its admins, not us."""
        if event.kind == "group" and event.sub_type != "invite":
            logger.info("somebody wants to join group %d: left to its admins", event.group_id)
            return
        petition = JoinRequest(
            account=event.self_id,
            kind="friend" if event.kind == "friend" else "invite",
            user_id=event.user_id,
            group_id=event.group_id,
            comment=event.comment,
            flag=event.flag,
            since=self._clock.now(),
        )
        if self._accept(event.user_id) == "none":
            logger.info("%s of %d is left alone", petition.kind, event.user_id)
        else:
            self._put(partial(self._take, petition))

    async def _take(self, petition: JoinRequest) -> None:
        who, kind = petition.user_id, petition.kind
        if self._request_store.is_known(petition):
            return
        if self._accept(who) == "friends" and kind == "friend":
            settled = await self._answer(petition, Answer(allows=True))
            logger.info("%d: %s", who, settled.words)
        elif not self._owners:
            logger.warning("%s of %d is left alone: BOT_OWNERS is empty", kind, who)
        elif not self._request_store.has_room(petition):
            logger.warning("%s of %d is left alone: too many wait", kind, who)
        else:
            petition = await self._request_store.add(petition)
            self._tell(
                petition.account, words.request_text(petition, days=DAYS, tongue=self._tongue)
            )

    # --- the owners' word ---------------------------------------------------------------------

    def take_reply(self, message: MessageReceived, quoted: MessageReceived | None) -> bool:
        """Fits `ReplyHandler`: an answer in private, which names a request or quotes one."""
        answer = None if message.conversation.is_group else words.answer_in(message)
        if answer is None:
            return False
        number = answer.number
        if number is None and quoted is not None:
            number = words.number_of(self._request_store.open, message_words(quoted))
        return number is not None and self._is_settled(message, answer, number)

    def meant_by(self, message: MessageReceived) -> list[Meant]:
        """Fits `ReplyHandler`: in private all that the owners were asked by this account, for a
        word that quotes something; alone it may answer the model, and would let a stranger in.
        """
        here = message.conversation
        answer = None if here.is_group else words.answer_in(message)
        if answer is None or answer.number is not None or not quote_in(message):
            return []
        word = WORD_OF[answer.allows][self._tongue]
        return [
            Meant(
                name=f"R{petition.number}",
                example=f"{word} R{petition.number}",
                take=partial(self._is_settled, message, answer, petition.number),
            )
            for petition in self._request_store.open.values()
            if petition.account == here.platform_id
        ]

    def _is_settled(self, message: MessageReceived, answer: Answer, number: int) -> bool:
        quote = message.message_id if is_quoted(message) else ""
        by = str(message.sender.user_id)

        def reply(settled: Settled) -> None:
            self._postbox.post(message.conversation, settled.words, quote=quote)

        self._put(partial(self._settle, number, answer, reply, by=by, message=message))
        return True

    async def settle(self, number: int, answer: Answer, *, by: str) -> Settled:
        """Take a word that was not said in a chat, in its turn; `by` is who brings it."""
        settled: asyncio.Future[Settled] = asyncio.get_running_loop().create_future()

        def reply(one: Settled) -> None:
            if not settled.done():  # whoever asked may have left
                settled.set_result(one)

        if not self._put(partial(self._settle, number, answer, reply, by=by)):
            return Settled("busy", words.BUSY[self._tongue].format(number=number))
        return await settled

    async def _settle(
        self,
        number: int,
        answer: Answer,
        reply: _Reply,
        *,
        by: str,
        message: MessageReceived | None = None,
    ) -> None:
        """The first word decides; one that was said before somebody asked decides nothing."""
        petition = self._request_store.open.get(number)
        if petition is None:
            reply(Settled("unknown", words.UNKNOWN[self._tongue].format(number=number)))
        elif message is not None and self._server_clock.is_older(message, petition.since):
            reply(Settled("again", words.AGAIN[self._tongue].format(number=number)))
        elif self._request_store.is_over(petition):
            await self._request_store.end(petition)
            reply(Settled("late", words.EXPIRED[self._tongue].format(number=number)))
        else:
            logger.info("R%d: %s by %s", number, answer.allows, by)
            reply(await self._answer(petition, answer))

    async def _answer(self, petition: JoinRequest, answer: Answer) -> Settled:
        """Pass the answer on; what came of it. What did not go out still waits."""
        number = petition.number
        if not await self._request_store.answer(petition):
            return Settled("busy", words.BUSY[self._tongue].format(number=number))
        try:
            is_certain = await self._transport.admit(
                petition, granted=answer.allows, reason=answer.reason
            )
            if is_certain:
                done, word = words.DONE, ALLOWED if answer.allows else DENIED
            else:
                done, word = words.SUBMITTED, words.YES if answer.allows else words.NO
            line = done[self._tongue].format(number=number, word=word[self._tongue])
            settled = Settled("done", line)
        except NotConnected:
            await self._request_store.wait(petition)
            return Settled("offline", words.OFFLINE[self._tongue].format(number=number))
        except ActionRefused as error:
            why = in_one_line(error.wording, 80) or "?"
            settled = Settled("refused", words.REFUSED[self._tongue].format(number=number, why=why))
        except ActionUnanswered:
            settled = Settled("unanswered", words.UNANSWERED[self._tongue].format(number=number))
        await self._request_store.end(petition)
        return settled

    async def run(self) -> None:
        """Know what waited before, then work off what comes."""
        while (doubtful := await self._request_store.restore()) is None:
            await self._clock.sleep(LOOK)
        for petition in doubtful:
            told = words.UNANSWERED[self._tongue].format(number=petition.number)
            self._tell(
                petition.account, f"{words.request_line(petition, tongue=self._tongue)}\n{told}"
            )
        while True:
            work = await self._work.get()
            await work()

    # --- saying -------------------------------------------------------------------------------

    @property
    def open(self) -> Collection[JoinRequest]:
        """Those that wait."""
        return self._request_store.open.values()

    def _put(self, work: _Work) -> bool:
        try:
            self._work.put_nowait(work)
        except asyncio.QueueFull:
            logger.warning("too many requests and answers to them at once: one is left alone")
            return False
        return True

    def _tell(self, account: int, line: str) -> None:
        for owner in sorted(self._owners):
            if not self._postbox.post(Conversation(account, "private", owner), line):
                logger.warning("owner %d has too much to read: %s", owner, line)
