"""Drafts of what the bot would have said in a group, each with a number such as `D7`. Owners
publish one by replying in private `发 D7` or `改 D7 words`; any other reply leaves it open.

A draft is marked as published in the same commit as its sends, so it is never published twice. If
they certainly never reached QQ, it is open again, also after a restart.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from bot.approvals.decision import (
    MARKS,
    Candidate,
    Reply,
    ReplyQueue,
    outcome,
    private_words,
)
from bot.core.actions import MergedForward, SendMessage, as_received
from bot.core.conversation import Conversation
from bot.core.drafts import draft_id, published_id, published_line
from bot.core.events import MessageReceived, Sender, message_words, quote_in
from bot.core.journal import MessageErased, MessageObserved, SendChanged, SendState, Spoken
from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.ports import Store
from bot.core.server_clock import ServerClock
from bot.core.settlement import Settled, Settlement
from bot.memory.drafts import LEFT, Drafts, KeptDraft, draft_number_in
from bot.memory.history import History
from bot.outbox.delivery import Postbox
from bot.outbox.outbox import Outbox
from bot.policy.answered_questions import UNREAD
from bot.policy.fallback_replies import is_quoted
from bot.prompt.render import account
from frostagent.engine.authority import in_one_line
from frostagent.types.ports import Clock
from frostagent.types.speech import Attachment, Confirmed, Queued, Quote, Receipt, Refused, Text

logger = logging.getLogger(__name__)

FRESH = 600.0  # seconds after which the question is too old to be quoted
LOOK = 2.0  # seconds between two checks of an unknown outcome
UNDECIDED = frozenset({SendState.QUEUED, SendState.SENDING})

DONE = Phrase("D{number} 发出去了。", "D{number} is published.")
CHANGED = Phrase("D{number} 改好发出去了。", "D{number} is published with your words.")
OVER = Phrase("D{number} 已经处理过了：{what}。", "D{number} is settled already: {what}.")
BY = Phrase("{by} 发了", "{by} published it")
SAID = Phrase("发了", "it was published")
UNSURE = Phrase("可能发了，QQ 没有回答", "it may have been published, QQ did not answer")
DROPPED = Phrase("D{number} 不发了。", "D{number} is left.")
UNDER_WAY = Phrase("正在发", "it is on its way")
OFFLINE = Phrase(
    "现在没有连上 QQ；两分钟内连上就发，连不上 D{number} 就还在等。",
    "QQ is not connected: D{number} is published if it is within two minutes, else it still waits.",
)
EXPIRED = Phrase(
    "D{number} 过期了：草稿只留一天，没有发。", "D{number} has expired: drafts wait for a day."
)
UNKNOWN = Phrase(
    "没有编号为 D{number} 的草稿，可能已经过期或处理过了。",
    "There is no draft D{number}; it may have expired or be settled.",
)
GONE = Phrase(
    "D{number} 发不了：提问已经撤回，或者记录删掉了。",
    "D{number} cannot be published: its question was recalled, or is forgotten.",
)
NO_MEDIA = Phrase(
    "D{number} 的图片或文件太大，没有留下来；可以用「改 D{number} 新的话」。",
    'The pictures or files of D{number} were too large to keep; "edit D{number} words" works.',
)
AGAIN = Phrase(
    "这条回复是断线时发的，没有算数；D{number} 还在等，要发请再回复一次。",
    "That answer came while I was away and is void; D{number} still waits: please answer again.",
)
NO_WORDS = Phrase(
    "要改成什么？请发「改 D{number} 新的话」。", 'To what? "edit D{number} other words".'
)
REFUSED = Phrase(
    "D{number} 没有发出去：{what}。它还在等。",
    "D{number} was not published: {what}. It still waits.",
)
UNANSWERED = Phrase(
    "D{number} 发出去没有，QQ 没有回答；请在群里看一下，不会再发。",
    "QQ did not answer whether D{number} was published; look in the group, it is not sent again.",
)
IN_PART = Phrase(
    "D{number} 只发出去一部分，后面的 QQ 不收：{what}。不会再发。",
    "D{number} is published in part: QQ refused the rest: {what}. It is not sent again.",
)
BUSY = Phrase(
    "现在记不下来，D{number} 还在等，请过一会儿再回复一次。",
    "That cannot be written down now, D{number} still waits: answer again in a while.",
)
CATALOGUE.register(__name__, globals())

ANSWER = re.compile(
    r"\s*(?P<word>发布|发|改|send|publish|edit|change)"
    r"(?:\s*[#＃]?\s*[dDｄＤ]\s*(?P<number>[0-9０-９]{1,9})(?![0-9０-９A-Za-z]))?(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
CHANGES = ("改", "edit", "change")
BEFORE = " \t\r\n\u3000,，:："  # between a number and the new words


class DraftApprovals:
    """The `DecisionHandler` of drafts; publishes each draft at most once. `run` is its task."""

    def __init__(
        self,
        *,
        drafts: Drafts,
        outbox: Outbox,
        store: Store,
        history: History,
        postbox: Postbox,
        server_clock: ServerClock,
        clock: Clock,
        language: Language = Language.CHINESE,
    ) -> None:
        self._drafts = drafts
        self._outbox = outbox
        self._store = store
        self._history = history
        self._postbox = postbox
        self._server_clock = server_clock
        self._clock = clock
        self._language = language
        self._queue = ReplyQueue("words on drafts")
        self._one_by_one = asyncio.Lock()
        self._unknown: asyncio.Queue[int] = asyncio.Queue()

    @property
    def open(self) -> Mapping[int, tuple[Conversation, KeptDraft]]:
        """Open drafts, the oldest first."""
        return self._drafts.open

    async def run(self) -> None:
        """Handle replies, and follow sends until their outcome is known."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run())
            group.create_task(self._follow_all())

    # --- replies ------------------------------------------------------------------------------

    def read_reply(self, message: MessageReceived) -> Reply | None:
        return None if (words := private_words(message)) is None else read_draft_reply(words)

    def find_number(self, quoted: MessageReceived) -> int | None:
        return draft_number_in(message_words(quoted))

    def list_candidates(self, message: MessageReceived, _reply: Reply) -> list[Candidate]:
        """If the reply quotes a message, all open drafts of this account; without a quote it is
        ordinary chat.
        """
        if not quote_in(message):
            return []
        verb = _verb_of(private_words(message) or "")
        return [
            Candidate(number, f"D{number}", f"{verb} D{number}")
            for number, (where, one) in self._drafts.open.items()
            if where.platform_id == message.self_id
            and not (one.published or self._drafts.is_over(one))
        ]

    def accept(self, message: MessageReceived, number: int, reply: Reply) -> bool:
        """A reply that was missed and found in a history decides nothing: the owner is asked to
        repeat it. One older than the draft meant an earlier draft of the same number.
        """
        found = self._drafts.open.get(number)
        if self._server_clock.is_missed(message):
            if found is not None:
                self._tell(message, AGAIN.format(self._language, number=number))
            return True
        if found is not None and self._server_clock.is_older(message, found[1].at):
            return False
        return self._queue.put(partial(self._handle, message, number, reply))

    async def _handle(self, message: MessageReceived, number: int, reply: Reply) -> None:
        settled = await self.settle(number, reply, by=account(message.sender))
        self._tell(message, settled.words)

    def _tell(self, message: MessageReceived, words: str) -> None:
        self._postbox.post(message.conversation, words, quote=message.message_id)

    async def settle(self, number: int, reply: Reply, *, by: str) -> Settled:
        """Apply a decision; the first one counts. `by` names who made it, for others to read."""
        async with self._one_by_one:
            if reply.choice == "discard":
                return self._discard(number, by)
            return await self._decide(number, reply, by)

    def _discard(self, number: int, by: str) -> Settled:
        """Close it unpublished, without a message to anyone."""
        found = self._drafts.open.get(number)
        if found is None or found[1].published:
            return self._outcome("over", OVER, number, self._drafts.past(number))
        logger.info("D%d is left by %s", number, by)
        self._store.put(self._drafts.end(number, LEFT.format(self._language)))
        return self._outcome("done", DROPPED, number)

    # --- publishing ---------------------------------------------------------------------------

    async def _decide(self, number: int, reply: Reply, by: str) -> Settled:
        if (found := self._drafts.open.get(number)) is None:
            what = self._drafts.past(number)
            return self._outcome(
                "over" if what else "unknown", OVER if what else UNKNOWN, number, what
            )
        where, waiting = found
        if waiting.published:
            return self._outcome("over", OVER, number, UNDER_WAY.format(self._language))
        if self._drafts.is_over(waiting):
            self._store.put(self._drafts.end(number, LEFT.format(self._language)))
            return self._outcome("late", EXPIRED, number)
        if reply.choice == "edit" and not reply.words:
            return self._outcome("again", NO_WORDS, number)
        if not await self._store.commit():
            return self._outcome("busy", BUSY, number)
        if (spoken := await self._store.spoken(waiting.turn_id)) is None:
            return self._outcome("refused", GONE, number)
        actions = await self._actions(number, reply, where, spoken)
        if number not in self._drafts.open:  # recalled or discarded meanwhile
            return self._outcome("over", OVER, number, self._drafts.past(number))
        if not actions:
            return self._outcome("refused", NO_MEDIA, number)
        try:
            receipts = await self._publish(number, reply, by, spoken, actions)
        except asyncio.CancelledError:  # the caller no longer waits
            self._unknown.put_nowait(number)
            raise
        return self._learn(number, reply, receipts, spoken)

    async def _actions(
        self, number: int, reply: Reply, where: Conversation, spoken: Spoken
    ) -> tuple[SendMessage, ...]:
        """The messages to send now; empty if the draft was not kept whole."""
        actions: tuple[SendMessage, ...]
        if reply.choice == "edit":
            actions = (SendMessage(where, (Text(reply.words),)),)
        else:
            kept = [one for one in spoken.sends if one.send_id.startswith(draft_id(number))]
            if kept and all(one.whole for one in kept):
                actions = tuple(one.action for one in kept)
            else:
                actions = await self._drafts.held(number)
        question = spoken.question
        is_fresh = self._clock.now() - question.time < FRESH and is_quoted(question)
        return quoting(actions, question.message_id if is_fresh else "")

    async def _publish(
        self,
        number: int,
        reply: Reply,
        by: str,
        spoken: Spoken,
        actions: tuple[SendMessage, ...],
    ) -> tuple[Receipt, ...]:
        """Send the messages; from here on the history contains them as said."""
        where = actions[0].conversation
        entry = self._drafts.publish(number, by=by, changes=reply.choice == "edit")
        waiting = self._drafts.open[number][1]
        line = published_line(waiting.number, waiting.published)
        own = MessageReceived(
            self_id=where.platform_id,
            time=self._clock.now(),
            conversation=where,
            message_id=line,
            sender=Sender(where.platform_id),
            segments=tuple(as_received(part) for one in actions for part in one.segments),
            group_name=spoken.question.group_name,
        )
        self._history.overhear(own)
        return await self._outbox.publish(
            entry,
            MessageObserved(own, overheard=True),
            actions=actions,
            turn_id=waiting.turn_id,
            name=published_id(number),
        )

    def _learn(
        self, number: int, reply: Reply, receipts: tuple[Receipt, ...], spoken: Spoken
    ) -> Settled:
        """Record the outcome; a draft that certainly never reached QQ stays open."""
        match receipts[-1]:
            case Queued():
                self._unknown.put_nowait(number)
                return self._outcome("offline", OFFLINE, number)
            case Refused(reason=reason) if len(receipts) == 1:
                self._take_back(number)
                return self._outcome("refused", REFUSED, number, in_one_line(reason, 80))
            case Refused(reason=reason):
                self._end(number, spoken)
                return self._outcome("refused", IN_PART, number, in_one_line(reason, 80))
            case Confirmed():
                self._end(number, spoken)
                return self._outcome("done", CHANGED if reply.choice == "edit" else DONE, number)
            case _:
                self._end(number, spoken)
                return self._outcome("unanswered", UNANSWERED, number)

    def _end(self, number: int, spoken: Spoken, what: str = "") -> None:
        """Close it as published; its rows record by whom."""
        waiting = self._drafts.open[number][1]
        what = what or BY.format(self._language, by=waiting.by)
        state = SendState.REWORDED if waiting.changes else SendState.PUBLISHED
        now, name = self._clock.now(), draft_id(number)
        logger.info("D%d is %s by %s", number, state, waiting.by)
        rows = (
            SendChanged(send_id=one.send_id, state=state, at=now, reason=waiting.by)
            for one in spoken.sends
            if one.send_id.startswith(name)
        )
        self._store.put(self._drafts.end(number, what), *rows)

    def _take_back(self, number: int) -> None:
        where, waiting = self._drafts.open[number]
        line = published_line(waiting.number, waiting.published)
        self._store.put(self._drafts.keep(number), MessageErased(where, line))
        self._history.forget_message(where, line)

    def _outcome(self, kind: Settlement, line: Phrase, number: int, what: str = "") -> Settled:
        return outcome(kind, line, self._language, number=number, what=what)

    # --- unknown outcomes -------------------------------------------------------------------------

    async def _follow_all(self) -> None:
        """Follow drafts that an earlier process was publishing, and those that wait for a
        connection.
        """
        for number, (_, waiting) in self._drafts.open.items():
            if waiting.published:
                self._unknown.put_nowait(number)
        while True:
            await self._follow(await self._unknown.get())

    async def _follow(self, number: int) -> None:
        """Check its sends until their outcome is known."""
        while (found := self._drafts.open.get(number)) is not None:
            if await self._store.commit():
                spoken = await self._store.spoken(found[1].turn_id)
                if number not in self._drafts.open:
                    return
                if self._settled(found[1], spoken):
                    return
            await self._clock.sleep(LOOK)

    def _settled(self, waiting: KeptDraft, spoken: Spoken | None) -> bool:
        """Close or reopen the draft if the outcome of its sends is known; else return False."""
        number = waiting.number
        if spoken is None:  # its question was recalled or erased: nothing waits for it
            self._store.put(self._drafts.end(number, UNSURE.format(self._language)))
            return True
        name = published_id(number)
        states = {one.state for one in spoken.sends if one.send_id.startswith(name)}
        if not states.isdisjoint(UNDECIDED):
            return False
        if states.issubset(UNREAD):
            self._take_back(number)
        else:
            # An older version did not record who published it.
            said = "" if waiting.by else SAID.format(self._language)
            is_said = SendState.CONFIRMED in states
            self._end(number, spoken, said if is_said else UNSURE.format(self._language))
        return True


def quoting(actions: tuple[SendMessage, ...], message_id: str) -> tuple[SendMessage, ...]:
    """The messages, the first of which quotes `message_id`; if that is empty, without any quote."""
    if message_id:
        first, *rest = actions or (None,)
        if first is None or not _may_quote(first):
            return actions
        return replace(first, segments=(Quote(message_id), *first.segments)), *rest
    bare = (
        replace(one, segments=tuple(part for part in one.segments if not isinstance(part, Quote)))
        for one in actions
    )
    return tuple(one for one in bare if one.segments)


def _may_quote(action: SendMessage) -> bool:
    """Whether it quotes nothing yet, and has no part that QQ shows only alone."""
    return not any(
        isinstance(part, Quote | MergedForward)
        or (isinstance(part, Attachment) and part.kind != "image")
        for part in action.segments
    )


# --- reading owners' replies: pure ----------------------------------------------------------------


def read_draft_reply(text: str) -> Reply | None:
    """`发 D7`, `改 D7 words`, `send D7`, or with a quote `发` and `改 words`; else None."""
    if (match := ANSWER.fullmatch(text)) is None:
        return None
    rest, number = match["rest"], None if match["number"] is None else int(match["number"])
    if match["word"].lower() in CHANGES:
        if number is None and rest and rest[0] not in MARKS:  # 改天, changed
            return None
        return Reply("edit", number, rest.lstrip(BEFORE).rstrip())
    return None if rest.strip(MARKS) else Reply("publish", number)


def _verb_of(text: str) -> str:
    match = ANSWER.match(text)
    return match["word"] if match else ""
