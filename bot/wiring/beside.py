"""The settings of a bot beside the bot: a trial in the browser, or the chat on a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import SecretStr

from config.owners import Owners
from config.settings import Settings


def beside(
    settings: Settings, folder: str, *, people: frozenset[int] = frozenset()
) -> dict[str, Any]:
    """What any of them says otherwise: what it keeps is in this folder, and nothing that is set for
    QQ's groups, people and hours counts. These `people` are heard as they come; of the owners
    those are told who are among them.
    """
    nobody = frozenset[int]()
    owners = settings.bot_owners
    return {
        "store_url": SecretStr(f"sqlite:///{folder}/journal.db"),
        # That of the bot keeps its drafts, which a journal that knows none would sweep.
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
        "bot_user_rate": None,  # whoever tries it out, types fast
        "bot_group_rate": None,
        "bot_loop": 0,
    }
