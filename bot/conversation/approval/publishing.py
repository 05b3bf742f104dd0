"""Publishing drafts of what the bot would have said in a group, once an owner wants it.

What is published is written down in one commit with that it is on its way, so that it is never said
twice; until QQ has it nothing is over: what never reached QQ is a draft again, over a restart too.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TypeAlias

from msgspec.structs import replace

from bot.core.actions import MergedForward, SendMessage, as_received
from bot.core.drafts import draft_id, published_id, published_line
from bot.core.events import MessageReceived, Sender
from bot.core.journal import MessageErased, MessageObserved, SendChanged, SendState, Spoken
from bot.core.ports import Store
from bot.core.settlement import Settled, Settlement
from bot.memory.drafts import Drafts, KeptDraft
from bot.memory.history import History
from bot.outbox.outbox import Outbox
from bot.policy.answered_questions import UNREAD
from bot.policy.drafts import (
    BUSY,
    BY,
    CHANGED,
    DONE,
    DROPPED,
    EXPIRED,
    FRESH,
    GONE,
    IN_PART,
    LEFT,
    NO_MEDIA,
    NO_WORDS,
    OFFLINE,
    OVER,
    REFUSED,
    SAID,
    UNANSWERED,
    UNDER_WAY,
    UNKNOWN,
    UNSURE,
    DraftWord,
)
from bot.policy.fallback_replies import is_quoted
from frostagent.engine.authority import in_one_line
from frostagent.text.language import Language
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock
from frostagent.types.speech import Attachment, Confirmed, Queued, Quote, Receipt, Refused, Text

logger = logging.getLogger(__name__)

LOOK = 2.0  # seconds between two looks at what is not known yet

UNDECIDED = frozenset({SendState.QUEUED, SendState.SENDING})

_Words: TypeAlias = tuple[str, str]


class Publishing:
    """Publishes drafts, each once; `run` is its task."""

    def __init__(
        self,
        *,
        drafts: Drafts,
        outbox: Outbox,
        store: Store,
        history: History,
        clock: Clock,
        tongue: Language = Language.CHINESE,
    ) -> None:
        self._drafts = drafts
        self._outbox = outbox
        self._store = store
        self._history = history
        self._clock = clock
        self._tongue = tongue
        self._one_by_one = asyncio.Lock()
        self._unknown: asyncio.Queue[int] = asyncio.Queue()

    @property
    def tongue(self) -> Language:
        """The owners'."""
        return self._tongue

    async def settle(self, said: DraftWord, *, by: str) -> Settled:
        """Let the first word decide, whoever brings it; `by` is who, as others read it."""
        async with self._one_by_one:
            return await self._decide(said.number or 0, said, by)  # no draft is 0

    async def _decide(self, number: int, said: DraftWord, by: str) -> Settled:
        if (found := self._drafts.open.get(number)) is None:
            what = self._drafts.past(number)
            return self._told(
                "over" if what else "unknown", OVER if what else UNKNOWN, number, what
            )
        where, waiting = found
        if waiting.published:
            return self._told("over", OVER, number, UNDER_WAY[self._tongue])
        if self._drafts.is_over(waiting):
            self._store.put(self._drafts.end(number, LEFT[self._tongue]))
            return self._told("late", EXPIRED, number)
        if said.changes and not said.words:
            return self._told("again", NO_WORDS, number)
        if not await self._store.commit():
            return self._told("busy", BUSY, number)
        if (spoken := await self._store.spoken(waiting.turn_id)) is None:
            return self._told("refused", GONE, number)
        actions = await self._actions(number, said, where, spoken)
        if number not in self._drafts.open:  # recalled, or given up, meanwhile
            return self._told("over", OVER, number, self._drafts.past(number))
        if not actions:
            return self._told("refused", NO_MEDIA, number)
        try:
            receipts = await self._publish(number, said, by, spoken, actions)
        except asyncio.CancelledError:  # who asked waits no longer
            self._unknown.put_nowait(number)
            raise
        return self._learn(number, said, receipts, spoken)

    async def leave(self, number: int, *, by: str) -> Settled:
        """It is not to be published; nobody is told."""
        async with self._one_by_one:
            found = self._drafts.open.get(number)
            if found is None or found[1].published:
                return self._told("over", OVER, number, self._drafts.past(number))
            logger.info("D%d is left by %s", number, by)
            self._store.put(self._drafts.end(number, LEFT[self._tongue]))
            return self._told("done", DROPPED, number)

    async def _actions(
        self, number: int, said: DraftWord, where: Conversation, spoken: Spoken
    ) -> tuple[SendMessage, ...]:
        """The actions that say it there now; empty where it was not kept whole."""
        actions: tuple[SendMessage, ...]
        if said.changes:
            actions = (SendMessage(where, (Text(said.words),)),)
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
        said: DraftWord,
        by: str,
        spoken: Spoken,
        actions: tuple[SendMessage, ...],
    ) -> tuple[Receipt, ...]:
        """Say it; from then on it is told as said, in these words."""
        where = actions[0].conversation
        entry = self._drafts.publish(number, by=by, changes=said.changes)
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
        self, number: int, said: DraftWord, receipts: tuple[Receipt, ...], spoken: Spoken
    ) -> Settled:
        """Learn its fate; a draft that surely never reached QQ still waits."""
        match receipts[-1]:
            case Queued():
                self._unknown.put_nowait(number)
                return self._told("offline", OFFLINE, number)
            case Refused(reason=reason) if len(receipts) == 1:
                self._take_back(number)
                return self._told("refused", REFUSED, number, in_one_line(reason, 80))
            case Refused(reason=reason):
                self._end(number, spoken)
                return self._told("refused", IN_PART, number, in_one_line(reason, 80))
            case Confirmed():
                self._end(number, spoken)
                return self._told("done", CHANGED if said.changes else DONE, number)
            case _:
                self._end(number, spoken)
                return self._told("unanswered", UNANSWERED, number)

    def _end(self, number: int, spoken: Spoken, what: str = "") -> None:
        """It was published, as far as anybody knows: its rows say by whom."""
        waiting = self._drafts.open[number][1]
        what = what or BY[self._tongue].format(by=waiting.by)
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

    def _told(self, kind: Settlement, line: _Words, number: int, what: str = "") -> Settled:
        return Settled(kind, line[self._tongue].format(number=number, what=what))

    # --- what is not known yet --------------------------------------------------------------------

    async def run(self) -> None:
        """Follow what an earlier process was publishing, and what waits for a connection."""
        for number, (_, waiting) in self._drafts.open.items():
            if waiting.published:
                self._unknown.put_nowait(number)
        while True:
            await self._follow(await self._unknown.get())

    async def _follow(self, number: int) -> None:
        """Look at what was to be published until it is known what became of it."""
        while (found := self._drafts.open.get(number)) is not None:
            if await self._store.commit():
                spoken = await self._store.spoken(found[1].turn_id)
                if number not in self._drafts.open:
                    return
                if self._settled(found[1], spoken):
                    return
            await self._clock.sleep(LOOK)

    def _settled(self, waiting: KeptDraft, spoken: Spoken | None) -> bool:
        """Whether it is known what became of the sends by which it was published."""
        number = waiting.number
        if spoken is None:  # its question was recalled, or is forgotten: it waits for nobody
            self._store.put(self._drafts.end(number, UNSURE[self._tongue]))
            return True
        name = published_id(number)
        states = {one.state for one in spoken.sends if one.send_id.startswith(name)}
        if not states.isdisjoint(UNDECIDED):
            return False
        if states.issubset(UNREAD):
            self._take_back(number)
        else:
            is_said, by = SendState.CONFIRMED in states, waiting.by
            said = "" if by else SAID[self._tongue]  # an older version did not write down by whom
            self._end(number, spoken, said if is_said else UNSURE[self._tongue])
        return True


def quoting(actions: tuple[SendMessage, ...], message_id: str) -> tuple[SendMessage, ...]:
    """The messages, of which the first quotes that one, and without an id none quotes anything."""
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
    """Whether it quotes nothing yet, and is nothing that QQ shows alone."""
    return not any(
        isinstance(part, Quote | MergedForward)
        or (isinstance(part, Attachment) and part.kind != "image")
        for part in action.segments
    )
