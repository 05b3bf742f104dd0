"""All accounts of a cluster on the pages of one console: the bots are asked how theirs are, and
whoever has an account carries out what is said about it. A bot alone asks nobody.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from typing import Final, assert_never

from msgspec.structs import replace

from bot.console.console_backend import (
    DRAFTS,
    ConsoleBackend,
    glance_of,
    rendered,
    settle,
    waiting_on_page,
)
from bot.domain.cancellation import background
from bot.domain.cluster_queries import (
    AnswerQuery,
    ClusterQuery,
    ClusterReply,
    ContextQuery,
    ContextReply,
    DecisionResult,
    OwnerDecision,
    PartitionStatus,
    StatusQuery,
)
from bot.domain.console_views import ModelState, State
from bot.domain.errors import ActionUnanswered, NotConnected
from bot.domain.events import Conversation
from bot.domain.suspension import Settled
from bot.memory.wide_feed import WideFeed

FAILURES: Final = 20  # that are shown of all bots


def answering(seen: ConsoleBackend) -> AnswerQuery:
    """The function that answers the other bots of a cluster for this one."""

    async def answer(ask: ClusterQuery) -> ClusterReply:
        match ask:
            case StatusQuery(with_drafts=with_drafts):
                return await glance_of(seen, with_drafts=with_drafts)
            case OwnerDecision():
                return DecisionResult(await settle(seen.rooms, ask))
            case ContextQuery(where=where):
                return ContextReply(rendered(seen.rooms, where))
            case _:
                assert_never(ask)

    return answer


class ClusterConsole:
    """All bots of a cluster on one console: this one directly, the others by requests."""

    def __init__(self, seen: ConsoleBackend) -> None:
        self._seen = seen
        self._others = seen.others
        self._answer = answering(seen)
        self._elsewhere = 0
        share, showing = seen.journal.share, seen.journal.shown
        self._wide = WideFeed(seen.newest, showing, ours=share.has_place, clock=seen.clock)

    @property
    def feed(self) -> WideFeed:
        """The live feed of all bots."""
        return self._wide

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Poll the other bots while the block runs and somebody watches."""
        if self._others.count:
            async with background(self._wide.run(self.look)):
                yield
        else:
            yield

    async def look(self, *, with_drafts: bool = False) -> PartitionStatus:
        """How all are now, as one; the partition is this bot's own."""
        told = await self._others.ask_all(StatusQuery(with_drafts))
        own = await glance_of(self._seen, with_drafts=with_drafts)
        # While a partition changes hands two bots may answer for it.
        found = {one.partition: one for one in (*told, own) if isinstance(one, PartitionStatus)}
        others = [found[number] for number in sorted(found) if number != own.partition]
        self._elsewhere = sum(one.waiting for one in others)
        return together([own, *others], absent=self._others.count - len(others))

    def waiting(self) -> int:
        """How many decisions wait for an owner: here now, elsewhere at the last poll."""
        return waiting_on_page(self._seen.rooms) + self._elsewhere

    async def settle(self, word: OwnerDecision) -> Settled:
        """An owner's word, carried out by the bot that has its account."""
        try:
            told = await self._ask(word.account, word)
        except NotConnected:
            return Settled("away", "")
        except ActionUnanswered:
            return Settled("lost", "")
        return told.settled if isinstance(told, DecisionResult) else Settled("lost", "")

    async def rendered(self, where: Conversation) -> Sequence[str] | None:
        """The prompt of a conversation; None if no bot has its account just now."""
        try:
            told = await self._ask(where.platform_id, ContextQuery(where))
        except (NotConnected, ActionUnanswered):
            return None
        return told.parts if isinstance(told, ContextReply) else None

    async def _ask(self, account: int, ask: ClusterQuery) -> ClusterReply:
        is_ours = not account or self._seen.journal.share.has(account)
        return await (self._answer(ask) if is_ours else self._others.ask(account, ask))


def together(glances: Sequence[PartitionStatus], *, absent: int = 0) -> PartitionStatus:
    """Several bots, shown as one. A model that is left alone by one of them is so for all."""
    first, states = glances[0], [one.state for one in glances]
    drafts = sorted(
        chain.from_iterable(one.drafts for one in glances), key=lambda one: -one.expires
    )
    failures = sorted(chain.from_iterable(one.failures for one in states), key=lambda one: -one.at)
    state = State(
        accounts=tuple(chain.from_iterable(one.accounts for one in states)),
        active=sum(one.active for one in states),
        waiting=sum(one.waiting for one in states),
        models=_models(states),
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
        waiting=sum(one.waiting for one in glances),
        drafts=tuple(drafts[:DRAFTS]),
        more=sum(one.more for one in glances) + len(drafts[DRAFTS:]),
        personas=_personas(glances),
    )


def _models(states: Sequence[State]) -> tuple[ModelState, ...]:
    together = dict[str, ModelState]()
    for model in chain.from_iterable(one.models for one in states):
        other = together.get(model.name, model)
        together[model.name] = ModelState(
            model.name, max(model.cooldown, other.cooldown), model.is_priced or other.is_priced
        )
    return tuple(together.values())


def _personas(glances: Sequence[PartitionStatus]) -> Mapping[str, tuple[str, ...]]:
    """Their chats: those of the files every bot knows, the chosen ones only who has them."""
    keys = dict.fromkeys(chain.from_iterable(one.personas for one in glances))
    return {
        key: tuple(dict.fromkeys(chain.from_iterable(one.personas.get(key, ()) for one in glances)))
        for key in keys
    }
