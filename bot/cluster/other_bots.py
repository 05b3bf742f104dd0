"""The other bots of a cluster, asked over the broker: their statuses are added to this bot's own,
and a decision is applied by the bot that has the account.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

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
from bot.core.console_views import BotStatus, OwnerDecision, State
from bot.core.errors import ActionUnanswered, NotConnected
from bot.core.settlement import Settled
from frostagent.types.conversation import Conversation

FAILURES: Final = 20  # that are shown, of all bots together


class ClusterBots:
    """Fits `OtherBots`."""

    def __init__(self, requests: RequestExchange) -> None:
        self._requests = requests
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """How many decisions waited there for an owner when they were last asked."""
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
        """The part of a prompt before the conversation; None if no bot has its account now."""
        reply: ClusterReply
        try:
            reply = await self._requests.ask(where.platform_id, ContextQuery(where))
        except (NotConnected, ActionUnanswered):
            return None
        return reply.parts if isinstance(reply, ContextReply) else None


def merge_statuses(statuses: Sequence[BotStatus], *, absent: int = 0) -> BotStatus:
    """The statuses of several bots as one, with the number and storage of the first; `absent`
    bots did not answer. A model in cooldown for one bot is shown so for all.
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
