from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr

from bot.wiring.simulated import isolated_settings
from config.owners import Owners
from config.settings import Settings


def test_what_is_set_for_qq_and_where_the_bot_keeps_things_is_set_otherwise() -> None:
    somebody = frozenset({7})
    given = Settings(
        bot_owners=Owners({7, 8}, {8}),
        bot_groups=somebody,
        bot_users=somebody,
        bot_block=somebody,
        bot_quiet="00:00-23:59",
        bot_quiet_mode="all",
        bot_role="worker",
        broker_url=SecretStr("amqp://127.0.0.1:9/"),
        console_port=9,
        web_port=9,
    )
    made = given.model_copy(update=isolated_settings(given, "/tmp/x"))
    assert (made.store_url, made.media_dir) == (SecretStr("sqlite:////tmp/x/journal.db"), Path("/tmp/x/media"))
    assert (made.bot_groups, made.bot_users, made.bot_block, made.bot_owners) == (frozenset(),) * 4
    assert (made.bot_quiet, made.bot_new_group, made.bot_digest, made.bot_loop) == ((), "live", None, 0)
    assert (made.bot_user_rate, made.bot_group_rate) == (None, None)
    assert (made.has_broker, made.bot_role, made.onebot_mode, made.console_port, made.web_port) == (
        False,
        "all",
        "forward",
        0,
        0,
    )
    owners = isolated_settings(given, "/tmp/x", people=frozenset({8, 9}))["bot_owners"]
    assert (set(owners), set(owners.quiet)) == ({8}, {8})
