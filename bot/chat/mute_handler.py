"""Ends runs where the bot is muted, since their words could not be read.

Words that are ready are still sent: the mute may end before they do. Waiting questions are dropped
in their turn (`chat/wake_classifier`); a run that waits for an approval goes on when the bot may
speak again. In a muted group admins may speak: nothing ends before the server has said that the bot
is not one.
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
        if event.user_id == event.self_id:
            self._mutes.change_role(event)
            self._let_go_on(event.conversation)

    def learn(self, where: Conversation, member: Member) -> None:
        """Handle the server's data of the account there; times are by the server's clock."""
        if member.muted_until:
            end = self._server_clock.by_ours(member.muted_until, where.platform_id)
            member = replace(member, muted_until=end)
        self._mutes.learn(where, member)
        self._let_go_on(where)
        if self._mutes.is_own(where) or (member.role == "member" and self._mutes.holds_in(where)):
            self._end(where)

    def _let_go_on(self, where: Conversation) -> None:
        """Recompute when items are due that wait for a mute to end."""
        self._lanes.revise(where, lambda work: work)

    def _end(self, where: Conversation) -> None:
        self._active_work.cancel(Selector(where=where), Reason.MUTED)
