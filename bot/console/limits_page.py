"""The page of limits: those of the settings, and those of single people and groups."""

from __future__ import annotations

from typing import Final

from bot.budget.limits import LimitOverride, OwnLimits
from bot.core.command import tokens
from bot.core.console_views import LimitState
from bot.core.language import CATALOGUE, Phrase
from config.settings import Settings

LIMIT_SETTINGS: Final = (
    "bot_user_rate",
    "bot_group_rate",
    "bot_lane",
    "bot_stale",
    "bot_loop",
    "bot_day_cost_user",
    "bot_day_cost_group",
    "bot_day_cost_all",
    "bot_day_tokens_user",
    "bot_day_tokens_group",
    "bot_day_tokens_all",
    "bot_run_requests",
    "bot_run_tokens",
    "bot_max_steps",
    "bot_max_sends",
    "bot_send_rate",
    "tools_max_calls",
)
BY_COMMAND: Final = "/limit"
BY_FILE: Final = "GROUPS_FILE"
MANY_TOKENS: Final = 10_000
RATE: Final = Phrase("{seconds:g} 秒内 {calls} 次", "{calls} / {seconds:g} s")
CATALOGUE.register(__name__, globals())


def list_limits(settings: Settings, overrides: OwnLimits) -> tuple[LimitState, ...]:
    """The limits of the settings, of groups in GROUPS_FILE, and of commands, in this order."""
    usual = [
        LimitState(name.upper(), _format(name, getattr(settings, name))) for name in LIMIT_SETTINGS
    ]
    by_file = [
        LimitState(BY_FILE, _format_override(limit), str(group))
        for group, limit in overrides.filed.items()
    ]
    by_command = [
        LimitState(BY_COMMAND, _format_override(limit), str(whose))
        for whose, limit in overrides.all().items()
    ]
    return (*usual, *by_file, *by_command)


def _format(name: str, value: object) -> str:
    match value:
        case (int() as number, float() as seconds):
            return RATE.fill(calls=number, seconds=seconds)
        case int() | float() if value and "cost" in name:
            return f"${value:g}"
        case int() if value >= MANY_TOKENS:
            return tokens(value)
        case int() | float() if value:
            return f"{value:g}"
        case _:
            return ""


def _format_override(limit: LimitOverride) -> str:
    """The amounts, ∞ for one that is lifted; empty if both are. An amount without an override is
    omitted: the page shows the general one above.
    """
    if limit == LimitOverride(cost=0.0, tokens=0):
        return ""
    amounts = [] if limit.cost is None else [f"${limit.cost:g}" if limit.cost else "$∞"]
    if limit.tokens is not None:
        amounts.append(f"{tokens(limit.tokens) if limit.tokens else '∞'} token")
    return ", ".join(amounts)
