"""Stored rounds of older versions, told in today's form: what those noted in answers, or said in
their place, is a note behind them, and people have their numbers there in place of their
accounts. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from bot.domain.chat import AssistantMessage, Message, UserMessage
from bot.domain.events import Conversation
from bot.domain.ports import Members
from bot.policy.apologies import is_ours
from bot.prompt import marks, notes
from bot.prompt.frames import Frames
from bot.prompt.people import People
from bot.prompt.tidying import is_tidy, tidy
from bot.prompt.wording_zh import ZH

ACCOUNT = r"([^()\n:]{1,24})\((\d{5,19})\)"
SPOKEN = re.compile(rf"(^ *|@|\[引用 ){ACCOUNT}", re.MULTILINE)
NAMED = re.compile(rf"(){ACCOUNT}")
OF_QUESTION = re.compile(rf"^(\[提问\]){marks.ID}", re.MULTILINE)


def by_number(text: str, number: Callable[[int], int], *, anywhere: bool = False) -> str:
    """The text with `小明#2` for `小明(12345)`: where we wrote that, or `anywhere` in a summary."""
    pattern = NAMED if anywhere else SPOKEN
    return pattern.sub(lambda found: f"{found[1]}{found[2]}#{number(int(found[3]))}", text)


def told_today(
    names: tuple[str, ...], members: Members, where: Conversation, messages: tuple[Message, ...]
) -> tuple[Message, ...]:
    """A stored round as the model is told of it; `names` are those of the bot.

    A round of today is the very same object.
    """
    return _with_numbers(members, where, _without_frames(names, where, messages))


def _without_frames(
    names: tuple[str, ...], where: Conversation, messages: tuple[Message, ...]
) -> tuple[Message, ...]:
    frames = Frames(names, where.platform_id)
    if all(_is_as_told(frames, message) for message in messages):
        return messages
    frames = replace(frames, people=People.of(messages))
    told = tuple(one for message in messages for one in _tell(frames, message))
    if told == messages:
        return messages
    return told if told[1:] else (*told, notes.note(ZH, ZH.about.unanswered))


def _with_numbers(
    members: Members, where: Conversation, messages: tuple[Message, ...]
) -> tuple[Message, ...]:
    """Rounds that were rendered before messages had `sources`."""

    def number(user_id: int) -> int:
        return members.number(where, user_id)

    told = tuple(
        replace(message, text=OF_QUESTION.sub(r"\1", by_number(message.text, number)))
        if isinstance(message, UserMessage) and not message.sources
        else message
        for message in messages
    )
    return messages if told == messages else told


def _is_as_told(frames: Frames, message: Message) -> bool:
    """Whether a message of a stored round certainly is told as it is."""
    if not isinstance(message, AssistantMessage):
        return True
    if not (message.text.strip() or message.tool_calls) or not frames.is_clean(message.text):
        return False
    if is_ours(message.text):
        return False
    return all(is_tidy(frames, call) for call in message.tool_calls)


def _tell(frames: Frames, message: Message) -> Iterator[Message]:
    """A message of a stored round as the model is told of it: none, one, or one and a note."""
    if not isinstance(message, AssistantMessage):
        yield message
        return
    text, noted = message.text, notes.LEGACY.get(message.text, "")
    if is_ours(text):
        text, noted = "", ZH.about.unanswered
    if match := marks.TRAILING_NOTE.search(text):
        text, noted = text[: match.start()], notes.delivery_note(ZH, match["words"])
    tidied = tidy(frames, replace(message, text=text))
    if tidied.text.strip() or tidied.tool_calls:
        yield message if tidied == message else tidied
    if noted:
        yield notes.note(ZH, noted)
