"""Limits on questions: per person and per group in a minute, and how many may wait. Lines that join
a waiting or running question do not count.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from cachetools import LRUCache

from bot.budget.limits import LimitLevel
from bot.budget.spending import Spending
from bot.chat.tasks import Task
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.language import Phrase
from bot.outbox.delivery import Postbox
from bot.outbox.gestures import NOT_NOW, Gestures
from bot.policy.fallback_replies import CROWDED, NO_MORE, SLOW_DOWN, in_question_language, is_quoted
from bot.policy.wake import Rules, Silence, Why
from frostagent.types.ports import Clock
from frostagent.types.traits import Rate


@dataclass(slots=True)
class RecentWakes:
    """The latest wakes of one person or group."""

    _at: deque[float] = field(default_factory=deque)

    def has_room(self, rate: Rate, now: float) -> bool:
        while self._at and self._at[0] <= now - rate.seconds:
            self._at.popleft()
        return len(self._at) < rate.calls

    def add(self, now: float) -> None:
        self._at.append(now)

    def add_earlier(self, at: float) -> None:
        """Add a wake that may be older than others."""
        self._at = deque(sorted((*self._at, at)))


class Notice(Enum):
    """How a person learns that they are not answered."""

    LINE = auto()
    SIGN = auto()
    NOTHING = auto()


@dataclass(slots=True)
class Courtesy:
    """Notifies a person of a limit: by a line, then by at most `signs` gestures, until a time."""

    signs: float = math.inf
    _until: float = -math.inf
    _heard: int = 0

    def next_notice(self, now: float, *, until: float) -> Notice:
        """The next notice; after a line the next one is possible at `until`."""
        if now >= self._until:
            self._until, self._heard = until, 0
            return Notice.LINE
        self._heard += 1
        return Notice.SIGN if self._heard <= self.signs else Notice.NOTHING


logger = logging.getLogger(__name__)

MAX_PEOPLE: Final = 5000
HOUR: Final = 3600.0
MINUTE: Final = 60.0
SIGNS: Final = 1  # gestures in an hour, after the line


class RateLimiter:
    """Counts questions by the rates of the rules; owners are not counted."""

    def __init__(
        self,
        rules: Rules,
        spending: Spending,
        postbox: Postbox,
        gestures: Gestures,
        clock: Clock,
    ) -> None:
        self._rules = rules
        self._spending = spending
        self._postbox = postbox
        self._gestures = gestures
        self._clock = clock
        self._recent: LRUCache[int | Conversation, RecentWakes] = LRUCache(MAX_PEOPLE)
        self._told: LRUCache[int, Courtesy] = LRUCache(MAX_PEOPLE)
        self._out: LRUCache[int, Courtesy] = LRUCache(MAX_PEOPLE)  # about the daily limit
        self._crowded: LRUCache[Conversation, float] = LRUCache(MAX_PEOPLE)  # when it was said
        self._signed: LRUCache[tuple[Conversation, int], float] = LRUCache(MAX_PEOPLE)
        self.overflow = 0  # questions turned away since the start

    def admit(self, task: Task, *, is_earlier: bool) -> Why:
        """Why this question is not admitted, which its asker is told; empty if it is, and counted.
        One that `is_earlier` than this process was admitted before.
        """
        message, where = task.message, task.message.conversation
        if task.retry or is_earlier:
            return ""
        return self._admit(message, _payer(task), where if where.is_group else None)

    def admit_command(self, message: MessageReceived) -> bool:
        """Whether this command is answered; it counts as a question of its sender."""
        return not self._admit(message, message.sender.user_id, None)

    def _admit(self, message: MessageReceived, who: int, group: Conversation | None) -> Why:
        now, rules = self._clock.monotonic(), self._rules
        if who in rules.owners or (rules.user_rate is None and rules.group_rate is None):
            return ""
        counted: list[RecentWakes] = []
        for rate, key, why, words in (
            (rules.user_rate, who, Silence.USER, SLOW_DOWN),
            (rules.group_rate, group, Silence.GROUP, CROWDED),
        ):
            if rate is None or not key:
                continue
            if (latest := self._recent.get(key)) is None:
                latest = self._recent[key] = RecentWakes()
            counted.append(latest)
            if not latest.has_room(rate, now):
                if who:
                    self._tell(self._told, message, words, now=now, until=now + HOUR)
                return why
        for latest in counted:
            latest.add(now)
        return ""

    def preload(self, asked: Iterable[tuple[Conversation, int, float]]) -> None:
        """Count what earlier processes admitted, with times in seconds since 1970, as in
        `Recovery`.
        """
        ago, rules = self._clock.now() - self._clock.monotonic(), self._rules
        for where, who, at in asked:
            if who in rules.owners:
                continue
            keys: list[int | Conversation] = [who] if who else []
            keys += [where] if where.is_group else []
            for key in keys:
                if (latest := self._recent.get(key)) is None:
                    latest = self._recent[key] = RecentWakes()
                latest.add_earlier(at - ago)

    def admit_today(self, task: Task) -> Why:
        """Why no model may be asked today, which its asker is told; else empty. A retry is always
        completed.
        """
        message, who, spending = task.message, _payer(task), self._spending
        if task.retry:
            return ""
        if spending.rung(message.conversation, who) < LimitLevel.SPENT:
            return ""
        if who:
            now = self._clock.now()
            self._tell(self._out, message, NO_MORE, now=now, until=spending.ends())
        return Silence.DAY

    def turn_away(self, message: MessageReceived) -> None:
        """Too many questions wait: show its asker a gesture, at most once a minute. Never waits."""
        self._count(message, "too many are waiting")
        self._show(message, message.sender.user_id)

    def turn_away_late(self, message: MessageReceived) -> None:
        """The question came too late: show a gesture, at most once a minute per conversation."""
        self._count(message, "it waited too long before it came here")
        self._show(message, 0)

    def _show(self, message: MessageReceived, whom: int) -> None:
        """Put a gesture on it, at most once a minute for this person there, or for all (0)."""
        key, now = (message.conversation, whom), self._clock.monotonic()
        if now - self._signed.get(key, -math.inf) >= MINUTE:
            self._signed[key] = now
            self._gestures.react(message, NOT_NOW)

    def _count(self, message: MessageReceived, why: str) -> None:
        self.overflow += 1
        logger.warning(
            "message %s in %s is not answered: %s", message.message_id, message.conversation, why
        )

    def _tell(
        self,
        heard: LRUCache[int, Courtesy],
        message: MessageReceived,
        words: Phrase,
        *,
        now: float,
        until: float,
    ) -> None:
        who = message.sender.user_id
        if (courtesy := heard.get(who)) is None:
            courtesy = heard[who] = Courtesy(SIGNS if heard is self._told else math.inf)
        notice = courtesy.next_notice(now, until=until)
        if notice is Notice.LINE and self._say(message, words):
            return
        if notice is not Notice.NOTHING:
            self._gestures.react(message, NOT_NOW)

    def _say(self, message: MessageReceived, words: Phrase) -> bool:
        """Send it in the asker's language; False if it may not be sent now. A line about a group is
        sent at most once a minute there.
        """
        where, now = message.conversation, self._clock.monotonic()
        if words == CROWDED:
            if now - self._crowded.get(where, -math.inf) < MINUTE:
                return False
            self._crowded[where] = now
        quote = message.message_id if is_quoted(message) else ""
        return self._postbox.remark(where, in_question_language(words, message), quote=quote)


def _payer(task: Task) -> int:
    return task.wake.payer(task.message.sender.user_id)
