"""Notes on what became of the bot's words, for the model's next prompt: behind the round, as a
user's message.

Never in the words of the assistant: models repeat what stands there, and then it is sent. Rounds of
older versions had such notes there (`LEGACY`); `bot/prompt/older_rounds.py` tells them in today's
form. A round without any answer has NOTED in its place, so that the next question is a message of
its own and the prompt begins as it did; said back, it is nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.chat import NOTED, AssistantMessage, Message, UserMessage

NOTES = "[系统记录]"
UNANSWERED = "你没有回答上面的提问。"
STOPPED = "有人让你停下，你没有说完；不要自己接着做。"
SILENT = "你没有说话。"
BROKEN_OFF = "你的回答被打断了。"

PART = "前 {number} 条已送达，之后的"
REFUSED = "没有送达: {reason}"
UNCONFIRMED = "没有得到 QQ 的确认，可能已送达，不要重复"
QUEUED = "当时连不上 QQ，排队等待发送，可能没有送达"

ALL_SAID = "(已用 send_message 回答)"
LEGACY = {"(没有回答)": UNANSWERED, "(被打断了)": BROKEN_OFF}
"""What once stood in the place of an answer, and what is noted today."""


def note(words: str) -> UserMessage:
    """The note, as it stands at the end of a round."""
    return UserMessage(f"{NOTES}\n  {words}")


def unanswered(words: str, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages that end the round of a run without words."""
    return (note(words),) if messages else (AssistantMessage(NOTED), note(words))


def delivery_note(what: str, *, arrived: int = 0) -> str:
    """The note on the delivery of an answer, of which so many messages had arrived before."""
    return f"你上面的回答{PART.format(number=arrived) if arrived else ''}{what}"
