"""The other bots of a cluster, queried over the broker: their statuses are added to this bot's own,
and a decision is applied by the bot that has the account.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from typing import Final, NoReturn

from msgspec.structs import replace

from adapters.broker.queries import (
    ClusterReply,
    ContextQuery,
    ContextReply,
    DecisionResult,
    StatusQuery,
)
from adapters.broker.requests import RequestExchange
from bot.console.console_backend import DRAFTS, merge_models
from bot.core.console_views import (
    BotStatus,
    ConsoleQueries,
    News,
    OwnerDecision,
    State,
    TurnQuery,
    TurnRow,
)
from bot.core.conversation import Conversation
from bot.core.errors import ActionUnanswered, NotConnected
from bot.core.settlement import Settled
from bot.memory.newest import Newest
from frostagent.types.ports import Clock

FAILURES: Final = 20  # shown, of all bots together
EVERY: Final = 1.0  # seconds between two polls
WATCHED: Final = 15.0  # seconds for which a page counts as watched after a request


class ClusterBots:
    def __init__(self, requests: RequestExchange) -> None:
        self._requests = requests
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """Number of decisions that waited at the other bots when last queried."""
        return self._waiting

    async def add_statuses(self, own: BotStatus, /, *, with_drafts: bool = False) -> BotStatus:
        """The status of all bots together, with the number of this one."""
        replies = await self._requests.ask_all(StatusQuery(with_drafts))
        # While a partition changes hands two bots may answer for it.
        found = {one.number: one for one in replies if isinstance(one, BotStatus)}
        others = [found[number] for number in sorted(found) if number != own.number]
        self._waiting = sum(one.waiting for one in others)
        return merge_statuses([own, *others], absent=self._requests.count - len(others))

    async def decide(self, decision: OwnerDecision, /) -> Settled:
        """Have a decision applied by the bot that has its account."""
        try:
            reply = await self._requests.ask(decision.account, decision)
        except NotConnected:
            return Settled("away", "")
        except ActionUnanswered:
            return Settled("lost", "")
        return reply.settled if isinstance(reply, DecisionResult) else Settled("lost", "")

    async def render_context(self, where: Conversation, /) -> Sequence[str] | None:
        reply: ClusterReply
        try:
            reply = await self._requests.ask(where.platform_id, ContextQuery(where))
        except (NotConnected, ActionUnanswered):
            return None
        return reply.parts if isinstance(reply, ContextReply) else None


def merge_statuses(statuses: Sequence[BotStatus], *, absent: int = 0) -> BotStatus:
    """Merge the statuses of several bots, with the number and storage of the first; `absent` bots
    did not answer. A model in cooldown for one bot is shown so for all.
    """
    first, states = statuses[0], [one.state for one in statuses]
    drafts = sorted(
        chain.from_iterable(one.drafts for one in statuses), key=lambda one: -one.expires
    )
    failures = sorted(chain.from_iterable(one.failures for one in states), key=lambda one: -one.at)
    waits = Counter[str]()
    for one in statuses:
        waits.update(one.waits)
    state = State(
        accounts=tuple(chain.from_iterable(one.accounts for one in states)),
        active=sum(one.active for one in states),
        waiting=sum(one.waiting for one in states),
        models=merge_models(chain.from_iterable(one.models for one in states)),
        place=first.state.place,
        in_trouble=any(one.in_trouble for one in states),
        unwritten=sum(one.unwritten for one in states),
        calls=tuple(chain.from_iterable(one.calls for one in states)),
        petitions=tuple(chain.from_iterable(one.petitions for one in states)),
        failures=tuple(failures[:FAILURES]),
        paused=tuple(chain.from_iterable(one.paused for one in states)),
        outbox=tuple(
            sorted(chain.from_iterable(one.outbox for one in states), key=lambda one: one.since)
        ),
        ignored=tuple(
            sorted(chain.from_iterable(one.ignored for one in states), key=lambda one: one.at)
        ),
        absent=absent,
    )
    return replace(
        first,
        state=state,
        waiting=sum(one.waiting for one in statuses),
        drafts=tuple(drafts[:DRAFTS]),
        more=sum(one.more for one in statuses) + len(drafts[DRAFTS:]),
        personas=_merge_personas(statuses),
        waits=dict(waits),
    )


def _merge_personas(statuses: Sequence[BotStatus]) -> Mapping[str, tuple[str, ...]]:
    """The chats of each persona. Only a bot with the account knows chats that chose one."""
    keys = dict.fromkeys(chain.from_iterable(one.personas for one in statuses))
    return {
        key: tuple(
            dict.fromkeys(chain.from_iterable(one.personas.get(key, ()) for one in statuses))
        )
        for key in keys
    }


class WideFeed:
    """A `Feed` of all bots' news for the console. News that is `ours` comes from `newest` at once;
    the others' is read from the journal, once a second while a page is watched.
    """

    def __init__(
        self,
        newest: Newest,
        showing: ConsoleQueries,
        *,
        ours: Callable[[Conversation], bool],
        clock: Clock,
    ) -> None:
        self._newest = newest
        self._showing = showing
        self._ours = ours
        self._clock = clock
        self._asked = -math.inf
        self._since = 0.0
        self._known: dict[str, str] = {}

    @property
    def number(self) -> int:
        self._watch()
        return self._newest.number

    async def after(self, number: int, *, within: float) -> tuple[News, ...]:
        """Return all news after `number`, waiting at most `within` seconds for some."""
        self._watch()
        return await self._newest.after(number, within=within)

    async def run(self, then: Callable[[], Awaitable[object]]) -> NoReturn:
        """Poll for ever, and call `then` after each poll."""
        while True:
            await self._clock.sleep(EVERY)
            if self._is_watched:
                await self._look()
                await then()

    @property
    def _is_watched(self) -> bool:
        return self._clock.monotonic() - self._asked <= WATCHED

    def _watch(self) -> None:
        if not self._is_watched:  # earlier news is on the page being loaded
            self._since, self._known = self._clock.now(), {}
        self._asked = self._clock.monotonic()

    async def _look(self) -> None:
        if (found := await self._showing.rows(TurnQuery())) is None:
            return
        known = {_name(row): row.outcome for row in found.rows if not self._ours(row.where)}
        for row in found.rows:
            name = _name(row)
            if name in known and self._is_new(row, self._known.get(name)):
                self._newest.add(name)
        self._known = known

    def _is_new(self, row: TurnRow, before: str | None) -> bool:
        """Whether it began or ended since a page was watched."""
        if before is not None:
            return row.outcome != before
        return row.at + (row.seconds or 0.0) >= self._since


def _name(row: TurnRow) -> str:
    return row.turn_id or row.message_id
