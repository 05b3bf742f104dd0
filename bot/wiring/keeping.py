"""All that is remembered, put together from the settings: rounds and summaries, who has which
number, and the facts that outlive a conversation's window.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from bot.conversation.preparation import Persona
from bot.conversation.telling import Telling
from bot.domain.chat import ModelRequest
from bot.domain.notebook import Memories, Notebook
from bot.domain.ports import Clock, Ids, Members, Store
from bot.engine.toolset import Toolset
from bot.memory.extraction import Extraction
from bot.memory.history import Folding, History
from bot.memory.remembering import Remembering
from bot.memory.speakers import Speakers
from bot.memory.summaries import Summaries
from bot.memory.things import Things
from bot.memory.witnesses import WitnessedStore
from bot.policy.tokens import estimate_text
from bot.prompt.compose import system_prompt
from bot.prompt.language import WORDINGS
from bot.prompt.older_rounds import told_today
from bot.wiring.means import Means
from bot.wiring.models import told_of_history
from config.settings import Settings


@dataclass(frozen=True, slots=True)
class Keeping:
    """`store` shows what is written to who picks facts from it. `around` is what stands before
    every conversation, which has `room` for so many estimated tokens.
    """

    store: Store
    history: History
    telling: Telling
    summaries: Summaries
    around: ModelRequest
    room: Callable[[], float]
    extraction: Extraction | None = None
    ports: dict[type, object] = field(default_factory=dict)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Let summaries be made, and facts be picked, while the block runs."""
        async with self.summaries.open():
            if self.extraction is None:
                yield
            else:
                async with self.extraction.open():
                    yield


def build_keeping(
    settings: Settings,
    who: Persona,
    means: Means,
    things: Things,
    *,
    store: Store,
    facts: Memories,
    clock: Clock,
    ids: Ids,
) -> Keeping:
    """The memory of all conversations, with the `facts` that are kept and the names of `things`."""
    cheap, speakers = means.models.cheap, Speakers(store=store)
    remembering = extraction = None
    ports: dict[type, object] = {Members: speakers}
    if settings.bot_memory:
        remembering = ports[Notebook] = Remembering(
            memories=facts, speakers=speakers, store=store, clock=clock, ids=ids
        )
        extraction = Extraction(
            model=cheap, remembering=remembering, speakers=speakers, store=store, clock=clock
        )
        store = WitnessedStore(store, (extraction,))
    one_by_one = settings.llm_parallel == 1
    summaries = Summaries(model=cheap, store=store, clock=clock, one_by_one=one_by_one)
    around = around_of(who, means.staff.toolset)
    room = told_of_history(means.models.main, around, most=settings.bot_history_tokens)
    by_member = settings.bot_scope == "member"
    history = build_history(
        who, speakers, things, store=store, room=room, folding=summaries, by_member=by_member
    )
    telling = Telling(history=history, speakers=speakers, remembering=remembering)
    return Keeping(store, history, telling, summaries, around, room, extraction, ports)


def around_of(who: Persona, toolset: Toolset) -> ModelRequest:
    """What stands before every conversation at most: the system prompt and the tools."""
    longest = max(WORDINGS, key=lambda words: estimate_text(words.rules))
    system = system_prompt(who.prompt, name=who.name, words=longest)
    return ModelRequest((system,), toolset.all_definitions())


def build_history(
    who: Persona,
    speakers: Speakers,
    things: Things | None = None,
    *,
    store: Store,
    room: Callable[[], float],
    folding: Folding | None = None,
    by_member: bool = False,
) -> History:
    """The memory, with as much room as the model leaves beside the system prompt and the tools."""
    return History(
        store=store,
        room=room,
        told=partial(told_today, who.names, speakers),
        folding=folding,
        speakers=speakers,
        by_member=by_member,
        things=things,
    )
