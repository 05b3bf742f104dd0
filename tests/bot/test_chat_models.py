"""The models as the service has them, against real servers that fail in every way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web
from prometheus_client import generate_latest

from adapters.metrics.exposition import registry_of
from adapters.metrics.metrics import Metrics
from adapters.simulator.server import Simulator
from adapters.simulator.world import demo_world
from bot.app import open_service
from bot.chat.context_builder import history_room_of
from bot.chat_models import ChatModels
from config.settings import Settings
from frostagent.models.failover import ATTEMPTS
from frostagent.models.openai.client import Timeouts, make_session
from frostagent.types.errors import ConfigError, ModelError
from frostagent.types.messages import ModelRequest, SystemMessage, ToolSpec, UserMessage
from frostagent.types.ports import ChatModel
from tests.cases import each_case
from tests.fakes import CountingIds, ManualClock
from tests.frostagent.openai.conftest import Vendor
from tests.frostagent.several_models import AttemptCounter

REQUEST = ModelRequest((SystemMessage("be kind"), UserMessage("hi")))
SHOWN = ModelRequest((UserMessage("look", images=("data:image/png;base64,iVBORw0KGgo=",)),))
JSON = {"Content-Type": "application/json"}
HASTE = Timeouts(connect=1.0, first_token=0.2, idle=0.2, total=2.0, closing=0.1)
PATIENCE = {"stalled": HASTE}  # the other ways wait for a busy machine
STEADY = Timeouts(first_token=1.0, idle=1.0, silence=1.0)

Setup = Callable[[Vendor], None]


def event(text: str, finish: str = "null") -> bytes:
    return b'data: {"choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":%b}]}\n\n' % (
        text.encode(),
        finish.encode(),
    )


USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":1000000,"completion_tokens":100000}}\n\n'
HELLO = (event("hel"), event("lo", '"stop"'), USAGE, b"data: [DONE]\n\n")


def refusal(status: int, message: str = "no", headers: Mapping[str, str] | None = None) -> Setup:
    """A refusal in the usual form."""
    body = json.dumps({"error": {"message": message}}).encode()
    return lambda vendor: vendor.say(body, status=status, headers={**JSON, **(headers or {})})


def reset(vendor: Vendor) -> None:
    """The connection breaks before there is an answer."""

    async def play(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    vendor.plays.append(play)


def slowly(vendor: Vendor) -> None:
    """An answer letter by letter, each in time, all together longer than any single deadline."""

    async def play(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for letter in "hello":
            await response.write(event(letter))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(STEADY.idle / 4):
                    await vendor.over.wait()
        await response.write(event("", '"stop"'))
        return response

    vendor.plays.append(play)


def blanks(vendor: Vendor) -> None:
    """Signs of life before the answer."""
    vendor.say(b"\n" * 2000, b": keep-alive\n\n", *HELLO)


def hello(vendor: Vendor) -> None:
    vendor.say(*HELLO)


@asynccontextmanager
async def serving(*plays: Setup) -> AsyncIterator[Vendor]:
    """A model server that does these things in order, the last one for ever."""
    vendor = Vendor()
    for play in plays:
        play(vendor)
    application = web.Application()
    application.router.add_post("/{path:.*}", vendor.handle)
    runner = web.AppRunner(application, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    vendor.url = f"http://{host}:{port}/v1"
    try:
        yield vendor
    finally:
        vendor.over.set()
        await runner.cleanup()


@dataclass(frozen=True, slots=True)
class House:
    """The models over some servers, in order of asking; the clock's waits take no time."""

    models: ChatModels
    vendors: tuple[Vendor, ...]
    clock: ManualClock
    metrics: Metrics
    told: list[str]

    async def ask(self, request: ModelRequest = REQUEST, *, model: ChatModel | None = None) -> str:
        """The words of the answer, or the kind of error."""
        try:
            async with asyncio.timeout(30):
                return (await (model or self.models.main).complete(request)).message.text
        except ModelError as error:
            return error.kind

    @property
    def asked(self) -> list[int]:
        """How often each server was."""
        return [len(vendor.asked) for vendor in self.vendors]


@asynccontextmanager
async def open_house(
    *servers: tuple[Setup, ...], key: str = "sk-main", timeouts: Timeouts | None = HASTE, **more: object
) -> AsyncIterator[House]:
    async with AsyncExitStack() as stack:
        vendors = [await stack.enter_async_context(serving(*plays)) for plays in servers]
        first, *others = vendors
        fallbacks = [{"base_url": other.url, "api_key": "sk-other", "model": "n"} for other in others]
        main = {"llm_base_url": first.url, "llm_api_key": key, "llm_model": "m", "llm_fallbacks": fallbacks}
        settings = Settings.model_validate(main | more)
        metrics, told = Metrics(tools=[], clock=(clock := ManualClock())), list[str]()
        models = ChatModels(
            settings,
            session=await stack.enter_async_context(make_session()),
            meter=AttemptCounter(metrics.asked),
            clock=clock,
            ids=CountingIds(),
            tell=lambda line: told.append(line.zh),
            timeouts=timeouts,
        )
        yield House(models, tuple(vendors), clock, metrics, told)


PASSING: dict[str, Setup] = {
    "429": refusal(429, "slow down"),
    "500": refusal(500),
    "reset": reset,
    "cut": lambda vendor: vendor.cut(event("half")),
    "stalled": lambda vendor: vendor.stall(event("half")),
    "malformed": lambda vendor: vendor.say(event("half"), b"data: {not json}\n\n", event("", '"stop"')),
    "empty": lambda vendor: vendor.say(),
    "error inside": lambda vendor: vendor.say(event("half"), b'data: {"error":{"message":"overloaded"}}\n\n'),
    "html": lambda vendor: vendor.say(b"<html><title>502 Bad Gateway</title></html>", status=502),
}
"""What passes by itself."""


@each_case("way", PASSING)
async def test_what_passes_is_asked_again_and_nothing_of_it_is_heard(way: str) -> None:
    async with open_house((PASSING[way], hello), timeouts=PATIENCE.get(way)) as house:
        assert await house.ask() == "hello"
        assert house.asked == [2]


@pytest.mark.parametrize("way", PASSING)
async def test_what_does_not_pass_ends_after_a_bounded_number_of_attempts(way: str) -> None:
    async with open_house((PASSING[way],), timeouts=PATIENCE.get(way)) as house:
        assert await house.ask() in {"rate_limit", "overloaded", "transport"}
        assert house.asked == [ATTEMPTS]
        assert sum(house.clock.slept) <= 60


@pytest.mark.parametrize("way", PASSING)
async def test_the_next_one_answers_instead(way: str) -> None:
    async with open_house((PASSING[way],), (hello,), timeouts=PATIENCE.get(way)) as house:
        completion = await house.models.main.complete(REQUEST)
        assert completion.message.text == "hello"
        assert completion.endpoint == f"n@{house.vendors[1].url.split('/')[2]}"
        assert house.asked == [2, 1]


@pytest.mark.parametrize(
    "silent",
    [
        lambda vendor: vendor.stall(),
        lambda vendor: vendor.hum(b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'),
    ],
    ids=["no byte", "signs of life"],
)
async def test_who_does_not_begin_to_answer_is_not_waited_for_twice(silent: Setup) -> None:
    async with open_house((silent,)) as house:
        assert await house.ask() == "stalled"
        assert house.asked == [1]
        assert house.clock.slept == []
    async with open_house((silent,), (hello,), key="sk-one,sk-two") as house:
        assert await house.ask() == "hello"
        assert house.asked == [1, 1]


async def test_how_long_it_may_take_to_begin_is_a_setting() -> None:
    async with open_house((lambda vendor: vendor.stall(),), timeouts=None, llm_first_token=0.1) as house:
        assert await house.ask() == "stalled"


@each_case(
    ("refused", "kind"),
    [
        (refusal(401, "bad key"), "auth"),
        (refusal(402, "no money"), "billing"),
        (refusal(429, "Insufficient Balance"), "billing"),
        (refusal(404, "no such model"), "model_not_found"),
        (refusal(400, "odd"), "rejected"),
        (lambda vendor: vendor.say(b"<html><title>Welcome</title></html>"), "rejected"),
    ],
)
async def test_what_does_not_pass_by_itself_is_not_asked_again(refused: Setup, kind: str) -> None:
    async with open_house((refused,)) as house:
        assert await house.ask() == kind
        assert house.asked == [1]
        assert house.clock.slept == []
    async with open_house((refused,), (hello,)) as house:
        assert await house.ask() == "hello"
        assert house.asked == [1, 1]


async def test_retry_after_is_honoured() -> None:
    async with open_house((refusal(429, "slow down", {"Retry-After": "7"}), hello)) as house:
        assert await house.ask() == "hello"
        assert house.clock.slept == [7.0]


@pytest.mark.parametrize("play", [slowly, blanks])
async def test_slow_tokens_and_blanks_before_an_answer_are_no_failure(play: Setup) -> None:
    async with open_house((play,), timeouts=STEADY) as house:
        assert await house.ask() == "hello"
        assert house.asked == [1]


async def test_tools_that_are_refused_are_left_out_from_then_on() -> None:
    tools = (ToolSpec("f", "Does it.", {"type": "object", "properties": {}}),)
    async with open_house((refusal(400, "m does not support tools"), hello)) as house:
        for _ in range(2):
            assert await house.ask(ModelRequest(REQUEST.messages, tools)) == "hello"
        assert ["tools" in asked.body for asked in house.vendors[0].asked] == [True, False, False]


# --- who is asked -----------------------------------------------------------------------------------


async def test_each_key_is_its_own_and_the_first_that_works_is_kept() -> None:
    async with open_house((refusal(401), hello), key="sk-one,sk-two") as house:
        assert [await house.ask(), await house.ask()] == ["hello", "hello"]
        keys = [asked.headers["Authorization"] for asked in house.vendors[0].asked]
        assert keys == ["Bearer sk-one", "Bearer sk-two", "Bearer sk-two"]
        assert len(house.told) == 1


async def test_the_coder_falls_back_on_the_main_model_and_both_learn_of_one_another() -> None:
    async with serving(refusal(401)) as coder, open_house((hello,), coder_base_url=coder.url, coder_model="c") as house:
        assert await house.ask(model=house.models.coder) == "hello"
        assert [asked.body["model"] for asked in (*coder.asked, *house.vendors[0].asked)] == ["c", "m"]
    async with open_house((refusal(401),), (hello,)) as house:
        assert [await house.ask(), await house.ask(model=house.models.coder)] == ["hello", "hello"]
        assert house.asked == [1, 2]


async def test_pictures_go_to_the_model_for_them_where_the_one_asked_is_blind() -> None:
    for sees, answers in (("m", "v m"), ("gpt-4o", "gpt-4o gpt-4o")):
        async with open_house((hello,), llm_model=sees, llm_vision_model="v") as house:
            assert [await house.ask(SHOWN), await house.ask()] == ["hello", "hello"]
            assert " ".join(asked.body["model"] for asked in house.vendors[0].asked) == answers


async def test_pictures_go_to_the_main_model_where_a_cheap_one_or_a_personas_is_blind() -> None:
    for main, named, answers in (
        ("gpt-4o", "blind", "gpt-4o blind"),
        ("gpt-4o", "gpt-4o-mini", "gpt-4o-mini gpt-4o-mini"),
        ("blind", "too", "too too"),
    ):
        async with open_house((hello,), llm_model=main) as house:
            other = house.models.named(named)
            assert [await house.ask(SHOWN, model=other), await house.ask(model=other)] == ["hello", "hello"]
            assert " ".join(asked.body["model"] for asked in house.vendors[0].asked) == answers


async def test_who_sees_is_the_operators_word_or_what_is_known(tmp_path: Path) -> None:
    async with open_house((hello,), llm_vision_model="m") as house:
        assert (house.models.main_sees, house.models.vision) == (True, None)
    async with open_house((hello,), llm_model="gpt-4o") as house:
        assert house.models.main_sees
    async with open_house((hello,)) as house:
        assert (house.models.main_sees, house.models.vision) == (False, None)
    async with open_house((hello,), llm_vision_model="v") as house:
        assert not house.models.main_sees
        assert await house.ask(model=house.models.vision) == "hello"
        assert house.vendors[0].asked[-1].body["model"] == "v"
    prices = tmp_path / "prices.toml"
    prices.write_text('[[model]]\nname = "m"\npictures = true\n', "utf-8")
    async with open_house((hello,), llm_prices=prices) as house:
        assert house.models.main_sees


# --- what it cost -----------------------------------------------------------------------------------


async def test_the_cost_is_in_the_answer_and_in_the_metrics(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('[[model]]\nname = "m"\ncontext = 4096\ninput = 2\noutput = 10\n', "utf-8")
    async with open_house((hello,), llm_prices=prices) as house:
        usage = (await house.models.main.complete(REQUEST)).usage
        assert usage is not None
        assert usage.cost == 3.0
        assert b'frostagent_cost_total{currency="usd"} 3.0' in generate_latest(registry_of(house.metrics))
        assert house.models.main.first(REQUEST).window == 4096
        assert house.models.coder.first(REQUEST).window == 4096


async def test_where_nobody_knows_the_price_nobody_knows_the_cost() -> None:
    async with open_house((hello,), llm_context=8192) as house:
        usage = (await house.models.main.complete(REQUEST)).usage
        assert usage is not None
        assert usage.cost is None
        assert house.models.main.first(REQUEST).window == 8192


async def test_a_conversation_is_told_as_long_as_the_operator_pays_for_where_the_model_takes_so_much() -> None:
    async with open_house((hello,)) as house:
        room = history_room_of(house.models.main, lambda: REQUEST, most=12_000)
        assert room() == 12_000
    async with open_house((hello,), llm_context=8192) as house:
        room = history_room_of(house.models.main, lambda: REQUEST, most=12_000)
        small = room()
        assert 2900 < small < 3072  # 8192, without the answer's 2048, and half of the rest is for the question
        await house.models.main.complete(REQUEST)  # it counts a million tokens, three times ours at most is believed
        assert 1000 < room() < small / 2.9


async def test_a_table_of_prices_with_a_mistake_is_a_problem_at_start(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text("[[model]]\n", "utf-8")
    with pytest.raises(ConfigError, match="LLM_PRICES"):
        async with open_house((hello,), llm_prices=prices):
            pass


async def test_every_attempt_is_counted_under_whom_it_went_to() -> None:
    async with open_house((refusal(401),), (hello,)) as house:
        await house.ask()
        text = generate_latest(registry_of(house.metrics)).decode()
        first, second = (vendor.url.split("/")[2] for vendor in house.vendors)
        assert f'frostagent_model_requests_total{{endpoint="m@{first}",outcome="auth"}} 1.0' in text
        assert f'frostagent_model_requests_total{{endpoint="n@{second}",outcome="ok"}} 1.0' in text


# --- through the whole bot --------------------------------------------------------------------------


def calling(vendor: Vendor) -> None:
    """Say something by the tool."""
    arguments = json.dumps({"messages": [{"type": "plain", "text": "one moment"}]})
    function = {"name": "send_message", "arguments": arguments}
    delta = {"tool_calls": [{"index": 0, "id": "c0", "type": "function", "function": function}]}
    chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]}
    vendor.say(b"data: " + json.dumps(chunk).encode() + b"\n\n", b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    "way", [refusal(401), lambda vendor: vendor.cut(event("half"))], ids=["a refused key", "a cut stream"]
)
async def test_a_loop_that_goes_on_elsewhere_says_nothing_twice(
    way: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with serving(calling, way) as first, serving(hello) as second:
        models = {"llm_base_url": first.url, "llm_fallbacks": [{"base_url": second.url, "api_key": "k", "model": "n"}]}
        settings = Settings.model_validate(
            {**models, "llm_model": "m", "bot_owners": [1], "bot_new_group": "live"}
            | {"onebot_host": "127.0.0.1", "onebot_port": 0, "onebot_access_token": "correct-horse", "web_port": 0}
        )
        async with open_service(settings) as service, Simulator(demo_world(), reconnect=0.05) as simulator:
            simulator.dial(f"ws://127.0.0.1:{service.port}/", token="correct-horse")
            await simulator.wait_connected()
            await simulator.say("@bot hi")
            await simulator.wait_sent(2)
            await service.wait_idle()
            assert [message.text for message in simulator.sent if message.group_id] == ["one moment", "hello"]
        results = [message["content"] for message in second.asked[0].body["messages"] if message["role"] == "tool"]
        assert len(second.asked) == len(results) == 1
