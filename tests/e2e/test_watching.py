"""What an operator sees of the running service: its figures, whether it is ready, its log, a line from it in QQ."""

from __future__ import annotations

import asyncio
import importlib
import io
import json
import logging
import os
import pkgutil
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from pydantic import SecretStr

import adapters
import bot
import config
import tools
from adapters.logs.lines import Style
from adapters.logs.output import set_up_logs
from adapters.offline.server import MEDIA_FOLDER, OfflineModel
from adapters.openai.client import OpenAIModel, make_session
from adapters.simulator.commands import obey
from adapters.simulator.server import Simulator
from adapters.simulator.world import demo_world
from bot.app import Service, open_service
from bot.domain.chat import ModelRequest, UserMessage
from bot.domain.errors import ConfigError
from bot.domain.masking import Mask
from config.secrets import secrets_of
from config.settings import Settings

ROOT = Path(__file__).parents[2]
SECRETS = {
    "llm_api_key": "sk-5E5AME-model",
    "onebot_access_token": "5E5AME-onebot",
    "coder_api_key": "sk-5E5AME-coder",
    "store_url": "postgresql://bot:5E5AME-store@127.0.0.1/frost",
}
OWNER = 20001


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


def settings(model: str, folder: Path, **more: Any) -> Settings:
    defaults: dict[str, Any] = {
        "llm_base_url": model,
        "llm_model": "demo",
        "media_dir": MEDIA_FOLDER,
        "onebot_host": "127.0.0.1",
        "onebot_port": 0,
        "onebot_access_token": SecretStr(SECRETS["onebot_access_token"]),
        "store_url": SecretStr(f"sqlite:///{folder}/journal.db"),
        "bot_owners": {OWNER},
        "web_port": 0,
    }
    return Settings(**{**defaults, **more})


@asynccontextmanager
async def service(given: Settings) -> AsyncIterator[tuple[Service, Simulator]]:
    """The service with one OneBot server that dials it."""
    async with open_service(given) as running, Simulator(demo_world(), reconnect=0.05) as simulator:
        simulator.dial(f"ws://127.0.0.1:{running.port}/", token=given.onebot_access_token.get_secret_value())
        await simulator.wait_connected()
        yield running, simulator


@contextmanager
def logs(given: Settings, *, style: Style = "console") -> Iterator[io.StringIO]:
    """All that the process logs, as the settings want it."""
    root, hook = logging.getLogger(), sys.excepthook
    handlers, level, stream = root.handlers[:], root.level, io.StringIO()
    set_up_logs(level=given.log_level, style=style, mask=Mask(secrets_of(given)), stream=stream)
    try:
        yield stream
    finally:
        root.handlers[:], sys.excepthook = handlers, hook
        root.setLevel(level)


class Watcher:
    """Somebody who asks the web server."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def ready(self) -> tuple[int, dict[str, Any]]:
        async with self._session.get("/readyz") as response:
            return response.status, await response.json()

    async def figure(self, sample: str) -> float:
        async with self._session.get("/metrics") as response:
            text = await response.text()
        for line in text.splitlines():
            name, _, value = line.rpartition(" ")
            if name == sample:
                return float(value)
        raise AssertionError(f"there is no {sample}")

    async def until(self, sample: str, value: float) -> None:
        async with asyncio.timeout(5):
            while await self.figure(sample) != value:
                pass


@asynccontextmanager
async def watching(port: int) -> AsyncIterator[Watcher]:
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        yield Watcher(session)


# --- figures --------------------------------------------------------------------------------------


async def test_an_answer_shows_in_every_figure_it_touches(tmp_path: Path) -> None:
    async with OfflineModel() as model:
        given = settings(model.base_url, tmp_path, web_port=free_port())
        async with service(given) as (running, simulator), watching(given.web_port) as watcher:
            await simulator.say("@bot send me a message with a picture")
            await simulator.say("nice weather today")
            await simulator.wait_sent(2)
            await running.wait_idle()
            await watcher.until('frostagent_events_total{kind="message_received"}', 2)
            endpoint = f"demo@{model.base_url.split('/')[2]}"
            for sample, value in {
                'frostagent_runs_total{outcome="answered"}': 1,
                "frostagent_steps_total": 2,
                'frostagent_tool_calls_total{outcome="ok",tool="send_message"}': 1,
                f'frostagent_model_requests_total{{endpoint="{endpoint}",outcome="ok"}}': 2,
                'frostagent_sends_total{state="confirmed"}': 2,
                "frostagent_queue_seconds_count": 1,
                "frostagent_first_token_seconds_count": 2,
                'frostagent_tool_seconds_count{tool="send_message"}': 1,
                "frostagent_send_seconds_count": 2,
                "frostagent_run_seconds_count": 1,
                "frostagent_lanes": 0,
                "frostagent_queued": 0,
                'frostagent_accounts{online="true"}': 1,
                "frostagent_duplicates_total": 0,
                "frostagent_reconnects_total": 0,
            }.items():
                assert await watcher.figure(sample) == value, sample
            for kind in ("prompt", "completion"):
                assert await watcher.figure(f'frostagent_tokens_total{{kind="{kind}"}}') > 0
            assert await watcher.figure("frostagent_first_token_seconds_sum") > 0


async def test_trouble_with_qq_shows_as_duplicates_and_reconnects(tmp_path: Path) -> None:
    async with OfflineModel() as model:
        given = settings(model.base_url, tmp_path, web_port=free_port())
        async with service(given) as (running, simulator), watching(given.web_port) as watcher:
            await obey(simulator, "!duplicate")
            await simulator.say("@bot hello")
            await simulator.wait_sent(1)
            await watcher.until("frostagent_duplicates_total", 1)
            await simulator.reconnect()
            await watcher.until("frostagent_reconnects_total", 1)
            await running.wait_idle()
            assert await watcher.figure('frostagent_runs_total{outcome="answered"}') == 1


async def test_a_stream_tells_the_time_to_its_first_token() -> None:
    async with OfflineModel() as offline, make_session() as session:
        model = OpenAIModel(session=session, base_url=offline.base_url, api_key="", model="demo")
        started = asyncio.get_running_loop().time()
        completion = await model.complete(ModelRequest((UserMessage("hello"),)))
        assert completion.first_token is not None
        assert 0 < completion.first_token < asyncio.get_running_loop().time() - started


# --- ready or not ---------------------------------------------------------------------------------


async def test_ready_means_that_an_account_is_connected_and_online(tmp_path: Path) -> None:
    async with OfflineModel() as model:
        given = settings(model.base_url, tmp_path, web_port=free_port())
        async with open_service(given) as running, watching(given.web_port) as watcher:
            assert await watcher.ready() == (
                503,
                {"ready": False, "reason": "no OneBot server is connected", "accounts": []},
            )
            async with Simulator(demo_world(), reconnect=0.05) as simulator:
                simulator.dial(f"ws://127.0.0.1:{running.port}/", token=SECRETS["onebot_access_token"])
                await simulator.wait_connected()
                await watcher.until('frostagent_accounts{online="true"}', 1)
                status, body = await watcher.ready()
                assert (status, body["accounts"]) == (200, [{"account": 10001, "state": "online"}])
                await simulator.go_offline()
                await watcher.until('frostagent_accounts{online="false"}', 1)
                status, body = await watcher.ready()
                assert (status, body["accounts"]) == (503, [{"account": 10001, "state": "offline"}])
                assert body["reason"].startswith("account 10001 is offline")
                await simulator.go_online()
                await watcher.until('frostagent_accounts{online="true"}', 1)
                assert (await watcher.ready())[0] == 200
            await watcher.until('frostagent_accounts{online="true"}', 0)
            status, body = await watcher.ready()
            assert (status, body["reason"]) == (503, "no OneBot server is connected: account 10001 is missing")


async def test_a_port_somebody_asked_for_must_be_had_and_a_default_need_not(
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


# --- the log --------------------------------------------------------------------------------------


async def test_every_line_of_a_run_names_it_and_no_line_has_what_people_said(tmp_path: Path) -> None:
    async with OfflineModel() as model:
        given = settings(model.base_url, tmp_path)
        with logs(given, style="json") as stream:
            async with service(given) as (running, simulator):
                await simulator.say("@bot send me a message with a picture please, you zebra")
                _, answer = await simulator.wait_sent(2)
                await running.wait_idle()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    about_runs = [line for line in lines if line["event"].startswith("run ")]
    assert len(about_runs) == 2
    assert len({line["run"] for line in about_runs}) == 1
    assert all(line["event"].split()[1] == line["run"] for line in about_runs)
    assert all("run" not in line for line in lines if line not in about_runs)
    assert answer.text
    for words in ("zebra", answer.text):
        assert words not in stream.getvalue()


async def test_the_question_and_the_answer_are_logged_when_somebody_wants_it(tmp_path: Path) -> None:
    async with OfflineModel() as model:
        given = settings(model.base_url, tmp_path, log_content=True)
        with logs(given, style="json") as stream:
            async with service(given) as (running, simulator):
                await simulator.say("@bot hello, you zebra")
                (answer,) = await simulator.wait_sent(1)
                await running.wait_idle()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    asked, said = (
        next(line for line in lines if re.match(rf"run \w+ {how}", line["event"])) for how in ("was asked", "answered:")
    )
    assert asked["event"].endswith(": hello, you zebra")
    assert said["event"].endswith(f": {answer.text}")
    assert asked["run"] == said["run"] == said["event"].split()[1]


def loggers() -> Iterator[logging.Logger]:
    """Every logger a module of ours has, and those of the libraries that see secrets."""
    for package in (bot, adapters, tools, config):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name != "bot.__main__" and ".migrations." not in module.name:
                found = vars(importlib.import_module(module.name)).values()
                yield from (value for value in found if isinstance(value, logging.Logger))
    yield from map(logging.getLogger, ("aiohttp", "asyncio", "httpx", "sqlalchemy", "websockets"))


@pytest.mark.parametrize("style", ["console", "json"])
def test_a_secret_planted_in_any_setting_is_masked_in_the_log_of_every_layer(tmp_path: Path, style: Style) -> None:
    secret = {name for name, field in Settings.model_fields.items() if field.annotation is SecretStr}
    assert secret == set(SECRETS), "plant one in the new setting too"
    given = settings("http://127.0.0.1:9/v1", tmp_path, log_level="DEBUG", **SECRETS)
    secrets = {*SECRETS.values(), "5E5AME-store"}
    count = 0
    with logs(given, style=style) as stream:
        for logger in {logger.name: logger for logger in loggers()}.values():
            for planted in secrets:
                for level in (logging.DEBUG, logging.ERROR):
                    logger.log(level, "asking with %s", {"Authorization": f"Bearer {planted}"}, extra={"key": planted})
                try:
                    raise ConnectionError(f"ws://napcat:3001/?access_token={planted}") from LookupError(planted)
                except ConnectionError:
                    logger.exception("broke")
                    count += 1
    assert count > 20 * len(secrets)
    assert stream.getvalue().count("broke") == count
    assert "5E5AME" not in stream.getvalue()


@asynccontextmanager
async def gossip() -> AsyncIterator[str]:
    """A model server that refuses every request by repeating all it was sent."""

    async def refuse(request: web.Request) -> web.Response:
        body = {"error": {"message": f"bad: {dict(request.headers)} {await request.text()}", "code": 401}}
        return web.json_response(body, status=401)

    application = web.Application()
    application.router.add_post("/{path:.*}", refuse)
    runner = web.AppRunner(application, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    await runner.cleanup()


async def test_a_failed_run_is_told_to_the_owner_and_nothing_shows_a_secret(tmp_path: Path) -> None:
    async with gossip() as url:
        given = settings(url, tmp_path, log_level="DEBUG", **(SECRETS | {"store_url": f"sqlite:///{tmp_path}/j.db"}))
        with logs(given) as stream:
            async with service(given) as (running, simulator), Simulator(demo_world(), reconnect=0.05) as stranger:
                stranger.dial(f"ws://127.0.0.1:{running.port}/?access_token=wrong", token=SECRETS["coder_api_key"])
                await stranger.wait_until(lambda: bool(stranger.refused))
                for _ in range(2):
                    await simulator.say("@bot hello")
                await simulator.wait_sent(3)
                await running.wait_idle()
    lines = [message for message in simulator.sent if message.user_id == OWNER]
    assert len(lines) == 1
    assert re.match(r"运行 \w{8} 失败（auth）：.*\n请检查密钥", lines[0].text, re.DOTALL)
    assert sum(message.group_id is not None for message in simulator.sent) == 2
    shown = stream.getvalue() + "".join(message.text for message in simulator.sent)
    assert "5E5AME" not in shown


# --- as a process ---------------------------------------------------------------------------------


def process(folder: Path, **environment: str) -> subprocess.Popen[str]:
    families = ("BOT_", "LLM_", "ONEBOT_", "TOOLS_", "STORE_", "WEB_", "CODER_", "MEDIA_", "LOG_", "UPSTREAM_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith((*families, "SYSTEM_"))}
    fixed = {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "ONEBOT_HOST": "127.0.0.1", "ONEBOT_PORT": "0"}
    return subprocess.Popen(
        [sys.executable, "-m", "bot", "run"],
        env=clean | fixed | {"LLM_BASE_URL": "http://127.0.0.1:9/v1", "LLM_MODEL": "m"} | environment,
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


async def test_a_process_serves_its_figures_and_logs_json(tmp_path: Path) -> None:
    port = free_port()
    with process(tmp_path, WEB_PORT=str(port), LOG_FORMAT="json") as running:
        assert running.stderr is not None
        lines = []
        for line in running.stderr:
            lines.append(json.loads(line))
            if lines[-1]["event"].startswith("ready: "):
                break
        async with watching(port) as watcher:
            assert (await watcher.ready())[0] == 503
            assert await watcher.figure("frostagent_lanes") == 0
            assert await watcher.figure("process_resident_memory_bytes") > 1e6
        running.send_signal(signal.SIGTERM)
        rest = running.stderr.read()
        assert running.wait(timeout=10) == 0
    assert f"health and metrics on http://127.0.0.1:{port}" in [line["event"] for line in lines]
    assert all(json.loads(line)["level"] for line in rest.splitlines())


def test_a_process_whose_web_port_is_taken_says_so_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        with process(tmp_path, WEB_PORT=str(held.getsockname()[1])) as running:
            _, told = running.communicate(timeout=30)
    assert running.returncode == 2
    assert "  - WEB_PORT: cannot listen on 127.0.0.1:" in told
    assert "WEB_PORT=0" in told
    assert "Traceback" not in told
