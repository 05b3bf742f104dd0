"""The settings: every problem and doubt that loading them finds, whether the token can be guessed,
and which proxy is believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bot.cli.doctor.checks import Check, warn, well, wrong_settings
from bot.cli.doctor.chinese import in_words, sentence
from bot.domain.errors import ConfigError
from config.checks import HOW_TO_MAKE_ONE, WEAK_TOKEN
from config.loading import load_settings
from config.settings import Settings
from config.values import is_loopback

TOKEN = "ONEBOT_ACCESS_TOKEN"  # noqa: S105  # its name
FEW_CHARACTERS = 5
"""Different ones; a random token of 8 letters and digits practically never has fewer."""


def check_settings(
    *, environ: Mapping[str, str], env_file: Path | None
) -> tuple[Settings | None, list[Check]]:
    """The settings of the service, None where they cannot be used, and what there is to say of
    them.
    """
    try:
        settings, warnings = load_settings(environ=environ, env_file=env_file)
    except ConfigError as error:
        return None, wrong_settings("settings", error.problems)
    told = [
        warn("settings", in_words(doubt), doubt.mend) for doubt in warnings if doubt.name != TOKEN
    ]
    return settings, [*(told or [well("settings", "can be used")]), *check_trust(settings)]


def check_trust(settings: Settings) -> list[Check]:
    """By what others are known: the token of OneBot servers, and the proxy before the console."""
    proxy = settings.console_proxy
    if not proxy:
        return [check_token(settings)]
    said = sentence(
        "{} is believed who asks: it must set X-Forwarded-For itself, else anybody forges it", proxy
    )
    if is_loopback(proxy):
        said = sentence("{}, as any process of this machine or tunnel to it can", said)
    return [check_token(settings), well("console proxy", said)]


def check_token(settings: Settings) -> Check:
    """Whether somebody could guess a token that OneBot servers and the bot know each other by."""
    tokens = settings.access_tokens.all
    if not tokens:
        return warn(
            "token",
            sentence("{} is not set: nothing tells the OneBot server from a stranger", TOKEN),
            HOW_TO_MAKE_ONE,
        )
    if any(len(token) < WEAK_TOKEN or len(set(token)) < FEW_CHARACTERS for token in tokens):
        return warn("token", sentence("{} is easy to guess", TOKEN), HOW_TO_MAKE_ONE)
    accounts = ", ".join(map(str, settings.access_tokens.accounts))
    shortest = min(map(len, tokens))
    if not accounts:
        return well("token", sentence("has {} characters", shortest))
    said = sentence("has {} characters; tokens of their own have {}", shortest, accounts)
    return well("token", said)
