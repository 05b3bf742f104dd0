"""Where the bot is muted: it cannot answer there, and should not spend money on thinking either."""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.events import MemberChanged, Muted
from bot.core.lru import LRU
from bot.core.ports import Member
from frostagent.types.ports import Clock

logger = logging.getLogger(__name__)

MAX_MUTE = 30 * 24 * 3600.0  # seconds; QQ's own limit
UNCERTAIN_MUTE = 600.0  # seconds a mute that may be over, or has no known end, is believed
MAX_PLACES = 10_000  # over all accounts

Source: TypeAlias = Literal["event", "answer", "suspicion"]


class Ends(Struct, frozen=True):
    """When the account's own mute ends and when that of the whole group does, in monotonic seconds:
    neither ends the other. `source` is where the account's own end is known from.
    """

    own: float = 0.0
    whole: float = 0.0
    source: Source = "answer"

    @property
    def until(self) -> float:
        return max(self.own, self.whole)


FREE: Final = Ends()


class Mutes:
    """The known mutes. Those from before a connection may have been lifted: until the server says
    so, or they end, they only delay work that waits for their end (`until`), but stop no new
    question (`holds_in`).
    """

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._known = LRU[Conversation, Ends](MAX_PLACES)
        self._old = LRU[Conversation, Ends](MAX_PLACES)  # from before the connection
        self._muted = LRU[Conversation, float](MAX_PLACES)  # when the account itself was muted last
        self._unknown: asyncio.Queue[int | Conversation] = asyncio.Queue()
        self.news = 0  # number of reports and resets
        self._latest = LRU[int | Conversation, int](MAX_PLACES)  # number of the latest, by subject

    def apply(self, event: Muted) -> None:
        if not event.mutes_the_bot:
            return
        self._note(event.conversation)
        # A lift may be missed without a connection, and admins may speak in a silenced group, so
        # such a mute is not believed for long.
        is_certain = event.seconds > 0 and event.user_id
        seconds = min(event.seconds, MAX_MUTE) if is_certain else UNCERTAIN_MUTE
        end = self._clock.monotonic() + seconds if event.seconds else 0.0
        if event.user_id:
            if event.seconds:
                self._muted.keep(event.conversation, self._clock.monotonic())
            self._change(event.conversation, "event", own=end)
        elif self._own_from(event.conversation, "suspicion"):  # it explains the suspicion
            self._change(event.conversation, own=0.0, whole=end)
        else:
            self._change(event.conversation, whole=end)

    def change_role(self, event: MemberChanged) -> None:
        """The account became an admin, who may speak in a silenced group, or is no longer one. The
        server is queried: a mute of its own may have ended, or the group may be silenced.
        """
        where = event.conversation
        self._note(where)
        if event.change == "promoted":
            self._change(where, whole=0.0)
            self.doubt(where)
        else:
            self._unknown.put_nowait(event.self_id)

    def suspect(self, where: Conversation, *, since: int) -> None:
        """QQ refused a message there as if the bot were muted, without a report: query the server.
        `since` is `news` when the message left; later reports about the place are newer.
        """
        is_news = not (self.holds_in(where) or self.is_overtaken(where, since=since))
        if where.is_group and is_news:
            self._note(where)
            self._change(where, "suspicion", own=self._clock.monotonic() + UNCERTAIN_MUTE)
            self.doubt(where)

    def learn(self, where: Conversation, member: Member) -> None:
        """Record the server's data of the account there, with times converted to our clock."""
        ends = {}
        if member.muted_until is not None:
            left = min(member.muted_until - self._clock.now(), MAX_MUTE)
            if left <= 0 and self._own_from(where, "suspicion"):  # then the whole group is muted
                ends["whole"] = self._clock.monotonic() + UNCERTAIN_MUTE
            # The server's clock may differ from ours, and an event reported a duration: only the
            # absence of any mute ends such a one.
            if not (member.muted_until and left <= 0 and self._own_from(where, "event")):
                ends["own"] = self._clock.monotonic() + left
        if member.role in ("owner", "admin"):
            ends["whole"] = 0.0
        self._change(where, "answer", **ends)

    def forget(self, account: int) -> None:
        """The account has connected: mutes may have been lifted unseen, so query the server."""
        self._unknown.put_nowait(account)
        self._note(account)
        latest = self._clock.monotonic() + UNCERTAIN_MUTE
        for where in [where for where in self._known if where.platform_id == account]:
            known, old = self._known.pop(where), self._old.get(where, FREE)
            own, whole = max(known.own, old.own), max(known.whole, old.whole)
            self._keep(self._old, where, Ends(min(own, latest), min(whole, latest)))

    def doubt(self, where: Conversation) -> None:
        """The whole group is muted: query whether the bot is one of its admins."""
        self._unknown.put_nowait(where)

    async def next_unknown(self) -> int | Conversation:
        """Wait for the next account, or group, to query."""
        return await self._unknown.get()

    def is_overtaken(self, where: Conversation, *, since: int) -> bool:
        """Whether a report about that place came after `since`, so that an earlier query's answer
        may be older.
        """
        return max(self._latest.get(where, 0), self._latest.get(where.platform_id, 0)) > since

    def until(self, where: Conversation) -> float:
        """Until when the bot may be muted there, in monotonic seconds; 0 if it may speak."""
        return max(self._known.get(where, FREE).until, self._old.get(where, FREE).until)

    def holds_in(self, where: Conversation) -> bool:
        return bool(self._known) and self._known.get(where, FREE).until > self._clock.monotonic()

    def was_muted(self, where: Conversation, seconds: float) -> bool:
        """Whether somebody muted the account there within the last `seconds`, since the start."""
        at = self._muted.get(where)
        return at is not None and self._clock.monotonic() - at < seconds

    def may_hold_in(self, where: Conversation) -> bool:
        """Whether the bot may still be muted there."""
        return self.until(where) > self._clock.monotonic()

    def is_own(self, where: Conversation) -> bool:
        """Whether the account itself is muted there."""
        return self._known.get(where, FREE).own > self._clock.monotonic()

    def end(self, where: Conversation) -> float:
        """When the account may speak there again, in seconds since 1970; 0 if unknown, as for a
        silenced group.
        """
        known, now = self._known.get(where, FREE), self._clock.monotonic()
        is_told = known.source != "suspicion" and known.whole <= now < known.own
        return self._clock.now() + known.own - now if is_told else 0.0

    def _note(self, about: int | Conversation) -> None:
        self.news += 1
        self._latest.keep(about, self.news)

    def _own_from(self, where: Conversation, source: Source) -> bool:
        return self.is_own(where) and self._known.get(where, FREE).source == source

    def _change(self, where: Conversation, source: Source = "answer", **ends: float) -> None:
        """Set these ends, which supersede those from before the connection."""
        before = self.holds_in(where)
        known = self._known.get(where, FREE)
        if "own" in ends:
            known = replace(known, source=source)
        self._keep(self._known, where, replace(known, **ends))
        settled = dict.fromkeys(ends, 0.0)
        self._keep(self._old, where, replace(self._old.get(where, FREE), **settled))
        after = self.holds_in(where)
        if after and not before:
            logger.warning(
                "muted in %s: messages there are only observed until it is lifted", where
            )
        elif before and not after:
            logger.info("the mute in %s is lifted", where)

    def _keep(self, kept: LRU[Conversation, Ends], where: Conversation, ends: Ends) -> None:
        if ends.until > self._clock.monotonic():
            kept.keep(where, ends)
        else:
            kept.pop(where, None)
