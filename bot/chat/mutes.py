"""Where the bot may not speak at the moment: a muted bot cannot answer, and must not run up a bill
thinking either.
"""

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
UNCERTAIN_MUTE = 600.0  # seconds a mute that may be over, or has no end, is believed
MAX_PLACES = 10_000  # of all accounts

Source: TypeAlias = Literal["event", "answer", "suspicion"]


class Ends(Struct, frozen=True):
    """Until when the account itself may not speak in a group, and until when nobody may but its
    admins, by the clock's monotonic seconds: the one does not end the other. `source` is what the
    account's own end is known from.
    """

    own: float = 0.0
    whole: float = 0.0
    source: Source = "answer"

    @property
    def until(self) -> float:
        return max(self.own, self.whole)


FREE: Final = Ends()


class Mutes:
    """The mutes that are in force, as far as anybody has told.

    Those from before a connection may be lifted by now: until the server says so, or their end,
    they hold back only what waits for it (`until`), no new question (`holds_in`).
    """

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._known = LRU[Conversation, Ends](MAX_PLACES)
        self._old = LRU[Conversation, Ends](MAX_PLACES)  # from before the connection
        self._unknown: asyncio.Queue[int | Conversation] = asyncio.Queue()
        self.news = 0  # how often something was told or forgotten
        self._latest = LRU[int | Conversation, int](MAX_PLACES)  # the number of the latest of each

    def apply(self, event: Muted) -> None:
        """Somebody was muted, or may speak again."""
        if not event.mutes_the_bot:
            return
        self._note(event.conversation)
        # A lift may be missed while nobody is connected, and admins may speak in a silenced group:
        # never trust it long.
        is_certain = event.seconds > 0 and event.user_id
        seconds = min(event.seconds, MAX_MUTE) if is_certain else UNCERTAIN_MUTE
        end = self._clock.monotonic() + seconds if event.seconds else 0.0
        if event.user_id:
            self._change(event.conversation, "event", own=end)
        elif self._own_from(event.conversation, "suspicion"):  # this is what was suspected
            self._change(event.conversation, own=0.0, whole=end)
        else:
            self._change(event.conversation, whole=end)

    def change_role(self, event: MemberChanged) -> None:
        """The account became an admin there, who may speak in a silenced group, or is none any
        more. Whether a mute of its own ended with that, or the group is silenced, somebody is to
        ask.
        """
        where = event.conversation
        self._note(where)
        if event.change == "promoted":
            self._change(where, whole=0.0)
            self.doubt(where)
        else:
            self._unknown.put_nowait(event.self_id)

    def suspect(self, where: Conversation, *, since: int) -> None:
        """QQ took no message there, as if the bot were muted: nobody told, somebody is to ask. The
        message left after so many news: what was told of that place since is newer.
        """
        is_news = not (self.holds_in(where) or self.is_overtaken(where, since=since))
        if where.is_group and is_news:
            self._note(where)
            self._change(where, "suspicion", own=self._clock.monotonic() + UNCERTAIN_MUTE)
            self.doubt(where)

    def learn(self, where: Conversation, member: Member) -> None:
        """What the server says of the account there, by our clock as far as that is known."""
        ends = {}
        if member.muted_until is not None:
            left = min(member.muted_until - self._clock.now(), MAX_MUTE)
            if left <= 0 and self._own_from(where, "suspicion"):  # then it is the whole group
                ends["whole"] = self._clock.monotonic() + UNCERTAIN_MUTE
            # The server's clock may not be ours, and an event told how long from then on: only that
            # there is no mute at all ends such a one.
            if not (member.muted_until and left <= 0 and self._own_from(where, "event")):
                ends["own"] = self._clock.monotonic() + left
        if member.role in ("owner", "admin"):
            ends["whole"] = 0.0
        self._change(where, "answer", **ends)

    def forget(self, account: int) -> None:
        """After a connection nobody knows what was lifted meanwhile: somebody is to ask."""
        self._unknown.put_nowait(account)
        self._note(account)
        latest = self._clock.monotonic() + UNCERTAIN_MUTE
        for where in [where for where in self._known if where.platform_id == account]:
            known, old = self._known.pop(where), self._old.get(where, FREE)
            own, whole = max(known.own, old.own), max(known.whole, old.whole)
            self._keep(self._old, where, Ends(min(own, latest), min(whole, latest)))

    def doubt(self, where: Conversation) -> None:
        """The whole group is muted, and nobody knows whether the bot is one of its admins."""
        self._unknown.put_nowait(where)

    async def next_unknown(self) -> int | Conversation:
        """The next account of whose mutes nothing is known, or the next group with a doubt."""
        return await self._unknown.get()

    def is_overtaken(self, where: Conversation, *, since: int) -> bool:
        """Whether there was news of that place after so many: what was asked before may be older
        than they are.
        """
        return max(self._latest.get(where, 0), self._latest.get(where.platform_id, 0)) > since

    def until(self, where: Conversation) -> float:
        """Until when the bot may not speak there, or nobody knows whether it may again, by the
        clock's monotonic seconds; 0: it may.
        """
        return max(self._known.get(where, FREE).until, self._old.get(where, FREE).until)

    def holds_in(self, where: Conversation) -> bool:
        """Whether the bot may not speak there."""
        return bool(self._known) and self._known.get(where, FREE).until > self._clock.monotonic()

    def may_hold_in(self, where: Conversation) -> bool:
        """Whether it may not, or nobody knows whether it may again."""
        return self.until(where) > self._clock.monotonic()

    def is_own(self, where: Conversation) -> bool:
        """Whether it is the account itself that may not speak there."""
        return self._known.get(where, FREE).own > self._clock.monotonic()

    def end(self, where: Conversation) -> float:
        """When the account may speak there again, in seconds since 1970; 0 where nobody told, as of
        a whole group that is muted.
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
        """These ends are known now, whatever was before the connection."""
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
