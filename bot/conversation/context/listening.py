"""The voice messages of a question as the words in them: they are the question, so nobody has to
ask for them.
"""

from __future__ import annotations

import asyncio
import logging

from msgspec.structs import replace

from bot.domain.errors import MediaError
from bot.domain.events import MessageReceived
from bot.domain.ports import VoiceListener
from bot.domain.segments import Record, Segment
from bot.prompt.compose import Question

logger = logging.getLogger(__name__)

MAX_VOICES = 3
LISTENING = 20.0  # seconds for all of them together


async def listened(
    question: Question, ear: VoiceListener, *, within: float = LISTENING
) -> Question:
    """The question with the words of its voice messages: its own first, then those of its lines,
    the newest first, then the one it quotes.
    """
    quoted = () if question.quoted is None else (question.quoted,)
    said = (question.message, *reversed(question.lines), *quoted)
    wanted = [(one, part) for one in said for part in one.segments if isinstance(part, Record)]
    if not wanted:
        return question
    words: dict[Record, str] = {}

    async def hear(message: MessageReceived, record: Record) -> None:
        try:
            words[record] = await ear.hear(message.self_id, record)
        except MediaError as error:
            logger.info("voice of message %s is not heard: %s", message.message_id, error)

    try:
        async with asyncio.timeout(within), asyncio.TaskGroup() as group:
            for message, record in wanted[:MAX_VOICES]:
                group.create_task(hear(message, record))
    except TimeoutError:
        logger.info("not all voices of message %s came in time", question.message.message_id)

    def told(message: MessageReceived) -> MessageReceived:
        return replace(message, segments=tuple(_told(part, words) for part in message.segments))

    return replace(
        question,
        message=told(question.message),
        lines=tuple(map(told, question.lines)),
        quoted=None if question.quoted is None else told(question.quoted),
    )


def _told(segment: Segment, words: dict[Record, str]) -> Segment:
    if isinstance(segment, Record) and segment in words:
        return replace(segment, text=words[segment])
    return segment
