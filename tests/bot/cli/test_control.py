"""What the bot says of itself when an operator asks."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from adapters.offline.server import OfflineModel
from adapters.simulator.server import Simulator
from adapters.simulator.world import demo_world
from adapters.web.readiness import STOPPING
from bot.app import open_service
from bot.cli.control import CONSOLE_ELSEWHERE, NO_CONSOLE, BotCommands, socket_of
from bot.cli.control_commands import status_to_text
from bot.core.conversation import Conversation
from bot.core.journal import MessageObserved
from bot.web import STANDING_BY, build_attendance
from config.settings import Settings
from config.values import Owners
from frostagent.clock import SystemClock
from tests.bot.test_app import TOKEN, settings
from tests.fakes import BOT, GROUP, PRIVATE, said

MING, HONG = 777, 888
ELSEWHERE = Conversation(BOT, "group", 4343)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("sqlite:///data/frost.db", "data/frost.db-control"),
        ("sqlite:////srv/frost.db", "/srv/frost.db-control"),
        ("postgresql://db/frost", "data/run/frostagent-control"),
    ],
)
def test_the_socket_lies_beside_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert socket_of(url) == tmp_path / place


async def test_a_status_fits_on_a_screen_and_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stopped: list[bool] = []
    async with OfflineModel() as model:
        given = settings(model.base_url, llm_fallbacks='[{"base_url": "http://127.0.0.1:9", "model": "second"}]')
        async with open_service(given) as service, Simulator(demo_world(), reconnect=0.05) as simulator:
            since = time.time() - 3 * 3600 - 61
            desk = BotCommands(
                bots=lambda: (service,),
                ready=build_attendance(lambda: [service.app]),
                settings=given,
                clock=SystemClock(),
                version="1.2.3",
                since=since,
                stop=lambda: stopped.append(True),
            )
            before = status_to_text(await desk.status())
            assert "none is connected" in before
            assert "demo, then second" in before
            assert "data/frostagent.db: written" in before
            assert "(3 h 1 min)" in before
            simulator.dial(f"ws://127.0.0.1:{service.port}/", token=TOKEN)
            await simulator.wait_connected()
            await simulator.say("@bot hello")
            await simulator.wait_sent(1)
            await service.wait_idle()
            status = await desk.status()
            assert [row["account"] for row in status["accounts"]] == [10001]
            assert status["lanes"] == {"active": 0, "waiting": 0}
            assert not status["journal"]["in_trouble"]
            assert status["readiness"]["ready"]
            assert (await desk.reload())["ok"]
            assert set(desk.commands) == {"reload", "stop", "status", "console", "forget"}
            assert "CONSOLE_PORT" in (await desk.commands["console"]())["error"]
            await desk.end()
            assert stopped == [True]
            await service.app.lanes.finish(within=0)
            assert (await desk.status())["readiness"]["reason"] == STOPPING
            trouble = {"place": "x", "in_trouble": True, "waiting": 7}
            wrong = {**await desk.status(), "journal": trouble, "seconds": 90_000}
            wrong["accounts"] = [{"account": 1, "online": False, "server": ""}]
            told = status_to_text(wrong)
            for words in ("stopping", "CANNOT BE WRITTEN, 7 entries", "1 OFFLINE", "1 d 1 h"):
                assert words in told
            assert len(told.splitlines()) <= 24


async def test_a_person_or_a_group_is_forgotten_by_the_bot_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with OfflineModel() as model:
        given = settings(model.base_url).model_copy(update={"bot_owners": Owners([999])})
        async with open_service(given) as service:
            desk = BotCommands(
                bots=lambda: (service,),
                ready=build_attendance(lambda: [service.app]),
                settings=given,
                clock=SystemClock(),
                version="1.2.3",
                since=time.time(),
                stop=lambda: None,
            )
            owner = service.app.owner  # nobody is connected: what it tells waits
            for who in (MING, HONG):
                owner.tell(f"loop of {who}", f"a loop of {who}")
            for user, where in ((MING, GROUP), (MING, PRIVATE), (HONG, GROUP), (HONG, ELSEWHERE)):
                service.app.journal.put(MessageObserved(said("hi", user=user, where=where), overheard=True))
            for rows in (2, 0):
                assert await desk.forget(user=MING) == {"rows": rows}
            assert list(owner._untold.values()) == [f"a loop of {HONG}"]
            assert await desk.forget(group=GROUP.session_id) == {"rows": 2}  # and the bare id of his
            for neither in ({}, {"user": 0}, {"user": MING, "group": GROUP.session_id}):
                assert "either a user or a group" in (await desk.forget(**neither))["error"]
            service.app.journal._writer.fail("the disk is full")
            refused = await desk.forget(user=HONG)
            assert refused == {"error": "it cannot be erased now: the journal cannot be written now"}


async def test_a_worker_that_stands_by_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = Settings.model_validate(
        {"broker_url": "amqp://queue/", "broker_partitions": 8, "store_url": "postgresql://u:hidden@db/frost"}
    )
    desk = BotCommands(
        bots=lambda: (),
        ready=build_attendance(list, lambda: STANDING_BY),
        settings=given,
        clock=SystemClock(),
        version="1",
        since=time.time(),
        stop=lambda: None,
    )
    status = await desk.status()
    told = status_to_text(status)
    assert "hidden" not in f"{status}{told}"
    assert "state     standing by: its log says why" in told
    assert "over the broker; partitions of 8: none" in told
    assert "PostgreSQL, frost at db: other workers write it" in told
    assert status["readiness"]["reason"] == STANDING_BY
    assert await desk.reload() == {"ok": True, "told": []}
    assert "stands by" in (await desk.forget(user=5))["error"]
    assert await desk.console() == {"error": NO_CONSOLE}  # the same without a cluster
    configured = given.model_copy(update={"console_port": 8090, "console_token": SecretStr("x" * 32)})
    assert await replace(desk, settings=configured).console() == {"error": CONSOLE_ELSEWHERE}
