from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from frostagent.engine.budget import Budget, Limits
from frostagent.engine.engine import Run, RunState
from frostagent.types.errors import DaySpent, ModelAuth, ModelError, ToolFailed
from frostagent.types.hooks import Hook, RequestEvent, Reshape
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    FinishReason,
    ModelRequest,
    Reasoning,
    ToolMessage,
    Usage,
    UserMessage,
)
from frostagent.types.runs import RunFinished, Spent, StepFinished, Stop, SuspendedRun, Terms
from frostagent.types.suspension import Suspend
from frostagent.types.tools import tool
from frostagent.words import ENGLISH, Words

# Runs that wait for somebody's word: tests/e2e/test_suspended_runs.py
from tests.cases import each_case
from tests.fakes import RecordingObserver, ScriptedModel, Step, calls, words
from tests.fallback_lines import UNANSWERED
from tests.frostagent.runs import QUESTION, assert_valid, echo, engine, run, to_the_end
from tests.frostagent.several_models import Bench


async def test_words_end_the_run() -> None:
    with ScriptedModel(words("你好")) as model:
        outcome = await to_the_end(engine(model).run(run(), RunState()))
    assert (outcome.stop, outcome.text, outcome.steps) == (Stop.ANSWERED, "你好", 1)
    assert outcome.messages == (AssistantMessage("你好"),)
    assert model.requests[0].messages == QUESTION
    assert [spec.name for spec in model.requests[0].tools] == ["echo", "fail"]


async def test_tool_results_are_in_the_next_request_in_call_order() -> None:
    asked = calls(("echo", '{"text": "a"}'), ("fail", ""), ("echo", '{"text": "b"}'))
    with ScriptedModel(asked, words("done")) as model:
        outcome = await to_the_end(engine(model).run(run(), RunState()))
    results = [message for message in model.requests[1].messages if isinstance(message, ToolMessage)]
    assert [result.call_id for result in results] == ["c0", "c1", "c2"]
    assert [result.content for result in results if not result.is_error] == ["<a>", "<b>"]
    assert outcome.text == "done"
    assert outcome.usage.prompt == 20
    assert_valid(outcome.messages)


async def test_each_request_is_made_as_lean_as_the_run_has_become_by_then() -> None:
    with ScriptedModel(calls(("echo", '{"text": "a"}'))) as dear, ScriptedModel(words("done")) as cheap:

        def leaner(it: Run) -> Run:
            return replace(it, model=cheap, terms=Terms(frozenset({"echo", "fail"}))) if dear.requests else it

        state = RunState()
        outcome = await to_the_end(engine(dear).run(replace(run(), leaner=leaner), state))
    assert (outcome.text, len(dear.requests), state.model) == ("done", 1, cheap)
    assert [len(model.requests[0].tools) for model in (dear, cheap)] == [2, 0]


class Silence:
    """An inbox into which nobody says anything; counts what was broken off."""

    def __init__(self) -> None:
        self.lost: list[Usage] = []
        self.at: list[int] = []

    async def read(self, run: Run, state: RunState) -> Run:
        return run

    def record_broken_off(self, model: str, usage: Usage, step: int) -> None:
        assert model == "scripted"
        self.lost.append(usage)
        self.at.append(step)


async def test_a_request_that_is_broken_off_is_counted_and_made_again_one_that_times_out_is_not() -> None:
    inbox, state, share = Silence(), RunState(), Budget(Limits(tokens=10**6)).share()

    async def broken_off(request: ModelRequest) -> Completion:
        state.ask_anew()
        await asyncio.Event().wait()
        return words("never")

    async def late(request: ModelRequest) -> Completion:
        raise TimeoutError

    with ScriptedModel(broken_off, words("done")) as model:
        asked = replace(run(), inbox=inbox, share=share)
        outcome = await to_the_end(engine(model).run(asked, state))
    (lost,) = inbox.lost
    assert inbox.at == [1]
    assert (outcome.text, outcome.steps, outcome.usage.prompt) == ("done", 2, lost.prompt + 10)
    assert share.budget.spent == Spent(requests=2, tokens=lost.prompt + 15)
    with ScriptedModel(late) as model, pytest.raises(TimeoutError):
        await engine(model).run(replace(run(), inbox=inbox), RunState())


async def test_a_request_that_ends_with_its_run_is_counted_at_its_step() -> None:
    async def stopped(request: ModelRequest) -> Completion:
        raise asyncio.CancelledError

    inbox = Silence()
    with ScriptedModel(calls(("echo", '{"text": "x"}')), stopped) as model, pytest.raises(asyncio.CancelledError):
        await engine(model).run(replace(run(), inbox=inbox), RunState())
    assert inbox.at == [2]


@each_case(("inbox", "steps"), [(Silence(), [1, 2]), (None, [0, 0])])
async def test_who_counts_what_is_asked_knows_for_which_step_of_a_turn_that_is(
    inbox: Silence | None, steps: list[int]
) -> None:
    told = list[int]()

    async def asked(request: ModelRequest) -> Completion:
        assert request.allowance is not None
        told.append(request.allowance.step)
        return words("done") if len(told) == 2 else calls(("echo", '{"text": "x"}'))

    with ScriptedModel(asked, asked) as model:
        assert (await to_the_end(engine(model).run(replace(run(), inbox=inbox), RunState()))).text == "done"
    assert told == steps


async def test_at_the_step_limit_one_request_without_tools_asks_for_words() -> None:
    again = calls(("echo", '{"text": "x"}'))
    with ScriptedModel(again, again, words("enough")) as model:
        outcome = await to_the_end(engine(model, max_steps=2).run(run(), RunState()))
    assert model.requests[-1].tools == ()
    assert model.requests[-1].messages[-1] == UserMessage(ENGLISH.last_step)
    assert (outcome.stop, outcome.text, outcome.limit) == (Stop.ANSWERED, "enough", True)
    assert UserMessage(ENGLISH.last_step) not in outcome.messages


async def test_a_model_that_never_stops_calling_tools_is_cut_off_with_fixed_words() -> None:
    again = calls(("echo", '{"text": "x"}'))
    with ScriptedModel(again, again, again) as model:
        outcome = await to_the_end(engine(model, max_steps=2).run(run(), RunState()))
    assert (outcome.stop, outcome.text, outcome.limit) == (Stop.ANSWERED, ENGLISH.no_conclusion, True)
    assert_valid(outcome.messages)
    assert isinstance(outcome.messages[-1], ToolMessage)  # our words are none of the model's


async def test_words_cut_off_by_the_output_limit_say_so() -> None:
    with ScriptedModel(words("once upon a", finish=FinishReason.LENGTH)) as model:
        assert (await to_the_end(engine(model).run(run(), RunState()))).text == "once upon a…"


async def test_a_filtered_answer_fails_and_executes_nothing() -> None:
    with ScriptedModel(calls(("echo", "{}"), finish=FinishReason.CONTENT_FILTER)) as model:
        outcome = await to_the_end(engine(model).run(run(), RunState()))
    assert outcome.stop is Stop.FAILED
    assert outcome.error.startswith("content_filter: ")
    assert outcome.messages == ()


async def test_a_refusal_is_shown_as_words() -> None:
    with ScriptedModel(words("", refusal="I cannot help with that.")) as model:
        assert (await to_the_end(engine(model).run(run(), RunState()))).text == "I cannot help with that."


async def test_an_empty_answer_is_asked_for_again_then_without_tools_then_fails() -> None:
    with ScriptedModel(words(""), words(" \n"), words("")) as model:
        outcome = await to_the_end(engine(model).run(run(), RunState()))
    assert model.requests[1].messages == (QUESTION[0], UserMessage(f"hi\n\n{ENGLISH.empty}"))
    assert model.requests[1].tools != ()
    assert model.requests[2].tools == ()
    assert outcome.stop is Stop.FAILED
    assert outcome.error.startswith("empty: ")


@each_case(("models", "asked"), [(1, ["a1", "a1", "a1"]), (2, ["a1", "b1", "a1"]), (3, ["a1", "b1", "c1"])])
async def test_after_an_empty_answer_the_next_model_is_asked_and_the_first_one_again_after_all(
    models: int, asked: list[str]
) -> None:
    thoughts = replace(words(""), message=AssistantMessage("", reasoning=Reasoning("hm")))
    said = [thoughts, words(" \n"), words("hello")]
    answers = {name: [one for one, who in zip(said, asked, strict=True) if who[0] == name] for name in "abc"[:models]}
    bench = Bench(*((script,) for script in answers.values()))
    assert (await to_the_end(engine(bench.model).run(run(), RunState()))).text == "hello"
    assert bench.asked == asked


async def test_who_answered_with_nothing_is_not_asked_first_in_the_rest_of_a_run() -> None:
    bench = Bench(([words("")],), ([calls(("echo", '{"text": "x"}')), words("hello")],))
    assert (await to_the_end(engine(bench.model).run(run(), RunState()))).text == "hello"
    assert bench.asked == ["a1", "b1", "b1"]


async def test_an_empty_ending_is_silence_when_the_asker_has_been_answered_already() -> None:
    with ScriptedModel(words("")) as model:
        outcome = await to_the_end(engine(model).run(run(heard=lambda: True), RunState()))
    assert (outcome.stop, outcome.text) == (Stop.SILENT, "")


async def test_an_empty_answer_that_nobody_waits_for_is_asked_for_no_more() -> None:
    with ScriptedModel(words("")) as model:
        outcome = await to_the_end(engine(model).run(run(may_be_silent=True), RunState()))
    assert (outcome.stop, outcome.text, outcome.messages) == (Stop.SILENT, "", ())


async def test_spoilt_words_that_nobody_waits_for_are_asked_for_once_more_and_then_let_be() -> None:
    spoilt = replace(run(may_be_silent=True), tidy=lambda message: replace(message, text=""))
    with ScriptedModel(words("小明: hi"), words("小明: hi")) as model:
        outcome = await to_the_end(engine(model).run(spoilt, RunState()))
    assert (outcome.stop, outcome.messages) == (Stop.SILENT, ())
    with ScriptedModel(words(" \n")) as model:  # blanks are no words that were spoilt
        outcome = await to_the_end(engine(model).run(spoilt, RunState()))
    assert (outcome.stop, outcome.messages) == (Stop.SILENT, ())


@each_case(
    "notice",
    [
        "answer now, in words, from what you have found so far",
        ENGLISH.last_step.replace("You have", "You had"),
        UNANSWERED.format(trace="3xn6kykx"),
        'You called the tool look_up with {"word": "香山"}, and its result was:\n| found',
    ],
)
async def test_a_notice_of_ours_said_back_is_no_answer(notice: str) -> None:
    table = Words(fallbacks=(UNANSWERED,), run_marks=("（编号 {run}）",))
    with ScriptedModel(words(""), words(notice), words("周六七点")) as model:
        outcome = await to_the_end(engine(model).run(replace(run(), words=table), RunState()))
    assert (outcome.text, len(outcome.messages)) == ("周六七点", 1)


async def test_the_error_of_a_call_said_back_is_no_answer_and_its_result_may_be() -> None:
    @tool
    async def find() -> str:
        """Finds nothing."""
        raise ToolFailed("nobody here is called Somewhere")

    parroted = words("error: nobody here is called Somewhere")
    with ScriptedModel(calls(("find", "{}")), parroted, words("没找到")) as model:
        outcome = await to_the_end(engine(model, find).run(run(), RunState()))
    assert outcome.text == "没找到"
    with ScriptedModel(calls(("echo", '{"text": "all is well here"}')), words("all is well here")) as model:
        assert (await to_the_end(engine(model).run(run(), RunState()))).text == "all is well here"


async def test_a_model_error_ends_the_run_as_failed_and_keeps_what_was_done() -> None:
    with ScriptedModel(calls(("echo", '{"text": "a"}')), ModelAuth("bad key")) as model:
        outcome = await to_the_end(engine(model).run(run(), RunState()))
    assert (outcome.stop, outcome.error) == (Stop.FAILED, "auth: bad key")
    assert len(outcome.messages) == 2


async def test_a_run_that_takes_too_long_is_ended_with_a_valid_transcript() -> None:
    @tool
    async def wait() -> str:
        """For ever."""
        await asyncio.Event().wait()
        return "never"

    with ScriptedModel(calls(("wait", ""))) as model:
        outcome = await to_the_end(engine(model, wait, deadline=0.05).run(run(), RunState()))
    assert outcome.stop is Stop.FAILED
    assert outcome.error.startswith("deadline: ")
    assert len(outcome.messages) == 2
    assert_valid(outcome.messages)


async def test_a_cancelled_run_leaves_a_valid_transcript_and_says_that_it_was_stopped() -> None:
    started = asyncio.Event()

    @tool
    async def wait() -> str:
        """For ever."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    state, observer = RunState(), RecordingObserver()
    with ScriptedModel(calls(("echo", '{"text": "a"}'), ("wait", ""))) as model:
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            task = group.create_task(engine(model, echo, wait, observer=observer).run(run(), state))
            await started.wait()
            task.cancel()
    assert task.cancelled()
    assert_valid(state.messages)
    assert [m.content for m in state.messages if isinstance(m, ToolMessage) and not m.is_error] == ["<a>"]
    (finished,) = observer.of("run_finished")
    assert isinstance(finished, RunFinished)
    assert finished.outcome.stop is Stop.STOPPED
    assert finished.outcome.messages == tuple(state.messages)


async def test_events_tell_the_run_in_order() -> None:
    observer = RecordingObserver()
    with ScriptedModel(calls(("echo", '{"text": "a"}')), words("ok")) as model:
        await engine(model, observer=observer).run(run(), RunState())
    assert [event.type for event in observer.events] == [
        "run_started", "step_finished", "tool_started", "tool_finished", "step_finished", "run_finished",
    ]  # fmt: skip


ANY_STEP: st.SearchStrategy[Step] = st.one_of(
    st.builds(words, st.sampled_from(["", "fine"]), finish=st.sampled_from(FinishReason)),
    st.builds(
        lambda asked, finish: calls(*asked, finish=finish),
        st.lists(
            st.tuples(st.sampled_from(["echo", "fail", "nobody"]), st.sampled_from(["", '{"text": "x"}', "{"])),
            min_size=1,
            max_size=3,
        ),
        st.sampled_from(FinishReason),
    ),
    st.just(ModelError("broken")),
)


@given(st.lists(ANY_STEP, min_size=8, max_size=8))
def test_whatever_the_model_does_the_run_ends_with_a_valid_transcript(script: list[Step]) -> None:
    outcome = asyncio.run(to_the_end(engine(ScriptedModel(*script)).run(run(), RunState())))
    assert outcome.stop in (Stop.ANSWERED, Stop.FAILED)
    assert (outcome.stop is Stop.ANSWERED) == bool(outcome.text)
    assert_valid(outcome.messages)


async def test_a_bug_outside_the_error_tree_is_not_swallowed() -> None:
    async def broken(request: ModelRequest) -> Completion:
        raise LookupError("a bug")

    step: Callable[[ModelRequest], Awaitable[Completion]] = broken
    with ScriptedModel(step) as model, pytest.raises(LookupError):
        await engine(model).run(run(), RunState())


# --- hooks ----------------------------------------------------------------------------------------

ECHO = calls(("echo", '{"text": "a"}'))


async def test_a_hook_reshapes_one_request_and_switches_the_model_from_there_on() -> None:
    def before(event: RequestEvent) -> Reshape | None:
        return Reshape(messages=event.messages[-1:], model=other) if event.metadata["step"] == 2 else None

    with ScriptedModel(ECHO) as model, ScriptedModel(ECHO, words("done")) as other:
        running = engine(model, hooks=[Hook(before_request=before)])
        outcome = await to_the_end(running.run(run(), RunState()))
    assert [len(request.messages) for request in other.requests] == [1, 6]
    assert_valid(outcome.messages)
    assert len(outcome.messages) == 5


# --- its budget -------------------------------------------------------------------------------------


async def test_with_its_last_request_a_run_ends_and_what_is_asked_more_waits() -> None:
    with ScriptedModel(words("a")) as model:
        state = RunState()
        state.follow_up(UserMessage("and?"))
        share = Budget(Limits(requests=1)).share()
        outcome = await to_the_end(engine(model).run(replace(run(), share=share), state))
    assert (outcome.text, outcome.stop, outcome.steps) == ("a", Stop.ANSWERED, 1)
    assert list(state.follow_ups) == [UserMessage("and?")]


@each_case("inbox", [None, Silence()])
async def test_a_run_whose_request_others_have_left_nothing_for_has_its_last_words(inbox: Silence | None) -> None:
    left = True

    async def spent(request: ModelRequest) -> Completion:
        nonlocal left
        left = False
        raise DaySpent("too late")

    budget = Budget(Limits(requests=9, tokens=10**6), is_out=lambda: not left)
    with ScriptedModel(calls(("echo", '{"text": "x"}')), spent, words("that was it")) as model:
        asked, state = replace(run(), share=budget.share(), inbox=inbox), RunState()
        outcome = await to_the_end(engine(model).run(asked, state))
    assert (outcome.stop, outcome.text, outcome.steps) == (Stop.ANSWERED, "that was it", 2)
    assert [bool(request.tools) for request in model.requests] == [True, True, False]
    assert budget.spent == Spent(requests=2, tokens=30)


async def test_who_refuses_even_the_last_words_is_not_asked_for_ever() -> None:
    async def spent(request: ModelRequest) -> Completion:
        raise DaySpent("too late")

    with ScriptedModel(spent, spent) as model:
        outcome = await to_the_end(engine(model).run(run(), RunState()))
    assert (outcome.stop, len(model.requests)) == (Stop.FAILED, 2)


async def test_a_run_that_waits_says_what_its_tree_has_spent() -> None:
    @tool
    async def ask_first() -> str:
        """Asks."""
        raise Suspend("may I?", seconds=60)

    budget = Budget(Limits(requests=20), Spent(requests=10, sends=2))
    with ScriptedModel(calls(("ask_first", "{}"))) as model:
        ended = await engine(model, ask_first).run(replace(run(), share=budget.share()), RunState())
    assert isinstance(ended, SuspendedRun)
    assert ended.spent == Spent(requests=11, tokens=15, sends=2)


async def test_what_was_said_is_tidied_before_anybody_is_told() -> None:
    observer = RecordingObserver()
    with ScriptedModel(words("F: a")) as model:
        tidy = replace(run(), tidy=lambda message: replace(message, text=message.text.removeprefix("F: ")))
        outcome = await to_the_end(engine(model, observer=observer).run(tidy, RunState()))
    assert outcome.text == "a"
    assert outcome.messages == (AssistantMessage("a"),)
    (step,) = [event for event in observer.events if isinstance(event, StepFinished)]
    assert step.completion.message.text == "a"
