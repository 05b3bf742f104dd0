"""All bots of a cluster on one console: each is asked for its status, and a decision is carried
out by the bot that has the account.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from typing import Final

from msgspec.structs import replace

from bot.build import App
from bot.console.console_backend import DRAFTS, answer_query, count_decisions, read_status
from bot.core.cluster_queries import (
    ClusterQuery,
    ClusterReply,
    ContextQuery,
    ContextReply,
    DecisionResult,
    OwnerDecision,
    PartitionStatus,
    StatusQuery,
)
from bot.core.console_views import ModelState, State
from bot.core.errors import ActionUnanswered, NotConnected
from bot.core.settlement import Settled
from bot.memory.wide_feed import WideFeed
from frostagent.cancellation import background
from frostagent.types.conversation import Conversation

FAILURES: Final = 20  # that are shown, of all bots together


class ClusterConsole:
    """All bots of a cluster on one console: this one directly, the others by queries. A bot alone
    has no others.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._others = app.others
        self._waiting_elsewhere = 0
        share, showing = app.journal.share, app.journal.shown
        self._feed = WideFeed(app.newest, showing, ours=share.has_place, clock=app.clock)

    @property
    def feed(self) -> WideFeed:
        """The live feed of all bots."""
        return self._feed

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Poll the other bots while the block runs and a page is watched."""
        if self._others and self._others.count:
            async with background(self._feed.run(self.look)):
                yield
        else:
            yield

    async def look(self, *, with_drafts: bool = False) -> PartitionStatus:
        """The status of all bots together, with this bot's partition."""
        replies: tuple[ClusterReply, ...] = ()
        if self._others:
            replies = await self._others.ask_all(StatusQuery(with_drafts))
        own = await read_status(self._app, with_drafts=with_drafts)
        # While a partition changes hands two bots may answer for it.
        found = {one.partition: one for one in (*replies, own) if isinstance(one, PartitionStatus)}
        others = [found[number] for number in sorted(found) if number != own.partition]
        self._waiting_elsewhere = sum(one.waiting for one in others)
        count = self._others.count if self._others else 0
        return merge_statuses([own, *others], absent=count - len(others))

    def count_waiting(self) -> int:
        """How many decisions wait for an owner: here now, elsewhere at the last `look`."""
        return count_decisions(self._app) + self._waiting_elsewhere

    async def decide(self, decision: OwnerDecision) -> Settled:
        """Have an owner's decision applied by the bot that has its account."""
        try:
            reply = await self._ask(decision.account, decision)
        except NotConnected:
            return Settled("away", "")
        except ActionUnanswered:
            return Settled("lost", "")
        return reply.settled if isinstance(reply, DecisionResult) else Settled("lost", "")

    async def render_context(self, where: Conversation) -> Sequence[str] | None:
        """The part of a prompt before the conversation; None if no bot has its account now."""
        try:
            reply = await self._ask(where.platform_id, ContextQuery(where))
        except (NotConnected, ActionUnanswered):
            return None
        return reply.parts if isinstance(reply, ContextReply) else None

    async def _ask(self, account: int, query: ClusterQuery) -> ClusterReply:
        is_ours = not account or self._app.journal.share.has(account)
        if is_ours or self._others is None:
            return await answer_query(self._app, query)
        return await self._others.ask(account, query)


def merge_statuses(statuses: Sequence[PartitionStatus], *, absent: int = 0) -> PartitionStatus:
    """The statuses of several bots as one, with the partition and storage of the first; `absent`
    bots did not answer. A model in cooldown for one bot is shown so for all.
    """
    first, states = statuses[0], [one.state for one in statuses]
    drafts = sorted(
        chain.from_iterable(one.drafts for one in statuses), key=lambda one: -one.expires
    )
    failures = sorted(chain.from_iterable(one.failures for one in states), key=lambda one: -one.at)
    state = State(
        accounts=tuple(chain.from_iterable(one.accounts for one in states)),
        active=sum(one.active for one in states),
        waiting=sum(one.waiting for one in states),
        models=_merge_models(states),
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
    )


def _merge_models(states: Sequence[State]) -> tuple[ModelState, ...]:
    merged = dict[str, ModelState]()
    for model in chain.from_iterable(one.models for one in states):
        other = merged.get(model.name, model)
        merged[model.name] = ModelState(
            model.name, max(model.cooldown, other.cooldown), model.is_priced or other.is_priced
        )
    return tuple(merged.values())


def _merge_personas(statuses: Sequence[PartitionStatus]) -> Mapping[str, tuple[str, ...]]:
    """The chats of each persona: every bot knows those of the files, and the chosen ones only of
    its own accounts.
    """
    keys = dict.fromkeys(chain.from_iterable(one.personas for one in statuses))
    return {
        key: tuple(
            dict.fromkeys(chain.from_iterable(one.personas.get(key, ()) for one in statuses))
        )
        for key in keys
    }
