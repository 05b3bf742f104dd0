"""Where the bot keeps quiet because people want it to: by the hours of the settings or by command.
What is said there is observed all the same.
"""

from __future__ import annotations

import time

from bot.domain.events import Conversation, MessageReceived
from bot.domain.ports import Clock
from bot.memory.wishes import Wishes
from bot.policy.quiet import Quiet
from bot.policy.wake import Local, Rules, Wake

SILENCED = "somebody there told the bot to be silent"
QUIET = "it is quiet there now"


class Hush:
    """Knows whom the bot does not answer now, and why."""

    def __init__(self, *, rules: Rules, local: Local, wishes: Wishes, clock: Clock) -> None:
        self._rules = rules
        self._local = local
        self._wishes = wishes
        self._clock = clock

    def holds_in(self, where: Conversation) -> bool:
        """Whether it is quiet there, for whatever reason."""
        return self._wishes.of(where) is not None or self.is_hour(where, self._clock.now())

    def against(self, message: MessageReceived, wake: Wake) -> str:
        """Why the message wakes nobody just now; empty where it may."""
        where = message.conversation
        if self.is_silenced(where):
            return SILENCED
        if not self.holds_in(where):
            return ""
        if message.sender.user_id in self._rules.owners:
            return QUIET if wake.is_uncalled else ""
        return QUIET if wake.weak or self._is_for_owners(where) else ""

    def holds_commands(self, where: Conversation) -> bool:
        """Whether those of a group's admins are the only ones that are answered there."""
        if self.is_silenced(where):
            return True
        return where.is_group and self._is_for_owners(where) and self.holds_in(where)

    def is_silenced(self, where: Conversation) -> bool:
        """Whether nothing at all is to be said there."""
        wish = self._wishes.of(where)
        return wish is not None and wish.is_mute

    def is_hour(self, where: Conversation, at: float) -> bool:
        """Whether the settings have it quiet there at that time (seconds since 1970)."""
        hours = self._local(where, self._rules).quiet
        if not hours:
            return False
        there = time.localtime(at)
        minute = there.tm_hour * 60 + there.tm_min
        return any(each.holds(minute) for each in hours)

    def _is_for_owners(self, where: Conversation) -> bool:
        return self._local(where, self._rules).quiet_mode is Quiet.ALL
