from __future__ import annotations

import asyncio
import json

import pytest

from bot.delivery import Delivery
from bot.domain.actions import Attachment, MediaKind, SendMessage
from bot.domain.chat import AssistantMessage, Completion, ModelRequest, SystemMessage, ToolMessage, UserMessage
from bot.domain.errors import ActionRefused, ActionUnanswered, BotError, ModelBilling
from bot.domain.ports import ChatModel, Media
from bot.domain.segments import Quote, Text
from bot.engine import Engine
from bot.history import History
from bot.perception import Perception
from bot.toolset import Toolset
from bot.turn import Persona, Turns
from tests.fakes import (
    BOT,
    GROUP,
    PRIVATE,
    CountingIds,
    ManualClock,
    RecordingObserver,
    RecordingTransport,
    ScriptedModel,
    calls,
    said,
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

    def __init__(self, model: ChatModel) -> None:
        self.transport = RecordingTransport()
        self.history = History()
        clock = ManualClock()
        delivery = Delivery(transport=self.transport, history=self.history, clock=clock)
        engine = Engine(
            model=model, toolset=Toolset([send_message], clock=clock), clock=clock, observer=RecordingObserver()
        )
        self.turns = Turns(
            engine=engine,
            delivery=delivery,
            perception=Perception(transport=self.transport, history=self.history),
            history=self.history,
            ids=CountingIds(),
            persona=Persona("be nice", "Frost"),
            owners=frozenset({OWNER}),
            ports={Media: AnyMedia()},
        )


def speak(text: str, **more: object) -> tuple[str, str]:
    return "send_message", json.dumps({"messages": [{"type": "plain", "text": text}], **more}, ensure_ascii=False)


async def test_the_final_words_answer_the_question_with_a_quote() -> None:
    with ScriptedModel(words("hello")) as model:
        house = House(model)
        await house.turns.take(said("hi", message_id="7"))
    assert house.transport.sent == [SendMessage(GROUP, (Quote("7"), Text("hello")))]
    system, user = model.requests[0].messages
    assert isinstance(system, SystemMessage)
    assert system.text.startswith("be nice")
    assert user == UserMessage("[提问] 消息号 7\n小明(777): hi")


async def test_what_the_tool_says_is_on_the_wire_before_the_next_model_request() -> None:
    async def look(request: ModelRequest) -> Completion:
        assert house.transport.texts == ["wait a moment"]
        return words("the answer")

    with ScriptedModel(calls(speak("wait a moment")), look) as model:
        house = House(model)
        await house.turns.take(said("hi"))
    assert house.transport.texts == ["wait a moment", "the answer"]
    result = model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert result.content == "消息已发送 (message_id: 9001)"


@pytest.mark.parametrize("final", ["北京今天晴，25 度。", "北京今天晴， 25度", "", "今天晴"])
async def test_what_was_said_by_the_tool_is_not_said_again(final: str) -> None:
    with ScriptedModel(calls(speak("北京今天晴，25度！")), words(final)) as model:
        house = House(model)
        await house.turns.take(said("北京天气"))
    assert house.transport.texts == ["北京今天晴，25度！"]
    assert any(isinstance(m, AssistantMessage) and m.tool_calls for m in house.history.messages(GROUP))


async def test_a_refused_message_is_told_to_the_model_and_may_be_said_in_the_end() -> None:
    with ScriptedModel(calls(speak("hello")), words("hello")) as model:
        house = House(model)
        house.transport.failures = [ActionRefused("send_group_msg", retcode=1200, wording="禁言中")]
        await house.turns.take(said("hi"))
    result = model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert "QQ said '禁言中'" in result.content
    assert house.transport.texts == ["hello"]


async def test_a_message_that_may_have_been_delivered_is_never_said_again() -> None:
    with ScriptedModel(calls(speak("hello")), words("hello")) as model:
        house = House(model)
        house.transport.failures = [ActionUnanswered("no answer")]
        await house.turns.take(said("hi"))
    result = model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert "may have been delivered" in result.content
    assert "Do not repeat it" in result.content
    assert house.transport.texts == []


async def test_a_failed_run_says_one_polite_line_with_its_trace_id_and_nothing_else() -> None:
    with ScriptedModel(ModelBilling("Insufficient Balance sk-secret")) as model:
        house = House(model)
        await house.turns.take(said("hi"))
    assert house.transport.texts == ["抱歉，这次没能回答上来，请稍后再试。（编号 t1）"]


async def test_a_bug_is_as_quiet_as_any_other_failure() -> None:
    async def broken(request: ModelRequest) -> Completion:
        raise LookupError("internal detail")

    with ScriptedModel(broken) as model:
        house = House(model)
        await house.turns.take(said("hi"))
    assert house.transport.texts == ["抱歉，这次没能回答上来，请稍后再试。（编号 t1）"]


@pytest.mark.parametrize(("user", "reached"), [(777, False), (OWNER, True)])
async def test_only_an_owner_reaches_another_conversation(user: int, reached: bool) -> None:
    elsewhere = f"{BOT}:group:5555"
    with ScriptedModel(calls(speak("psst", session=elsewhere)), words("done")) as model:
        house = House(model)
        await house.turns.take(said("tell them", user=user))
    assert [str(action.conversation) for action in house.transport.sent] == [elsewhere] * reached + [str(GROUP)]
    result = model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert result.content.endswith("[TOOL_DENIED]") is not reached


async def test_even_an_owner_does_not_reach_another_account() -> None:
    with ScriptedModel(calls(speak("psst", session="20002:group:5555")), words("done")) as model:
        house = House(model)
        await house.turns.take(said("tell them", user=OWNER))
    assert house.transport.texts == ["done"]


@pytest.mark.parametrize("session", ["nonsense", "1:2:3", "10001:channel:5"])
async def test_a_session_that_is_none_is_an_error_for_the_model(session: str) -> None:
    with ScriptedModel(calls(speak("psst", session=session)), words("done")) as model:
        house = House(model)
        await house.turns.take(said("hi"))
    result = model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert result.content.endswith("[TOOL_INVALID_ARGUMENTS]")


async def test_naming_the_active_session_is_allowed_to_everybody() -> None:
    with ScriptedModel(calls(speak("here", session=str(GROUP))), words("")) as model:
        house = House(model)
        await house.turns.take(said("hi"))
    assert house.transport.texts == ["here"]


async def test_the_next_prompt_begins_with_the_same_bytes_and_has_what_was_said() -> None:
    with ScriptedModel(calls(speak("one")), words("two"), words("three")) as model:
        house = House(model)
        await house.turns.take(said("first"))
        await house.turns.take(said("second"))
    before, after = model.requests[1].messages, model.requests[2].messages
    assert after[: len(before)] == before
    assert [m.text for m in after if isinstance(m, AssistantMessage)] == ["", "two"]


async def test_what_was_overheard_stands_before_the_question_once() -> None:
    with ScriptedModel(words("a"), words("b")) as model:
        house = House(model)
        house.history.overhear(said("I like tea", user=5, name="小红", at=False))
        await house.turns.take(said("what does she like?", message_id="8"))
        await house.turns.take(said("sure?", message_id="9"))
    user = model.requests[0].messages[-1]
    assert user == UserMessage("[群聊记录]\n小红(5): I like tea\n[提问] 消息号 8\n小明(777): what does she like?")
    assert model.requests[1].messages[-1] == UserMessage("[提问] 消息号 9\n小明(777): sure?")


async def test_a_stopped_turn_keeps_what_was_said_and_a_valid_history() -> None:
    asked = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        asked.set()
        await asyncio.Event().wait()
        return words("never")

    with ScriptedModel(calls(speak("one moment")), think, words("yes")) as model:
        house = House(model)
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            task = group.create_task(house.turns.take(said("first")))
            await asked.wait()
            task.cancel()
        await house.turns.take(said("still there?"))
    kinds = [message.type for message in model.requests[-1].messages]
    assert kinds == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert house.transport.texts == ["one moment", "yes"]


async def test_a_temporary_session_is_answered_through_its_group() -> None:
    where = type(PRIVATE)(BOT, "private", 777, via_group=4242)
    with ScriptedModel(calls(speak("one", session=str(where))), words("two")) as model:
        house = House(model)
        await house.turns.take(said("hi", where=where))
    assert [action.conversation.via_group for action in house.transport.sent] == [4242, 4242]


async def test_a_failure_of_the_transport_never_gets_out_of_a_turn() -> None:
    failures: list[BotError] = [ActionRefused("send_group_msg", retcode=1, wording="no")]
    with ScriptedModel(words("hello")) as model:
        house = House(model)
        house.transport.failures = failures
        await house.turns.take(said("hi"))
    assert house.transport.sent == []
