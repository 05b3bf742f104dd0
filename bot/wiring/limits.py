"""Limits of requests to models, put together from the settings: a question's budget, a day's."""

from __future__ import annotations

from collections.abc import Callable

from adapters.storage.books import SqlBooks
from bot.conversation.turns.turn_budget import TurnBudget
from bot.domain.cluster_messages import ALONE, ClusterPeers
from bot.domain.language import NotifyOwners
from bot.domain.model_messages import Attempt
from bot.domain.ports import Clock, Ids, Store
from bot.memory.own_limits import OwnLimits
from bot.memory.spending import Spending
from bot.models.meter import Meter
from bot.policy.budget import Limits
from bot.policy.day_limits import Cap, DayLimits
from bot.wiring.resources import Resources
from config.settings import Settings


def build_spending(
    settings: Settings,
    store: Store,
    books: SqlBooks,
    clock: Clock,
    tell: NotifyOwners,
    neighbours: ClusterPeers = ALONE,
    kind: Callable[..., Spending] = Spending,
) -> Spending:
    """Who knows what was taken today; `tell` reaches the owner."""
    own = OwnLimits(store=store, choices=books, clock=clock, neighbours=neighbours)
    limits = DayLimits(
        Cap(settings.bot_day_cost_user, settings.bot_day_tokens_user),
        Cap(settings.bot_day_cost_group, settings.bot_day_tokens_group),
        Cap(settings.bot_day_cost_all, settings.bot_day_tokens_all),
    )
    owners = settings.bot_owners
    return kind(
        limits,
        own=own,
        book=books,
        owners=owners,
        clock=clock,
        tell=tell,
        neighbours=neighbours,
    )


def build_meter(
    store: Store, spending: Spending, *, clock: Clock, ids: Ids, count: Callable[[Attempt], None]
) -> Meter:
    """Who counts requests; the first one of a question is reserved only where a day has a limit."""
    return Meter(
        store,
        clock=clock,
        ids=ids,
        reserves=spending.has_limits,
        refuses=spending.refuses,
        count=count,
    )


def build_thrift(settings: Settings, means: Resources, spending: Spending) -> TurnBudget:
    """The thrift of questions, and of subagents; the cheap model answers where one is named."""
    named = settings.llm_cheap_model not in {"", settings.llm_model}
    cheap = means.models.named(settings.llm_cheap_model) if named else None
    turn_budget = TurnBudget(limits_of(settings), spending, cheap, means.staff.toolset.list)
    means.staff.subagents.leaner = turn_budget.leaner
    return turn_budget


def limits_of(settings: Settings) -> Limits:
    """The limits of one question."""
    return Limits(settings.bot_run_requests, settings.bot_run_tokens, settings.bot_max_sends)
