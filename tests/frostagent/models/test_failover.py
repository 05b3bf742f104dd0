from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from frostagent.engine.budget import Budget
from frostagent.models.failover import ATTEMPTS, CALLED_AGAIN, Failover, RequestForm
from frostagent.models.prices import Price
from frostagent.models.request_repairs import PICTURE_LEFT_OUT
from frostagent.models.tokens import estimate
from frostagent.models.upstreams import Upstream
from frostagent.types.errors import (
    BadHistory,
    ContentFiltered,
    ContextOverflow,
    DaySpent,
    ImagesUnsupported,
    ModelAuth,
    ModelBilling,
    ModelError,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelRejected,
    ModelStalled,
    ModelTransport,
    ToolsUnsupported,
    ToolUseFailed,
)
from frostagent.types.messages import (
    AssistantMessage,
    Attempt,
    Completion,
    FinishReason,
    ModelRequest,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from tests.cases import each_case
from tests.fakes import CountingIds, ManualClock, ScriptedModel, Step, words
from tests.frostagent.several_models import EARLIER, PICTURE, QUESTION, REQUEST, SYSTEM, TOOLS, Bench, one

BUSY = (ModelRateLimited, ModelOverloaded, ModelTransport)
KINDS: tuple[type[ModelError], ...] = (
    *BUSY,
    ModelStalled,
    ModelAuth,
    ModelBilling,
    ModelNotFound,
    ModelRejected,
    ContextOverflow,
    ContentFiltered,
    ToolsUnsupported,
    ToolUseFailed,
    ImagesUnsupported,
    BadHistory,
)


# --- patience ---------------------------------------------------------------------------------------


async def test_an_answer_at_once_is_handed_on_with_the_name_of_who_gave_it() -> None:
    bench = one(words("hello"))
    assert await bench.model.complete(REQUEST) == replace(words("hello"), endpoint="a1")
    assert bench.clock.slept == []


@each_case("kind", BUSY)
async def test_a_busy_vendor_is_asked_again_after_longer_and_longer_waits(kind: type[ModelError]) -> None:
    bench = one(*[kind("busy")] * 3, words("hello"))
    assert await bench.ask() == "hello"
    assert bench.clock.slept == [1.0, 2.0, 4.0]
    assert bench.requests() == [REQUEST] * 4


@each_case("kind", BUSY)
async def test_all_who_ask_the_only_vendor_at_once_are_asked_for_as_often_as_one_alone_though_it_rests(
    kind: type[ModelError],
) -> None:
    asking = 5
    bench = one(*[kind("busy")] * 3 * asking, *[words("hello")] * asking)
    assert await asyncio.gather(*(bench.ask() for _ in range(asking))) == ["hello"] * asking
    assert len(bench.requests()) == 4 * asking


async def test_after_the_last_attempt_the_last_error_gets_out() -> None:
    bench = one(*[ModelTransport("cut")] * 3, ModelOverloaded("still busy"))
    assert await bench.ask() == "overloaded: still busy"
    assert bench.clock.slept == [1.0, 2.0, 4.0]


@each_case("kind", [ModelAuth, ModelBilling, ModelNotFound, ModelRejected, ContentFiltered])
async def test_what_nothing_mends_gets_out_at_once(kind: type[ModelError]) -> None:
    bench = one(kind("no"))
    assert await bench.ask() == f"{kind.kind}: no"
    assert bench.clock.slept == []


@each_case("kind", [ModelRateLimited, ModelOverloaded])
async def test_a_wait_the_vendor_names_is_honoured(kind: type[ModelRateLimited | ModelOverloaded]) -> None:
    bench = one(kind("busy", retry_after=7.5), words("hello"))
    assert await bench.ask() == "hello"
    assert bench.clock.slept == [7.5]


async def test_a_wait_the_vendor_names_holds_for_the_next_request_too() -> None:
    bench = one(ModelRateLimited("busy", retry_after=70), words("hello"), words("again"))
    assert await bench.ask() == "rate_limit: busy"
    bench.clock.time += 60
    assert await bench.ask() == "hello"
    assert bench.clock.slept == [10.0]
    assert await bench.ask() == "again"


async def test_a_vendor_that_asks_for_too_much_patience_is_not_waited_for() -> None:
    bench = one(ModelRateLimited("busy", retry_after=61))
    assert await bench.ask() == "rate_limit: busy"
    assert bench.clock.slept == []


async def test_nobody_is_refused_without_having_been_tried() -> None:
    bench = one(ModelRateLimited("busy", retry_after=3600), words("hello"))
    assert await bench.ask() == "rate_limit: busy"
    assert await bench.ask() == "hello"
    assert bench.clock.slept == []


@each_case("newer", [ModelTransport("cut"), words("hello")])
async def test_any_answer_is_a_newer_word_than_a_wait_the_vendor_named(newer: Step) -> None:
    bench = one(ModelOverloaded("busy", retry_after=3600), newer, attempts=1)
    await bench.ask()
    assert bench.upstreams[0].busy_until > 0
    await bench.ask()
    assert bench.upstreams[0].busy_until == 0


async def test_patience_is_counted_over_all_waits_of_a_request() -> None:
    busy = ModelRateLimited("busy", retry_after=40)
    bench = one(busy, busy)
    assert await bench.ask() == "rate_limit: busy"
    assert bench.clock.slept == [40.0]
    assert await one(*[ModelTransport("cut")] * 2, patience=2).ask() == "transport: cut"


@each_case("attempts", [0, 1])
async def test_one_attempt_is_one_attempt(attempts: int) -> None:
    assert await one(ModelTransport("cut"), attempts=attempts).ask() == "transport: cut"


async def test_jitter_spreads_the_waits_by_a_quarter_each_way() -> None:
    waits = []
    for jitter in (0.0, 0.999):
        clock = ManualClock()
        with ScriptedModel(ModelTransport("cut"), ModelTransport("cut"), words("hello")) as scripted:
            await Failover([Upstream(scripted)], clock=clock, ids=CountingIds(jitter)).complete(REQUEST)
        waits.append([round(wait, 2) for wait in clock.slept])
    assert waits == [[0.75, 1.5], [1.25, 2.5]]


async def test_a_bug_or_a_cancellation_is_not_asked_again() -> None:
    async def broken(request: ModelRequest) -> Completion:
        raise LookupError

    async def cancelled(request: ModelRequest) -> Completion:
        raise asyncio.CancelledError

    for step, error, outcome in (
        (broken, LookupError, "crashed"),
        (cancelled, asyncio.CancelledError, "cancelled"),
    ):
        bench = one(step)
        with pytest.raises(error):
            await bench.model.complete(REQUEST)
        assert bench.clock.slept == []
        assert [attempt.outcome for attempt in bench.attempts] == [outcome]


async def test_a_request_that_is_broken_off_costs_what_was_read_of_it() -> None:
    async def cancelled(request: ModelRequest) -> Completion:
        raise asyncio.CancelledError

    share = Budget().share()
    with ScriptedModel(cancelled) as scripted:
        upstream = Upstream(scripted, price=Price(prompt=10.0, cached=1.0, completion=100.0))
        with pytest.raises(asyncio.CancelledError):
            await Failover([upstream], clock=ManualClock(), ids=CountingIds()).complete(
                replace(REQUEST, allowance=share)
            )
    read = Usage(prompt=upstream.measure(REQUEST))
    assert share.lost == ("scripted", replace(read, cost=read.prompt * 10 / 1_000_000))


async def test_every_attempt_is_told_under_whom_it_went_to_with_its_time_and_its_cost() -> None:
    async def slow(request: ModelRequest) -> Completion:
        await bench.clock.sleep(4)
        return words("hello")

    bench = Bench(([ModelAuth("no")],), ([slow],))
    assert await bench.ask() == "hello"
    refused, answered = bench.attempts
    assert refused == Attempt("a1", "auth", 0.0)
    assert (answered.endpoint, answered.outcome, answered.seconds) == ("b1", "ok", 4.0)
    assert answered.completion == words("hello")


async def test_where_every_key_is_refused_the_next_model_answers_and_they_are_left_alone() -> None:
    refused = ModelAuth("no")
    bench = Bench(([refused], [refused]), ([words("from b")] * 2,))
    assert [await bench.ask(), await bench.ask()] == ["from b", "from b"]
    assert bench.asked == ["a1", "a2", "b1", "b1"]
    assert len(bench.told) == 2


async def test_pictures_go_to_the_model_that_sees_and_words_do_not() -> None:
    seeing = ModelRequest((UserMessage("look", images=(PICTURE,)),))
    bench = Bench(([words("from a")] * 2,), vision=[words("from v"), ModelBilling("empty")])
    assert [await bench.ask(seeing), await bench.ask(), await bench.ask(seeing)] == ["from v", "from a", "from a"]
    assert bench.asked == ["v", "a1", "v", "a1"]


async def test_after_a_content_filter_the_earlier_rounds_are_left_out_for_good() -> None:
    request = ModelRequest((SYSTEM, *EARLIER, QUESTION))
    bench = one(ContentFiltered("no"), words("hello"), words("again"), words("elsewhere"))
    assert await bench.ask(request) == "hello"
    later = (AssistantMessage("hello"), UserMessage("four"))
    assert await bench.ask(ModelRequest((*request.messages, *later))) == "again"
    other = ModelRequest((SYSTEM, UserMessage("another"), AssistantMessage("two"), QUESTION))
    assert await bench.ask(other) == "elsewhere"
    assert [asked.messages for asked in bench.requests()] == [
        request.messages,
        (SYSTEM, QUESTION),
        (SYSTEM, QUESTION, *later),
        other.messages,
    ]


async def test_a_question_that_is_filtered_itself_is_no_ones_to_answer() -> None:
    bench = Bench(([ContentFiltered("no")] * 2,), ([],))
    assert await bench.ask(ModelRequest((*EARLIER, QUESTION))) == "content_filter: no"
    assert bench.asked == ["a1", "a1"]


async def test_pictures_are_left_out_first_where_content_is_filtered() -> None:
    bench = one(ContentFiltered("no"), words("hello"))
    assert await bench.ask(ModelRequest((*EARLIER, UserMessage("look", images=(PICTURE,))))) == "hello"
    assert bench.requests()[1].messages == (*EARLIER, UserMessage(f"look\n{PICTURE_LEFT_OUT}"))


async def test_an_answer_that_is_filtered_counts_as_a_refusal_and_gets_out_as_it_is() -> None:
    filtered = words("", finish=FinishReason.CONTENT_FILTER)
    bench = one(filtered, words("hello"))
    assert await bench.ask(ModelRequest((*EARLIER, QUESTION))) == "hello"
    bench = one(filtered)
    assert (await bench.model.complete(REQUEST)).finish is FinishReason.CONTENT_FILTER


async def test_what_a_model_counts_corrects_the_measure() -> None:
    bench = one(replace(words("a"), usage=Usage(prompt=2 * round(estimate(REQUEST)))))
    await bench.ask()
    assert bench.model.first(REQUEST).measure(REQUEST) == pytest.approx(2 * estimate(REQUEST), abs=1)


def test_it_goes_by_the_name_of_whom_it_asks_first() -> None:
    assert Bench(([],), ([],)).model.name == "a1"


async def test_without_anybody_to_ask_it_says_so() -> None:
    with pytest.raises(RuntimeError, match="nobody"):
        await Failover([], clock=ManualClock(), ids=CountingIds()).complete(REQUEST)


# --- all of it --------------------------------------------------------------------------------------


def errors() -> st.SearchStrategy[ModelError]:
    return st.one_of(
        st.sampled_from(KINDS).map(lambda kind: kind("no")),
        st.sampled_from([0.0, 3.0, 30.0, 300.0]).map(lambda after: ModelRateLimited("busy", retry_after=after)),
        st.sampled_from(
            [
                ImagesUnsupported("bad", code="invalid_image_url"),
                ImagesUnsupported("bad", code="image_kind"),
                ModelRejected("no", status=400),
                ModelOverloaded("oops", status=500),
                ModelOverloaded("image", status=500),
                ModelTransport("nothing", code="empty"),
                ContextOverflow("too large", status=413),
            ]
        ),
    )


def scripts() -> st.SearchStrategy[list[Step]]:
    """What a key answers, one after the other; the last one again and again."""
    filtered = words("", finish=FinishReason.CONTENT_FILTER)
    return st.lists(st.one_of(errors(), errors(), errors(), st.sampled_from([words("hello"), filtered])), min_size=1)


@given(
    upstreams=st.lists(st.lists(scripts(), min_size=1, max_size=3), min_size=1, max_size=3),
    asked=st.integers(1, 3),
    tools=st.booleans(),
    pictures=st.booleans(),
)
def test_no_sequence_of_errors_loops(
    upstreams: list[list[list[Step]]], asked: int, tools: bool, pictures: bool
) -> None:
    """Every request ends in one answer or one ModelError, after a bounded number of attempts and of seconds."""
    asking = ModelRequest(
        (
            SYSTEM,
            *EARLIER,
            UserMessage("look", images=(PICTURE,) if pictures else ()),
            AssistantMessage("", (ToolCall("c", "f", "{}"),)),
            ToolMessage("c", "f", "done"),
        ),
        TOOLS if tools else (),
    )
    bound = sum(ATTEMPTS + 2 * len(keys) + 2 + len(RequestForm) for keys in upstreams) + CALLED_AGAIN + 5

    async def run() -> None:
        bench = Bench(
            *(tuple(script[:-1] + [script[-1]] * 200 for script in keys) for keys in upstreams),
        )
        for _ in range(asked):
            before, waited = len(bench.asked), sum(bench.clock.slept)
            await bench.ask(asking)
            assert len(bench.asked) - before <= bound
            assert sum(bench.clock.slept) - waited <= 60.0

    asyncio.run(run())


def test_every_kind_of_error_is_among_them() -> None:
    def kinds(kind: type[ModelError]) -> set[type[ModelError]]:
        below = {leaf for child in kind.__subclasses__() for leaf in kinds(child)}
        return below | ({kind} if "kind" in vars(kind) else set())

    assert set(KINDS) == kinds(ModelError) - {ModelError, DaySpent}  # which no vendor says
