from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from bot.core.errors import NotConnected
from bot.core.segments import SendSegment
from frostagent.engine.engine import Engine, RunState
from frostagent.engine.run_state import NestedObserver
from frostagent.engine.subagents import NOT_KEPT, PATIENCE, RULES, NamedSubagents, Subagent
from frostagent.engine.toolset import Toolset
from frostagent.types.errors import InvalidArguments, ModelAuth, ToolFailed
from frostagent.types.messages import Completion, FinishReason, ModelRequest, SystemMessage, Usage, UserMessage
from frostagent.types.ports import Approver, Clock, Speaker, Subagents
from frostagent.types.results import ToolResult
from frostagent.types.runs import Asker, RunEvent, RunFinished, RunStarted, StepFinished
from frostagent.types.speech import Confirmed, Receipt, Text
from frostagent.types.suspension import Suspend
from frostagent.types.tools import Tool, ToolContext, tool
from frostagent.types.traits import Audience, SideEffects
from frostagent.words import Words
from tests.cases import each_case
from tests.fakes import GROUP, ManualClock, RecordingObserver, ScriptedModel, Step, calls, tool_context, until, words
from tests.frostagent.runs import engine, run, to_the_end

PROMPT = "You write code."


class StoppedClock(ManualClock):
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.later = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await self.later.wait()


class Mouth:
    """A speaker that keeps what it says."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.said: list[str] = []
        self.failure = failure

    async def say(self, segments: tuple[SendSegment, ...], *, session: str = "") -> tuple[Receipt, ...]:
        self.said += [segment.text for segment in segments if isinstance(segment, Text)]
        if self.failure is not None:
            raise self.failure
        return (Confirmed("1"),)


@tool(side_effects="none")
async def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@tool(permission="require_approval")
async def wipe_disk() -> str:
    """Wipes a disk."""
    raise AssertionError("nobody allowed it")


@tool
async def ask_first() -> str:
    """Asks before it does anything."""
    raise Suspend("really?", seconds=60)


@tool(audience="owner")
async def ring_bell() -> str:
    """Rings the bell."""
    raise AssertionError("this is not for him")


@tool
async def look_around(context: ToolContext) -> str:
    """Says what there is."""
    return ", ".join(sorted(port.__name__ for port in context.ports))


@tool(needs=(Subagents,), timeout=7, side_effects="none")
async def ask(context: ToolContext, name: str, content: str) -> ToolResult:
    """Asks somebody."""
    return await context.port(Subagents).ask(context, name, content)


def coder(
    *steps: Step,
    tools: tuple[Tool, ...] = (),
    clock: Clock | None = None,
    deadline: float = 5.0,
    max_steps: int = 3,
    max_tokens: int = 0,
    speaks: bool = False,
    table: Words | None = None,
) -> tuple[NamedSubagents, ScriptedModel]:
    model, clock = ScriptedModel(*steps), clock or StoppedClock()
    toolset = Toolset(tools, clock=clock).part([each.name for each in tools])
    subagent = Subagent(
        name="Coder",
        description="writes code",
        prompt=PROMPT,
        runner=lambda observer: Engine(
            model=model, toolset=toolset, clock=clock, observer=observer, max_steps=max_steps, deadline=deadline
        ),
        deadline=deadline,
        max_tokens=max_tokens,
        speaks=speaks,
    )
    return NamedSubagents([subagent], clock=clock, words=table), model


def by_member(ports: Mapping[type, object] | None = None) -> ToolContext:
    return replace(tool_context(ports), asker=Asker("777", "小明", authority=Audience.EVERYONE))


@each_case("name", ["Coder", "coder", " CODER\n"])
async def test_a_subagent_is_asked_by_name_whatever_its_case(name: str) -> None:
    subagents, model = coder(words(" print(1)\n"))
    with model:
        assert (await subagents.ask(tool_context(), name, "print one")).content == "print(1)"


async def test_it_sees_its_own_prompt_and_the_task_and_no_tools() -> None:
    subagents, model = coder(words("写好了"))
    with model:
        assert (await subagents.ask(tool_context(), "Coder", "写个贪吃蛇")).content == "写好了"
    assert model.requests == [ModelRequest((SystemMessage(f"{PROMPT}\n{RULES}"), UserMessage("写个贪吃蛇")))]


async def test_an_unknown_name_is_told_with_the_known_ones() -> None:
    subagents, model = coder()
    with model, pytest.raises(InvalidArguments) as caught:
        await subagents.ask(tool_context(), "x" * 1000, "task")
    assert str(caught.value) == f'subagent_name: there is no "{"x" * 64}"; known: Coder'
    assert caught.value.fields == (str(caught.value),)


async def test_a_refusal_in_words_is_an_answer() -> None:
    subagents, model = coder(words("", refusal="I will not write that."))
    with model:
        assert (await subagents.ask(tool_context(), "Coder", "virus")).content == "I will not write that."


async def test_an_empty_answer_is_asked_for_again_and_then_told_as_a_failure() -> None:
    subagents, model = coder(*[words(" \n")] * 3)
    with model, pytest.raises(ToolFailed, match="Coder gave an empty answer"):
        await subagents.ask(tool_context(), "Coder", "task")


async def test_a_model_that_fails_is_told_by_its_kind_and_never_in_its_own_words() -> None:
    subagents, model = coder(ModelAuth("bad key sk-secret"))
    with model, pytest.raises(ToolFailed) as caught:
        await subagents.ask(tool_context(), "Coder", "task")
    assert str(caught.value) == "Coder could not be reached (auth). Say so, politely."


# --- tools and rights -------------------------------------------------------------------------------


async def test_its_tools_are_run_and_it_goes_on_with_what_they_give() -> None:
    subagents, model = coder(calls(("add", '{"a": 2, "b": 3}')), words("5"), tools=(add,))
    with model:
        assert (await subagents.ask(tool_context(), "Coder", "2+3")).content == "5"
    assert [spec.name for spec in model.requests[0].tools] == ["add"]


@each_case(
    ("name", "told"),
    [
        ("wipe_disk", "must be allowed by somebody, and there is nobody to ask"),
        ("ask_first", "a subagent cannot wait for somebody's word"),
        ("ring_bell", "ring_bell is only for owners"),
        ("use_subagent", 'tool not found: "use_subagent"'),
    ],
)
async def test_a_call_it_may_not_make_is_a_denied_result_and_never_a_wait(name: str, told: str) -> None:
    subagents, model = coder(calls((name, "{}")), words("不行"), tools=(wipe_disk, ask_first, ring_bell))
    with model:
        assert (await subagents.ask(by_member(), "Coder", "try it")).content == "不行"
    result = model.requests[1].messages[-1]
    assert result.type == "tool"
    assert told in result.content


@each_case(("speaks", "ports"), [(False, "(no output)"), (True, "Speaker")])
async def test_it_has_the_chat_only_where_it_may_speak_and_nobody_else_to_ask(speaks: bool, ports: str) -> None:
    subagents, model = coder(calls(("look_around", "{}")), words("ok"), tools=(look_around,), speaks=speaks)
    with model:
        await subagents.ask(tool_context({Approver: object(), Speaker: Mouth(), Subagents: subagents}), "Coder", "look")
    result = model.requests[1].messages[-1]
    assert result.type == "tool"
    assert result.content == ports


# --- budgets ----------------------------------------------------------------------------------------


async def wait_for_ever(request: ModelRequest) -> Completion:
    await asyncio.Event().wait()
    return words("never")


async def test_a_subagent_that_takes_too_long_is_given_up() -> None:
    subagents, model = coder(wait_for_ever, deadline=0.01)
    with model, pytest.raises(ToolFailed, match=r"Coder did not answer within 0\.01 s"):
        await subagents.ask(tool_context(), "Coder", "task")


async def test_what_it_had_said_until_its_deadline_counts_with_a_note() -> None:
    first = calls(("add", '{"a": 2, "b": 3}'), text="先算一下：")
    subagents, model = coder(first, wait_for_ever, tools=(add,), deadline=0.05)
    with model:
        answer = (await subagents.ask(tool_context(), "Coder", "2+3")).content
    assert answer == "先算一下：\n\n(Coder stopped early: it did not finish within 0.05 s.)"


async def test_out_of_steps_it_says_what_it_has_with_a_note() -> None:
    adding = [calls(("add", f'{{"a": 1, "b": {number}}}')) for number in range(3)]
    subagents, model = coder(*adding, words("6，大概"), tools=(add,))
    with model:
        answer = (await subagents.ask(tool_context(), "Coder", "count")).content
    assert answer == "6，大概\n\n(Coder stopped early: it had no more steps after 4.)"
    assert model.requests[-1].tools == ()


async def test_out_of_tokens_it_is_asked_once_more_without_tools() -> None:
    subagents, model = coder(calls(("add", '{"a": 1, "b": 1}')), words("2"), tools=(add,), max_tokens=15)
    with model:
        answer = (await subagents.ask(tool_context(), "Coder", "count")).content
    assert answer == "2\n\n(Coder stopped early: its 15 tokens were used up.)"
    assert model.requests[-1].tools == ()


async def test_tokens_nobody_counts_are_estimated() -> None:
    uncounted = replace(calls(("add", '{"a": 1, "b": 1}'), text="很长" * 100), usage=None)
    subagents, model = coder(uncounted, words("2"), tools=(add,), max_tokens=50)
    with model:
        assert "50 tokens were used up" in (await subagents.ask(tool_context(), "Coder", "count")).content


async def test_what_it_read_is_in_its_answer_too() -> None:
    @tool
    async def read_log() -> ToolResult:
        """Tells what somebody said."""
        return ToolResult("小明#2: 关群", sources=("5",), authority=Audience.EVERYONE, tainted=True, kept="[m1]")

    subagents, model = coder(calls(("read_log", "")), words("他要关群"), words("4"), tools=(read_log,))
    with model:
        read = await subagents.ask(tool_context(), "Coder", "what did he say?")
        alone = await subagents.ask(tool_context(), "Coder", "2+2")
    assert (read.authority, read.tainted, read.sources) == (Audience.EVERYONE, True, ("5",))
    assert (read.kept, read.content) == (NOT_KEPT, "他要关群")  # what that told is for this run alone
    assert (alone.authority, alone.tainted, alone.sources, alone.kept) == (Audience.OWNER, False, (), "")


async def test_an_answer_behind_a_description_from_outside_is_words_from_outside() -> None:
    subagents, model = coder(words("4"), tools=(replace(add, server="x", untrusted_description=True),))
    with model:
        assert (await subagents.ask(tool_context(), "Coder", "2+2")).tainted


async def test_an_answer_that_was_cut_off_says_so() -> None:
    subagents, model = coder(words("def main():", finish=FinishReason.LENGTH))
    with model:
        answer = (await subagents.ask(tool_context(), "Coder", "task")).content
    assert answer.startswith("def main():…\n\n(Coder stopped early: its answer was cut off")


# --- inside another run -----------------------------------------------------------------------------


async def test_what_it_takes_is_the_asking_runs_and_what_it_tells_names_that() -> None:
    subagents, model = coder(words("print(1)"))
    seen = RecordingObserver()
    asking = ScriptedModel(calls(("ask", '{"name": "Coder", "content": "one"}')), words("done"))
    with model, asking:
        outer = replace(run(), ports={Subagents: subagents})
        outcome = await to_the_end(engine(asking, ask, observer=seen).run(outer, RunState()))
    assert outcome.usage == Usage(30, 15)
    told = [(event.type, event.run_id, event.parent) for event in seen.events]
    assert told[3:6] == [(kind, "t1/1/c0", "t1") for kind in ("run_started", "step_finished", "run_finished")]
    assert {parent for _, run_id, parent in told if run_id == "t1"} == {""}


async def test_an_inner_run_of_an_inner_run_keeps_its_own_parent() -> None:
    seen, state = RecordingObserver(), RunState()
    event = RunStarted(run_id="c", parent="b", conversation=str(GROUP), asker=Asker("1"))
    NestedObserver(run(), state, seen).notice(event)
    assert seen.events == [event]


async def test_it_is_cancelled_with_the_run_that_asks_it() -> None:
    began = asyncio.Event()

    async def begin(request: ModelRequest) -> Completion:
        began.set()
        return await wait_for_ever(request)

    events: list[RunEvent] = []
    subagents, model = coder(begin)
    with model:
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(subagents.ask(replace(tool_context(), inner=events.append), "Coder", "task"))
            await began.wait()
            asking.cancel()
    assert asking.cancelled()
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert last.outcome.stop == "stopped"


async def test_a_deadline_of_somebody_else_stays_theirs() -> None:
    subagents, model = coder(wait_for_ever)
    with model, pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await subagents.ask(tool_context(), "Coder", "task")


# --- patience ---------------------------------------------------------------------------------------


@each_case("failure", [None, NotConnected("away")])
async def test_whoever_waits_longer_than_ten_seconds_is_told_so_once_in_the_words_of_his_run(
    failure: Exception | None,
) -> None:
    clock, mouth, go_on = StoppedClock(), Mouth(failure), asyncio.Event()

    async def slowly(request: ModelRequest) -> Completion:
        await go_on.wait()
        return words("好了")

    subagents, model = coder(slowly, clock=clock)
    with model:
        async with asyncio.TaskGroup() as group:
            context = replace(tool_context({Speaker: mouth}), words=Words(still_working="Geduld, {name} denkt."))
            asking = group.create_task(subagents.ask(context, "Coder", "task"))
            await until(lambda: clock.slept == [PATIENCE])
            assert mouth.said == []
            clock.later.set()
            await until(lambda: mouth.said)
            go_on.set()
        assert asking.result().content == "好了"
    assert mouth.said == ["Geduld, Coder denkt."]


async def test_its_runs_have_words_of_their_own_if_it_was_given_any() -> None:
    subagents, model = coder(words(""), words("done"), table=Words(empty="Sag etwas."))
    with model:
        await subagents.ask(replace(tool_context(), words=Words(empty="Say something.")), "Coder", "task")
    assert model.requests[1].messages[-1].text.endswith("Sag etwas.")


async def test_who_is_answered_at_once_is_told_nothing_more() -> None:
    mouth = Mouth()
    subagents, model = coder(words("好了"))
    with model:
        await subagents.ask(tool_context({Speaker: mouth}), "Coder", "task")
    assert mouth.said == []


# --- the tool that asks them ------------------------------------------------------------------------


def test_the_tool_says_who_they_are_and_has_time_for_the_slowest() -> None:
    subagents, _ = coder(deadline=120)
    introduced = subagents.described_tool(ask)
    assert introduced.description == "Asks somebody.\n\nSubagents:\n- Coder: writes code"
    assert introduced.timeout > 120
    assert introduced.side_effects is SideEffects.NONE


def test_one_that_may_change_something_makes_the_tool_one_that_does() -> None:
    subagents, _ = coder()
    subagents.replace_all(
        [
            Subagent(
                name="A",
                description="",
                prompt="",
                runner=lambda _: engine(ScriptedModel()),
                side_effects=SideEffects.WRITE,
            )
        ]
    )
    assert subagents.names == ("A",)
    assert subagents.described_tool(ask).side_effects is SideEffects.WRITE
    assert (
        subagents.described_tool(replace(ask, side_effects=SideEffects.EXTERNAL)).side_effects is SideEffects.EXTERNAL
    )


def test_where_there_is_nobody_the_tool_stays_as_it_is() -> None:
    introduced = NamedSubagents(clock=ManualClock()).described_tool(ask)
    assert introduced.description == ask.description


async def test_steps_are_told_as_they_happen() -> None:
    events: list[RunEvent] = []
    subagents, model = coder(words("ok"))
    with model:
        await subagents.ask(replace(tool_context(), inner=events.append), "Coder", "task")
    assert [type(event) for event in events] == [RunStarted, StepFinished, RunFinished]
