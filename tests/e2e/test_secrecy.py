"""What nobody may read: secrets, and in the log what people said, whoever repeats them."""

from __future__ import annotations

import base64
import importlib
import logging
import os
import pkgutil
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from aiohttp import web
from pydantic import SecretStr

import adapters
import bot
import config
import frostagent
import tools
from adapters.logs.output import Style
from adapters.simulator.server import Simulator
from adapters.simulator.world import demo_world
from bot.cli.checks import to_json, to_text
from bot.cli.doctor.models import try_endpoint
from bot.cli.doctor.run import diagnose
from config.secrets import proxy_secrets
from config.settings import Settings
from config.values import ED25519
from frostagent.clock import RandomIds, SystemClock
from tests.bot.cli.doctor.surroundings import answering, mirrors
from tests.bot.test_old_names import OLD_NAMES
from tests.e2e.test_watching import OWNER, TOKEN, logs, service, settings

SIGNING_KEY = base64.b64encode(ED25519 + bytes(32)).decode()
SECRETS: dict[str, Any] = {
    "llm_api_key": "sk-5E5AME-model",
    "llm_fallbacks": [{"base_url": "http://127.0.0.1:9/v1", "api_key": "sk-5E5AME-other", "model": "other"}],
    "onebot_access_token": TOKEN,
    "coder_api_key": "sk-5E5AME-coder",
    "store_url": "postgresql://bot:5E5AME-store@127.0.0.1/frost",
    "broker_url": "amqp://bot:5E5AME-broker@127.0.0.1/",
    "qweather_key": "5E5AME-qweather",
    "qweather_jwt_private_key": f"{SIGNING_KEY[:40]}5E5AME{SIGNING_KEY[46:]}",
    "amap_key": "5E5AME-amap",
    "search_key": "5E5AME-websearch",
    "stt_api_key": "sk-5E5AME-stt",
    "console_token": "5E5AME-console-is-32-letters-long",
    "console_totp": "5E5AMETOTPOFTHECONSOLEABCDEFGHIJ",
    "subagent_keys": {"Poet": "sk-5E5AME-poet"},
    "mcp_keys": {"FILES_KEY": "sk-5E5AME-files"},
    "mcp_secrets": ("sk-5E5AME-search",),
}
PROXY = "http://bot:5E5AME%2Fproxy@127.0.0.1"


def loggers() -> Iterator[logging.Logger]:
    """Every logger a module of ours has, and those of the libraries that see secrets."""
    for package in (frostagent, bot, adapters, tools, config):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name not in {"bot.__main__", *OLD_NAMES} and ".migrations." not in module.name:
                found = vars(importlib.import_module(module.name)).values()
                yield from (value for value in found if isinstance(value, logging.Logger))
    yield from map(logging.getLogger, ("aiohttp", "asyncio", "httpx", "sqlalchemy", "websockets"))


def holds_a_secret(kind: Any) -> bool:
    """Whether values of this type have a secret somewhere inside."""
    parts = [*get_args(kind), *(get_type_hints(kind).values() if isinstance(kind, type) and is_dataclass(kind) else ())]
    return kind is SecretStr or any(map(holds_a_secret, parts))


@pytest.mark.parametrize("style", ["console", "json"])
def test_a_secret_planted_in_any_setting_is_masked_in_the_log_of_every_layer(
    tmp_path: Path, style: Style, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"{PROXY}:3128")
    secret = {name for name, field in Settings.model_fields.items() if holds_a_secret(field.annotation)}
    assert secret == set(SECRETS), "plant one in the new setting too"
    given = settings("http://127.0.0.1:9/v1", tmp_path, log_level="DEBUG", **SECRETS)
    secrets = {secret for secret in SECRETS.values() if isinstance(secret, str)}
    secrets |= {
        "5E5AME-store",
        "sk-5E5AME-other",
        "sk-5E5AME-poet",
        "sk-5E5AME-files",
        "sk-5E5AME-search",
        f"{PROXY}:3128",
        "5E5AME/proxy",
    }
    count = 0
    with logs(given, style=style) as stream:
        for logger in {logger.name: logger for logger in loggers()}.values():
            for planted in secrets:
                for level in (logging.DEBUG, logging.ERROR):
                    logger.log(level, "asking with %s", {"Authorization": f"Bearer {planted}"}, extra={"key": planted})
                try:
                    raise ConnectionError(f"ws://napcat:3001/?access_token={planted}") from LookupError(planted)
                except ConnectionError:
                    logger.exception("it broke")
                    count += 1
    assert count > 20 * len(secrets)
    assert stream.getvalue().count("it broke") == count
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
        given = settings(
            url,
            tmp_path,
            log_level="DEBUG",
            **(SECRETS | {"store_url": f"sqlite:///{tmp_path}/j.db", "broker_url": "", "llm_fallbacks": ()}),
        )
        with logs(given) as stream:
            async with service(given) as (running, simulator), Simulator(demo_world(), reconnect=0.05) as stranger:
                stranger.dial(f"ws://127.0.0.1:{running.port}/?access_token=wrong", token=SECRETS["coder_api_key"])
                await stranger.wait_until(lambda: bool(stranger.sockets.refused))
                for number in (8001, 8002):
                    await simulator.say("@bot hello", user_id=number)
                await simulator.wait_sent(3)
                await running.wait_idle()
    lines = [message for message in simulator.sent if message.user_id == OWNER]
    assert len(lines) == 1
    assert re.match(r"运行 \w{8} 失败（auth）：.*\n请检查密钥", lines[0].text, re.DOTALL)
    assert sum(message.group_id is not None for message in simulator.sent) == 2
    shown = stream.getvalue() + "".join(message.text for message in simulator.sent)
    assert "5E5AME" not in shown


async def test_what_people_said_is_not_in_the_log_when_a_vendor_repeats_it(tmp_path: Path) -> None:
    async with gossip() as url:
        given = settings(url, tmp_path)
        with logs(given) as stream:
            async with service(given) as (running, simulator):
                await simulator.say("@bot hello, you zebra")
                await simulator.wait_sent(2)
                await running.wait_idle()
    assert "zebra" not in stream.getvalue()
    assert "(auth)" in stream.getvalue()
    assert "status 401" in stream.getvalue()


async def test_what_a_proxy_quotes_of_its_password_is_shown_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gossip() as url:
        monkeypatch.setenv("HTTP_PROXY", f"{PROXY}:{url.split('/')[2].rpartition(':')[2]}")
        given = settings("http://llm.frost.test/v1", tmp_path, log_level="DEBUG")
        with logs(given) as stream:
            async with service(given) as (running, simulator):
                await simulator.say("@bot hello")
                await simulator.wait_sent(2)
                await running.wait_idle()
    (told,) = (message.text for message in simulator.sent if message.user_id == OWNER)
    assert "Basic ***" in told
    for secret in proxy_secrets(os.environ):
        assert secret not in stream.getvalue() + told


@pytest.mark.parametrize("well", [True, False], ids=["that refuses", "without a port"])
async def test_of_a_proxy_that_cannot_be_used_nobody_sees_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, well: bool
) -> None:
    async with answering(lambda _: web.Response(status=407)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"{PROXY}:{proxy.rpartition(':')[2] if well else 'none'}")
        given = settings("https://llm.frost.test/v1", tmp_path)
        trial = await try_endpoint(given.main_model, clock=SystemClock())
        with logs(given) as stream:
            logging.getLogger("bot").error("run failed: %s", trial.why)
        environ = {"LLM_BASE_URL": given.llm_base_url, "LLM_MODEL": "m", "WEB_PORT": "0", "ONEBOT_HOST": "127.0.0.1"}
        environ |= {"STORE_URL": f"sqlite:///{tmp_path}/j.db", "TOOLS_MIRRORS": mirrors("http://127.0.0.1:9")}
        checks = await diagnose(environ=os.environ | environ, env_file=None, clock=SystemClock(), ids=RandomIds())
    (line,) = [check.said for check in checks if check.name == "model"]
    assert "does not answer" in line
    assert "5E5AME" not in stream.getvalue() + to_text(checks) + to_json(checks)
