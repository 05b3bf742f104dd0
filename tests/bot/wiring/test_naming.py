from __future__ import annotations

from bot.runtime.version import version
from bot.wiring.fetching import user_agent
from config.settings import Settings


def test_who_asks_says_its_version_and_whom_to_tell() -> None:
    assert user_agent(Settings()) == f"FrostAgent/{version()}"
    assert user_agent(Settings(tools_contact="me@example.org")) == f"FrostAgent/{version()} (+me@example.org)"
