from __future__ import annotations

from msgspec.structs import replace

from bot.domain.chat import (
    AssistantMessage,
    ModelRequest,
    Reasoning,
    UserMessage,
)
from bot.domain.errors import (
    BadHistory,
    ContextOverflow,
    ImagesUnsupported,
    ModelAuth,
    ModelBilling,
    ModelError,
    ModelNotFound,
    ModelRateLimited,
    ToolsUnsupported,
    ToolUseFailed,
)
from bot.models.reactions import CALLED_AGAIN
from bot.models.upstreams import BLIND, KEY_REST
from bot.policy.repairs import CALL_AGAIN, PICTURE_LEFT_OUT
from tests.bot.several_models import EARLIER, PICTURE, QUESTION, REQUEST, SYSTEM, TOOLS, Bench, one
from tests.cases import each_case
from tests.fakes import words


@each_case("kind", [ModelAuth, ModelBilling])
async def test_a_refused_key_makes_room_for_the_next_and_the_owner_is_told(kind: type[ModelError]) -> None:
    bench = Bench(([kind("your key\nsk-*** is no good"), words("from a1")], [words("from a2")] * 2))
    assert [await bench.ask(), await bench.ask()] == ["from a2", "from a2"]
    assert bench.asked == ["a1", "a2", "a2"]
    [told] = bench.told
    assert "a1 的第 1 个密钥" in told
    assert f"({kind.kind}: your key sk-*** is no good)" in told
    bench.clock.time += KEY_REST
    assert await bench.ask() == "from a1"


async def test_a_key_that_is_busy_makes_room_for_the_next() -> None:
    bench = Bench(([ModelRateLimited("busy", retry_after=30)], [words("from a2")] * 2))
    assert [await bench.ask(), await bench.ask()] == ["from a2", "from a2"]
    assert bench.clock.slept == []
    assert bench.told == []


async def test_the_owner_is_not_told_twice_of_an_error_that_gets_out() -> None:
    bench = one(ModelAuth("no"), words("hello"))
    assert await bench.ask() == "auth: no"
    assert bench.told == []
    assert await bench.ask() == "hello"


async def test_a_model_that_is_not_there_is_told_where_another_answered() -> None:
    bench = Bench(([ModelNotFound("no such model")],), ([words("from b")],))
    await bench.ask()
    [told] = bench.told
    assert "不存在" in told
    assert "no such model" in told


async def test_tools_are_dropped_once_and_for_good_where_they_are_refused() -> None:
    request = replace(REQUEST, tools=TOOLS)
    bench = one(ToolsUnsupported("no tools"), words("hello"), words("again"))
    assert [await bench.ask(request), await bench.ask(request)] == ["hello", "again"]
    assert [bool(asked.tools) for asked in bench.requests()] == [True, False, False]


async def test_pictures_are_left_out_where_they_are_refused_and_tried_again_much_later() -> None:
    request = ModelRequest((UserMessage("look", images=(PICTURE,)),))
    bench = one(ImagesUnsupported("text only"), words("hello"), words("again"), words("later"))
    assert [await bench.ask(request), await bench.ask(request)] == ["hello", "again"]
    bench.clock.time += BLIND
    assert await bench.ask(request) == "later"
    blind = ModelRequest((UserMessage(f"look\n{PICTURE_LEFT_OUT}"),))
    assert bench.requests() == [request, blind, blind, request]


async def test_one_bad_picture_does_not_cost_the_next() -> None:
    request = ModelRequest((UserMessage("look", images=(PICTURE,)),))
    bench = one(ImagesUnsupported("bad", code="invalid_image_format"), words("hello"), words("again"))
    assert [await bench.ask(request), await bench.ask(request)] == ["hello", "again"]
    assert [asked == request for asked in bench.requests()] == [True, False, True]


@each_case("kind", [ToolsUnsupported, ImagesUnsupported])
async def test_a_refusal_of_what_was_not_even_there_does_not_loop(kind: type[ModelError]) -> None:
    assert await one(kind("no")).ask() == f"{kind.kind}: no"


async def test_a_prompt_that_is_too_long_is_compacted_once() -> None:
    request = ModelRequest((SYSTEM, *EARLIER * 8, QUESTION))
    short = ModelRequest((SYSTEM, *EARLIER * 3, QUESTION))
    bench = one(ContextOverflow("too long", limit=8192), words("hello"))
    assert await bench.ask(request) == "hello"
    assert bench.requests() == [request, short]
    assert bench.model.first(REQUEST) is bench.upstreams[0]
    assert bench.upstreams[0].window == 8192
    bench = one(*[ContextOverflow("too long")] * 2)
    assert await bench.ask(request) == "context_overflow: too long"
    bench = Bench(([ContextOverflow("too long")] * 2,), ([ContextOverflow("too long"), words("hello")],))
    assert await bench.ask(request) == "hello"
    assert bench.requests() == [request, short]
    assert bench.requests(1) == [request, short]  # what was too long for one is not for another


async def test_a_prompt_that_cannot_be_made_shorter_is_sent_once() -> None:
    assert await one(ContextOverflow("too long")).ask() == "context_overflow: too long"


async def test_a_history_that_is_refused_is_sent_without_what_is_one_vendors_then_without_the_earlier_rounds() -> None:
    answer = AssistantMessage("two", reasoning=Reasoning("hm", "a.test", "m"))
    request = ModelRequest((SYSTEM, UserMessage("one"), answer, QUESTION))
    bench = one(BadHistory("no"), BadHistory("still no"), words("hello"))
    assert await bench.ask(request) == "hello"
    assert [asked.messages for asked in bench.requests()] == [
        request.messages,
        (SYSTEM, *EARLIER, QUESTION),
        (SYSTEM, QUESTION),
    ]
    assert await one(*[BadHistory("no")] * 3).ask(request) == "bad_history: no"


async def test_a_call_that_could_not_be_read_may_be_made_again() -> None:
    bench = one(*[ToolUseFailed("no")] * CALLED_AGAIN, words("hello"))
    assert await bench.ask() == "hello"
    assert [asked.messages[1:] for asked in bench.requests()] == [
        (),
        (UserMessage(CALL_AGAIN),),
        (UserMessage(CALL_AGAIN),) * 2,
    ]
    assert await one(*[ToolUseFailed("no")] * (CALLED_AGAIN + 1)).ask() == "tool_use_failed: no"
