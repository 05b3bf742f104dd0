from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from frostagent.types.errors import InvalidArguments, ToolFailed
from frostagent.types.results import ToolResult
from frostagent.types.suspension import Allow, ApprovalRequest, Decision, Deny, Pending, Suspend
from frostagent.types.tools import SideEffectsWord, ToolContext, tool
from tests.cases import each_case
from tests.fakes import ManualClock, tool_context
from tests.frostagent.toolbox import Stubborn, echo, once


@each_case(
    ("idempotent", "side_effects", "error", "tries"),
    [
        (True, "read", ConnectionError(), 2),
        (True, "external", ToolFailed("busy", transient=True), 2),
        (True, "read", ToolFailed("no such city"), 1),
        (True, "read", InvalidArguments("no"), 1),
        (True, "undeclared", ConnectionError(), 1),
        (False, "read", ConnectionError(), 1),
    ],
)
async def test_only_what_does_no_harm_is_tried_once_more_and_only_after_a_passing_trouble(
    idempotent: bool, side_effects: SideEffectsWord, error: Exception, tries: int
) -> None:
    tried, clock = 0, ManualClock()

    @tool(idempotent=idempotent, side_effects=side_effects)
    async def fetch() -> str:
        """Fails."""
        nonlocal tried
        tried += 1
        raise error

    assert (await once(fetch, clock=clock)).message.is_error
    assert (tried, len(clock.slept)) == (tries, tries - 1)


async def test_a_tool_may_know_a_way_out_of_a_failure() -> None:
    async def recover(context: ToolContext, arguments: Any, error: Exception) -> ToolResult:
        if isinstance(error, LookupError):
            return ToolResult(f"the old one, after {type(error).__name__}")
        raise error

    @tool(recover=recover)
    def fetch(how: str) -> str:
        """Fails."""
        raise LookupError if how == "lost" else ToolFailed("gone")

    assert (await once(fetch, '{"how": "lost"}')).message.content == "the old one, after LookupError"
    assert (await once(fetch, '{"how": "gone"}')).message.content == "error: gone [TOOL_EXECUTION_FAILED]"


async def test_a_way_out_that_catches_its_cancellation_is_left_at_the_deadline() -> None:
    stubborn = Stubborn()

    @tool(recover=stubborn, timeout=0.01)
    async def fetch() -> str:
        """Fails."""
        raise ToolFailed("gone")

    assert "timed out" in (await once(fetch)).message.content
    stubborn.released = True


async def test_the_deadline_of_a_call_is_that_of_its_body() -> None:
    @tool(timeout=7)
    async def when(context: ToolContext) -> float:
        """Tells its deadline."""
        return context.deadline

    assert (await once(when, clock=ManualClock(100.0))).message.content == "107.0"


class Office:
    """An approver with one answer."""

    def __init__(self, answer: Decision | Pending | Exception) -> None:
        self.answer = answer
        self.asked: list[ApprovalRequest] = []

    async def approve(self, request: ApprovalRequest) -> Allow | Deny | Pending:
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@each_case(
    ("answer", "content"),
    [
        (Allow(), "5"),
        (Deny("not today"), "error: the tool call was denied: not today [TOOL_DENIED]"),
        (LookupError("secret"), "error: nobody could be asked to allow it (LookupError). Do without it. [TOOL_DENIED]"),
    ],
)
async def test_somebody_is_asked_where_a_tool_wants_it(answer: Decision | Exception, content: str) -> None:
    office = Office(answer)
    for settings in ({"offered": echo(permission="require_approval")}, {"offered": echo(), "approve": {"say"}}):
        executed = await once(raw='{"text": 5}', approver=office, **settings)
        assert executed.message.content == content
        assert (office.asked[-1].name, office.asked[-1].arguments) == ("say", {"text": "5"})
        assert office.asked[-1].asks == 'say {"text": "5"}'


async def test_without_anybody_to_ask_nothing_is_allowed() -> None:
    executed = await once(echo(permission="require_approval"))
    assert "nobody to ask" in executed.message.content
    assert executed.code == "TOOL_DENIED"


async def test_an_answer_that_comes_later_makes_the_call_wait_and_one_word_is_enough() -> None:
    office = Office(Pending(30))
    asking = echo(permission="require_approval")
    with pytest.raises(Suspend, match="say"):
        await once(asking, approver=office)
    assert (await once(asking, context=replace(tool_context(), allowed=True), approver=office)).code == "ok"
    assert len(office.asked) == 1
