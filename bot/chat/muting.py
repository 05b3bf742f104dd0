"""The bot is muted somewhere: the runs there end, since nobody would hear what comes of them.

Words that are ready are still sent: the mute may be over before they are. What waits is not asked
when its turn comes (`chat/wake_classifier`); a run that waits for an owner's word goes on with
it when the bot may speak again. Where the whole group is muted admins still speak: nothing ends
there before the server has said that the bot is none.
"""

from __future__ import annotations

import logging
from functools import partial
from operator import is_

from msgspec.structs import replace

from bot.chat.active_turn import ActiveTurn, ActiveTurns
from bot.chat.lanes import Lanes
from bot.chat.message_log import MessageLog
from bot.chat.mutes import Mutes
from bot.chat.question_queue import QuestionQueue
from bot.chat.tasks import Task, Work
from bot.core.events import MemberChanged, Muted
from bot.core.ports import Member
from bot.core.server_clock import ServerClock
from bot.policy.wake import Observe, Silence
from frostagent.types.conversation import Conversation

logger = logging.getLogger(__name__)


class Muting:
    """Takes mutes, and ends the turns that go on there."""

    def __init__(
        self,
        *,
        mutes: Mutes,
        server_clock: ServerClock,
        live: ActiveTurns,
        lanes: Lanes[Work],
        question_queue: QuestionQueue,
        message_log: MessageLog,
    ) -> None:
        self._mutes = mutes
        self._server_clock = server_clock
        self._live = live
        self._lanes = lanes
        self._question_queue = question_queue
        self._message_log = message_log

    def take(self, event: Muted) -> None:
        """Somebody was muted, or may speak again."""
        if not event.mutes_the_bot:
            return
        where = event.conversation
        self._mutes.apply(event)
        self._let_go_on(where)
        if event.user_id and event.seconds:
            self._end(where)
        elif self._mutes.holds_in(where):
            self._mutes.doubt(where)

    def change_role(self, event: MemberChanged) -> None:
        """Somebody became an admin of a group, or is none any more."""
        if event.user_id == event.self_id:
            self._mutes.change_role(event)
            self._let_go_on(event.conversation)

    def learn(self, where: Conversation, member: Member) -> None:
        """What the server says of the account there, by its own clock."""
        if member.muted_until:
            end = self._server_clock.by_ours(member.muted_until, where.platform_id)
            member = replace(member, muted_until=end)
        self._mutes.learn(where, member)
        self._let_go_on(where)
        if self._mutes.is_own(where) or (member.role == "member" and self._mutes.holds_in(where)):
            self._end(where)

    def _let_go_on(self, where: Conversation) -> None:
        """What waits there for the end of a mute is due at another time, perhaps now."""
        self._lanes.revise(where, lambda work: work)

    def _end(self, where: Conversation) -> None:
        for live in self._live.at(where):
            if live.is_stopped or not live.is_thinking:
                continue
            logger.info("the run of %s in %s ends: muted", live.message.message_id, where)
            live.stop(muted=True)
            if live.turn is not None:
                self._message_log.judge(live.message, Observe(Silence.MUTED))
            else:  # it is still being prepared
                self._let_be(live, where)

    def _let_be(self, live: ActiveTurn, where: Conversation) -> None:
        """Its question is not asked: what is in it of what the lane has, some may have left it."""
        for work in self._lanes.at(where):
            if not isinstance(work, Task) or live.message not in work.said:
                continue
            if asked := work.without(lambda line: line not in live.said):
                self._question_queue.dismiss(asked, Silence.MUTED)
            self._lanes.drop_current(where, partial(is_, work))
