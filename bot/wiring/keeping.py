"""All that is remembered, put together from the settings: rounds and summaries, who has which
number, and the facts that outlive a conversation's window.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bot.conversation.context.prompt_context import PromptContext
from bot.domain.events import Conversation
from bot.domain.memories import Memories, Notebook
from bot.domain.model_messages import Message, ModelRequest
from bot.domain.ports import ChatModel, Clock, Ids, Members, Store
from bot.domain.query_results import Choices
from bot.engine.toolset import Toolset
from bot.memory.attachments import Attachments
from bot.memory.extraction import PICKED_WITHIN, Extraction, OpenTalks
from bot.memory.history import Folding, History
from bot.memory.journal_observers import shown_first
from bot.memory.personas import Cast, Persona, Personas
from bot.memory.remembering import Remembering
from bot.memory.speakers import Speakers
from bot.memory.summaries import SUMMED_UP_WITHIN, Summaries
from bot.policy.tokens import estimate, estimate_text
from bot.prompt.compose import system_prompt
from bot.prompt.prompt_language import WORDINGS
from bot.prompt.stored_rounds import tell_round
from bot.wiring.models import told_of_history
from bot.wiring.mouth import owners_tongue
from bot.wiring.resources import Resources
from config.settings import Settings

LONGEST = 3600.0  # seconds, where a model has no limit: the most that LLM_FIRST_TOKEN takes


@dataclass(frozen=True, slots=True)
class Keeping:
    """`store` shows what is written to who picks facts from it. `around` is what stands before a
    conversation, which has `room` for so many estimated tokens, with each persona.
    """

    personas: Personas
    store: Store
    history: History
    prompt_context: PromptContext
    summaries: Summaries
    around: Callable[[Conversation], ModelRequest]
    room: Callable[[], float]
    extraction: Extraction | None = None
    ports: dict[type, object] = field(default_factory=dict)

    @asynccontextmanager
    async def open(self, quiet: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
        """Let summaries be made, and facts be picked once it is `quiet`, while the block runs."""
        async with self.summaries.open():
            if self.extraction is None:
                yield
            else:
                async with self.extraction.open(quiet):
                    yield


def patience_with(first_token: float, *, writing: float) -> float:
    """Seconds that a quiet request may take, so many for `writing` its answer, where a model may
    take so many to begin it; 0 is no limit, which nothing is here.
    """
    return writing + (first_token or LONGEST)


def build_keeping(
    settings: Settings,
    personas: Personas,
    means: Resources,
    attachments: Attachments,
    choices: Choices,
    *,
    store: Store,
    facts: Memories,
    is_spent: Callable[[str], bool],
    clock: Clock,
    ids: Ids,
) -> Keeping:
    """The memory of all conversations, with the `facts` that are kept and the names of `things`."""
    cheap, speakers = means.models.cheap, Speakers(store=store)
    remembering = extraction = None
    ports: dict[type, object] = {Members: speakers}
    if settings.bot_memory:
        remembering = ports[Notebook] = build_remembering(
            settings, facts, speakers, store, clock=clock, ids=ids
        )
        extraction = build_extraction(
            settings, cheap, remembering, speakers, store, choices, is_spent, clock
        )
        store = shown_first(store, extraction)
    summaries = Summaries(
        model=cheap,
        store=store,
        clock=clock,
        one_by_one=settings.llm_parallel == 1,
        continues=settings.cheap_models == settings.main_models,
        is_spent=is_spent,
        patience=patience_with(settings.llm_first_token, writing=SUMMED_UP_WITHIN),
    )
    toolset = means.staff.toolset
    most = most_around(personas.cast, toolset)
    room = told_of_history(means.models.main, most, most=settings.bot_history_tokens)
    by_member = settings.bot_scope == "member"
    history = build_history(
        personas,
        speakers,
        attachments,
        store=store,
        room=room,
        folding=summaries,
        by_member=by_member,
    )
    prompt_context = PromptContext(history=history, speakers=speakers, remembering=remembering)

    def around(where: Conversation) -> ModelRequest:
        return around_of(personas.of(where), toolset)

    kept = personas, store, history, prompt_context, summaries
    return Keeping(*kept, around, room, extraction, ports)


def build_remembering(
    settings: Settings, facts: Memories, speakers: Speakers, store: Store, *, clock: Clock, ids: Ids
) -> Remembering:
    """Who keeps the facts; owners are asked in their language."""
    return Remembering(
        memories=facts,
        speakers=speakers,
        store=store,
        clock=clock,
        ids=ids,
        tongue=owners_tongue(settings),
    )


def build_extraction(
    settings: Settings,
    model: ChatModel,
    remembering: Remembering,
    speakers: Speakers,
    store: Store,
    choices: Choices,
    is_spent: Callable[[str], bool],
    clock: Clock,
) -> Extraction:
    """Who picks the facts; what it had not come to is written down where `choices` are read."""
    return Extraction(
        model=model,
        remembering=remembering,
        speakers=speakers,
        store=store,
        clock=clock,
        open_talks=OpenTalks(store=store, choices=choices, clock=clock),
        is_spent=is_spent,
        patience=patience_with(settings.llm_first_token, writing=PICKED_WITHIN),
    )


def around_of(who: Persona, toolset: Toolset) -> ModelRequest:
    """The most that stands before a conversation: the system prompt and the tools."""
    longest = max(WORDINGS, key=lambda words: estimate_text(words.rules))
    system = system_prompt(who.prompt, name=who.name, words=longest)
    return ModelRequest((system, *who.examples), toolset.all_definitions())


def most_around(cast: Cast, toolset: Toolset) -> ModelRequest:
    """The same for the persona with the most words."""
    every = (cast.usual, *cast.others.values())
    return max((around_of(who, toolset) for who in every), key=estimate)


def build_history(
    personas: Personas,
    speakers: Speakers,
    attachments: Attachments | None = None,
    *,
    store: Store,
    room: Callable[[], float],
    folding: Folding | None = None,
    by_member: bool = False,
) -> History:
    """The memory, with as much room as the model leaves beside the system prompt and the tools."""

    def told(where: Conversation, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        return tell_round(personas.of(where).names, where, messages)

    return History(
        store=store,
        room=room,
        told=told,
        folding=folding,
        speakers=speakers,
        by_member=by_member,
        attachments=attachments,
    )
