"""Calls that wait for somebody's word, or are broken off, in a step with others."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from bot.core import codec
from frostagent.engine.call_executor import Batch, CallExecutor
from frostagent.engine.toolset import Toolset
from frostagent.types.errors import ToolDenied
from frostagent.types.hooks import BeforeCall, Change, Hook
from frostagent.types.messages import ToolCall, ToolMessage
from frostagent.types.ports import Approver
from frostagent.types.runs import PendingCall
from frostagent.types.suspension import ApprovalRequest, Pending, digest_call
from frostagent.types.tools import tool
from tests.fakes import ManualClock, tool_context
from tests.frostagent.toolbox import add, ask_always, calls_of, echo, results_of, toolset


class Later:
    """An approver who needs time."""

    async def approve(self, request: ApprovalRequest) -> Pending:
        return Pending(60)


WAITING = tool_context({Approver: Later()})


async def test_what_a_hook_changed_is_what_is_asked_about_bound_and_run() -> None:
    def change(event: BeforeCall) -> Change:
        return Change({"a": event.input["a"] + 1})

    told: list[str] = []
    hooks = [Hook(before_call=change, after_call=lambda event: told.append(event.output.content))]
    tools = Toolset([add], clock=ManualClock(), hooks=hooks, approve={"add"})
    call = ToolCall("x", "add", '{"a": 1}')
    first = Batch([call])
    await CallExecutor(tools).run(first, [WAITING])
    (pending,) = first.answers()
    assert isinstance(pending, PendingCall)
    assert (pending.asks, pending.arguments, told) == ('add {"a": 2, "b": 1}', '{"a": 2, "b": 1}', [])
    assert pending.digest == digest_call(call, run_id="t0", asker="777", arguments=pending.arguments)

    allowed, denied = Batch([call]), Batch([call])
    allowed.allow(0, pending)
    denied.deny(0, ToolDenied("no"), pending)
    for batch in (allowed, denied):
        await CallExecutor(tools).run(batch, [replace(tool_context(), allowed=True)])
    assert told == ["3", "error: no [TOOL_DENIED]"]


async def test_a_cancelled_step_still_tells_every_after_hook_whose_before_was_told() -> None:
    started, told = asyncio.Event(), []

    @tool
    async def wait() -> str:
        """Waits for ever."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    hooks = [
        Hook(
            before_call=lambda event: told.append(f"before {event.name}"),
            after_call=lambda event: told.append(f"after {event.name}: {event.error}"),
        )
    ]
    tools = Toolset([wait, ask_always], clock=ManualClock(), hooks=hooks)
    batch = calls_of("wait", "ask_always", "nobody")
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        task = group.create_task(CallExecutor(tools).run(batch, [tool_context()] * 3))
        await started.wait()
        task.cancel()
    assert [text.partition(":")[0] for text in told] == [
        "before wait", "before ask_always", "after wait", "after ask_always",
    ]  # fmt: skip
    assert "the call was cancelled" in told[2]
    assert len(results_of(batch)) == 3


async def test_a_tool_that_cancels_itself_has_a_result_and_ends_nothing_else() -> None:
    @tool(side_effects="write")
    async def resign() -> str:
        """Cancels its own task."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return "never"

    for names in (["resign"], ["add", "resign"], ["resign", "resign", "add"]):
        batch = Batch([ToolCall(str(at), name, '{"a": 1}' if name == "add" else "") for at, name in enumerate(names)])
        await CallExecutor(toolset(resign, add)).run(batch, [tool_context()] * len(names))
        for name, result in zip(names, results_of(batch), strict=True):
            assert ("cancelled itself. It may have been done" in result.content) == (name == "resign")


async def test_what_was_prepared_is_prepared_once_and_what_was_allowed_is_what_is_run() -> None:
    disks = iter(["disk1", "disk2"])
    wiped: list[str] = []

    @tool(permission="require_approval", side_effects="write", prepare=lambda given: {**given, "disk": next(disks)})
    async def wipe(disk: str, quick: bool = True) -> str:
        """Wipes a disk."""
        wiped.append(disk)
        return disk

    tools = Toolset([wipe], clock=ManualClock())
    call = ToolCall("x", "wipe", "{}")
    first, second = Batch([call]), Batch([call])
    await CallExecutor(tools).run(first, [WAITING])
    (pending,) = first.answers()
    assert isinstance(pending, PendingCall)
    assert pending.arguments == '{"disk": "disk1", "quick": true}'
    second.allow(0, pending)
    await CallExecutor(tools).run(second, [replace(tool_context(), allowed=True)])
    assert wiped == ["disk1"]


async def test_what_waits_can_be_written_down_whatever_is_in_it() -> None:
    tools = Toolset([echo()], clock=ManualClock(), approve={"say"})
    batch = Batch([ToolCall("x", "say", '{"text": "\\u0000 \\ud83d\\ude00 \\u2028 ]["}')])
    await CallExecutor(tools).run(batch, [WAITING])
    (pending,) = batch.answers()
    assert isinstance(pending, PendingCall)
    assert codec.read(PendingCall, codec.write(pending)) == pending


def test_a_call_that_nothing_is_known_of_has_a_result_all_the_same() -> None:
    (result,) = results_of(Batch([ToolCall("x", "add", "")]))
    assert (result.call_id, result.name, result.is_error) == ("x", "add", True)


async def test_what_comes_after_an_effect_that_waits_is_not_run_before_it() -> None:
    done: list[str] = []

    @tool(side_effects="write", permission="require_approval")
    async def put() -> str:
        """Writes."""
        done.append("put")
        return "written"

    @tool(side_effects="read")
    async def get() -> str:
        """Reads."""
        done.append("get")
        return "read"

    tools = Toolset([put, get], clock=ManualClock())
    batch = calls_of("get", "put", "get", "put")
    await CallExecutor(tools).run(batch, [WAITING] * 4)
    assert (done, batch.waiting()) == (["get"], (1, 3))
    refused, second = batch.answers()[2:]
    assert isinstance(refused, ToolMessage)
    assert "put before it waits to be allowed" in refused.content

    assert isinstance(second, PendingCall)
    resumed = calls_of("get", "put", "get", "put")
    for index, answer in enumerate(batch.answers()[:3]):
        resumed.keep(index, answer)
    resumed.allow(3, second)
    await CallExecutor(tools).run(resumed, [replace(WAITING, allowed=True)] * 4)
    assert (done, resumed.waiting()) == (["get", "put"], (1,))
