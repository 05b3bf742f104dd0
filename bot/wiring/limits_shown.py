"""The limits there are, as the console lists them: each with the setting that decides it."""

from __future__ import annotations

from typing import Final

from bot.commands.phrases import tokens
from bot.domain.shown import LimitState
from bot.memory.own_limits import OwnLimits
from bot.policy.limits import OwnCap
from config.settings import Settings

SETTINGS: Final = (
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
MANY: Final = 10_000


def limits_shown(settings: Settings, owned: OwnLimits) -> tuple[LimitState, ...]:
    """Those of the settings, then those of single groups: in the operator's file, and those that
    owners set by command.
    """
    usual = [LimitState(name.upper(), _value(name, getattr(settings, name))) for name in SETTINGS]
    own = [LimitState(BY_COMMAND, _amounts(cap), str(whose)) for whose, cap in owned.all().items()]
    filed = [LimitState(BY_FILE, _amounts(cap), str(group)) for group, cap in owned.filed().items()]
    return (*usual, *filed, *own)


def _value(name: str, value: object) -> str:
    match value:
        case (int() as number, float() as seconds):
            return f"{number} / {seconds:g} s"
        case int() | float() if value and "cost" in name:
            return f"${value:g}"
        case int() if value >= MANY:
            return tokens(value)
        case int() | float() if value:
            return f"{value:g}"
        case _:
            return ""


def _amounts(cap: OwnCap) -> str:
    """The amounts set for one, ∞ for one that is lifted; empty where both are. Those that are as
    usual are left out: the usual stands above.
    """
    if cap == OwnCap(cost=0.0, tokens=0):
        return ""
    told = [] if cap.cost is None else [f"${cap.cost:g}" if cap.cost else "$∞"]
    if cap.tokens is not None:
        told.append(f"{tokens(cap.tokens) if cap.tokens else '∞'} token")
    return ", ".join(told)
