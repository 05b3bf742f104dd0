"""A run's view of its conversation: people by their numbers there, in the conversation's own
language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial

from msgspec.structs import replace

from bot.core.events import MessageReceived
from bot.core.journal import AttachmentNamed
from bot.core.segments import Segment
from bot.memory.history import History
from bot.memory.remembering import NOTHING_RECALLED, Recalled, Remembering
from bot.memory.speakers import Speakers
from bot.prompt.compose import (
    NO_TALK,
    Forwarded,
    OverheardTalk,
    Question,
    addition_line,
    missing_words,
    opened_line,
    user_message,
)
from bot.prompt.participants import speakers_in
from bot.prompt.prompt_language import choose_wording
from bot.prompt.render import MAX_TEXT, View, line, plain
from frostagent.types.conversation import Conversation
from frostagent.types.errors import Lack
from frostagent.types.messages import Counted, Message, UserMessage
from frostagent.types.speech import Mention, Quote

LOOK_UPS = 8  # messages quoted among others that the store is asked for


class PromptContext:
    """Renders questions and what was overheard before them, once the history is loaded."""

    def __init__(
        self, *, history: History, speakers: Speakers, remembering: Remembering | None = None
    ) -> None:
        """Without `remembering` nothing is told of what is longer ago."""
        self._history = history
        self._speakers = speakers
        self._remembering = remembering

    async def load(self, where: Conversation) -> None:
        """Have the history of the conversation at hand."""
        await self._history.load(where)

    @property
    def times_let_go(self) -> int:
        """How often all was let go of, to be read anew."""
        return self._history.times_let_go

    def is_at_hand(self, where: Conversation) -> bool:
        """Whether it is known who has which number there."""
        return where in self._speakers

    def rounds(self, where: Conversation) -> tuple[Message, ...]:
        """The earlier rounds, oldest first."""
        return self._history.messages(where)

    def counted(self, where: Conversation, before: int) -> Counted:
        """How many tokens these are, but for those of the first, with so many messages before."""
        known = self._history.counted(where)
        return replace(known, place=before + known.place)

    def take_talk(self, where: Conversation, reader: int) -> OverheardTalk:
        """The lines overheard since the last run, which belong to the run that begins for this
        person.
        """
        unread = self._history.unread(where)
        if unread.is_read:
            return NO_TALK
        missed = unread.missed
        heard = self._history.take_overheard(where, reader)
        self._meet(*heard)
        return OverheardTalk([self._named(message) for message in heard], missed)

    def with_more(self, talk: OverheardTalk, where: Conversation, reader: int) -> OverheardTalk:
        """The same with what was overheard meanwhile."""
        more = self.take_talk(where, reader)
        return replace(talk, messages=(*talk.messages, *more.messages)) if more.messages else talk

    async def with_replies(self, question: Question, talk: OverheardTalk) -> OverheardTalk:
        """The same with what is quoted in it, as far as it is known."""
        if not (talk.messages or question.lines):
            return talk
        where = question.message.conversation
        replies = {one.message_id: one for one in (*talk.messages, *question.lines)}
        quoted = [quote for one in (*talk.messages, *question.lines) for quote in quotes(one)]
        if not quoted:
            return talk
        unknown = [id_ for id_ in dict.fromkeys(quoted) if id_ and id_ not in replies]
        for place, message_id in enumerate(reversed(unknown)):
            found = self._history.known(where, message_id)
            if found is None and place < LOOK_UPS:
                found = await self._history.find(where, message_id)
            if found is not None:
                replies[message_id] = self._named(found)
        return replace(talk, replies={id_: replies[id_] for id_ in quoted if id_ in replies})

    async def recalled(self, message: MessageReceived) -> Recalled:
        """The facts that a question is about."""
        if self._remembering is None:
            return NOTHING_RECALLED
        asked = partial(plain, message.segments, View(), self_id=message.self_id)
        where, asker = message.conversation, message.sender.user_id
        return await self._remembering.recalled(where, asker, asked)

    def named(self, question: Question) -> Question:
        """The question with the names by which those it mentions were last seen, and short names
        for what can be opened.
        """
        self._meet(*question.lines, question.message)
        message = self._named(question.message)
        if not (question.quoted or question.lines or question.forwarded.lines):
            return question if message is question.message else replace(question, message=message)
        return replace(
            question,
            message=message,
            quoted=question.quoted and self._named(question.quoted),
            lines=tuple(map(self._named, question.lines)),
            forwarded=self._within(question.message, question.forwarded),
        )

    def _within(self, message: MessageReceived, forwarded: Forwarded) -> Forwarded:
        """A message's forward, with names for what can be opened in it."""
        if not forwarded.lines:
            return forwarded
        things = self._history.things
        lines = (
            replace(passed, message=things.named(passed.message, within=message))
            for passed in forwarded.lines
        )
        return replace(forwarded, lines=tuple(lines))

    def find(self, where: Conversation, handle: str) -> AttachmentNamed | None:
        """The thing that a prompt there showed by this short name."""
        return self._history.things.find(where, handle)

    def opened(self, message: MessageReceived, forwarded: Forwarded) -> str:
        """Something that was opened, and what it passes on."""
        view = self.view(message.conversation)
        return opened_line(message, self._within(message, forwarded), view)

    def lacking(self, where: Conversation, segment: Segment, lack: Lack) -> str:
        """The words for what cannot be opened."""
        return missing_words(segment, lack, self.view(where).words)

    def view(
        self, where: Conversation, said: Callable[[], str] = str, *, language: str = ""
    ) -> View:
        """How a prompt whose question says this is written down, in this language if one is chosen;
        nobody asks for the words where it goes on in the language of before.
        """
        rounds = self.rounds(where)
        words = choose_wording(rounds, "" if language or rounds else said(), chosen=language)
        return View(words, lambda user_id: self._speakers.number(where, user_id))

    def render(self, question: Question, talk: OverheardTalk, view: View) -> UserMessage:
        """The question, and what was overheard before it."""
        where = question.message.conversation
        for message in (*talk.replies.values(), *filter(None, [question.quoted])):
            if not self._speakers.name(where, message.sender.user_id):  # that was longer ago
                self._meet(message)
        return user_message(question, view, talk, day=self._history.day(where))

    def addition(
        self, message: MessageReceived, view: View | None, *, quoted: MessageReceived | None
    ) -> UserMessage:
        """A line that belongs to a question which is being answered; without a `view` that is only
        being prepared.
        """
        self._meet(message)
        view = view or self.view(message.conversation)
        return addition_line(self._named(message), view, quoted=quoted and self._named(quoted))

    def line(self, message: MessageReceived, *, limit: int = MAX_TEXT) -> str:
        """A message of this conversation by itself."""
        return line(self._named(message), self.view(message.conversation), limit=limit)

    def summary(self, where: Conversation) -> str:
        """The summary of the rounds before the first."""
        return self._history.summary(where)

    def voices(self, where: Conversation) -> frozenset[int]:
        """Who has spoken in what the prompt tells of earlier rounds."""
        return speakers_in(
            self._history.messages(where),
            lambda number: self._speakers.user_id(where, number),
            summary=self._history.summary(where),
        )

    def _meet(self, *messages: MessageReceived) -> None:
        for message in messages:
            sender = message.sender
            if not message.is_own:
                name = sender.card or sender.nickname
                self._speakers.meet(message.conversation, sender.user_id, name)

    def _named(self, message: MessageReceived) -> MessageReceived:
        message = self._history.things.named(message)
        for segment in message.segments:
            if isinstance(segment, Mention) and segment.user_id != message.self_id:
                break
        else:
            return message  # as most
        segments = tuple([self._name(message, one) for one in message.segments])
        return message if segments == message.segments else replace(message, segments=segments)

    def _name(self, message: MessageReceived, segment: Segment) -> Segment:
        if not isinstance(segment, Mention) or segment.user_id == message.self_id:
            return segment
        seen = self._speakers.name(message.conversation, segment.user_id)
        return replace(segment, name=seen) if seen else segment


def words_of(question: Question, talk: OverheardTalk, names: Iterable[str] = ()) -> str:
    """The words of all that a prompt tells anew, without the `names` by which the bot is called:
    those are of no language.
    """
    said = (*talk.messages, *question.lines, question.message)
    words = "\n".join(plain(one.segments, View(), self_id=one.self_id) for one in said)
    called = "|".join(map(re.escape, filter(None, names)))
    return re.sub(called, "", words, flags=re.IGNORECASE) if called else words


def quotes(message: MessageReceived) -> Iterable[str]:
    """The ids of what a message quotes."""
    return (one.message_id for one in message.segments if isinstance(one, Quote))
