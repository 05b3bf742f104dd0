"""A history as the server tells it, with the ids by which the journal knows its lines."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from bot.domain.events import Conversation, MessageReceived
from bot.domain.ports import Store, Transport
from bot.policy.message_aliases import find_aliases, rename_messages
from bot.policy.message_trimming import trim_message


async def read_history(
    transport: Transport, store: Store, where: Conversation, *, count: int
) -> tuple[Sequence[MessageReceived], Collection[str] | None]:
    """What was said there, oldest first, and the ids of those of it that were taken or sent from
    here; None if the journal cannot be read now. Raises TransportError.
    """
    history = await transport.get_history(where, count=count)
    heard = await store.heard(where, [message.message_id for message in history])
    if heard is None or all(message.message_id in heard for message in history):
        return history, heard
    if (known := await store.latest(where)) is None:
        return history, None
    names = find_aliases([trim_message(message) for message in history], known)
    return rename_messages(history, names), {*heard, *names.values()}
