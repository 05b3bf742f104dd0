"""The bot is muted somewhere: the runs there end, since nobody would hear what comes of them.

Words that are ready are still sent: the mute may be over before they are. What waits is not asked
when its turn comes (`chat/wake_classifier`); a run that waits for an owner's word goes on with
it when the bot may speak again. Where the whole group is muted admins still speak: nothing ends
there before the server has said that the bot is none.
"""

from __future__ import annotations

from msgspec.structs import replace

from bot.chat.active_work import ActiveWork
from bot.chat.cancellation import Reason, Selector
from bot.chat.lanes import Lanes
from bot.chat.mutes import Mutes
from bot.chat.tasks import Work
from bot.core.conversation import Conversation
from bot.core.events import MemberChanged, Muted
from bot.core.ports import Member
from bot.core.server_clock import ServerClock


class MuteHandler:
    """Takes mutes, and ends the turns that go on there."""

    def __init__(
        self,
        *,
        mutes: Mutes,
        server_clock: ServerClock,
        lanes: Lanes[Work],
        active_work: ActiveWork,
    ) -> None:
        self._mutes = mutes
        self._server_clock = server_clock
        self._lanes = lanes
        self._active_work = active_work

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
        self._active_work.cancel(Selector(where=where), Reason.MUTED)
