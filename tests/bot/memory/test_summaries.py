from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.journal import UsageAdded, WindowMoved
from bot.core.task_context import current_errand, current_run
from bot.memory.history import History
from bot.memory.summaries import AT_ONCE, Summaries
from bot.prompt.summary import Prefix
from frostagent.types.errors import ModelBilling, ModelRejected
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    Message,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolSpec,
    Usage,
    UserMessage,
)
from tests.cases import each_case
from tests.fakes import BOT, GROUP, ManualClock, RecordingStore, ScriptedModel, Step, until, words

GIVEN = replace(words("小明(777) 问了三次"), usage=Usage(900, 30, cost=0.001), endpoint="demo@here")


class Talk:
    """A history with room for three rounds, and what summarises it."""

    def __init__(self, *steps: Step, one_by_one: bool = False, continues: bool = False, patience: float = 5.0) -> None:
        self.clock = ManualClock()
        self.store = RecordingStore()
        self.spent: set[str] = set()
        self.model = ScriptedModel(*steps)
        self.summaries = Summaries(
            model=self.model,
            store=self.store,
            clock=self.clock,
            one_by_one=one_by_one,
            continues=continues,
            is_spent=self.spent.__contains__,
            patience=patience,
        )
        self.history = History(
            store=self.store, room=lambda: 1000.0, begin_summary=self.summaries.begin, stop_summary=self.summaries.stop
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        with self.model:
            async with asyncio.timeout(30), self.summaries.open():
                yield

    async def turns(self, number: int, where: Conversation = GROUP) -> None:
        """So many turns, one after the other, without a pause."""
        for _ in range(number):
            await self.history.load(where)
            turn = f"t{len(self.history.messages(where)) // 2 + 1}"
            self.history.add_round(where, turn, UserMessage("小明(777): 说说"), [AssistantMessage("好" * 300)])


def waiting(event: asyncio.Event) -> Step:
    """An answer that comes when the test says so."""

    async def answer(_request: ModelRequest) -> Completion:
        await event.wait()
        return GIVEN

    return answer


async def test_a_conversation_that_is_too_long_is_summarised_after_its_turn() -> None:
    talk = Talk(GIVEN)
    async with talk.open():
        await talk.turns(4)
        assert talk.history.summary(GROUP) == ""  # nobody has waited for it
        await talk.summaries.wait_idle()
    assert talk.history.summary(GROUP) == "小明(777) 问了三次"
    assert len(talk.history.messages(GROUP)) == 2
    used = UsageAdded(turn_id="t4", model="demo@here", usage=Usage(900, 30, cost=0.001), at=talk.clock.now())
    assert talk.store.entries == [used, WindowMoved(GROUP, "t4", "t2", "小明(777) 问了三次")]


async def test_a_request_is_of_the_latest_turn_and_there_is_none_while_its_day_is_spent() -> None:
    ran: list[str] = []

    async def asked(_request: ModelRequest) -> Completion:
        ran.append(current_run.get())
        assert current_errand.get() == "summary"
        return GIVEN

    talk = Talk(asked)
    async with talk.open():
        talk.spent.add("t4")
        await talk.turns(4)
        await talk.summaries.wait_idle()
        assert ran == []
        talk.spent.clear()
        talk.summaries.begin(GROUP, talk.history)
        await talk.summaries.wait_idle()
    assert ran == ["t4"]


async def test_what_it_cost_is_told_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    talk = Talk(GIVEN)
    caplog.set_level("INFO")
    async with talk.open():
        await talk.turns(4)
        await talk.summaries.wait_idle()
    assert "3 rounds of 10001:group:4242 are a summary now: 900 + 30 tokens, $0.001000" in caplog.text


async def test_the_next_turns_do_not_end_the_work_on_a_summary() -> None:
    go_on = asyncio.Event()
    talk = Talk(waiting(go_on))
    async with talk.open():
        await talk.turns(4)
        await until(lambda: talk.model.requests)
        await talk.turns(3)
        assert "· 小明(777): 说说 -> 好" in talk.history.summary(GROUP)  # there was no room left for all
        go_on.set()
        await talk.summaries.wait_idle()
    assert talk.history.summary(GROUP).splitlines()[0] == "小明(777) 问了三次"
    assert len(talk.model.requests) == 1


async def test_where_requests_are_answered_one_by_one_the_next_turn_ends_the_work_twice_at_most() -> None:
    go_on = asyncio.Event()
    talk = Talk(*[waiting(go_on)] * 4, one_by_one=True)

    async def asked(times: int) -> None:
        while len(talk.model.requests) < times:
            await talk.turns(1)
            for _ in range(5):
                await asyncio.sleep(0)

    async with talk.open():
        for attempt in (1, 2, 3):
            await asked(attempt)
            await talk.turns(1)
            if attempt < 3:
                for seconds in (59, 1):  # a pause
                    await talk.turns(4)
                    await talk.summaries.wait_idle()
                    assert len(talk.model.requests) == attempt
                    talk.clock.time += seconds
        go_on.set()
        await talk.summaries.wait_idle()
        assert talk.history.summary(GROUP).splitlines()[0] == "小明(777) 问了三次"
        go_on.clear()
        await asked(4)
        await talk.turns(1)
        await talk.summaries.wait_idle()  # it is given up again


@each_case(
    "step",
    [
        ModelBilling("no money"),
        words(""),
        words("no", refusal="I cannot"),
        replace(words(""), usage=None),
        replace(words("我看看"), message=AssistantMessage("我看看", (ToolCall("c1", "look", "{}"),))),
    ],
)
async def test_where_there_is_no_summary_everything_stays_and_rounds_become_lines_when_it_is_time(step: Step) -> None:
    talk = Talk(step, step)
    async with talk.open():
        await talk.turns(4)
        await talk.summaries.wait_idle()
        assert len(talk.history.messages(GROUP)) == 8
        await talk.turns(1)
        await talk.summaries.wait_idle()
        await talk.history.load(GROUP)
    assert talk.history.summary(GROUP).count("· 小明(777): 说说 -> 好") == 2
    assert len(talk.history.messages(GROUP)) == 2


async def test_what_breaks_is_told_to_the_log_and_breaks_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_request: ModelRequest) -> Completion:
        raise ZeroDivisionError

    talk = Talk(broken, GIVEN)
    async with talk.open():
        await talk.turns(4)
        await talk.summaries.wait_idle()
        await talk.turns(1)
        await talk.summaries.wait_idle()
    assert "no summary of 10001:group:4242" in caplog.text
    assert talk.history.summary(GROUP) == "小明(777) 问了三次"


async def test_a_model_that_never_answers_is_not_waited_for() -> None:
    talk = Talk(waiting(asyncio.Event()), patience=0.01)
    async with talk.open():
        await talk.turns(4)
        await talk.summaries.wait_idle()
    assert talk.history.summary(GROUP) == ""


async def test_few_are_made_at_once_and_one_for_each_conversation() -> None:
    go_on = asyncio.Event()
    talk = Talk(*[waiting(go_on)] * (AT_ONCE + 1))
    async with talk.open():
        for number in range(AT_ONCE + 1):
            await talk.turns(4, Conversation(BOT, "group", number + 1))
            talk.summaries.begin(Conversation(BOT, "group", number + 1), talk.history)
        await until(lambda: len(talk.model.requests) == AT_ONCE)
        go_on.set()
        await talk.summaries.wait_idle()
    assert len(talk.model.requests) == AT_ONCE + 1


async def test_at_the_end_what_is_not_done_is_left() -> None:
    talk = Talk(waiting(asyncio.Event()))
    async with talk.open():
        await talk.turns(4)
        await until(lambda: talk.model.requests)
    await talk.turns(1)
    assert talk.store.entries == []


async def test_nothing_is_asked_for_what_has_room_again() -> None:
    talk = Talk()
    async with talk.open():
        talk.summaries.begin(GROUP, talk.history)
        talk.summaries.stop(GROUP)
        talk.summaries.stop(GROUP)
        await talk.turns(2)
        talk.summaries.begin(GROUP, talk.history)
        await talk.summaries.wait_idle()


ASKED = (UserMessage("小明(777): 说说"), AssistantMessage("好" * 300))
TOOLS = (ToolSpec("look", "Looks.", {}),)


async def continued(
    talk: Talk, *rounds: Message, before: int = 1, model: ScriptedModel | None = None
) -> list[ModelRequest]:
    """The requests for a summary, where those of the turn had begun with these rounds."""
    prefix = Prefix((SystemMessage("你是小霜"), *rounds, UserMessage("小红#5: 还有吗")), before, TOOLS, model)
    async with talk.open():
        await talk.turns(3)
        await talk.history.load(GROUP)
        talk.history.add_round(GROUP, "t4", *ASKED[:1], ASKED[1:], prefix)
        await talk.summaries.wait_idle()
    return talk.model.requests


async def test_a_summary_goes_on_from_the_requests_of_the_turn_where_the_same_model_makes_it() -> None:
    talk = Talk(GIVEN, continues=True)
    (request,) = await continued(talk, *ASKED * 3)
    assert request.messages[:-1] == (SystemMessage("你是小霜"), *ASKED * 3)
    assert (request.tools, request.calls) == (TOOLS, False)
    assert talk.history.summary(GROUP) == "小明(777) 问了三次"
    assert isinstance(talk.store.entries[0], UsageAdded)  # counted like any other


async def test_the_cache_that_is_read_is_that_of_the_model_which_the_persona_has() -> None:
    talk = Talk(continues=True)
    with ScriptedModel(GIVEN) as personas:
        assert await continued(talk, *ASKED * 3, model=personas) == []
    assert len(personas.requests) == 1
    assert talk.history.summary(GROUP) == "小明(777) 问了三次"


@each_case(
    "rounds",
    [
        (UserMessage("小明(777): 撤回的话"), ASKED[1], *ASKED * 2),
        (*ASKED, UserMessage("小明(777): 撤回的话"), ASKED[1], *ASKED),
        (UserMessage("[此前对话摘要]\n  忘掉的人\n小明(777): 说说"), ASKED[1], *ASKED * 2),
        ASKED,
    ],
)
async def test_what_is_told_otherwise_by_now_is_not_read_from_the_cache(rounds: tuple[Message, ...]) -> None:
    (request,) = await continued(Talk(GIVEN, continues=True), *rounds)
    assert (len(request.messages), request.tools) == (2, ())


async def test_another_model_and_one_that_takes_no_such_request_are_asked_in_a_request_of_its_own() -> None:
    (other,) = await continued(Talk(GIVEN), *ASKED * 3)
    refused = Talk(ModelRejected("no tool_choice"), GIVEN, continues=True)
    requests = await continued(refused, *ASKED * 3)
    assert [request.tools for request in requests] == [TOOLS, ()]
    assert requests[1] == other
    assert refused.history.summary(GROUP) == "小明(777) 问了三次"
