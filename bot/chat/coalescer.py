"""Joins lines into one question: those its asker said just before it, and those that follow.

People write in bursts. A line that looks unfinished waits for more from its author, never from
other people; one that looks finished begins at once. What the author says while the question waits
in its lane joins it, further questions included: one answer for all.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TypeGuard

from msgspec.structs import replace

from bot.chat.lanes import Lanes
from bot.chat.message_log import MessageLog
from bot.chat.rate_limiter import RateLimiter
from bot.chat.tasks import Task, Work
from bot.core.events import MessageReceived
from bot.core.segments import Markdown, Mention, Record, Sticker
from bot.policy.wake import Silence
from frostagent.text.visible_text import visible_text
from frostagent.types.ports import Clock
from frostagent.types.speech import Face, MentionAll, Quote, Text

SHORT = 12  # characters: shorter text without an end may be a beginning
END = tuple(".!?。！？…~～;；)）」』”\"'】》")
ASKING = re.compile(
    r"吗|嘛|呢|么|什么|啥|谁|哪|几|多少|多久|多大|怎|咋|为何|如何|是不是|有没有|能不能|可不可以|对不对|会不会"
    r"|\b(?:who|whom|whose|what|when|where|which|why|how|is|are|was|do|does|did|can|could|will"
    r"|would|should)\b",
    re.IGNORECASE,
)
CALLS = re.compile(
    r"(?:在(?:吗|嘛|么|不|不在|呢|没)?|你?在哪|有人(?:吗|么|在吗)?|你好(?:呀|啊)?|您好|哈喽|嗨|喂|早(?:上好|安)?"
    r"|晚上好|打扰(?:一下|了)?|问(?:一下|个问题|你个问题)|请问(?:一下)?|hi|hello|hey"
    r"|are you there|you there)"
    r"(?:你们|大家)?",
    re.IGNORECASE,
)
MARKS = " \t\r\n,.!?;:~…，。！？；：、～"


def message_words(message: MessageReceived) -> str:
    parts = [
        visible_text(segment.text if isinstance(segment, Text) else segment.content)
        for segment in message.segments
        if isinstance(segment, Text | Markdown)
    ]
    return "".join(parts).strip()


def shows_something(message: MessageReceived) -> bool:
    """Whether it contains a subject of words: a picture, a file, a forward, a card."""
    words = (Text, Markdown, Mention, MentionAll, Quote, Face, Sticker, Record)
    return any(not isinstance(segment, words) for segment in message.segments)


def is_bare_mention(message: MessageReceived) -> bool:
    """Whether it mentions the bot and contains nothing else."""
    said = [
        segment
        for segment in message.segments
        if not (isinstance(segment, Text) and not visible_text(segment.text).strip())
    ]
    return bool(said) and all(
        isinstance(segment, Mention) and segment.user_id == message.self_id for segment in said
    )


def looks_unfinished(message: MessageReceived) -> bool:
    """Whether more is to be expected after few words that neither end nor ask, a picture alone, a
    bare call or a greeting. A voice message is finished, and so is a quote without words: it is the
    question.
    """
    words = message_words(message)
    if CALLS.fullmatch(words.strip(MARKS)):
        return True
    if not words:
        return not any(isinstance(segment, Record | Quote) for segment in message.segments)
    return len(words) < SHORT and not words.endswith(END) and not ASKING.search(words)


def is_addressed_to_bot(message: MessageReceived) -> bool:
    """Whether it is certainly addressed to the bot, as any private message is."""
    return not message.conversation.is_group or any(
        isinstance(segment, Mention) and segment.user_id == message.self_id
        for segment in message.segments
    )


def is_for_others(message: MessageReceived, quoted: MessageReceived | None = None) -> bool:
    """Whether it mentions or quotes another person, and so may be meant for them. A quoted message
    counts as another person's unless `quoted` is known to be its author's own.
    """
    author = message.sender.user_id
    is_own = quoted is not None and quoted.sender.user_id == author
    return any(
        isinstance(segment, MentionAll)
        or (isinstance(segment, Quote) and not is_own)
        or (isinstance(segment, Mention) and segment.user_id not in (message.self_id, author))
        for segment in message.segments
    )


AFTER_PICTURE = 2.5  # seconds: text about a picture takes longer to write
LONGEST = 5.0  # seconds a question waits for more lines, however many come
BARE = 30.0  # seconds a call without words waits for its subject
MOST = 10  # lines of one question

BACK = 20.0  # seconds before a question in which its asker may have begun it
MOST_BACK = 3  # of those lines
BEHIND = 8.0  # seconds after the last line in which a line to no one in particular joins it


class Coalescer:
    """Joins lines to questions, when they are queued and while they wait. `debounce` is the seconds
    that an unfinished line waits for the next; 0 turns waiting off.
    """

    def __init__(
        self,
        *,
        lanes: Lanes[Work],
        message_log: MessageLog,
        rate_limiter: RateLimiter,
        clock: Clock,
        debounce: float,
    ) -> None:
        self._lanes = lanes
        self._message_log = message_log
        self._rate_limiter = rate_limiter
        self._clock = clock
        self._debounce = debounce

    def join_message(self, message: MessageReceived) -> bool:
        """Add a message that called no one to its sender's waiting question; False if there is
        none.
        """
        return not self._is_for_others(message) and self._lanes.join(
            message.conversation, partial(self._joined, message)
        )

    def merge_question(self, task: Task) -> bool:
        """Merge with a waiting question of the same asker; False if there is none."""
        return self._lanes.join(task.message.conversation, partial(self._merged, task))

    def add_earlier_lines(self, task: Task) -> Task:
        """The question with unread lines that its asker said just before it; it may wait for
        further ones.
        """
        message = task.message

        def belongs(line: MessageReceived) -> bool:
            # A line that called the bot was a question of its own, with its own outcome.
            is_talk = not self._is_for_others(line) and not is_addressed_to_bot(line)
            is_theirs = line.sender.user_id == message.sender.user_id
            return is_theirs and is_talk and message.time - line.time <= BACK

        lines = self._message_log.claim_unread(message.conversation, belongs, most=MOST_BACK)
        due, at_latest = self._patience(message)
        if not lines and not due:
            return task
        return replace(task, lines=lines, beside=lines, due=due, at_latest=at_latest)

    def _is_for_others(self, line: MessageReceived) -> bool:
        return is_for_others(line) and is_for_others(line, self._message_log.quoted_by(line))

    def _merged(self, task: Task, work: Work) -> Task | None:
        """The waiting question with another one of its asker added."""
        if not _is_of(work, task.message):
            return None
        lines = (*work.said, *task.lines)
        due, at_latest = self._prolonged(work, task.message)
        if not self._is_gathering(work):
            due, at_latest = task.due, task.at_latest
        beside = (*work.beside, *task.beside)
        for line in lines[: 1 - MOST]:
            if line in beside:
                self._message_log.overhear(line)
            else:  # turned away visibly: later lines fill the question
                self._message_log.overhear(line, Silence.FULL)
                self._rate_limiter.turn_away(line)
        return replace(
            task,
            lines=lines[1 - MOST :],
            beside=beside,
            verdict=task.verdict if work.wake.weak else work.verdict,
            due=due,
            at_latest=at_latest,
        )

    def _joined(self, message: MessageReceived, work: Work) -> Task | None:
        """The waiting question with a line of its asker added."""
        if not _is_of(work, message) or len(work.said) >= MOST:
            return None
        due, at_latest = self._prolonged(work, message)
        if not self._is_gathering(work):
            if message.time - work.message.time > BEHIND:
                return None
            due, at_latest = work.due, work.at_latest
        return replace(
            work,
            message=message,
            lines=work.said,
            beside=(*work.beside, message),
            due=due,
            at_latest=at_latest,
        )

    # --- how long -----------------------------------------------------------------------------

    def _is_gathering(self, work: Task) -> bool:
        return self._clock.monotonic() < work.due

    def _patience(self, message: MessageReceived) -> tuple[float, float]:
        """When a question with this last line is due, and when at the latest."""
        if not self._debounce or not looks_unfinished(message):
            return 0.0, 0.0
        now = self._clock.monotonic()
        if is_bare_mention(message):
            return now + BARE, now + BARE
        return now + self._quiet(message), now + max(LONGEST, self._debounce)

    def _prolonged(self, work: Task, line: MessageReceived) -> tuple[float, float]:
        """`_patience` for a waiting question that this line joins. A bare call waited only for such
        a line, and a second bare call does not prolong it. In a burst, a line that looks finished
        waits, too.
        """
        if is_bare_mention(work.message):
            return (work.due, work.at_latest) if is_bare_mention(line) else self._patience(line)
        now = self._clock.monotonic()
        if len(work.said) + 1 >= MOST:
            return now, now
        return min(work.at_latest, now + self._quiet(line)), work.at_latest

    def _quiet(self, line: MessageReceived) -> float:
        return max(self._debounce, AFTER_PICTURE) if shows_something(line) else self._debounce


def _is_of(work: Work, message: MessageReceived) -> TypeGuard[Task]:
    """Whether it is a question of this sender that may grow; a missed message found later came
    before it.
    """
    return (
        isinstance(work, Task)
        and work.message.sender.user_id == message.sender.user_id
        and not message.was_before(work.message)
        and work.may_grow
    )
