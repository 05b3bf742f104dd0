"""The lines that come while a question is being answered, as the model reads them."""

from __future__ import annotations

from bot.domain.chat import UserMessage
from bot.domain.events import MessageReceived
from bot.domain.redaction import RECALLED
from bot.prompt.compose import ADDED
from bot.prompt.render import line


def addition(
    message: MessageReceived, *, quoted: MessageReceived | None = None, name: str = ""
) -> UserMessage:
    """The line under its heading; `name` stands for the bot where its own words are quoted."""
    text = line(message, quoted=quoted, name=name)
    return UserMessage(f"{ADDED}\n{text}", sources=(message.message_id,))


def without(text: str, addition: UserMessage) -> str:
    """The text with nothing of that line but that it was taken back."""
    return text.replace(addition.text, f"{ADDED}\n{RECALLED}", 1)
