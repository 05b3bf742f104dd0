"""The beginning of a run: its persona, what the model reads, whose authority counts, and its
budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from bot.conversation.context.perception import Perception
from bot.conversation.context.prompt_context import PromptContext, words_of
from bot.conversation.turns.suspensions import WaitingTurn
from bot.conversation.turns.turn_budget import TurnBudget, told_on
from bot.core.events import MessageReceived
from bot.core.group_admin import Chair, Topic
from bot.core.journal import OpenTurn
from bot.core.segments import Forward
from bot.core.task_context import current_run, early_payer
from bot.memory.personas import Persona, Personas
from bot.memory.remembering import NOTHING_RECALLED, Recalled
from bot.outbox.delivery import Delivery
from bot.outbox.turn_speaker import TurnSpeaker
from bot.policy.approval import quote_in
from bot.policy.day_limits import LimitLevel
from bot.policy.fallback_replies import language_of
from bot.policy.permissions import acts_as_owner, asker_of, highest_authority
from bot.policy.silence import keeps_silent
from bot.policy.wake import CALLED, Wake
from bot.prompt.answer_cleanup import clean_message
from bot.prompt.compose import (
    NO_TALK,
    OverheardTalk,
    Question,
    now_facts,
    now_line,
    system_prompt,
    transcript,
    with_pictures,
)
from bot.prompt.echo_detection import PromptEcho, example_rounds, repeated_answer
from bot.prompt.frame_removal import FrameRemover
from bot.prompt.participants import Participants
from bot.prompt.render import View, plain
from bot.prompt.summary import outside_tools_in
from bot.prompt.wording import Wording
from frostagent.engine.authority import lowest_authority
from frostagent.engine.budget import NOTHING_SPENT
from frostagent.engine.engine import Run
from frostagent.types.conversation import Conversation
from frostagent.types.messages import Message, UserMessage
from frostagent.types.ports import Ids, Speaker
from frostagent.types.runs import Asker, Spent, Terms
from frostagent.types.speech import Quote
from frostagent.types.traits import Audience


class Turn(Struct, frozen=True):
    """A question that is being answered: `user` is what the model reads of it, and behind it what
    is so `now`; it `sees` pictures, where anybody does. So many messages of its transcript stand
    `before` the rounds.
    """

    question: Question
    user: UserMessage
    run: Run
    speaker: TurnSpeaker
    view: View
    wake: Wake = CALLED
    recalled: tuple[str, ...] = ()
    sees: bool = True
    before: int = 1
    now: str = ""

    @property
    def message(self) -> MessageReceived:
        """The question itself."""
        return self.question.message

    @property
    def words(self) -> Wording:
        """The language it is told in."""
        return self.view.words


class ContextBuilder:
    """Makes turns of messages; `turn_budget` says what each may take."""

    def __init__(
        self,
        *,
        perception: Perception,
        prompt_context: PromptContext,
        delivery: Delivery,
        personas: Personas,
        owners: frozenset[int],
        ports: Mapping[type, object],
        turn_budget: TurnBudget,
        ids: Ids,
    ) -> None:
        self._perception = perception
        self._prompt_context = prompt_context
        self._delivery = delivery
        self._personas = personas
        self._owners = owners
        self._ports = ports
        self._turn_budget = turn_budget
        self._ids = ids

    async def begin(
        self,
        message: MessageReceived,
        retry: OpenTurn | None,
        *,
        lines: tuple[MessageReceived, ...] = (),
        wake: Wake = CALLED,
    ) -> Turn:
        """A new turn; a `retry` has the same words for the model as the turn it repeats. A run of a
        weak `wake` may end without words.
        """
        where, run_id = message.conversation, self._ids.trace()
        current_run.set(run_id)  # for the rest of this lane's task
        question = Question(message, lines=retry.lines if retry else lines)
        if not retry:
            payer = early_payer.set((where, wake.payer(message.sender.user_id)))
            try:
                question = await self._perception.perceive(message, lines)
            finally:
                early_payer.reset(payer)
        question, talk, recalled = await remember(
            self._prompt_context, question, is_retry=retry is not None
        )
        who = self._personas.of(where)
        told = (
            partial(str, retry.user.text) if retry else partial(words_of, question, talk, who.names)
        )
        view = self._prompt_context.view(where, told, language=who.language)
        user = retry.user if retry else self._prompt_context.render(question, talk, view)
        asker = asker_of(
            question.message,
            owners=self._owners,
            lines=question.lines,
            quoted=question.quoted,
            forwarded=question.forwarded.lines,
            overheard=(*talk.messages, *talk.replies.values()),
            earlier=lambda: self._prompt_context.voices(where) | recalled.authors,
        )
        if retry and not is_alone(message, retry.user):
            # Whose words are in it besides is not known any more.
            asker = replace(asker, authority=Audience.EVERYONE)
        return self._turn(
            question,
            user,
            asker,
            run_id=run_id,
            view=view,
            wake=wake,
            rung=self._turn_budget.rung(where, wake.payer(asker.user_id)),
            recalled=recalled.lines,
        )

    def go_on(self, turn_id: str, waiting: WaitingTurn) -> Turn:
        """A suspended turn, with no more authority than it had, and what it took and said so far;
        its history must be loaded.
        """
        message, before = waiting.question, waiting.run.asker
        where = message.conversation
        current_run.set(turn_id)
        earlier = partial(self._prompt_context.voices, where)
        asker = asker_of(message, owners=self._owners, earlier=earlier)
        asker = replace(
            asker,
            authority=before.authority,
            overheard=lowest_authority((before.overheard, asker.overheard)),
            voices=before.voices,
        )
        turn = self._turn(
            Question(message),
            waiting.user,
            asker,
            run_id=turn_id,
            view=self._prompt_context.view(
                where, partial(str, waiting.user.text), language=self._personas.of(where).language
            ),
            rung=self._turn_budget.rung_of(turn_id),
            spent=spent_by(waiting),
        )
        turn.speaker.said += waiting.said
        turn.speaker.heard.update(waiting.heard)
        return turn

    def _ports_of(self, message: MessageReceived, speaker: TurnSpeaker) -> dict[type, object]:
        ports = {**self._ports, Speaker: speaker}
        if Chair in ports and message.conversation.is_group:
            ports[Topic] = Topic(quote_in(message))
        return ports

    def _terms(self, where: Conversation, who: Persona) -> Terms:
        """Which tools are there: the same in each run of a conversation, so that prompts begin
        alike.
        """
        return Terms(
            who.denied, self._personas.audiences(where), highest_authority(where, self._owners)
        )

    async def seeing(self, turn: Turn) -> Run:
        """The run with the moment and the pictures of its question, which nothing else gets:
        neither the journal nor the history.
        """
        run = turn.run
        pictures = await self._perception.look(turn.question) if turn.sees else ()
        now = now_line(turn.now, turn.words, turn.recalled)
        shown = with_pictures(run.transcript, pictures, words=turn.words, now=now)
        return replace(run, transcript=shown)

    def _turn(
        self,
        question: Question,
        user: UserMessage,
        asker: Asker,
        *,
        run_id: str,
        view: View,
        rung: LimitLevel,
        spent: Spent = NOTHING_SPENT,
        wake: Wake = CALLED,
        recalled: tuple[str, ...] = (),
    ) -> Turn:
        message, where = question.message, question.message.conversation
        sees = self._perception.sees and rung < LimitLevel.PLAIN
        who, words = self._personas.of(where), view.words
        rounds, before = told_on(rung, self._prompt_context.rounds(where)), 1 + len(who.examples)
        system = system_prompt(who.prompt, name=who.name, words=words, sees=sees)
        summary = self._prompt_context.summary(where)
        asker = replace(asker, read=outside_tools_in(summary)) if summary else asker
        read = transcript(system, rounds, user, words=words, summary=summary, examples=who.examples)
        told = replace(message, group_name="") if acts_as_owner(asker) else message
        doubts = doubts_of(told, view, read, rounds)
        silence = partial(keeps_silent, asked=doubts.asked, weak=wake.weak)
        frames = FrameRemover(who.names, number=where.platform_id, people=Participants.of(read))
        budget = self._turn_budget.budget(run_id, spent)
        speaker = TurnSpeaker(self._delivery, run_id, asker, where, frames, budget)
        speaker.question = message.message_id if message.has_identity else ""
        run = Run(
            id=run_id,
            conversation=where,
            asker=asker,
            transcript=read,
            counted=self._prompt_context.counted(where, before),
            asked=tuple(one.message_id for one in question.said if one.has_identity),
            ports=self._ports_of(message, speaker),
            heard=lambda: bool(speaker.said),
            tidy=partial(
                clean_message, frames, question=doubts.asked, now=doubts.now, is_silence=silence
            ),
            doubts=lambda text: doubts.has(text) or frames.may_be_anothers(text),
            silence=silence,
            examples=example_rounds(words),
            share=budget.share(),
            may_be_silent=wake.weak,
            model=who.model,
            temperature=who.temperature,
            terms=self._terms(where, who),
            tongue=language_of(message),
            leaner=self._turn_budget.leaner,
            notices=words.notices,
        )
        now = doubts.now
        return Turn(question, user, run, speaker, view, wake, recalled, sees, before, now)


def doubts_of(
    message: MessageReceived, view: View, read: Sequence[Message], rounds: Sequence[Message]
) -> PromptEcho:
    """Which answers to this question may be nothing but a part of what was read."""
    return PromptEcho(
        read,
        asked=plain(message.segments, view, self_id=message.self_id),
        now=now_facts(message, view),
        day=view.date(message.time),
        place=message.group_name,
        twice=repeated_answer(rounds),
    )


async def remember(
    prompt_context: PromptContext, question: Question, *, is_retry: bool
) -> tuple[Question, OverheardTalk, Recalled]:
    """Have the history at hand, and with it the question as it is told, what was overheard
    before it, and the facts that it is about; once more where all was let go of meanwhile, as
    when somebody is forgotten.
    """
    where, reader = question.message.conversation, question.message.sender.user_id
    while True:
        age = prompt_context.times_let_go
        await prompt_context.load(where)
        talk = NO_TALK if is_retry else prompt_context.take_talk(where, reader)
        named, recalled = prompt_context.named(question), NOTHING_RECALLED
        if not is_retry:
            recalled = await prompt_context.recalled(question.message)
        talk = await prompt_context.with_replies(named, talk)
        if age == prompt_context.times_let_go:
            break
    if not is_retry:  # the journal counts as read all that is overheard until the turn opens
        talk = prompt_context.with_more(talk, where, reader)
    return named, talk, recalled


def is_alone(message: MessageReceived, user: UserMessage) -> bool:
    """Whether what was rendered has nobody's words but those of this question."""
    passes_on = any(isinstance(segment, Quote | Forward) for segment in message.segments)
    return user.sources == (message.message_id,) and not passes_on


def spent_by(waiting: WaitingTurn) -> Spent:
    """How much a suspended run took of its budget; an older version wrote down less of it."""
    spent, usage = waiting.run.spent, waiting.run.usage
    return Spent(
        requests=max(spent.requests, waiting.run.steps),
        tokens=max(spent.tokens, usage.prompt + usage.completion),
        sends=max(spent.sends, len(waiting.said)),
    )
