"""Notes on what became of the bot's words, for the model's next prompt: behind the round, as a
user's message.

Never in the words of the assistant: models repeat what stands there, and then it is sent. A round
without any answer is its question and the note: where a vendor wants people and the model to take
turns, neighbours are made one message (`adapters/openai/history.py`).
"""

from __future__ import annotations

from bot.domain.chat import UserMessage
from bot.prompt.wording import Wording

ALL_SAID = "(已用 send_message 回答)"


def note(words: Wording, what: str) -> UserMessage:
    """The note, as it stands at the end of a round."""
    return UserMessage(f"{words.heading(words.notes)}\n  {what}")


def delivery_note(words: Wording, what: str, *, arrived: int = 0) -> str:
    """The note on the delivery of an answer, of which so many messages had arrived before."""
    about = words.about
    return f"{about.answer}{about.part.format(number=arrived) if arrived else ''}{what}"
