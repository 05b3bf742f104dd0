from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any, Protocol

import pytest

from bot.callbacks import (
    FunctionApprover,
    HookSpeaker,
    PlainMedia,
    Subscribers,
    payload_of,
    speaking,
    told_results,
)
from bot.domain.actions import Attachment, Confirmed, SendSegment
from bot.domain.chat import ToolCall, ToolMessage
from bot.domain.errors import MediaError, ToolUnavailable
from bot.domain.ports import Speaker
from bot.domain.run import Asker, RunEvent, RunStarted, ToolFinished
from bot.domain.segments import Face, Mention, MentionAll, Quote, Text
from bot.domain.suspension import Allow, ApprovalRequest, Deny
from bot.domain.tool import ToolContext, tool
from tests.fakes import GROUP, tool_context

STARTED = RunStarted(run_id="t1", conversation=GROUP, asker=Asker(1))
FINISHED = ToolFinished(
    run_id="t1",
    step=1,
    call=ToolCall("c", "look", "{}"),
    result=ToolMessage("c", "look", "seen"),
    code="ok",
    seconds=0.1,
)
REQUEST = ApprovalRequest(
    run_id="t1", step=1, call_id="c", name="look", arguments={"a": 1}, asks="look?", conversation=GROUP, asker=Asker(1)
)


# --- subscribers --------------------------------------------------------------------------------------


def test_every_subscriber_is_told_in_order_until_it_leaves() -> None:
    subscribers, log = Subscribers(), list[tuple[str, RunEvent]]()
    leave = subscribers.add(lambda event: log.append(("a", event)))
    subscribers.add(lambda event: log.append(("b", event)))
    subscribers.notice(STARTED)
    leave()
    leave()
    subscribers.notice(FINISHED)
    assert log == [("a", STARTED), ("b", STARTED), ("b", FINISHED)]


def test_who_would_have_to_be_awaited_is_refused_at_once() -> None:
    async def look_on(*_: object) -> None: ...

    watcher: Any = look_on
    with pytest.raises(TypeError, match="look_on is told while the run goes on: make it a plain def"):
        Subscribers().add(watcher)
    with pytest.raises(TypeError, match="look_on"):
        told_results(watcher)


def test_one_that_breaks_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    subscribers, log = Subscribers(), list[RunEvent]()

    def broken(_event: RunEvent) -> None:
        raise LookupError

    subscribers.add(broken)
    subscribers.add(log.append)
    subscribers.notice(STARTED)
    assert log == [STARTED]
    assert "a subscriber broke on run_started" in caplog.text


def test_one_function_may_subscribe_twice_and_leave_once() -> None:
    subscribers, log = Subscribers(), list[RunEvent]()
    leave = subscribers.add(log.append)
    subscribers.add(log.append)
    leave()
    subscribers.notice(STARTED)
    assert log == [STARTED]


def test_results_are_told_by_name_and_output() -> None:
    log: list[tuple[str, str]] = []
    tell = told_results(lambda name, output: log.append((name, output)))
    tell(STARTED)
    tell(FINISHED)
    assert log == [("look", "seen")]


# --- approval -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "decision"), [(True, Allow()), (False, Deny("the approval handler said no"))])
async def test_a_function_allows_or_denies(answer: bool, decision: Allow | Deny) -> None:
    asked: list[tuple[str, Mapping[str, Any]]] = []

    def plain(name: str, arguments: Mapping[str, Any]) -> bool:
        asked.append((name, arguments))
        assert threading.current_thread() is not threading.main_thread()
        return answer

    async def waiting(name: str, arguments: Mapping[str, Any]) -> bool:
        asked.append((name, arguments))
        return answer

    class Asking:
        async def __call__(self, name: str, arguments: Mapping[str, Any]) -> bool:
            return await waiting(name, arguments)

    assert await FunctionApprover(plain).approve(REQUEST) == decision
    assert await FunctionApprover(waiting).approve(REQUEST) == decision
    assert await FunctionApprover(Asking()).approve(REQUEST) == decision
    assert asked == [("look", {"a": 1})] * 3


async def test_only_true_allows() -> None:
    def vague(_name: str, _arguments: Mapping[str, Any]) -> Any:
        return "no"

    assert isinstance(await FunctionApprover(vague).approve(REQUEST), Deny)


# --- what is said -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("segment", "part"),
    [
        (Text("hi"), {"type": "plain", "text": "hi"}),
        (Mention(777), {"type": "mention_user", "mention_user_id": "777"}),
        (MentionAll(), {"type": "mention_user", "mention_user_id": "all"}),
        (Quote("-5"), {"type": "quote", "message_id": "-5"}),
        (Face("14"), {"type": "face", "id": "14"}),
        (Attachment("image", "cat.png"), {"type": "image", "path": "cat.png"}),
        (Attachment("file", "https://example.com/a"), {"type": "file", "url": "https://example.com/a"}),
    ],
)
def test_segments_are_told_in_the_words_of_send_message(segment: SendSegment, part: dict[str, str]) -> None:
    assert payload_of((segment,)) == {"messages": [part]}
    assert payload_of((segment,), "1:group:2") == {"messages": [part], "session": "1:group:2"}


async def test_a_path_and_a_url_are_taken_at_their_word() -> None:
    media = PlainMedia()
    assert await media.attach("image", path="cat.png", url="https://example.com/a") == Attachment("image", "cat.png")
    assert await media.attach("image", url="https://example.com/a") == Attachment("image", "https://example.com/a")
    with pytest.raises(MediaError, match="image needs a path or a url"):
        await media.attach("image", path=" ")


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_hook_hears_what_is_said_before_it_counts_as_said(is_async: bool) -> None:
    heard: list[Any] = []

    async def wait(payload: Any) -> None:
        await asyncio.sleep(0)
        heard.append(payload)

    speaker = HookSpeaker(wait if is_async else heard.append, asyncio.Lock())
    assert await speaker.say((Text("hi"),)) == (Confirmed(""),)
    assert heard == speaker.said == [{"messages": [{"type": "plain", "text": "hi"}]}]


async def test_what_a_hook_refuses_is_not_said() -> None:
    def broken(_payload: Any) -> None:
        raise LookupError

    speaker = HookSpeaker(broken, asyncio.Lock())
    with pytest.raises(LookupError):
        await speaker.say((Text("hi"),))
    assert speaker.said == []


async def test_without_a_hook_nobody_hears() -> None:
    with pytest.raises(ToolUnavailable, match="nobody hears"):
        await HookSpeaker(None, asyncio.Lock()).say((Text("hi"),))


@tool(needs=(Speaker,))
async def greet(context: ToolContext, names: list[str]) -> str:
    """Greets."""
    for name in names:
        await context.port(Speaker).say((Text(name),))
    return "greeted"


@pytest.mark.parametrize(
    ("names", "result"),
    [
        ([], "greeted"),
        (["Ann"], {"messages": [{"type": "plain", "text": "Ann"}]}),
        (["Ann", "Bob"], [{"messages": [{"type": "plain", "text": name}]} for name in ("Ann", "Bob")]),
    ],
)
async def test_the_result_of_a_tool_that_nobody_hears_is_what_it_says(names: list[str], result: object) -> None:
    context = tool_context({Speaker: HookSpeaker(None, asyncio.Lock())})
    assert await speaking(greet).run(context, {"names": names}) == result


async def test_a_tool_that_is_heard_stays_what_it_is() -> None:
    heard: list[Any] = []
    context = tool_context({Speaker: HookSpeaker(heard.append, asyncio.Lock())})
    assert await speaking(speaking(greet)).run(context, {"names": ["Ann"]}) == "greeted"
    assert len(heard) == 1


class Other(Protocol):
    """Another port."""


def test_a_tool_that_does_not_speak_is_left_alone() -> None:
    @tool(needs=(Other,))
    async def look() -> None:
        """Looks."""

    assert speaking(look) is look
