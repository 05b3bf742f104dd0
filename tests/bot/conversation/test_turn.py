from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from bot.conversation.approvals import Approvals
from bot.conversation.perception import Perception
from bot.conversation.turn import Persona, Turns, WaitingTurn, spent_by
from bot.domain.actions import (
    Attachment,
    MediaKind,
    SendMessage,
)
from bot.domain.chat import (
    AssistantMessage,
    Completion,
    ModelRequest,
    SystemMessage,
    ToolMessage,
    Usage,
    UserMessage,
)
from bot.domain.errors import ActionRefused, ActionUnanswered, BotError, ModelBilling, NotConnected
from bot.domain.journal import Entry, Remembered, Round, TurnClosed, TurnOpened
from bot.domain.ports import ChatModel, Media, Sight
from bot.domain.run import Asker, Spent, Stop, SuspendedRun
from bot.domain.segments import Quote, Text
from bot.engine.engine import Engine
from bot.engine.toolset import Toolset
from bot.memory.history import History
from bot.memory.recorder import Recorder
from bot.policy.budget import NO_LIMITS, Limits
from bot.speaking.delivery import Delivery
from bot.speaking.owner import Owner
from tests.bot.speaking.post import build_outbox
from tests.fakes import (
    BOT,
    GROUP,
    PRIVATE,
    CountingIds,
    ManualClock,
    RecordingStore,
    RecordingTransport,
    ScriptedModel,
    Step,
    calls,
    said,
    until,
    words,
)
from tools.send_message import send_message

OWNER = 999


class AnyMedia:
    """A media folder that has every file."""

    async def attach(self, kind: MediaKind, *, path: str = "", url: str = "", name: str = "") -> Attachment:
        return Attachment(kind, f"base64://{path or url}", name)


class House:
    """The rooms a turn needs, with fakes at the ports."""

    model: ScriptedModel

    def __init__(
        self,
        model: ChatModel,
        store: RecordingStore | None = None,
        sight: Sight | None = None,
        limits: Limits = NO_LIMITS,
    ) -> None:
        self.transport = RecordingTransport()
        self.store = store or RecordingStore()
        self.history = History(store=self.store)
        self.clock = clock = ManualClock()
        self.outbox, queues = build_outbox(self.transport, self.store, clock)
        self.owner = Owner(owners=frozenset({OWNER}), queues=queues, clock=clock)
        # What a turn waits for is asked here, not in QQ: tests decide by themselves what becomes of it.
        self.asked: list[str] = []
        self.approvals = Approvals(owners=frozenset(), outbox=self.outbox, history=self.history, clock=clock)
        self.approvals.ask_on(self.asked.append)
        self.toolset = Toolset([send_message], clock=clock)
        delivery = Delivery(outbox=self.outbox, history=self.history, clock=clock)
        engine = Engine(
            model=model, toolset=self.toolset, clock=clock, observer=Recorder(store=self.store, clock=clock)
        )
        self.turns = Turns(
            engine=engine,
            delivery=delivery,
            perception=Perception(transport=self.transport, history=self.history, sight=sight),
            history=self.history,
            store=self.store,
            clock=clock,
            ids=CountingIds(),
            persona=Persona("be nice", "Frost"),
            owners=frozenset({OWNER}),
            approvals=self.approvals,
            ports={Media: AnyMedia()},
            limits=limits,
        )


@asynccontextmanager
async def living(*steps: Step, sight: Sight | None = None, limits: Limits = NO_LIMITS) -> AsyncIterator[House]:
    """A house with a scripted model, its outbox at work."""
    with ScriptedModel(*steps) as model:
        house = House(model, sight=sight, limits=limits)
        house.model = model
        async with asyncio.timeout(5), house.outbox.open():
            yield house


def speak(text: str, **more: object) -> tuple[str, str]:
    return "send_message", json.dumps({"messages": [{"type": "plain", "text": text}], **more}, ensure_ascii=False)


async def test_the_final_words_answer_the_question_with_a_quote() -> None:
    async with living(words("hello")) as house:
        await house.turns.take(said("hi", message_id="7"))
    assert house.transport.sent == [SendMessage(GROUP, (Quote("7"), Text("hello")))]
    system, user = house.model.requests[0].messages
    assert isinstance(system, SystemMessage)
    assert system.text.startswith("be nice")
    assert user == UserMessage("[提问] 消息号 7\n小明(777): hi")


async def test_what_the_tool_says_is_on_the_wire_before_the_next_model_request() -> None:
    async def look(request: ModelRequest) -> Completion:
        assert house.transport.texts == ["wait a moment"]
        return words("the answer")

    async with living(calls(speak("wait a moment")), look) as house:
        await house.turns.take(said("hi"))
    assert house.transport.texts == ["wait a moment", "the answer"]
    result = house.model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert result.content == "消息已发送 (message_id: 9001)"


@pytest.mark.parametrize("final", ["北京今天晴，25 度。", "北京今天晴， 25度", ""])
async def test_what_was_said_by_the_tool_is_not_said_again(final: str) -> None:
    async with living(calls(speak("北京今天晴，25度！")), words(final)) as house:
        await house.turns.take(said("北京天气"))
    assert house.transport.texts == ["北京今天晴，25度！"]
    assert any(isinstance(m, AssistantMessage) and m.tool_calls for m in house.history.messages(GROUP))


async def test_a_refused_message_is_told_to_the_model_and_may_be_said_in_the_end() -> None:
    async with living(calls(speak("hello")), words("hello")) as house:
        house.transport.failures = [ActionRefused("send_group_msg", retcode=1200, wording="禁言中")]
        await house.turns.take(said("hi"))
    result = house.model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert "not delivered: 'muted: the bot is muted here. Do not try again'" in result.content
    assert house.transport.texts == ["hello"]


async def test_a_message_that_may_have_been_delivered_is_never_said_again() -> None:
    async with living(calls(speak("hello")), words("hello")) as house:
        house.transport.failures = [ActionUnanswered("no answer")]
        await house.turns.take(said("hi"))
    result = house.model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert "may have been delivered" in result.content
    assert "Do not repeat it" in result.content
    assert house.transport.texts == []


async def test_a_failed_run_says_one_polite_line_with_its_trace_id_and_nothing_else() -> None:
    async with living(ModelBilling("Insufficient Balance sk-secret")) as house:
        await house.turns.take(said("hi"))
    assert house.transport.texts == ["抱歉，这次没能回答上来，请稍后再试。（编号 t1）"]


async def test_a_bug_is_as_quiet_as_any_other_failure() -> None:
    async def broken(request: ModelRequest) -> Completion:
        raise LookupError("internal detail")

    async with living(broken) as house:
        await house.turns.take(said("hi"))
    assert house.transport.texts == ["抱歉，这次没能回答上来，请稍后再试。（编号 t1）"]


async def test_even_an_owner_does_not_reach_another_account() -> None:
    async with living(calls(speak("psst", session="20002:group:5555")), words("done")) as house:
        await house.turns.take(said("tell them", user=OWNER))
    assert house.transport.texts == ["done"]


@pytest.mark.parametrize("session", ["nonsense", "1:2:3", "10001:channel:5"])
async def test_a_session_that_is_none_is_an_error_for_the_model(session: str) -> None:
    async with living(calls(speak("psst", session=session)), words("done")) as house:
        await house.turns.take(said("hi"))
    result = house.model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert result.content.endswith("[TOOL_INVALID_ARGUMENTS]")


async def test_naming_the_active_session_is_allowed_to_everybody() -> None:
    async with living(calls(speak("here", session=str(GROUP))), words("")) as house:
        await house.turns.take(said("hi"))
    assert house.transport.texts == ["here"]


async def test_the_next_prompt_begins_with_the_same_bytes_and_has_what_was_said() -> None:
    async with living(calls(speak("one")), words("two"), words("three")) as house:
        await house.turns.take(said("first"))
        await house.turns.take(said("second"))
    before, after = house.model.requests[1].messages, house.model.requests[2].messages
    assert after[: len(before)] == before
    assert [m.text for m in after if isinstance(m, AssistantMessage)] == ["", "two"]


async def test_what_was_overheard_stands_before_the_question_once() -> None:
    async with living(words("a"), words("b")) as house:
        house.history.overhear(said("I like tea", user=5, name="小红", at=False))
        await house.turns.take(said("what does she like?", message_id="8"))
        await house.turns.take(said("sure?", message_id="9"))
    user = house.model.requests[0].messages[-1]
    assert user == UserMessage("[群聊记录]\n小红(5): I like tea\n[提问] 消息号 8\n小明(777): what does she like?")
    assert house.model.requests[1].messages[-1] == UserMessage("[提问] 消息号 9\n小明(777): sure?")


async def test_a_turn_cancelled_by_the_end_of_the_process_stays_open_for_the_next_start() -> None:
    asked = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        asked.set()
        await asyncio.Event().wait()
        return words("never")

    async with living(calls(speak("one moment")), think) as house:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(house.turns.take(said("first")))
            await asked.wait()
            task.cancel()
        assert house.store.of("turn_closed") == []
        assert [entry.type for entry in house.store.entries] == [
            "turn_opened", "step_taken", "call_started", "send_queued", "send_changed", "call_finished",
        ]  # fmt: skip


async def test_a_turn_whose_answer_could_not_be_said_before_the_end_stays_open_too() -> None:
    """Else the next start would take the question for answered."""
    async with living(words("the answer")) as house:
        house.transport.failures.append(NotConnected("away"))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(house.turns.take(said("hi")))
            await until(lambda: house.store.of("send_changed"))
            task.cancel()
        assert house.transport.sent == []
        assert house.store.of("turn_closed") == []


async def test_an_answer_that_is_being_said_when_its_question_is_recalled_stays_in_the_history() -> None:
    question = said("hi")
    async with living(words("the answer")) as house:
        house.transport.failures.append(NotConnected("away"))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(house.turns.take(question))
            await until(lambda: house.store.of("send_changed"))
            house.turns.disown(question)
            task.cancel()
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert closed.round[-1] == AssistantMessage("the answer")


async def test_a_disowned_question_leaves_nothing_behind_when_its_turn_is_cancelled() -> None:
    asked = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        asked.set()
        await asyncio.Event().wait()
        return words("never")

    async with living(think, words("yes")) as house:
        first = said("first")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(house.turns.take(first))
            await asked.wait()
            house.turns.disown(first)
            task.cancel()
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert (closed.stop, closed.round) == (Stop.STOPPED, ())
        await house.turns.take(said("second"))
        assert [message.type for message in house.model.requests[-1].messages] == ["system", "user"]


async def test_a_turn_is_committed_before_its_model_request_and_closed_with_its_round() -> None:
    async def think(request: ModelRequest) -> Completion:
        (opened,) = house.store.of("turn_opened")
        assert isinstance(opened, TurnOpened)
        assert opened.user == request.messages[-1]
        assert house.store.durable == len(house.store.entries)
        return words("yes")

    async with living(think) as house:
        question = said("hi")
        await house.turns.take(question)
        closed = house.store.entries[-1]
        assert isinstance(closed, TurnClosed)
        assert closed.round == house.history.messages(GROUP)
        assert (closed.stop, closed.steps, closed.usage.prompt) == (Stop.ANSWERED, 1, 10)


async def test_the_prompt_goes_on_from_what_the_store_remembers() -> None:
    rounds = (Round("t0", (UserMessage("earlier"), AssistantMessage("indeed"))),)
    overheard = (said("I like tea", user=5, name="小红", at=False),)
    async with living(words("tea")) as house:
        house.store.remembered[GROUP] = Remembered(rounds, overheard)
        await house.turns.take(said("what does she like?", message_id="8"))
        _, *rest = house.model.requests[0].messages
        assert rest == [
            UserMessage("earlier"),
            AssistantMessage("indeed"),
            UserMessage("[群聊记录]\n小红(5): I like tea\n[提问] 消息号 8\n小明(777): what does she like?"),
        ]


async def test_a_store_in_trouble_does_not_keep_the_bot_from_answering() -> None:
    async with living(words("hello")) as house:
        house.store.trouble = True
        await house.turns.take(said("hi"))
        assert house.transport.texts == ["hello"]


async def test_a_temporary_session_is_answered_through_its_group() -> None:
    where = type(PRIVATE)(BOT, "private", 777, via_group=4242)
    async with living(calls(speak("one", session=str(where))), words("two")) as house:
        await house.turns.take(said("hi", where=where))
    assert [action.conversation.via_group for action in house.transport.sent] == [4242, 4242]


async def test_a_failure_of_the_transport_never_gets_out_of_a_turn() -> None:
    failures: list[BotError] = [ActionRefused("send_group_msg", retcode=1, wording="no")]
    async with living(words("hello")) as house:
        house.transport.failures = failures
        await house.turns.take(said("hi"))
    assert house.transport.sent == []


async def test_a_question_recalled_while_its_turn_is_written_down_leaves_no_turn_open() -> None:
    class Slow(RecordingStore):
        async def commit(self, *entries: Entry) -> bool:
            self.put(*entries)
            await asyncio.Event().wait()
            return True

    with ScriptedModel() as model:
        house = House(model, store=Slow())
        question = said("hi")
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            task = group.create_task(house.turns.take(question))
            await until(lambda: house.store.of("turn_opened"))
            house.turns.disown(question)
            task.cancel()
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert (closed.stop, closed.round) == (Stop.STOPPED, ())


def test_what_a_waiting_turn_has_spent_is_what_was_written_down_or_can_be_told_from_it() -> None:
    run = SuspendedRun(
        run_id="t1",
        conversation=GROUP,
        asker=Asker(777),
        messages=(),
        message=AssistantMessage(),
        answers=(),
        usage=Usage(30, 12),
        steps=2,
    )
    waiting = WaitingTurn(said("hi"), UserMessage("hi"), run, ("one", ""))
    assert spent_by(waiting) == Spent(2, 42, 2)
    spent = Spent(7, 99.0, 4)
    assert spent_by(dataclasses.replace(waiting, run=replace(run, spent=spent))) == spent
