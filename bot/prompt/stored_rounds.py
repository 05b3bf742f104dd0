"""Prepares stored rounds for the prompt. Frame and echoes are removed as from new answers,
including those that show only in the context of the round. Pure.
"""

from __future__ import annotations

from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.policy.fallback_replies import is_fallback_reply
from bot.prompt import render
from bot.prompt.answer_cleanup import clean_message, is_clean_call
from bot.prompt.frame_removal import FrameRemover
from bot.prompt.participants import Participants
from bot.prompt.wording_zh import ZH
from frostagent.types.messages import AssistantMessage, Message


def tell_round(
    names: tuple[str, ...], where: Conversation, messages: tuple[Message, ...]
) -> tuple[Message, ...]:
    """Return the round as the model reads it, with a note if no answer is left; the same object if
    nothing is removed. `names` are the bot's.
    """
    frames = FrameRemover(names, where.platform_id)
    if all(_is_told_as_stored(frames, message) for message in messages):
        return messages
    frames = replace(frames, people=Participants.of(messages))
    told = tuple(one for message in messages if (one := _tidied(frames, message)) is not None)
    if told == messages:
        return messages
    return told if told[1:] else (*told, render.history_note(ZH, ZH.about.unanswered))


def _is_told_as_stored(frames: FrameRemover, message: Message) -> bool:
    """Whether the message certainly needs no change, judged on its own."""
    if not isinstance(message, AssistantMessage):
        return True
    if not (message.text.strip() or message.tool_calls) or not frames.is_clean(message.text):
        return False
    if is_fallback_reply(message.text):
        return False
    return all(is_clean_call(frames, call) for call in message.tool_calls)


def _tidied(frames: FrameRemover, message: Message) -> Message | None:
    """Return the cleaned message, or None if nothing of it is left."""
    if not isinstance(message, AssistantMessage):
        return message
    tidied = clean_message(
        frames, replace(message, text="") if is_fallback_reply(message.text) else message
    )
    if not (tidied.text.strip() or tidied.tool_calls):
        return None
    return message if tidied == message else tidied
