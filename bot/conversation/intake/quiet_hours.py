"""Where people want the bot to keep quiet, by the hours of the settings or by command. Messages
there are observed all the same.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left

from bot.core.events import MessageReceived
from bot.memory.modes import Mode, Modes
from bot.memory.quiet_overrides import QuietOverrides
from bot.policy.quiet import DAY, Quiet, quiet_minutes
from bot.policy.wake import Local, Rules, Silence, Wake, Why
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock
from frostagent.types.traits import Audience

HEARD = (Mode.LIVE, Mode.SHADOW)


class QuietHours:
    """Says whom the bot does not answer now, and why."""

    def __init__(
        self,
        *,
        rules: Rules,
        local: Local,
        quiet_overrides: QuietOverrides,
        modes: Modes,
        clock: Clock,
    ) -> None:
        self._rules = rules
        self._local = local
        self._quiet_overrides = quiet_overrides
        self._modes = modes
        self._clock = clock

    def holds_in(self, where: Conversation, rules: Rules | None = None) -> bool:
        """Whether it is quiet there, for whatever reason. `rules` are those of the place, if the
        caller has them.
        """
        if self._quiet_overrides.of(where) is not None or self.is_held(where):
            return True
        return self._is_hour(rules or self._local(where, self._rules), self._clock.now())

    def against(self, message: MessageReceived, wake: Wake, rules: Rules | None = None) -> Why:
        """Why the message wakes nobody just now; empty if it may. `rules` as above."""
        where = message.conversation
        if self.is_held(where):
            return Silence.HELD
        override = self._quiet_overrides.of(where)
        if override is not None and override.is_mute:
            return Silence.SILENCED
        rules = rules or self._local(where, self._rules)
        if override is None and not self._is_hour(rules, self._clock.now()):
            return ""
        if message.sender.user_id in rules.owners:
            return Silence.QUIET if wake.is_uncalled else ""
        return Silence.QUIET if wake.weak or rules.quiet_mode is Quiet.ALL else ""

    def commanders(self, where: Conversation) -> Audience:
        """Whose commands are answered there."""
        if self._modes.of(where) is not Mode.LIVE:
            return Audience.OWNER
        rules = self._local(where, self._rules)
        is_quiet = where.is_group and rules.quiet_mode is Quiet.ALL and self.holds_in(where, rules)
        return Audience.GROUP_ADMIN if is_quiet or self.silence(where) else Audience.EVERYONE

    def silence(self, where: Conversation) -> Why:
        """Why nothing at all is to be said there; empty if it may."""
        if self.is_held(where):
            return Silence.HELD
        override = self._quiet_overrides.of(where)
        return Silence.SILENCED if override is not None and override.is_mute else ""

    def is_held(self, where: Conversation) -> bool:
        """Whether no owner has let the bot speak there."""
        return self._modes.of(where) not in HEARD

    def is_hour(self, where: Conversation, at: float) -> bool:
        """Whether the settings have it quiet there at that time (seconds since 1970)."""
        return self._is_hour(self._local(where, self._rules), at)

    def _is_hour(self, rules: Rules, at: float) -> bool:
        if not rules.quiet:
            return False
        minute = _minute(time.localtime(at))
        return any(each.holds(minute) for each in rules.quiet)

    def end(self, where: Conversation) -> float:
        """The first moment from now on at which it is quiet there no more, in seconds since 1970; 0
        where there is none.
        """
        wish, at = self._quiet_overrides.of(where), self._clock.now()
        if wish is not None:
            at = wish.until
        if not math.isfinite(at):
            return 0.0
        hours = self._local(where, self._rules).quiet
        while left := quiet_minutes(hours, _minute(time.localtime(at))):
            if left >= DAY:
                return 0.0
            at = _later(at - at % 60, left)
        return at


def _later(at: float, minutes: int) -> float:
    """So many minutes later, or where summer time moves the clock on the wall before: then."""
    here = time.localtime(at).tm_gmtoff
    steps = range(1, minutes)

    def is_moved(step: int) -> bool:
        return time.localtime(at + step * 60).tm_gmtoff != here

    # Few looks, though a night has hundreds of minutes: it is moved once in one, if at all.
    return at + 60 * (1 + bisect_left(steps, True, key=is_moved))


def _minute(there: time.struct_time) -> int:
    return there.tm_hour * 60 + there.tm_min
