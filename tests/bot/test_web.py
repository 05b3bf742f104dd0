from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.broker.partitions import ClusterPartition
from bot.app import open_service
from bot.core.other_bots import EVERY_ACCOUNT, AccountScope
from bot.web import build_attendance
from frostagent.types.errors import ConfigError
from tests.e2e.test_watching import settings


async def test_a_port_somebody_asked_for_or_fetches_files_from_must_be_had_and_a_default_need_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        given = settings("http://127.0.0.1:9/v1", tmp_path, web_port=port)
        with pytest.RaisesGroup(pytest.RaisesExc(ConfigError, match="WEB_PORT"), flatten_subgroups=True):
            async with open_service(given):
                pass
        given.model_fields_set.discard("web_port")
        async with open_service(given):
            pass
        assert "nobody can watch the bot: WEB_PORT: cannot listen" in caplog.text
        given = settings("http://127.0.0.1:9/v1", tmp_path, web_port=port, media_url=f"http://127.0.0.1:{port}/media")
        given.model_fields_set.discard("web_port")
        with pytest.RaisesGroup(pytest.RaisesExc(ConfigError, match="WEB_PORT"), flatten_subgroups=True):
            async with open_service(given):
                pass


def bot(account: int, scope: AccountScope = EVERY_ACCOUNT, *, finishing: bool = False) -> Any:
    there = [SimpleNamespace(self_id=account, online=True, server="")]
    lanes = SimpleNamespace(finishing=finishing)
    return SimpleNamespace(
        peers=SimpleNamespace(accounts=lambda: there, refused=""),
        journal=SimpleNamespace(scope=scope),
        lanes=lanes,
    )


def test_a_worker_is_ready_while_one_of_its_bots_is_and_says_why_it_is_not() -> None:
    assert [seen.account for seen in build_attendance(lambda: [bot(1), bot(2, finishing=True)])().accounts] == [1, 2]
    assert build_attendance(lambda: [bot(1), bot(2, finishing=True)])().ready
    ends = build_attendance(lambda: [bot(1, finishing=True), bot(2, finishing=True)])()
    assert (ends.ready, ends.reason) == (False, "stopping")
    nobody = build_attendance(list, lambda: "standing by")()
    assert (nobody.ready, nobody.reason) == (False, "standing by")


def test_an_account_that_another_worker_has_now_is_not_missed() -> None:
    one, another = (
        next(number for number in range(1, 99) if ClusterPartition(place, 2).has(number)) for place in (0, 1)
    )
    bots = [bot(one, ClusterPartition(0, 2)), bot(another, ClusterPartition(1, 2))]
    attend = build_attendance(lambda: bots)
    assert [seen.account for seen in attend().accounts] == [one, another]
    del bots[1]
    assert [(seen.account, seen.state) for seen in attend().accounts] == [(one, "online")]
    bots[0].peers.accounts = list
    assert attend().reason == f"no OneBot server is connected: account {one} is missing"
