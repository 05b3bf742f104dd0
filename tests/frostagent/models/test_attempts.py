"""Who is asked, and who is next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from frostagent.models.failover import LONG_ENOUGH, SLOW, STALLS, Failover, PendingRequest
from frostagent.models.request_repairs import CALL_AGAIN, with_call_error
from frostagent.models.upstreams import Upstream
from frostagent.types.errors import (
    BadHistory,
    ContextOverflow,
    ModelAuth,
    ModelBilling,
    ModelError,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelRejected,
    ModelStalled,
    ModelTransport,
)
from frostagent.types.messages import AssistantMessage, Completion, ModelRequest, ToolCall, ToolMessage, UserMessage
from tests.cases import each_case
from tests.fakes import CountingIds, ScriptedModel, Step, words
from tests.frostagent.several_models import EARLIER, QUESTION, REQUEST, SYSTEM, TOOLS, Bench, one


@each_case("kind", [ModelAuth, ModelBilling, ModelNotFound, ModelRejected, ContextOverflow, BadHistory])
async def test_who_cannot_answer_is_passed_over_at_once(kind: type[ModelError]) -> None:
    bench = Bench(([kind("no")],), ([words("from b")],))
    assert (await bench.model.complete(REQUEST)).endpoint == "b1"
    assert bench.asked == ["a1", "b1"]
    assert bench.clock.slept == []


async def test_a_hiccup_is_waited_for_and_more_is_not() -> None:
    bench = Bench(([ModelTransport("cut"), words("from a")],), ([],))
    assert await bench.ask() == "from a"
    bench = Bench(([ModelTransport("cut")] * 2,), ([words("from b")],))
    assert await bench.ask() == "from b"
    assert bench.clock.slept == [1.0]


async def test_a_vendor_that_asks_to_wait_is_not_waited_for_while_another_could_answer() -> None:
    bench = Bench(([ModelRateLimited("busy", retry_after=20), words("from a")],), ([words("from b")] * 2,))
    assert [await bench.ask(), await bench.ask()] == ["from b", "from b"]
    bench.clock.time += 20
    assert await bench.ask() == "from a"
    assert bench.asked == ["a1", "b1", "b1", "a1"]
    assert bench.clock.slept == []


async def test_a_short_wait_is_better_than_who_does_not_work() -> None:
    async def stall(request: ModelRequest) -> Completion:
        bench.clock.time += SLOW
        raise ModelTransport("no answer began")

    busy = ModelRateLimited("busy", retry_after=25)
    bench = Bench(([busy, words("from a")],), ([stall, words("from b")],))
    assert await bench.ask() == "from a"
    assert bench.asked == ["a1", "b1", "a1"]
    assert bench.clock.slept == [5.0]


async def test_a_refused_key_is_not_asked_again_while_another_can_be_waited_for() -> None:
    busy = ModelRateLimited("busy", retry_after=5)
    bench = Bench(([busy, words("from a"), busy, words("from a")],), ([ModelAuth("bad key")],))
    assert [await bench.ask(), await bench.ask()] == ["from a", "from a"]
    assert bench.asked == ["a1", "b1", "a1", "a1", "a1"]
    assert len(bench.told) == 1


async def test_no_more_than_the_patience_is_waited_before_who_does_not_work_is_asked() -> None:
    busy, refused = ModelRateLimited("busy", retry_after=5), ModelAuth("bad key")
    bench = Bench(([busy],), ([refused, words("from b")],), patience=4)
    assert [await bench.ask(), await bench.ask()] == ["auth: bad key", "from b"]
    assert bench.clock.slept == []


async def test_a_limit_of_something_else_is_no_window_and_a_window_never_grows() -> None:
    request = ModelRequest((SYSTEM, *EARLIER * 8, QUESTION))
    windows = {128: None, 8192: 8192, 99_999: 8192}
    bench = one(*(step for limit in windows for step in (ContextOverflow("too long", limit=limit), words("hello"))))
    for window in windows.values():
        assert await bench.ask(request) == "hello"
        assert bench.model.first(REQUEST).window == window


async def test_nobody_is_left_alone_for_longer_than_an_hour_whatever_they_ask_for() -> None:
    bench = Bench(([ModelRateLimited("busy", retry_after=86_400), words("from a")],), ([words("from b")] * 2,))
    assert [await bench.ask(), await bench.ask()] == ["from b", "from b"]
    bench.clock.time += 3600
    assert await bench.ask() == "from a"


async def test_where_all_are_busy_the_first_that_is_ready_is_waited_for() -> None:
    bench = Bench(
        ([ModelRateLimited("busy", retry_after=30)],), ([ModelRateLimited("busy", retry_after=10), words("from b")],)
    )
    assert await bench.ask() == "from b"
    assert bench.clock.slept == [10.0]


async def test_the_last_error_gets_out_where_nobody_answers() -> None:
    bench = Bench(([ModelAuth("bad key")],), ([ModelNotFound("no such model")],), ([ModelRejected("odd")],))
    assert await bench.ask() == "rejected: odd"


async def test_in_the_middle_of_a_tool_loop_the_next_one_gets_the_same_transcript() -> None:
    call = AssistantMessage("", (ToolCall("c0", "f", "{}"),))
    loop = ModelRequest((SYSTEM, QUESTION, call, ToolMessage("c0", "f", "done")), TOOLS)
    bench = Bench(([words("from a"), ModelBilling("empty")],), ([words("from b")],))
    assert [await bench.ask(), await bench.ask(loop)] == ["from a", "from b"]
    assert bench.requests(1) == [loop]


async def test_who_failed_again_and_again_is_asked_last_until_a_probe_of_it_succeeds() -> None:
    cut = ModelTransport("cut")
    bench = Bench(([cut, cut, cut, cut, words("from a"), words("from a")],), ([words("from b")] * 4,))
    for _ in range(2):
        assert await bench.ask() == "from b"
    assert await bench.ask() == "from b"
    assert bench.asked == ["a1", "a1", "b1", "a1", "b1", "b1"]
    bench.clock.time += 31
    assert await bench.ask() == "from b"  # the probe fails, and is not repeated
    bench.clock.time += 61
    assert [await bench.ask(), await bench.ask()] == ["from a", "from a"]


async def test_who_takes_long_to_fail_is_not_asked_twice_while_there_is_another() -> None:
    async def stall(request: ModelRequest) -> Completion:
        bench.clock.time += SLOW
        raise ModelTransport("no answer began")

    bench = Bench(([stall],), ([words("from b")] * 2,))
    assert [await bench.ask(), await bench.ask()] == ["from b", "from b"]
    assert bench.asked == ["a1", "b1", "b1"]


async def test_only_one_request_at_a_time_is_a_probe() -> None:
    going_on, go = asyncio.Event(), asyncio.Event()

    async def probe(request: ModelRequest) -> Completion:
        going_on.set()
        await go.wait()
        return words("from a")

    bench = Bench(([ModelNotFound("no"), probe],), ([words("from b")] * 2,))
    assert await bench.ask() == "from b"
    bench.clock.time += 31
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        probing = group.create_task(bench.ask())
        await going_on.wait()
        assert await bench.ask() == "from b"
        go.set()
    assert probing.result() == "from a"


async def test_who_is_alone_is_asked_however_often_it_failed() -> None:
    bench = one(*[ModelTransport("cut")] * 8, words("hello"))
    assert [await bench.ask() for _ in range(3)] == ["transport: cut", "transport: cut", "hello"]


# --- the errand itself ------------------------------------------------------------------------------


def test_a_change_is_made_so_often_and_only_where_there_is_one() -> None:
    errand = PendingRequest(REQUEST, ())
    assert not errand.change(lambda request: None)
    assert not errand.change(lambda request: request)
    assert errand.change(with_call_error, times=2)
    assert errand.change(with_call_error, times=2)
    assert not errand.change(with_call_error, times=2)
    [asked] = errand.request.messages  # two of one role in a row are refused by some
    assert asked == UserMessage(f"three\n\n{CALL_AGAIN}\n\n{CALL_AGAIN}")


def test_who_is_closed_is_not_chosen() -> None:
    first, second = (Upstream(ScriptedModel(), ScriptedModel()) for _ in range(2))
    errand = PendingRequest(REQUEST, (first, second))
    chosen = []
    while way := errand.choose(now=0):
        chosen.append((way.upstream, way.line))
        errand.closed.add(way.line if way.upstream is first else way.upstream)
    assert chosen == [(first, first.lines[0]), (first, first.lines[1]), (second, second.lines[0])]


# --- waits that a vendor names ----------------------------------------------------------------------


@each_case("kind", [ModelRateLimited, ModelOverloaded])
@each_case("after", [0.0, -5.0, 0.2])
async def test_a_wait_the_vendor_names_is_never_shorter_than_our_own(
    kind: type[ModelRateLimited | ModelOverloaded], after: float
) -> None:
    bench = one(*[kind("busy", retry_after=after)] * 3, words("hello"))
    assert await bench.ask() == "hello"
    assert bench.clock.slept == [1.0, 2.0, 4.0]


async def test_a_wait_of_a_day_is_over_with_the_next_answer() -> None:
    day = ModelRateLimited("busy", retry_after=86_400)
    bench = one(day, words("hello"), ModelOverloaded("hiccup"), words("again"))
    assert [await bench.ask() for _ in range(2)] == ["rate_limit: busy", "hello"]
    assert bench.upstreams[0].lines[0].busy_until == 0
    assert await bench.ask() == "again"
    bench = one(ModelOverloaded("busy", retry_after=86_400), ModelOverloaded("hiccup"), words("again"))
    assert [await bench.ask() for _ in range(2)] == ["overloaded: busy", "again"]
    assert bench.clock.slept == [1.0]


async def test_an_answer_to_what_was_asked_before_says_nothing_of_a_later_wait() -> None:
    both_are_asked, refused = asyncio.Barrier(2), asyncio.Event()

    async def refuse(request: ModelRequest) -> Completion:
        await both_are_asked.wait()
        raise ModelRateLimited("busy", retry_after=100)

    async def answer(request: ModelRequest) -> Completion:
        await both_are_asked.wait()
        await refused.wait()
        return words("hello")

    async def ask_and_tell() -> str:
        said = await bench.ask()
        refused.set()
        return said

    bench = one(refuse, answer)
    async with asyncio.timeout(30):
        refusal, said = await asyncio.gather(ask_and_tell(), bench.ask())
    assert (refusal, said) == ("rate_limit: busy", "hello")
    assert bench.upstreams[0].lines[0].busy_until == bench.clock.time + 100


async def test_a_cancelled_request_says_nothing_of_a_wait() -> None:
    async def cancelled(request: ModelRequest) -> Completion:
        raise asyncio.CancelledError

    bench = one(ModelRateLimited("busy", retry_after=100), cancelled)
    await bench.ask()
    with pytest.raises(asyncio.CancelledError):
        await bench.model.complete(REQUEST)
    assert bench.upstreams[0].lines[0].busy_until == bench.clock.time + 100


# --- how long somebody is let wait ------------------------------------------------------------------


def taking(seconds: float, bench: Callable[[], Bench], error: ModelError) -> Step:
    """A step that ends so after that time."""

    async def step(request: ModelRequest) -> Completion:
        bench().clock.time += seconds
        raise error

    return step


async def test_whoever_stalls_is_not_asked_again_but_the_next_is() -> None:
    stall = taking(60, lambda: bench, ModelStalled("no answer began"))
    bench = one(stall, words("never asked for"))
    assert await bench.ask() == "stalled: no answer began"
    assert bench.clock.slept == []
    bench = Bench(([stall], [words("by its other key")]), ([words("from b")] * 2,))
    assert [await bench.ask(), await bench.ask()] == ["from b", "from b"]
    assert bench.asked == ["a1", "b1", "b1"]


async def test_only_so_many_that_stall_are_waited_for() -> None:
    stall = taking(60, lambda: bench, ModelStalled("no answer began"))
    bench = Bench(([stall],), ([stall],), ([stall],))
    assert STALLS == 3
    more = Upstream(ScriptedModel(words("too late")))
    bench.model = Failover([*bench.upstreams, more], clock=bench.clock, ids=CountingIds())
    began = bench.clock.time
    assert await bench.ask() == "stalled: no answer began"
    assert bench.asked == ["a1", "b1", "c1"]
    assert bench.clock.time - began == 180


async def test_after_two_that_stalled_the_third_still_answers() -> None:
    stall = taking(60, lambda: bench, ModelStalled("no answer began"))
    bench = Bench(([stall],), ([stall],), ([words("from c")],))
    assert await bench.ask() == "from c"


async def test_whoever_failed_is_not_asked_again_after_long_enough() -> None:
    cut = taking(LONG_ENOUGH - 1, lambda: bench, ModelTransport("cut"))
    bench = one(cut, words("hello"))
    assert await bench.ask() == "hello"
    cut = taking(LONG_ENOUGH, lambda: bench, ModelTransport("cut"))
    bench = one(cut, words("too late"))
    bench.clock.time += 1000
    assert await bench.ask() == "transport: cut"
    bench = Bench(([cut],), ([words("from b")],))
    assert await bench.ask() == "from b"
