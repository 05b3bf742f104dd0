"""What hooks are told and may answer; where in a run they are asked is tested with what runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from frostagent.types.hooks import AfterCall, BeforeCall, Block, Change, Hook, Rewrite, verified
from frostagent.types.results import ToolResult
from tests.cases import each_case
from tests.frostagent.toolbox import broken, echo, once


class Diary:
    """Hooks that write down what they are told, and answer what they are made with."""

    def __init__(self, before: Any = None, after: Any = None) -> None:
        self.told: list[BeforeCall | AfterCall] = []
        self.hooks = Hook(before_call=self._answer(before), after_call=self._answer(after))

    def _answer(self, answer: Any) -> Callable[[Any], Any]:
        def hook(event: BeforeCall | AfterCall) -> Any:
            self.told.append(event)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        return hook


async def test_hooks_hear_of_a_call_before_and_after_with_ids_to_follow_it() -> None:
    diary = Diary()
    await once(echo(), '{"text": 5}', hooks=[diary.hooks])
    before, after = diary.told
    assert isinstance(after, AfterCall)
    assert (before.type, before.name, before.input) == ("tool_call.before", "say", {"text": "5"})
    assert (before.output, before.error) == (None, None)
    assert (after.type, after.output, after.error) == ("tool_call.after", ToolResult("5"), None)
    assert before.metadata == after.metadata
    assert before.metadata == {
        "run": "t0", "step": 1, "call": "c0", "response": "", "conversation": "10001:group:4242", "asker": "777",
    }  # fmt: skip


async def test_a_hook_may_block_a_call_and_those_after_it_are_not_asked() -> None:
    first, second = Diary(before=Block("no")), Diary()
    executed = await once(echo(), hooks=[first.hooks, second.hooks])
    assert executed.message.content == "error: the tool call was blocked: no [TOOL_DENIED]"
    assert [event.type for event in first.told] == ["tool_call.before", "tool_call.after"]
    assert [(event.type, event.error) for event in second.told] == [("tool_call.after", executed.message.content)]


async def test_changed_arguments_are_validated_and_checked_again() -> None:
    async def change(event: BeforeCall) -> Change:
        return Change({"text": 7})

    assert (await once(echo(), hooks=[Hook(before_call=change)])).message.content == "7"
    wrong = Hook(before_call=lambda event: Change({"text": []}))
    assert (await once(echo(), hooks=[wrong])).code == "TOOL_INVALID_ARGUMENTS"
    assert (await once(echo(check=broken), hooks=[wrong])).code == "TOOL_EXECUTION_FAILED"


async def test_a_denial_is_told_to_the_after_hooks() -> None:
    diary = Diary()
    await once(echo(permission="deny"), hooks=[diary.hooks])
    assert [event.error is None for event in diary.told] == [True, False]


async def test_a_hook_may_rewrite_a_result_and_the_next_one_sees_that() -> None:
    diary = Diary()
    executed = await once(echo(), hooks=[Hook(after_call=lambda event: Rewrite(ToolResult("***"))), diary.hooks])
    assert executed.message.content == "***"
    assert diary.told[-1].output == ToolResult("***")
    failing = Hook(after_call=lambda event: Rewrite(ToolResult("no", is_error=True)))
    assert (await once(echo(), hooks=[failing])).code == "TOOL_EXECUTION_FAILED"
    mending = Hook(after_call=lambda event: Rewrite(ToolResult("fine")))
    assert (await once(echo(permission="deny"), hooks=[mending])).code == "ok"


@each_case("answer", [LookupError("secret"), SystemExit(1), asyncio.CancelledError(), "nonsense"])
async def test_a_hook_that_breaks_is_an_error_result_and_the_model_knows_what_was_done(answer: Any) -> None:
    before = await once(echo(), hooks=[Diary(before=answer).hooks])
    assert before.message.content.startswith("error: a hook ")
    after = await once(echo(), hooks=[Diary(after=answer).hooks])
    assert after.message.content.startswith("error: the call was done, but a hook ")
    assert before.code == after.code == "TOOL_EXECUTION_FAILED"
    assert "secret" not in before.message.content + after.message.content


def test_a_hook_is_a_function_and_hooks_are_a_list_of_them() -> None:
    wrong: Any = Block("no")
    with pytest.raises(TypeError, match="before_call takes a function of one event, not Block"):
        Hook(before_call=wrong)
    hooks = (Hook(before_call=broken), Hook())
    assert verified(list(hooks)) == hooks
    for wrong in (Hook(), 3, [broken]):
        with pytest.raises(TypeError, match="Hook"):
            verified(wrong)
