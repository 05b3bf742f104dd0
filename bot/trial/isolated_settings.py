"""The settings of a bot apart from the configured one: of a trial, and of the terminal chat."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

from adapters.offline.server import MEDIA_FOLDER, OfflineModel
from bot.core.trial_group import TrialLimits
from config.settings import Settings
from config.values import Owners

MAX_REQUESTS: Final = 8  # of one question, to the bot's own model
DAY_LIMITS: Final = tuple(
    f"bot_day_{of}_{whose}" for of in ("cost", "tokens") for whose in ("user", "group", "all")
)


def isolated_settings(
    settings: Settings, folder: str, *, people: frozenset[int] = frozenset()
) -> dict[str, Any]:
    """The settings that a trial or the terminal chat changes: it keeps its data in this folder, and
    settings for QQ's groups, people and hours do not apply. Owners are only those among `people`.
    """
    nobody = frozenset[int]()
    owners = settings.bot_owners
    return {
        "store_url": SecretStr(f"sqlite:///{folder}/journal.db"),
        # The bot's folder holds its drafts; a journal without rows of them would delete them.
        "media_dir": Path(folder) / "media",
        "onebot_mode": "forward",
        "bot_role": "all",
        "broker_url": SecretStr(""),
        "web_port": 0,
        "console_port": 0,
        "bot_groups": nobody,
        "bot_users": nobody,
        "bot_block": nobody,
        "bot_owners": Owners(owners & people, owners.quiet & people),
        "bot_new_group": "live",
        "bot_quiet": (),
        "bot_digest": None,
        "bot_recap": "",
        "bot_user_rate": None,  # testers type fast
        "bot_group_rate": None,
        "bot_loop": 0,
    }


def trial_settings(settings: Settings, folder: str, tools: frozenset[str]) -> dict[str, Any]:
    """The settings that every trial changes: it writes nothing outside its folder, has no owners,
    answers without delay, and has only these tools.
    """
    return {
        **isolated_settings(settings, folder),
        "log_runs": None,
        "log_content": False,
        "groups_file": None,
        "bot_memory": False,
        "bot_pace": False,
        "bot_debounce": 0.0,
        "media_send": "base64",
        "stt_base_url": "",
        "stt_api_key": SecretStr(""),
        "tools_group": False,
        "tools_dir": None,
        "mcp_file": None,
        "mcp_keys": {},
        "tools_deny": tuple(name for name in settings.tools_deny if name in tools),
        "tools_approve": tuple(name for name in settings.tools_approve if name in tools),
        "tools_audience": {
            name: whose for name, whose in settings.tools_audience.items() if name in tools
        },
        **dict.fromkeys(DAY_LIMITS, 0),
    }


def demo_model_settings(url: str, *, search_url: str) -> dict[str, Any]:
    """The settings of a trial with the demo model, which listens at `url`, and the demo's search:
    no other model is named, and no key is left.
    """
    return {
        "llm_base_url": url,
        "llm_api_key": SecretStr(""),
        "llm_model": OfflineModel.name,
        "llm_dialect": "",
        "llm_fallbacks": (),
        "llm_vision_model": OfflineModel.name,
        "llm_cheap_model": "",
        "llm_context": 0,
        "coder_base_url": "",
        "coder_api_key": SecretStr(""),
        "coder_model": "",
        "subagents_file": None,
        "subagent_keys": {},
        "qweather_key": SecretStr(""),
        "qweather_jwt_private_key": SecretStr(""),
        "amap_key": SecretStr(""),
        "search_url": search_url,
        "search_key": SecretStr(""),
        "search_kind": "",
        "search_price": 0.0,
        "media_dir": MEDIA_FOLDER,
    }


def own_model_settings(settings: Settings, ceiling: TrialLimits) -> dict[str, Any]:
    """The settings of a trial with the bot's own model. The model is told how much of the day's
    limits is left, so those are the trial's ceiling; its `TrialAccount` lets nothing exceed it.
    """
    return {
        "bot_day_cost_all": ceiling.cost,
        "bot_day_tokens_all": ceiling.tokens,
        "bot_run_requests": min(settings.bot_run_requests or MAX_REQUESTS, MAX_REQUESTS),
    }
