"""What stands before every conversation, system prompt and tools, and the room it leaves."""

from __future__ import annotations

from collections.abc import Callable

from bot.memory.personas import Cast, Persona
from bot.prompt.compose import system_prompt
from bot.prompt.prompt_language import WORDINGS
from frostagent.engine.toolset import Toolset
from frostagent.models.compaction import history_room
from frostagent.models.failover import Failover
from frostagent.models.tokens import estimate, estimate_text
from frostagent.types.messages import ModelRequest


def longest_head(persona: Persona, toolset: Toolset) -> ModelRequest:
    """The longest system prompt of a persona, in whichever language, and all tools."""
    longest = max(WORDINGS, key=lambda words: estimate_text(words.rules))
    system = system_prompt(persona.prompt, name=persona.name, words=longest)
    return ModelRequest((system, *persona.examples), toolset.all_definitions())


def longest_head_of_all(cast: Cast, toolset: Toolset) -> ModelRequest:
    """The same for the persona with the longest prompt."""
    every = (cast.usual, *cast.others.values())
    return max((longest_head(who, toolset) for who in every), key=estimate)


def history_room_of(model: Failover, head: ModelRequest, *, most: int) -> Callable[[], float]:
    """A function that returns how many estimated tokens of a conversation the next prompt has room
    for after this head: `most`, or less if the model's window is small.
    """
    size = estimate(head)

    def room() -> float:
        upstream = model.first(head)
        return history_room(most, window=upstream.window, scale=upstream.scale.factor, around=size)

    return room
