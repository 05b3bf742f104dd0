"""One wake from question to last confirmed send: perception -> prompt -> engine -> delivery -> history.

Owns what was already said in the turn, so that nothing is said twice; the asker hears at least one line about every
question, and never an error's own words.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field

from bot.delivery import Delivery
from bot.domain import codec
from bot.domain.actions import Receipt, SendSegment
from bot.domain.chat import AssistantMessage, Message, UserMessage
from bot.domain.errors import InvalidArguments, ToolDenied
from bot.domain.events import Conversation, Identity, MessageReceived, NotAConversation
from bot.domain.journal import OpenTurn, RunResumed, RunSuspended, Suspended, TurnClosed, TurnOpened
from bot.domain.ports import Clock, Ids, Speaker, Store
from bot.domain.run import Asker, Outcome, Stop, SuspendedRun
from bot.domain.suspension import Decision
from bot.domain.trace import current_run
from bot.engine import Engine, Run, RunState
from bot.history import History
from bot.perception import Perception
from bot.policy.permission import may_write_to
from bot.policy.repetition import already_said
from bot.prompt.compose import Question, system_prompt, transcript, user_message

logger = logging.getLogger(__name__)

ALL_SAID = "(已用 send_message 回答)"
NO_ANSWER = "(没有回答)"
SORRY = "抱歉，这次没能回答上来，请稍后再试。（编号 {trace}）"


@dataclass(slots=True)
class TurnSpeaker:
    """The `Speaker` port of one turn: checks the target, says it at once, and remembers that it was said."""

    delivery: Delivery
    turn_id: str
    asker: Asker
    conversation: Conversation
    said: list[str] = field(default_factory=list)

    async def say(self, segments: tuple[SendSegment, ...], *, session: str = "") -> tuple[Receipt, ...]:
        target = self._target(session)
        said = await self.delivery.say(target, segments, turn_id=self.turn_id)
        if target == self.conversation:
            # What QQ never confirmed may still have been read: it is not said again either.
            self.said += [message.words for message in said if message.may_be_read]
        return tuple(message.receipt for message in said)

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
class WaitingTurn:
    """A turn whose run is suspended."""

    question: MessageReceived
    user: UserMessage
    run: SuspendedRun
    said: tuple[str, ...] = ()


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
        store: Store,
        clock: Clock,
        ids: Ids,
        persona: Persona,
        owners: frozenset[int],
        ports: Mapping[type, object],
    ) -> None:
        self._engine = engine
        self._delivery = delivery
        self._perception = perception
        self._history = history
        self._store = store
        self._clock = clock
        self._ids = ids
        self._persona = persona
        self._owners = owners
        self._ports = ports
        self._disowned: set[Identity] = set()
        self._waiting: dict[str, WaitingTurn] = {}

    def disown(self, message: MessageReceived) -> None:
        """The question is not to be answered any more: its turn, when it is cancelled, leaves nothing behind."""
        self._disowned.add(message.identity)

    def abandon(self, where: Conversation, message_id: str) -> None:
        """Give up the suspended turns of a question that was recalled."""
        for turn_id, waiting in list(self._waiting.items()):
            if (waiting.question.conversation, waiting.question.message_id) == (where, message_id):
                del self._waiting[turn_id]
                self._store.put(RunResumed(turn_id), self._closed(turn_id, RunState().outcome(Stop.STOPPED), ()))

    def give_up(self, turn: OpenTurn) -> None:
        """Close a turn of an earlier process that is not tried again after all; it leaves nothing behind."""
        self._store.put(self._closed(turn.turn_id, RunState().outcome(Stop.STOPPED), ()))

    async def take(self, message: MessageReceived, *, retry: OpenTurn | None = None) -> None:
        """Answer one message. Only a cancellation gets out; what was said until then stays in the history.

        A `retry` takes the place of the turn it repeats, with the same words for the model and in one commit, so that
        there is one of them in the history, and one left open, whenever the process ends.
        """
        where = message.conversation
        question = Question(message) if retry else await self._perception.perceive(message)
        await self._history.load(where)
        user = retry.user if retry else user_message(question, self._history.take_overheard(where))
        run, speaker = self._prepare(message, user)
        repeated = retry.turn_id if retry else ""
        opened = TurnOpened(turn_id=run.id, question=message, user=user, at=self._clock.now(), retry_of=repeated)
        replaced = [self._closed(repeated, RunState().outcome(Stop.INTERRUPTED), ())] if retry else []
        await self._store.commit(*replaced, opened)
        state = RunState()
        await self._finish(message, user, run, state, speaker, self._engine.run(run, state))

    async def resume(self, turn_id: str, decisions: Mapping[str, Decision]) -> None:
        """Go on with a suspended turn; what is neither allowed nor denied waits on, or is denied when it has expired.

        It is written down first that the run is not waiting any more, so that it never goes on twice.
        """
        waiting = self._waiting.pop(turn_id, None)
        if waiting is None:
            logger.warning("run %s does not wait (any more)", turn_id)
            return
        asked = {pending.call.id for pending in waiting.run.pending}
        decisions = {call_id: decision for call_id, decision in decisions.items() if call_id in asked}
        await self._store.commit(RunResumed(turn_id))
        message, user = waiting.question, waiting.user
        await self._history.load(message.conversation)
        run, speaker = self._prepare(message, user, run_id=turn_id)
        speaker.said += waiting.said
        state = RunState()
        going_on = self._engine.resume(run, waiting.run, decisions, state)
        await self._finish(message, user, run, state, speaker, going_on)

    def restore(self, suspended: Suspended) -> Conversation | None:
        """Wait again for what an earlier process waited for; where it is asked, None for what cannot be read."""
        try:
            run: SuspendedRun = codec.read(SuspendedRun, suspended.state)
        except codec.Unreadable:
            logger.exception("suspended run %s cannot be read", suspended.turn_id)
            return None
        self._waiting[suspended.turn_id] = WaitingTurn(suspended.question, suspended.user, run)
        return run.conversation

    def waiting(self) -> dict[str, SuspendedRun]:
        """The runs that wait for somebody's word, by turn id."""
        return {turn_id: waiting.run for turn_id, waiting in self._waiting.items()}

    async def _finish(
        self,
        message: MessageReceived,
        user: UserMessage,
        run: Run,
        state: RunState,
        speaker: TurnSpeaker,
        running: Awaitable[Outcome | SuspendedRun],
    ) -> None:
        outcome: Outcome | None = None
        closing, ending = "", False
        try:
            ended = await self._guard(run, state, running)
            if isinstance(ended, SuspendedRun):
                self._suspend(message, user, ended, tuple(speaker.said))
                return
            outcome = ended
            closing = await self._close(message, run, outcome, speaker)
        except asyncio.CancelledError:
            ending = message.identity not in self._disowned
            raise
        finally:
            disowned = message.identity in self._disowned
            self._disowned.discard(message.identity)
            if outcome is not None and not ending:
                self._keep(message.conversation, run, user, state, outcome, closing=closing)
            elif disowned:
                self._drop(run, state)
            # Else it waits, or the process is ending, perhaps with the answer ready and not said: the turn stays open,
            # and the next start decides about it.

    def _suspend(self, message: MessageReceived, user: UserMessage, run: SuspendedRun, said: tuple[str, ...]) -> None:
        self._waiting[run.run_id] = WaitingTurn(message, user, run, said)
        written = codec.write(SuspendedRun, run)
        self._store.put(RunSuspended(turn_id=run.run_id, state=written, expires=run.expires))

    def _prepare(self, message: MessageReceived, user: UserMessage, *, run_id: str = "") -> tuple[Run, TurnSpeaker]:
        where, sender = message.conversation, message.sender
        run_id = run_id or self._ids.trace()
        current_run.set(run_id)  # for the rest of this lane's task
        system = system_prompt(self._persona.prompt, name=self._persona.name, conversation=where)
        asker = Asker(sender.user_id, sender.name, sender.role, is_owner=sender.user_id in self._owners)
        speaker = TurnSpeaker(self._delivery, run_id, asker, where)
        run = Run(
            id=run_id,
            conversation=where,
            asker=asker,
            transcript=transcript(system, self._history.messages(where), user),
            ports={**self._ports, Speaker: speaker},
            heard=lambda: bool(speaker.said),
        )
        return run, speaker

    async def _guard(
        self, run: Run, state: RunState, running: Awaitable[Outcome | SuspendedRun]
    ) -> Outcome | SuspendedRun:
        try:
            return await running
        except Exception as bug:
            logger.exception("run %s broke", run.id)
            return state.outcome(Stop.FAILED, error=f"bug: {type(bug).__name__}")

    async def _close(self, message: MessageReceived, run: Run, outcome: Outcome, speaker: TurnSpeaker) -> str:
        """Say the final words, unless they were said; returns words that the transcript does not have yet."""
        match outcome.stop:
            case Stop.ANSWERED:
                if not already_said(outcome.text, speaker.said):
                    await self._delivery.answer(message, outcome.text, turn_id=run.id)
                return ""
            case Stop.SILENT | Stop.STOPPED:
                return ""
            case Stop.FAILED | Stop.DENIED | Stop.OUT_OF_BUDGET | Stop.INTERRUPTED:
                sorry = SORRY.format(trace=run.id)
                await self._delivery.answer(message, sorry, turn_id=run.id)
                return sorry

    def _keep(
        self,
        where: Conversation,
        run: Run,
        user: UserMessage,
        state: RunState,
        outcome: Outcome,
        *,
        closing: str,
    ) -> None:
        """Keep the round. One that ended without a word is closed, so that the next question follows an answer."""
        answer = list(state.messages)
        if not answer or not isinstance(answer[-1], AssistantMessage):
            answer.append(AssistantMessage(closing or (ALL_SAID if outcome.stop is Stop.SILENT else NO_ANSWER)))
        round_ = self._history.add_round(where, run.id, user, answer)
        self._store.put(self._closed(run.id, outcome, round_))

    def _drop(self, run: Run, state: RunState) -> None:
        self._store.put(self._closed(run.id, state.outcome(Stop.STOPPED), ()))

    def _closed(self, turn_id: str, outcome: Outcome, round_: tuple[Message, ...]) -> TurnClosed:
        return TurnClosed(
            turn_id=turn_id,
            stop=outcome.stop,
            round=round_,
            usage=outcome.usage,
            steps=outcome.steps,
            at=self._clock.now(),
            error=outcome.error,
        )
