from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any, Protocol

import pytest
from msgspec.structs import replace

from frostagent.callbacks import (
    HookSpeaker,
    PlainMedia,
    Subscribers,
    payload_of,
    speaking,
    told_results,
)
from frostagent.engine.tool_execution import run_body
from frostagent.engine.toolset import FunctionApprover, as_approver, told_events
from frostagent.types.errors import MediaError, ToolUnavailable
from frostagent.types.messages import ToolCall, ToolMessage
from frostagent.types.ports import Speaker
from frostagent.types.runs import Asker, RunEvent, RunStarted, ToolFinished
from frostagent.types.speech import Attachment, Confirmed, Face, Mention, MentionAll, Quote, SendSegment, Text
from frostagent.types.suspension import Allow, ApprovalRequest, Deny
from frostagent.types.tools import ToolContext, tool
from tests.cases import each_case
from tests.fakes import GROUP, RecordingObserver, tool_context, until
from tests.frostagent.toolbox import Stubborn, cancelled

STARTED = RunStarted(run_id="t1", conversation=str(GROUP), asker=Asker("1"))
FINISHED = ToolFinished(
    run_id="t1",
    step=1,
    call=ToolCall("c", "look", "{}"),
    result=ToolMessage("c", "look", "seen"),
    code="ok",
    seconds=0.1,
)
REQUEST = ApprovalRequest(
    run_id="t1",
    step=1,
    call_id="c",
    name="look",
    arguments={"a": 1},
    asks="look?",
    conversation=str(GROUP),
    asker=Asker("1"),
    context=tool_context(),
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


def test_results_are_told_by_name_and_output_and_who_breaks_on_them_breaks_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log: list[tuple[str, str]] = []
    told_results(lambda name, output: log.append((name, output)))(FINISHED.call, "seen")

    def broken(_name: str, _output: str) -> None:
        raise LookupError

    told_results(broken)(FINISHED.call, "seen")
    assert log == [("look", "seen")]
    assert "on_tool_result broke on look" in caplog.text


def test_who_looks_on_is_a_function_or_has_a_notice() -> None:
    observer, log = RecordingObserver(), list[RunEvent]()
    for given in (observer, log.append):
        told_events(given)(STARTED)
    assert log == observer.events == [STARTED]
    wrong: Any = 3
    for refuse in (told_events, told_results, Subscribers().add):
        with pytest.raises(TypeError, match="whoever looks on is a function, or an object with notice, not int"):
            refuse(wrong)


# --- approval -----------------------------------------------------------------------------------------


@each_case(("answer", "decision"), [(True, Allow()), (False, Deny("the approval handler said no"))])
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


async def test_a_handler_that_catches_its_cancellation_is_left_as_it_stands(caplog: pytest.LogCaptureFixture) -> None:
    assert (await cancelled(lambda: FunctionApprover(Stubborn().__call__).approve(REQUEST))).cancelled()
    assert "the approval handler does not end when it is cancelled" in caplog.text


async def test_only_true_allows() -> None:
    def vague(_name: str, _arguments: Mapping[str, Any]) -> Any:
        return "no"

    assert isinstance(await FunctionApprover(vague).approve(REQUEST), Deny)


async def test_a_handler_of_three_gets_the_calls_context_one_of_two_does_not() -> None:
    asked: list[tuple[object, ...]] = []

    def three(context: ToolContext, name: str, arguments: Mapping[str, Any]) -> bool:
        asked.append((context, name, arguments))
        return True

    def two(name: str, arguments: Mapping[str, Any], again: bool = False) -> bool:
        asked.append((name, arguments, again))
        return True

    def any_number(*given: Any) -> bool:
        asked.append(given)
        return True

    def preset(context: Any = None, name: str = "", arguments: Any = None) -> bool:
        asked.append((context, name, arguments))
        return True

    for handler in (three, two, any_number, preset):
        assert await FunctionApprover(handler).approve(REQUEST) == Allow()
    whole = (REQUEST.context, "look", {"a": 1})
    assert asked == [whole, ("look", {"a": 1}, False), whole, whole]


def test_what_cannot_be_asked_is_refused_at_once() -> None:
    def one(_name: str) -> bool:
        return True

    def four(_a: Any, _b: Any, _c: Any, _d: Any) -> bool:
        return True

    def named(_name: str, _arguments: Any, *, by: str) -> bool:
        return bool(by)

    wrong: Any
    for wrong in (one, four, named):
        with pytest.raises(TypeError, match=f"{wrong.__name__} is to take a call's context, its name and arguments"):
            FunctionApprover(wrong)
    wrong = "yes"
    with pytest.raises(TypeError, match="an approver is an object with approve, or a function, not str"):
        as_approver(wrong)


async def test_an_approver_is_an_object_or_a_function() -> None:
    class Yes:
        async def approve(self, request: ApprovalRequest) -> Allow:
            return Allow()

    yes = Yes()
    assert as_approver(yes) is yes
    assert as_approver(None) is None
    made = as_approver(lambda _name, _arguments: True)
    assert made is not None
    assert await made.approve(REQUEST) == Allow()


async def test_a_plain_handler_is_asked_about_one_call_after_the_other() -> None:
    inside, most, release = 0, 0, threading.Event()
    entered = threading.Semaphore(0)

    def ask(_name: str, _arguments: Mapping[str, Any]) -> bool:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        entered.release()
        release.wait(5)
        inside -= 1
        return True

    approver = FunctionApprover(ask)
    async with asyncio.TaskGroup() as tasks:
        asking = [tasks.create_task(approver.approve(REQUEST)) for _ in range(3)]
        await until(lambda: entered.acquire(blocking=False))
        release.set()
    assert [task.result() for task in asking] == [Allow()] * 3
    assert most == 1


class Turn:
    """A lock that counts who came to it and who is done."""

    def __init__(self) -> None:
        self.came = self.left = 0
        self._lock, self._count = threading.Lock(), threading.Lock()

    def __enter__(self) -> None:
        with self._count:
            self.came += 1
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        with self._count:
            self.left += 1


async def test_nobody_is_asked_about_a_call_that_has_been_given_up() -> None:
    asked: list[str] = []
    release, waiting = threading.Event(), Turn()

    def ask(name: str, _arguments: Mapping[str, Any]) -> bool:
        asked.append(name)
        release.wait(5)
        return True

    approver = FunctionApprover(ask)
    approver._turn = waiting  # type: ignore[assignment]  # a lock that says how many came to it
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(approver.approve(replace(REQUEST, name="first")))
        await until(lambda: asked == ["first"])
        second = tasks.create_task(approver.approve(replace(REQUEST, name="second")))
        await until(lambda: waiting.came == 2)
        first.cancel()
        second.cancel()
        await until(lambda: first.done() and second.done())
        last = tasks.create_task(approver.approve(replace(REQUEST, name="last")))
        await until(lambda: waiting.came == 3)
        assert asked == ["first"]
        release.set()
    assert last.result() == Allow()
    await until(lambda: waiting.left == 3)
    assert asked == ["first", "last"]


# --- what is said -------------------------------------------------------------------------------------


@each_case(
    ("segment", "part"),
    [
        (Text("hi"), {"type": "plain", "text": "hi"}),
        (Mention("777"), {"type": "mention_user", "mention_user_id": "777"}),
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


@each_case("is_async", [True, False])
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


@each_case(
    ("names", "result"),
    [
        ([], "greeted"),
        (["Ann"], {"messages": [{"type": "plain", "text": "Ann"}]}),
        (["Ann", "Bob"], [{"messages": [{"type": "plain", "text": name}]} for name in ("Ann", "Bob")]),
    ],
)
async def test_the_result_of_a_tool_that_nobody_hears_is_what_it_says(names: list[str], result: object) -> None:
    context = tool_context({Speaker: HookSpeaker(None, asyncio.Lock())})
    assert await run_body(speaking(greet), context, {"names": names}) == result


async def test_a_tool_that_is_heard_stays_what_it_is() -> None:
    heard: list[Any] = []
    context = tool_context({Speaker: HookSpeaker(heard.append, asyncio.Lock())})
    assert await run_body(speaking(speaking(greet)), context, {"names": ["Ann"]}) == "greeted"
    assert len(heard) == 1


class Loudspeaker:
    """A `Speaker` of somebody's own."""

    def __init__(self) -> None:
        self.said: list[str] = []

    async def say(self, segments: tuple[SendSegment, ...], *, session: str = "") -> tuple[Confirmed, ...]:
        self.said += [segment.text for segment in segments if isinstance(segment, Text)]
        return (Confirmed(""),)


async def test_a_speaker_of_ones_own_says_it() -> None:
    own = Loudspeaker()
    assert await run_body(speaking(greet), tool_context({Speaker: own}), {"names": ["Ann"]}) == "greeted"
    assert own.said == ["Ann"]


class Other(Protocol):
    """Another port."""


def test_a_tool_that_does_not_speak_is_left_alone() -> None:
    @tool(needs=(Other,))
    async def look() -> None:
        """Looks."""

    assert speaking(look) is look
