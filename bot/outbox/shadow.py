"""Shadow mode: in such a group the bot's words become drafts for its owners.

A draft is a send of its turn whose row is never queued, written in one commit with its number and
the messages to owners. Lines that belong to no turn are dropped.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from bot.core.actions import SendMessage, SentSegment
from bot.core.conversation import Conversation
from bot.core.drafts import draft_id
from bot.core.events import MessageReceived
from bot.core.journal import Entry, SendState
from bot.core.language import Language
from bot.core.lru import DefaultLRU
from bot.memory.drafts import (
    GIVEN_UP,
    LEFT,
    RECALLED,
    TAKEN_BACK,
    UNSHOWN,
    Drafts,
    KeptDraft,
    draft_text,
    shadow_notice,
)
from bot.memory.modes import Mode, Modes
from bot.outbox.layout import split_text
from bot.outbox.owner_alerts import Owner
from bot.outbox.sender import Sender
from bot.outbox.sends import Send, SendJournal
from bot.prompt.render import View, plain
from frostagent.types.ports import Clock
from frostagent.types.speech import Attachment, Drafted, Refused, Text

logger = logging.getLogger(__name__)

MOST = 20  # drafts shown to owners in an hour, so that they are not flooded
HOUR = 3600.0
MAX_TURNS = 200  # turns whose skipped calls wait for a draft that lists them
MAX_CALLS = 5  # skipped calls listed with one draft
SOON = 2.0  # seconds until drafts are read again
KEPT_BACK = "the bot is a shadow there"
UNREAD = "the bot is a shadow there, and what waits for its owners cannot be read yet"


class Shadow:
    """Keeps messages of shadowed groups as drafts, and shows them to owners. `asked` returns the
    question of a running turn there.
    """

    def __init__(
        self,
        *,
        modes: Modes,
        drafts: Drafts,
        journal: SendJournal,
        sender: Sender,
        owner: Owner,
        asked: Callable[[Conversation, str], MessageReceived | None],
        clock: Clock,
        language: Language = Language.CHINESE,
    ) -> None:
        self._modes = modes
        self.drafts = drafts
        self._journal = journal
        self._sender = sender
        self._owners, self._on_loss = owner.owners, owner.tell_of_send
        self._asked = asked
        self._clock = clock
        self._language = language
        self._shown: deque[float] = deque(maxlen=MOST)
        self._unshown = 0
        self._account = 0
        self._calls = DefaultLRU[str, list[str]](MAX_TURNS, list)

    def is_active_in(self, where: Conversation) -> bool:
        """Whether only what an owner publishes is sent there."""
        return self._modes.of(where) is Mode.SHADOW

    def holds_back(self, conversation: str) -> bool:
        """The same for the engine, which has ids as texts."""
        return self.is_active_in(Conversation.parse(conversation))

    def keep(
        self,
        actions: Sequence[SendMessage],
        *entries: Entry,
        turn_id: str,
        final: bool,
        question: MessageReceived | None = None,
    ) -> list[Send]:
        """Keep these as a draft, written with the entries; returns sends with their receipts. Pass
        the `question` if its turn has ended.
        """
        if not turn_id or not self.drafts.is_read:
            if entries:
                self._journal.record_all((), *entries)
            # Before drafts are read, its number and row could collide with an earlier one.
            why = UNREAD if turn_id else KEPT_BACK
            return [self._refused(action, why) for action in actions]
        where = actions[0].conversation
        question = question or self._asked(where, turn_id)
        asked = question.message_id if question is not None and question.has_identity else ""
        waiting, entry = self.drafts.add(where, turn_id, asked=asked)
        self.drafts.hold(waiting, tuple(actions))
        name = draft_id(waiting.number)
        sends = [
            self._journal.create(one, turn_id=turn_id, final=final, name=name) for one in actions
        ]
        for send in sends:
            send.state = SendState.DRAFT
        lines = self._lines(waiting, question, actions)
        self._journal.record_all((*sends, *lines), *entries, entry)
        for line in lines:
            self._sender.enqueue((line,), most=None)
        for send in sends:
            send.settle(Drafted(waiting.number))
        return sends

    def lift(self) -> None:
        """Discard the drafts of groups that have left shadow mode; owners are told how many."""
        if not self._modes.is_read:
            return
        language = self._language
        waiting = (where for where, one in self.drafts.open.values() if not one.published)
        for where in dict.fromkeys(waiting):
            if self.is_active_in(where):
                continue
            count, entry = self.drafts.give_up(where, LEFT.format(language))
            logger.info("%d drafts of %s are given up: it is no shadow", count, where)
            line = GIVEN_UP.format(language, group=where.session_id, count=count)
            self._tell_owners(where.platform_id, line, entry)

    def recall(self, where: Conversation, message_id: str) -> None:
        """A question was recalled: discard its drafts, and notify owners."""
        language = self._language
        for number, (there, one) in self.drafts.open.items():
            if one.published or not one.asked or (there, one.asked) != (where, message_id):
                continue
            logger.info("D%d ends: its question was recalled", number)
            entry = self.drafts.end(number, TAKEN_BACK.format(language))
            self._tell_owners(where.platform_id, RECALLED.format(language, number=number), entry)

    def note(self, turn_id: str, call: str) -> None:
        """Record a skipped call; the next draft of the turn lists it."""
        calls = self._calls.use(turn_id)
        if len(calls) < MAX_CALLS:
            calls.append(call)

    def end(self, where: Conversation, turn_id: str) -> None:
        """A turn ends: notify owners of skipped calls that no draft lists."""
        if not (calls := self._calls.pop(turn_id, None)):
            return
        group = _group(where, self._asked(where, turn_id))
        line = shadow_notice(group, tuple(calls), language=self._language)
        self._tell_owners(where.platform_id, line, turn_id=turn_id)

    def forget(self) -> None:
        """Drop all words in memory, after an erasure."""
        self._calls.clear()
        self.drafts.forget()

    def _refused(self, action: SendMessage, why: str) -> Send:
        logger.info("not said in %s, %s", action.conversation, why)
        send = self._journal.create(action)
        send.settle(Refused(why))
        return send

    # --- messages to owners -----------------------------------------------------------------------

    def _lines(
        self, draft: KeptDraft, question: MessageReceived | None, actions: Sequence[SendMessage]
    ) -> list[Send]:
        where, turn_id = actions[0].conversation, draft.turn_id
        calls = tuple(self._calls.pop(turn_id, ()))
        logger.info("draft D%d of %s waits for an owner", draft.number, where)
        if self._is_much():
            self._unshown += 1
            self._account = where.platform_id
            return []
        self._shown.append(self._clock.monotonic())
        messages = list(self._messages(draft.number, question, actions, calls))
        return [
            self._journal.create(
                SendMessage(Conversation(where.platform_id, "private", owner), segments),
                turn_id=turn_id,
                on_loss=self._on_loss,
            )
            for owner in self._owners
            for segments in messages
        ]

    def _messages(
        self,
        number: int,
        question: MessageReceived | None,
        actions: Sequence[SendMessage],
        calls: tuple[str, ...],
    ) -> Iterable[tuple[SentSegment, ...]]:
        group, said = _group(actions[0].conversation, question), ""
        if question is not None:
            words = plain(question.segments, View(), self_id=question.self_id)
            said = f"{question.sender.name}：{words}"
        words = "\n".join(filter(None, (action.words for action in actions)))
        text = draft_text(number, group, said, words, calls, language=self._language)
        parts = [part for action in actions for part in action.segments]
        media = [part for part in parts if isinstance(part, Attachment)]
        pictures = tuple(part for part in media if part.kind == "image")
        first, *rest = split_text(text)
        yield (Text(first), *pictures)
        yield from ((Text(piece),) for piece in rest)
        yield from ((part,) for part in media if part.kind != "image")

    def _is_much(self) -> bool:
        return len(self._shown) == MOST and self._clock.monotonic() - self._shown[0] < HOUR

    async def run(self) -> None:
        """Report how many drafts were not shown, once more may be shown; and discard drafts of
        groups no longer in shadow mode, and of erased subjects.
        """
        while True:
            is_read = self.drafts.is_read
            await self.drafts.sift()
            self.lift()
            self.drafts.look()
            await self._clock.sleep(HOUR / 60 if is_read else SOON)
            if self._unshown and not self._is_much():
                self._tell_unshown()

    def _tell_unshown(self) -> None:
        line = UNSHOWN.format(self._language, count=self._unshown)
        self._unshown = 0
        self._tell_owners(self._account, line)

    def _tell_owners(self, account: int, line: str, *entries: Entry, turn_id: str = "") -> None:
        """Send the line to every owner once, written together with the entries."""
        sends = [
            self._journal.create(
                SendMessage(Conversation(account, "private", owner), (Text(line),)),
                turn_id=turn_id,
                on_loss=self._on_loss,
            )
            for owner in self._owners
        ]
        self._journal.record_all(sends, *entries)
        for send in sends:
            self._sender.enqueue((send,), most=None)


def _group(where: Conversation, question: MessageReceived | None) -> str:
    return (question and question.group_name) or str(where.session_id)
