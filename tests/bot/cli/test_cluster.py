"""What is said of a whole cluster, and what reaches it; over a real broker: tests/system/cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import SecretStr

from adapters.broker import status as module
from adapters.broker.payloads import Presence
from adapters.broker.status import BrokerStatus, BrokerUnreachable, PartitionStatus
from bot.cli.control import ClusterCommands, GatewayCommands, with_events
from bot.cli.control_commands import status_to_text
from bot.gateway import open_gateway
from config.settings import Settings
from frostagent.types.errors import ConfigError, Problem
from tests.fakes import ManualClock

SETTINGS = Settings(
    bot_role="gateway",
    broker_url=SecretStr("amqp://frost:hidden@127.0.0.1:1/"),
    broker_partitions=3,
    onebot_host="127.0.0.1",
    onebot_port=0,
    web_port=0,
)
PROCESS = {"version": "1", "host": "gray", "pid": 7, "since": "2026-01-01T00:00:00", "seconds": 61.0}
WORKER = {
    **PROCESS,
    "standing_by": False,
    "stopping": False,
    "partitions": [0, 2],
    "accounts": [{"account": 10001, "online": True, "server": ""}, {"account": 10002, "online": False, "server": ""}],
    "lanes": {"active": 1, "waiting": 2},
    "journal": {"place": "x", "in_trouble": False, "waiting": 0},
}
GATEWAY = {
    **PROCESS,
    "accounts": [],
    "onebot": "listening on x:1",
    "events": {"published": 9, "waiting": 3, "lost": 4, "broker": True},
}
STANDING_BY = {**WORKER, "standing_by": True, "accounts": [], "partitions": []}
FOUND = BrokerStatus(
    "4.1.0", (PartitionStatus(0, True), PartitionStatus(7, False), PartitionStatus(2, True)), 5, (Presence("a"),)
)

Answers = Mapping[str, Mapping[str, Any] | None]


class Own:
    """The commands of the part that is asked."""

    def __init__(self) -> None:
        self.reloads = 0

    async def status(self) -> Mapping[str, Any]:
        return {"mine": True}

    async def reload(self) -> Mapping[str, Any]:
        self.reloads += 1
        return {"ok": True, "told": ["persona: read again"]}


def everywhere(
    monkeypatch: pytest.MonkeyPatch, answers: Answers | None, found: BrokerStatus | Exception = FOUND
) -> tuple[ClusterCommands, Own]:
    async def ask(url: str, command: str, *, within: float) -> Answers:
        assert url == SETTINGS.broker_url.get_secret_value()
        if answers is None:
            raise BrokerUnreachable("refused")
        return dict(answers)

    async def survey(url: str, partitions: int, *, clock: ManualClock) -> BrokerStatus:
        assert partitions == 3
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(module, "ask_parts", ask)
    monkeypatch.setattr(module, "read_status", survey)
    own = Own()
    commands = {"status": own.status, "reload": own.reload}
    return ClusterCommands(own=commands, name="me", settings=SETTINGS, clock=ManualClock()), own


async def test_a_cluster_is_told_part_by_part_with_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    troubled = {**WORKER, "stopping": True, "journal": {"place": "x", "in_trouble": True, "waiting": 1}}
    cut_off = {**GATEWAY, "events": {"published": 0, "waiting": 1, "lost": 0, "broker": False}}
    all_in_one = {**WORKER, "events": GATEWAY["events"], "partitions": [1]}
    answers = {
        "a": WORKER,
        "b": STANDING_BY,
        "c": troubled,
        "d": GATEWAY,
        "e": cut_off,
        "f": all_in_one,
        "x": None,
        "y": {"error": "it knows no status"},
    }
    part, _ = everywhere(monkeypatch, answers)
    status = await part.commands["status"]()
    assert status["mine"]
    told = status_to_text({**GATEWAY, **status}).partition("\n\n")
    accounts, trouble = "10001, 10002 OFFLINE", "the journal CANNOT BE WRITTEN, stopping"
    assert told[0].splitlines()[1] == "state     gateway"
    assert told[0].splitlines()[-1] == "events    9 published, 3 wait, 4 are lost"
    assert told[2].splitlines() == [
        "broker    RabbitMQ 4.1.0: 9 events wait, 5 set aside in frost.dead",
        "queue     partition 1: 7 events wait, no worker has it",
        "queue     partition 2: 2 events wait",
        f"worker    gray 7, 1: partitions 0, 2; {accounts}; 1 conversations at work, 2 questions wait",
        "worker    gray 7, 1: stands by",
        f"worker    gray 7, 1: partitions 0, 2; {accounts}; 1 conversations at work, 2 questions wait, {trouble}",
        f"worker    gray 7, 1: partitions 1; {accounts}; 1 conversations at work, 2 questions wait",
        "gateway   gray 7, 1: no account; 3 events wait, 4 lost",
        "gateway   gray 7, 1: no account; 1 events wait, 0 lost, the BROKER IS AWAY",
        f"gateway   gray 7, 1: {accounts}; 3 events wait, 4 lost",
        "silent    x: it does not answer",
        "silent    y: it knows no status",
    ]


@pytest.mark.parametrize(
    "found",
    [
        BrokerUnreachable("refused"),
        ConfigError(Problem("BROKER_PARTITIONS", "is 3, but the broker has another", "Set it")),
    ],
)
async def test_without_a_broker_a_part_tells_of_itself(monkeypatch: pytest.MonkeyPatch, found: Exception) -> None:
    part, _ = everywhere(monkeypatch, None, found)
    told = status_to_text({**GATEWAY, **await part.status()})
    assert told.endswith(f"\n\ncluster   cannot be asked: {found}")
    assert "hidden" not in told


async def test_a_reload_reaches_all_and_says_who_was_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    good = {"ok": True, "told": ["persona: read again"]}
    bad = {"ok": False, "told": ["games: line 3 is no table"]}
    part, own = everywhere(monkeypatch, {"me": good, "other": good, "gateway": {"ok": True, "told": []}})
    assert await part.reload() == good
    assert own.reloads == 0
    part, own = everywhere(monkeypatch, {"other": bad, "x": None})
    assert await part.reload() == {
        "ok": False,
        "told": ["games: line 3 is no table", "persona: read again", "x has not read anything: it does not answer"],
    }
    assert own.reloads == 1
    part, own = everywhere(monkeypatch, None)
    assert await part.reload() == {
        "ok": False,
        "told": ["persona: read again", "no other part was reached: the broker is away (refused)"],
    }
    assert own.reloads == 1


async def test_a_gateway_says_how_it_is() -> None:
    stopped = list[bool]()
    async with open_gateway(SETTINGS) as held:
        desk = GatewayCommands(
            held=held,
            settings=SETTINGS,
            clock=ManualClock(100.0),
            version="1",
            since=40.0,
            stop=lambda: stopped.append(True),
        )
        status = await desk.status()
        assert (status["seconds"], status["readiness"]["ready"], status["accounts"]) == (60.0, False, [])
        assert status["onebot"] == f"listening on 127.0.0.1:{held.port}"
        assert status["events"] == {"published": 0, "waiting": 0, "lost": 0, "broker": False}
        assert (await with_events(Own().status, held)()).keys() == {"mine", "events"}
        assert await desk.reload() == {"ok": True, "told": []}
        assert set(desk.commands) == {"status", "reload", "stop"}
        await desk.end()
    assert stopped == [True]
