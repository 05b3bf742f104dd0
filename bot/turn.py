"""One wake from question to last confirmed send: perception -> prompt -> engine -> delivery -> history.

Owns what was already said in the turn, so that nothing is said twice; the asker hears at least one line about every
question, and never an error's own words.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.delivery import Delivery, spoken_text
from bot.domain.actions import Confirmed, Receipt, SendSegment, Unknown
from bot.domain.chat import AssistantMessage, Message, UserMessage
from bot.domain.errors import InvalidArguments, ToolDenied
from bot.domain.events import Conversation, MessageReceived, NotAConversation
from bot.domain.ports import Ids, Speaker
from bot.domain.run import Asker, Outcome, Stop
from bot.engine import Engine, Run, RunState
from bot.history import History
from bot.perception import Perception
from bot.policy.permission import may_write_to
from bot.policy.repetition import already_said
from bot.prompt.compose import system_prompt, transcript, user_message

logger = logging.getLogger(__name__)

SORRY = "抱歉，这次没能回答上来，请稍后再试。（编号 {trace}）"


@dataclass(slots=True)
class TurnSpeaker:
    """The `Speaker` port of one turn: checks the target, says it at once, and remembers that it was said."""

    delivery: Delivery
    asker: Asker
    conversation: Conversation
    said: list[str] = field(default_factory=list)

    async def say(self, segments: tuple[SendSegment, ...], *, session: str = "") -> tuple[Receipt, ...]:
        target = self._target(session)
        receipts = await self.delivery.say(target, segments)
        # What QQ never confirmed may still have been read: it is not said again either.
        heard = any(isinstance(receipt, Confirmed | Unknown) for receipt in receipts)
        if heard and target == self.conversation:
            self.said.append(spoken_text(segments))
        return receipts

    def _target(self, session: str) -> Conversation:
        if not session.strip():
            return self.conversation
        try:
            target = Conversation.parse(session)
        except NotAConversation as error:
            raise InvalidArguments(f"session: {error}; leave it out for this conversation") from error
        if target == self.conversation:
            return self.conversation  # keeps the group a temporary session came through
        if not may_write_to(self.asker, active=self.conversation, target=target):
            raise ToolDenied(
                f"only the bot's owner may have messages sent to {session}; leave session out to speak here"
            )
        return target


@dataclass(frozen=True, slots=True)
class Persona:
    """Who the bot is in its chats: its system prompt and the name it goes by."""

    prompt: str
    name: str


class Turns:
    """Takes wakes, one at a time for each lane."""

    def __init__(
        self,
        *,
        engine: Engine,
        delivery: Delivery,
        perception: Perception,
        history: History,
        ids: Ids,
        persona: Persona,
        owners: frozenset[int],
        ports: Mapping[type, object],
    ) -> None:
        self._engine = engine
        self._delivery = delivery
        self._perception = perception
        self._history = history
        self._ids = ids
        self._persona = persona
        self._owners = owners
        self._ports = ports

    async def take(self, message: MessageReceived) -> None:
        """Answer one message. Only a cancellation gets out; what was said until then stays in the history."""
        where = message.conversation
        question = await self._perception.perceive(message)
        overheard = self._history.take_overheard(where)
        user = user_message(question, overheard)
        system = system_prompt(self._persona.prompt, name=self._persona.name, conversation=where)
        sender = message.sender
        asker = Asker(sender.user_id, sender.name, sender.role, is_owner=sender.user_id in self._owners)
        speaker = TurnSpeaker(self._delivery, asker, where)
        run = Run(
            id=self._ids.trace(),
            conversation=where,
            asker=asker,
            transcript=transcript(system, self._history.messages(where), user),
            ports={**self._ports, Speaker: speaker},
            heard=lambda: bool(speaker.said),
        )
        state = RunState()
        closing = ""
        try:
            outcome = await self._run(run, state)
            closing = await self._close(message, run, outcome, speaker)
        finally:
            self._store(where, user, state.messages, closing=closing)

    async def _run(self, run: Run, state: RunState) -> Outcome:
        try:
            return await self._engine.run(run, state)
        except Exception as bug:
            logger.exception("run %s broke", run.id)
            return state.outcome(Stop.FAILED, error=f"bug: {type(bug).__name__}")

    async def _close(self, message: MessageReceived, run: Run, outcome: Outcome, speaker: TurnSpeaker) -> str:
        """Say the final words, unless they were said; returns words that the transcript does not have yet."""
        match outcome.stop:
            case Stop.ANSWERED:
                if not already_said(outcome.text, speaker.said):
                    await self._delivery.answer(message, outcome.text)
                return ""
            case Stop.SILENT | Stop.STOPPED:
                return ""
            case Stop.FAILED | Stop.DENIED | Stop.OUT_OF_BUDGET | Stop.INTERRUPTED:
                sorry = SORRY.format(trace=run.id)
                await self._delivery.answer(message, sorry)
                return sorry

    def _store(self, where: Conversation, user: UserMessage, answer: list[Message], *, closing: str) -> None:
        """Keep the round. One that ended without a word is closed, so that the next question follows an answer."""
        messages = list(answer)
        if not messages or not isinstance(messages[-1], AssistantMessage):
            messages.append(AssistantMessage(closing or "(没有回答)"))
        self._history.add_round(where, user, messages)
