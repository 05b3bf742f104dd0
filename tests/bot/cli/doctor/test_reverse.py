"""The ports: free, used by a bot that runs, or by something else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from adapters.control.server import ControlServer
from adapters.web.readiness import NOBODY, Readiness, ServedAccount
from adapters.web.server import WebServer
from bot.cli.checks import Check, Outcome
from bot.cli.control import socket_of
from bot.cli.doctor.onebot import check_ports, find_running, why_taken
from config.settings import Settings
from tests.adapters.web.test_server import figures
from tests.bot.cli.doctor.surroundings import answering, told
from tests.cases import each_case
from tests.ports import free_port

READY = Readiness(True, "", (ServedAccount(10001, "online", "NapCat.Onebot 4.18.33"), ServedAccount(10002, "missing")))
UNKNOWN = Readiness(True, "", (ServedAccount(10001, "unknown"),))
OFFLINE = Readiness(
    False, "account 10001 is offline: log in again at the OneBot server", (ServedAccount(10001, "offline"),)
)
ALONE = Readiness(False, NOBODY, ())


def settings(*, onebot: int, web_port: int, **more: str) -> Settings:
    given = {"onebot_host": "127.0.0.1", "onebot_port": str(onebot), "web_port": str(web_port), **more}
    return Settings.model_validate(given)


@asynccontextmanager
async def running(readiness: Readiness) -> AsyncIterator[Settings]:
    """What a running bot looks like from outside: its web server, and something at its OneBot port."""
    async with (
        WebServer(host="127.0.0.1", port=0, ready=lambda: readiness, metrics=figures) as server,
        answering(lambda _: web.Response(status=426)) as onebot,
    ):
        yield settings(onebot=int(onebot.rpartition(":")[2]), web_port=server.port)


def verdicts(checks: list[Check]) -> dict[str, Outcome]:
    return {check.name: check.outcome for check in checks}


async def test_free_ports_are_well() -> None:
    checks = await check_ports(settings(onebot=free_port(), web_port=free_port()))
    assert verdicts(checks) == {"web port": Outcome.OK, "onebot port": Outcome.OK}


async def test_a_running_bot_is_asked_how_it_is() -> None:
    async with running(READY) as given:
        checks = await check_ports(given)
    assert set(verdicts(checks).values()) == {Outcome.OK}
    assert [check.said for check in checks[-2:]] == [
        "NapCat.Onebot 4.18.33 has account 10001",
        "the bot is running, account 10001 online",
    ]


@each_case(
    ("readiness", "elsewhere", "verdict"),
    [
        (ALONE, {10001}, Outcome.OK),
        (ALONE, set(), Outcome.PROBLEM),
        (
            Readiness(False, f"{NOBODY}: account 10001 is missing", (ServedAccount(10001, "missing"),)),
            {10001},
            Outcome.OK,
        ),
        (
            Readiness(False, f"{NOBODY}: account 10001 is missing", (ServedAccount(10001, "missing"),)),
            {10002},
            Outcome.PROBLEM,
        ),
        (OFFLINE, {10001, 10002}, Outcome.PROBLEM),
        (Readiness(False, "the broker cannot be reached", ()), {10001}, Outcome.PROBLEM),
    ],
)
async def test_an_account_of_another_gateway_is_no_problem_of_this_one(
    readiness: Readiness, elsewhere: set[int], verdict: Outcome
) -> None:
    async def told_of() -> frozenset[int]:
        return frozenset(elsewhere)

    async with running(readiness) as given:
        checks = await check_ports(given, elsewhere=told_of)
    assert (checks[-1].name, checks[-1].outcome) == ("account", verdict)
    if verdict is Outcome.OK:
        assert checks[-1].said == "none at this gateway; account 10001 is at another one"


async def test_an_account_of_which_nobody_says_whether_it_is_online_is_a_warning() -> None:
    async with running(UNKNOWN) as given:
        checks = await check_ports(given)
    assert checks[-1].outcome is Outcome.WARNING
    assert "it is unknown whether account 10001 is online" in checks[-1].said


async def test_an_account_offline_is_one_problem() -> None:
    async with running(OFFLINE) as given:
        line = told(await check_ports(given))
    assert "account 10001 is offline" in line
    assert "Log the account in again" in line


async def test_a_bot_that_nobody_is_connected_to_is_one_problem() -> None:
    async with running(ALONE) as given:
        line = told(await check_ports(given))
    assert NOBODY in line
    assert "websocket client" in line


async def test_a_onebot_port_that_something_else_has_is_one_problem() -> None:
    async with answering(lambda _: web.Response()) as other:
        port = int(other.rpartition(":")[2])
        line = told(await check_ports(settings(onebot=port, web_port=free_port())))
    assert f"cannot listen on 127.0.0.1:{port} (in use)" in line
    assert "ONEBOT_PORT" in line


async def test_a_bot_without_a_web_port_is_asked_over_its_control_socket(tmp_path: Path) -> None:
    async def status() -> Mapping[str, Any]:
        return {"readiness": READY.to_json()}

    url = f"sqlite:///{tmp_path}/frost.db"
    control = ControlServer(socket_of(url))
    async with answering(lambda _: web.Response()) as other, control.open():
        given = settings(onebot=int(other.rpartition(":")[2]), web_port=0, store_url=url)
        assert "cannot listen on" in told(await check_ports(given))
        await control.listen({"status": status})
        checks = await check_ports(given)
    assert [check.said for check in checks[1:]] == [
        "NapCat.Onebot 4.18.33 has account 10001",
        "the bot is running, account 10001 online",
    ]


@each_case("body", ["nothing", '{"status": "ok"}', '{"status": "other"}'])
async def test_a_web_port_that_something_else_has_is_one_problem(body: str) -> None:
    async with answering(lambda _: web.Response(text=body, content_type="application/json")) as other:
        given = settings(onebot=free_port(), web_port=int(other.rpartition(":")[2]))
        assert await find_running(given) is None
        assert "WEB_PORT" in told(await check_ports(given))


async def test_in_forward_mode_only_the_web_port_matters() -> None:
    async with running(ALONE) as given:
        checks = await check_ports(
            settings(onebot=given.onebot_port, web_port=given.web_port, onebot_mode="forward", web_host="0.0.0.0")
        )
    assert verdicts(checks) == {"web port": Outcome.OK}


async def test_an_address_of_another_machine_cannot_be_listened_on() -> None:
    assert await why_taken("192.0.2.1", 0) not in {"", "in use"}
