"""A server that is connected, beats and answers calls, but reports no messages any more (seen of
NapCat: NapCatQQ#871 #1201 #1989).

If a group that is usually lively is silent for much longer than it was lately, its history is read,
once for each silence. If that shows messages that did not come as events, the places of the account
are caught up with as after a reconnect, and the owners hear how to cure it. A silence in which
nothing was missed counts as usual from then on: a group that goes to sleep costs one call.

Private chats are not watched: they end all the time.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Sequence
from typing import Final

from bot.chat.active_conversations import ActiveConversations
from bot.chat.catchup import UNSUPPORTED
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.events import MessageReceived
from bot.core.language import CATALOGUE
from bot.core.lru import DefaultLRU
from bot.core.ports import Transport
from bot.outbox.owner_alerts import Owner
from frostagent.text.language import Phrase
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock

logger = logging.getLogger(__name__)

PAUSES: Final = 32  # between messages, the latest ones, by which a group is known
FEWEST: Final = 10  # of them; with fewer nothing is known of it
FACTOR: Final = 3.0  # a silence of so many times the longest pause is unusual
SHORTEST: Final = 60.0  # seconds: no shorter silence is unusual, however lively the group
LONGEST: Final = 1800.0  # seconds; a group where only a longer one is unusual is not lively
APART: Final = 60.0  # seconds between two histories of one account
LAG: Final = 5.0  # seconds in which an event comes that its server has sent
MESSAGES: Final = 50
MAX_PLACES: Final = 2000

DEAF: Final = Phrase(
    "账号 {account} 的 OneBot 服务端还连着，却不再上报消息：群 {group} 里有 {count} 条"
    "没有送来，是从历史记录里补读的。请重启 OneBot 服务端；如果反复出现，请更新它和 QQ。",
    "The OneBot server of account {account} is connected but reports no messages: {count} in"
    " group {group} never came and were read from its history. Restart the OneBot server. If"
    " this happens again, update it and QQ.",
)
CATALOGUE.register(__name__, globals())


class Rhythm:
    """How long the pauses of one group usually are, and how long it has been silent now."""

    __slots__ = ("_counts", "_is_watched", "_pauses", "_silent_since", "said")

    def __init__(self) -> None:
        self._pauses: deque[float] = deque(maxlen=PAUSES)
        self._silent_since = 0.0
        self._counts = False  # whether this silence, once it ends, was a pause of the group's
        self._is_watched = False
        self.said = -math.inf  # when the latest message was said, by its server's clock

    def hear(self, said: float, now: float) -> None:
        """A message came as an event."""
        if self._counts:
            self._pauses.append(now - self._silent_since)
        self._silent_since, self._counts, self._is_watched = now, True, True
        self.said = max(self.said, said)

    def begin_anew(self, now: float) -> None:
        """The account has connected: the silence until now says nothing of the group."""
        self._silent_since, self._counts, self._is_watched = now, False, True

    def disregard(self) -> None:
        """This silence is the server's, and known."""
        self._counts = self._is_watched = False

    def look(self) -> None:
        """Its history is read: once is enough for this silence."""
        self._is_watched = False

    @property
    def due(self) -> float:
        """When the silence becomes unusual; infinite if it is not watched, or the group is not
        lively.
        """
        if not self._is_watched or len(self._pauses) < FEWEST:
            return math.inf
        patience = FACTOR * max(self._pauses)
        return math.inf if patience > LONGEST else self._silent_since + max(SHORTEST, patience)


class DeafnessWatch:
    """Watches the groups of all accounts."""

    def __init__(
        self,
        *,
        transport: Transport,
        active_conversations: ActiveConversations,
        owner: Owner,
        clock: Clock,
    ) -> None:
        self._transport = transport
        self._active_conversations = active_conversations
        self._owner = owner
        self._clock = clock
        self._rhythms = DefaultLRU[Conversation, Rhythm](MAX_PLACES, Rhythm)
        self._heard = asyncio.Event()
        self._deaf: set[int] = set()  # accounts
        self._next_look: dict[int, float] = {}  # by account; infinite: it has no histories

    def hear(self, message: MessageReceived) -> None:
        """A message came as an event, and is not taken yet, or was lost behind the gateway. After a
        deaf server's silence it is the first: what came between the history and it is caught up
        with.
        """
        if message.self_id in self._deaf:
            self._deaf.discard(message.self_id)
            self._active_conversations.connected(message.self_id)
        if message.conversation.is_group:
            rhythm = self._rhythms.use(message.conversation)
            rhythm.hear(message.time, self._clock.monotonic())
            self._heard.set()

    def connected(self, account: int) -> None:
        """The account can be called (again), and its places are being caught up with."""
        now = self._clock.monotonic()
        self._deaf.discard(account)
        self._next_look[account] = now + APART
        for rhythm in self._of(account):
            rhythm.begin_anew(now)
        self._heard.set()

    async def run(self) -> None:
        """Read the history of whatever group is unusually silent, until cancelled."""
        while True:
            await self._heard.wait()
            self._heard.clear()
            due = self._clock.monotonic() + SHORTEST  # nothing that is heard now is due before
            while due < math.inf:
                await self._clock.sleep(min(SHORTEST, max(0.0, due - self._clock.monotonic())))
                await self._look_around()
                due = min(map(self._due, self._rhythms), default=math.inf)

    def _due(self, where: Conversation) -> float:
        return max(self._rhythms[where].due, self._next_look.get(where.platform_id, 0.0))

    def _of(self, account: int) -> list[Rhythm]:
        return [rhythm for where, rhythm in self._rhythms.items() if where.platform_id == account]

    async def _look_around(self) -> None:
        now = self._clock.monotonic()
        due = [where for where in self._rhythms if self._due(where) <= now]
        due.sort(key=self._due)
        first = {where.platform_id: where for where in reversed(due)}
        for account, where in first.items():
            self._next_look[account] = now + APART
            try:
                await self._look_at(where, self._rhythms[where])
            except ActionRefused as error:
                logger.info("no history of %s: %s", where, error)
                if error.retcode in UNSUPPORTED:
                    self._next_look[account] = math.inf  # until it connects again
            except (NotConnected, ActionUnanswered) as error:
                logger.info("no history of %s: %s", where, error)
            except Exception:
                logger.exception("looking for messages that did not come in %s failed", where)

    async def _look_at(self, where: Conversation, rhythm: Rhythm) -> None:
        rhythm.look()
        last = rhythm.said
        logger.debug("%s is unusually silent: do events still come?", where)
        history = await self._transport.get_history(where, count=MESSAGES)
        missed = [message for message in history if not message.is_own and message.time > last]
        if not missed:
            return
        await self._clock.sleep(LAG)
        if rhythm.said == last:  # else they were on their way
            self._tell(where, missed)
            for other in self._of(where.platform_id):
                other.disregard()
            self._deaf.add(where.platform_id)
            self._active_conversations.connected(where.platform_id)

    def _tell(self, where: Conversation, missed: Sequence[MessageReceived]) -> None:
        line = DEAF.format(
            self._owner.tongue, account=where.platform_id, group=where.session_id, count=len(missed)
        )
        self._owner.tell(f"deaf server of {where.platform_id}", line)
