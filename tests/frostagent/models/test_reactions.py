from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from frostagent.engine.budget import Budget, Limits
from frostagent.models.failover import CALLED_AGAIN, MOST_IN_VAIN
from frostagent.models.request_repairs import CALL_AGAIN, PICTURE_LEFT_OUT
from frostagent.models.upstreams import BLIND, KEY_REST, PLAIN_SPOKEN, SUSPICION
from frostagent.types.errors import (
    EMPTY_ANSWER,
    BadHistory,
    ContextOverflow,
    ImagesUnsupported,
    ModelAuth,
    ModelBilling,
    ModelError,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelRejected,
    ModelTransport,
    ToolsUnsupported,
    ToolUseFailed,
)
from frostagent.types.messages import (
    AssistantMessage,
    ModelRequest,
    Reasoning,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from tests.cases import each_case
from tests.fakes import Step, words
from tests.frostagent.several_models import EARLIER, PICTURE, QUESTION, REQUEST, SYSTEM, TOOLS, Bench, one

OTHER_PICTURE = "data:image/png;base64,BBBBBBBB"
CALLING = AssistantMessage("", (ToolCall("c0", "f", "{}"),))
CALLED = (CALLING, ToolMessage("c0", "f", "done"))
TOLD = "You called the tool f with {}, and its result was:\n| done"


@each_case("kind", [ModelAuth, ModelBilling])
async def test_a_refused_key_makes_room_for_the_next_and_the_owner_is_told(kind: type[ModelError]) -> None:
    bench = Bench(([kind("your key\nsk-*** is no good"), words("from a1")], [words("from a2")] * 2))
    assert [await bench.ask(), await bench.ask()] == ["from a2", "from a2"]
    assert bench.asked == ["a1", "a2", "a2"]
    [told] = bench.told
    assert told.startswith("Key 1 of the model a1 is refused")
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
    assert told.startswith("There is no model a1")
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
    def looking(*images: str) -> ModelRequest:
        return ModelRequest((UserMessage("look", images=images),))

    bench = one(ImagesUnsupported("bad", code="invalid_image_format"), *[words("hello")] * 3)
    asked = [looking(PICTURE), looking(OTHER_PICTURE), looking(OTHER_PICTURE, PICTURE)]
    assert [await bench.ask(request) for request in asked] == ["hello"] * 3
    left_out = ModelRequest((UserMessage(f"look\n{PICTURE_LEFT_OUT}"),))
    without_it = ModelRequest((UserMessage(f"look\n{PICTURE_LEFT_OUT}", images=(OTHER_PICTURE,)),))
    assert bench.requests() == [asked[0], left_out, asked[1], without_it]


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
    assert [asked.messages for asked in bench.requests()] == [
        (QUESTION,),
        (UserMessage(f"three\n\n{CALL_AGAIN}"),),
        (UserMessage(f"three\n\n{CALL_AGAIN}\n\n{CALL_AGAIN}"),),
    ]
    assert await one(*[ToolUseFailed("no")] * (CALLED_AGAIN + 1)).ask() == "tool_use_failed: no"


# --- rejected, and nothing says why -----------------------------------------------------------------


def rejected(times: int = 1) -> list[Step]:
    return [ModelRejected("no", status=400)] * times


async def test_what_is_rejected_is_asked_with_less_and_less_then_of_the_next_model_as_it_was() -> None:
    looking = UserMessage("three", images=(PICTURE,))
    request = ModelRequest((SYSTEM, UserMessage("one"), *CALLED, AssistantMessage("two"), looking), TOOLS)
    bench = Bench((rejected(4),), ([words("from b")],))
    assert await bench.ask(request) == "from b"
    told = (SYSTEM, UserMessage(f"one\n\n{TOLD}"), AssistantMessage("two"))
    blind = UserMessage(f"three\n{PICTURE_LEFT_OUT}")
    assert [asked.messages for asked in bench.requests()] == [
        request.messages,
        (*request.messages[:-1], blind),
        (*told, looking),
        (SYSTEM, blind),
    ]
    assert bench.requests(1) == [request]
    assert bench.clock.slept == []


@each_case("error", [ModelRejected("no"), ModelRejected("a flood", status=400)])
async def test_an_answer_that_is_none_is_not_asked_for_in_another_form(error: ModelError) -> None:
    error.took = Usage(10, 10) if error.status else None
    assert await one(error).ask(ModelRequest((*EARLIER, QUESTION))) == f"rejected: {error}"


async def test_who_rejects_everything_is_asked_once_for_each_question_until_it_answers_one() -> None:
    request = ModelRequest((*EARLIER, QUESTION))
    in_vain = 2 * MOST_IN_VAIN + 1
    bench = one(*rejected(in_vain), words("hello"), *rejected(), words("again"))
    for _ in range(MOST_IN_VAIN + 1):
        assert await bench.ask(request) == "rejected: no"
    assert len(bench.asked) == in_vain
    assert [await bench.ask(request), await bench.ask(request)] == ["hello", "again"]
    assert len(bench.asked) == in_vain + 3


async def test_pictures_like_those_that_were_rejected_are_left_out_for_a_while() -> None:
    def looking(picture: str) -> ModelRequest:
        return ModelRequest((UserMessage("look", images=(picture,)),))

    smaller, other_kind = "data:image/png;base64,AA", PICTURE.replace("png", "gif")
    bench = one(*rejected(), *[words("hello")] * 5)
    for picture in (PICTURE, OTHER_PICTURE, smaller, other_kind):
        assert await bench.ask(looking(picture)) == "hello"
    bench.clock.time += BLIND
    assert await bench.ask(looking(PICTURE)) == "hello"
    seen = [bool(asked.messages[0].images) for asked in bench.requests() if isinstance(asked.messages[0], UserMessage)]
    assert seen == [True, False, False, True, True, True]


async def test_of_several_pictures_nothing_is_told_of_others_like_them() -> None:
    def looking(*pictures: str) -> ModelRequest:
        return ModelRequest((UserMessage("look", images=pictures),))

    bench = one(*rejected(), *[words("hello")] * 3)
    for pictures in ((PICTURE, OTHER_PICTURE), (OTHER_PICTURE,), (OTHER_PICTURE + "C",)):
        assert await bench.ask(looking(*pictures)) == "hello"
    *_, without, shown = bench.requests()
    assert without == ModelRequest((UserMessage(f"look\n{PICTURE_LEFT_OUT}"),))
    assert shown == looking(OTHER_PICTURE + "C")


@each_case("status", [None, 500])
async def test_a_broken_server_that_speaks_of_a_picture_is_asked_without_it_next(status: int | None) -> None:
    request = ModelRequest((UserMessage("look", images=(PICTURE,)),))
    bench = one(ModelOverloaded("the image went wrong", status=status), words("hello"))
    assert await bench.ask(request) == "hello"
    assert bench.requests()[1].messages == (UserMessage(f"look\n{PICTURE_LEFT_OUT}"),)
    assert bench.clock.slept == [1.0]
    bench = one(ModelTransport("m@images.example: the answer was cut off"), words("hello"))
    assert await bench.ask(request) == "hello"
    assert bench.requests()[1] == request


async def test_calls_are_told_as_text_for_a_day_after_only_that_was_taken() -> None:
    request = ModelRequest((SYSTEM, QUESTION, *CALLED), TOOLS)
    elsewhere = ModelRequest((SYSTEM, UserMessage("another"), *CALLED), TOOLS)
    bench = one(BadHistory("no", status=400), *[words("hello")] * 3)
    for asked in (request, elsewhere):
        assert await bench.ask(asked) == "hello"
    bench.clock.time += PLAIN_SPOKEN
    assert await bench.ask(request) == "hello"
    assert [asked.messages[-1] for asked in bench.requests()] == [
        CALLED[1],
        UserMessage(f"three\n\n{TOLD}"),
        UserMessage(f"another\n\n{TOLD}"),
        CALLED[1],
    ]
    assert all(asked.tools for asked in bench.requests())


async def test_a_conversation_that_is_rejected_goes_on_without_what_is_rejected_in_it() -> None:
    request = ModelRequest((SYSTEM, *EARLIER, QUESTION))
    bench = one(*rejected(), *[words("hello")] * 3)
    assert await bench.ask(request) == "hello"
    later = (AssistantMessage("hello"), UserMessage("four"))
    assert await bench.ask(ModelRequest((*request.messages, *later))) == "hello"
    other = ModelRequest((SYSTEM, UserMessage("another"), AssistantMessage("two"), QUESTION))
    assert await bench.ask(other) == "hello"
    assert [asked.messages for asked in bench.requests()] == [
        request.messages,
        (SYSTEM, QUESTION),
        (SYSTEM, QUESTION, *later),
        other.messages,
    ]


async def test_pictures_and_calls_that_are_both_rejected_are_both_left_out_from_then_on() -> None:
    request = ModelRequest((UserMessage("look", images=(PICTURE,)), *CALLED), TOOLS)
    bench = one(*rejected(3), words("hello"), words("again"))
    assert [await bench.ask(request), await bench.ask(request)] == ["hello", "again"]
    told = UserMessage(f"look\n{PICTURE_LEFT_OUT}\n\n{TOLD}")
    assert [asked.messages for asked in bench.requests()[3:]] == [(told,), (told,)]


async def test_a_broken_server_is_asked_twice_as_it_is_then_otherwise() -> None:
    request = ModelRequest((UserMessage("look", images=(PICTURE,)),))
    bench = one(*[ModelOverloaded("oops", status=500)] * 2, words("hello"), words("again"))
    assert [await bench.ask(request), await bench.ask(request)] == ["hello", "again"]
    assert [asked == request for asked in bench.requests()] == [True, True, False, True]
    assert bench.clock.slept == [1.0, 2.0]
    bench = one(*[ModelOverloaded("busy", status=503)] * 2, words("hello"))
    assert await bench.ask(request) == "hello"
    assert bench.requests() == [request] * 3


BROKEN = ModelOverloaded("oops", status=500)
LOOKING = ModelRequest((UserMessage("look", images=(PICTURE,)), *CALLED), TOOLS)
TOLD_CALLS = ModelRequest((QUESTION, *CALLED), TOOLS)


@each_case(
    ("request_", "steps"),
    [
        (LOOKING, [BROKEN, BROKEN, words("hello")]),
        (LOOKING, [BROKEN, BROKEN, BROKEN, words("hello")]),
        (TOLD_CALLS, [BROKEN, BROKEN, words("hello")]),
        (TOLD_CALLS, [BROKEN, BROKEN, BROKEN, words("hello")]),
    ],
)
async def test_a_server_that_came_back_is_no_proof_that_a_form_helped(
    request_: ModelRequest, steps: list[Step]
) -> None:
    bench = one(*steps, words("again"), *steps, words("again"))
    for _ in range(2):  # what was taken as it is clears the suspicion
        assert [await bench.ask(request_), await bench.ask(request_)] == ["hello", "again"]
        assert bench.requests()[-2] != request_
        assert bench.requests()[-1] == request_


async def test_requests_side_by_side_in_the_same_trouble_prove_nothing() -> None:
    bench = one(*[BROKEN] * 4, *[words("hello")] * 3)
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(bench.ask(LOOKING))
    assert await bench.ask(LOOKING) == "hello"
    assert [asked == LOOKING for asked in bench.requests()] == [True] * 4 + [False] * 2 + [True]


@each_case("request_", [LOOKING, TOLD_CALLS])
async def test_a_server_that_breaks_again_over_the_same_is_asked_otherwise_from_then_on(request_: ModelRequest) -> None:
    steps = (BROKEN, BROKEN, words("hello"))
    bench = one(*steps, *steps, words("again"))
    assert [await bench.ask(request_) for _ in range(3)] == ["hello", "hello", "again"]
    assert [asked == request_ for asked in bench.requests()] == [True, True, False, True, True, False, False]
    bench = one(*steps, *steps, words("again"))
    assert await bench.ask(request_) == "hello"
    bench.clock.time += SUSPICION
    assert [await bench.ask(request_), await bench.ask(request_)] == ["hello", "again"]
    assert bench.requests()[-1] == request_


async def test_a_rejection_after_a_doubt_is_remembered() -> None:
    bench = one(BROKEN, BROKEN, *rejected(), words("hello"), words("again"))
    assert [await bench.ask(LOOKING), await bench.ask(TOLD_CALLS)] == ["hello", "again"]
    assert bench.requests()[-1] == ModelRequest((UserMessage(f"three\n\n{TOLD}"),), TOOLS)


async def test_what_is_too_large_is_asked_without_its_pictures_before_it_is_shortened() -> None:
    request = ModelRequest((SYSTEM, *EARLIER * 8, UserMessage("look", images=(PICTURE,))))
    bench = one(ContextOverflow("too large", status=413), words("hello"))
    assert await bench.ask(request) == "hello"
    assert bench.requests()[1].messages == (*request.messages[:-1], UserMessage(f"look\n{PICTURE_LEFT_OUT}"))


async def test_a_question_about_a_picture_is_not_asked_without_it() -> None:
    request = ModelRequest((UserMessage("what is it?", images=(PICTURE,)),), about_pictures=True)
    for error in (ImagesUnsupported("text only"), ModelRejected("no", status=400)):
        bench = Bench(([error],), ([words("a cat")],))
        assert await bench.ask(request) == "a cat"
        assert bench.asked == ["a1", "b1"]
        assert bench.requests(1) == [request]


async def test_each_form_is_counted_against_the_question_and_none_is_asked_that_it_has_no_room_for() -> None:
    request = ModelRequest((SYSTEM, UserMessage("one"), *CALLED, AssistantMessage("two"), QUESTION), TOOLS)
    for room, ending in {1: "rejected: no", 2: "rejected: no", 3: "hello"}.items():
        share = Budget(Limits(requests=room)).share()
        share.begin()
        bench = one(*rejected(min(room, 2)), *[words("hello")] * (room > 2))
        assert await bench.ask(replace(request, allowance=share)) == ending
        assert share.budget.spent.requests == len(bench.asked) == room


async def test_the_words_of_a_refusal_stand_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "frostagent.models")
    assert await one(*[ModelOverloaded("all the words", status=500)] * 4).ask() == "overloaded: all the words"
    assert caplog.text.count("all the words") == 1


# --- empty answers ----------------------------------------------------------------------------------


async def test_who_was_passed_over_is_asked_last() -> None:
    bench = Bench(([words("from a")],), ([words("from b")] * 2,), ([words("from c")],))
    for passed_over in ((), ("a1",), ("a1", "b1"), ("c1", "a1")):
        await bench.ask(replace(REQUEST, passed_over=passed_over))
    assert bench.asked == ["a1", "b1", "c1", "b1"]
    bench = one(words("hello"))
    assert await bench.ask(replace(REQUEST, passed_over=("a1",))) == "hello"


async def test_after_nothing_came_the_next_model_is_asked_first_and_the_only_one_again() -> None:
    nothing = ModelTransport("nothing", code=EMPTY_ANSWER)
    bench = Bench(([nothing],), ([words("from b")],))
    assert await bench.ask() == "from b"
    assert bench.clock.slept == []
    assert await one(nothing, words("hello")).ask() == "hello"
