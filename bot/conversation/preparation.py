"""What a run begins with: who the bot is, what the model reads, whose authority counts, and what it
may take.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from bot.conversation.perception import Perception
from bot.conversation.suspensions import WaitingTurn
from bot.domain.chat import UserMessage
from bot.domain.events import Conversation, MessageReceived
from bot.domain.journal import OpenTurn
from bot.domain.ports import Ids, Speaker
from bot.domain.run import Asker, Spent
from bot.domain.trace import current_run
from bot.domain.traits import Audience
from bot.engine.engine import Run
from bot.memory.history import History
from bot.policy.authority import asker_of, least
from bot.policy.budget import NOTHING_SPENT, Budget, Limits
from bot.policy.wake import CALLED, Wake
from bot.prompt.compose import Question, showing, system_prompt, transcript, user_message
from bot.prompt.frames import Frames
from bot.prompt.people import People
from bot.prompt.render import plain
from bot.prompt.tidying import tidy
from bot.prompt.voices import voices
from bot.speaking.delivery import Delivery
from bot.speaking.speech import TurnSpeaker


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


@dataclass(frozen=True, slots=True)
class Turn:
    """A question that is being answered: `user` is what the model reads of it."""

    question: Question
    user: UserMessage
    run: Run
    speaker: TurnSpeaker
    wake: Wake = CALLED

    @property
    def message(self) -> MessageReceived:
        """The question itself."""
        return self.question.message


class Preparation:
    """Makes turns of messages. `limits` are those of each question."""

    def __init__(
        self,
        *,
        perception: Perception,
        history: History,
        delivery: Delivery,
        persona: Persona,
        owners: frozenset[int],
        ports: Mapping[type, object],
        limits: Limits,
        ids: Ids,
    ) -> None:
        self._perception = perception
        self._history = history
        self._delivery = delivery
        self._persona = persona
        self._owners = owners
        self._ports = ports
        self._limits = limits
        self._ids = ids

    def become(self, persona: Persona) -> None:
        """Speak as this one from the next turn on."""
        self._persona = persona

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
        where = message.conversation
        question = Question(message, lines=lines)
        if not retry:
            question = await self._perception.perceive(message, lines)
        await self._history.load(where)
        overheard = () if retry else self._history.take_overheard(where)
        user = retry.user if retry else user_message(question, overheard, name=self._persona.name)
        asker = asker_of(
            message,
            owners=self._owners,
            lines=lines,
            quoted=question.quoted,
            forwarded=question.forwarded.lines,
            overheard=overheard,
            earlier=partial(self._voices, where),
        )
        if retry and user != user_message(question):
            # Whose words are in it besides is not known any more.
            asker = replace(asker, authority=Audience.EVERYONE)
        return self._turn(question, user, asker, run_id=self._ids.trace(), wake=wake)

    def go_on(self, turn_id: str, waiting: WaitingTurn) -> Turn:
        """A suspended turn, with no more authority than it had, and what it took and said so far;
        its history must be loaded.
        """
        message, before = waiting.question, waiting.run.asker
        earlier = partial(self._voices, message.conversation)
        asker = asker_of(message, owners=self._owners, earlier=earlier)
        asker = replace(
            asker, authority=before.authority, overheard=least((before.overheard, asker.overheard))
        )
        turn = self._turn(
            Question(message),
            waiting.user,
            asker,
            run_id=turn_id,
            spent=spent_by(waiting),
        )
        turn.speaker.said += waiting.said
        turn.speaker.heard.update(waiting.heard)
        return turn

    async def seeing(self, turn: Turn) -> Run:
        """The run with the pictures of its question, which nothing else gets: neither the journal
        nor the history.
        """
        run, pictures = turn.run, await self._perception.look(turn.question)
        if not pictures:
            return run
        return dataclasses.replace(run, transcript=showing(run.transcript, pictures))

    def _voices(self, where: Conversation) -> frozenset[int]:
        """Who has spoken in what the prompt tells of earlier rounds."""
        return voices(self._history.messages(where), summary=self._history.summary(where))

    def _turn(
        self,
        question: Question,
        user: UserMessage,
        asker: Asker,
        *,
        run_id: str,
        spent: Spent = NOTHING_SPENT,
        wake: Wake = CALLED,
    ) -> Turn:
        message, where = question.message, question.message.conversation
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
            may_be_silent=wake.weak,
        )
        return Turn(question, user, run, speaker, wake)


def spent_by(waiting: WaitingTurn) -> Spent:
    """How much a suspended run took of its budget; an older version wrote down less of it."""
    spent, usage = waiting.run.spent, waiting.run.usage
    return Spent(
        requests=max(spent.requests, waiting.run.steps),
        tokens=max(spent.tokens, usage.prompt + usage.completion),
        sends=max(spent.sends, len(waiting.said)),
    )
