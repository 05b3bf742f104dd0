"""The lines that come while a question is being answered, as the model reads them."""

from __future__ import annotations

from bot.domain.chat import UserMessage
from bot.domain.events import MessageReceived
from bot.prompt.render import line
from bot.prompt.view import View


def addition(
    message: MessageReceived, view: View, *, quoted: MessageReceived | None = None
) -> UserMessage:
    """The line under its heading, with the time."""
    words = view.words
    heading = words.heading(words.added, view.clock(message.time))
    text = line(message, view, quoted=quoted)
    quotes = ((message.message_id, quoted.message_id),) if quoted else ()
    return UserMessage(f"{heading}\n{text}", sources=(message.message_id,), quotes=quotes)
