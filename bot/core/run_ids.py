"""Where QQ's numbers meet the engine, whose ids are texts: on the way in `str()` of a conversation
or an account, on the way back these functions.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bot.core import codec
from bot.core.conversation import NOWHERE, Conversation, NotAConversation
from frostagent.types.runs import Asker, SuspendedRun
from frostagent.types.tools import ToolContext


def place_of(context: ToolContext) -> Conversation:
    """The conversation of a call; `NOWHERE` in an agent of the library, whose sessions are texts of
    its own.
    """
    try:
        return Conversation.parse(context.conversation)
    except NotAConversation:
        return NOWHERE


def number_of(asker: Asker) -> int:
    """The account of who asks; 0 if it is none of QQ."""
    return int(asker.user_id) if asker.user_id.isdecimal() else 0


# --- suspended runs as they are stored: with numbers, as they were from the start -----------------


class _StoredAsker(msgspec.Struct):
    user_id: int


class _Stored(msgspec.Struct):
    conversation: Conversation
    asker: _StoredAsker


def write_run(run: SuspendedRun, where: Conversation) -> str:
    """A run that waits there, as the journal keeps it."""
    stored: dict[str, Any] = msgspec.to_builtins(run, enc_hook=str)
    stored["conversation"] = where
    stored["asker"]["user_id"] = number_of(run.asker)
    return codec.write(stored)


def read_run(text: str) -> SuspendedRun:
    """A run that the journal kept. Raises Unreadable."""
    ids: _Stored = codec.read(_Stored, text)
    stored: dict[str, Any] = codec.read(dict[str, Any], text)
    stored["conversation"] = str(ids.conversation)
    stored["asker"]["user_id"] = str(ids.asker.user_id)
    try:
        return msgspec.convert(stored, SuspendedRun)
    except (ValueError, RecursionError) as error:
        raise codec.Unreadable(f"stored text is not what it should be: {error}") from None
