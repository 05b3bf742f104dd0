"""One wake from question to last confirmed send: perception -> prompt -> engine -> delivery ->
history.

What was said in the middle of the turn (`bot/speaking/speech.py`) is not said again; the asker
hears at least one line about every question, and never an error's own words. What QQ did not
confirm of the final words is noted behind them in the round, so that the next prompt says it,
before a restart and after one; never in words of the model's own, which it repeats.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from functools import partial

from cachetools import LRUCache
from msgspec.structs import replace

from bot.conversation.approvals import Approvals
from bot.conversation.perception import Perception
from bot.domain import codec
from bot.domain.actions import Refused
from bot.domain.chat import AssistantMessage, Message, UserMessage
from bot.domain.events import Conversation, Identity, MessageReceived
from bot.domain.journal import (
    Entry,
    OpenTurn,
    RunResumed,
    RunSuspended,
    Suspended,
    TurnClosed,
    TurnOpened,
)
from bot.domain.ports import Clock, Ids, Speaker, Store
from bot.domain.run import Asker, Outcome, Spent, Stop, SuspendedRun
from bot.domain.suspension import Decision, Deny
from bot.domain.trace import current_run
from bot.domain.traits import Audience
from bot.engine.engine import Engine, Run, RunState
from bot.engine.transcripts import close_suspended
from bot.memory.history import History
from bot.policy.already_said import already_said
from bot.policy.authority import asker_of, least
from bot.policy.budget import NO_LIMITS, NOTHING_SPENT, Budget, Limits
from bot.policy.refusals import is_too_long
from bot.prompt import notes
from bot.prompt.compose import Question, showing, system_prompt, transcript, user_message
from bot.prompt.frames import Frames
from bot.prompt.people import People
from bot.prompt.render import plain
from bot.prompt.tidying import tidy
from bot.prompt.voices import voices
from bot.speaking.delivery import Delivery, note_on
from bot.speaking.speech import Heard, TurnSpeaker

logger = logging.getLogger(__name__)

SORRY = "抱歉，这次没能回答上来，请稍后再试。（编号 {trace}）"
TOO_LONG = "抱歉，回答太长，QQ 没让我发出来。请让我说得短一些，再问一次。"
NOT_PROMISED = "what was allowed cannot be written down at the moment, so it was not done; it may be asked for later"
MAX_DISOWNED = 1000


@dataclass(frozen=True, slots=True)
class WaitingTurn:
    """A turn whose run is suspended."""

    question: MessageReceived
    user: UserMessage
    run: SuspendedRun
    said: tuple[str, ...] = ()
    heard: Mapping[Conversation, Heard] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Persona:
    """Who the bot is in its chats: its system prompt, the name it goes by, and what else it is
    called.
    """

    prompt: str
    name: str
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All that it is called."""
        return (self.name, *self.aliases)


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
        approvals: Approvals,
        ports: Mapping[type, object],
        limits: Limits = NO_LIMITS,
    ) -> None:
        """`limits` are those of each question."""
        self._engine = engine
        self._delivery = delivery
        self._perception = perception
        self._history = history
        self._store = store
        self._clock = clock
        self._ids = ids
        self._persona = persona
        self._owners = owners
        self._approvals = approvals
        self._ports = ports
        self._limits = limits
        self._disowned: LRUCache[Identity, None] = LRUCache(MAX_DISOWNED)
        self._waiting: dict[str, WaitingTurn] = {}

    def become(self, persona: Persona) -> None:
        """Speak as this one from the next turn on."""
        self._persona = persona

    def disown(self, message: MessageReceived) -> None:
        """The question is not to be answered any more: its turn, when it is cancelled, leaves
        nothing behind.
        """
        self._disowned[message.identity] = None

    def abandon(self, where: Conversation, message_id: str) -> None:
        """Give up the suspended turns of a question that was recalled."""
        for turn_id, waiting in list(self._waiting.items()):
            if (waiting.question.conversation, waiting.question.message_id) == (where, message_id):
                del self._waiting[turn_id]
                self.supersede(turn_id)
                self._approvals.close(turn_id)

    def give_up(self, turn: OpenTurn) -> None:
        """Close a turn of an earlier process that is not tried again after all; it leaves nothing
        behind.
        """
        self._store.put(self._closed(turn.turn_id, RunState().outcome(Stop.STOPPED), ()))

    def supersede(self, turn_id: str) -> None:
        """Close a suspended turn that does not go on; it leaves nothing behind."""
        self._store.put(
            RunResumed(turn_id), self._closed(turn_id, RunState().outcome(Stop.STOPPED), ())
        )

    async def take(self, message: MessageReceived, *, retry: OpenTurn | None = None) -> None:
        """Answer one message. Only a cancellation gets out; what was said until then stays in the
        history.

        A `retry` takes the place of the turn it repeats, with the same words for the model and in
        one commit, so that there is one of them in the history, and one left open, whenever the
        process ends.
        """
        where = message.conversation
        question = Question(message) if retry else await self._perception.perceive(message)
        await self._history.load(where)
        overheard = () if retry else self._history.take_overheard(where)
        user = retry.user if retry else user_message(question, overheard, name=self._persona.name)
        asker = asker_of(
            message,
            owners=self._owners,
            quoted=question.quoted,
            forwarded=question.forwarded,
            overheard=overheard,
            earlier=partial(self._voices, where),
        )
        if retry and user != user_message(
            question
        ):  # whose words are in it besides is not known any more
            asker = replace(asker, authority=Audience.EVERYONE)
        run, speaker = self._prepare(message, user, asker)
        repeated = retry.turn_id if retry else ""
        opened = TurnOpened(
            turn_id=run.id, question=message, user=user, at=self._clock.now(), retry_of=repeated
        )
        replaced = (
            [self._closed(repeated, RunState().outcome(Stop.INTERRUPTED), ())] if retry else []
        )
        state = RunState()
        await self._finish(
            message, user, run, state, speaker, self._begin(run, question, state, *replaced, opened)
        )

    async def _begin(
        self, run: Run, question: Question, state: RunState, *entries: Entry
    ) -> Outcome | SuspendedRun:
        await self._store.commit(*entries)
        return await self._engine.run(await self._seeing(run, question), state)

    async def _seeing(self, run: Run, question: Question) -> Run:
        """The run with the pictures of its question, which nothing else gets: neither the journal
        nor the history.
        """
        pictures = await self._perception.look(question)
        return (
            dataclasses.replace(run, transcript=showing(run.transcript, pictures))
            if pictures
            else run
        )

    async def resume(self, turn_id: str, decisions: Mapping[str, Decision]) -> None:
        """Go on with a suspended turn; what is not decided waits on, or is denied when it has
        expired.
        """
        if turn_id in self._waiting:
            await self._history.load(self._waiting[turn_id].question.conversation)
        waiting = self._waiting.pop(turn_id, None)
        if waiting is None:
            logger.warning("run %s does not wait (any more)", turn_id)
            return
        asked = {pending.call.id for pending in waiting.run.pending}
        decisions = {
            call_id: decision for call_id, decision in decisions.items() if call_id in asked
        }
        message, user = waiting.question, waiting.user
        before = waiting.run.asker
        asker = asker_of(
            message, owners=self._owners, earlier=partial(self._voices, message.conversation)
        )
        asker = replace(
            asker, authority=before.authority, overheard=least((before.overheard, asker.overheard))
        )
        run, speaker = self._prepare(message, user, asker, run_id=turn_id, spent=spent_by(waiting))
        speaker.said += waiting.said
        speaker.heard.update(waiting.heard)
        # Should it turn out that it cannot go on, this is what is left of it.
        state = RunState(list(close_suspended(waiting.run)), waiting.run.usage, waiting.run.steps)
        going_on = self._go_on(run, Question(message), waiting.run, decisions, state)
        await self._finish(message, user, run, state, speaker, going_on)

    async def _go_on(
        self,
        run: Run,
        question: Question,
        suspended: SuspendedRun,
        decisions: Mapping[str, Decision],
        state: RunState,
    ) -> Outcome | SuspendedRun:
        """First it is written down that the run is not waiting any more, so that nothing is ever
        allowed twice.

        Where that cannot be promised nothing is allowed.
        """
        if not await self._store.commit(RunResumed(run.id)):
            decisions = {
                id_: it if isinstance(it, Deny) else Deny(NOT_PROMISED)
                for id_, it in decisions.items()
            }
        return await self._engine.resume(
            await self._seeing(run, question), suspended, decisions, state
        )

    def restore(self, suspended: Suspended) -> Conversation | None:
        """Wait again for what an earlier process waited for; where it is asked, None for what
        cannot be read.

        That will never go on: its turn is closed.
        """
        try:
            run: SuspendedRun = codec.read(SuspendedRun, suspended.state)
        except codec.Unreadable:
            logger.exception("suspended run %s cannot be read", suspended.turn_id)
            interrupted = RunState().outcome(
                Stop.INTERRUPTED, error="interrupted: what was suspended cannot be read"
            )
            round_ = (suspended.user, *notes.unanswered(notes.UNANSWERED, ()))
            self._store.put(
                RunResumed(suspended.turn_id), self._closed(suspended.turn_id, interrupted, round_)
            )
            return None
        numbered = self._approvals.restore(run, suspended.question)
        if numbered != run:
            self._put_down(suspended.turn_id, numbered)
        self._waiting[suspended.turn_id] = WaitingTurn(
            suspended.question, suspended.user, numbered, suspended.said
        )
        return run.conversation

    def question(self, turn_id: str) -> MessageReceived | None:
        """What a suspended turn was asked; None where it does not wait (any more)."""
        waiting = self._waiting.get(turn_id)
        return waiting.question if waiting else None

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
        closing, note, ending = "", "", False
        try:
            ended = await self._guard(run, state, running)
            if isinstance(ended, SuspendedRun):
                self._suspend(message, user, ended, speaker)
                return
            outcome = ended
            closing, note = await self._close(message, run, outcome, speaker)
        except asyncio.CancelledError:
            ending = message.identity not in self._disowned
            raise
        finally:
            disowned = message.identity in self._disowned
            self._disowned.pop(message.identity, None)
            if outcome is not None and not ending:
                self._keep(
                    message.conversation, run, user, state, outcome, closing=closing, note=note
                )
                self._approvals.close(run.id)
            elif disowned:
                self._drop(run, state)
                self._approvals.close(run.id)
            # Else it waits, or the process is ending, perhaps with the answer ready and not said:
            # the turn stays open, and the next start decides about it.

    def _suspend(
        self, message: MessageReceived, user: UserMessage, run: SuspendedRun, speaker: TurnSpeaker
    ) -> None:
        run = self._approvals.number(run)
        self._waiting[run.run_id] = WaitingTurn(
            message, user, run, tuple(speaker.said), speaker.heard
        )
        self._put_down(run.run_id, run)
        self._approvals.ask(run, message)

    def _put_down(self, turn_id: str, run: SuspendedRun) -> None:
        written = codec.write(run)
        self._store.put(RunSuspended(turn_id=turn_id, state=written, expires=run.expires))

    def _voices(self, where: Conversation) -> frozenset[int]:
        """Who has spoken in what the prompt tells of earlier rounds."""
        return voices(self._history.messages(where), summary=self._history.summary(where))

    def _prepare(
        self,
        message: MessageReceived,
        user: UserMessage,
        asker: Asker,
        *,
        run_id: str = "",
        spent: Spent = NOTHING_SPENT,
    ) -> tuple[Run, TurnSpeaker]:
        where = message.conversation
        run_id = run_id or self._ids.trace()
        current_run.set(run_id)  # for the rest of this lane's task
        system = system_prompt(self._persona.prompt, name=self._persona.name, conversation=where)
        read = transcript(
            system, self._history.messages(where), user, summary=self._history.summary(where)
        )
        asked = plain(message.segments, self_id=message.self_id)
        frames = Frames(self._persona.names, number=where.platform_id, people=People.of(read))
        budget = Budget(self._limits, spent)
        speaker = TurnSpeaker(self._delivery, run_id, asker, where, frames, budget)
        run = Run(
            id=run_id,
            conversation=where,
            asker=asker,
            transcript=read,
            ports={**self._ports, Speaker: speaker},
            heard=lambda: bool(speaker.said),
            tidy=partial(tidy, frames, question=asked),
            share=budget.share(),
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

    async def _close(
        self, message: MessageReceived, run: Run, outcome: Outcome, speaker: TurnSpeaker
    ) -> tuple[str, str]:
        """Say the final words, unless they were said; words that the transcript does not have yet,
        a note on them.
        """
        match outcome.stop:
            case Stop.ANSWERED:
                if already_said(outcome.text, speaker.said):
                    return "", ""
                return "", await self._answer(message, run, outcome.text)
            case Stop.SILENT | Stop.STOPPED:
                return "", ""
            case Stop.FAILED | Stop.DENIED | Stop.OUT_OF_BUDGET | Stop.INTERRUPTED:
                sorry = SORRY.format(trace=run.id)
                return sorry, await self._answer(message, run, sorry)

    async def _answer(self, message: MessageReceived, run: Run, words: str) -> str:
        """Say these as the answer, or why they cannot be said; what the model should know of their
        delivery.
        """
        said = await self._delivery.answer(message, words, turn_id=run.id)
        if any(
            isinstance(one.receipt, Refused) and is_too_long(one.receipt.reason) for one in said
        ):
            await self._delivery.answer(message, TOO_LONG, turn_id=run.id)
        return note_on(said)

    def _keep(
        self,
        where: Conversation,
        run: Run,
        user: UserMessage,
        state: RunState,
        outcome: Outcome,
        *,
        closing: str,
        note: str,
    ) -> None:
        """Keep the round. What became of the answer is noted behind it, and that there was none."""
        answer = list(state.messages)
        if (
            not (answer and isinstance(answer[-1], AssistantMessage))
            and outcome.stop is not Stop.SILENT
        ):
            answer += (
                (AssistantMessage(closing),)
                if closing
                else notes.unanswered(notes.UNANSWERED, answer)
            )
        if note:
            answer.append(notes.note(note))
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


def spent_by(waiting: WaitingTurn) -> Spent:
    """What a suspended run took of its budget; an older version wrote down less of it."""
    spent, usage = waiting.run.spent, waiting.run.usage
    return Spent(
        requests=max(spent.requests, waiting.run.steps),
        tokens=max(spent.tokens, usage.prompt + usage.completion),
        sends=max(spent.sends, len(waiting.said)),
    )
