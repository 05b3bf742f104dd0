"""The model's checks, against the demo model and servers that refuse."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr

from adapters.media.decoder import write_jpeg
from adapters.offline.server import OfflineModel
from bot.cli.checks import Outcome
from bot.cli.doctor.models import check_clock, check_coder, check_fallbacks, check_main_model, check_vision
from config.settings import Settings
from frostagent.clock import SystemClock
from tests.bot.cli.doctor.surroundings import answering, told
from tests.cases import each_case
from tests.fakes import ManualClock

CLOCK = SystemClock()


def sentence(text: str) -> dict[str, Any]:
    """An answer in words."""
    return {
        "model": "m",
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
    }


SENTENCE = sentence("yes")


@asynccontextmanager
async def serving(body: Any, status: int = 200) -> AsyncIterator[Settings]:
    async with answering(lambda _: web.json_response(body, status=status)) as root:
        yield Settings(llm_base_url=f"{root}/v1", llm_api_key=SecretStr("sk-1234567890"), llm_model="m")


@asynccontextmanager
async def talking(answer: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncIterator[str]:
    """A server that answers all POST requests so; its root, without a slash."""
    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_a_model_that_answers_streams_and_calls_is_well() -> None:
    async with OfflineModel() as model:
        checks = await check_main_model(Settings(llm_base_url=model.base_url, llm_model="demo"), clock=CLOCK)
    assert [(check.name, check.outcome) for check in checks] == [
        ("model", Outcome.OK),
        ("model tools", Outcome.OK),
    ]
    assert "first token after" in checks[0].said


async def test_a_wrong_key_is_one_problem() -> None:
    async with serving({"error": {"message": "Incorrect API key provided: sk-1234567890"}}, 401) as settings:
        line = told(await check_main_model(settings, clock=CLOCK))
    assert "Incorrect API key" in line
    assert "Copy the key again" in line
    assert "sk-1234567890" not in line


async def test_no_model_at_all_is_one_problem() -> None:
    settings = Settings(llm_base_url="http://127.0.0.1:9/v1", llm_model="m")
    assert "base URL is right" in told(await check_main_model(settings, clock=CLOCK))


async def test_a_model_that_does_not_exist_is_one_problem() -> None:
    error = {"error": {"message": "The model `m` does not exist", "code": "model_not_found"}}
    async with serving(error, 404) as settings:
        assert "model's name" in told(await check_main_model(settings, clock=CLOCK))


async def test_a_model_that_talks_instead_of_calling_is_a_warning() -> None:
    async with serving(SENTENCE) as settings:
        answer, call = await check_main_model(settings, clock=CLOCK)
    assert (answer.outcome, call.outcome) == (Outcome.OK, Outcome.WARNING)
    assert "in one piece" in answer.said


async def test_the_proxy_that_was_used_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with answering(lambda _: web.json_response(SENTENCE)) as root:
        monkeypatch.setenv("http_proxy", root.replace("://", "://me:secret@"))
        settings = Settings(llm_base_url="http://llm.example.net/v1", llm_model="m")
        answer = (await check_main_model(settings, clock=CLOCK))[0]
    assert answer.outcome is Outcome.OK
    assert answer.said.endswith(f"through the proxy {root}")
    assert "secret" not in answer.said


async def test_each_fallback_is_asked_and_one_that_does_not_answer_is_a_warning() -> None:
    async with OfflineModel() as model:
        there = {"base_url": model.base_url, "model": "demo"}
        away = {"base_url": "http://127.0.0.1:9/v1", "api_key": "sk-1,sk-2", "model": "away"}
        settings = Settings.model_validate({"llm_base_url": "http://main.test", "llm_fallbacks": [there, away]})
        checks = await check_fallbacks(settings, clock=CLOCK)
    assert [(check.name, check.outcome) for check in checks] == [
        ("fallback", Outcome.OK),
        ("fallback", Outcome.WARNING),
    ]
    assert "away does not answer" in checks[1].said
    assert await check_fallbacks(Settings(), clock=CLOCK) == []


@each_case("said", ["Red.", "红色"])
async def test_a_model_that_names_the_colour_of_a_picture_sees(said: str) -> None:
    asked: list[Any] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(await request.json())
        return web.json_response(sentence(said))

    async with talking(answer) as root:
        settings = Settings(llm_base_url=f"{root}/v1", llm_model="m", llm_vision_model="eyes")
        (check,) = await check_vision(settings, clock=CLOCK)
    assert check.outcome is Outcome.OK
    assert asked[0]["model"] == "eyes"
    picture = asked[0]["messages"][0]["content"][1]["image_url"]["url"]
    assert write_jpeg(base64.b64decode(picture.partition(",")[2])).startswith(b"\xff\xd8\xff")


async def test_a_model_that_says_something_else_or_refuses_pictures_is_a_warning() -> None:
    refusal = {"error": {"message": "unknown variant `image_url`, expected `text`"}}
    for body, status, word in ((sentence("I see no picture"), 200, "no picture"), (refusal, 400, "image_url")):
        async with serving(body, status) as settings:
            (check,) = await check_vision(settings.model_copy(update={"llm_model": "gpt-4o"}), clock=CLOCK)
        assert check.outcome is Outcome.WARNING
        assert word in check.said
        assert "LLM_VISION_MODEL" in check.fix


async def test_where_no_model_is_shown_pictures_none_is_asked() -> None:
    assert await check_vision(Settings(llm_base_url="http://127.0.0.1:9/v1", llm_model="m"), clock=CLOCK) == []


async def test_a_coder_that_is_the_main_model_is_not_asked() -> None:
    settings = Settings(llm_base_url="http://127.0.0.1:9/v1", llm_model="m")
    (check,) = await check_coder(settings, clock=CLOCK)
    assert check.outcome is Outcome.OK


async def test_another_coder_is_asked() -> None:
    async with OfflineModel() as model:
        settings = Settings(
            llm_base_url="http://127.0.0.1:9/v1", llm_model="m", coder_base_url=model.base_url, coder_model="c"
        )
        (check,) = await check_coder(settings, clock=CLOCK)
        assert check.outcome is Outcome.OK
        assert [request["model"] for request in model.requests] == ["c"]
    assert told(await check_coder(settings, clock=CLOCK)).startswith("coder: c does not answer")


async def test_a_clock_like_the_servers_is_well_whatever_the_server_answers() -> None:
    async with serving({}, 401) as settings:
        (check,) = await check_clock(settings, clock=CLOCK)
    assert check.outcome is Outcome.OK


@each_case(("seconds", "word"), [(90, "ahead"), (-90, "behind")])
async def test_a_clock_that_is_a_minute_off_is_a_warning(seconds: float, word: str) -> None:
    async with serving({}, 401) as settings:
        (check,) = await check_clock(settings, clock=ManualClock(CLOCK.now() + seconds))
    assert check.outcome is Outcome.WARNING
    assert word in check.said
    assert "NTP" in check.fix


async def test_a_clock_without_anything_to_compare_with_is_a_warning() -> None:
    (check,) = await check_clock(Settings(llm_base_url="http://127.0.0.1:9/v1", llm_model="m"), clock=CLOCK)
    assert check.outcome is Outcome.WARNING


async def test_a_server_without_a_date_is_no_matter() -> None:
    async with answering(lambda _: web.Response(headers={"Date": "yesterday"})) as root:
        (check,) = await check_clock(Settings(llm_base_url=root, llm_model="m"), clock=CLOCK)
    assert check.outcome is Outcome.OK
