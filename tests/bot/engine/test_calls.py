from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from bot.domain.chat import ToolCall
from bot.domain.errors import InvalidArguments, ToolDenied, ToolFailed
from bot.domain.result import Image, ToolResult
from bot.domain.run import Asker
from bot.domain.suspension import Allow, ApprovalRequest, Decision, Deny, Pending, Suspend
from bot.domain.tool import ToolContext, tool
from bot.engine.ongoing import Executed
from bot.engine.threads import Progress
from bot.engine.toolset import Toolset
from tests.bot.toolbox import Telescope, broken, echo, once, toolset
from tests.fakes import ManualClock, tool_context


async def run(name: str, arguments: str = "{}", ports: dict[type, object] | None = None) -> tuple[str, str]:
    executed = await toolset().calls.execute(ToolCall("c9", name, arguments), tool_context(ports))
    assert (executed.message.call_id, executed.message.name) == ("c9", name)
    assert executed.message.is_error == (executed.code != "ok")
    return executed.message.content, executed.code


async def test_a_call_by_name_gives_the_result_of_the_tool() -> None:
    assert await run("add", '{"a": 2, "b": 40}') == ("42", "ok")


async def test_a_plain_function_runs_too_and_its_number_becomes_text() -> None:
    assert await run("count_words", '{"text": "a b c"}') == ("3", "ok")


async def test_an_unknown_name_is_an_error_result_that_suggests_the_nearest() -> None:
    content, code = await run("ad")
    assert content.startswith('error: tool not found: "ad". Did you mean "add"? Available: add, ask_always,')
    assert content.endswith("[TOOL_NOT_FOUND]")
    assert code == "TOOL_NOT_FOUND"


async def test_wrong_arguments_name_each_wrong_field() -> None:
    content, code = await run("add", '{"a": "many", "c": 1}')
    assert "a: Input should be a valid integer, unable to parse string as an integer, got 'many'" in content
    assert "c: no such field, leave it out" in content
    assert code == "TOOL_INVALID_ARGUMENTS"


async def test_a_missing_field_is_named() -> None:
    assert await run("add") == ("error: a: required [TOOL_INVALID_ARGUMENTS]", "TOOL_INVALID_ARGUMENTS")


@pytest.mark.parametrize("raw", ["[" * 100_000, '{"a": 1', '{"a": 1}{"a": 2}', "{'a': 1", "[1]", '"text"', "7"])
async def test_arguments_that_are_not_one_json_object_are_never_run(raw: str) -> None:
    content, code = await run("add", raw)
    assert code == "TOOL_INVALID_ARGUMENTS"
    assert "JSON" in content


async def test_a_crash_is_an_error_result_that_tells_no_details() -> None:
    content, code = await run("crash")
    assert "the tool broke (ZeroDivisionError)" in content
    assert "secret" not in content
    assert code == "TOOL_EXECUTION_FAILED"


@pytest.mark.parametrize("name", ["leave", "give_up", "time_out_inside"])
async def test_no_way_of_ending_badly_gets_out_of_a_tool(name: str) -> None:
    content, code = await run(name)
    assert content.startswith("error: ")
    assert code == "TOOL_EXECUTION_FAILED"


async def test_a_deadline_ends_a_call_and_says_so() -> None:
    assert await run("dawdle") == (
        "error: dawdle timed out after 0.01 s. Do not repeat it unchanged. [TOOL_TIMEOUT]",
        "TOOL_TIMEOUT",
    )


async def test_a_timed_out_effect_may_have_happened_and_the_model_is_told() -> None:
    content, _ = await run("send_slowly")
    assert "may have been done all the same" in content


async def test_a_missing_capability_makes_a_tool_unavailable_with_the_reason() -> None:
    content, code = await run("look")
    assert "it needs Telescope" in content
    assert code == "TOOL_UNAVAILABLE"
    assert await run("look", "{}", {Telescope: object()}) == ("object", "ok")


async def test_a_tool_that_asks_again_although_it_was_allowed_fails() -> None:
    with pytest.raises(Suspend):
        await toolset().calls.execute(ToolCall("c", "ask_always", ""), tool_context())
    executed = await toolset().calls.execute(ToolCall("c", "ask_always", ""), replace(tool_context(), allowed=True))
    assert "asked to be allowed what it had been allowed" in executed.message.content
    assert executed.code == "TOOL_EXECUTION_FAILED"


async def test_wrong_arguments_are_told_before_anybody_is_asked() -> None:
    assert (await run("ask_first", "{}"))[1] == "TOOL_INVALID_ARGUMENTS"


async def test_a_long_result_is_shortened_before_the_model_reads_it() -> None:
    @tool
    async def flood() -> str:
        """Talks too much."""
        return "x" * 100_000

    tools = Toolset([flood], clock=ManualClock(), max_result=1000)
    executed = await tools.calls.execute(ToolCall("c", "flood", ""), tool_context())
    assert len(executed.message.content) < 1100


# --- what a tool declares -------------------------------------------------------------------------


async def test_what_was_mended_and_what_the_tool_was_run_with_is_told() -> None:
    executed = await once(echo(), '{"text": 5}')
    assert (executed.message.content, executed.arguments) == ("5", {"text": "5"})
    assert executed.coerced == ("text: number -> string",)


@pytest.mark.parametrize(("side_effects", "code"), [("read", "ok"), ("undeclared", "TOOL_INVALID_ARGUMENTS")])
async def test_unknown_keys_are_a_notice_for_tools_that_read_and_refused_for_the_others(
    side_effects: str, code: str
) -> None:
    executed = await once(echo(side_effects=side_effects), '{"txt": "hi"}')
    assert executed.code == code
    assert "txt" in executed.message.content


async def test_arguments_are_prepared_before_they_are_checked() -> None:
    prepared = echo(prepare=lambda given: {"text": given.get("message", "none")})
    assert (await once(prepared, '{"message": 3}')).message.content == "3"


async def test_a_tools_own_check_refuses_with_its_reason_and_the_body_never_runs() -> None:
    async def no_shouting(context: ToolContext, arguments: Any) -> None:
        if arguments["text"].isupper():
            raise ValueError("text: do not shout")
        if arguments["text"] == "password":
            raise ToolDenied("that stays here")

    checked = echo(check=no_shouting)
    assert (await once(checked, '{"text": "hi"}')).message.content == "hi"
    assert (await once(checked, '{"text": "HI"}')).message.content == (
        "error: text: do not shout [TOOL_INVALID_ARGUMENTS]"
    )
    assert (await once(checked.wrap(broken), '{"text": "password"}')).code == "TOOL_DENIED"
    assert (await once(checked.wrap(broken))).code == "TOOL_EXECUTION_FAILED"


@pytest.mark.parametrize(
    ("declared", "who"),
    [({"prepare": broken}, "the preparation of its arguments"), ({"check": broken}, "its own check")],
)
async def test_what_breaks_around_a_body_is_an_error_result_too(declared: dict[str, Any], who: str) -> None:
    executed = await once(echo(**declared))
    assert executed.message.content.startswith(f"error: {who} broke (LookupError).")
    assert executed.code == "TOOL_EXECUTION_FAILED"


async def test_what_is_required_must_be_configured() -> None:
    needy = echo(requires=("AMAP_KEY",))
    assert "it requires AMAP_KEY (not configured)" in (await once(needy)).message.content
    assert (await once(needy, configured={"AMAP_KEY"})).code == "ok"


async def test_a_tool_that_became_unavailable_is_still_tried_and_says_why_where_it_cannot_run() -> None:
    assert (await once(echo(available=lambda: "has no wire"))).code == "ok"

    @tool(available=lambda: "has no wire")
    async def phone() -> str:
        """Calls."""
        raise ConnectionError

    executed = await once(phone)
    assert "it has no wire" in executed.message.content
    assert executed.code == "TOOL_UNAVAILABLE"
    assert (await once(replace(phone, available=lambda: ""))).code == "TOOL_EXECUTION_FAILED"
    assert (await once(replace(phone, function=None))).code == "TOOL_UNAVAILABLE"


@pytest.mark.parametrize(
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
    idempotent: bool, side_effects: str, error: Exception, tries: int
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


async def test_a_rate_is_kept_over_all_runs() -> None:
    clock = ManualClock()
    tools = Toolset([echo(rate="1/60")], clock=clock)

    async def call() -> Executed:
        return await tools.calls.execute(ToolCall("c", "say", ""), tool_context())

    assert (await call()).code == "ok"
    limited = await call()
    assert (limited.code, limited.details) == ("TOOL_RATE_LIMITED", {"seconds": 60})
    clock.time += 60
    assert (await call()).code == "ok"


async def test_a_failure_told_by_the_tool_reads_like_any_other() -> None:
    @tool
    async def shrug() -> ToolResult:
        """Fails politely."""
        return ToolResult("nothing found", details={"asked": 3}, is_error=True)

    executed = await once(shrug)
    assert executed.message.content == "error: nothing found [TOOL_EXECUTION_FAILED]"
    assert (executed.message.is_error, executed.details) == (True, {"asked": 3})


async def test_pictures_go_beside_the_text_and_details_never_to_the_model() -> None:
    cat = Image.of(b"cat")

    @tool
    async def draw() -> ToolResult:
        """Draws."""
        return ToolResult("a cat", (cat, cat), {"secret": 1}, terminate=True)

    executed = await once(draw)
    assert executed.message.content == "a cat\n[图片 1]\n[图片 2]"
    assert executed.message.images == (cat.url, cat.url)
    assert (executed.details, executed.terminate) == ({"secret": 1}, True)


async def test_progress_is_told_while_the_call_runs_and_never_afterwards() -> None:
    heard: list[ToolResult] = []
    kept: list[ToolContext] = []

    @tool
    async def work(context: ToolContext) -> str:
        """Works."""
        context.progress("half", percent=50)
        kept.append(context)
        return "done"

    @tool
    def work_in_a_thread(context: ToolContext) -> str:
        """Works."""
        context.progress(ToolResult(details={"percent": 80}))
        return "done"

    for offered in (work, work_in_a_thread):
        await once(offered, context=replace(tool_context(), reports=Progress(heard.append)))
    kept[0].progress("late")
    await asyncio.sleep(0)
    assert heard == [ToolResult("half", details={"percent": 50}), ToolResult(details={"percent": 80})]


async def test_the_deadline_of_a_call_is_that_of_its_body() -> None:
    @tool(timeout=7)
    async def when(context: ToolContext) -> float:
        """Tells its deadline."""
        return context.deadline

    assert (await once(when, clock=ManualClock(100.0))).message.content == "107.0"


# --- who may --------------------------------------------------------------------------------------


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


async def test_a_denied_tool_is_never_run_whoever_denies_it() -> None:
    assert (await once(echo(permission="deny"))).code == "TOOL_DENIED"
    assert (await once(echo(), deny={"say"})).code == "TOOL_DENIED"


async def test_a_tool_is_run_for_its_audience_only() -> None:
    secret = echo(audience="owner")
    assert "only for owners" in (await once(secret)).message.content
    owner = replace(tool_context(), asker=Asker(1, is_owner=True))
    assert (await once(secret, context=owner)).code == "ok"


@pytest.mark.parametrize(
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
