from __future__ import annotations

from frostagent.reply import (
    MustWait,
    RunFailed,
    StepLimitReached,
    UnfitAnswer,
    Waiting,
    ended_reply,
    waiting_reply,
)
from frostagent.types.errors import BotError
from frostagent.types.messages import AssistantMessage, ToolCall, ToolMessage, Usage, UserMessage
from frostagent.types.runs import Asker, Outcome, PendingCall, Stop, SuspendedRun
from tests.fakes import GROUP

FAILED = ToolMessage("c", "look", "error: no [TOOL_DENIED]", is_error=True, code="TOOL_DENIED")


def test_a_reply_has_all_of_its_outcome() -> None:
    messages = (AssistantMessage("", (ToolCall("c", "look", "{}"),)), FAILED, AssistantMessage("hi"))
    outcome = Outcome(Stop.ANSWERED, "hi", messages, Usage(1, 2), 2, limit=True)
    reply = ended_reply("t1", outcome, unheard=(UserMessage("late"),))
    assert (reply.run_id, reply.text, reply.stop, reply.usage, reply.steps) == (
        "t1",
        "hi",
        Stop.ANSWERED,
        Usage(1, 2),
        2,
    )
    assert reply.limit
    assert (reply.new_messages, reply.messages) == (messages, messages)
    assert [failure.code for failure in reply.tool_failures] == ["TOOL_DENIED"]
    assert reply.unheard == (UserMessage("late"),)
    assert reply.waiting is None


def test_a_run_that_waits_has_no_end_yet() -> None:
    call = ToolCall("c", "look", "{}")
    suspended = SuspendedRun(
        run_id="t1",
        conversation=str(GROUP),
        asker=Asker("1"),
        messages=(),
        message=AssistantMessage("", (call,)),
        answers=(PendingCall(call, "look?", 10.0, "digest"),),
        usage=Usage(1, 2),
        steps=1,
    )
    reply = waiting_reply(Waiting(session="s", question=UserMessage("go"), suspended=suspended))
    assert (reply.stop, reply.text, reply.usage, reply.steps, reply.run_id) == (None, "", Usage(1, 2), 1, "t1")


def test_failures_are_of_the_one_tree_and_say_their_kind() -> None:
    reply = ended_reply("t1", Outcome(Stop.FAILED, "", (), Usage(), 1, error="auth: bad key"))
    assert RunFailed(reply).kind == "auth"
    assert str(RunFailed(reply)) == "auth: bad key"
    for kind in (RunFailed, StepLimitReached, MustWait, UnfitAnswer):
        assert issubclass(kind, BotError)
    assert str(UnfitAnswer("{}", ("a: required", "b: required"))) == "a: required; b: required"
