"""Runs that wait for somebody's word, and go on in another engine from nothing but their text."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bot.core.codec import read, write
from frostagent.engine.engine import Engine, Run, RunState
from frostagent.engine.toolset import Toolset
from frostagent.types.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from frostagent.types.runs import Asker, Outcome, RunPaused, SuspendedRun
from frostagent.types.suspension import Allow, BadSuspension, Decision, Deny, Suspend
from frostagent.types.tools import Tool, ToolContext, tool
from tests.cases import each_case
from tests.fakes import GROUP, ManualClock, RecordingObserver, ScriptedModel, calls, words

QUESTION = (SystemMessage("be nice"), UserMessage("hi"))

TWO_MAILS = calls(("mail", '{"to": "ann"}'), ("echo", '{"text": "a"}'), ("mail", '{"to": "bob"}'))
ONE_MAIL = calls(("mail", '{"to": "ann"}'))


@tool
async def echo(text: str) -> str:
    """Says it again."""
    return f"<{text}>"


@tool
async def fail() -> str:
    """Breaks."""
    raise RuntimeError


class PostOffice:
    """A tool that sends only what somebody allowed, and all that it has sent."""

    def __init__(self, *, seconds: float = 60) -> None:
        self.sent: list[str] = []

        @tool
        async def mail(context: ToolContext, to: str) -> str:
            """Sends a mail, if it may."""
            if not context.allowed:
                raise Suspend(f"Mail {to}?", seconds=seconds)
            self.sent.append(to)
            return f"mailed {to}"

        self.mail = mail


def engine(
    model: ScriptedModel,
    *tools: Tool,
    observer: RecordingObserver | None = None,
    clock: ManualClock | None = None,
    max_steps: int = 4,
) -> Engine:
    clock = clock or ManualClock()
    toolset = Toolset(tools, clock=clock)
    return Engine(
        model=model, toolset=toolset, clock=clock, observer=observer or RecordingObserver(), max_steps=max_steps
    )


def run() -> Run:
    return Run(id="t1", conversation=str(GROUP), asker=Asker("1"), transcript=QUESTION)


def assert_whole(messages: Sequence[Message]) -> None:
    """Each call has exactly one result, in call order, right after the message that made it."""
    expected = [
        (call.id, call.name)
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
    ]
    assert [(m.call_id, m.name) for m in messages if isinstance(m, ToolMessage)] == expected
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            after = messages[index + 1 : index + 1 + len(message.tool_calls)]
            assert all(isinstance(result, ToolMessage) for result in after)


def revive(suspended: SuspendedRun) -> SuspendedRun:
    """What a restart leaves of a run that waits: its text, read again."""
    revived = read(SuspendedRun, write(suspended))
    assert isinstance(revived, SuspendedRun)
    assert revived == suspended
    return revived


async def suspend(running: Awaitable[Outcome | SuspendedRun]) -> SuspendedRun:
    ended = await running
    assert isinstance(ended, SuspendedRun), "the run does not wait"
    return revive(ended)


async def to_the_end(running: Awaitable[Outcome | SuspendedRun]) -> Outcome:
    ended = await running
    assert isinstance(ended, Outcome), "the run waits"
    return ended


def results(messages: tuple[Message, ...]) -> list[str]:
    return [message.content for message in messages if isinstance(message, ToolMessage)]


async def test_a_run_waits_when_a_call_asks_to_be_allowed_and_the_other_calls_are_done() -> None:
    state, observer, office = RunState(), RecordingObserver(), PostOffice()
    with ScriptedModel(TWO_MAILS) as model:
        waiting = await suspend(engine(model, echo, office.mail, observer=observer).run(run(), state))
    assert (office.sent, state.messages) == ([], [])
    assert [pending.asks for pending in waiting.pending] == ["Mail ann?", "Mail bob?"]
    assert waiting.answers[1] == ToolMessage("c1", "echo", "<a>")
    assert (waiting.run_id, waiting.steps, waiting.usage.prompt) == ("t1", 1, 10)
    assert waiting.expires == ManualClock().now() + 60
    assert [event.type for event in observer.events] == [
        "run_started", "step_finished", "tool_started", "tool_started", "tool_started", "tool_finished", "run_paused",
    ]  # fmt: skip
    assert observer.events[-1] == RunPaused(run_id="t1", suspended=waiting, seconds=0)


async def test_after_a_restart_what_was_allowed_is_done_once_and_what_was_denied_is_told() -> None:
    observer, office, state = RecordingObserver(), PostOffice(), RunState()
    waiting = await suspend(engine(ScriptedModel(TWO_MAILS), echo, office.mail).run(run(), RunState()))
    decisions: Mapping[str, Decision] = {"c0": Allow(), "c2": Deny("bob is away")}
    with ScriptedModel(words("done")) as model:
        again = engine(model, echo, office.mail, observer=observer)
        outcome = await to_the_end(again.resume(run(), waiting, decisions, state))
    assert office.sent == ["ann"]
    told = ["mailed ann", "<a>", "error: the tool call was denied: bob is away [TOOL_DENIED]"]
    assert results(outcome.messages) == told
    assert model.requests[0].messages == (*QUESTION, *outcome.messages[:-1])
    assert (outcome.text, outcome.steps, outcome.usage.prompt) == ("done", 2, 20)
    assert tuple(state.messages) == outcome.messages
    assert_whole(outcome.messages)
    assert [event.type for event in observer.events] == [
        "run_continued", "tool_finished", "tool_finished", "step_finished", "run_finished",
    ]  # fmt: skip


async def test_a_call_nobody_decided_on_waits_further_and_is_denied_when_its_time_is_over() -> None:
    office, clock = PostOffice(), ManualClock()
    with ScriptedModel(TWO_MAILS, words("done")) as model:
        both = engine(model, echo, office.mail, clock=clock)
        first = await suspend(both.run(run(), RunState()))
        second = await suspend(both.resume(run(), first, {"c2": Allow()}, RunState()))
        assert (office.sent, len(model.requests)) == (["bob"], 1)
        assert second.pending == first.pending[:1]
        clock.time = second.expires
        outcome = await to_the_end(both.resume(run(), second, {"c0": Allow()}, RunState()))
    assert office.sent == ["bob"]
    late = "error: the tool call was denied: nobody allowed it in time [TOOL_DENIED]"
    assert results(outcome.messages) == [late, "<a>", "mailed bob"]


def tampered(waiting: SuspendedRun) -> SuspendedRun:
    """The mail goes to somebody else, in every place where it says to whom."""
    (call,) = waiting.message.tool_calls
    other, (pending,) = replace(call, arguments='{"to": "eve"}'), waiting.pending
    return replace(
        waiting, message=replace(waiting.message, tool_calls=(other,)), answers=(replace(pending, call=other),)
    )


@each_case(
    ("change", "call_id"),
    [
        (tampered, "c0"),
        (lambda waiting: replace(waiting, run_id="t2"), "c0"),
        (lambda waiting: replace(waiting, asker=Asker("2")), "c0"),
        (lambda waiting: replace(waiting, messages=(ToolMessage("x", "mail", "orphan"),)), "c0"),
        (lambda waiting: waiting, "c7"),
    ],
)
async def test_a_changed_state_is_refused_and_nothing_is_done_or_told(
    change: Callable[[SuspendedRun], SuspendedRun], call_id: str
) -> None:
    office, observer, state = PostOffice(), RecordingObserver(), RunState()
    waiting = await suspend(engine(ScriptedModel(ONE_MAIL), office.mail).run(run(), RunState()))
    again = engine(ScriptedModel(), office.mail, observer=observer)
    with pytest.raises(BadSuspension):
        await again.resume(run(), change(waiting), {call_id: Allow()}, state)
    assert (office.sent, observer.events, state) == ([], [], RunState())


async def test_a_tool_that_is_gone_or_has_changed_when_the_run_goes_on_is_an_error_result() -> None:
    @tool
    async def mail(to: int) -> str:
        """Another one of that name."""
        return "never"

    waiting = await suspend(engine(ScriptedModel(ONE_MAIL), PostOffice().mail).run(run(), RunState()))
    offered: list[tuple[Tool, str]] = [(echo, "TOOL_NOT_FOUND"), (mail, "TOOL_INVALID_ARGUMENTS")]
    for each, code in offered:
        with ScriptedModel(words("sorry")) as model:
            outcome = await to_the_end(engine(model, each).resume(run(), waiting, {"c0": Allow()}, RunState()))
        assert results(outcome.messages)[0].endswith(f"[{code}]")


async def test_a_run_that_waited_at_the_step_limit_has_its_last_request_when_it_goes_on() -> None:
    office = PostOffice()
    with ScriptedModel(ONE_MAIL, words("sent")) as model:
        once = engine(model, office.mail, max_steps=1)
        waiting = await suspend(once.run(run(), RunState()))
        outcome = await to_the_end(once.resume(run(), waiting, {"c0": Allow()}, RunState()))
    assert model.requests[-1].tools == ()
    assert (outcome.text, outcome.limit, office.sent) == ("sent", True, ["ann"])


async def test_a_run_can_wait_in_each_of_its_steps() -> None:
    office = PostOffice()
    with ScriptedModel(ONE_MAIL, ONE_MAIL, words("sent twice")) as model:
        once = engine(model, office.mail)
        first = await suspend(once.run(run(), RunState()))
        second = await suspend(once.resume(run(), first, {"c0": Allow()}, RunState()))
        assert results(second.messages) == ["mailed ann"]
        outcome = await to_the_end(once.resume(run(), second, {"c0": Allow()}, RunState()))
    assert office.sent == ["ann", "ann"]
    assert_whole(outcome.messages)


@each_case("resumed", [False, True])
async def test_a_run_cancelled_while_calls_wait_and_others_run_answers_them_all(resumed: bool) -> None:
    started, office = asyncio.Event(), PostOffice()

    @tool
    async def dig(context: ToolContext) -> str:
        """For ever, once it may."""
        if resumed and not context.allowed:
            raise Suspend("Dig?", seconds=60)
        started.set()
        await asyncio.Event().wait()
        return "never"

    state, observer = RunState(), RecordingObserver()
    asked = calls(("mail", '{"to": "ann"}'), ("dig", ""), ("echo", '{"text": "a"}'))
    model = ScriptedModel(asked)
    running = engine(model, echo, office.mail, dig, observer=observer)
    segment = running.run(run(), state)
    if resumed:
        segment = running.resume(run(), await suspend(segment), {"c1": Allow()}, state)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        task = group.create_task(segment)
        await started.wait()
        task.cancel()
    assert_whole(state.messages)
    waited, dug, echoed = results(tuple(state.messages))
    assert ("it was not done" in waited, "was cancelled" in dug, echoed) == (True, True, "<a>")
    assert len(observer.of("tool_started")) == len(observer.of("tool_finished")) == 3
    assert len(observer.of("run_paused")) == resumed
    assert observer.events[-1].type == "run_finished"


ANY_CALL = st.sampled_from(
    [("echo", '{"text": "x"}'), ("fail", ""), ("mail", '{"to": "ann"}'), ("mail", "{"), ("x", "")]
)
DECISIONS: st.SearchStrategy[Decision | None] = st.sampled_from([Allow(), Deny("no"), None])


@given(st.lists(st.lists(ANY_CALL, min_size=1, max_size=5), max_size=3), st.data())
def test_whatever_waits_and_is_decided_each_call_has_one_result_in_call_order(
    steps: list[list[tuple[str, str]]], data: st.DataObject
) -> None:
    observer, office, allowed = RecordingObserver(), PostOffice(), 0

    async def scenario() -> Outcome:
        nonlocal allowed
        model, clock = ScriptedModel(*(calls(*asked) for asked in steps), words("done")), ManualClock()
        running = engine(model, echo, fail, office.mail, observer=observer, clock=clock)
        state = RunState()
        ended = await running.run(run(), state)
        while isinstance(ended, SuspendedRun):
            assert_whole(state.messages)
            waiting, state = revive(ended), RunState()
            drawn = {pending.call.id: data.draw(DECISIONS) for pending in waiting.pending}
            decided = {call_id: decision for call_id, decision in drawn.items() if decision is not None}
            clock.time += 0 if decided else 60
            allowed += sum(isinstance(decision, Allow) for decision in decided.values())
            ended = await running.resume(run(), waiting, decided, state)
        return ended

    outcome = asyncio.run(scenario())
    assert outcome.text == "done"
    assert_whole(outcome.messages)
    made = [
        call for message in outcome.messages if isinstance(message, AssistantMessage) for call in message.tool_calls
    ]
    assert [(call.name, call.arguments) for call in made] == [call for asked in steps for call in asked]
    assert len(office.sent) == allowed
    assert len(observer.of("tool_started")) == len(observer.of("tool_finished")) == len(made)
    assert len(observer.of("run_paused")) == len(observer.of("run_continued"))
    assert len(observer.of("run_started")) == len(observer.of("run_finished")) == 1
