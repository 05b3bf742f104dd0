"""What an operator sees of the running service: its figures, whether it is ready, its log, a line from it in QQ."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
import shutil
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
from msgspec.structs import replace
from pydantic import SecretStr

from adapters.logs.output import Style, set_up_logs
from adapters.metrics.metrics import Metrics
from adapters.offline.server import MEDIA_FOLDER, OfflineModel
from adapters.simulator.commands import obey
from adapters.simulator.server import Simulator
from adapters.simulator.world import demo_world
from bot.app import Service, open_service
from bot.core.conversation import Conversation
from bot.core.jobs import JobChanged, JobState
from config.secrets import all_secrets
from config.settings import Settings
from frostagent.models.openai.client import OpenAIModel, make_session
from frostagent.text.masking import Mask
from frostagent.types.messages import ModelRequest, UserMessage
from tests.adapters.storage.entries import job
from tests.e2e.scenarios.play import play
from tests.e2e.scenarios.script import files
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
TOKEN = "5E5AME-onebot"
OWNER = 20001


def settings(model: str, folder: Path, **more: Any) -> Settings:
    defaults: dict[str, Any] = {
        "llm_base_url": model,
        "llm_model": "demo",
        "media_dir": MEDIA_FOLDER,
        "onebot_host": "127.0.0.1",
        "onebot_port": 0,
        "onebot_access_token": SecretStr(TOKEN),
        "store_url": SecretStr(f"sqlite:///{folder}/journal.db"),
        "bot_owners": {OWNER},
        "bot_new_group": "live",
        "bot_debounce": 0.0,
        "bot_loop": 0,
        "bot_user_rate": None,
        "bot_group_rate": None,
        "bot_memory": False,
        "bot_pace": False,
        "web_port": 0,
    }
    return Settings(**{**defaults, **more})


@asynccontextmanager
async def service(given: Settings) -> AsyncIterator[tuple[Service, Simulator]]:
    """The service with one OneBot server that dials it."""
    mask = Mask(all_secrets(given, os.environ))
    async with open_service(given, mask=mask) as running, Simulator(demo_world(), reconnect=0.05) as simulator:
        simulator.dial(f"ws://127.0.0.1:{running.port}/", token=given.onebot_access_token.get_secret_value())
        await simulator.wait_connected()
        yield running, simulator


@contextmanager
def logs(given: Settings, *, style: Style = "console") -> Iterator[io.StringIO]:
    """All that the process logs, as the settings want it."""
    root, hook = logging.getLogger(), sys.excepthook
    handlers, level, stream = root.handlers[:], root.level, io.StringIO()
    set_up_logs(level=given.log_level, style=style, mask=Mask(all_secrets(given, os.environ)), stream=stream)
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
        async with asyncio.timeout(30):
            while await self.figure(sample) != value:
                pass

    async def until_known(self) -> list[dict[str, Any]]:
        """The accounts, once every server has said what it is."""
        async with asyncio.timeout(30):
            while True:
                rows: list[dict[str, Any]] = (await self.ready())[1]["accounts"]
                if rows and all(row["server"] for row in rows):
                    return rows


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
            await simulator.say("nice weather today", user_id=8001)
            await simulator.wait_sent(2)
            await running.wait_idle()
            await watcher.until('frostagent_events_total{kind="message_received"}', 2)
            endpoint = f"demo@{model.base_url.split('/')[2]}"
            for sample, value in {
                'frostagent_runs_total{outcome="answered"}': 1,
                'frostagent_turns_total{outcome="answered"}': 1,
                'frostagent_turns_total{outcome="not_delivered"}': 0,
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
                'frostagent_unanswered_total{reason="loop"}': 0,
                'frostagent_waiting{kind="friend"}': 0,
                "frostagent_day_reserved_tokens": 0,
            }.items():
                assert await watcher.figure(sample) == value, sample
            for kind in ("prompt", "completion"):
                assert await watcher.figure(f'frostagent_tokens_total{{kind="{kind}"}}') > 0
            assert await watcher.figure("frostagent_day_tokens") > 0
            assert await watcher.figure("frostagent_first_token_seconds_sum") > 0


async def test_trouble_with_qq_shows_as_duplicates_and_reconnects(tmp_path: Path) -> None:
    async with OfflineModel() as model:
        given = settings(model.base_url, tmp_path, web_port=free_port())
        async with service(given) as (running, simulator), watching(given.web_port) as watcher:
            await obey(simulator, "!duplicate")
            await simulator.say("@bot hello")
            await simulator.wait_sent(1)
            await watcher.until("frostagent_duplicates_total", 1)
            await simulator.sockets.reconnect()
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
                simulator.dial(f"ws://127.0.0.1:{running.port}/", token=TOKEN)
                await simulator.wait_connected()
                await watcher.until('frostagent_accounts{online="true"}', 1)
                (row,) = await watcher.until_known()
                assert {**row, "server": ""} == {"account": 10001, "state": "online", "online": True, "server": ""}
                assert row["server"]
                assert (await watcher.ready())[0] == 200
                await simulator.incidents.go_offline()
                await watcher.until('frostagent_accounts{online="false"}', 1)
                status, body = await watcher.ready()
                assert (status, [row["state"] for row in body["accounts"]]) == (503, ["offline"])
                assert body["reason"].startswith("account 10001 is offline")
                await simulator.incidents.go_online()
                await watcher.until('frostagent_accounts{online="true"}', 1)
                assert (await watcher.ready())[0] == 200
            await watcher.until('frostagent_accounts{online="true"}', 0)
            status, body = await watcher.ready()
            assert (status, body["reason"]) == (503, "no OneBot server is connected: account 10001 is missing")


async def test_an_account_that_is_offline_from_the_start_is_known_to_be(tmp_path: Path) -> None:
    given = settings("http://127.0.0.1:9/v1", tmp_path, web_port=free_port())
    world = demo_world()
    world.online = False
    async with (
        open_service(given) as running,
        watching(given.web_port) as watcher,
        Simulator(world, reconnect=0.05) as simulator,
    ):
        simulator.dial(f"ws://127.0.0.1:{running.port}/", token=TOKEN)
        (row,) = await watcher.until_known()
        assert (row["online"], (await watcher.ready())[0]) == (False, 503)


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


@pytest.mark.system
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
            free = shutil.disk_usage(tmp_path).free
            assert free / 2 < await watcher.figure("frostagent_disk_free_bytes") < 2 * free
        running.send_signal(signal.SIGTERM)
        rest = running.stderr.read()
        assert running.wait(timeout=10) == 0
    assert f"health and metrics on http://127.0.0.1:{port}" in [line["event"] for line in lines]
    assert all(json.loads(line)["level"] for line in rest.splitlines())


@pytest.mark.system
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


async def _counted(monkeypatch: pytest.MonkeyPatch, folder: Path, scenario: str, method: str) -> list[str]:
    """What the metrics were told in this scenario."""
    counted: list[str] = []
    monkeypatch.setattr(Metrics, method, lambda _, value: counted.append(value))
    (file,) = [file for file in files() if file.stem == scenario]
    assert (await asyncio.to_thread(play, file, folder)).wrong == []
    return counted


async def test_each_greeting_is_counted_once_however_many_people_it_is_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (joined := tmp_path / "joined").mkdir()
    (left := tmp_path / "left").mkdir()
    assert await _counted(monkeypatch, joined, "976-welcome", "greeted") == ["joined"] * 2
    assert set(await _counted(monkeypatch, left, "980-farewell", "greeted")) == {"joined", "left"}


async def test_a_batch_that_is_judged_is_counted_and_so_is_the_turn_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (spoke := tmp_path / "spoke").mkdir()
    (kept := tmp_path / "kept").mkdir()
    assert await _counted(monkeypatch, spoke, "987-chiming-in", "chimed") == ["judged", "begun"]
    assert set(await _counted(monkeypatch, kept, "988-not-chiming-in", "chimed")) == {"judged"}


async def test_the_jobs_that_have_not_ended_are_a_figure(tmp_path: Path) -> None:
    port = free_port()
    async with open_service(settings("http://127.0.0.1:9/v1", tmp_path, web_port=port)) as running:
        ended = job(3).job
        await running.app.store.commit(job(1), job(2, where=Conversation(10002, "group", 9)), job(3))
        await running.app.store.commit(JobChanged(replace(ended, state=JobState.ENDED)))
        await running.app.journal.commit()
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as shown:
            assert "frostagent_jobs_waiting 2.0" in (await shown.text()).splitlines()
