"""Which questions are not taken though they are for the bot: only so many of one person, and of one
group, within a minute, and only so many may wait.

What belongs to a question that waits or is being answered is none of its own.
"""

from __future__ import annotations

import logging
import math
from typing import Final

from cachetools import LRUCache

from bot.conversation.intake.seen import SeenMessages
from bot.conversation.tasks import Task
from bot.conversation.turns.thrift import Rungs
from bot.domain.events import Conversation, MessageReceived
from bot.domain.ports import Clock
from bot.policy.limits import Rung
from bot.policy.wake import Rules
from bot.policy.wake_rates import Courtesy, Notice, Recent
from bot.speaking.gestures import NOT_NOW, Gestures
from bot.speaking.postbox import Postbox

logger = logging.getLogger(__name__)

MAX_PEOPLE: Final = 5000
HOUR: Final = 3600.0
SIGNS: Final = 1  # in an hour, behind the line

USER: Final = "its sender asks too often"
GROUP: Final = "too many questions of that group"
DAY: Final = "what may be spent in a day is spent"
SLOW_DOWN: Final = "问得有点快，我歇一会儿，过一分钟再问我吧。"
NO_MORE: Final = "今天的额度用完了，明天再来问我吧。"
CROWDED: Final = "这会儿群里问我的人太多，过一分钟再问我吧。"


class Turnstile:
    """Counts questions by the rates of the rules; owners pass uncounted."""

    def __init__(
        self,
        rules: Rules,
        seen: SeenMessages,
        rungs: Rungs,
        postbox: Postbox,
        gestures: Gestures,
        clock: Clock,
    ) -> None:
        self._rules = rules
        self._seen = seen
        self._rungs = rungs
        self._postbox = postbox
        self._gestures = gestures
        self._clock = clock
        self._recent: LRUCache[int | Conversation, Recent] = LRUCache(MAX_PEOPLE)
        self._told: LRUCache[int, Courtesy] = LRUCache(MAX_PEOPLE)
        self._out: LRUCache[int, Courtesy] = LRUCache(MAX_PEOPLE)  # of what a day may take
        self.overflow = 0  # questions that nobody came to, since the start

    def against(self, task: Task) -> str:
        """Why this question is not taken, which its asker is told; empty where it is, and counted.

        One that is older than this process was taken before.
        """
        message, now = task.message, self._clock.monotonic()
        who, where, rules = _payer(task), message.conversation, self._rules
        if who in rules.owners or task.retry or self._seen.is_earlier(message):
            return ""
        counted: list[Recent] = []
        for rate, key, why, words in (
            (rules.user_rate if who else None, who, USER, SLOW_DOWN),
            (rules.group_rate if where.is_group else None, where, GROUP, CROWDED),
        ):
            if rate is None:
                continue
            if (latest := self._recent.get(key)) is None:
                latest = self._recent[key] = Recent()
            counted.append(latest)
            if not latest.has_room(rate, now):
                self._tell(self._told, task, words, now=now, until=now + HOUR)
                return why
        for latest in counted:
            latest.count(now)
        return ""

    def spent(self, task: Task) -> str:
        """Why no model is asked today, which its asker is told; empty where one is. What an earlier
        process began is brought to its end.
        """
        if task.retry or self._rungs.rung(task.message.conversation, _payer(task)) < Rung.SPENT:
            return ""
        now = self._clock.now()
        self._tell(self._out, task, NO_MORE, now=now, until=self._rungs.ends())
        return DAY

    def turn_away(self, message: MessageReceived) -> None:
        """Too many wait for this question to be answered: its asker is shown that. Never waits."""
        self.overflow += 1
        logger.warning(
            "message %s in %s is not answered: too many are waiting",
            message.message_id,
            message.conversation,
        )
        self._gestures.react(message, NOT_NOW)

    def _tell(
        self,
        heard: LRUCache[int, Courtesy],
        task: Task,
        words: str,
        *,
        now: float,
        until: float,
    ) -> None:
        message, who = task.message, task.message.sender.user_id
        if task.wake.is_uncalled:
            return
        if (courtesy := heard.get(who)) is None:
            courtesy = heard[who] = Courtesy(SIGNS if heard is self._told else math.inf)
        match courtesy.next(now, until=until):
            case Notice.LINE:
                where = message.conversation
                quote = message.message_id if message.has_identity and where.is_group else ""
                self._postbox.post(where, words, quote=quote)
            case Notice.SIGN:
                self._gestures.react(message, NOT_NOW)
            case Notice.NOTHING:
                pass


def _payer(task: Task) -> int:
    return task.wake.payer(task.message.sender.user_id)
